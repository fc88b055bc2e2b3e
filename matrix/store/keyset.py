"""Pages of ordered rows: each begins behind the last row of the one before, whatever became of it.

An offset would skip rows or show them twice when others come and go, and count all before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from sonar.notation.windows import parse_time

Row = TypeVar("Row", bound=Model)
# Of a row: the values of the columns that it is ordered by.
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Cursor:
    """The last row of a page by time and id: the next page has those that come after it."""

    moment: datetime
    id: UUID | int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` has written of a row with a UUID; raise ValueError for else."""
        moment, _, row = text.partition("_")
        return cls(parse_time(moment), UUID(row))

    @classmethod
    def parse_numbered(cls, text: str) -> Self:
        """Read it of a row with a number."""
        moment, _, number = text.partition("_")
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            raise ValueError(text)
        return cls(parse_time(moment), int(number))

    def __str__(self) -> str:
        moment = self.moment.astimezone(UTC).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='microseconds')}Z_{self.id}"


def page_by_time(
    rows: QuerySet[Row], order: Sequence[str], count: int, after: Cursor | None
) -> tuple[list[Row], Cursor | None]:
    """Return a page of rows in the order of a time and their id, and its end if more follow."""
    page_rows, last = page(rows, order, count, (after.moment, after.id) if after else None)
    return page_rows, Cursor(*last) if last else None


def page(
    rows: QuerySet[Row], order: Sequence[str], count: int, after: Place | None
) -> tuple[list[Row], Place | None]:
    """Return rows behind a place, and that of the last one if more follow. One SQL query.

    ``order`` names columns as `order_by` does; no two rows have the same values in all of them.
    """
    if after is not None:
        rows = rows.filter(behind(order, after))
    page_rows = list(rows.order_by(*order)[: count + 1])
    if len(page_rows) <= count:
        return page_rows, None
    last = page_rows[count - 1]
    return page_rows[:count], tuple(getattr(last, name.lstrip("-")) for name in order)


def behind(order: Sequence[str], place: Place) -> Q:
    condition, same = Q(), Q()
    for column, value in zip(order, place, strict=True):
        name = column.lstrip("-")
        further = "lt" if column.startswith("-") else "gt"
        condition |= same & Q((f"{name}__{further}", value))
        same &= Q((name, value))
    if len(order) == 1:
        return condition
    # It follows from the rest, and lets the index begin where the page does.
    first = order[0].lstrip("-")
    beginning = "lte" if order[0].startswith("-") else "gte"
    return Q((f"{first}__{beginning}", place[0])) & condition
