"""The sheet that adds a filter on a column: what can be chosen there, and how it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import groupby

from django.http import QueryDict

from matrix.pages.table.columns import ColumnFilter, LinkColumn
from matrix.query.forms import BadQueryError

PARAMETERS = ("filter_column", "filter_how", "filter_value")
BOUNDS = (("min", "at least (≥)"), ("max", "at most (≤)"))

Group = tuple[str, list[ColumnFilter]]


@dataclass(frozen=True)
class FilterSheet:
    """Two forms: columns of text, and of numbers with two bounds; each by what stands above it."""

    forms: dict[str, list[Group]]
    bounds: tuple[tuple[str, str], ...] = BOUNDS

    @classmethod
    def of(cls, columns: Iterable[LinkColumn]) -> FilterSheet:
        offered = [(column.group or "link", own) for column in columns for own in column.filters]
        forms = {
            words: by_group([pair for pair in offered if pair[1].is_number is is_number])
            for words, is_number in (("text", False), ("number", True))
        }
        return cls(forms)


def by_group(offered: Iterable[tuple[str, ColumnFilter]]) -> list[Group]:
    return [
        (group, [own for _, own in members])
        for group, members in groupby(offered, lambda pair: pair[0])
    ]


def added(params: QueryDict, conditions: Collection[str]) -> QueryDict:
    """Turn the fields of the sheet into the parameter of their filter; without a value it is none.

    Raises BadQueryError for a column that has no such condition; the value is for it to check.
    """
    whole = params.copy()
    column, how, value = (whole.pop(name, [""])[-1].strip() for name in PARAMETERS)
    if not value:
        return whole
    name = f"{column}.{how}" if how else column
    if name not in conditions:
        raise BadQueryError({"filter_column": [f"“{name}” is no filter: choose one of the list."]})
    whole[name] = value
    return whole
