"""All that is said of a site's links as they are now, as they came to be so, and as compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from matrix.answers.comparison import all_links
from matrix.answers.comparison.all_links import CountWords, factor_words, ratios_together
from matrix.answers.conditions import reading, words
from matrix.answers.conditions.lines import KINDS, worst_kind
from matrix.answers.link import rate_profile
from matrix.answers.link.series import cut_for
from matrix.answers.matrix import standing
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.site.history import EndHistory, RatioSeries, WindowPair, drawable, series_of
from matrix.answers.site.reports import ENDS, Report, at_end
from matrix.answers.site.site_links import SiteLink, history_of, links_of, results_of
from matrix.answers.site.verdict import (
    MOST_SAID,
    VERBS,
    ClassNews,
    SiteAnswer,
    of_number,
    own_conditions,
    verdict_of,
)
from matrix.answers.words.names import NO_NAMES
from matrix.answers.words.phrases import counted, join
from matrix.answers.words.ratios import PairRatio
from matrix.query.comparison import OF
from matrix.query.filters import Filter
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.states import DOWN, NOT_APPLICABLE
from matrix.statistics.compare.together import DayScatter, Together, days_apart
from matrix.statistics.compare.two_samples import Ratios
from sonar.models import Annotation
from sonar.notation.units import format_count
from sonar.notation.windows import Window

LINKS_COUNTED = ("judged", "slower", "faster", "tested")
# Within less, a site that gets slower little by little cannot be told from its days.
SHORTEST_DRIFT = timedelta(days=14)


def other_classes(
    report: Report, judgement: reading.Judgement, names: Mapping[str, str]
) -> tuple[ClassNews, ...]:
    """Return what is so with those that are tested, the worst first; classes alike are one."""
    alike: dict[tuple[str, str], list[str]] = {}
    for size in report.sites:
        if size != report.query.size and (news := news_of(report, size, judgement, names)):
            alike.setdefault(news, []).append(size)
    groups = [ClassNews(*news, tuple(sizes)) for news, sizes in alike.items()]
    return tuple(sorted(groups, key=lambda classes: KINDS.index(classes.kind)))


def news_of(
    report: Report, size: str, judgement: reading.Judgement, names: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return one of KINDS and the words for it; None where nothing is tested."""
    matrix, name = report.sites[size], report.name
    cells = matrix.cells
    at_either_end = at_end(matrix, "source", name) | at_end(matrix, "destination", name)
    own = at_either_end & (cells.state != NOT_APPLICABLE)
    if not own.any():
        return None
    conditions = own_conditions(judgement, name, size)
    if conditions:
        titles = [words.title(each, names) for each in conditions[:MOST_SAID]]
        more = len(conditions) - len(titles)
        return worst_kind(conditions), join([*titles, *([f"{more} more"] if more else [])])
    if (cells.state[own] == DOWN).all():
        return "down", "all links are in declared downtimes"
    judged, slower, faster, tested = (
        int(getattr(cells, f"{kind}_links")[own].sum()) for kind in LINKS_COUNTED
    )
    if judged:
        usual = judged - slower - faster
        return "usual", f"{of_number(usual, tested)} links " * (usual < tested) + "as usual"
    if not (cells.ok[own].any() or cells.failed[own].any()):
        return "untested", "no tests in this time range"
    return "unknown", "no baselines yet"


def inside_of(report: Report, end: str) -> rate_profile.TransferProfiles | None:
    """Look into the transfers that have the site at this end. One SQL query."""
    ends = [Filter(f"{end}_site", report.name)]
    return rate_profile.read(report.query, report.window, report.all_endpoints, ends, [report.name])


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
    def slower(self) -> int:
        return int((self.ratios.sure & (self.ratios.ratio < 1)).sum())

    @property
    def faster(self) -> int:
        return int((self.ratios.sure & (self.ratios.ratio > 1)).sum())

    @property
    def kind(self) -> str:
        """Return `slower` or `faster` if any link or all together are beyond chance, or `usual`."""
        if self.ratios.sure.any():
            return "slower" if self.slower >= self.faster else "faster"
        return {"same": "usual", "": "unknown"}.get(self.together.kind, self.together.kind)

    def sentence(self, site: str) -> str:
        """Say how the site does at this end against the other side, to be quoted."""
        verb, links = VERBS[self.end], self.together.links
        if not links:
            return (
                f"No link {verb.links} {site} has successful tests on both sides of the comparison."
            )
        factor = factor_words(self.together, self.tests)
        counts = "No single link changed significantly."
        if self.ratios.sure.any():
            slower = f"{format_count(self.slower)} link{'s are' if self.slower != 1 else ' is'}"
            counts = f"Individually, {slower} slower and {format_count(self.faster)} faster."
        return f"{site} {verb.then} at {factor}, on {counted(links, 'link')}. {counts}"


@dataclass(frozen=True)
class ComparedEnds:
    """Two windows, and by end what all links to the site, and from it, have in common."""

    sides: WindowPair
    ends: Mapping[str, Together]


@dataclass(frozen=True)
class NoteEffect(ComparedEnds):
    """The same before and after a note that begins in the window."""

    note: Annotation


@dataclass(frozen=True)
class SiteNow:
    """The links of a site by end, the worst first, their history, and what follows of them.

    ``judgement`` has the conditions that these links are members of, at the end of the window.
    ``comparisons`` are by end, too, if the question asks for one. ``drift`` is the second half of
    a long window against the first.
    """

    links: dict[str, list[SiteLink]]
    histories: dict[str, EndHistory]
    judgement: reading.Judgement
    verdict: SiteAnswer
    effects: list[NoteEffect]
    comparisons: dict[str, EndComparison]
    drift: ComparedEnds | None


def site_now(
    report: Report, notes: Sequence[Annotation], now: datetime, names: Mapping[str, str] = NO_NAMES
) -> SiteNow:
    """Judge a site by its report; ``notes`` are those that a reader may see.

    ``names`` are what the verdict calls sites and endpoints, where that is not their name.

    Three SQL statements; two more to compare, and one where there are notes or a drift.
    """
    links = {end: links_of(report, end) for end in ENDS}
    moment = reading.state_moment(report.window, now)
    own_links = reading.members_q([Filter("site", report.name)], report.all_endpoints)
    judgement = reading.read_open(moment, own_links)
    begun = [note for note in notes if report.window.start <= note.starts_at]
    around = [(note, sides) for note in begun if (sides := WindowPair.around(note.starts_at, now))]
    # A window of weeks is cut in the middle.
    halves, window = None, report.window
    if (length := window.end - window.start) >= SHORTEST_DRIFT:
        middle = (window.start + length / 2).replace(microsecond=0)
        halves = WindowPair(Window(middle, window.end), Window(window.start, middle))
    every = [sides for _, sides in around] + ([halves] if halves else [])
    histories = history_of(report, links, every)
    scatters = day_scatters(report, [sides.own for sides in every], OF[0])
    compared = [
        ComparedEnds(sides, {end: histories[end].together(sides, of[end]) for end in ENDS})
        for sides, of in zip(every, scatters, strict=True)
    ]
    effects = [
        NoteEffect(of.sides, of.ends, note) for (note, _), of in zip(around, compared, strict=False)
    ]
    is_past = not reading.is_now(report.window, now)
    answer = verdict_of(report, links, judgement, is_past=is_past, names=names)
    return SiteNow(
        links,
        histories,
        judgement,
        replace(answer, others=other_classes(report, judgement, names)),
        effects,
        compare(report, links, histories, now),
        compared[-1] if halves else None,
    )


def day_scatters(report: Report, windows: Sequence[Window], of: str) -> list[dict[str, DayScatter]]:
    """Return of each window, by end, how far links scatter before it. One SQL statement at most."""
    query, links = report.query, LinkIndex(report.all_endpoints)
    own = [place.site == report.name for place in links.places]
    choices = np.stack([links.ends(own, end).reshape(links.shape) for end in ENDS])
    of_windows = standing.day_to_day(query.size, query.filters, windows, links, choices, of=of)
    return [
        {end: scatter.taken([number]) for number, end in enumerate(ENDS)} for scatter in of_windows
    ]


def compare(
    report: Report,
    links: Mapping[str, Sequence[SiteLink]],
    histories: Mapping[str, EndHistory],
    now: datetime,
) -> dict[str, EndComparison]:
    """Compare the links of each end as the query asks for it: two SQL statements, or none."""
    query = report.query
    if query.compare is None:
        return {}
    other = query.other(now)
    window = other.window_at(now)
    # How far all links of an end scatter together, where only time is compared.
    scatters: dict[str, DayScatter] = {}
    if query.compare.is_of_time:
        (scatters,) = day_scatters(report, [report.window], query.compare.of)
    there = results_of(report, links, other, window, is_reverse=query.compare.reverse)
    comparisons, all_compared = {}, all_links.build(query, now)
    for end in links:
        names = [(link.source, link.destination) for link in links[end]]
        ratios = all_links.ratios_of(all_compared, names)
        drawn, bucket = drawable(window, [there[end]]), histories[end].series.bucket
        try:
            cut = cut_for(drawn, bucket)
        except ValueError:  # there are too many of this length
            cut = cut_for(drawn)
        series = series_of(there[end], histories[end].usual, window, cut)
        apart = days_apart(report.window, window)
        together = ratios_together(ratios, query.compare.of, scatters.get(end), apart)
        comparisons[end] = EndComparison(
            end, query.other_words(), window, ratios, series, together, CountWords.of(query, now)
        )
    return comparisons


def beyond_words(changes: Grid | None, site: str, comparison: EndComparison) -> str:
    """Say whether the links of others changed as much; nothing where that cannot be said."""
    own = all_links.site_net_change(changes, site, comparison.end) if changes else None
    has_changed = comparison.kind in ("slower", "faster")
    verb = VERBS[comparison.end].then
    return own.sentence(f"this site {verb}", has_changed=has_changed) if own else ""
