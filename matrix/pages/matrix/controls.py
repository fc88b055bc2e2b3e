"""The controls of the matrix page: links and GET forms that change its URL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matrix.answers.grid import Grid
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
from matrix.plots.display import BOUNDS, ORDERS, STATES_TO_SEE, Display, number_text
from matrix.plots.palettes import PALETTE_LABELS, PALETTES
from matrix.query.attributes import BY_NAME, GROUPINGS, OF_ENDPOINTS, OF_PROFILES, PREPOSITIONS
from matrix.query.catalogue import STATISTICS
from matrix.store import registry
from matrix.store.profiles import ProfileChoices
from sonar.models import Mesh

STATISTIC_LABELS = {name: statistic.label for name, statistic in STATISTICS.items()}
ORDER_LABELS = {"average": "highest mean", "-average": "lowest mean"}
END_LABELS = {end or "either": words for end, words in PREPOSITIONS.items()}


@dataclass(frozen=True)
class StateBox:
    """A check box of a state, with how many cells have it."""

    name: str
    label: str
    checked: bool
    count: int


@dataclass(frozen=True)
class Focus:
    """The form that shows only some cells; ``clear`` is the address without it, if it is on."""

    states: list[StateBox]
    above: str
    below: str
    unit: str
    clear: str
    kept: list[tuple[str, str]]


@dataclass(frozen=True)
class Colours:
    palette: Select
    low: str
    high: str
    unit: str
    kept: list[tuple[str, str]]


@dataclass(frozen=True)
class AddFilter:
    """The form that adds a filter; ``values`` has those in use by attribute."""

    ends: Select
    attributes: Select
    values: list[tuple[str, list[str]]]
    kept: list[tuple[str, str]]


@dataclass(frozen=True)
class Controls:
    """``selects`` are one form, with ``kept`` as its hidden fields; ``clear`` may be empty."""

    sizes: list[Choice]
    windows: list[Choice]
    bounds: Bounds
    chips: list[Choice]
    selects: list[Select]
    kept: list[tuple[str, str]]
    focus: Focus
    colours: Colours
    filters: AddFilter
    transpose: Choice
    wall: Choice
    clear: str


def controls_for(page: MatrixAddress, grid: Grid, profiles: ProfileChoices) -> Controls:
    """Build the controls of a page that shows this grid. Two SQL queries."""
    query, display = page.query, page.display
    transposed = display.replace(transpose=not display.transpose)
    clear = page.asking(query.replace(filters=(), max_age="")).displaying(display.unfocused()).url()
    return Controls(
        sizes=size_choices(page),
        windows=window_choices(page),
        bounds=bounds_of(page, grid.window),
        chips=chips(page, grid),
        selects=[
            select("stat", "statistic", STATISTICS, query.stat, STATISTIC_LABELS),
            select("rows", "rows", GROUPINGS, query.rows),
            select("columns", "columns", GROUPINGS, query.columns),
            select("order", "order", ORDERS, display.order, ORDER_LABELS),
        ],
        kept=kept_with_unit(page, grid, ("stat", "rows", "columns", "order")),
        focus=focus(page, grid),
        colours=colours(page, grid),
        filters=add_filter(page, grid, profiles),
        transpose=Choice("transpose", page.displaying(transposed).url(), display.transpose),
        wall=wall(page),
        clear=clear if query.filters or query.max_age or display.focuses else "",
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
        yield f"show {state}", display.replace(only=others)
    if display.above is not None:
        yield f"show ≥ {number_text(display.above)} {unit}", display.replace(above=None)
    if display.below is not None:
        yield f"show ≤ {number_text(display.below)} {unit}", display.replace(below=None)


def focus(page: MatrixAddress, grid: Grid) -> Focus:
    display, counts = page.display, grid.states()
    return Focus(
        states=[
            StateBox(state, state, state in display.only, counts[state]) for state in STATES_TO_SEE
        ],
        above=number_text(display.above),
        below=number_text(display.below),
        unit=grid.unit,
        clear=page.displaying(display.unfocused()).url() if display.focuses else "",
        kept=kept_with_unit(page, grid, ("only", "above", "below")),
    )


def colours(page: MatrixAddress, grid: Grid) -> Colours:
    display = page.display
    return Colours(
        palette=select("palette", "palette", PALETTES, display.palette, PALETTE_LABELS),
        low=number_text(display.low),
        high=number_text(display.high),
        unit=grid.unit,
        kept=kept_with_unit(page, grid, ("palette", "low", "high")),
    )


def kept_with_unit(page: MatrixAddress, grid: Grid, but: Iterable[str]) -> list[tuple[str, str]]:
    """Return hidden fields that also say what the numbers of the display are in, if any."""
    has_bounds = any(getattr(page.display, name) is not None for name in BOUNDS)
    return kept(page, but) + ([("unit", grid.unit)] if has_bounds else [])


def add_filter(page: MatrixAddress, grid: Grid, profiles: ProfileChoices) -> AddFilter:
    labels = {name: attribute.title for name, attribute in BY_NAME.items()}
    return AddFilter(
        ends=select("filter_end", "end", END_LABELS, "either", END_LABELS),
        attributes=select("filter_on", "of", labels, next(iter(labels)), labels),
        values=known_values(grid, profiles),
        kept=kept(page, ()),
    )


def known_values(grid: Grid, profiles: ProfileChoices) -> list[tuple[str, list[str]]]:
    """Return the values in use of what can be filtered by. One SQL query."""
    places = registry.read_places(grid.version)
    meshes = list(Mesh.objects.values_list("name", flat=True))
    of_endpoints = {
        name: sorted(values - {""}, key=str.casefold)
        for name in OF_ENDPOINTS
        for values in [{text for place in places for text in place.texts(name)}]
    }
    of_profiles = {name: profiles.values(name) for name in OF_PROFILES} | {"mesh": meshes}
    return [*of_endpoints.items(), *of_profiles.items()]
