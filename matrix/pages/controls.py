"""What a page offers to change about its question; each is a link or a field of a GET form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matrix.pages.base import Page, QueryPage
from matrix.query.matrix_query import MatrixQuery
from sonar.models import SizeClass
from sonar.notation.units import format_bytes
from sonar.notation.windows import PRESET_WORDS, PRESETS, Window, format_bound


@dataclass(frozen=True)
class Choice:
    """A position of a switch."""

    label: str
    url: str
    chosen: bool
    title: str = ""


@dataclass(frozen=True)
class Select:
    name: str
    label: str
    options: list[tuple[str, str, bool]]


@dataclass(frozen=True)
class Bounds:
    """The form of a custom window: what its fields begin with, and what it carries along.

    Fields of dates and times would have 12 hours in some languages of browsers: these are texts.
    """

    start: str
    end: str
    open: bool
    kept: list[tuple[str, str]]


def size_choices(page: QueryPage) -> list[Choice]:
    """Return the switch of size classes. One SQL query."""
    query = page.query
    return [
        Choice(
            size,
            page.asking(resized(query, size)).url(),
            size == query.size,
            f"test files of {format_bytes(test_bytes)}",
        )
        for size, test_bytes in SizeClass.objects.values_list("name", "test_bytes")
    ]


def resized(query: MatrixQuery, size: str) -> MatrixQuery:
    """Ask for another size class: what the question is compared with changes places with it."""
    compare = query.compare
    if compare and compare.size == size:
        compare = dataclasses.replace(compare, size=query.size)
    return query.replace(size=size, compare=compare)


def window_choices(page: QueryPage) -> list[Choice]:
    query = page.query
    return [
        Choice(
            name,
            page.asking(query.replace(window=name)).url(),
            name == query.window,
            PRESET_WORDS[name],
        )
        for name in PRESETS
    ]


def filter_chips(page: QueryPage) -> list[Choice]:
    """Return the filters of a page's question, and what it is compared with.

    Each with the page without it.
    """
    query = page.query
    filters = [
        Choice(condition.words(), page.asking(query.without(condition)).url(), True)
        for condition in query.filters
    ]
    if query.compare is None:
        return filters
    alone = page.asking(query.replace(compare=None)).url()
    return [*filters, Choice(f"compared with {query.other_words()}", alone, True)]


def bounds_of(page: QueryPage, window: Window) -> Bounds:
    return Bounds(
        format_bound(window.start),
        format_bound(window.end),
        page.query.start is not None,
        kept(page, ("window", "from", "to")),
    )


def select(
    name: str,
    label: str,
    values: Iterable[str],
    chosen: str,
    labels: Mapping[str, str] | None = None,
) -> Select:
    options = [(value, (labels or {}).get(value, value), value == chosen) for value in values]
    return Select(name, label, options)


def kept(page: Page, but: Iterable[str]) -> list[tuple[str, str]]:
    """Return the parameters that a form passes on beside its own fields."""
    return [
        (name, text) for name, texts in page.params().items() if name not in but for text in texts
    ]
