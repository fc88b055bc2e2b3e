"""The descriptions of sites/ and of the report on one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, create_model

from matrix.answers.causes.attribution import KINDS as PEER_KINDS
from matrix.answers.series import BUCKETS
from matrix.answers.site.overview import KEYS
from matrix.answers.site.ranking import ENDS
from matrix.answers.site.sites_query import LONGEST_SEARCH
from matrix.answers.site.verdict import KINDS
from matrix.api.registry.sites import REGISTERED, SINCE, NewSite
from matrix.api.schema.compared import TogetherAnswer
from matrix.api.schema.compared_site import SiteComparison
from matrix.api.schema.describe import described
from matrix.api.schema.diagnosis import LinkRuleSays
from matrix.api.schema.inside import InsideFigures
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.queries import (
    COMPARE,
    LINKS_FILTERED,
    METHOD_FILTERED,
    SIZE_CLASS,
    WINDOW,
    Echo,
    compared_by,
)
from matrix.api.schema.schemas import Answer, CellLevel, CellState, Listed
from matrix.http.negotiation import FIGURE, TABLE
from matrix.query.filters import PROFILE_FILTERS

FIELDS: dict[str, Any] = {
    name: (field.annotation, ...) for name, field in NewSite.model_fields.items()
} | {"paused_since": (datetime | None, ...)}
RegisteredSite = create_model(
    "RegisteredSite", __base__=Answer, __doc__="A site as it is registered.", **FIELDS
)


class ListedSite(RegisteredSite):  # type: ignore[misc, valid-type]
    """A site with its endpoints and what was measured there; rates are of its cells."""

    endpoints: list[str]
    retired_endpoints: list[str]
    simulated: bool
    source_mean_mb_s: float | None
    destination_mean_mb_s: float | None
    ok: int
    failed: int
    success: float | None
    last: datetime | None
    failing: int
    slower_as_source: int
    slower_as_destination: int
    ratio_as_source: float | None
    ratio_as_destination: float | None


class SiteStanding(Answer):
    """How a site compares at one end, in one size class, with the sites of its tier."""

    mean_mb_s: float | None
    cells: int
    ok: int
    failed: int
    success: float | None
    last: datetime | None
    rank: int | None
    ranked: int
    peers_median_mb_s: float | None
    ratio: float | None
    fastest_mb_s: float | None
    fastest_partner: str | None
    fastest_of_wan: float | None


class SiteCell(Answer):
    """A cell of the matrix of sites, or a link."""

    source: str
    destination: str
    mean_mb_s: float | None
    std_mb_s: float | None
    ok: int
    failed: int
    last: datetime | None
    state: CellState
    level: CellLevel
    now_mb_s: float | None
    usual_mb_s: float | None
    since: datetime | None


class SiteVerdict(Answer):
    """How the site is doing against its own past, in short sentences; times are in UTC."""

    kind: Annotated[str, Field(json_schema_extra={"enum": list(KINDS)})]
    sentence: str


class SiteAgainstPeers(Answer):
    """How fast the site is against its peers with the same partners, whatever is usual for it.

    `kind` is that of its slower end, see `causes/`.
    """

    kind: Annotated[str, Field(json_schema_extra={"enum": list(PEER_KINDS)})]
    sentence: str


class SiteFigures(Answer):
    """The links of one end together; rates and their ratio are those of the median link."""

    links: int
    sites: int
    now_mb_s: float | None
    usual_mb_s: float | None
    ratio: float | None
    failing: int
    slower: int
    faster: int
    tested: int
    ok: int
    failed: int
    success: float | None


class SiteLinkRow(Answer):
    """A link as it is now, and in the window; ``partner`` is the site at its other end."""

    source: str
    destination: str
    partner: str
    state: CellState
    partly_failing: bool
    level: CellLevel
    now_mb_s: float | None
    usual_mb_s: float | None
    ratio: float | None
    since: datetime | None
    streak: int
    mean_mb_s: float | None
    std_mb_s: float | None
    size_mean_bytes: float | None
    size_std_bytes: float | None
    ok: int
    failed: int
    last: datetime | None


class RatioPoint(Answer):
    """A bucket: links with a ratio to their usual rate, the middle half of it, and tests."""

    start: datetime
    links: int
    ratio_low: float | None
    ratio_median: float | None
    ratio_high: float | None
    ok: int
    failed: int


class RatioLine(Answer):
    """The links of one end over time; buckets without a test are left out."""

    bucket: Annotated[str, Field(json_schema_extra={"enum": list(BUCKETS)})]
    points: list[RatioPoint]


class WindowBounds(Answer):
    start: datetime
    end: datetime


class SiteSides(Answer):
    """All links of the site together, by end, in the window `after` against that `before`."""

    after: WindowBounds
    before: WindowBounds
    as_source: TogetherAnswer
    as_destination: TogetherAnswer


class SiteNote(SiteSides):
    """A note on the site that begins in the window: the same as `compare.around` its beginning."""

    id: int
    text: str
    starts_at: datetime


class SiteEnd(Answer):
    """A site as source, or as destination: by size class, its cells, and its links.

    ``links`` begins with the worst against its usual rate, ``worst`` with the lowest mean.
    """

    classes: dict[str, SiteStanding]
    cells: list[SiteCell]
    worst: list[SiteCell]
    failing: list[SiteCell]
    figures: SiteFigures
    links: list[SiteLinkRow]
    over_time: RatioLine
    inside: InsideFigures | None


class SiteFinding(Answer):
    """What stands out, and what to do."""

    title: str
    sentence: str
    advice: str


class SiteErrors(Answer):
    """Errors of one kind; ``newest`` is the id of a transfer."""

    where: str
    error: str
    count: int
    links: int
    first: datetime
    last: datetime
    newest: UUID


class PlannedLoad(Answer):
    """Tests of some links, per day and in MB/s on average."""

    links: int
    tests_per_day: float
    bytes_per_day: float
    rate_mb_s: float | None


class PlannedWays(Answer):
    """What meshes plan out of a site and into it."""

    out: PlannedLoad
    into: PlannedLoad = Field(alias="in")


class PlannedLine(PlannedWays):
    """That of one mesh in one size class."""

    mesh: str
    size: str


class SitePlan(PlannedWays):
    """That of all meshes; ``waiting`` are due tests by the reason why they wait."""

    meshes: list[PlannedLine]
    waiting: dict[str, int]
    queued: int
    running: int


class SiteReport(Answer):
    """A site as source and as destination in a window; `comparison` is there if it compares.

    `drift` is the second half of a window of two weeks or more against its first.
    """

    query: Echo
    unit: str
    simulated: bool
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
    diagnoses: list[LinkRuleSays]
    errors: list[SiteErrors]
    errors_total: int
    planned: SitePlan
    comparison: SiteComparison | None = None


ENDPOINTS = {"endpoints": ["GLASGOW_DATADISK"], "retired_endpoints": []}
QUERY = {
    "size": "large",
    "window": "7d",
    "start": "2026-11-13T12:01:00Z",
    "end": "2026-11-20T12:01:00Z",
}
LISTED = REGISTERED | {
    **SINCE,
    **ENDPOINTS,
    "simulated": False,
    "source_mean_mb_s": 12.0,
    "destination_mean_mb_s": None,
    "ok": 2,
    "failed": 1,
    "success": 0.666667,
    "last": "2026-11-20T11:30:30Z",
    "failing": 1,
    "slower_as_source": 0,
    "slower_as_destination": 4,
    "ratio_as_source": 1.01,
    "ratio_as_destination": 0.31,
}
STANDING = {
    "mean_mb_s": 12.0,
    "cells": 1,
    "ok": 2,
    "failed": 1,
    "success": 0.666667,
    "last": "2026-11-20T11:30:30Z",
    "rank": 1,
    "ranked": 4,
    "peers_median_mb_s": 9.5,
    "ratio": 1.263158,
    "fastest_mb_s": 14.0,
    "fastest_partner": "RAL",
    "fastest_of_wan": 0.018667,
}
CELL = {
    "source": "GLASGOW",
    "destination": "RAL",
    "mean_mb_s": 12.0,
    "std_mb_s": 2.828427,
    "ok": 2,
    "failed": 1,
    "last": "2026-11-20T11:30:30Z",
    "state": "measured",
    "level": "slower",
    "now_mb_s": 3.7,
    "usual_mb_s": 12.3,
    "since": "2026-11-19T20:15:00Z",
}
FIGURES = {
    "links": 10,
    "sites": 10,
    "now_mb_s": 3.7,
    "usual_mb_s": 12.3,
    "ratio": 0.300813,
    "failing": 0,
    "slower": 4,
    "faster": 0,
    "tested": 10,
    "ok": 420,
    "failed": 0,
    "success": 1.0,
}
LINK_ROW = CELL | {
    "source": "RAL_DATADISK",
    "destination": "GLASGOW_DATADISK",
    "partner": "RAL",
    "partly_failing": False,
    "ratio": 0.300813,
    "streak": 5,
    "size_mean_bytes": 2_000_000_000.0,
    "size_std_bytes": 0.0,
}
POINT = {
    "start": "2026-11-20T06:00:00Z",
    "links": 10,
    "ratio_low": 0.29,
    "ratio_median": 0.31,
    "ratio_high": 0.98,
    "ok": 15,
    "failed": 0,
}
NO_CHANGE = {
    "ratio": 0.99,
    "low": 0.95,
    "high": 1.03,
    "p": 0.61,
    "links": 10,
    "ok": 246,
    "other_ok": 251,
}
NOTE = {
    "id": 7,
    "text": "new firmware of the switch",
    "starts_at": "2026-11-16T09:30:00Z",
    "after": {"start": "2026-11-16T09:30:00Z", "end": "2026-11-20T12:01:00Z"},
    "before": {"start": "2026-11-12T06:59:00Z", "end": "2026-11-16T09:30:00Z"},
    "as_source": NO_CHANGE,
    "as_destination": NO_CHANGE,
}
END = {
    "classes": {"large": STANDING},
    "cells": [CELL],
    "worst": [],
    "failing": [],
    "figures": FIGURES,
    "links": [LINK_ROW],
    "over_time": {"bucket": "6h", "points": [POINT]},
    "inside": None,
}
LOAD = {
    "links": 3,
    "tests_per_day": 72.0,
    "bytes_per_day": 144_000_000_000.0,
    "rate_mb_s": 1.666667,
}
REPORT = {
    "query": QUERY,
    "unit": "MB/s",
    "simulated": False,
    "site": REGISTERED | SINCE,
    **ENDPOINTS,
    "verdict": {
        "kind": "slower",
        "sentence": "Slower than usual from 4 of 10 sites (0.30×, since 19 Nov 20:15). 16 other "
        "links are as usual. Small and medium files: as usual.",
    },
    "against_peers": {
        "kind": "usual",
        "sentence": "Similar to its peers: sends at 83 % of what its partners reach elsewhere "
        "(73–94 %, 10 partners). Receiving: 98 % (81–120 %, 10 partners).",
    },
    "as_source": END,
    "as_destination": END,
    "notes": [NOTE],
    "drift": None,
    "findings": [],
    "diagnoses": [],
    "errors": [],
    "errors_total": 0,
    "planned": {
        "out": LOAD,
        "in": LOAD,
        "meshes": [{"mesh": "uk", "size": "large", "out": LOAD, "in": LOAD}],
        "waiting": {"cap": 1},
        "queued": 0,
        "running": 1,
    },
}
LISTED_CSV = (
    "name,cloud,tier,country,...,success,last,failing,...\n"
    "GLASGOW,UK,2,GB,...,0.666667,2026-11-20T11:30:30Z,1,...\n"
)
CELLS_CSV = (
    "source,destination,size,mean_mb_s,...,state,level,now_mb_s,usual_mb_s,since\n"
    "GLASGOW,RAL,large,12.0,...,measured,slower,3.7,12.3,2026-11-19T20:15:00Z\n"
)
ORDERINGS = [f"{sign}{name}" for name in KEYS for sign in ("", "-")]

ALL_SITES = described(
    "All sites",
    answer=Listed("sites", ListedSite, also={"query": {"$ref": "#/components/schemas/Echo"}}),
    parameters=[
        SIZE_CLASS,
        *WINDOW,
        *LINKS_FILTERED,
        *METHOD_FILTERED,
        text(
            "search",
            "Only sites where each word is in an attribute.",
            "GLAS",
            maxLength=LONGEST_SEARCH,
        ),
        choice("ordering", ORDERINGS, "What to sort by; - for descending order.", "name"),
        *paging(),
    ],
    formats=("json", "csv", "ndjson"),
    example={"query": QUERY, "sites": [LISTED], "next": None},
    csv_example=LISTED_CSV,
    tag="registry",
)
FORMATS = (*TABLE, *FIGURE)

REPORT_ON_SITE = described(
    "The report on a site",
    answer=SiteReport,
    parameters=[
        *(SIZE_CLASS, *WINDOW, *METHOD_FILTERED),
        *(*COMPARE, *compared_by(PROFILE_FILTERS)),
        choice("end", ENDS, "Of a figure: links from the site (source, by default) or to it."),
    ],
    errors=(404,),
    formats=FORMATS,
    example=REPORT,
    csv_example=CELLS_CSV,
    tag="results",
)
