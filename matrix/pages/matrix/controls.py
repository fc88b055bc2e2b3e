"""The controls of the matrix page, its legend and its answer: links that change its URL."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrix.answers.conditions import words as condition_words
from matrix.answers.events.reading import NOW, EventsQuestion
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import OTHERS, Headline, page_of
from matrix.pages.parts import controls, matrix_address
from matrix.pages.parts.controls import Choice
from matrix.pages.parts.incidents import IncidentLine
from matrix.pages.parts.matrix_address import MatrixAddress
from matrix.plots.display import BOUNDS, ORDERS, SCALES, looks_of, number_text
from matrix.plots.matrix import scale_of
from matrix.plots.palettes import PALETTE_LABELS, PALETTES, palette_for
from matrix.plots.scales import factor_text
from matrix.query.addresses import address
from matrix.query.attributes import ENDS, GROUPINGS
from matrix.query.catalogue import STATISTICS
from matrix.query.comparison import OF
from matrix.query.filters import on_links
from matrix.query.matrix_query import MatrixQuery
from matrix.query.url_text import encoded
from matrix.statistics.cells.cell_targets import AGAINST_WORDS
from matrix.statistics.cells.standing import LEVEL_WORDS, LEVELS
from matrix.statistics.cells.states import PARTLY_WORDS, STATE_WORDS, STATES
from matrix.statistics.compare.two_samples import FALSE_SHARE, FEWEST_TESTS
from matrix.store.profiles import ProfileChoices

# A state, or what is marked on a cell beside its state.
LEGEND_WORDS = (
    STATE_WORDS
    | LEVEL_WORDS
    | {"partly": PARTLY_WORDS, "failing": f"{STATE_WORDS['failing']}; the cell shows for how long"}
)
NAMES = {
    "partly": "partly failing",
    "usual": "as usual",
    "unknown": "with too few tests",
    "below": "below target",
    "near": "near target",
    "above": "on target",
}
# The counts next to the answer, the worst first; where cells pool links, OF_LINKS are counts of
# links and the others of cells.
OF_LINKS = ("failing", "silent", "slower", "faster", "usual")
COUNTED = (*OF_LINKS, "partly", "stale", "untested", "down", "failed", "unknown")
COUNTED_CHANGES = ("failing", "perhaps", "unchanged", "too_few")
COUNT_NAMES = NAMES | {
    "silent": "not tested",
    "down": "in downtime",
    "failed": "without a successful test",
    "perhaps": "possibly different, not significant",
    "unchanged": "without a significant difference",
    "too_few": "with too few results",
}


@dataclass(frozen=True)
class LegendEntry:
    """A state, or a mark on cells; ``url`` is empty where nothing can be shown."""

    state: str
    name: str
    words: str
    count: int
    url: str
    chosen: bool


def legend(page: MatrixAddress, grid: Grid) -> Iterator[LegendEntry]:
    """Say what each state and mark that occurs looks like, and where only its cells are shown."""
    looks, names, counts = LEGEND_WORDS, NAMES, grid.states() | marked(grid)
    other = grid.query.other_words()
    if grid.comparison:
        beyond = f"(chance explains at most {FALSE_SHARE:.0%} of the marked cells)"
        looks = {
            "measured": STATE_WORDS["measured"],
            "slower": f"significantly slower than {other} {beyond}",
            "faster": f"significantly faster than {other} {beyond}",
            "too_few": f"too few: fewer than {FEWEST_TESTS} successful tests on one side of the "
            "comparison",
        } | {name: words for name, words in LEGEND_WORDS.items() if name in STATES[1:]}
    if grid.cells.targets:
        # These replace the marks for slower and faster than usual.
        others = {name: words for name, words in looks.items() if name not in LEVEL_WORDS}
        looks = {"measured": "", **AGAINST_WORDS, **others}
    if against := grid.query.statistic.against:
        words = f"measured: brown is slower than {other or against}, teal is faster"
        looks = {**looks, "measured": words}
        # From where to where colours run: a quarter to four times.
        reach = 10 ** scale_of(grid, page.display).high
        run = f"{factor_text(1 / reach)} to {factor_text(reach)}"
        names = names | {"measured": f"{run} of {against}"}
    only = page.display.only
    for name, words in looks.items():
        if counts[name] or name in only:
            label, url = names.get(name, name.replace("_", " ")), toggling(page, name)
            yield LegendEntry(name, label, words, counts[name], url, name in only)


def marked(grid: Grid) -> dict[str, int]:
    """Count the cells by what they are beside their state, and those with a failing link."""
    names = ("failing", *LEVELS, *AGAINST_WORDS, "partly")
    looks = {name: int(np.count_nonzero(grid.of_look(name))) for name in names}
    return looks | {"too_few": int(np.count_nonzero(grid.too_few))}


def toggling(page: MatrixAddress, name: str) -> str:
    """Return the address with the focus on a state put on, or off if it is on."""
    looks = looks_of(page.query.stat)
    if name not in looks:
        return ""
    chosen = {*page.display.only} ^ {name}
    only = tuple(other for other in looks if other in chosen)
    toggled = page.displaying(page.display.replace(only=only))
    return (toggled.telling_levels() if name in only else toggled).url()


@dataclass(frozen=True)
class AnswerPart:
    """A part of the answer, coloured as a ``look``; ``leaves`` says that its page is another.

    ``incident`` is that of its condition, if it is one of the worst.
    """

    look: str
    label: str
    detail: str
    stop: str
    url: str
    title: str
    leaves: bool
    chosen: bool
    incident: IncidentLine | None = None


def answer(
    page: MatrixAddress, headline: Headline, incidents: Sequence[IncidentLine]
) -> Iterator[AnswerPart]:
    """Yield the parts of the answer: conditions lead to their pages, counts to their cells."""
    by_condition = {line.incident.cause_id: line for line in incidents}
    for part in headline.parts():
        condition, incident, chosen = part.condition, None, page.display.only == (part.look,)
        title = f"Show {'all cells' if chosen else 'only these cells'}"
        if condition:
            url, title = page_of(condition, page.query), condition_words.title(condition)
            incident = by_condition.get(condition.pk)
        elif part.look == OTHERS:
            url, title = events_now(page.query), "Show all current events"
        else:
            url = focusing(page, part.look)
        leaves = part.look == OTHERS or condition is not None
        yield AnswerPart(*part[:3], part.stop, url, title, leaves, chosen, incident)


def events_now(query: MatrixQuery) -> str:
    """Return the page of the confirmed conditions that are open at the end of a matrix."""
    times = {name: getattr(query, name) for name in ("window", "start", "end")}
    of_links = MatrixQuery(**times, filters=tuple(on_links(query.filters)))
    question = EventsQuestion(of_links, query.size, now=NOW[0])
    return f"{address('events')}?{encoded(question.to_params())}"


def counts(page: MatrixAddress, headline: Headline) -> Iterator[LegendEntry]:
    """Yield the counts next to the answer: how many links are how."""
    tally = headline.tally
    numbers = vars(tally) | (vars(headline.changes) if headline.changes else {})
    for name in COUNTED_CHANGES if headline.changes else COUNTED:
        number, label = numbers[name], COUNT_NAMES.get(name, name)
        if number and not (tally.pooled and name == "unknown"):
            if tally.pooled and name not in OF_LINKS:
                label = f"{'cell' if number == 1 else 'cells'} {label}"
            chosen = page.display.only == (name,)
            yield LegendEntry(name, label, "", number, focusing(page, name), chosen)


def focusing(page: MatrixAddress, name: str) -> str:
    """Return the address of only the cells of a state, or of all if it shows only these."""
    if name not in looks_of(page.query.stat):
        return ""
    return page.showing(() if page.display.only == (name,) else (name,)).url()


def palettes(page: MatrixAddress) -> Iterator[tuple[Choice, str]]:
    """Yield the palettes to choose from, each with its ramp; around 1 there is the one."""
    statistic, display = page.query.statistic, page.display
    for name in PALETTES if statistic.scale != "diverging" else ():
        label, is_chosen = PALETTE_LABELS.get(name, name), name == display.palette_name
        url = page.displaying(display.replace(palette=name)).url()
        yield Choice(label, url, is_chosen), ", ".join(palette_for(name, statistic))


# These windows stand in the menu of dates.
SHORT_WINDOWS = ("1h", "6h")
ORDER_LABELS = {"average": "highest mean first", "-average": "lowest mean first"}
SCALE_LABELS = {"middle": "middle 90 %", "whole": "all values"}


def controls_for(page: MatrixAddress, grid: Grid, profiles: ProfileChoices) -> dict[str, Any]:
    """Return the controls of a page that shows this grid. Two SQL queries.

    ``shows`` are what cells may show, ``groupings`` what rows and columns may both be, and
    ``grouping`` says what they are. ``focus`` is the form that shows only some cells, ``drawing``
    the form of their order and colours. ``clear`` takes all away that narrows; it may be empty.
    """
    query, display = page.query, page.display
    sizes, windows = controls.size_choices(page), controls.window_choices(page)
    square = query.rows == query.columns
    whole = query.replace(filters=(), max_age="", compare=None)
    unfocused = page.displaying(display.unfocused())
    counts = grid.states() | marked(grid)
    transposed = display.replace(transpose=not display.transpose)
    return {
        "sizes": sizes,
        "windows": [choice for choice in windows if choice.label not in SHORT_WINDOWS],
        "short_windows": [choice for choice in windows if choice.label in SHORT_WINDOWS],
        "bounds": controls.bounds_of(page, grid.window),
        "chips": list(chips(page, grid.unit)),
        "shows": list(shows(page)),
        "groupings": [
            Choice(name, page.grouping(name, name).url(), query.rows == query.columns == name)
            for name in GROUPINGS
        ],
        "grouping": query.rows if square else f"{query.rows} × {query.columns}",
        "selects": [
            controls.select("rows", "rows", GROUPINGS, query.rows),
            controls.select("columns", "columns", GROUPINGS, query.columns),
        ],
        "kept": kept_with_unit(page, grid, ("rows", "columns")),
        "focus": {
            "states": [
                (look, NAMES.get(look, look), look in display.only, counts[look])
                for look in looks_of(query.stat)
            ],
            "max_age": query.max_age,
            "above": number_text(display.above),
            "below": number_text(display.below),
            "clear": unfocused.url() if display.focuses else "",
            "kept": kept_with_unit(page, grid, ("only", "above", "below", "max_age")),
        },
        "drawing": {
            "order": controls.select("order", "order", ORDERS, display.order, ORDER_LABELS),
            "scale": controls.select("scale", "colour range", SCALES, display.scale, SCALE_LABELS),
            "low": number_text(display.low),
            "high": number_text(display.high),
            "kept": kept_with_unit(page, grid, ("order", "scale", "low", "high")),
        },
        "unit": grid.unit,
        **{end: matrix_address.filter_menu(page, end) for end in (*ENDS, "either")},
        "values": matrix_address.known_values(grid, profiles),
        "presets": list(matrix_address.presets(page)),
        "any_site": matrix_address.any_site(page),
        "transpose": page.displaying(transposed).url(),
        "compare": controls.compare_control(
            page, grid.window, profiles, [size.label for size in sizes], reversible=square
        ),
        "clear": unfocused.asking(whole).url() if whole != query or display.focuses else "",
    }


def chips(page: MatrixAddress, unit: str) -> Iterator[Choice]:
    """Yield what narrows the view, each with the address of the view without it."""
    yield from controls.filter_chips(page)
    query, display = page.query, page.display
    if query.max_age:
        yield Choice(query.age_words(), page.asking(query.replace(max_age="")).url(), True)
    parts: list[tuple[str, dict[str, Any]]] = [
        (NAMES.get(state, state), {"only": tuple(each for each in display.only if each != state)})
        for state in display.only
    ]
    if display.above is not None:
        parts.append((f"≥ {number_text(display.above)} {unit}", {"above": None}))
    if display.below is not None:
        parts.append((f"≤ {number_text(display.below)} {unit}", {"below": None}))
    for words, without in parts:
        yield Choice(f"only {words}", page.displaying(display.replace(**without)).url(), True)


def shows(page: MatrixAddress) -> Iterator[Choice]:
    """Yield what cells may show: a statistic or, while comparing, a ratio of which."""
    query, display = page.query, page.display
    if query.compare:
        for name in OF:
            compare = dataclasses.replace(query.compare, of=name)
            url = page.asking(query.replace(compare=compare)).url()
            yield Choice(f"ratio of {controls.OF_LABELS[name]}", url, name == query.compare.of)
        return
    for name, statistic in STATISTICS.items():
        # Bounds in another unit are dropped.
        same = statistic.unit == query.statistic.unit
        drawn = display if same else display.replace(**dict.fromkeys(BOUNDS))
        drawn = drawn.for_statistic(name)
        url = page.asking(query.replace(stat=name)).displaying(drawn).url()
        yield Choice(statistic.label, url, name == query.stat, statistic.purpose)


def kept_with_unit(page: MatrixAddress, grid: Grid, but: Iterable[str]) -> list[tuple[str, str]]:
    """Return hidden fields that also say what the numbers of the display are in, if any."""
    has_bounds = any(getattr(page.display, name) is not None for name in BOUNDS)
    return controls.kept(page, but) + ([("unit", grid.unit)] if has_bounds else [])
