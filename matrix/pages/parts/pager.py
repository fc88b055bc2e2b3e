"""The pages of a long list, and the way from one to another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from django.core.paginator import Page as PageOfRows
from django.http import QueryDict

from matrix.answers.table.column_filters import read_page
from matrix.pages.base import Page, Params
from matrix.pages.parts.controls import Choice
from matrix.query.forms import BadQueryError, check_names
from sonar.notation.units import format_count


def page_number(params: QueryDict) -> int:
    """Return which page is asked for; raise BadQueryError for what is none."""
    try:
        return read_page("page", params.get("page", ""))
    except ValueError as error:
        raise BadQueryError({"page": [str(error)]}) from error


@dataclass(frozen=True)
class NumberedPage(Page):
    """A page of a long list, which is asked for nothing but its number."""

    number: int = 1

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params, ["page"])
        return cls(page_number(params))

    def params(self) -> Params:
        return {"page": [str(self.number)]} if self.number > 1 else {}


def pager(rows: PageOfRows[Any], numbered: Callable[[int], str]) -> dict[str, Any]:
    """Return what the template needs; ``numbered`` gives the address of a page."""
    return {
        "rows": rows,
        "pages": [
            Choice(format_count(at), numbered(at), at == rows.number)
            if isinstance(at, int)
            else Choice(str(at), "", chosen=False)
            for at in rows.paginator.get_elided_page_range(rows.number, on_each_side=2, on_ends=1)
        ],
        "previous": numbered(rows.number - 1) if rows.has_previous() else "",
        "next": numbered(rows.number + 1) if rows.has_next() else "",
    }


def shown_words(rows: PageOfRows[Any], noun: str, nouns: str) -> str:
    """Say which rows are shown: `Showing 1 to 24 of 24 links`."""
    count = rows.paginator.count
    if not count:
        return f"Showing no {nouns}"
    first, last = format_count(rows.start_index()), format_count(rows.end_index())
    return f"Showing {first} to {last} of {format_count(count)} {noun if count == 1 else nouns}"
