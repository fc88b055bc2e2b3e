"""Vantages: names of places where workers run that reach what others do not, and their queues."""

import re
from collections.abc import Iterable

LONGEST = 40
PATTERN = r"^[a-z0-9-]+\Z"
SENTENCE = (
    f"The name of a vantage point has 1 to {LONGEST} lower-case letters, digits and dashes, for "
    "example cern."
)


def is_name(text: str) -> bool:
    return len(text) <= LONGEST and re.match(PATTERN, text) is not None


def at(queue: str, vantage: str) -> str:
    """Return the name of a queue at a vantage: `transfers@cern`; as it is at the default one."""
    return f"{queue}@{vantage}" if vantage else queue


def vantage_of(queue: str) -> str:
    """Return the vantage of a queue; empty for the default one."""
    return queue.partition("@")[2]


def named(vantages: Iterable[str | None]) -> tuple[str, ...]:
    """Return the vantages that a test names, each once: of its ends first, then of its mesh."""
    return tuple(dict.fromkeys(filter(None, vantages)))
