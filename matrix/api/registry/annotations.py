"""/api/v1/annotations/: notes on sites and links, each shown to those who may see it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, cast

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone
from pydantic import Field
from rest_framework.request import Request

from matrix.api.registry.deserialise import record_of
from matrix.api.registry.ordering import NEWEST_FIRST
from matrix.api.registry.parameters import BOUNDS, of_row
from matrix.api.registry.rendering import Json
from matrix.api.registry.resource import CallText, Examples, Resource
from matrix.api.registry.values import Moment, flag, name_of, needed_text, time
from matrix.api.schema.schemas import Body
from matrix.http.permissions import reader_of
from matrix.store import notes
from sonar.models import Annotation, Endpoint, Site
from sonar.people.roles import Anyone


class NewAnnotation(Body):
    """A note to write, on a site or on a link."""

    site: Annotated[str | None, name_of("site", "where it is on a link")] = None
    source: Annotated[str | None, name_of("endpoint", "where it is on a site")] = None
    destination: Annotated[str | None, name_of("endpoint", "where it is on a site")] = None
    text: Annotated[str, needed_text(500, lines=True)]
    starts_at: Annotated[Moment, time("now if it is left out"), Field(default_factory=timezone.now)]
    ends_at: Annotated[Moment | None, time("after starts_at", "until it is removed")] = None
    public: Annotated[bool, flag("shown to all who may read, or to who works there")] = False


class Annotations(Resource[Annotation]):
    model = Annotation
    word, plural = "annotation", "annotations"
    new = NewAnnotation
    answer = record_of(
        NewAnnotation,
        "A note. Its author is shown only to accounts that are logged in.",
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
        of_row("site", "Notes on this site.", "GLASGOW", Site),
        of_row("source", "Notes on links from this endpoint.", "GLASGOW_DATADISK", Endpoint),
        of_row("destination", "Notes on links to this endpoint.", "RAL_DATADISK", Endpoint),
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
            "It explains, and changes no test. Site admins write on their sites and links.",
        ),
        "show": CallText("One note"),
        "change": CallText(
            "Change a note",
            "Fields that are left out stay as they are. Its author stays, too.",
        ),
        "remove": CallText("Remove a note"),
    }
    examples = Examples(
        row={
            "id": 4,
            "site": None,
            "source": "GLASGOW_DATADISK",
            "destination": "RAL_DATADISK",
            "text": "routed over the backup line",
            "starts_at": "2026-11-20T08:00:00Z",
            "ends_at": None,
            "public": True,
            "created_at": "2026-11-20T08:12:31.204518Z",
        },
        new={
            "source": "GLASGOW_DATADISK",
            "destination": "RAL_DATADISK",
            "text": "routed over the backup line",
            "public": True,
        },
        change={"ends_at": "2026-11-21T08:00:00Z"},
        added={"author": "shifter"},
        changed={"author": "shifter"},
    )

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
