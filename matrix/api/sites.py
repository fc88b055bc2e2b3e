"""/api/v1/sites/ and /api/v1/sites/<name>/: what the pages of sites show, and the registry."""

from typing import Annotated

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.events.reading import events_of_site
from matrix.answers.site import overview, reports
from matrix.answers.site.reports import ENDS
from matrix.answers.site.site_now import site_now
from matrix.api import site_report
from matrix.api.base import ApiView
from matrix.api.parameters import PAGING, PageRequest, TableCursor, following, one_of, wrong
from matrix.api.rendering import as_csv, as_figure, as_json, as_rows, file_name
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.link_parts import ComparedRates
from matrix.api.schema.records import At, Number, UnixTime, record
from matrix.api.schema.schemas import Listed
from matrix.http.negotiation import FIGURE, LIST, TABLE, asked_format
from matrix.plots.site import end_figures
from matrix.plots.standalone import FigureTitle
from matrix.query.filters import PROFILE_FILTERS
from matrix.store import downtimes, notes


class ListedSite(site_report.RegisteredSite):  # type: ignore[misc, valid-type]
    """A site with its endpoints and the rates of its links."""

    endpoints: list[str]
    retired_endpoints: list[str]
    simulated: bool
    source_mean_mb_s: Annotated[Number, At("source.mean")]
    destination_mean_mb_s: Annotated[Number, At("destination.mean")]
    ok: int
    failed: int
    success: Number
    last: UnixTime
    failing: int
    slower_as_source: Annotated[int, At("source.slower")]
    slower_as_destination: Annotated[int, At("destination.slower")]
    ratio_as_source: Annotated[Number, At("source.to_usual")]
    ratio_as_destination: Annotated[Number, At("destination.to_usual")]


ECHO = {
    "$ref": "#/components/schemas/Echo",
    "description": "The query parameters, including default values.",
}
ORDERINGS = [f"{sign}{name}" for name in overview.KEYS for sign in ("", "-")]

ALL_SITES = described(
    "List sites",
    answer=Listed("sites", ListedSite, also={"query": ECHO}),
    parameters=[
        schema.SIZE_CLASS,
        *schema.WINDOW,
        *schema.LINKS_FILTERED,
        *schema.METHOD_FILTERED,
        schema.text(
            "search",
            "Only sites for which each word of this text occurs in the name or another attribute.",
            "GLAS",
            maxLength=overview.LONGEST_SEARCH,
        ),
        schema.choice(
            "ordering", ORDERINGS, "Field to sort by. A leading `-` gives descending order.", "name"
        ),
        *schema.paging(),
    ],
    formats=("json", "csv", "ndjson"),
    tag="registry",
)
FORMATS = (*TABLE, *FIGURE)

REPORT_ON_SITE = described(
    "Get the report on a site",
    answer=site_report.SiteReport,
    parameters=[
        *(schema.SIZE_CLASS, *schema.WINDOW, *schema.METHOD_FILTERED),
        *(*schema.COMPARE, *schema.compared_by(PROFILE_FILTERS)),
        schema.choice(
            "end",
            ENDS,
            "Links that the chart shows: from the site (`source`) or to the site (`destination`). "
            "Default: `source`. Requires format=plotly or format=html.",
        ),
    ],
    errors=(404,),
    formats=FORMATS,
    tag="results",
)

OWN = ("format", *PAGING)


class SitesView(ApiView):
    @ALL_SITES
    def get(self, request: Request) -> HttpResponseBase:
        """Returns all sites with their results in one size class and time range."""
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, TableCursor.parse)
        # The next page is of the same window.
        cursor = page.after or TableCursor(timezone.now())
        query, search, ordering = overview.sites_question(request.query_params, also=OWN)
        grid, sites = overview.build(query, cursor.moment)
        shown = overview.ordered(overview.searched(sites, search), ordering)
        rows = [
            record(
                ListedSite,
                site,
                **site_report.of_site(site.site),
                **site_report.names_of(site.endpoints),
                ok=site.source.ok + site.destination.ok,
                failed=site.source.failed + site.destination.failed,
            )
            for site in shown
        ]
        if form == "json":
            end = cursor.rows + page.size
            after = cursor.after(page.size) if end < len(rows) else None
            answer = {
                "query": site_report.echo_of(query, grid.window),
                "sites": rows[cursor.rows : end],
            }
            return as_json(answer | {"next": following(request, after)})
        return as_rows(rows, form, LISTED, file_name("sites", query=query, window=grid.window))


class SiteView(ApiView):
    @REPORT_ON_SITE
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """Returns the rates, rank, problems and scheduled tests of a site.

        The CSV response contains the cells of the site in all size classes. With `compare`, the CSV
        response contains the compared links instead. The formats `plotly` and `html` contain the
        chart of the links from or to the site.
        """
        query = overview.compared_question(request.query_params, also=("format", "end"))
        form, end = asked_format(request, FORMATS), one_of(request.query_params, "end", ENDS)
        if end and form not in FIGURE:
            raise wrong("end", "“end” can be used only with format=plotly or format=html.")
        site = overview.registered(name)
        now = timezone.now()
        report = reports.build(site.name, query, now)
        saved_as = file_name("site", site.name, query=query, window=report.window)
        if form == "csv" and query.compare is None:
            # That with itself is in its row and in its column, and comes once.
            cells = {
                (size, cell.source, cell.destination): cell
                for size in report.sites
                for end in ENDS
                for cell in report.cells(end, size)
            }
            rows = [
                record(site_report.SiteCell, cell) | {"size": key[0]} for key, cell in cells.items()
            ]
            return as_csv(rows, CELLS, saved_as)
        notes_on_site = notes.on_site(site, report.window, request.user)
        site_is = site_now(report, notes_on_site, now)
        if form in FIGURE:
            declared = downtimes.declared(notes.downtimes_of(site, report.window, now))
            ends = end_figures(report, site_is, declared, notes_on_site, events_of_site(report))
            end = end or ENDS[0]
            rates = f"{report.name} as {end}, {query.size} files: link rates"
            simulated = report.links.simulated
            title = FigureTitle(
                f"{rates} relative to their baselines", report.window, "", simulated=simulated
            )
            saved_as = file_name("site", site.name, "as", end, query=query, window=report.window)
            return as_figure(ends[end], title, form, saved_as)
        if form == "csv":
            rows = [
                {"end": end} | row
                for end in site_is.comparisons
                for row in site_report.compared_links(site_is, end)
            ]
            return as_csv(rows, COMPARED_LINKS, saved_as)
        return as_json(site_report.of_report(report, site, site_is, now))


LISTED = tuple(ListedSite.model_fields)
COMPARED_LINKS = ("end", "source", "destination", "partner", *ComparedRates.model_fields, "change")
CELLS = ("source", "destination", "size", *list(site_report.SiteCell.model_fields)[2:])
