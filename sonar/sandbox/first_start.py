"""What the first start makes and later starts find: the tables, the administrator and the
registry."""

import secrets
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import yaml
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from django.utils.text import capfirst

from sonar.database import actor, tables
from sonar.models import Endpoint, Mesh
from sonar.obstacles import catalogue as obstacles
from sonar.registry import file, mesh_size
from sonar.sandbox import nodes, topology
from sonar.sandbox.home import write_private
from sonar.sandbox.processes import StartError

ADMINISTRATOR = "admin"


@actor.acting("command", "make run")
def make_tables() -> None:
    """Check this Sonar, and bring its tables up to date."""
    if sentence := tables.incurable(tables.session_of()):
        raise StartError(sentence)
    call_command("check", stdout=StringIO())
    call_command("migrate", verbosity=0)


@actor.acting("command", "make run")
def make_administrator(home: Path) -> Path | None:
    """Make the first account; return the file with its password, or None if one exists."""
    users = get_user_model().objects
    if users.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(15)
    path = home / "admin-password"
    write_private(path, password)
    users.create_superuser(ADMINISTRATOR, password=password)
    return path


@actor.acting("file", "make run")
def load_registry_file(path: Path) -> str:
    """Load the registry of a real grid; return what changed in words."""
    try:
        return file.describe(file.load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"Cannot read SONAR_REGISTRY: {error}") from error
    except file.RegistryError as error:
        raise StartError(f"{path} was not loaded; nothing was changed:\n{error}") from error


@actor.acting("file", "make run")
def load_sandbox_registry(directory: Path) -> str:
    """Register the sandbox at its first start; return what changed.

    Later on it belongs to who uses it, with whatever was added or changed: a start notes no more
    than where its nodes listen now. A real grid never gets a sandbox.
    """
    base_urls = nodes.load_base_urls(directory)
    if Endpoint.objects.filter(name__in=base_urls, simulated=True).exists():
        return note_addresses(base_urls)
    if foreign := Endpoint.objects.first():
        raise StartError(
            f"This database contains {foreign.name} and is not a sandbox. Set SONAR_REGISTRY to "
            "your registry file. For a separate sandbox, set SONAR_HOME to a new directory and "
            "unset DATABASE_URL."
        )
    registry = yaml.safe_dump(topology.registry(base_urls), sort_keys=False)
    return file.describe(file.load(registry))


def what_is_tested() -> list[str]:
    """Say of each mesh what it sends, and what its waiting tests lack."""
    names = list(Mesh.objects.values_list("name", flat=True))
    advice = obstacles.all_advice(timezone.now())
    notices = [f"{capfirst(each.subject)}: {each.sentence}" for each in advice]
    return mesh_size.lines(names) + notices


@transaction.atomic
def note_addresses(base_urls: Mapping[str, str]) -> str:
    """Note where the nodes listen now; say what else the registry holds.

    A base URL that is not that of a node was set by somebody, and stays.
    """
    nodes_here = Endpoint.objects.filter(name__in=base_urls, base_url__regex=nodes.BASE_URL)
    moved = [node for node in nodes_here if node.base_url != base_urls[node.name]]
    for node in moved:  # out of each other's way: two may have changed places
        Endpoint.objects.filter(pk=node.pk).update(base_url=f"http://moving.invalid/{node.pk}")
    for node in moved:
        Endpoint.objects.filter(pk=node.pk).update(base_url=base_urls[node.name])
    others = Endpoint.objects.exclude(name__in=base_urls).count()
    return f"unchanged (endpoints: {len(base_urls)} sandbox nodes, {others} others)"
