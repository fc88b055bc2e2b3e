"""/api/v1/annotations/: notes on sites and links, each shown to those who may see it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, cast

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from pydantic import Field
from rest_framework.request import Request

from matrix.api.registry.deserialise import change_of
from matrix.api.registry.downtimes import BOUNDS
from matrix.api.registry.ordering import NEWEST_FIRST
from matrix.api.registry.parameters import holding, named
from matrix.api.registry.rendering import Json, moment
from matrix.api.registry.resource import Kind
from matrix.api.registry.values import Moment, flag, name_of, needed_lines, time
from matrix.api.registry.views import ListView, RowView
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging, text
from matrix.api.schema.schemas import Answer, Body, Listed
from matrix.http.permissions import reader_of
from matrix.store import notes
from sonar.models import Annotation, Endpoint, Site
from sonar.roles import Anyone


class NewAnnotation(Body):
    """A note to keep, on a site or on a link."""

    site: Annotated[str | None, name_of("site", "where it is on a link")] = None
    source: Annotated[str | None, name_of("endpoint", "where it is on a site")] = None
    destination: Annotated[str | None, name_of("endpoint", "where it is on a site")] = None
    text: Annotated[str, needed_lines(500, "")]
    starts_at: Annotated[Moment, time("now if it is left out"), Field(default_factory=timezone.now)]
    ends_at: Annotated[Moment | None, time("after starts_at", "until it is removed")] = None
    public: Annotated[bool, flag("shown to all who may read, or to who works there")] = False


class AnnotationRecord(Answer):
    """A note. Who wrote it is there for who is logged in."""

    id: int
    site: str | None
    source: str | None
    destination: str | None
    text: str
    starts_at: datetime
    ends_at: datetime | None
    public: bool
    created_at: datetime
    author: str | None = None


class Annotations(Kind[Annotation]):
    model = Annotation
    plural = "annotations"
    key = "id"
    missing = "There is no annotation {key} that you may see."
    order = NEWEST_FIRST
    new = NewAnnotation
    change = change_of(NewAnnotation, "AnnotationChange")
    columns = tuple(AnnotationRecord.model_fields)
    references = {"site": Site, "source": Endpoint, "destination": Endpoint}
    field_of = {
        "annotation_of_one_site_or_link": "site",
        "annotation_ends_after_it_starts": "ends_at",
    }
    parameters = (
        text("site", "Those on this site.", "GLASGOW"),
        text("source", "Those on links from this endpoint.", "GLASGOW_DATADISK"),
        text("destination", "Those on links to this endpoint.", "RAL_DATADISK"),
        *BOUNDS,
    )

    def rows(self) -> QuerySet[Annotation]:
        return super().rows().select_related("author")

    def visible_to(self, reader: Anyone) -> Q:
        return notes.visible_to(reader)

    def chosen(self, params: QueryDict) -> Q:
        found = holding(params)
        for field, model in self.references.items():
            if row := named(params, field, model):
                found &= Q((field, row))
        return found

    def record(self, row: Annotation, request: Request) -> Json:
        found = {name: getattr(row, name) for name in ("id", "text", "public")}
        for field in self.references:
            named_row = getattr(row, field)
            found[field] = named_row.name if named_row else None
        found |= {name: moment(getattr(row, name)) for name in TIMES}
        if reader_of(request).is_authenticated:
            found["author"] = row.author.get_username() if row.author else None
        return found

    def sites(self, row: Annotation) -> Collection[int]:
        if row.site_id:
            return [row.site_id]
        return [one.site_id for one in (row.source, row.destination) if one]

    def begin(self, request: Request) -> Annotation:
        return Annotation(author=cast(User, request.user), starts_at=timezone.now())


TIMES = ("starts_at", "ends_at", "created_at")
ANNOTATIONS = Annotations()
EXAMPLE = {
    "id": 4,
    "site": None,
    "source": "GLASGOW_DATADISK",
    "destination": "RAL_DATADISK",
    "text": "routed over the backup line",
    "starts_at": "2026-11-20T08:00:00Z",
    "ends_at": None,
    "public": True,
    "created_at": "2026-11-20T08:12:31.204518Z",
}
SEEN = EXAMPLE | {"author": "shifter"}
NEW = {name: EXAMPLE[name] for name in ("source", "destination", "text", "public")}
CSV = (
    "id,site,source,destination,text,starts_at,ends_at,public,created_at,author\n"
    "4,,GLASGOW_DATADISK,RAL_DATADISK,routed over the backup line,2026-11-20T08:00:00Z,,True,"
    "2026-11-20T08:12:31.204518Z,\n"
)


class AnnotationsView(ListView):
    kind = ANNOTATIONS
    one = "api-annotation"

    @described(
        "Notes on sites and links",
        answer=Listed("annotations", AnnotationRecord),
        parameters=[*ANNOTATIONS.parameters, *paging()],
        formats=("json", "csv", "ndjson"),
        example={"annotations": [EXAMPLE], "next": None},
        csv_example=CSV,
        tag="registry",
    )
    def get(self, request: Request) -> HttpResponse:
        """The newest first. Those that are not public are for operators, administrators and the
        admins of their sites: the site's, or those of both ends of the link."""
        return self.listed(request)

    @described(
        "Write a note",
        answer=AnnotationRecord,
        body=NewAnnotation,
        status=201,
        errors=(409,),
        example=SEEN,
        body_example=NEW,
        tag="registry",
    )
    def post(self, request: Request) -> HttpResponse:
        """It explains and changes no test. Site admins write on their sites and their links."""
        return self.made(request)


class AnnotationView(RowView):
    kind = ANNOTATIONS

    @described(
        "One note",
        answer=AnnotationRecord,
        errors=(404,),
        example=EXAMPLE,
        tag="registry",
    )
    def get(self, request: Request, id: int) -> HttpResponse:  # noqa: A002 - of the route
        return self.shown(request, id)

    @described(
        "Change a note",
        answer=AnnotationRecord,
        body=ANNOTATIONS.change,
        errors=(404, 409),
        example=SEEN | {"ends_at": "2026-11-21T08:00:00Z"},
        body_example={"ends_at": "2026-11-21T08:00:00Z"},
        tag="registry",
    )
    def patch(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """Fields that are left out stay as they are. Its author stays, too."""
        return self.changed(request, id)

    @described(
        "Remove a note",
        answer=None,
        status=204,
        errors=(404, 409),
        tag="registry",
    )
    def delete(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        return self.removed(request, id)
