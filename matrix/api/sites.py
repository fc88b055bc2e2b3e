"""GET /api/v1/sites/ and /api/v1/sites/<name>/: what the pages of sites show."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix.api.cell_text import dumps
from matrix.api.formats import ErrorsInJson, asked_format
from matrix.api.site_report import Json, echo, number, of_cell, of_report, of_site, time
from matrix.pages import site as site_page
from matrix.pages import sites as sites_page
from matrix.site import overview, sites
from matrix.site.overview import Listed
from matrix.site.sites import Report
from matrix.site.standings import ENDS


class SitesView(APIView):
    content_negotiation_class = ErrorsInJson

    def get(self, request: Request) -> HttpResponseBase:
        query, search, ordering = sites_page.asked(request.query_params, also=("format",))
        wanted = asked_format(request)
        answered, listed = overview.build(query, timezone.now())
        found = overview.ordered(overview.searched(listed, search), ordering)
        rows = [of_listed(one) for one in found]
        if wanted == "csv":
            return csv([flat(row) for row in rows], "sonar-sites.csv", LISTED)
        return json({"query": echo(query, answered.window), "sites": rows})


class SiteView(APIView):
    content_negotiation_class = ErrorsInJson

    def get(self, request: Request, name: str) -> HttpResponseBase:
        query = site_page.question(request.query_params, also=("format",))
        wanted = asked_format(request)
        site = site_page.registered(name)
        report = sites.build(site.name, query, timezone.now())
        if wanted == "csv":
            return csv(row_and_column(report), f"sonar-{site.name}.csv", CELLS)
        return json(of_report(report, site))


def json(answer: Json) -> HttpResponseBase:
    return private(HttpResponse(dumps(answer), content_type="application/json"))


def csv(rows: Sequence[Json], name: str, columns: Sequence[str]) -> HttpResponseBase:
    """Write rows as CSV, with these columns even if there are none."""
    text = pd.DataFrame(rows, columns=list(columns)).to_csv(index=False, lineterminator="\n")
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'inline; filename="{name}"'
    return private(response)


def private(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-cache"
    response["Vary"] = "Accept, Cookie"
    return response


def of_listed(one: Listed) -> Json:
    return of_site(one.site) | {
        "endpoints": [place.name for place in one.endpoints if not place.retired],
        "retired_endpoints": [place.name for place in one.endpoints if place.retired],
        "simulated": one.simulated,
        "source_mean_mb_s": number(one.source.mean),
        "destination_mean_mb_s": number(one.destination.mean),
        "ok": one.source.ok + one.destination.ok,
        "failed": one.source.failed + one.destination.failed,
        "success": number(one.success),
        "last": time(one.last),
    }


LISTED = (
    *("name", "cloud", "tier", "country", "latitude", "longitude", "wan_gbit_s", "endpoints"),
    *("retired_endpoints", "simulated", "source_mean_mb_s", "destination_mean_mb_s"),
    *("ok", "failed", "success", "last"),
)
CELLS = ("source", "destination", "size", "mean_mb_s", "std_mb_s", "ok", "failed", "last", "state")


def flat(row: Json) -> Json:
    """Put lists into one field."""
    return {
        name: " ".join(value) if isinstance(value, list) else value for name, value in row.items()
    }


def row_and_column(report: Report) -> list[Json]:
    """Return the site's cells of all size classes; that with itself is in both, and comes once."""
    cells = {
        (size, cell.source, cell.destination): cell
        for size in report.sites
        for end in ENDS
        for cell in report.cells(end, size)
    }
    return [of_cell(cell) | {"size": size} for (size, *_), cell in cells.items()]
