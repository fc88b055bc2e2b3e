"""Labels of rows and columns: freed of what many names share, which is said once, and cut in the
middle. Full names are on the card, in the table and in the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from matrix.answers.short_names import LONGEST_LISTED, cut, shared_ending, shortened
from matrix.plots.arrangement import Arrangement
from matrix.plots.sides import Side

LONGEST_ROW, LONGEST_COLUMN = 26, 24
# How each axis is called, by its end; of strips each own line says its direction.
TITLES = {
    "source": "from (source {})",
    "destination": "to (destination {})",
    "own": "direction ({})",
    "partner": "partner ({})",
}


@dataclass(frozen=True)
class Labels:
    """The labels of all lines, gaps included, and the titles that say the direction.

    ``left_out`` are the parts that names are written without.
    """

    rows: list[str]
    columns: list[str]
    rows_title: str
    columns_title: str
    left_out: tuple[str, ...]


def labels_for(arrangement: Arrangement) -> Labels:
    grid = arrangement.grid
    groups = [*grid.sources, *grid.destinations]
    ending = shared_ending(groups)
    texts, left_out = shortened(groups, ending)
    rows_title, columns_title = (
        TITLES[side.end].format(side.grouping) for side in (arrangement.rows, arrangement.columns)
    )
    return Labels(
        rows=labels_of(arrangement.rows, texts, LONGEST_ROW),
        columns=labels_of(arrangement.columns, texts, LONGEST_COLUMN),
        rows_title=rows_title,
        columns_title=columns_title,
        left_out=tuple(filter(None, [ending, *left_out])),
    )


def labels_of(side: Side, texts: Mapping[str, str], longest: int) -> list[str]:
    """Return labels for Plotly, which reads some HTML: names must not become any.

    The name of a cloud or tier stands, in bold, before the first of its rows, or behind the first
    of its columns, which is above it.
    """
    labels = [""] * side.length
    for number, (at, group) in enumerate(zip(side.at.tolist(), side.groups, strict=True)):
        direction = f"{side.directions[number]} " if side.directions else ""
        label = direction + escape(cut(texts[group.name], longest))
        if title := escape(cut(side.titles.get(number, ""), LONGEST_LISTED)):
            parts = [f"<b>{title}</b>", label]
            label = " ".join(parts if longest == LONGEST_ROW else parts[::-1])
        labels[at] = label
    return labels
