"""The lines of overhead and bandwidth of links or cells, from the results of all size classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.link_columns import LINE_COLUMNS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.cells import Frame
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes, Lines
from matrix.store import runs
from matrix.store.data_version import snapshot
from sonar.models import SizeClass
from sonar.notation.units import MB
from sonar.notation.windows import Window

# The value, and the ends of its interval.
ENDS = ("", "_low", "_high")


def columns(times: Sequence[ClassTimes], shown: Flags) -> dict[str, NDArray[Any]]:
    """Return LINE_COLUMNS of the links that are shown, where their lines fit.

    A bandwidth without an upper bound has none.
    """
    lines = overhead.fit([of_class.taken(shown) for of_class in times])
    values: Sequence[NDArray[Any]] = (
        *(lines.of(f"overhead{end}") for end in ENDS),
        *(bounded(lines.of(f"bandwidth{end}")) for end in ENDS),
        lines.of("half_size") * MB,
        lines.fit,
    )
    return dict(zip(LINE_COLUMNS, values, strict=True))


def bounded(values: Floats) -> Floats:
    return np.where(np.isinf(values), np.nan, values)


def read(query: MatrixQuery, window: Window, frame: Frame) -> Lines | None:
    """Fit the lines of the cells of a frame, each through the pooled times of its links.

    None where the statistic of the query is not read off them.
    The number of SQL statements depends on that of the classes alone.
    """
    if not query.statistic.of_line:
        return None
    pooled = frame.pooling
    pooling = Pooling(pooled.numbering, pooled.rows, pooled.columns, frame.applicable, pooled.shape)
    with snapshot():
        times = [
            ClassTimes.of_runs(runs.read(size, window, query.filters, sizes=True), pooling)
            for size in SizeClass.objects.values_list("name", flat=True)
        ]
    return overhead.fit(times)
