"""What the first start makes and later starts find: the tables, the administrator and the
registry."""

from __future__ import annotations

import secrets
from io import StringIO
from pathlib import Path

import yaml
from django.contrib.auth import get_user_model
from django.core.management import call_command

from sonar import registry_file, tables
from sonar.models import Endpoint
from sonar.sandbox import nodes, topology
from sonar.sandbox.home import write_private
from sonar.sandbox.processes import StartError

ADMINISTRATOR = "admin"


def make_tables() -> None:
    """Check this Sonar, and bring its tables up to date."""
    if sentence := tables.incurable(tables.session_of()):
        raise StartError(sentence)
    call_command("check", stdout=StringIO())
    call_command("migrate", verbosity=0)


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


def load_registry_file(path: Path) -> str:
    """Load the registry of a real grid; return what changed in words."""
    try:
        return registry_file.describe(registry_file.load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"SONAR_REGISTRY cannot be read: {error}") from error
    except registry_file.RegistryError as error:
        raise StartError(f"{path} was not loaded; nothing was changed:\n{error}") from error


def load_sandbox_registry(directory: Path) -> str:
    """Register the sandbox nodes at the addresses of this start; return what changed."""
    registry = topology.registry(nodes.load_base_urls(directory))
    names = [endpoint["name"] for endpoint in registry["endpoints"]]
    foreign = Endpoint.objects.exclude(name__in=names, simulated=True).first()
    if foreign:
        raise StartError(
            f"This database holds {foreign.name}, which is not of the sandbox: set SONAR_REGISTRY "
            "to your registry file, or unset DATABASE_URL for a sandbox with its own database."
        )
    return registry_file.describe(registry_file.load(yaml.safe_dump(registry, sort_keys=False)))
