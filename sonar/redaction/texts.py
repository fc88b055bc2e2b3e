"""Errors as all readers see them: endpoints by their names, and nothing of where they are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db.models import Value

from sonar import token_cache
from sonar.models import Endpoint, Mesh
from sonar.redaction.disguises import without
from sonar.redaction.servers import SERVER, Servers
from sonar.registry_cache import RegistryCache

LONGEST_TOKEN = 16 * 1024


def for_all(error: str, ends: Iterable[Endpoint] = ()) -> str:
    """Return an error without what only some may see: where the registered endpoints are.

    `glasgow.example:1094/data/sonar/source/20: 403` is `GLASGOW_DATADISK/sonar/source/20: 403`.
    Of several endpoints on a server those of the test, its ``ends``, are meant. One SQL query.
    """
    if not error:
        return error
    return servers().hide(without_tokens(error), [end.name for end in ends])


def without_tokens(text: str) -> str:
    """Return a foreign text without the token or secret of any endpoint, or the disguise of one.

    A server was given those of the other ends of its copies, and may tell them at any time.
    """
    return without(text, _tokens()) if text else text


def _tokens() -> list[str]:
    return [*_secrets(), *token_cache.endings_in(settings.SONAR_TOKEN_CACHE_DIR)]


def _secrets() -> list[str]:
    try:
        files = sorted(settings.SONAR_CREDENTIALS_DIR.iterdir())
    except OSError:  # a process that uses none: of the web, say
        return []
    return [token for file in files if (token := _token(file))]


def _token(file: Path) -> str:
    """Read a token anew each time, as movers do: it is renewed in place."""
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST_TOKEN).decode("utf-8", "replace").strip()
    except OSError:  # a directory, or none of ours
        return ""


def servers() -> Servers:
    """Return where all endpoints are, retired ones too; read again when the registry changed."""
    return _registered.read()


def _read_servers() -> Servers:
    """Read where endpoints are, and the services that move files for them. One SQL query."""
    ends = Endpoint.objects.order_by().values_list("id", "name", "base_url")
    services = Mesh.objects.exclude(service="").order_by()
    named = services.values_list(Value(0), Value(SERVER), "service")
    return Servers((name, url) for _, name, url in ends.union(named).order_by("id"))


_registered = RegistryCache(_read_servers)
