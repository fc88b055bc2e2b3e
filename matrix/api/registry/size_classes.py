"""/api/v1/size-classes/: ranges of file sizes, which are checked together."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from django.http import HttpResponse
from rest_framework.request import Request

from matrix.api.registry.deserialise import Values, change_of
from matrix.api.registry.ordering import BY_SIZE
from matrix.api.registry.rendering import Json, moment
from matrix.api.registry.resource import Kind
from matrix.api.registry.values import MOST_BYTES, own_name, whole
from matrix.api.registry.views import ListView, RowView
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging
from matrix.api.schema.schemas import Answer, Body, Listed
from matrix.query.forms import BadQueryError
from sonar import reclassing, sizes
from sonar.models import SizeClass

DAY = 86_400


class NewSizeClass(Body):
    """A size class to add; it ends where the next one begins."""

    name: Annotated[str, own_name()]
    from_bytes: Annotated[int, whole(0, MOST_BYTES, "the first size that belongs to it")]
    test_bytes: Annotated[int, whole(1, MOST_BYTES, "the size of its test file, in its range")]
    timeout_seconds: Annotated[int, whole(1, 30 * DAY, "a test that takes longer has failed")] = (
        3600
    )


class SizeClassRecord(Answer):
    """A size class."""

    name: str
    from_bytes: int
    test_bytes: int
    timeout_seconds: int


class SizeClassWritten(SizeClassRecord):
    """A size class as it was written.

    If results lie outside the bounds of their class since from_bytes was written, and only then,
    `results_outside` is how many: of all, or of those since `results_outside_since` if there was
    no time to look at more. It is null if there was no time at all. `notice` says what to do.
    """

    results_outside: int | None = None
    results_outside_since: datetime | None = None
    notice: str = ""


class SizeClasses(Kind[SizeClass]):
    model = SizeClass
    plural = "size_classes"
    order = BY_SIZE
    new = NewSizeClass
    change = change_of(NewSizeClass, "SizeClassChange")
    columns = tuple(SizeClassRecord.model_fields)
    # `sizes` says the same of all of them in better words.
    checks_constraints = False

    def record(self, row: SizeClass, request: Request) -> Json:
        return {name: getattr(row, name) for name in self.columns}

    def check(self, row: SizeClass) -> None:
        others = SizeClass.objects.exclude(pk=row.pk)
        if problems := sizes.problems([*others, row]):
            sentences = [f"{one[0].upper()}{one[1:]}." for one in problems]
            raise BadQueryError({"from_bytes": sentences})

    def told(self, row: SizeClass, values: Values) -> Json:
        if "from_bytes" not in values:
            return {}
        found = reclassing.outside()
        if not (notice := reclassing.notice(found)):
            return {}
        none_seen = found.since is None
        return {
            "results_outside": None if none_seen else found.results,
            "results_outside_since": None if found.is_complete else moment(found.since),
            "notice": notice,
        }


SIZE_CLASSES = SizeClasses()
EXAMPLE = {
    "name": "large",
    "from_bytes": 1_000_000_000,
    "test_bytes": 2_000_000_000,
    "timeout_seconds": 7200,
}
WRITTEN = EXAMPLE | {
    "results_outside": 1203,
    "results_outside_since": None,
    "notice": "1\u2009203 results lie outside the bounds of their size class and stay in it. "
    "manage.py reclass_results moves such to the class of their bytes (--dry-run counts).",
}
CSV = "name,from_bytes,test_bytes,timeout_seconds\nlarge,1000000000,2000000000,7200\n"


class SizeClassesView(ListView):
    kind = SIZE_CLASSES
    one = "api-size-class"

    @described(
        "All size classes",
        answer=Listed("size_classes", SizeClassRecord),
        parameters=paging(),
        formats=("json", "csv", "ndjson"),
        example={"size_classes": [EXAMPLE], "next": None},
        csv_example=CSV,
        tag="registry",
    )
    def get(self, request: Request) -> HttpResponse:
        """The smallest first."""
        return self.listed(request)

    @described(
        "Add a size class",
        answer=SizeClassWritten,
        body=NewSizeClass,
        status=201,
        errors=(409,),
        example=WRITTEN,
        body_example=EXAMPLE,
        tag="registry",
    )
    def post(self, request: Request) -> HttpResponse:
        """The first begins at 0 bytes, and each test size lies in its own range."""
        return self.made(request)


class SizeClassView(RowView):
    kind = SIZE_CLASSES

    @described(
        "One size class",
        answer=SizeClassRecord,
        errors=(404,),
        example=EXAMPLE,
        tag="registry",
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        return self.shown(request, name)

    @described(
        "Change a size class",
        answer=SizeClassWritten,
        body=SIZE_CLASSES.change,
        errors=(404, 409),
        example=EXAMPLE | {"timeout_seconds": 3600},
        body_example={"timeout_seconds": 3600},
        tag="registry",
    )
    def patch(self, request: Request, name: str) -> HttpResponse:
        """Fields that are left out stay as they are. Results keep the class they came in with
        until `manage.py reclass_results` moves them; the answer says how many that concerns."""
        return self.changed(request, name)
