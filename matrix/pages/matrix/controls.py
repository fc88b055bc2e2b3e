"""The controls of the matrix page: links and GET forms that change its URL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matrix.answers.grid import Grid
from matrix.pages.compare import CompareControl, compare_control
from matrix.pages.controls import (
    Bounds,
    Choice,
    Select,
    bounds_of,
    filter_chips,
    kept,
    select,
    size_choices,
    window_choices,
)
from matrix.pages.matrix.address import MatrixAddress
from matrix.pages.matrix.filter_menus import (
    FilterMenu,
    any_site,
    filter_menu,
    known_values,
    presets,
)
from matrix.pages.matrix.legend import NAMES, marked
from matrix.pages.matrix.show_menu import grouping_words, groupings, shows
from matrix.plots.display import BOUNDS, ORDERS, SCALES, Display, number_text
from matrix.query.attributes import GROUPINGS
from matrix.statistics.cells.states import LOOKS
from matrix.store.profiles import ProfileChoices

# These windows stand in the menu of dates.
SHORT_WINDOWS = ("1h", "6h")
ORDER_LABELS = {"average": "highest mean first", "-average": "lowest mean first"}
SCALE_LABELS = {"middle": "middle 90 %", "whole": "all values"}


@dataclass(frozen=True)
class StateBox:
    """A check box of a state, with how many cells have it."""

    name: str
    label: str
    checked: bool
    count: int


@dataclass(frozen=True)
class Focus:
    """The form that shows only some cells; ``clear`` is the address without it, if it is on.

    ``max_age`` is how old the last success of a cell may be.
    """

    states: list[StateBox]
    max_age: str
    above: str
    below: str
    unit: str
    clear: str
    kept: list[tuple[str, str]]


@dataclass(frozen=True)
class Drawing:
    """The form that says in which order rows stand, and from where to where colours run."""

    order: Select
    scale: Select
    low: str
    high: str
    unit: str
    kept: list[tuple[str, str]]


@dataclass(frozen=True)
class Controls:
    """``selects`` are one form, with ``kept`` as its hidden fields; ``clear`` may be empty.

    ``shows`` are what cells may show, ``groupings`` what rows and columns may both be, and
    ``grouping`` says what they are. ``short_windows`` are those that are not among ``windows``.
    ``values`` are those that can be filtered by: name, title and values in use of each attribute.
    """

    sizes: list[Choice]
    windows: list[Choice]
    short_windows: list[Choice]
    bounds: Bounds
    chips: list[Choice]
    shows: list[Choice]
    groupings: list[Choice]
    grouping: str
    selects: list[Select]
    kept: list[tuple[str, str]]
    focus: Focus
    drawing: Drawing
    source: FilterMenu
    destination: FilterMenu
    either: FilterMenu
    values: list[tuple[str, str, list[str]]]
    presets: list[Choice]
    any_site: str
    transpose: Choice
    wall: Choice
    compare: CompareControl
    clear: str


def controls_for(page: MatrixAddress, grid: Grid, profiles: ProfileChoices) -> Controls:
    """Build the controls of a page that shows this grid. Two SQL queries."""
    query, display = page.query, page.display
    transposed = display.replace(transpose=not display.transpose)
    sizes, windows = size_choices(page), window_choices(page)
    whole = query.replace(filters=(), max_age="", compare=None)
    clear = page.asking(whole).displaying(display.unfocused()).url()
    return Controls(
        sizes=sizes,
        windows=[choice for choice in windows if choice.label not in SHORT_WINDOWS],
        short_windows=[choice for choice in windows if choice.label in SHORT_WINDOWS],
        bounds=bounds_of(page, grid.window),
        chips=chips(page, grid),
        shows=list(shows(page)),
        groupings=list(groupings(page)),
        grouping=grouping_words(query),
        selects=[
            select("rows", "rows", GROUPINGS, query.rows),
            select("columns", "columns", GROUPINGS, query.columns),
        ],
        kept=kept_with_unit(page, grid, ("rows", "columns")),
        focus=focus(page, grid),
        drawing=drawing(page, grid),
        source=filter_menu(page, "source"),
        destination=filter_menu(page, "destination"),
        either=filter_menu(page, "either"),
        values=known_values(grid, profiles),
        presets=list(presets(page)),
        any_site=any_site(page),
        transpose=Choice("transpose", page.displaying(transposed).url(), display.transpose),
        wall=wall(page),
        compare=compare_control(
            page,
            grid.window,
            profiles,
            [size.label for size in sizes],
            reversible=query.rows == query.columns,
        ),
        clear=clear if whole != query or display.focuses else "",
    )


def wall(page: MatrixAddress) -> Choice:
    on = page.display.wall
    url = page.displaying(page.display.replace(wall=not on)).url()
    return Choice("leave the wall" if on else "wall", url, on)


def chips(page: MatrixAddress, grid: Grid) -> list[Choice]:
    """Return what narrows the view, each with the address of the view without it."""
    query = page.query
    filters = filter_chips(page)
    if query.max_age:
        any_age = page.asking(query.replace(max_age="")).url()
        filters.append(Choice(query.age_words(), any_age, True))
    focused = [
        Choice(words, page.displaying(without).url(), True)
        for words, without in focus_parts(page.display, grid.unit)
    ]
    return filters + focused


def focus_parts(display: Display, unit: str) -> Iterable[tuple[str, Display]]:
    for state in display.only:
        others = tuple(other for other in display.only if other != state)
        yield f"only {NAMES.get(state, state)}", display.replace(only=others)
    if display.above is not None:
        yield f"only ≥ {number_text(display.above)} {unit}", display.replace(above=None)
    if display.below is not None:
        yield f"only ≤ {number_text(display.below)} {unit}", display.replace(below=None)


def focus(page: MatrixAddress, grid: Grid) -> Focus:
    display, counts = page.display, grid.states() | marked(grid)
    return Focus(
        states=[
            StateBox(look, NAMES.get(look, look), look in display.only, counts[look])
            for look in LOOKS
        ],
        max_age=page.query.max_age,
        above=number_text(display.above),
        below=number_text(display.below),
        unit=grid.unit,
        clear=page.displaying(display.unfocused()).url() if display.focuses else "",
        kept=kept_with_unit(page, grid, ("only", "above", "below", "max_age")),
    )


def drawing(page: MatrixAddress, grid: Grid) -> Drawing:
    display = page.display
    return Drawing(
        order=select("order", "order", ORDERS, display.order, ORDER_LABELS),
        scale=select("scale", "colour range", SCALES, display.scale, SCALE_LABELS),
        low=number_text(display.low),
        high=number_text(display.high),
        unit=grid.unit,
        kept=kept_with_unit(page, grid, ("order", "scale", "low", "high")),
    )


def kept_with_unit(page: MatrixAddress, grid: Grid, but: Iterable[str]) -> list[tuple[str, str]]:
    """Return hidden fields that also say what the numbers of the display are in, if any."""
    has_bounds = any(getattr(page.display, name) is not None for name in BOUNDS)
    return kept(page, but) + ([("unit", grid.unit)] if has_bounds else [])
