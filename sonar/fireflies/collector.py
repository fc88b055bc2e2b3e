"""One UDP socket: packets of allowed senders become rows; the others are counted and dropped."""

from __future__ import annotations

import logging
import select
import socket
import time
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from threading import Event, Thread

from django.utils import timezone

from sonar.db_retry import DATABASE_AWAY, one_line, release_connection
from sonar.fireflies.endpoint_addresses import Addresses
from sonar.fireflies.flows import flow_of, store
from sonar.fireflies.packet import MOST_BYTES, parsed
from sonar.hosts import address_of
from sonar.models import Flow

log = logging.getLogger(__name__)

Networks = Sequence[IPv4Network | IPv6Network]
MOST_A_SECOND = 2000
MOST_PENDING = 20_000
"""That wait for the database."""
BATCH_SECONDS, SAY_SECONDS, LOOK_SECONDS = 1.0, 60.0, 10.0


class Collector:
    """Receives until it is told to stop; ``counts`` says what became of the packets."""

    def __init__(self, listener: socket.socket, allowed: Networks, addresses: Addresses) -> None:
        self.counts: Counter[str] = Counter()
        self._listener, self._allowed, self._addresses = listener, allowed, addresses
        self._pending: list[Flow] = []
        self._second, self._in_second = 0, 0

    def run(self, stop: Event) -> None:
        """Receive, store once a second, and say once a minute what was received."""
        self._look_up()  # packets wait in the socket meanwhile
        Thread(target=self._look_up_again, args=(stop,), daemon=True).start()
        stored_at = said_at = time.monotonic()
        while not stop.is_set():
            if select.select([self._listener], [], [], BATCH_SECONDS)[0]:
                self._receive()
            now = time.monotonic()
            if now - stored_at >= BATCH_SECONDS:
                self.flush()
                stored_at = now
            if now - said_at >= SAY_SECONDS:
                self._say()
                said_at = now
        self.flush()
        self._say()

    def _receive(self) -> None:
        datagram, (sender, *_) = self._listener.recvfrom(MOST_BYTES + 1)
        self.counts["received"] += 1
        if why := self.take(datagram, str(address_of(sender))):
            self.counts[why] += 1

    def take(self, datagram: bytes, sender: str) -> str:
        """Keep a packet until the next flush; return why it is dropped, empty if it is not."""
        if not any(ip_address(sender) in network for network in self._allowed):
            return "sender not allowed"
        if self._is_too_fast():
            return f"more than {MOST_A_SECOND} a second"
        try:
            flow = flow_of(parsed(datagram), sender, self._addresses, timezone.now())
        except ValueError as error:
            log.debug("a packet of %s is not a firefly: %s", sender, error)
            return "not a firefly"
        if not flow.source_endpoints or not flow.destination_endpoints:
            return "not between registered endpoints"
        if len(self._pending) >= MOST_PENDING:
            return "database away"
        self._pending.append(flow)
        return ""

    def _is_too_fast(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        return self._in_second > MOST_A_SECOND

    def flush(self) -> None:
        """Store what is pending; it stays if the database is away."""
        if not self._pending:
            return
        try:
            store(self._pending)
        except DATABASE_AWAY as error:
            release_connection()
            log.warning("%d packets wait for the database: %s", len(self._pending), one_line(error))
            return
        self.counts["stored"] += len(self._pending)
        self._pending = []

    def _say(self) -> None:
        log.info("fireflies: %s", counted(self.counts))

    def _look_up(self) -> None:
        try:
            self._addresses.refresh_if_due()
        except DATABASE_AWAY as error:
            log.warning("addresses stay as they were: %s", one_line(error))
        release_connection()

    def _look_up_again(self, stop: Event) -> None:
        while not stop.wait(LOOK_SECONDS):
            self._look_up()


def counted(counts: Counter[str]) -> str:
    """Say in words what became of the packets so far."""
    dropped = [f"{count} {why}" for why, count in sorted(counts.items()) if why not in KEPT]
    words = [f"{counts['received']} received", f"{counts['stored']} stored"]
    return ", ".join([*words, f"dropped: {', '.join(dropped)}" if dropped else "none dropped"])


KEPT = ("received", "stored")
