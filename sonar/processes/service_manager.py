"""What systemd is told of a process: that it is ready, and that its main loop goes round.

docs/systemd/ has the units. Where no service manager listens, nothing is said to anybody:
NOTIFY_SOCKET is not set, which gunicorn's function looks for. The web says that it is ready by
itself, and looks after its own workers.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from gunicorn.systemd import sd_notify

log = logging.getLogger(__name__)

# Several times within the WatchdogSec of the units.
SPEAK_SECONDS = 10.0


def ready(status: str) -> None:
    sd_notify(f"READY=1\nSTATUS={status}", log)


def alive() -> None:
    """Say that the main loop goes round: who has not said so for long is started again."""
    sd_notify("WATCHDOG=1", log)


@contextmanager
def waiting(status: str) -> Iterator[None]:
    """Speak for a main loop that waits for what is away: it does not hang."""
    over = threading.Event()

    def speak() -> None:
        while not over.wait(SPEAK_SECONDS):
            sd_notify(f"WATCHDOG=1\nSTATUS={status}", log)

    alive()
    threading.Thread(target=speak, name="waits", daemon=True).start()
    try:
        yield
    finally:
        over.set()
