"""What the page offers to change about its query; each is a link or a field of a GET form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matrix.forms import GROUPINGS, STATS
from matrix.query import MatrixQuery
from sonar.windows import PRESET_WORDS, PRESETS

STAT_LABELS = {
    "p05": "5th percentile",
    "p95": "95th percentile",
    "std": "standard deviation",
    "min": "lowest",
    "max": "highest",
    "success": "success (%)",
    "count": "number of tests",
    "last": "age of the last",
}


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
class Controls:
    """All controls of one query. ``kept`` are the hidden fields of a form, less its own."""

    sizes: list[Choice]
    windows: list[Choice]
    selects: list[Select]
    chips: list[Choice]
    start: str
    end: str
    kept_by_selects: list[tuple[str, str]]
    kept_by_bounds: list[tuple[str, str]]


def controls_for(query: MatrixQuery, sizes: Iterable[str], start: str, end: str) -> Controls:
    """Build the controls; ``start`` and ``end`` are what the custom window begins with."""
    return Controls(
        sizes=[Choice(size, query.replace(size=size).url(), size == query.size) for size in sizes],
        windows=[
            Choice(name, query.replace(window=name).url(), name == query.window, PRESET_WORDS[name])
            for name in PRESETS
        ],
        selects=[
            select("stat", "statistic", STATS, query.stat),
            select("rows", "rows", GROUPINGS, query.rows),
            select("columns", "columns", GROUPINGS, query.columns),
        ],
        chips=[Choice(one.words(), query.without(one).url(), True) for one in query.filters],
        start=start,
        end=end,
        kept_by_selects=kept(query, ("stat", "rows", "columns")),
        kept_by_bounds=kept(query, ("window", "from", "to")),
    )


def select(name: str, label: str, values: Iterable[str], chosen: str) -> Select:
    options = [(value, STAT_LABELS.get(value, value), value == chosen) for value in values]
    return Select(name, label, options)


def kept(query: MatrixQuery, but: Iterable[str]) -> list[tuple[str, str]]:
    """Return the parameters that a form passes on beside its own fields."""
    params = query.to_params()
    return [(name, text) for name in params if name not in but for text in params[name]]
