"""One UDP socket: packets of allowed senders become rows; the others are counted and dropped."""

import logging
import select
import socket
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address
from threading import Event, Thread

from django.conf import settings
from django.db import DataError, Error, IntegrityError
from django.utils import timezone

from sonar.database.retry import one_line, release_connection
from sonar.models import Flow
from sonar.notation.addresses import address_of
from sonar.notation.units import format_counted
from sonar.notation.windows import Window
from sonar.processes.heartbeat_file import HeartbeatFile
from sonar.processes.heartbeats import CLOCK_SKEW, SILENT_AFTER
from sonar.records.fireflies.flows import Addresses, flow_of, store
from sonar.records.fireflies.packet import MOST_BYTES, Firefly, parsed

log = logging.getLogger(__name__)

Networks = Sequence[IPv4Network | IPv6Network]
MOST_A_SECOND = 2000
MOST_PENDING = 20_000
"""That wait for the database."""
BATCH_SECONDS, SAY_SECONDS, LOOK_SECONDS, END_SECONDS = 1.0, 60.0, 10.0, 5.0
# What a row itself is refused for, now and later.
WRONG_ROW = (DataError, IntegrityError)


class Collector:
    """Receives until it is told to stop; ``counts`` says what became of the packets."""

    def __init__(self, listener: socket.socket, allowed: Networks, addresses: Addresses) -> None:
        self.counts: Counter[str] = Counter()
        self._listener, self._allowed, self._addresses = listener, allowed, addresses
        self._pending: list[Flow] = []
        self._second, self._in_second = 0, 0
        limit = SILENT_AFTER * settings.SONAR_HEARTBEAT_SECONDS
        self._heartbeat = HeartbeatFile(settings.SONAR_HEARTBEAT_FILE, limit)

    def run(self, stop: Event) -> None:
        """Receive, store once a second, and say once a minute what was received."""
        self._look_up()  # packets wait in the socket meanwhile
        Thread(target=self._look_up_again, args=(stop,), daemon=True).start()
        stored_at = said_at = time.monotonic()
        while not stop.is_set():
            if select.select([self._listener], [], [], BATCH_SECONDS)[0]:
                datagram, (sender, *_) = self._listener.recvfrom(MOST_BYTES + 1)
                self.counts["received"] += 1
                if why := self.take(datagram, str(address_of(sender))):
                    self.counts[why] += 1
            now = time.monotonic()
            if now - stored_at >= BATCH_SECONDS:
                self.flush()
                self._heartbeat.beat()
                stored_at = now
            if now - said_at >= SAY_SECONDS:
                self._say()
                said_at = now
        self._end()

    def take(self, datagram: bytes, sender: str) -> str:
        """Keep a packet until the next flush; return why it is dropped, empty if it is not."""
        if not any(ip_address(sender) in network for network in self._allowed):
            return "sender not allowed"
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        if self._in_second > MOST_A_SECOND:
            return f"more than {MOST_A_SECOND} a second"
        try:
            firefly = parsed(datagram)
        except ValueError as error:
            log.debug("a packet from %s is not a firefly: %s", sender, error)
            return "not a firefly"
        why = self._keep(firefly, sender, timezone.now())
        if firefly.unread and not why:
            log.debug("a packet from %s: %s cannot be read", sender, ", ".join(firefly.unread))
            self.counts[UNREAD] += 1
        return why

    def _keep(self, firefly: Firefly, sender: str, now: datetime) -> str:
        # Times may be as old as results that are kept, and clocks differ.
        oldest = now - timedelta(days=settings.SONAR_KEEP_DAYS)
        if not firefly.is_of(Window(oldest, now + CLOCK_SKEW)):
            return "too old or in the future"
        flow = flow_of(firefly, sender, self._addresses, now)
        if not flow.source_endpoints or not flow.destination_endpoints:
            return "not between registered endpoints"
        if len(self._pending) >= MOST_PENDING:
            return "database unavailable"
        self._pending.append(flow)
        return ""

    def flush(self) -> None:
        """Store what is pending, one after the other if the database refuses a row.

        It stays while the database is away, or in any other trouble.
        """
        try:
            try:
                self._store_first(len(self._pending))
            except WRONG_ROW:
                while self._pending:
                    self._store_or_drop_first()
        except Error as error:
            release_connection()
            packets = format_counted(len(self._pending), "packet")
            log.warning(
                "the database failed, so packets will be stored later: %s: %s",
                packets,
                one_line(error),
            )

    def _store_first(self, count: int) -> None:
        if not count:
            return
        unknown = store(self._pending[:count])
        self.counts["stored"] += count - unknown
        if unknown:
            self.counts["from connections with an unknown start"] += unknown
        del self._pending[:count]

    def _store_or_drop_first(self) -> None:
        try:
            self._store_first(1)
        except WRONG_ROW as error:
            refused = self._pending.pop(0)
            log.warning(
                "the database refused a packet from %s: %s", refused.reporter, one_line(error)
            )
            self.counts["refused by the database"] += 1

    def _end(self) -> None:
        """Store what is pending, if need be a little later; what cannot be stored is counted."""
        last_at = time.monotonic() + END_SECONDS
        self.flush()
        while self._pending and time.monotonic() < last_at:
            time.sleep(BATCH_SECONDS)
            self.flush()
        self.counts["database unavailable"] += len(self._pending)
        self._say()

    def _say(self) -> None:
        log.info("fireflies: %s", counted(self.counts))

    def _look_up(self) -> None:
        try:
            self._addresses.refresh_if_due()
        except Error as error:
            log.warning("addresses of endpoints not refreshed: %s", one_line(error))
        release_connection()

    def _look_up_again(self, stop: Event) -> None:
        while not stop.wait(LOOK_SECONDS):
            self._look_up()


def counted(counts: Counter[str]) -> str:
    dropped = [f"{count} {why}" for why, count in sorted((+counts).items()) if why not in TAKEN]
    words = [f"{counts['received']} received", f"{counts['stored']} stored"]
    if counts[UNREAD]:
        words.append(f"{counts[UNREAD]} {UNREAD}")
    return ", ".join([*words, f"dropped: {', '.join(dropped)}" if dropped else "none dropped"])


UNREAD = "with numbers that cannot be read"
TAKEN = ("received", "stored", UNREAD)
"""Counts of packets that are not dropped."""
