"""Labels of rows and columns: freed of what many names share, which is said once, and cut in the
middle. Full names are on the card, in the table and in the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from matrix.answers.grid import Grid
from matrix.plots.arrangement import Arrangement
from matrix.plots.sides import Side
from matrix.statistics.axes import AxisGroup, EndpointInfo

LONGEST_ROW, LONGEST_COLUMN, LONGEST_LISTED = 26, 24, 16
# How each axis is called, by its end; of strips each own line says its direction.
TITLES = {
    "source": "from (source {})",
    "destination": "to (destination {})",
    "own": "direction ({})",
    "partner": "partner ({})",
}
# What stands between hyphens in so many names says nothing of any of them: UKI, LCG2.
FEWEST_SHARING = 3


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


def shortened(
    groups: Sequence[AxisGroup] | Sequence[EndpointInfo], ending: str
) -> tuple[dict[str, str], list[str]]:
    """Return what is written of each name, and the parts that are left out of some.

    A name keeps its parts where what would be left of it is no word, or that of another name.
    """
    split = {group.name: split_name(group) for group in groups}
    counts = Counter(part for base, _ in split.values() for part in set(base.split("-")))
    shorter = {
        name: "-".join(part for part in base.split("-") if counts[part] < FEWEST_SHARING)
        for name, (base, _) in split.items()
    }
    tails = {name: "" if ending else tail for name, (_, tail) in split.items()}
    uses = Counter(shorter[name] + tails[name] for name in split)
    texts, left_out = {}, Counter[str]()
    for name, (base, _) in split.items():
        text = shorter[name] + tails[name]
        is_word = any(letter.isalpha() for letter in shorter[name]) and uses[text] == 1
        texts[name] = text if is_word else base + tails[name]
        if is_word:
            left_out.update(set(base.split("-")) - set(shorter[name].split("-")))
    return texts, [part for part, _ in left_out.most_common()]


def split_name(group: AxisGroup | EndpointInfo) -> tuple[str, str]:
    """Split the label and the sign before it off a name that ends so."""
    length = len(group.label) + 1 if group.label else 0
    tail = group.name[len(group.name) - length :]
    is_label = tail[:1] in ("_", "-", ".") and tail[1:] == group.label
    return (
        (group.name[:-length], tail) if is_label and length < len(group.name) else (group.name, "")
    )


def shared_ending(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> str:
    """Return the label with the sign before it, if every name ends so: `_DATADISK`."""
    labels = {group.label for group in groups}
    label = labels.pop() if len(labels) == 1 else None
    endings = {group.name[-len(label) - 1 :] for group in groups} if label else set()
    ending = endings.pop() if len(endings) == 1 else ""
    separated = ending[:1] in ("_", "-", ".") and ending[1:] == label
    longer = all(len(group.name) > len(ending) for group in groups)
    return ending if separated and longer else ""


def short_names(grid: Grid) -> dict[str, str]:
    """Return what rows and columns are called in lists."""
    return short_names_of([*grid.sources, *grid.destinations])


def short_names_of(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> dict[str, str]:
    """Return names for lists: cut, unless two would be called alike."""
    texts, _ = shortened(groups, shared_ending(groups))
    short = {name: cut(text, LONGEST_LISTED) for name, text in texts.items()}
    shared = Counter(short.values())
    return {name: text if shared[text] == 1 else name for name, text in short.items()}


def uncut_names_of(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> dict[str, str]:
    """Return names without what many share, each as long as it then is."""
    texts, _ = shortened(groups, shared_ending(groups))
    return texts


def cut(name: str, longest: int) -> str:
    """Cut a name in the middle, where names differ least: UKI-NORTHGRID-MAN…DATADISK."""
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 3
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"
