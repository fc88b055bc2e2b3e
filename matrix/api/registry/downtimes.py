"""/api/v1/downtimes/: when a site or an endpoint is declared not to work."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated

from django.db.models import Q
from django.http import HttpResponse, QueryDict
from rest_framework.request import Request

from matrix.api.registry.deserialise import change_of
from matrix.api.registry.ordering import NEWEST_FIRST
from matrix.api.registry.parameters import YES_OR_NO, at_present, holding, named
from matrix.api.registry.rendering import Json, moment
from matrix.api.registry.resource import Kind
from matrix.api.registry.values import Moment, name_of, needed_line, time
from matrix.api.registry.views import ListView, RowView
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.schemas import Answer, Body, Listed
from sonar.models import Downtime, Endpoint, Site

BOUNDS = (
    text("from", "Those that end after this time.", "2026-11-20T00:00:00Z", format="date-time"),
    text("to", "Those that begin before this time.", "2026-11-21T00:00:00Z", format="date-time"),
)


class NewDowntime(Body):
    """A downtime to declare, of a site or of one endpoint."""

    site: Annotated[str | None, name_of("site", "where it is of an endpoint")] = None
    endpoint: Annotated[str | None, name_of("endpoint", "where it is of a site")] = None
    starts_at: Annotated[Moment, time("")]
    ends_at: Annotated[Moment, time("after starts_at")]
    reason: Annotated[str, needed_line(200, "")]


class DowntimeRecord(Answer):
    """A downtime."""

    id: int
    site: str | None
    endpoint: str | None
    starts_at: datetime
    ends_at: datetime
    reason: str


class Downtimes(Kind[Downtime]):
    model = Downtime
    plural = "downtimes"
    key = "id"
    missing = "There is no downtime {key}."
    order = NEWEST_FIRST
    new = NewDowntime
    change = change_of(NewDowntime, "DowntimeChange")
    columns = tuple(DowntimeRecord.model_fields)
    references = {"site": Site, "endpoint": Endpoint}
    field_of = {
        "downtime_of_one_site_or_endpoint": "site",
        "downtime_ends_after_it_starts": "ends_at",
    }
    parameters = (
        text("site", "Those of this site or of one of its endpoints.", "GLASGOW"),
        text("endpoint", "Those of this endpoint or of its site.", "GLASGOW_DATADISK"),
        choice("current", YES_OR_NO, "Only those that hold now, or only others."),
        *BOUNDS,
    )

    def chosen(self, params: QueryDict) -> Q:
        found = holding(params) & at_present(params)
        if site := named(params, "site", Site):
            found &= Q(site=site) | Q(endpoint__site=site)
        if endpoint := named(params, "endpoint", Endpoint):
            found &= Q(endpoint=endpoint) | Q(site=endpoint.site_id)
        return found

    def record(self, row: Downtime, request: Request) -> Json:
        return {
            "id": row.id,
            "site": row.site.name if row.site else None,
            "endpoint": row.endpoint.name if row.endpoint else None,
            "starts_at": moment(row.starts_at),
            "ends_at": moment(row.ends_at),
            "reason": row.reason,
        }

    def sites(self, row: Downtime) -> Collection[int]:
        if row.endpoint:
            return [row.endpoint.site_id]
        return [row.site_id] if row.site_id else []


DOWNTIMES = Downtimes()
EXAMPLE = {
    "id": 17,
    "site": "GLASGOW",
    "endpoint": None,
    "starts_at": "2026-11-20T08:00:00Z",
    "ends_at": "2026-11-20T12:00:00Z",
    "reason": "new switch",
}
NEW = {name: value for name, value in EXAMPLE.items() if name not in ("id", "endpoint")}
CSV = (
    "id,site,endpoint,starts_at,ends_at,reason\n"
    "17,GLASGOW,,2026-11-20T08:00:00Z,2026-11-20T12:00:00Z,new switch\n"
)


class DowntimesView(ListView):
    kind = DOWNTIMES
    one = "api-downtime"

    @described(
        "Downtimes",
        answer=Listed("downtimes", DowntimeRecord),
        parameters=[*DOWNTIMES.parameters, *paging()],
        formats=("json", "csv", "ndjson"),
        example={"downtimes": [EXAMPLE], "next": None},
        csv_example=CSV,
        tag="registry",
    )
    def get(self, request: Request) -> HttpResponse:
        """The newest first, those that are over too."""
        return self.listed(request)

    @described(
        "Declare a downtime",
        answer=DowntimeRecord,
        body=NewDowntime,
        status=201,
        errors=(409,),
        example=EXAMPLE,
        body_example=NEW,
        tag="registry",
    )
    def post(self, request: Request) -> HttpResponse:
        """No test of its links starts while it lasts. Site admins declare it for their sites."""
        return self.made(request)


class DowntimeView(RowView):
    kind = DOWNTIMES

    @described(
        "One downtime",
        answer=DowntimeRecord,
        errors=(404,),
        example=EXAMPLE,
        tag="registry",
    )
    def get(self, request: Request, id: int) -> HttpResponse:  # noqa: A002 - of the route
        return self.shown(request, id)

    @described(
        "Change a downtime",
        answer=DowntimeRecord,
        body=DOWNTIMES.change,
        errors=(404, 409),
        example=EXAMPLE | {"ends_at": "2026-11-20T14:00:00Z"},
        body_example={"ends_at": "2026-11-20T14:00:00Z"},
        tag="registry",
    )
    def patch(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """Fields that are left out stay as they are."""
        return self.changed(request, id)

    @described(
        "Remove a downtime",
        answer=None,
        status=204,
        errors=(404, 409),
        tag="registry",
    )
    def delete(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        return self.removed(request, id)
