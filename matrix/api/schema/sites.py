"""The descriptions of sites/ and of the report on one of them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from matrix.answers.site.overview import KEYS
from matrix.answers.site.sites_query import LONGEST_SEARCH
from matrix.api.registry.sites import REGISTERED
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.queries import LINKS_FILTERED, METHOD_FILTERED, SIZE_CLASS, WINDOW, Echo
from matrix.api.schema.schemas import Answer, CellState, Listed


class RegisteredSite(Answer):
    """A site as it is registered."""

    name: str
    cloud: str
    tier: int
    country: str
    latitude: float | None
    longitude: float | None
    wan_gbit_s: float | None


class ListedSite(RegisteredSite):
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


class SiteStanding(Answer):
    """How a site stands at one end, in one size class, among the sites of its tier."""

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


class SiteEnd(Answer):
    """A site as source, or as destination: by size class, its cells, and its worst links."""

    classes: dict[str, SiteStanding]
    cells: list[SiteCell]
    worst: list[SiteCell]
    failing: list[SiteCell]


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
    """Tests of some links, by the day and in MB/s on average."""

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
    """A site as source and as destination in a window."""

    query: Echo
    unit: str
    simulated: bool
    site: RegisteredSite
    endpoints: list[str]
    retired_endpoints: list[str]
    as_source: SiteEnd
    as_destination: SiteEnd
    findings: list[SiteFinding]
    errors: list[SiteErrors]
    errors_total: int
    planned: SitePlan


ENDPOINTS = {"endpoints": ["GLASGOW_DATADISK"], "retired_endpoints": []}
QUERY = {
    "size": "large",
    "window": "7d",
    "start": "2026-11-13T12:01:00Z",
    "end": "2026-11-20T12:01:00Z",
}
LISTED = REGISTERED | {
    **ENDPOINTS,
    "simulated": False,
    "source_mean_mb_s": 12.0,
    "destination_mean_mb_s": None,
    "ok": 2,
    "failed": 1,
    "success": 0.666667,
    "last": "2026-11-20T11:30:30Z",
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
    "site": REGISTERED,
    **ENDPOINTS,
    "as_source": {"classes": {"large": STANDING}, "cells": [CELL], "worst": [], "failing": []},
    "as_destination": {"classes": {}, "cells": [], "worst": [], "failing": []},
    "findings": [],
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
    "name,cloud,tier,country,latitude,longitude,wan_gbit_s,endpoints,...,ok,failed,success,last\n"
    "GLASGOW,UK,2,GB,55.87,-4.29,6.0,GLASGOW_DATADISK,...,2,1,0.666667,2026-11-20T11:30:30Z\n"
)
CELLS_CSV = (
    "source,destination,size,mean_mb_s,std_mb_s,ok,failed,last,state\n"
    "GLASGOW,RAL,large,12.0,2.828427,2,1,2026-11-20T11:30:30Z,measured\n"
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
        text("search", "Every word is in an attribute.", "GLAS", maxLength=LONGEST_SEARCH),
        choice("ordering", ORDERINGS, "What to order by; - for the greatest first.", "name"),
        *paging(),
    ],
    formats=("json", "csv", "ndjson"),
    example={"query": QUERY, "sites": [LISTED], "next": None},
    csv_example=LISTED_CSV,
    tag="registry",
)
REPORT_ON_SITE = described(
    "The report on a site",
    answer=SiteReport,
    parameters=[SIZE_CLASS, *WINDOW, *METHOD_FILTERED],
    errors=(404,),
    formats=("json", "csv"),
    example=REPORT,
    csv_example=CELLS_CSV,
    tag="results",
)
