"""The hosts to which a storage server may redirect what only reads: those of the registry.

Read anew when the registry has changed; else it costs an order one query by the key of a row.
"""

from __future__ import annotations

import logging

from django.conf import settings

from sonar.database.retry import DATABASE_AWAY, one_line
from sonar.models import Endpoint
from sonar.movers.http.peers import host_in
from sonar.registry.cache import RegistryCache

log = logging.getLogger(__name__)


def hosts_in_use() -> frozenset[str]:
    """Return the hosts of the endpoints that are not retired; one query."""
    urls = Endpoint.objects.filter(retired_at=None).values_list("base_url", flat=True)
    return frozenset(filter(None, map(host_in, urls.iterator())))


_registered = RegistryCache(hosts_in_use)


def known_hosts() -> frozenset[str]:
    """Return the names of all hosts that reading requests may be redirected to.

    While the database is away those of the registry are as they were read last.
    """
    try:
        registered = _registered.read()
    except DATABASE_AWAY as error:
        log.warning("redirects go to the hosts known before: %s", one_line(error))
        registered = _registered.last() or frozenset()
    return registered | {host_in(f"http://{host}") for host in settings.SONAR_STORAGE_HOSTS}
