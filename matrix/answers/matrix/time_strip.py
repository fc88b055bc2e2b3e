"""How many links were failing or slower than usual in each hour or day of a time range."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from matrix.answers.link.series import BUCKETS, Cut, cut_for
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.levels import declared, time_strip
from matrix.statistics.levels.declared import DeclaredCounts, DeclaredSpan
from matrix.statistics.levels.time_strip import ConditionSpan, StripCounts, TimeBuckets
from matrix.store import conditions, data_version, downtimes, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion
from matrix.store.downtimes import DeclaredDowntime
from sonar.models import Condition, Downtime
from sonar.notation.windows import Window, unix_ms

# Nobody can tell more of them apart; with `auto` there are at most so many hours.
WIDTHS = ("1h", "1d")
AUTO = "auto"
MOST_HOURS = timedelta(days=8)
# Of more downtimes than these there are only counts.
MOST_DOWNTIMES = 50


@dataclass(frozen=True)
class StripQuestion:
    """Which links are counted, over which window, in buckets of which length (of WIDTHS).

    ``begun`` is the end (Unix ms) of the last bucket that had begun when it was asked: a condition
    that lasts is in none after it.
    """

    query: MatrixQuery
    window: Window
    cut: Cut
    begun: int

    @classmethod
    def of(cls, query: MatrixQuery, now: datetime, bucket: str = AUTO) -> StripQuestion:
        """Ask about the window of a query; raise ValueError for too many buckets."""
        window = query.window_at(now)
        if bucket == AUTO:
            bucket = "1h" if window.end - window.start <= MOST_HOURS else "1d"
        cut, width = cut_for(window, bucket), BUCKETS[bucket]
        begun = unix_ms(min(now, window.end))
        return cls(query, window, cut, begun - (begun - cut.first) % -width)

    @property
    def width(self) -> int:
        """Return how long a bucket is, in ms."""
        return BUCKETS[self.cut.bucket]


@dataclass(frozen=True)
class TimeStrip:
    """Counts by bucket, and when each begins (Unix s); the outer ones may reach over the window.

    ``declared`` counts links that are planned or were tested in the window. ``downtimes`` are the
    first MOST_DOWNTIMES of theirs, and ``downtime_count`` says how many there are. ``simulated``
    says that an end of these links is a sandbox node.
    """

    starts: Floats
    counts: StripCounts
    declared: DeclaredCounts
    downtimes: tuple[DeclaredDowntime, ...]
    downtime_count: int
    simulated: bool

    @property
    def nbytes(self) -> int:
        return self.starts.nbytes + self.counts.nbytes + self.declared.nbytes

    @property
    def columns(self) -> dict[str, Any]:
        return self.counts.arrays() | self.declared.arrays()


def version(question: StripQuestion) -> DataVersion:
    """Return what changes whenever the answer may, for one small SQL query: also the ETag."""
    return data_version.read(question.query.size, question.window).of_question(question)


def build(question: StripQuestion, known_version: DataVersion | None = None) -> TimeStrip:
    """Answer the question; what is kept for its version is not built again."""
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(question)
    strip: TimeStrip = ANSWERS.get(
        ("strip", known_version), lambda: compute(question, known_version)
    )
    return strip


def compute(question: StripQuestion, known_version: DataVersion) -> TimeStrip:
    """Count transfers that started in the window, and conditions; at most ten SQL statements."""
    query, cut = question.query, question.cut
    links = registry.read_links(known_version)
    matching = links.matching(query.filters)
    tests = runs.read(query.size, question.window, query.filters, offsets=True)
    failing, slow = Condition.Type.FAILING, Condition.Type.SLOW
    lasting = conditions.lasting_links(query.size, question.window, (failing, slow), links)
    spans = [
        ConditionSpan(
            *(each.links, unix_ms(each.since)),
            unix_ms(each.ended_at) if each.ended_at else question.begun,
            each.type == failing,
        )
        for each in lasting
    ]
    buckets = TimeBuckets(cut.first, question.width, cut.count)
    counts = time_strip.count(tests, spans, links.numbering, matching.reshape(links.shape), buckets)
    side = links.numbering.stride  # the last one stands for places that are not known
    tested = np.zeros(side**2, dtype=bool)
    for run in tests:
        tested[links.numbering.numbers(run.links)] = True
    planned = np.isfinite(registry.read_promises(query, links, known_version))
    shown = matching & (planned | tested.reshape(side, side)[:-1, :-1].ravel())
    rows = rows_of(links, shown, buckets)
    named = downtimes.declared(row for row, _ in rows)
    starts = (cut.first + np.arange(cut.count) * question.width) / 1000
    touched = np.flatnonzero(np.logical_or(*links.touched(matching))).tolist()
    return TimeStrip(
        starts,
        counts,
        declared.count(shown.reshape(links.shape), [span for _, span in rows], buckets),
        tuple(named[:MOST_DOWNTIMES]),
        len(named),
        simulated=any(links.places[at].simulated for at in touched),
    )


def rows_of(
    links: LinkIndex, shown: Flags, buckets: TimeBuckets
) -> list[tuple[Downtime, DeclaredSpan]]:
    """Return the downtimes of ends of these links, and when these are down. One SQL query."""
    is_end = np.logical_or(*links.touched(shown))
    by_id: dict[int | None, list[int]] = {}
    by_site: dict[str, list[int]] = {}
    for at, place in enumerate(links.places):
        by_id[place.id] = [at]
        by_site.setdefault(place.site, []).append(at)
    edges = (buckets.first, buckets.first + buckets.count * buckets.width)
    rows = []
    for row in downtimes.within(*(datetime.fromtimestamp(edge / 1000, UTC) for edge in edges)):
        own = by_site.get(row.site.name, []) if row.site else by_id.get(row.endpoint_id, [])
        places = np.array([at for at in own if is_end[at]], dtype=np.int64)
        if places.size:
            start, end = (round(each.timestamp() * 1000) for each in (row.starts_at, row.ends_at))
            rows.append((row, DeclaredSpan(places, start, end, row.stops_tests)))
    return rows
