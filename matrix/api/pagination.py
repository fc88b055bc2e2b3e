"""Pages of every list in JSON: `page_size=` and `cursor=`, and the address of the next page.

CSV and NDJSON have all rows at once. What a cursor says is a matter of the list: its last row, or
how many rows of a table as of a moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, Self, TypeVar

from django.utils import timezone
from rest_framework.request import Request

from matrix.api.parameters import text, wrong

Place = TypeVar("Place")

PAGING = ("page_size", "cursor")


@dataclass(frozen=True)
class PageSizes:
    """How many rows a page of a list has unless asked, and how many it may have."""

    default: int = 1000
    most: int = 1000


# Of lists of the registry, which are small: all of it for most Sonars.
SHORT = PageSizes()
LINKS = PageSizes(most=10_000)
TRANSFERS = PageSizes(default=100)


@dataclass(frozen=True)
class PageRequest(Generic[Place]):
    """The page that a call asks for: at most ``size`` rows, behind a place or from the start."""

    size: int
    after: Place | None

    @classmethod
    def read(
        cls, request: Request, form: str, place: Callable[[str], Place], sizes: PageSizes = SHORT
    ) -> Self:
        """Read both parameters; raise BadQueryError for what is no number or no cursor.

        ``place`` reads a cursor and raises ValueError; ``form`` is json, or has no pages.
        """
        params, most = request.query_params, sizes.most
        for name in PAGING:
            if form != "json" and params.get(name):
                raise wrong(name, f"{name} is for JSON: other formats have all rows at once.")
        size = text(params, "page_size") or str(sizes.default)
        # Python reads no number of thousands of digits, not even of zeros.
        if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,7}", size) or int(size) > most:
            raise wrong("page_size", f"page_size “{size}” is not a whole number from 1 to {most}.")
        cursor = text(params, "cursor")
        try:
            return cls(int(size), place(cursor) if cursor else None)
        except (ValueError, OverflowError):
            sentence = f"cursor “{cursor}” is not from the `next` of a response."
            raise wrong("cursor", sentence) from None


def following(request: Request, cursor: str, **changed: str | None) -> str:
    """Return the address of the next page; parameters in ``changed`` are set, or left out."""
    params = request.query_params.copy()
    for name, value in {**changed, "cursor": cursor}.items():
        params.pop(name, None)
        if value is not None:
            params[name] = value
    return request.build_absolute_uri(f"{request.path}?{params.urlencode(safe=':!')}")


@dataclass(frozen=True)
class TableCursor:
    """Where an answer goes on: behind a number of rows of the table as of a moment.

    All pages are of the window that the first was of, which a preset would move with the clock.
    """

    moment: datetime
    rows: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``after`` has written; raise ValueError for anything else."""
        match = re.fullmatch(r"([0-9]{1,10})-([0-9]{1,9})", text)
        if match is None or int(match[1]) > timezone.now().timestamp():
            raise ValueError(text)
        return cls(datetime.fromtimestamp(int(match[1]), UTC), int(match[2]))

    def after(self, rows: int) -> str:
        return f"{int(self.moment.timestamp())}-{self.rows + rows}"
