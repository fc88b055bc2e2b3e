"""The links of a criteria set as a small matrix: of endpoints, or of sites or clouds of them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matrix.answers.commissioning.standing import STATES, LinkStanding, SetStanding, label
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
    for by in BY:
        rows, columns = (_names(ends, by) for ends in (standing.sources, standing.destinations))
        if len(rows) * len(columns) <= MOST_CELLS:
            break
    links: dict[tuple[str, str], list[LinkStanding]] = defaultdict(list)
    for link in standing.links:
        links[link.source.group_name(by), link.destination.group_name(by)].append(link)
    cells = [(row, [_cell(links[row, column]) for column in columns]) for row in rows]
    return Overview(by, columns, cells)


def _names(places: Sequence[EndpointInfo], by: str) -> list[str]:
    return list(dict.fromkeys(sorted(place.group_name(by) for place in places)))


def _cell(links: Sequence[LinkStanding]) -> Cell | None:
    """Describe links; None for an endpoint to itself."""
    if not links:
        return None
    counts = Counter(link.state for link in links)
    if len(links) == 1:
        (link,) = links
        has_percent = link.state in ("below now", "nearly", "on the way")
        text = f"{MARKS[link.state]} {f'{link.percent} %' if has_percent else ''}".strip()
        return Cell(link.state, text, link.words, links)
    # All of them in one state, else that of any that lost it or is below now.
    alike = [name for name in ("passed", "no data") if counts[name] == len(links)]
    state = next(iter([*alike, *filter(counts.get, ("lost", "below now"))]), "on the way")
    passed, total = format_count(counts["passed"]), format_count(len(links))
    said = ", ".join(
        f"{format_count(counts[name])} {label(name)}" for name in STATES if counts[name]
    )
    return Cell(
        state, f"{MARKS[state]} {passed} of {total}".strip(), f"{total} links: {said}", links
    )
