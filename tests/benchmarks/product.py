"""Sonar's side of the contests: the functions that its pages and its API call."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix import grid as grids
from matrix.answers.matrix.grid_cells import Grid
from matrix.api import matrix_formats
from matrix.query.comparison import Comparison
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.samples import reduce
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import Reduced
from matrix.store import runs
from sonar.models import Endpoint
from sonar.notation.windows import Window
from tests.benchmarks.answer import Answer
from tests.benchmarks.scale import END

EXTRAS = ("median", "p95")


@lru_cache(maxsize=1)
def numbering() -> Numbering:
    """Number the endpoints; the product keeps the registry in memory as well."""
    ids = Endpoint.objects.order_by("id").values_list("id", flat=True)
    return Numbering(np.array(ids, dtype=np.int64))


def exact(size: str, window: Window) -> tuple[Reduced, NDArray[np.int64]]:
    """Read and reduce: count, ok, mean, std, median, p95 and newest start of every link."""
    links = numbering()
    place = np.arange(len(links.ids))
    found = runs.read(size, window, ())
    newest = links.newest(found)
    pooling = Pooling(links, place, place, newest > 0, newest.shape)
    return reduce.reduce(found, pooling, EXTRAS), newest


def grid(size: str, window: Window, stat: str) -> Grid:
    """Build all that an answer needs, and take nothing that is kept."""
    query = MatrixQuery(size=size, window="", start=window.start, end=window.end, stat=stat)
    return grids.compute(query, END, grids.version(query, END))


def compared(size: str, window: Window) -> Grid:
    """Build the grid that compares a window with the one before, and take nothing that is kept."""
    compare = Comparison("previous")
    query = MatrixQuery(
        size=size, window="", start=window.start, end=window.end, stat="median", compare=compare
    )
    return grids.compute(query, END, grids.version(query, END))


def as_bytes(one: Grid) -> bytes:
    """Write what is answered to who names no fields: each other one costs who asks for it."""
    return matrix_formats.as_json(one, matrix_formats.DEFAULT_FIELDS)


def answer(size: str, window: Window) -> Answer:
    """Answer as columns, to compare; not timed."""
    reduced, newest = exact(size, window)
    count = reduced.ok + reduced.failed
    filled = np.nonzero(count)
    ids = numbering().ids
    return Answer(
        link=ids[filled[0]] << 16 | ids[filled[1]],
        count=count[filled],
        ok=reduced.ok[filled],
        mean=reduced.mean[filled],
        std=reduced.std[filled],
        median=reduced.extras["median"][filled],
        p95=reduced.extras["p95"][filled],
        last=newest[filled],
    )


# What memory.py runs, each in a process of its own.
HEAVY: dict[str, Callable[[str, Window], object]] = {
    "read and reduce": exact,
    "grid.build": lambda size, window: grid(size, window, "median"),
    "throughput, to JSON bytes": lambda size, window: as_bytes(grid(size, window, "throughput")),
}
