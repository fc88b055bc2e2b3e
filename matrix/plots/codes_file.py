"""The colours of all cells as a byte each, for the picture of a window that is dragged over.

static/js/matrix/glimpse.js paints them in the place of those of the page.
"""

import numpy as np

from matrix.plots.arrangement import Arrangement
from matrix.plots.cells_file import packed
from matrix.plots.marks import outlined
from matrix.plots.matrix import GAP, Codes, codes, scale_of, steps_of
from matrix.statistics.arrays import Floats


def encode(arrangement: Arrangement) -> bytes:
    """Return a file as those of cells_file, with the array `code` alone.

    It has a row for each row that is drawn, gaps included, and below them that of the means; each
    has a code for each column that is drawn, and last that of its mean. `frames` are as the figure
    has them.
    """
    grid = arrangement.grid
    scale = scale_of(grid, arrangement.display)

    def means(values: Floats) -> Codes:
        return steps_of(values, scale, GAP)

    rows, columns = arrangement.rows, arrangement.columns
    code = np.full((rows.length + 1, columns.length + 1), GAP, dtype=np.uint8)
    code[:-1, :-1] = arrangement.spread(codes(arrangement, scale), GAP)
    code[:-1, -1] = rows.spread(means(rows.average), GAP)
    code[-1, :-1] = columns.spread(means(columns.average), GAP)
    code[-1, -1] = means(np.array(grid.averages.grand))
    facts = {
        "arrangement": arrangement.digest,
        "title": grid.query.describe_in_unit(),
        "rows": rows.length + 1,
        "columns": columns.length + 1,
        "frames": [
            each for each in outlined(arrangement) if each.get("meta", {}).get("outline") == "frame"
        ],
    }
    return packed(facts, {"code": code})
