"""The links of a site on both sides of a comparison, each by itself and all of an end together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.comparison import all_links, beyond
from matrix.answers.grid import Grid
from matrix.answers.ratio_words import SURE, PairRatio
from matrix.answers.series import Cut, cut_for
from matrix.answers.site.history import EndHistory, RatioSeries, drawable, series_of
from matrix.answers.site.link_results import LinkResults
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink
from matrix.answers.site.verdict import VERBS
from matrix.statistics import student
from matrix.statistics.arrays import Flags
from matrix.statistics.two_samples import FEWEST, Ratios
from matrix.store.link_rows import Ends
from sonar.units import format_chance, format_count, format_factor
from sonar.windows import Window

CONFIDENCE = 0.95


@dataclass(frozen=True)
class LinksTogether:
    """What several ratios have in common: their geometric mean over ``links``, NaN for none.

    The interval and ``p`` are those of a mean of logarithms, by Student's t: each link counts as
    one, however often it was tested.
    """

    ratio: float
    low: float
    high: float
    p: float
    links: int

    @classmethod
    def of(cls, ratios: Ratios) -> LinksTogether:
        logs = np.log(ratios.ratio[ratios.enough])
        mean = float(logs.mean()) if logs.size else np.nan
        if logs.size < 2:
            return cls(float(np.exp(mean)), np.nan, np.nan, np.nan, logs.size)
        error = float(logs.std(ddof=1)) / np.sqrt(logs.size)
        half = float(student.quantile((1 + CONFIDENCE) / 2, logs.size - 1)) * error
        p = float(student.two_sided(mean / error, logs.size - 1)) if error else float(not mean)
        low, middle, high = np.exp([mean - half, mean, mean + half]).tolist()
        return cls(middle, low, high, p, logs.size)


@dataclass(frozen=True)
class EndComparison:
    """The links of one end of a site, in their order, against what the question compares with.

    ``series`` is the other side over time, over ``window``, in parts of the usual rates of this
    one.
    """

    end: str
    words: str
    window: Window
    ratios: Ratios
    series: RatioSeries

    @property
    def pairs(self) -> list[PairRatio]:
        return [PairRatio.at(self.ratios, (link,)) for link in range(len(self.ratios.ok))]

    @property
    def changed(self) -> Flags:
        """Say which links surely differ, among all links of the grid."""
        return self.ratios.sure

    @property
    def together(self) -> LinksTogether:
        return LinksTogether.of(self.ratios)

    @property
    def slower(self) -> int:
        return int((self.changed & (self.ratios.ratio < 1)).sum())

    @property
    def faster(self) -> int:
        return int((self.changed & (self.ratios.ratio > 1)).sum())

    @property
    def kind(self) -> str:
        """Return `slower` or `faster` if any link or all together are beyond chance, or `usual`."""
        if self.changed.any():
            return "slower" if self.slower >= self.faster else "faster"
        together = self.together
        if together.p < SURE:
            return "slower" if together.ratio < 1 else "faster"
        return "usual" if together.links else "unknown"

    @property
    def counts(self) -> str:
        """Say how many links differ: `4 are slower and 0 faster`."""
        if not self.changed.any():
            return "no link differs by itself"
        verb = "is" if self.slower == 1 else "are"
        return f"{format_count(self.slower)} {verb} slower and {format_count(self.faster)} faster"

    def sentence(self, site: str) -> str:
        """Say how the site does at this end against the other side, to be quoted."""
        verb, together = VERBS[self.end], self.together
        if not together.links:
            needs = f"has {FEWEST} successful transfers on both sides"
            return f"No link {verb.links} {site} {needs}."
        links = f"{format_count(together.links)} link{'s' * (together.links != 1)}"
        factor, chance = format_factor(together.ratio), ""
        if not np.isnan(together.low):
            factor = format_factor(together.ratio, together.low, together.high)
            chance = f", {format_chance(together.p)}"
        return (
            f"{site} {verb.then} at {factor} the rate of {self.words} ({links}{chance}); "
            f"{self.counts}."
        )


def compare(
    report: Report,
    links: Mapping[str, Sequence[SiteLink]],
    histories: Mapping[str, EndHistory],
    now: datetime,
) -> dict[str, EndComparison]:
    """Compare the links of each end as the query asks for it: one SQL statement, or none."""
    query = report.query
    if query.compare is None:
        return {}
    other = query.other(now)
    window = other.window_at(now)
    ids = {endpoint.name: endpoint.id for endpoint in report.all_endpoints}
    of_end = {end: opposite_ends(links[end], ids, query.compare.reverse) for end in links}
    every = list(dict.fromkeys(pair for pairs in of_end.values() for pair in pairs))
    place = {pair: at for at, pair in enumerate(every)}
    whole = LinkResults.read(every, window, other.filters, other.size)
    there = {
        end: whole.of_links([place[pair] for pair in pairs], len(every))
        for end, pairs in of_end.items()
    }
    comparisons, all_compared = {}, all_links.build(query, now)
    for end in links:
        names = [(link.source, link.destination) for link in links[end]]
        ratios = all_links.ratios_of(all_compared, names)
        cut = cut_like(drawable(window, [there[end]]), histories[end].series.bucket)
        series = series_of(there[end], histories[end].usual, window, cut)
        comparisons[end] = EndComparison(end, query.other_words(), window, ratios, series)
    return comparisons


def beyond_words(changes: Grid | None, site: str, end: str) -> str:
    """Say whether the links of others changed as much; nothing where that cannot be said."""
    own = beyond.of_site(changes, site, end) if changes else None
    return own.sentence(f"it {VERBS[end].then}") if own else ""


def opposite_ends(
    links: Sequence[SiteLink], ids: Mapping[str, int], is_reverse: bool
) -> list[Ends]:
    """Return the ids of the links on the other side, in their order."""
    pairs = [(ids[link.source], ids[link.destination]) for link in links]
    return [(back, there) for there, back in pairs] if is_reverse else pairs


def cut_like(window: Window, bucket: str) -> Cut:
    """Cut a window into buckets of this length, or of the finest of which there are few enough."""
    try:
        return cut_for(window, bucket)
    except ValueError:
        return cut_for(window)
