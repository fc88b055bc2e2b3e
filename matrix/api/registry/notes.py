"""/api/v1/annotations/ and downtimes/: notes on sites and links, and when sites do not work."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Literal, cast

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone
from pydantic import Field
from rest_framework.request import Request

from matrix.api.registry.resource import (
    BOUNDS,
    NEWEST_FIRST,
    CallText,
    Resource,
    at_present,
    of_row,
    yes_or_no,
)
from matrix.api.registry.values import (
    Moment,
    Values,
    flag,
    name_of,
    needed_text,
    record_of,
    time,
)
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from matrix.http.exceptions import Conflict
from matrix.http.permissions import reader_of
from matrix.store import notes
from sonar.models import Annotation, Downtime, Endpoint, Site
from sonar.people.roles import Anyone


class NewAnnotation(Body):
    """A note to write, on a site or on a link."""

    site: Annotated[str | None, name_of("site", "for a note on a link")] = None
    source: Annotated[str | None, name_of("endpoint", "for a note on a site")] = None
    destination: Annotated[str | None, name_of("endpoint", "for a note on a site")] = None
    text: Annotated[str, needed_text(500, lines=True)]
    starts_at: Annotated[Moment, time("default: now"), Field(default_factory=timezone.now)]
    ends_at: Annotated[Moment | None, time("after starts_at", "for no end")] = None
    public: Annotated[
        bool, flag("true: shown to all readers; false: to operators and admins of the site")
    ] = False


class Annotations(Resource[Annotation]):
    model = Annotation
    word, plural = "annotation", "annotations"
    new = NewAnnotation
    answer = record_of(
        NewAnnotation,
        "A note. Its author is shown only to logged-in users.",
        ends_at=datetime | None,
        created_at=datetime,
        author=(str | None, None),
    )
    missing = "There is no note {key} that you may see."
    order = NEWEST_FIRST
    field_of = {
        "annotation_of_one_site_or_link": "site",
        "annotation_ends_after_it_starts": "ends_at",
    }
    parameters = (
        of_row("site", "Only notes on this site.", "GLASGOW", Site),
        of_row("source", "Only notes on links from this endpoint.", "GLASGOW_DATADISK", Endpoint),
        of_row("destination", "Only notes on links to this endpoint.", "RAL_DATADISK", Endpoint),
        BOUNDS,
    )
    calls = {
        "list": CallText(
            "Notes on sites and links",
            "Newest first. Notes that are not public are only for operators, administrators and"
            "\nadmins of their sites: the site's, or those of both ends of the link.",
        ),
        "add": CallText(
            "Write a note",
            "A note does not affect tests or states. Site admins can write notes on their "
            "sites and links.",
        ),
        "show": CallText("Get a note"),
        "change": CallText(
            "Change a note", "Omitted fields are not changed. The author is not changed either."
        ),
        "remove": CallText("Remove a note"),
    }

    def rows(self) -> QuerySet[Annotation]:
        return super().rows().select_related("author")

    def visible_to(self, reader: Anyone) -> Q:
        return notes.visible_to(reader)

    def others(self, row: Annotation) -> Json:
        return {"author": row.author.get_username() if row.author else None}

    def hidden(self, row: Annotation, request: Request) -> Collection[str]:
        return () if reader_of(request).is_authenticated else ("author",)

    def sites(self, row: Annotation) -> Collection[int]:
        if row.site_id:
            return [row.site_id]
        return [endpoint.site_id for endpoint in (row.source, row.destination) if endpoint]

    def begin(self, request: Request) -> Annotation:
        return Annotation(author=cast(User, request.user), starts_at=timezone.now())


ANNOTATIONS = Annotations()


SEVERITY = Field(description="outage or warning (a warning does not stop tests)")


class NewDowntime(Body):
    """A downtime to declare, of a site or of one endpoint."""

    site: Annotated[str | None, name_of("site", "for a downtime of an endpoint")] = None
    endpoint: Annotated[str | None, name_of("endpoint", "for a downtime of a site")] = None
    starts_at: Annotated[Moment, time("")]
    ends_at: Annotated[Moment, time("after starts_at")]
    reason: Annotated[str, needed_text(200)]
    severity: Annotated[Literal["outage", "warning"], SEVERITY] = "outage"


class Downtimes(Resource[Downtime]):
    model = Downtime
    new = NewDowntime
    answer = record_of(
        NewDowntime,
        "A downtime, declared in Sonar or imported from GOCDB or OSG with its key and page there."
        "\nAn imported downtime has one row for each site or endpoint that it affects.",
        severity=Literal["outage", "warning"],
        origin=Literal["hand", "gocdb", "osg"],
        key=str,
        url=str,
    )
    missing = "There is no downtime {key}."
    order = NEWEST_FIRST
    field_of = {
        "downtime_of_one_site_or_endpoint": "site",
        "downtime_ends_after_it_starts": "ends_at",
    }
    parameters = (
        of_row(
            "site",
            "Only downtimes of this site or of one of its endpoints.",
            "GLASGOW",
            Site,
            lambda site: Q(site=site) | Q(endpoint__site=site),
        ),
        of_row(
            "endpoint",
            "Only downtimes of this endpoint or of its site.",
            "GLASGOW_DATADISK",
            Endpoint,
            lambda endpoint: Q(endpoint=endpoint) | Q(site=endpoint.site_id),
        ),
        yes_or_no("current", "yes: only downtimes in force now; no: only others.", at_present),
        BOUNDS,
    )
    calls = {
        "list": CallText("List downtimes", "Newest first, including past ones."),
        "add": CallText(
            "Declare a downtime",
            "During an outage no tests start on the affected links. Site admins can "
            "declare downtimes of their sites.",
        ),
        "show": CallText("Get a downtime"),
        "change": CallText(
            "Change a downtime",
            "Omitted fields are not changed. An imported downtime must be changed at its "
            "source (409).",
        ),
        "remove": CallText(
            "Remove a downtime", "An imported downtime must be withdrawn at its source (409)."
        ),
    }

    def allow_change(self, request: Request, row: Downtime, values: Values) -> None:
        super().allow_change(request, row, values)
        self.refuse_removal(row)

    def refuse_removal(self, row: Downtime) -> None:
        if not row.is_by_hand:
            origin = row.get_origin_display()
            raise Conflict(
                {"id": [f"Downtime {row.pk} is from {origin}: change it at its source."]}
            )

    def sites(self, row: Downtime) -> Collection[int]:
        if row.endpoint:
            return [row.endpoint.site_id]
        return [row.site_id] if row.site_id else []


DOWNTIMES = Downtimes()
