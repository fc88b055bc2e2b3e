"""The report on a site as the API answers it."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from matrix.answers import other_origins
from matrix.answers.causes import words
from matrix.answers.causes.attribution import KINDS as PEER_KINDS
from matrix.answers.comparison import all_links
from matrix.answers.conditions import words as judged
from matrix.answers.conditions.lines import KINDS
from matrix.answers.diagnosis import site_diagnosis
from matrix.answers.link.series import BUCKETS
from matrix.answers.site import loads
from matrix.answers.site.failures import Failures, errors_of
from matrix.answers.site.loads import IN, OUT, Load, PlannedTests
from matrix.answers.site.reports import ENDS, Report, ReportCell, Standing
from matrix.answers.site.site_links import EndFigures, SiteLink, figures_of
from matrix.answers.site.site_now import ComparedEnds, SiteNow, beyond_words, inside_of
from matrix.answers.site.verdict import own_conditions
from matrix.api.registry.sites import NewSite, of_testing
from matrix.api.registry.values import record_of
from matrix.api.schema.link_parts import ComparedRates, InsideFigures, LinkRuleSays, RuleSays
from matrix.api.schema.parameters import Echo
from matrix.api.schema.records import (
    As,
    At,
    Digits,
    Json,
    MomentOrNull,
    Number,
    Second,
    Text,
    UnixTime,
    record,
    unix_time,
)
from matrix.api.schema.schemas import Answer, CellLevel, CellState, OtherOrigins, like, word_of
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.compare.together import Together
from sonar.models import Condition, Site
from sonar.notation.windows import Window, format_time

DIGITS = dict.fromkeys(("ratio", "low", "high", "p"), Digits)


class TogetherAnswer(like(Together, "ratio low high p links ok other_ok", **DIGITS)):  # type: ignore[misc]
    """The common factor by which the rates of several links differ between the two sides.

    Each link is compared with the same link on the other side. Links with more tests have more
    weight.
    """


class ComparedSiteLink(ComparedRates):
    """A link of the site, with its rates on both sides of a comparison."""

    source: str
    destination: str
    partner: str
    change: Literal["", "slower", "faster"]


class SiteEndComparison(Answer):
    """The links of the site in one direction, on the two sides of a comparison.

    For `ratio`, each link is compared with the same link on the other side. Links with more tests
    have more weight.
    """

    kind: Literal["slower", "faster", "usual", "unknown"]
    sentence: str
    ratio: Annotated[Digits, At("together.ratio")]
    low: Annotated[Digits, At("together.low")]
    high: Annotated[Digits, At("together.high")]
    p: Annotated[Digits, At("together.p")]
    compared: Annotated[int, At("together.links")]
    ok: Annotated[int, At("together.ok")]
    other_ok: Annotated[int, At("together.other_ok")]
    slower: int
    faster: int
    beyond: str
    links: list[ComparedSiteLink]


class SiteComparison(Answer):
    """The links of a site on the two sides of a comparison."""

    description: str
    as_source: SiteEndComparison
    as_destination: SiteEndComparison


RegisteredSite = record_of(
    NewSite, "A site as registered.", "RegisteredSite", paused_since=datetime | None
)

STANDING = (
    "mean_mb_s cells ok failed success last rank ranked peers_median_mb_s ratio fastest_mb_s "
    "fastest_partner"
)


class SiteRank(like(Standing, STANDING, last=UnixTime, fastest_partner=Text)):  # type: ignore[misc]
    """The rank of a site among the sites of its tier, for one size class and direction."""

    fastest_of_wan: Number


# Of a cell and of a link.
WORDS = {"state": CellState, "level": CellLevel, "since": UnixTime, "last": UnixTime}
CELL = "source destination mean_mb_s std_mb_s ok failed last state level now_mb_s usual_mb_s since"


class SiteCell(like(ReportCell, CELL, **WORDS)):  # type: ignore[misc]
    """A cell of the matrix of sites, or a link between endpoints."""


class SiteVerdict(Answer):
    """A summary of the status of the site, from the conditions of its links."""

    kind: Annotated[str, word_of(KINDS)]
    sentence: str


class SiteAgainstPeers(Answer):
    """The rate of the site relative to its peers with the same partners (see `causes/`)."""

    kind: Annotated[str, word_of(PEER_KINDS)]
    sentence: str


FIGURES = "links sites now_mb_s usual_mb_s ratio failing slower faster tested ok failed success"


class SiteFigures(like(EndFigures, FIGURES)):  # type: ignore[misc]
    """Figures of all links of the site in one direction."""


LINK = (
    "source destination partner state partly_failing level now_mb_s usual_mb_s ratio since streak "
    "mean_mb_s std_mb_s size_mean_bytes size_std_bytes ok failed last"
)
SIZES = dict.fromkeys(("size_mean_bytes", "size_std_bytes"), Number)
PARTLY = {"partly_failing": Annotated[bool, At("partly")]}


class SiteLinkRow(like(SiteLink, LINK, **WORDS, **SIZES, **PARTLY)):  # type: ignore[misc]
    """A link of the site, with its current rate and its results in the time range."""


class RatioPoint(Answer):
    """A bucket with the distribution of rate / baseline over the links."""

    start: Annotated[datetime, As(unix_time)]
    links: int
    ratio_low: Number
    ratio_median: Number
    ratio_high: Number
    ok: int
    failed: int


class RatioLine(Answer):
    """The rates of the links in one direction relative to their baselines, over time."""

    bucket: Annotated[str, word_of(BUCKETS)]
    points: list[RatioPoint]


class WindowBounds(Answer):
    """A time range."""

    start: Second
    end: Second


class SiteSides(Answer):
    """The change in the rates of the site between two time ranges, by direction."""

    after: Annotated[WindowBounds, At("sides.own")]
    before: Annotated[WindowBounds, At("sides.other")]
    as_source: TogetherAnswer
    as_destination: TogetherAnswer


class NoteStart(Answer):
    id: Annotated[int, At("note.id")]
    text: Annotated[str, At("note.text")]
    starts_at: Annotated[Second, At("note.starts_at")]


class SiteNote(SiteSides, NoteStart):
    """A note whose period begins in the time range, with the rates of the site before and after."""


class SiteEnd(Answer):
    """A site as a source or as a destination."""

    classes: dict[str, SiteRank]
    cells: list[SiteCell]
    worst: list[SiteCell]
    failing: list[SiteCell]
    figures: SiteFigures
    links: list[SiteLinkRow]
    over_time: RatioLine
    inside: InsideFigures | None


class SiteFinding(Answer):
    """An open condition of the site, with the recommended first action."""

    condition: Annotated[int, At("id")]
    type: Annotated[str, word_of(Condition.Type.values)]
    scope: Annotated[str, word_of(Condition.Scope.values)]
    title: str
    sentence: str
    advice: str
    since: Second
    since_low: Second
    since_high: Second
    confirmed_at: MomentOrNull


ERRORS = "where error count links first last newest"


class SiteErrors(like(Failures, ERRORS, first=Second, last=Second)):  # type: ignore[misc]
    """Failed tests of the site that have the same cause."""


class PlannedLoad(Answer):
    """The scheduled tests of a set of links."""

    links: int
    tests_per_day: float
    bytes_per_day: float
    rate_mb_s: Number


class PlannedWays(Answer):
    """Tests that meshes schedule from and to the site."""

    out: PlannedLoad
    into: PlannedLoad = Field(alias="in")


class PlannedLine(PlannedWays):
    """The scheduled tests of one mesh in one size class."""

    mesh: str
    size: str


class SitePlan(PlannedWays):
    """The scheduled tests from and to the site, for all meshes."""

    meshes: list[PlannedLine]
    waiting: dict[str, int]
    because: dict[str, list[str]]
    queued: int
    running: int


class SiteReport(Answer):
    """The report on a site in one size class and time range."""

    query: Echo
    unit: str
    simulated: bool
    other_origins: OtherOrigins
    site: RegisteredSite  # type: ignore[valid-type]
    endpoints: list[str]
    retired_endpoints: list[str]
    verdict: SiteVerdict
    against_peers: SiteAgainstPeers
    as_source: SiteEnd
    as_destination: SiteEnd
    notes: list[SiteNote]
    drift: SiteSides | None
    findings: list[SiteFinding]
    assessed_at: MomentOrNull
    errors: list[SiteErrors]
    errors_total: int
    planned: SitePlan
    diagnoses: list[LinkRuleSays]
    comparison: SiteComparison | None = None


def of_report(report: Report, site: Site, site_is: SiteNow, now: datetime) -> Json:
    judgement, size = site_is.judgement, report.query.size
    own = [
        each
        for is_confirmed in (True, False)
        for each in own_conditions(judgement, report.name, size, confirmed=is_confirmed)
    ]
    comparison: Json = {}
    if site_is.comparisons:
        others = all_links.changes(report.query, now)
        comparison = {"description": report.query.other_words()}
        for end, compared in site_is.comparisons.items():
            comparison[f"as_{end}"] = record(
                SiteEndComparison,
                compared,
                sentence=compared.sentence(report.name),
                beyond=beyond_words(others, report.name, compared),
                links=list(compared_links(site_is, end)),
            )
    return record(
        SiteReport,
        report,
        query=echo_of(report.query, report.window),
        unit="MB/s",
        simulated=report.links.simulated,
        other_origins=other_origins.of_grid(report.links).counts,
        site=of_site(site),
        **names_of(report.endpoints),
        verdict=site_is.verdict,
        against_peers=words.site_conclusion(report.sites[size], report.name),
        **{f"as_{end}": of_end(report, end, site, site_is) for end in ENDS},
        notes=[of_sides(SiteNote, effect) for effect in site_is.effects],
        drift=site_is.drift and of_sides(SiteSides, site_is.drift),
        findings=[
            record(
                SiteFinding,
                each,
                title=judged.title(each),
                sentence=judged.sentence(each),
                advice=judged.advice(each),
            )
            for each in own
        ],
        assessed_at=judgement.as_of,
        **{name: part for name, part in errors_of(report).items() if name != "errors_left"},
        planned=of_plan(loads.plan_for([endpoint.id for endpoint in report.endpoints]), now),
        diagnoses=[
            {"source": link.source, "destination": link.destination}
            | record(RuleSays, link.diagnosis)
            for link in site_diagnosis.diagnosed_links(report, judgement, now)
        ],
        **({"comparison": comparison} if comparison else {}),
    )


def names_of(endpoints: Collection[EndpointInfo]) -> Json:
    retired = [each.name for each in endpoints if each.retired]
    in_use = [each.name for each in endpoints if not each.retired]
    return {"endpoints": in_use, "retired_endpoints": retired}


def of_end(report: Report, end: str, site: Site, site_is: SiteNow) -> Json:
    links, history = site_is.links[end], site_is.histories[end]
    series = history.series
    arrays = (series.starts, series.links, series.low, series.median, series.high)
    tested = series.ok + series.failed > 0
    columns = (array[tested].tolist() for array in (*arrays, series.ok, series.failed))
    points = [
        record(RatioPoint, **dict(zip(RatioPoint.model_fields, point, strict=True)))
        for point in zip(*columns, strict=True)
    ]
    return record(
        SiteEnd,
        classes={
            size: record(SiteRank, standing, fastest_of_wan=standing.of_capacity(site.wan_gbit_s))
            for size, standing in report.standings(end).items()
        },
        cells=report.cells(end),
        worst=report.worst(end),
        failing=report.failing(end),
        figures=figures_of(links),
        links=[
            record(SiteLinkRow, link, size_mean_bytes=mean, size_std_bytes=std)
            for link, (mean, std) in zip(links, history.sizes(), strict=True)
        ],
        over_time={"bucket": series.bucket, "points": points},
        inside=inside_of(report, end),
    )


def of_sides(answer: type[SiteSides], compared: ComparedEnds) -> Json:
    return record(answer, compared, **{f"as_{end}": compared.ends[end] for end in ENDS})


def of_plan(plan: PlannedTests, now: datetime) -> Json:
    def both(out: Load, into: Load) -> Json:
        return {OUT: record(PlannedLoad, out), IN: record(PlannedLoad, into)}

    lines = plan.lines()
    return {
        **both(plan.of(direction=OUT), plan.of(direction=IN)),
        "meshes": [{"mesh": mesh, "size": size} | both(*loads) for mesh, size, *loads in lines],
        "waiting": {reason: count for reason, count, _ in plan.waiting()},
        "because": plan.because(now),
        "queued": plan.probes("queued"),
        "running": plan.probes("running"),
    }


def echo_of(query: MatrixQuery, window: Window) -> Json:
    """Say what was asked, as the answer of matrix/ does."""
    own = ("from", "to", "rows", "columns", "stat")
    params = {name: texts for name, texts in query.to_params().items() if name not in own}
    times = {"start": format_time(window.start), "end": format_time(window.end)}
    return params | {"size": query.size, "window": query.window or None} | times


def of_site(site: Site) -> Json:
    times = of_testing(site)
    others = [name for name in NewSite.model_fields if name not in times]
    return {name: getattr(site, name) for name in others} | times


def compared_links(site_is: SiteNow, end: str) -> Iterator[Json]:
    """Yield the links of an end in the order of the report, with both sides."""
    comparison = site_is.comparisons[end]
    rows = zip(site_is.links[end], comparison.pairs, comparison.ratios.sure.tolist(), strict=True)
    for link, pair, changed in rows:
        ends = {name: getattr(link, name) for name in ("source", "destination", "partner")}
        yield ends | record(ComparedRates, pair) | {"change": pair.kind if changed else ""}
