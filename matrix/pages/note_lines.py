"""Notes as pages list them, each with the page that compares before it with after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from matrix.pages.base import QueryPage
from matrix.query.comparison import LONGEST_AROUND
from sonar.models import Annotation

COMPARE_SINCE = "Compare with the 7 days before"


@dataclass(frozen=True)
class NoteLine:
    """A note; ``around_url`` is empty for one that has nothing on either side."""

    note: Annotation
    around_url: str


def note_lines(page: QueryPage, notes: Iterable[Annotation], now: datetime) -> list[NoteLine]:
    return [NoteLine(note, around_url(page, note.starts_at, now)) for note in notes]


def around_url(page: QueryPage, moment: datetime, now: datetime) -> str:
    """Return the page of the time since a moment and of as much before it, if there is any."""
    try:
        return page.asking(page.query.around(moment, now)).url()
    except ValueError:
        return ""


def since_url(page: QueryPage, moment: datetime, now: datetime) -> str:
    """Return the page of the time since something changed, against LONGEST before it.

    What has just begun has few tests: as few before it could not tell it from chance.
    """
    return page.asking(page.query.around(moment, now, LONGEST_AROUND)).url()
