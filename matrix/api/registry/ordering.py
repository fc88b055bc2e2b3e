"""The order of a list, and where in it a page goes on: behind a row, whatever became of it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q

from matrix.api.pagination import wrong_cursor
from sonar.models.registry import NAME

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Order(ABC):
    fields: tuple[str, ...]

    @abstractmethod
    def cursor(self, row: Any) -> str:  # noqa: ANN401 - of whichever kind
        """Return what names the place of a row."""

    @abstractmethod
    def after(self, cursor: str) -> Q:
        """Return what holds for the rows behind a place; raise BadQueryError if it is none."""


@dataclass(frozen=True)
class By(Order):
    """By a field that no two rows share; ``pattern`` is what its values look like as text."""

    field: str
    pattern: str

    @property
    def fields(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.field,)

    def cursor(self, row: Any) -> str:  # noqa: ANN401
        return str(getattr(row, self.field))

    def after(self, cursor: str) -> Q:
        if not re.fullmatch(self.pattern, cursor):
            raise wrong_cursor(cursor)
        return Q((f"{self.field}__gt", cursor))


class NewestFirst(Order):
    fields = ("-starts_at", "-id")

    def cursor(self, row: Any) -> str:  # noqa: ANN401
        return f"{(row.starts_at - EPOCH) // MICROSECOND}.{row.id}"

    def after(self, cursor: str) -> Q:
        match = re.fullmatch(r"(-?[0-9]{1,18})\.([0-9]{1,19})", cursor)
        if match is None:
            raise wrong_cursor(cursor)
        try:
            start = EPOCH + int(match[1]) * MICROSECOND
        except OverflowError:
            raise wrong_cursor(cursor) from None
        return Q(starts_at__lt=start) | Q(starts_at=start, id__lt=int(match[2]))


BY_NAME = By("name", NAME)
BY_SIZE = By("from_bytes", "[0-9]{1,19}")
NEWEST_FIRST = NewestFirst()
