"""Listens for fireflies until it is stopped."""

import signal
import socket
from ipaddress import ip_network
from threading import Event
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from sonar.management.base import QuickCommand
from sonar.records.fireflies.collector import Collector, Networks
from sonar.records.fireflies.flows import Addresses


class Command(QuickCommand):
    help = (
        "Collect fireflies: UDP reports from storage servers that support packet marking "
        "(SciTags). They contain RTT, retransmissions and addresses per connection. Pages show "
        "them with the matching tests; results do not change. The command runs until it is "
        "stopped, and prints counts once a minute."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--listen",
            metavar="HOST:PORT",
            default=settings.SONAR_FIREFLIES_LISTEN,
            help="address to listen on (default: SONAR_FIREFLIES_LISTEN, currently %(default)s)",
        )
        parser.add_argument(
            "--allow",
            metavar="NETWORK",
            action="append",
            help="network to accept packets from, for example 192.0.2.0/24; repeatable (default: "
            "SONAR_FIREFLIES_ALLOW)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        allowed = networks(options["allow"] or []) or settings.SONAR_FIREFLIES_ALLOW
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with listening(options["listen"]) as listener:
            host, port = listener.getsockname()[:2]
            senders = ", ".join(map(str, allowed))
            self.stdout.write(f"Listening on {host}:{port} (UDP) for packets from {senders}.")
            self.stdout.flush()
            Collector(listener, allowed, Addresses()).run(stop)


def networks(texts: list[str]) -> Networks:
    """Read networks; raise CommandError for what is none."""
    try:
        return [ip_network(text) for text in texts]
    except ValueError as error:
        raise CommandError(f"--allow: {error}") from error


def listening(place: str) -> socket.socket:
    """Open the socket; raise CommandError if that cannot be."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise CommandError(f"--listen or SONAR_FIREFLIES_LISTEN: {place!r} is not HOST:PORT.")
    try:
        family, kind, *_, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind)
        listener.bind(address)
    except OSError as error:
        raise CommandError(f"Cannot listen on {place}: {error.strerror}.") from error
    return listener
