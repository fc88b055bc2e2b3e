"""The links of a site on both sides of a comparison, each by itself and all of an end together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matrix.answers.comparison import all_links, net_change
from matrix.answers.comparison.all_links import CountWords, factor_words, ratios_together
from matrix.answers.link.series import Cut, cut_for
from matrix.answers.matrix.grid import Grid
from matrix.answers.site.history import EndHistory, RatioSeries, drawable, results_of, series_of
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink
from matrix.answers.site.verdict import VERBS
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import PairRatio
from matrix.statistics.arrays import Flags
from matrix.statistics.compare.together import DayScatter, Together, days_apart
from matrix.statistics.compare.two_samples import Ratios
from sonar.notation.units import format_count
from sonar.notation.windows import Window


@dataclass(frozen=True)
class EndComparison:
    """The links of one end of a site, in their order, against what the question compares with.

    ``series`` is the other side over time, over ``window``, in parts of the usual rates of this
    one. ``together`` is what all of them have in common, and ``tests`` what stands behind its
    numbers of tests.
    """

    end: str
    words: str
    window: Window
    ratios: Ratios
    series: RatioSeries
    together: Together
    tests: CountWords

    @property
    def pairs(self) -> list[PairRatio]:
        return [PairRatio.at(self.ratios, (link,)) for link in range(len(self.ratios.ok))]

    @property
    def changed(self) -> Flags:
        """Say which links surely differ, among all links of the grid."""
        return self.ratios.sure

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
        return {"same": "usual", "": "unknown"}.get(self.together.kind, self.together.kind)

    @property
    def counts(self) -> str:
        """Say how many links differ by themselves: `4 links are slower and 0 faster`."""
        if not self.changed.any():
            return "No single link changed significantly."
        slower = f"{format_count(self.slower)} link{'s are' if self.slower != 1 else ' is'} slower"
        return f"Of single links, {slower} and {format_count(self.faster)} faster."

    def sentence(self, site: str) -> str:
        """Say how the site does at this end against the other side, to be quoted."""
        verb, links = VERBS[self.end], self.together.links
        if not links:
            return f"No link {verb.links} {site} has successful transfers on both sides."
        factor = factor_words(self.together, self.tests)
        of_links = f"on {counted(links, 'link')}"
        return f"{site} {verb.then} at {factor}, {of_links}. {self.counts}"


def compare(
    report: Report,
    links: Mapping[str, Sequence[SiteLink]],
    histories: Mapping[str, EndHistory],
    scatters: Mapping[str, DayScatter],
    now: datetime,
) -> dict[str, EndComparison]:
    """Compare the links of each end as the query asks for it: one SQL statement, or none.

    ``scatters`` are how far all links of an end scatter together, by end, where that is known.
    """
    query = report.query
    if query.compare is None:
        return {}
    other = query.other(now)
    window = other.window_at(now)
    there = results_of(report, links, other, window, is_reverse=query.compare.reverse)
    comparisons, all_compared = {}, all_links.build(query, now)
    for end in links:
        names = [(link.source, link.destination) for link in links[end]]
        ratios = all_links.ratios_of(all_compared, names)
        cut = cut_like(drawable(window, [there[end]]), histories[end].series.bucket)
        series = series_of(there[end], histories[end].usual, window, cut)
        apart = days_apart(report.window, window)
        together = ratios_together(ratios, query.compare.of, scatters.get(end), apart)
        comparisons[end] = EndComparison(
            end, query.other_words(), window, ratios, series, together, CountWords.of(query, now)
        )
    return comparisons


def beyond_words(changes: Grid | None, site: str, comparison: EndComparison) -> str:
    """Say whether the links of others changed as much; nothing where that cannot be said."""
    own = net_change.site_net_change(changes, site, comparison.end) if changes else None
    has_changed = comparison.kind in ("slower", "faster")
    verb = VERBS[comparison.end].then
    return own.sentence(f"it {verb}", has_changed=has_changed) if own else ""


def cut_like(window: Window, bucket: str) -> Cut:
    """Cut a window into buckets of this length, or of the finest of which there are few enough."""
    try:
        return cut_for(window, bucket)
    except ValueError:
        return cut_for(window)
