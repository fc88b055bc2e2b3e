"""Labels of rows and columns: cut in the middle, freed of an ending that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matrix.grid import Grid
from matrix.places import Group

LONGEST_ROW, LONGEST_COLUMN = 26, 24


@dataclass(frozen=True)
class Labels:
    sources: list[str]
    destinations: list[str]
    source_title: str
    destination_title: str


def labels_for(grid: Grid) -> Labels:
    ending = shared_ending([*grid.sources, *grid.destinations])
    all_end = f", all {ending.lstrip('_-.')}" if ending else ""
    return Labels(
        sources=shortened(grid.sources, ending, LONGEST_ROW),
        destinations=shortened(grid.destinations, ending, LONGEST_COLUMN),
        source_title=f"source {grid.query.rows}{all_end}",
        destination_title=f"destination {grid.query.columns}{all_end}",
    )


def shortened(groups: Sequence[Group], ending: str, longest: int) -> list[str]:
    """Return labels for Plotly, which reads some HTML: names must not become any."""
    return [escape(cut(group.name.removesuffix(ending), longest)) for group in groups]


def shared_ending(groups: Sequence[Group]) -> str:
    """Return the label with the sign before it, if every name ends so: `_DATADISK`."""
    labels = {group.label for group in groups}
    label = labels.pop() if len(labels) == 1 else None
    endings = {group.name[-len(label) - 1 :] for group in groups} if label else set()
    ending = endings.pop() if len(endings) == 1 else ""
    separated = ending[:1] in ("_", "-", ".") and ending[1:] == label
    longer = all(len(group.name) > len(ending) for group in groups)
    return ending if separated and longer else ""


def cut(name: str, longest: int) -> str:
    """Cut a name in the middle, where names differ least: UKI-NORTHGRID-MAN…DATADISK."""
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 3
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"
