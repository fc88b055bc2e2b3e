"""The movers by name. A new one is a file in this package and a line in ``MAKERS``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from sonar.movers.base import Mover
from sonar.movers.fake import FakeMover
from sonar.movers.http_tpc import HttpTpc

MAKERS: dict[str, Callable[[], Mover]] = {
    HttpTpc.name: HttpTpc,
    FakeMover.name: FakeMover,
}
NAMES: tuple[str, ...] = tuple(MAKERS)


@cache
def get(name: str) -> Mover:
    """Return the process's one mover of this name; ValueError names those there are."""
    if name not in MAKERS:
        raise ValueError(f"no mover is called {name!r}; allowed: {', '.join(NAMES)}")
    return MAKERS[name]()
