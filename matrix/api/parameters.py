"""Parameters that calls have of their own, checked, and pages of every list in JSON.

CSV and NDJSON have all rows at once. What a cursor says is a matter of the list: its last row, or
how many rows of a table as of a moment.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Self, TypeVar

from django.db.models import Model
from django.http import QueryDict
from django.utils import timezone
from rest_framework.request import Request

from matrix.query.filters import PROFILE_FILTERS, by_parameter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from sonar.models.fields import NAME
from sonar.notation.enumeration import not_allowed, not_registered
from sonar.notation.windows import Window, format_time

Row = TypeVar("Row", bound=Model)
Place = TypeVar("Place")

WINDOW_AND_METHOD = ("size", "window", "from", "to", *PROFILE_FILTERS)


def one_of(params: QueryDict, name: str, allowed: Sequence[str], default: str = "") -> str:
    value = text_of(params, name)
    if value and value not in allowed:
        raise wrong(name, f"{not_allowed(name, value, allowed)}.")
    return value or default


def some_of(params: QueryDict, name: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a parameter that may be given several times, each once."""
    values = [value for value in params.getlist(name) if value]
    for value in values:
        if value not in allowed:
            raise wrong(name, f"{not_allowed(name, value, allowed)}.")
    return tuple(dict.fromkeys(values))


def text_of(params: QueryDict, name: str) -> str:
    """Return the value of a parameter that is given once or not at all."""
    values = params.getlist(name)
    if len(values) > 1:
        raise wrong(name, f"“{name}” is given {len(values)} times: give it only once.")
    return values[0] if values else ""


def named(params: QueryDict, name: str, model: type[Row]) -> Row | None:
    """Return the registered row that a parameter names; None if it is not given."""
    value = text_of(params, name)
    if not value:
        return None
    # PostgreSQL does not even take every text.
    row = model._default_manager.filter(name=value).first() if re.fullmatch(NAME, value) else None
    if row is None:
        kind = model._meta.verbose_name
        raise wrong(name, f"{not_registered(name, value, str(kind))}.")
    return row


def wrong(name: str, sentence: str) -> BadQueryError:
    return BadQueryError({name: [sentence]})


def event_id(name: str, value: str, last: int) -> int:
    """Read the id of an event, 0 for nothing; the ``last`` one is the greatest that there is."""
    if not value:
        return 0
    if not re.fullmatch(r"[0-9]{1,18}", value):
        raise wrong(
            name,
            f"“{name}” has the value “{value}”, which is not the id of an event. Use a whole "
            "number, for example, 4711.",
        )
    if int(value) > last:
        raise wrong(
            name,
            f"“{name}” has the value {value}, which is greater than the id of the last event, "
            f"{last}.",
        )
    return int(value)


PAGING = ("page_size", "cursor")


@dataclass(frozen=True)
class PageSizes:
    """How many rows a page of a list has unless asked, and how many it may have."""

    default: int = 1000
    most: int = 1000


# Of lists of the registry, which are small: all of it for most Sonars.
SHORT = PageSizes()
OF_LINKS = PageSizes(most=10_000)
OF_TRANSFERS = PageSizes(default=100)


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
                raise wrong(
                    name, f"“{name}” applies to JSON only: CSV and NDJSON contain all rows."
                )
        size = text_of(params, "page_size") or str(sizes.default)
        # Python reads no number of thousands of digits, not even of zeros.
        if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,7}", size) or int(size) > most:
            raise wrong(
                "page_size",
                f"“page_size” has the value “{size}”, which is not a whole number from 1 to "
                f"{most}.",
            )
        cursor = text_of(params, "cursor")
        try:
            return cls(int(size), place(cursor) if cursor else None)
        except (ValueError, OverflowError):
            sentence = (
                f"“cursor” has the value “{cursor}”, which is not valid: follow the “next” URL of "
                "a response."
            )
            raise wrong("cursor", sentence) from None


def following(request: Request, cursor: object, window: Window | None = None) -> str | None:
    """Return the address of the next page, None without a cursor.

    With a ``window`` it is of that: a preset would move on.
    """
    if cursor is None:
        return None
    params = request.query_params.copy()
    changed = {"cursor": str(cursor)}
    if window:
        changed = {"from": format_time(window.start), "to": format_time(window.end)} | changed
    for name in (*changed, *(("window", "since") if window else ())):
        params.pop(name, None)
    for name, value in changed.items():
        params[name] = value
    return request.build_absolute_uri(f"{request.path}?{params.urlencode(safe=':!')}")


def echo(query: MatrixQuery, window: Window, /, **own: object) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    return {
        "size": query.size,
        "window": query.window or None,
        "start": format_time(window.start),
        "end": format_time(window.end),
        **own,
        **by_parameter(query.filters),
    }


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
