"""The links of a site over time: their results, their rates against usual, what notes say."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

import numpy as np

from matrix.answers.link.series import BUCKETS, MOST, Cut, cut_for
from matrix.query.comparison import OF, around
from matrix.query.filters import Filter
from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers
from matrix.statistics.compare.together import DayScatter, Together, days_apart
from matrix.statistics.samples.quantiles import across_links, quantiles_by
from matrix.statistics.samples.reduce import ratio
from matrix.store import transfers
from matrix.store.read_plan import Span, moment
from matrix.store.transfers import Ends
from sonar.database import pg_columns
from sonar.notation.units import MB
from sonar.notation.windows import Window, unix_ms
from sonar.results import segments

# A bucket of fewer links on average has no middle half.
FEWEST_LINKS = 3
FEWEST_BUCKETS, MOST_BUCKETS = 4, 200
# What has only just begun to be tested is drawn over this long.
SHORTEST = timedelta(minutes=20)


@dataclass(frozen=True)
class LinkResults(ArrayFields):
    """Results that say something about a link; arrays by result.

    ``link`` is a place in the links that were asked for, ``started`` in Unix ms, ``rate`` in MB/s
    (exact to float32, as everywhere; NaN for a failed one), ``size`` in bytes.
    """

    link: Integers
    started: Integers
    rate: Floats
    size: Integers

    @property
    def ok(self) -> Flags:
        return ~np.isnan(self.rate)

    @classmethod
    def read(
        cls, links: Sequence[Ends], window: Window, filters: Sequence[Filter], size: str
    ) -> Self:
        """Read those of these links and of a size class. One SQL statement."""
        rows = transfers.read_links(links, window, filters, size)
        place = {ends: at for at, ends in enumerate(links)}
        pairs = zip(rows["source_id"].tolist(), rows["destination_id"].tolist(), strict=True)
        link = np.fromiter((place.get(pair, -1) for pair in pairs), np.int64, count=len(rows))
        rates = segments.rates(rows)
        results = cls(
            link,
            pg_columns.unix_ms(rows["started_at"]),
            np.where(rates >= 0, rates / np.float64(MB), np.nan),
            rows["bytes"].astype(np.int64),
        )
        return results.taken(link >= 0)

    def during(self, start: datetime, end: datetime) -> Self:
        low, high = unix_ms(start), unix_ms(end)
        return self.taken((self.started >= low) & (self.started < high))


@dataclass(frozen=True)
class RatioSeries:
    """The links of one end by bucket: what a link's rate is to its usual (or in MB/s), and tests.

    ``starts`` are when the buckets begin, in Unix s; ``low``, ``median`` and ``high`` are the
    middle of the ``links`` that have a ratio in a bucket, NaN for none. A link has one value in a
    bucket, the median of its ratios; one without a usual rate has none, but counts in ``ok`` and
    ``failed``, which are tests.
    """

    bucket: str
    starts: Floats
    low: Floats
    median: Floats
    high: Floats
    links: Integers
    ok: Integers
    failed: Integers

    @property
    def seconds(self) -> float:
        return BUCKETS[self.bucket] / 1000


def drawable(window: Window, ends: Sequence[LinkResults]) -> Window:
    """Return a window, or of one of ages the part in which there are results."""
    if window.end - window.start <= timedelta(days=MOST):
        return window
    started = np.concatenate([end.started for end in ends])
    if not started.size:
        return Window(window.end - timedelta(days=1), window.end)
    return Window(moment(int(started.min())), moment(int(started.max()) + 1))


def cut_of(window: Window, ends: Sequence[LinkResults]) -> Cut:
    """Cut a window into the finest buckets in which enough links have a result."""
    span = Span.of(window)
    fitting = [
        cut_for(window, name)
        for name, width in BUCKETS.items()
        if FEWEST_BUCKETS <= math.ceil((span.end - span.start) / width) <= MOST_BUCKETS
    ]
    for cut in fitting:
        width = BUCKETS[cut.bucket]
        filled = [np.unique((end.started - cut.first) // width).size for end in ends]
        if sum(len(end.started) for end in ends) >= FEWEST_LINKS * max(sum(filled), 1):
            return cut
    return fitting[-1] if fitting else cut_for(window)


def series_of(results: LinkResults, usual: Floats, window: Window, cut: Cut) -> RatioSeries:
    """Put the results of the links of one end into buckets; ``usual`` is by link, in MB/s."""
    inside = results.during(window.start, window.end)
    bucket = (inside.started - cut.first) // BUCKETS[cut.bucket]
    tests = np.bincount(bucket, minlength=cut.count)
    ok = np.bincount(bucket[inside.ok], minlength=cut.count)
    ratios = inside.rate / usual[inside.link]
    judged = ~np.isnan(ratios)
    (low, median, high), links = across_links(
        inside.link[judged], bucket[judged], ratios[judged], cut.count
    )
    starts = (cut.first + np.arange(cut.count) * BUCKETS[cut.bucket]) / 1000
    return RatioSeries(cut.bucket, starts, low, median, high, links, ok, tests - ok)


@dataclass(frozen=True)
class WindowPair:
    """Two windows to compare: ``own``, and the ``other`` that it is compared with."""

    own: Window
    other: Window

    @classmethod
    def around(cls, moment: datetime, now: datetime) -> Self | None:
        """Return those before and after a moment; None where nothing is on a side."""
        try:
            return cls(*around(moment, now))
        except ValueError:
            return None


def span_of(window: Window, sides: Iterable[WindowPair]) -> Window:
    """Return what to read for a window, and for both sides of these comparisons."""
    every = [window, *(part for pair in sides for part in (pair.own, pair.other))]
    return Window(min(part.start for part in every), max(part.end for part in every))


@dataclass(frozen=True)
class EndHistory:
    """The results of the links of one end, in the order of ``usual``, and their line over time."""

    results: LinkResults
    usual: Floats
    series: RatioSeries
    window: Window

    @property
    def inside(self) -> LinkResults:
        return self.results.during(self.window.start, self.window.end)

    def together(self, sides: WindowPair, scatter: DayScatter) -> Together:
        """Compare all links together; ``scatter`` is how far they scatter then."""
        links, counts = len(self.usual), []
        medians: list[Floats] = []
        for side in (sides.own, sides.other):
            inside = self.results.during(side.start, side.end)
            ok = inside.taken(inside.ok)
            medians.extend(quantiles_by(ok.link, ok.rate, links, [0.5]))
            counts.append(np.bincount(ok.link, minlength=links))
        centres, tests = np.stack(medians), np.stack(counts)
        return Together.of(centres, tests, OF[0], scatter, days_apart(sides.own, sides.other))

    def sizes(self) -> list[tuple[float, float]]:
        """Return mean and standard deviation of the bytes of each link's files in the window."""
        ok = self.inside.taken(self.inside.ok)
        count = np.bincount(ok.link, minlength=len(self.usual))
        mean = ratio(np.bincount(ok.link, ok.size, minlength=len(self.usual)), count)
        squares = (ok.size - mean[ok.link]) ** 2
        total = np.bincount(ok.link, squares, minlength=len(self.usual))
        std = np.sqrt(ratio(total, np.maximum(count - 1, 0)))
        return list(zip(mean.tolist(), std.tolist(), strict=True))


def rates_over_time(histories: Mapping[str, EndHistory]) -> dict[str, EndHistory]:
    """Return the same with rates in MB/s, from the first result on, before any is usual."""
    inside = [history.inside for history in histories.values()]
    window = next(iter(histories.values())).window
    firsts = [int(end.started.min()) for end in inside if end.started.size]
    first = moment(min(firsts)) if firsts else window.end
    window = Window(max(window.start, min(first, window.end - SHORTEST)), window.end)
    cut = cut_of(window, inside)
    return {
        end: replace(
            history,
            series=series_of(history.results, np.ones_like(history.usual), window, cut),
            window=window,
        )
        for end, history in histories.items()
    }
