"""What a start is doing, said before each step and while one takes long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

SAY_EVERY_SECONDS = 2.0


@contextmanager
def step(console: Console, activity: str) -> Iterator[None]:
    """Say what begins, and every two seconds that it still goes on: nobody waits in silence."""
    console.print(f"{activity} ...")
    over, began = threading.Event(), time.monotonic()

    def say() -> None:
        while not over.wait(SAY_EVERY_SECONDS):
            console.print(f"{activity} ... {time.monotonic() - began:.0f} s")

    voice = threading.Thread(target=say, daemon=True)
    voice.start()
    try:
        yield
    finally:
        over.set()
        voice.join()
