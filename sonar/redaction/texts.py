"""Errors as all readers see them: endpoints by their names, and nothing of where they are."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db.models import Subquery

from sonar.models import Endpoint, Version
from sonar.redaction.disguises import without
from sonar.redaction.servers import Servers

LONGEST_TOKEN = 16 * 1024
Registry = tuple[int, int | None]


@dataclass(frozen=True)
class _Known:
    """The servers of a registry, and which one it was."""

    registry: Registry
    servers: Servers


_lock = threading.Lock()
_known: _Known | None = None


def for_all(error: str, ends: Iterable[Endpoint] = ()) -> str:
    """Return an error without what only some may see: where the registered endpoints are.

    `glasgow.example:1094/data/sonar/source/20: 403` is `GLASGOW_DATADISK/sonar/source/20: 403`.
    Of several endpoints on a server those of the test, its ``ends``, are meant. One SQL query.
    """
    if not error:
        return error
    return servers().hide(without_tokens(error), [end.name for end in ends])


def without_tokens(text: str) -> str:
    """Return a foreign text without the token of any endpoint, or the disguise of one.

    A server was given those of the other ends of its copies, and may tell them at any time.
    """
    return without(text, _tokens()) if text else text


def _tokens() -> list[str]:
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
    global _known  # noqa: PLW0603 - one for all threads of a process, as for the registry
    registry = _registry()
    known = _known
    if known is None or known.registry != registry:
        with _lock:
            known = _known
            if known is None or known.registry != registry:
                base_urls = Endpoint.objects.order_by("id").values_list("name", "base_url")
                known = _known = _Known(registry, Servers(base_urls))
    return known.servers


def _registry() -> Registry:
    """Return what changes with the registry: read before it, so that what is kept is never older.

    The version alone would do, were it never set back, as it is after a test.
    """
    newest = Subquery(Endpoint.objects.order_by("-id").values("id")[:1])
    version = Version.objects.filter(name="registry").values_list("value", newest)
    return version.first() or (0, None)
