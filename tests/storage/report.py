"""Tables that long programs print at their end."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One thing that was counted, what it should be, and whether it is."""

    name: str
    value: object
    goal: str = ""
    holds: bool = True


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table of Markdown."""
    cells = [("", "measured", "goal", "")]
    cells += [(row.name, str(row.value), row.goal, verdict(row)) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    padded = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "| " + " | ".join("-" * max(width, 3) for width in widths) + " |"
    return "\n".join([padded[0], rule, *padded[1:]])


def verdict(row: Row) -> str:
    if not row.goal:
        return ""
    return "holds" if row.holds else "FAILS"
