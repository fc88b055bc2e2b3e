"""The menu `compare with` of the pages that ask for a window, a size class and filters.

Its links take one click; its form, which needs no script, has the parameters of
matrix.query.comparison as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from matrix.pages.base import QueryPage
from matrix.pages.controls import Choice, Select, kept, select
from matrix.query.attributes import OF_PROFILES
from matrix.query.comparison import (
    A_MONTH,
    A_WEEK,
    BETWEEN,
    CUSTOM,
    MONTH,
    OF,
    OF_OF,
    OF_SIZE,
    PARAMETERS,
    PREFIX,
    PREVIOUS,
    WEEK,
    WINDOWS,
    Comparison,
)
from matrix.query.comparison_form import is_possible
from matrix.query.filters import by_parameter
from matrix.query.matrix_query import MatrixQuery
from matrix.store.profiles import ProfileChoices
from sonar.notation import windows
from sonar.notation.windows import Window

OF_LABELS = {"median": "medians", "mean": "means"}
WINDOW_LABELS = {
    "": "the same window",
    PREVIOUS: "the window before",
    WEEK: "a week earlier",
    MONTH: f"the {A_MONTH.days} days before",
}
# A week before a week is the window before, as are 30 days before 30 days, and one before a month
# is mostly the same: they are offered for windows that are shorter.
OFFERED_BELOW = {WEEK: A_WEEK, MONTH: A_MONTH}


@dataclass(frozen=True)
class CompareControl:
    """What a page offers to be compared with; ``words`` say with what it is.

    ``selects`` are of the form, beside a box for two times, of which ``between`` has those that are
    chosen, and ``example`` others. ``reverse`` says whether its box for the opposite direction is
    ticked, None if there is no such box. ``clear`` is the page compared with nothing.
    """

    words: str
    choices: list[Choice]
    selects: list[Select]
    between: str
    example: str
    reverse: bool | None
    kept: list[tuple[str, str]]
    clear: str


def compare_control(
    page: QueryPage,
    window: Window,
    profiles: ProfileChoices,
    sizes: list[str],
    *,
    reversible: bool = True,
) -> CompareControl:
    """Build the menu of a page that shows this window.

    ``profiles`` and ``sizes`` are the profiles and the size classes there are;
    ``reversible`` says whether the opposite direction is a question that the page can ask.
    """
    query, comparison = page.query, page.query.compare or Comparison()
    return CompareControl(
        words=query.other_words(),
        choices=list(choices(page, window, sizes, reversible=reversible)),
        selects=[*selects(comparison, query, sizes), *of_profiles(query, comparison, profiles)],
        between=between(comparison.start, comparison.end),
        example=between(window.start - A_WEEK, window.end - A_WEEK),
        reverse=comparison.reverse if reversible or comparison.reverse else None,
        kept=kept(page, offered(query, profiles)),
        clear=page.asking(query.replace(compare=None)).url() if query.compare else "",
    )


def choices(
    page: QueryPage, window: Window, sizes: list[str], *, reversible: bool
) -> Iterator[Choice]:
    """Yield what takes one click: put in, or taken out again if it is chosen."""
    query, comparison = page.query, page.query.compare or Comparison()
    length = window.end - window.start
    for name in WINDOWS:
        chosen = comparison.window == name
        is_shorter = length < OFFERED_BELOW.get(name, length + A_WEEK)
        if chosen or (is_shorter and is_possible(Comparison(name), window)):
            words = Comparison(name).words(query.window, query.bounds)
            changed = replace(comparison, window="" if chosen else name, start=None, end=None)
            yield Choice(words, compared(page, changed), chosen)
    if reversible or comparison.reverse:
        changed = replace(comparison, reverse=not comparison.reverse)
        words = Comparison(reverse=True).words("", None)
        yield Choice(words, compared(page, changed), comparison.reverse)
    for size in sizes:
        if size != query.size:
            chosen = comparison.size == size
            changed = replace(comparison, size="" if chosen else size)
            yield Choice(f"{size} files", compared(page, changed), chosen)


def compared(page: QueryPage, comparison: Comparison) -> str:
    return page.asking(page.query.replace(compare=comparison if comparison.differs else None)).url()


def own_words(query: MatrixQuery) -> str:
    """Say this side of a comparison by what differs on the other."""
    comparison = query.compare or Comparison()
    parts = [
        f"{query.size} files" if comparison.size else "",
        query.window_words() if comparison.window else "",
        "this direction" if comparison.reverse else "",
    ]
    return ", ".join(filter(None, parts)) or "as chosen"


def selects(comparison: Comparison, query: MatrixQuery, sizes: list[str]) -> Iterator[Select]:
    # Two times stand in a box of their own.
    window = "" if comparison.window == CUSTOM else comparison.window
    yield select("compare", "window", WINDOW_LABELS, window, WINDOW_LABELS)
    others = {size: f"{size} files" for size in sizes}
    own = {query.size: f"{query.size} files, as here"}
    yield select(OF_SIZE, "size", sizes, comparison.size or query.size, others | own)
    yield select(OF_OF, "ratio of", OF, comparison.of, OF_LABELS)


def of_profiles(
    query: MatrixQuery, comparison: Comparison, profiles: ProfileChoices
) -> Iterator[Select]:
    """Yield a select for each attribute of profiles in which results differ, or filters do."""
    own, others = by_parameter(query.filters), by_parameter(comparison.filters)
    for name in narrowing(query, profiles):
        here = own.get(name, [""])[0]
        chosen = "" if name in comparison.dropped else others.get(name, [here])[0]
        labels = {"": "any", here: f"{here or 'any'}, as here"}
        values = {here: 0, "": 0} | dict.fromkeys(profiles.values(name))
        yield select(f"{PREFIX}{name}", OF_PROFILES[name].title, values, chosen, labels)


def narrowing(query: MatrixQuery, profiles: ProfileChoices) -> list[str]:
    """Name the attributes of profiles that a select can say: by one value on either side."""
    own = by_parameter(query.filters)
    others = by_parameter(query.compare.filters) if query.compare else {}
    return [
        name
        for name in OF_PROFILES
        for texts in [[*own.get(name, ()), *others.get(name, ())]]
        if len(profiles.values(name)) > 1 or texts
        if len(own.get(name, ())) < 2 and len(others.get(name, ())) < 2
        if not any(text.startswith("!") for text in texts)
    ]


def offered(query: MatrixQuery, profiles: ProfileChoices) -> list[str]:
    """Name the parameters that the form has fields of."""
    named = {f"{PREFIX}{name}" for name in narrowing(query, profiles)}
    return [name for name in PARAMETERS if not name.startswith(PREFIX) or name in named] + [
        OF_SIZE,
        OF_OF,
    ]


def between(start: datetime | None, end: datetime | None) -> str:
    if not (start and end):
        return ""
    return BETWEEN.join(windows.format_bound(moment) for moment in (start, end))
