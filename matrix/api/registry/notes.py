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
    field,
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
    """A note to add to a site or a link."""

    site: Annotated[
        str | None,
        name_of("site", "Site that the note is about. Null for a note on a link.", or_null=True),
    ] = None
    source: Annotated[
        str | None,
        name_of(
            "endpoint",
            "Source endpoint of the link that the note is about. Null for a note on a site.",
            or_null=True,
        ),
    ] = None
    destination: Annotated[
        str | None,
        name_of(
            "endpoint",
            "Destination endpoint of the link that the note is about. Null for a note on a site.",
            or_null=True,
        ),
    ] = None
    text: Annotated[str, needed_text(500, "Text of the note.", lines=True)]
    starts_at: Annotated[
        Moment,
        time(
            "Start of the period that the note is about, in UTC. Default: the time of the request."
        ),
        Field(default_factory=timezone.now),
    ]
    ends_at: Annotated[
        Moment | None,
        time("End of the period in UTC, later than `starts_at`. Null means no end.", or_null=True),
    ] = None
    public: Annotated[
        bool,
        flag(
            "Whether the note is shown to all readers. If false, the note is shown only to "
            "operators, administrators and site admins of the affected sites."
        ),
    ] = False


class Annotations(Resource[Annotation]):
    model = Annotation
    word, plural = "annotation", "annotations"
    new = NewAnnotation
    answer = record_of(
        NewAnnotation,
        "A note on a site or on a link.",
        ends_at=datetime | None,
        created_at=Annotated[datetime, Field(description="Time when the note was added.")],
        author=(
            Annotated[
                str | None,
                Field(
                    description="Name of the account that added the note. Null if the account was "
                    "deleted. Omitted for users who are not logged in."
                ),
            ],
            None,
        ),
    )
    missing = "Note {key} does not exist, or you are not allowed to see it."
    order = NEWEST_FIRST
    field_of = {
        "annotation_of_one_site_or_link": "site",
        "annotation_ends_after_it_starts": "ends_at",
    }
    parameters = (
        of_row("site", "Return only notes on the site with this name.", "GLASGOW", Site),
        of_row(
            "source",
            "Return only notes on links from the endpoint with this name.",
            "GLASGOW_DATADISK",
            Endpoint,
        ),
        of_row(
            "destination",
            "Return only notes on links to the endpoint with this name.",
            "RAL_DATADISK",
            Endpoint,
        ),
        BOUNDS,
    )
    calls = {
        "list": CallText(
            "List notes",
            "Returns the notes on sites and links, newest first. Notes that are not public are "
            "shown only to operators, administrators and site admins of the affected sites.",
        ),
        "add": CallText(
            "Add a note",
            "A note gives readers additional information. It does not affect tests or states. "
            "Site admins can add notes on their own sites and links.",
        ),
        "show": CallText("Get a note", "Returns the note with this id."),
        "change": CallText(
            "Change a note", "Omitted fields keep their values. The author remains the same."
        ),
        "remove": CallText("Delete a note", "Deletes the note with this id."),
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


SEVERITY = field(
    "outage or warning",
    "Severity of the downtime. During an `outage`, no tests start. A `warning` does not stop "
    "tests.",
    strict=None,
)


class NewDowntime(Body):
    """A downtime to declare for a site or for one endpoint."""

    site: Annotated[
        str | None,
        name_of(
            "site", "Site that is in downtime. Null for a downtime of an endpoint.", or_null=True
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        name_of(
            "endpoint", "Endpoint that is in downtime. Null for a downtime of a site.", or_null=True
        ),
    ] = None
    starts_at: Annotated[Moment, time("Start of the downtime, in UTC.")]
    ends_at: Annotated[Moment, time("End of the downtime in UTC, later than `starts_at`.")]
    reason: Annotated[str, needed_text(200, "Reason for the downtime, shown to all readers.")]
    severity: Annotated[Literal["outage", "warning"], SEVERITY] = "outage"


class Downtimes(Resource[Downtime]):
    model = Downtime
    new = NewDowntime
    answer = record_of(
        NewDowntime,
        "A downtime, declared in Sonar or imported from GOCDB or OSG Topology. An imported "
        "downtime has one row for each site or endpoint that it affects.",
        severity=Literal["outage", "warning"],
        origin=Annotated[
            Literal["hand", "gocdb", "osg"],
            Field(
                description="Where the downtime was declared: in Sonar (`hand`), in GOCDB "
                "(`gocdb`) or in OSG Topology (`osg`)."
            ),
        ],
        key=Annotated[
            str,
            Field(
                description="Key of an imported downtime in the system that it was imported from. "
                "All rows of the downtime have the same key. Empty for a downtime that was "
                "declared in Sonar."
            ),
        ],
        url=Annotated[
            str,
            Field(
                description="URL of the page about an imported downtime in the system that it was "
                "imported from. Empty if there is no such page."
            ),
        ],
    )
    missing = "Downtime {key} does not exist."
    order = NEWEST_FIRST
    field_of = {
        "downtime_of_one_site_or_endpoint": "site",
        "downtime_ends_after_it_starts": "ends_at",
    }
    parameters = (
        of_row(
            "site",
            "Return only downtimes of the site with this name, or of one of its endpoints.",
            "GLASGOW",
            Site,
            lambda site: Q(site=site) | Q(endpoint__site=site),
        ),
        of_row(
            "endpoint",
            "Return only downtimes of the endpoint with this name, or of its site.",
            "GLASGOW_DATADISK",
            Endpoint,
            lambda endpoint: Q(endpoint=endpoint) | Q(site=endpoint.site_id),
        ),
        yes_or_no(
            "current",
            "`true`: return only current downtimes. `false`: return only past and future "
            "downtimes. Default: all downtimes.",
            at_present,
        ),
        BOUNDS,
    )
    calls = {
        "list": CallText(
            "List downtimes",
            "Returns past, current and future downtimes, sorted by start time, newest first.",
        ),
        "add": CallText(
            "Declare a downtime",
            "During an outage, no tests start on links from or to the site or endpoint. Site "
            "admins can declare downtimes for their own sites.",
        ),
        "show": CallText("Get a downtime", "Returns the downtime with this id."),
        "change": CallText(
            "Change a downtime",
            "Omitted fields keep their values. An imported downtime cannot be changed here "
            "(status 409): change it in GOCDB or OSG Topology.",
        ),
        "remove": CallText(
            "Delete a downtime",
            "An imported downtime cannot be deleted here (status 409): withdraw it in GOCDB or OSG "
            "Topology.",
        ),
    }

    def allow_change(self, request: Request, row: Downtime, values: Values) -> None:
        super().allow_change(request, row, values)
        self.refuse_removal(row)

    def refuse_removal(self, row: Downtime) -> None:
        if not row.is_by_hand:
            origin = row.get_origin_display()
            raise Conflict(
                {"id": [f"Downtime {row.pk} was imported from {origin}. Change it there."]}
            )

    def sites(self, row: Downtime) -> Collection[int]:
        if row.endpoint:
            return [row.endpoint.site_id]
        return [row.site_id] if row.site_id else []


DOWNTIMES = Downtimes()
