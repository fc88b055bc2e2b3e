"""Ports of loopback on which nobody listens."""

import socket
from contextlib import suppress
from secrets import choice

# Below those that the kernel gives to clients: no connection of another test takes one meanwhile.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    while True:
        port = choice(PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
