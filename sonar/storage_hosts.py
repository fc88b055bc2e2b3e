"""The hosts to which a storage server may redirect what only reads: those of the registry.

Read anew when the registry has changed; else it costs an order one query by the key of a row.
"""

from __future__ import annotations

import logging
from threading import Lock

from django.conf import settings
from django.db import connection

from sonar.db_retry import DATABASE_AWAY, one_line
from sonar.models import Endpoint
from sonar.models.version import RAISED
from sonar.movers.peers import host_in

log = logging.getLogger(__name__)

VERSION = RAISED.format("registry")


class RegistryHosts:
    """The hosts of the endpoints in use, as they were at one version of the registry."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._version: str | None = None
        self._hosts: frozenset[str] = frozenset()

    def read(self) -> frozenset[str]:
        """Return them as of now; as they were read last while the database is away."""
        try:
            version = registry_version()
            if version != self._version:
                self._keep(version, hosts_in_use())
        except DATABASE_AWAY as error:
            log.warning("redirects go to the hosts known before: %s", one_line(error))
        return self._hosts

    def _keep(self, version: str, hosts: frozenset[str]) -> None:
        with self._lock:
            self._version, self._hosts = version, hosts


_registry = RegistryHosts()


def known_hosts() -> frozenset[str]:
    """Return the names of all hosts that reading requests may be redirected to."""
    return _registry.read() | {host_in(f"http://{host}") for host in settings.SONAR_STORAGE_HOSTS}


def registry_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute(VERSION)
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def hosts_in_use() -> frozenset[str]:
    """Return the hosts of the endpoints that are not retired; one query."""
    urls = Endpoint.objects.filter(retired_at=None).values_list("base_url", flat=True)
    return frozenset(filter(None, map(host_in, urls.iterator())))
