"""A matrix as a table whose cells have colours and, so that it reads without them, numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from matrix.answers.report.parts import HeatTable
from matrix.answers.words.numbers import number
from matrix.plots.palettes import DEFAULT_PALETTE, INKS, PALETTES, inks_on, ramp
from matrix.plots.scales import scale_for
from matrix.query.catalogue import STATISTICS
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    FAILING,
    MEASURED,
    NOT_APPLICABLE,
    STALE,
    STATES,
    UNTESTED,
)

STEPS = 64
LETTER_EM = 0.58
RATE = STATISTICS["mean"]
# What stands in a cell in place of a rate, and what the sign means.
SIGNS = {
    FAILING: ("✕", "its newest tests all failed"),
    FAILED: ("✕", "its newest tests all failed"),
    UNTESTED: ("○", "planned, but not tested"),
    DOWN: ("▽", "in a declared downtime when this ended"),
    NOT_APPLICABLE: ("", ""),
}
OLD = "*", "its last test was older than two intervals of the schedule"


class HeatCell(NamedTuple):
    """What stands in a cell, its colours as a style, and the name of its state."""

    text: str
    style: str
    state: str


def cell_rows(table: HeatTable) -> Iterator[tuple[str, list[HeatCell]]]:
    """Yield the short name of each row with its cells."""
    shares = scale_for(RATE, table.value).shares(table.value)
    steps = np.rint(np.nan_to_num(shares) * (STEPS - 1)).astype(int)
    colours = np.rint(ramp(PALETTES[DEFAULT_PALETTE], STEPS) * 255).astype(int)
    inks = inks_on(PALETTES[DEFAULT_PALETTE], STEPS)
    for row, name in enumerate(table.rows):
        cells = []
        for column in range(len(table.columns)):
            at = row, column
            text, style = text_in(table, at), ""
            if table.state[at] in (MEASURED, STALE) and text:
                red, green, blue = colours[steps[at]].tolist()
                ink = INKS[inks[steps[at]]]
                style = f"background:#{red:02x}{green:02x}{blue:02x};color:{ink}"
            cells.append(HeatCell(text, style, STATES[table.state[at]]))
        yield table.short.get(name, name), cells


def text_in(table: HeatTable, at: tuple[int, int]) -> str:
    """Write the rate of a cell, or the sign of its state."""
    state = int(table.state[at])
    if state in SIGNS:
        return SIGNS[state][0]
    return number(float(table.value[at]), RATE) + (OLD[0] if state == STALE else "")


def head_em(table: HeatTable) -> int:
    """Return how high the head is, whose names stand on their side."""
    return 2 + math.ceil(
        LETTER_EM * max(len(table.short.get(name, name)) for name in table.columns)
    )


def legend(table: HeatTable) -> list[str]:
    """Say what the signs mean that a table has, and the colours."""
    states = set(np.unique(table.state).tolist())
    signs = dict(sign for state, sign in SIGNS.items() if state in states and sign[0])
    signs |= dict([OLD]) if STALE in states else {}
    said = [f"{sign} {words}" for sign, words in signs.items()]
    return [*said, "empty: no test is planned"] if NOT_APPLICABLE in states else said
