"""How many links failed or were slower than usual in each hour or day of a window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from matrix.answers.link.series import BUCKETS, Cut, cut_for
from matrix.answers.matrix import standing
from matrix.answers.matrix.standing import ResultsOfLinks
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.standing import usual_window
from matrix.statistics.levels import time_strip
from matrix.statistics.levels.time_strip import StripCounts, TimeBuckets
from matrix.store import data_version, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window

# Nobody can tell more of them apart; with `auto` there are at most so many hours.
WIDTHS = ("1h", "1d")
AUTO = "auto"
MOST_HOURS = timedelta(days=8)


@dataclass(frozen=True)
class StripQuestion:
    """Which links are counted, over which window, in buckets of which length (of WIDTHS)."""

    query: MatrixQuery
    window: Window
    cut: Cut

    @classmethod
    def of(cls, query: MatrixQuery, now: datetime, bucket: str = AUTO) -> StripQuestion:
        """Ask about the window of a query; raise ValueError for too many buckets."""
        window = query.window_at(now)
        if bucket == AUTO:
            bucket = "1h" if window.end - window.start <= MOST_HOURS else "1d"
        return cls(query, window, cut_for(window, bucket))

    @property
    def width(self) -> int:
        """Return how long a bucket is, in ms."""
        return BUCKETS[self.cut.bucket]


@dataclass(frozen=True)
class TimeStrip:
    """Counts by bucket, and when each begins (Unix s); the outer ones may reach over the window.

    ``simulated`` says that an end of these links is a sandbox node.
    """

    starts: Floats
    counts: StripCounts
    simulated: bool

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.counts.nbytes


def version(question: StripQuestion) -> DataVersion:
    """Return what changes whenever the answer may, for one small SQL query: also the ETag."""
    reach = standing.reach(question.window)
    return data_version.read(question.query.size, reach).of_question(question)


def build(question: StripQuestion, known_version: DataVersion | None = None) -> TimeStrip:
    """Answer the question; what is kept for its version is not built again."""
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(question)
    strip: TimeStrip = ANSWERS.get(
        ("strip", known_version), lambda: compute(question, known_version)
    )
    return strip


def compute(question: StripQuestion, known_version: DataVersion) -> TimeStrip:
    """Count from the transfers that started in the window; at most ten SQL statements."""
    query, cut = question.query, question.cut
    links = LinkIndex(registry.read_places(known_version))
    matching = links.matching(query.filters)
    # What is usual for the window: the same as for a matrix that begins on its day.
    days = usual_window(question.window)
    (of_days,) = data_version.read_results(query.size, [days])
    of_links = ResultsOfLinks.of(query.size, query.filters, links)
    usual = of_links.usual(days, of_days, links.numbering)
    counts = time_strip.count(
        runs.read(query.size, question.window, query.filters, offsets=True),
        links.numbering,
        matching.reshape(links.shape),
        time_strip.limits(usual),
        TimeBuckets(cut.first, question.width, cut.count),
    )
    starts = (cut.first + np.arange(cut.count) * question.width) / 1000
    touched = np.flatnonzero(np.logical_or(*links.touched(matching))).tolist()
    return TimeStrip(starts, counts, simulated=any(links.places[at].simulated for at in touched))
