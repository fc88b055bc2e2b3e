"""The orders of lists, and the text that a cursor names a place in one by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from matrix.store.keyset import Place
from sonar.models.fields import NAME

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Order:
    """By columns that no two rows share; ``read`` raises ValueError for what is no cursor."""

    fields: tuple[str, ...]
    read: Callable[[str], Place]
    write: Callable[[Place], str]


def by(column: str, pattern: str) -> Order:
    """By one column; ``pattern`` is what its values look like as text."""

    def read(cursor: str) -> Place:
        if not re.fullmatch(pattern, cursor):
            raise ValueError(cursor)
        return (cursor,)

    return Order((column,), read, lambda place: str(place[0]))


def read_start(cursor: str) -> Place:
    match = re.fullmatch(r"(-?[0-9]{1,18})\.([0-9]{1,19})", cursor)
    if match is None:
        raise ValueError(cursor)
    return EPOCH + int(match[1]) * MICROSECOND, int(match[2])


def write_start(place: Place) -> str:
    start, key = place
    if not isinstance(start, datetime):
        raise TypeError(f"{start} is no time")
    return f"{(start - EPOCH) // MICROSECOND}.{key}"


BY_NAME = by("name", NAME)
BY_SIZE = by("from_bytes", "[0-9]{1,19}")
NEWEST_FIRST = Order(("-starts_at", "-id"), read_start, write_start)
