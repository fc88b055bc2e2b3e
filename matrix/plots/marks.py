"""What stands in the cells of a matrix: heatmaps, numbers, and marks that differ without colour."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.words.numbers import number
from matrix.plots import Json
from matrix.plots.arrangement import Arrangement
from matrix.query.catalogue import VS_USUAL, Statistic
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.cell_targets import AGAINST
from matrix.statistics.cells.standing import FASTER, SLOWER
from matrix.statistics.cells.states import DOWN, FAILED, FAILING, MEASURED, STALE, STATES, UNTESTED
from matrix.statistics.compare.two_samples import CHANGES
from sonar.notation.units import DASH, format_count

# Numbers stand in the cells up to this many columns and rows, gaps between cells likewise.
COLUMNS_WITH_NUMBERS, ROWS_WITH_NUMBERS = 25, 40
CELLS_APART = 60
TRANSPARENT = "rgba(0,0,0,0)"
SCATTER: Json = {"type": "scatter", "hoverinfo": "skip", "showlegend": False}
# Symbol, colour, and part of the full size.
Mark = tuple[str, str, float]
# Above this a mark in every cell is a blur that costs seconds to draw.
MOST_MARKS = 3000
MARKS = {
    # Pale and small, for chance may have made them fail.
    FAILED: ("x-thin-open", "var(--failing)", 0.7),
    STALE: ("hourglass-open", "var(--ink)", 0.6),
    UNTESTED: ("circle", "var(--untested-mark)", 0.45),
    DOWN: ("line-ew-open", "var(--down-mark)", 0.9),
}
# As a hatched line, of a comparison.
TOO_FEW_MARK = ("line-ne-open", "var(--muted)", 1.2)
# Where a mark is next to a number: by how much of a cell to the right and down, and its part of the
# full size there. An hourglass is in the corner that no other mark uses.
NEXT_TO_NUMBER = {STALE: (0.4, 0.32, 0.45), DOWN: (0.0, 0.34, 0.9)}
# In a matrix whose cells are smaller than this in pixels, an open square around what is failing.
FAILING_MARK = {"symbol": "square-open", "size": 11, "line": {"width": 2}}
# How many links of a cell are failing or slower: where in the cell, ground and ink.
LINK_COUNTS = {
    "failing": (-0.4, 0.26, "var(--failed)", "var(--failed-mark)"),
    "slower": (0.4, -0.26, "var(--slower-mark)", "#14181d"),
}
# What has a place and a size of its own in a cell, which static/js/matrix/outlines.js works out:
# a frame, a corner, an arrow up in that corner, a square in the one across; below target
# is a frame, near target a corner, as colour says the rest. Fill and line.
OUTLINES = {
    "failing": (None, "var(--failing)"),
    "slower": ("var(--slower-mark)", "#14181d"),
    "faster": ("var(--faster-mark)", "#14181d"),
    "partly": ("var(--failing)", "#ffffff"),
    "below": (None, "var(--ink)"),
    "near": ("var(--ink)", "var(--surface)"),
}
SHAPES = {"near": "slower"}
# Where colours are factors, a frame says that the change is significant: colour says the rest.
FRAME = (None, "var(--ink)")


def heatmap(z: NDArray[Any], kind: str, looks: Json) -> Json:
    apart = int(max(z.shape) <= CELLS_APART)
    # In base64, a tenth of the cost of a list of lists; NaN stays NaN.
    body = base64.b64encode(z.astype(f"<{kind}").tobytes()).decode()
    packed = {"dtype": kind, "bdata": body, "shape": ", ".join(map(str, z.shape))}
    plain = {"type": "heatmap", "z": packed, "showscale": False, "hoverinfo": "skip"}
    axes = {"x0": 0, "dx": 1, "y0": 0, "dy": 1, "xgap": apart, "ygap": apart}
    return plain | axes | looks


def dashes(where: Flags, axes: Json) -> list[Json]:
    return text_in(where, np.where(where, DASH, "").tolist(), "var(--ink)", axes)


def number_texts(values: Floats, statistic: Statistic, ink: str, axes: Json) -> list[Json]:
    """Return a trace of numbers, or none where there are no values or no room."""
    if not room_for_numbers(values.shape):
        return []
    texts = [[number(value, statistic) for value in row] for row in values.tolist()]
    return text_in(~np.isnan(values), texts, ink, axes)


def text_in(where: Flags, texts: list[list[str]], ink: str, axes: Json) -> list[Json]:
    if not room_for_numbers(where.shape) or not where.any():
        return []
    looks = {
        "text": texts,
        "texttemplate": "%{text}",
        "textfont": {"color": ink, "size": 11},
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, TRANSPARENT], [1, TRANSPARENT]],
    }
    return [heatmap(np.where(where, 0.0, np.nan), "f4", looks | axes)]


def room_for_numbers(shape: tuple[int, ...]) -> bool:
    return shape[0] <= ROWS_WITH_NUMBERS and shape[1] <= COLUMNS_WITH_NUMBERS


def marks(arrangement: Arrangement) -> list[Json]:
    """Draw a mark in each cell whose state has one, so that states differ without colour."""
    marked = [
        (STATES[number], mark, (arrangement.state == number) & ~arrangement.too_few)
        for number, mark in MARKS.items()
    ]
    marked.append(("too few", TOO_FEW_MARK, arrangement.too_few))
    shown = [(name, mark, where & arrangement.in_focus) for name, mark, where in marked]
    traces = [marks_of(*each, arrangement) for each in shown if has_room(each[-1])]
    return traces + outlined(arrangement) + link_counts(arrangement)


def has_room(where: Flags) -> bool:
    return 0 < int(np.count_nonzero(where)) <= MOST_MARKS


def outlined(arrangement: Arrangement) -> list[Json]:
    marked = [(name, at & arrangement.in_focus) for name, at in standing(arrangement).items()]
    return [outlines(name, at, arrangement) for name, at in marked if has_room(at)]


def link_counts(arrangement: Arrangement) -> list[Json]:
    """Write into cells of several links how many of these are failing or slower, if any are."""
    query, cells = arrangement.grid.query, arrangement.grid.cells
    if not arrangement.is_pooled:
        return []
    traces = []
    for look, (right, down, ground, ink) in LINK_COUNTS.items():
        counts = arrangement.drawn(getattr(cells, f"{look}_links"))
        where = arrangement.in_focus & (counts > 0)
        if not has_room(where) or (query.compare and look == "slower"):
            continue
        rows, columns = np.nonzero(where)
        texts = [format_count(count) for count in counts[where].tolist()]
        traces.append(
            SCATTER
            | {
                "mode": "markers+text",
                "name": f"{look} links",
                "x": (arrangement.columns.at[columns] + right).tolist(),
                "y": (arrangement.rows.at[rows] + down).tolist(),
                "text": texts,
                "textposition": "middle center",
                "textfont": {"color": ink, "size": 9},
                "marker": {
                    "symbol": "square",
                    "color": ground,
                    "opacity": 1,
                    "size": [8 + 5 * len(text) for text in texts],
                },
            }
        )
    return traces


def standing(arrangement: Arrangement) -> dict[str, Flags]:
    """Say which cells have each of OUTLINES, or have changed; what fails has no level."""
    state, cells = arrangement.state, arrangement.grid.cells
    has_level = (state == MEASURED) | (state == STALE)
    if arrangement.grid.comparison:
        looks = {look: arrangement.grid.of_look(look) for look in CHANGES}
    elif targets := cells.targets:
        kinds = {name: targets.against == AGAINST.index(name) for name in ("below", "near")}
        looks = kinds | {"partly": cells.partly}
    else:
        levels = {"slower": cells.level == SLOWER, "faster": cells.level == FASTER}
        looks = levels | {"partly": cells.partly}
    if "partly" in looks and arrangement.is_pooled:
        # Their number is in the same corner.
        looks["partly"] = looks["partly"] & (cells.failing_links == 0)
    drawn = {name: has_level & arrangement.drawn(where) for name, where in looks.items()}
    return {"failing": state == FAILING} | drawn


def outlines(name: str, where: Flags, arrangement: Arrangement) -> Json:
    """Name the cells; the page draws the outline in each."""
    query = arrangement.grid.query
    # Colours may be factors of the changes that are marked: from usual, or compared.
    is_framed = name in CHANGES and (query.compare is not None or query.stat == VS_USUAL.name)
    fill, line = FRAME if is_framed else OUTLINES[name]
    rows, columns = np.nonzero(where)
    outline = SCATTER | {
        "mode": "lines",
        "name": name,
        "x": arrangement.columns.at[columns].tolist(),
        "y": arrangement.rows.at[rows].tolist(),
    }
    if name == "failing" and max(arrangement.rows.length, arrangement.columns.length) > CELLS_APART:
        # A frame would be as small as its cell, and could not be found.
        return outline | {"mode": "markers", "marker": FAILING_MARK | {"color": line}}
    return outline | {
        "meta": {"outline": "frame" if fill is None else SHAPES.get(name, name)},
        "line": {"color": line, "width": 1 if fill else 2},
        **({"fill": "toself", "fillcolor": fill} if fill else {}),
    }


def marks_of(name: str, mark: Mark, where: Flags, arrangement: Arrangement) -> Json:
    """Mark these cells: in the middle, or where that has a number, next to it."""
    symbol, colour, part = mark
    lines = arrangement.rows.length, arrangement.columns.length
    size = float(np.clip(500 / max(lines), 2, 12))
    # Without its number, a stale cell has a dash.
    has_text = ~np.isnan(arrangement.value[where]) | (name == STATES[STALE])
    is_moved = has_text & room_for_numbers(lines)
    rows, columns = np.nonzero(where)
    places = {STATES[state]: place for state, place in NEXT_TO_NUMBER.items()}
    right, down, small = places.get(name, (0.0, 0.0, part))
    return SCATTER | {
        "mode": "markers",
        "name": name,
        "x": (arrangement.columns.at[columns] + right * is_moved).tolist(),
        "y": (arrangement.rows.at[rows] + down * is_moved).tolist(),
        "marker": {
            "symbol": symbol,
            "color": colour,
            "size": (size * np.where(is_moved, small, part)).tolist(),
            "line": {"color": colour, "width": 1.5 if size > 4 else 1},
        },
    }
