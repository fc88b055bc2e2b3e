"""The links of a criteria set as a small matrix: of endpoints, or of sites or clouds of them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matrix.answers.commissioning.standing import STATES, LinkStanding, SetStanding
from matrix.query.attributes import GROUPINGS
from matrix.statistics.cells.axes import EndpointInfo
from sonar.notation.units import format_count

# A table of more cells is made by the next of these.
MOST_CELLS = 2500
BY = GROUPINGS[:3]
MARKS = {
    "passed": "✓",
    "below now": "▼",
    "nearly": "▲",
    "on the way": "",
    "lost": "✕",
    "no data": "·",
}


class Cell(NamedTuple):
    """The links from a row to a column; ``text`` and ``words`` say how they stand."""

    state: str
    text: str
    words: str
    links: Sequence[LinkStanding]


@dataclass(frozen=True)
class Overview:
    """Names of rows and columns by what they are made of, and the cells of each row."""

    by: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]


def of(standing: SetStanding) -> Overview:
    by = next((name for name in BY if _cells(standing, name) <= MOST_CELLS), BY[-1])
    links: dict[tuple[str, str], list[LinkStanding]] = defaultdict(list)
    for link in standing.links:
        links[link.source.group_name(by), link.destination.group_name(by)].append(link)
    columns = _names(standing.destinations, by)
    return Overview(
        by,
        columns,
        [
            (row, [_cell(links[row, column]) for column in columns])
            for row in _names(standing.sources, by)
        ],
    )


def _names(places: Sequence[EndpointInfo], by: str) -> list[str]:
    return list(dict.fromkeys(sorted(place.group_name(by) for place in places)))


def _cells(standing: SetStanding, by: str) -> int:
    return len(_names(standing.sources, by)) * len(_names(standing.destinations, by))


def _cell(links: Sequence[LinkStanding]) -> Cell | None:
    """Describe links; None for an endpoint to itself."""
    if not links:
        return None
    counts = Counter(link.state for link in links)
    if len(links) == 1:
        (link,) = links
        return Cell(link.state, _text(link), link.words, links)
    state = _state_of(counts, len(links))
    passed, total = format_count(counts["passed"]), format_count(len(links))
    said = ", ".join(f"{format_count(counts[name])} {name}" for name in STATES if counts[name])
    return Cell(
        state, f"{MARKS[state]} {passed} of {total}".strip(), f"{total} links: {said}", links
    )


def _state_of(counts: Counter[str], total: int) -> str:
    """Return what shows of several links: all of them, else any that lost it or is below now."""
    for state in ("passed", "no data"):
        if counts[state] == total:
            return state
    return next((state for state in ("lost", "below now") if counts[state]), "on the way")


def _text(link: LinkStanding) -> str:
    if link.state in ("below now", "nearly", "on the way"):
        return f"{MARKS[link.state]} {link.percent} %".strip()
    return MARKS[link.state]
