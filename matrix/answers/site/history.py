"""The links of a site over time: their rates against their usual, failures, and what notes say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from matrix.answers.series import BUCKETS, MOST, Cut, cut_for
from matrix.answers.site.link_results import LinkResults
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.ratios import across_links, quantiles_by
from matrix.statistics.reduce import ratio
from matrix.store.read_plan import Span, moment
from sonar.windows import Window

# A bucket of fewer links on average has no middle half.
FEWEST_LINKS = 3
FEWEST_BUCKETS, MOST_BUCKETS = 4, 200
# How far a note looks back and ahead.
REACH = timedelta(days=7)


@dataclass(frozen=True)
class RatioSeries:
    """The links of one end by bucket: what a link's rate is to its usual, and tests.

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
        """Return how long a bucket is."""
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
class RatioSample:
    """What the links were to their usual in a stretch of time; ``tests`` that succeeded say so.

    ``ratio`` is the median of the links, each with the median of its tests; NaN for none.
    """

    ratio: float = np.nan
    links: int = 0
    tests: int = 0


@dataclass(frozen=True)
class BeforeAndAfter:
    """The links of one end in the REACH before a moment and after it. No test of significance."""

    before: RatioSample
    after: RatioSample

    @property
    def stretches(self) -> tuple[RatioSample, RatioSample]:
        return self.before, self.after

    @property
    def factor(self) -> float:
        return self.after.ratio / self.before.ratio


def around(
    results: LinkResults, usual: Floats, moment: datetime, until: datetime
) -> BeforeAndAfter:
    """Compare what is as far from a moment as REACH; nothing counts from ``until`` on."""
    after = min(moment + REACH, until)
    return BeforeAndAfter(
        stretch_of(results.during(moment - REACH, moment), usual),
        stretch_of(results.during(moment, after), usual),
    )


def stretch_of(results: LinkResults, usual: Floats) -> RatioSample:
    ratios = results.rate / usual[results.link]
    judged = ~np.isnan(ratios)
    if not judged.any():
        return RatioSample()
    (medians,) = quantiles_by(results.link[judged], ratios[judged], len(usual), [0.5])
    measured = ~np.isnan(medians)
    return RatioSample(float(np.median(medians[measured])), int(measured.sum()), int(judged.sum()))


def span_of(window: Window, moments: Sequence[datetime]) -> Window:
    """Return what to read for a window, and for what lies before these moments in it."""
    return Window(min([window.start, *(moment - REACH for moment in moments)]), window.end)


@dataclass(frozen=True)
class EndHistory:
    """The results of the links of one end, in the order of ``usual``, and their line over time."""

    results: LinkResults
    usual: Floats
    series: RatioSeries
    window: Window

    @property
    def inside(self) -> LinkResults:
        """Return the results in the window."""
        return self.results.during(self.window.start, self.window.end)

    def note_effect(self, moment: datetime) -> BeforeAndAfter:
        return around(self.results, self.usual, moment, self.window.end)

    def sizes(self) -> list[tuple[float, float]]:
        """Return mean and standard deviation of the bytes of each link's files in the window."""
        ok = self.inside.taken(self.inside.ok)
        count = np.bincount(ok.link, minlength=len(self.usual))
        mean = ratio(np.bincount(ok.link, ok.size, minlength=len(self.usual)), count)
        squares = (ok.size - mean[ok.link]) ** 2
        total = np.bincount(ok.link, squares, minlength=len(self.usual))
        std = np.sqrt(ratio(total, np.maximum(count - 1, 0)))
        return list(zip(mean.tolist(), std.tolist(), strict=True))


def history_of(
    report: Report, ends: Mapping[str, Sequence[SiteLink]], moments: Sequence[datetime]
) -> dict[str, EndHistory]:
    """Read the links of each end over the window, and around these moments in it.

    One SQL statement. All ends are cut into the same buckets.
    """
    ids = {endpoint.name: endpoint.id for endpoint in report.all_endpoints}
    of_end = {
        end: [(ids[link.source], ids[link.destination]) for link in links]
        for end, links in ends.items()
    }
    query, window = report.query, report.window
    every = list(dict.fromkeys(pair for pairs in of_end.values() for pair in pairs))
    place = {pair: at for at, pair in enumerate(every)}
    whole = LinkResults.read(every, span_of(window, moments), query.filters, query.size)
    results = {
        end: whole.of_links([place[pair] for pair in pairs], len(every))
        for end, pairs in of_end.items()
    }
    inside = [part.during(window.start, window.end) for part in results.values()]
    cut = cut_of(drawable(window, inside), inside)
    histories = {}
    for end, part in results.items():
        usual = np.array([link.usual for link in ends[end]], dtype=np.float64)
        series = series_of(part, usual, window, cut)
        histories[end] = EndHistory(part, usual, series, window)
    return histories
