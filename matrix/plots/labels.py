"""Labels of rows and columns: cut in the middle, freed of an ending that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from matrix.plots.arrangement import Arrangement, Side
from matrix.statistics.axes import AxisGroup, EndpointInfo

LONGEST_ROW, LONGEST_COLUMN = 26, 24


@dataclass(frozen=True)
class Labels:
    """The labels of all lines, gaps included, and the titles that say the direction."""

    rows: list[str]
    columns: list[str]
    rows_title: str
    columns_title: str


def labels_for(arrangement: Arrangement) -> Labels:
    grid = arrangement.grid
    ending = shared_ending([*grid.sources, *grid.destinations])
    all_end = f", all {escape(ending.lstrip('_-.'))}" if ending else ""
    rows_title, columns_title = (
        f"{'from' if side.end == 'source' else 'to'} ({side.end} {side.grouping}{all_end})"
        for side in (arrangement.rows, arrangement.columns)
    )
    return Labels(
        rows=labels_of(arrangement.rows, ending, LONGEST_ROW),
        columns=labels_of(arrangement.columns, ending, LONGEST_COLUMN),
        rows_title=rows_title,
        columns_title=columns_title,
    )


def labels_of(side: Side, ending: str, longest: int) -> list[str]:
    """Return labels for Plotly, which reads some HTML: names must not become any."""
    labels = [f"<b>{escape(cut(side.gaps.get(at, ''), longest))}</b>" for at in range(side.length)]
    for at, group in zip(side.at.tolist(), side.groups, strict=True):
        labels[at] = escape(cut(group.name.removesuffix(ending), longest))
    return labels


def shared_ending(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> str:
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
