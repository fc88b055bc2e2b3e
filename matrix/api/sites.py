"""/api/v1/sites/ and /api/v1/sites/<name>/: what the pages of sites show, and the registry."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.diagnosis import site_diagnosis
from matrix.answers.events.near import events_of_site
from matrix.answers.site import overview, question, reports, sites_query
from matrix.answers.site.overview import SiteOverview
from matrix.answers.site.ranking import ENDS
from matrix.answers.site.reports import Report
from matrix.answers.site.site_now import site_now
from matrix.api import figures
from matrix.api.base import ApiView
from matrix.api.compared_site import compared_links, of_comparison
from matrix.api.diagnosis import of_rule
from matrix.api.numbers import number, time
from matrix.api.pagination import PAGING, PageRequest, TableCursor, following
from matrix.api.parameters import one_of, wrong
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson
from matrix.api.registry.sites import SITES
from matrix.api.schema.compared import ComparedRates
from matrix.api.schema.sites import ALL_SITES, FORMATS, REPORT_ON_SITE
from matrix.api.site_report import Json, echo, of_cell, of_report, of_site
from matrix.http.negotiation import FIGURE, LIST, asked_format
from matrix.plots.site import end_figures
from matrix.plots.standalone import FigureTitle
from matrix.store import notes

OWN = ("format", *PAGING)


class SitesView(ApiView):
    @ALL_SITES
    def get(self, request: Request) -> HttpResponseBase:
        """With what was measured from them and to them, in one size class and window."""
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, TableCursor.parse)
        # The next page is of the same window.
        cursor = page.after or TableCursor(timezone.now())
        query, search, ordering = sites_query.read(request.query_params, also=OWN)
        grid, sites = overview.build(query, cursor.moment)
        shown = overview.ordered(overview.searched(sites, search), ordering)
        rows = [of_overview(site) for site in shown]
        if form == "json":
            end = cursor.rows + page.size
            next_page = following(request, cursor.after(page.size)) if end < len(rows) else None
            return as_json(
                {
                    "query": echo(query, grid.window),
                    "sites": rows[cursor.rows : end],
                    "next": next_page,
                }
            )
        return as_csv(rows, LISTED, "sites") if form == "csv" else as_ndjson(rows)


class SiteView(ApiView):
    @REPORT_ON_SITE
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """As source and as destination, among its peers; CSV has its cells of all classes.

        With `compare` and so on its links are compared, too; CSV then has these.
        """
        query = question.compared_question(request.query_params, also=("format", "end"))
        form, end = asked_format(request, FORMATS), one_of(request.query_params, "end", ENDS)
        if end and form not in FIGURE:
            raise wrong("end", "end is of a figure: use format=plotly or format=html, too.")
        site = question.registered(name)
        now = timezone.now()
        report = reports.build(site.name, query, now)
        if form == "csv" and query.compare is None:
            return as_csv(row_and_column(report), CELLS, site.name)
        notes_on_site = notes.on_site(site, report.window, request.user)
        site_is = site_now(report, notes_on_site, now)
        if form in FIGURE:
            declared = notes.downtimes_of(site, report.window, now)
            ends = end_figures(report, site_is, declared, notes_on_site, events_of_site(report))
            return as_figure(report, end or ENDS[0], ends, form)
        if form == "csv":
            return as_csv(list(compared_links(site_is)), COMPARED_LINKS, site.name)
        diagnoses = [
            {"source": link.source, "destination": link.destination, **of_rule(link.diagnosis)}
            for link in site_diagnosis.of_site(report, now)
        ]
        answer = of_report(report, site, site_is) | {"diagnoses": diagnoses}
        if site_is.comparisons:
            answer["comparison"] = of_comparison(report, site_is, now)
        return as_json(answer)


def as_figure(report: Report, end: str, ends: Mapping[str, Json], form: str) -> HttpResponse:
    title = FigureTitle(
        f"{report.name} as {end}, {report.query.size} files: rates of its links relative to usual",
        report.window,
        "",
        simulated=report.links.simulated,
    )
    return figures.answer(ends[end], title, form, f"sonar-site-{end}")


def of_overview(site: SiteOverview) -> Json:
    return of_site(site.site) | {
        "endpoints": [endpoint.name for endpoint in site.endpoints if not endpoint.retired],
        "retired_endpoints": [endpoint.name for endpoint in site.endpoints if endpoint.retired],
        "simulated": site.simulated,
        "source_mean_mb_s": number(site.source.mean),
        "destination_mean_mb_s": number(site.destination.mean),
        "ok": site.source.ok + site.destination.ok,
        "failed": site.source.failed + site.destination.failed,
        "success": number(site.success),
        "last": time(site.last),
        "failing": site.failing,
        "slower_as_source": site.source.slower,
        "slower_as_destination": site.destination.slower,
        "ratio_as_source": number(site.source.to_usual),
        "ratio_as_destination": number(site.destination.to_usual),
    }


LISTED = (
    *(*SITES.answer.model_fields, "simulated", "source_mean_mb_s"),
    *("destination_mean_mb_s", "ok", "failed", "success", "last", "failing"),
    *("slower_as_source", "slower_as_destination", "ratio_as_source", "ratio_as_destination"),
)
COMPARED_LINKS = ("end", "source", "destination", "partner", *ComparedRates.model_fields, "change")
CELLS = (
    *("source", "destination", "size", "mean_mb_s", "std_mb_s", "ok", "failed", "last", "state"),
    *("level", "now_mb_s", "usual_mb_s", "since"),
)


def row_and_column(report: Report) -> list[Json]:
    """Return the site's cells of all size classes; that with itself is in both, and comes once."""
    cells = {
        (size, cell.source, cell.destination): cell
        for size in report.sites
        for end in ENDS
        for cell in report.cells(end, size)
    }
    return [of_cell(cell) | {"size": size} for (size, *_), cell in cells.items()]
