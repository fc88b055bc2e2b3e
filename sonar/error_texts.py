"""Errors as all readers see them: endpoints by their names, and nothing of where they are."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Subquery

from sonar.models import Endpoint, Version
from sonar.redaction import Servers

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
    return servers().hide(error, [end.name for end in ends]) if error else error


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
    version: Registry = Version.objects.values_list("value", newest).get(name="registry")
    return version
