"""/api/v1/downtimes/: when a site or an endpoint is declared not to work."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from django.db.models import Q

from matrix.api.registry.deserialise import record_of
from matrix.api.registry.ordering import NEWEST_FIRST
from matrix.api.registry.parameters import BOUNDS, at_present, of_row, yes_or_no
from matrix.api.registry.resource import CallText, Examples, Resource
from matrix.api.registry.values import Moment, name_of, needed_text, time
from matrix.api.schema.schemas import Body
from sonar.models import Downtime, Endpoint, Site


class NewDowntime(Body):
    """A downtime to declare, of a site or of one endpoint."""

    site: Annotated[str | None, name_of("site", "where it is of an endpoint")] = None
    endpoint: Annotated[str | None, name_of("endpoint", "where it is of a site")] = None
    starts_at: Annotated[Moment, time("")]
    ends_at: Annotated[Moment, time("after starts_at")]
    reason: Annotated[str, needed_text(200)]


class Downtimes(Resource[Downtime]):
    model = Downtime
    new = NewDowntime
    answer = record_of(NewDowntime, "A downtime.")
    missing = "There is no downtime {key}."
    order = NEWEST_FIRST
    field_of = {
        "downtime_of_one_site_or_endpoint": "site",
        "downtime_ends_after_it_starts": "ends_at",
    }
    parameters = (
        of_row(
            "site",
            "Downtimes of this site or of one of its endpoints.",
            "GLASGOW",
            Site,
            lambda site: Q(site=site) | Q(endpoint__site=site),
        ),
        of_row(
            "endpoint",
            "Downtimes of this endpoint or of its site.",
            "GLASGOW_DATADISK",
            Endpoint,
            lambda endpoint: Q(endpoint=endpoint) | Q(site=endpoint.site_id),
        ),
        yes_or_no("current", "Only downtimes in force now, or only others.", at_present),
        BOUNDS,
    )
    calls = {
        "list": CallText("Downtimes", "Newest first, including past ones."),
        "add": CallText(
            "Declare a downtime",
            "No test of its links starts while it lasts. Site admins declare it for their sites.",
        ),
        "show": CallText("One downtime"),
        "change": CallText("Change a downtime", "Fields that are left out stay as they are."),
        "remove": CallText("Remove a downtime"),
    }
    examples = Examples(
        row={
            "id": 17,
            "site": "GLASGOW",
            "endpoint": None,
            "starts_at": "2026-11-20T08:00:00Z",
            "ends_at": "2026-11-20T12:00:00Z",
            "reason": "new switch",
        },
        new={
            "site": "GLASGOW",
            "starts_at": "2026-11-20T08:00:00Z",
            "ends_at": "2026-11-20T12:00:00Z",
            "reason": "new switch",
        },
        change={"ends_at": "2026-11-20T14:00:00Z"},
    )

    def sites(self, row: Downtime) -> Collection[int]:
        if row.endpoint:
            return [row.endpoint.site_id]
        return [row.site_id] if row.site_id else []


DOWNTIMES = Downtimes()
