"""What a page offers to change about its question; each is a link or a field of a GET form."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matrix.pages.base import Page, QueryPage
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
from matrix.query.filters import by_parameter
from matrix.query.matrix_query import MatrixQuery
from matrix.store.profiles import ProfileChoices
from sonar.models import SizeClass
from sonar.notation.units import format_bytes
from sonar.notation.windows import PRESET_WORDS, PRESETS, Window, format_bound

OF_LABELS = {"median": "medians", "mean": "means"}
WINDOW_LABELS = {
    "": "the same time range",
    PREVIOUS: "the previous time range",
    WEEK: "a week earlier",
    MONTH: f"the {A_MONTH.days} days before",
}
# A week before a week is the window before, as are 30 days before 30 days, and one before a month
# is mostly the same: they are offered for windows that are shorter.
OFFERED_BELOW = {WEEK: A_WEEK, MONTH: A_MONTH}


@dataclass(frozen=True)
class Choice:
    label: str
    url: str
    chosen: bool
    title: str = ""


@dataclass(frozen=True)
class Select:
    """A field; ``options`` have value, label, and whether it is chosen."""

    name: str
    label: str
    options: list[tuple[str, str, bool]]


def question_controls(page: QueryPage, window: Window) -> dict[str, Any]:
    """Return what every page with a question offers to change about it. One SQL query."""
    return {
        "query": page.query,
        "sizes": size_choices(page),
        "windows": window_choices(page),
        "bounds": bounds_of(page, window),
        "chips": filter_chips(page),
    }


def size_choices(page: QueryPage, sizes: Iterable[str] | None = None) -> list[Choice]:
    """Return the switch of these size classes or, by one SQL query, of all with their sizes."""
    titles = (
        dict.fromkeys(sizes, "")
        if sizes is not None
        else {
            size: f"test files of {format_bytes(test_bytes)}"
            for size, test_bytes in SizeClass.test_sizes().items()
        }
    )
    return [
        Choice(size, page.asking(resized(page.query, size)).url(), size == page.query.size, title)
        for size, title in titles.items()
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
    chips = [(condition.words(), query.without(condition)) for condition in query.filters]
    if query.compare:
        chips.append((f"compared with {query.other_words()}", query.replace(compare=None)))
    return [Choice(words, page.asking(without).url(), True) for words, without in chips]


def bounds_of(page: QueryPage, window: Window) -> dict[str, Any]:
    """Return the form of a custom window: what its fields begin with, and what it carries along.

    Fields of dates and times would have 12 hours in some languages of browsers: these are texts.
    """
    return {
        "start": format_bound(window.start),
        "end": format_bound(window.end),
        "open": page.query.start is not None,
        "kept": kept(page, ("window", "from", "to")),
    }


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


def compare_control(
    page: QueryPage,
    window: Window,
    profiles: ProfileChoices,
    sizes: Iterable[str],
    *,
    reversible: bool = True,
) -> dict[str, Any]:
    """Return the menu `compare with` of a page that shows this window; ``words`` say with what.

    Its links take one click; its form, which needs no script, has the parameters of
    matrix.query.comparison as they are: ``selects``, and a box for two times, with those chosen
    (``between``) and others (``example``). ``profiles`` and ``sizes`` are the profiles and the
    size classes there are. ``reversible`` says whether the opposite direction is a question that
    the page can ask; ``reverse`` is None if there is no box for it. ``clear`` is the page compared
    with nothing.
    """
    query, comparison, sizes = page.query, page.query.compare or Comparison(), list(sizes)
    reversible = reversible or comparison.reverse
    narrowing = narrowing_attributes(query, profiles)
    fields = {name for name in PARAMETERS if not name.startswith(PREFIX)}
    fields |= {OF_SIZE, OF_OF, *(f"{PREFIX}{name}" for name in narrowing)}
    window_name = "" if comparison.window == CUSTOM else comparison.window
    labels = {size: f"{size} files" for size in sizes}
    labels[query.size] = f"{query.size} files, as in this view"
    return {
        "words": query.other_words(),
        "choices": list(compare_choices(page, window, sizes, reversible=reversible)),
        "selects": [
            # Two times stand in a box of their own.
            select("compare", "window", WINDOW_LABELS, window_name, WINDOW_LABELS),
            select(OF_SIZE, "size", sizes, comparison.size or query.size, labels),
            select(OF_OF, "ratio of", OF, comparison.of, OF_LABELS),
            *profile_selects(query, comparison, narrowing, profiles),
        ],
        "between": between(comparison.start, comparison.end),
        "example": between(window.start - A_WEEK, window.end - A_WEEK),
        "reverse": comparison.reverse if reversible else None,
        "kept": kept(page, fields),
        "clear": page.asking(query.replace(compare=None)).url() if query.compare else "",
    }


def compare_choices(
    page: QueryPage, window: Window, sizes: list[str], *, reversible: bool
) -> Iterator[Choice]:
    """Yield what takes one click: put in, or taken out again if it is chosen."""
    query, comparison = page.query, page.query.compare or Comparison()

    def choice(words: str, *, chosen: bool, **changed: Any) -> Choice:  # noqa: ANN401
        compare = dataclasses.replace(comparison, **changed)
        asked_for = query.replace(compare=compare if compare.differs else None)
        return Choice(words, page.asking(asked_for).url(), chosen)

    length = window.end - window.start
    for name in WINDOWS:
        chosen = comparison.window == name
        is_shorter = length < OFFERED_BELOW.get(name, length + A_WEEK)
        if chosen or (is_shorter and Comparison(name).is_possible(window)):
            words = Comparison(name).words(query.window, query.bounds)
            changed = "" if chosen else name
            yield choice(words, chosen=chosen, window=changed, start=None, end=None)
    if reversible:
        words = Comparison(reverse=True).words("", None)
        yield choice(words, chosen=comparison.reverse, reverse=not comparison.reverse)
    for size in sizes:
        if size != query.size:
            chosen = comparison.size == size
            yield choice(f"{size} files", chosen=chosen, size="" if chosen else size)


def own_words(query: MatrixQuery) -> str:
    """Say this side of a comparison by what differs on the other."""
    comparison = query.compare or Comparison()
    parts = [
        f"{query.size} files" if comparison.size else "",
        query.window_words() if comparison.window else "",
        "this direction" if comparison.reverse else "",
    ]
    return ", ".join(filter(None, parts)) or "as in this view"


def profile_selects(
    query: MatrixQuery, comparison: Comparison, names: Iterable[str], profiles: ProfileChoices
) -> Iterator[Select]:
    """Yield a select for each attribute of profiles in which results differ, or filters do."""
    own, others = by_parameter(query.filters), by_parameter(comparison.filters)
    for name in names:
        attribute = OF_PROFILES[name]
        default, every = attribute.default, attribute.every
        here = own.get(name, [default])[0]
        chosen = default if name in comparison.dropped else others.get(name, [here])[0]
        labels = {every: "any"}
        labels[here] = f"{labels.get(here, here)}, as in this view"
        values = {here: 0, every: 0} | dict.fromkeys(profiles.values(name))
        yield select(f"{PREFIX}{name}", attribute.title, values, chosen, labels)


def narrowing_attributes(query: MatrixQuery, profiles: ProfileChoices) -> list[str]:
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


def between(start: datetime | None, end: datetime | None) -> str:
    return BETWEEN.join(map(format_bound, (start, end))) if start and end else ""
