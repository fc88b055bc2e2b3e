"""Which endpoints an address is of: the names of their hosts are looked up every ten minutes.

And at once when the registry has changed.
"""

import logging
import socket
import time
from collections.abc import Callable, Iterable

from sonar.models import Endpoint
from sonar.notation.addresses import address_of, host_of
from sonar.registry.cache import registry_version

KEPT_SECONDS = 600.0

log = logging.getLogger(__name__)


def look_up(host: str) -> set[str]:
    """Return the addresses of a host, none if nobody knows it."""
    try:
        answers = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for a name longer than there can be
        log.warning("the addresses of %s are not known: %s", host, error)
        return set()
    return {str(address_of(str(answer[4][0]))) for answer in answers}


class Addresses:
    """The addresses of the endpoints in use, as they were looked up last."""

    def __init__(self, resolve: Callable[[str], Iterable[str]] = look_up) -> None:
        self._resolve = resolve
        self._endpoints: dict[str, list[int]] = {}
        self._version, self._next_at = "", 0.0

    def refresh_if_due(self) -> None:
        """Look them up again if it is time, or another registry. At most two SQL queries."""
        version, now = registry_version(), time.monotonic()
        if version != self._version or now >= self._next_at:
            self.refresh()
            self._version, self._next_at = version, now + KEPT_SECONDS

    def refresh(self) -> None:
        """Look all of them up, one after the other. One SQL query."""
        by_host: dict[str, list[int]] = {}
        in_use = Endpoint.objects.filter(retired_at=None).order_by("id")
        for endpoint, base_url in in_use.values_list("id", "base_url"):
            by_host.setdefault(host_of(base_url), []).append(endpoint)
        endpoints_by_address: dict[str, list[int]] = {}
        for host, endpoints in by_host.items():
            for address in self._resolve(host):
                endpoints_by_address.setdefault(address, []).extend(endpoints)
        self._endpoints = endpoints_by_address

    def endpoints_at(self, address: str) -> list[int]:
        """Return the ids of the endpoints of an address."""
        return self._endpoints.get(address, [])
