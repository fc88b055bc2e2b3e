"""Meshes: which links are tested, how, and how often; and size classes, checked together."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import capfirst
from pydantic import Field, create_model
from rest_framework.request import Request

from matrix.answers.words.phrases import lower_first
from matrix.api.parameters import wrong
from matrix.api.registry.mesh_ends import Ends, Filter, Names, ends, filter_at, members, names
from matrix.api.registry.resource import BY_SIZE, CallText, Resource
from matrix.api.registry.values import (
    CREDENTIAL_NAME,
    Values,
    field,
    flag,
    line,
    own_name,
    quiet_times,
    record_of,
    vantage_name,
    whole,
)
from matrix.api.schema.records import Json, moment
from matrix.api.schema.schemas import Body
from matrix.http.exceptions import Conflict
from matrix.query.forms import BadQueryError
from sonar.credentials import rules
from sonar.models import Mesh, SizeClass
from sonar.models.member_filters import ENDS, filter_column
from sonar.models.mesh import LIMITS, mover_choices
from sonar.models.registry import MOST_DAILY_BYTES
from sonar.movers import catalogue
from sonar.notation import scitags
from sonar.notation.enumeration import either
from sonar.notation.units import MOST_BYTES
from sonar.obstacles.catalogue import advice_on
from sonar.records.record import cut
from sonar.registry import compatibility
from sonar.registry.compatibility import kept_mesh_problem
from sonar.registry.file.sections import (
    ALL,
    LONGEST_INTERVAL_SECONDS,
    interval,
    quiet_columns,
    set_intervals,
    set_members,
)
from sonar.registry.mesh_removal import hindrance
from sonar.registry.mesh_size import READ_FIRST, MeshNow, drafts
from sonar.registry.mesh_size import read as read_now
from sonar.results import reclass

MOVERS = [name for name, _ in mover_choices()]
MOVER = f"^({'|'.join(map(re.escape, MOVERS))})$"
MOVER_WORDS = f"the name of a transfer tool: {either(MOVERS)}"
# What `interval` reads and is at most LONGEST_INTERVAL_SECONDS.
DURATION = "^([1-9][0-9]{0,6}[sm]|[1-9][0-9]{0,4}h|[1-9][0-9]{0,3}d)$"
SERVICE = f"^({rules.SERVICE_URL.strip('^$')})?$".replace(r"\s", r"\s\x00-\x1f\x7f")
# What is for those who may see it: where Sonar asks, and with what.
INTERNAL = ("service", "service_credential")
ELSEWHERE = (*ENDS, "every", "quiet_hours", "scitag")

SCITAG = field(
    "a flow label (SciTag) as experiment/activity, like 2/11",
    "scitags.org",
    "to send none",
    max_length=7,
    pattern=scitags.NOTATION,
)
Seconds = Annotated[int, Field(strict=True, ge=1, le=LONGEST_INTERVAL_SECONDS)]
Duration = Annotated[str, Field(strict=True, pattern=DURATION)]


# What is answered otherwise than it is sent.
AS_ANSWERED: dict[str, Any] = {
    "sources": Ends,
    "destinations": Ends,
    "every": dict[str, int],
    "service": (str, ""),
    "service_credential": (str, ""),
}
# What it tests now, if it is enabled, of sonar.registry.mesh_size.
NOW: dict[str, Any] = {
    "sources_now": int,
    "destinations_now": int,
    "links_now": int,
    "tests_per_day": float,
    "bytes_per_day": float,
    "tests_at_once": int,
    "in_words": str,
}


def limits() -> dict[str, Any]:
    """Return the fields of LIMITS, with what the model says of them."""
    meanings = {column.name: column.help_text.partition(";")[0] for column in Mesh._meta.fields}
    return {
        name: (
            Annotated[
                int | None, whole(1, MOST_DAILY_BYTES, lower_first(meanings[name]), "for no limit")
            ],
            None,
        )
        for name in LIMITS
    }


class MeshBody(Body):
    """A mesh to add, in the notation of registry files."""

    name: Annotated[str, own_name()]
    enabled: Annotated[bool, flag("false stops its tests and keeps its results")] = True
    mover: Annotated[str, field(MOVER_WORDS, max_length=20, pattern=MOVER)] = catalogue.DEFAULT
    mode: Annotated[
        Literal["pull", "push"],
        Field(description="pull (the destination fetches the file) or push (the source sends it)"),
    ] = "pull"
    streams: Annotated[int, whole(1, 9999)] = 1
    tcp_buffer_bytes: Annotated[
        int | None,
        whole(
            1,
            2**31 - 1,
            "only for transfer tools that can set it",
            "to leave the choice to the servers",
        ),
    ] = None
    scitag: Annotated[str | None, SCITAG] = None
    service: Annotated[
        str,
        line(
            400,
            "https://host[:port]/path of the transfer service, without user, password or query, "
            "for transfer tools that use one; empty for none",
            SERVICE,
        ),
    ] = ""
    service_credential: Annotated[
        str,
        line(
            80,
            "the name of a registered credential, which is sent only to the transfer service; "
            "empty for none",
            CREDENTIAL_NAME,
        ),
    ] = ""
    priority: Annotated[
        int,
        whole(
            0, 9999, "if caps do not allow all due tests, those of the higher priority start first"
        ),
    ] = 5
    vantage: Annotated[
        str,
        vantage_name("the vantage point whose workers run its tests, unless an endpoint names one"),
    ] = ""
    sources: Annotated[Literal["all"] | Names | Filter, ends("sources of its links")] = "all"
    destinations: Annotated[Literal["all"] | Names | Filter, ends("destinations of its links")] = (
        "all"
    )
    every: Annotated[
        dict[str, Seconds | Duration],
        Field(
            min_length=1,
            description="the interval between tests of a link by size class, in seconds or like "
            '10m, 6h or 1d, for at least one size class, like {"large": "6h"}',
        ),
    ]
    quiet_hours: Annotated[str | None, quiet_times()] = None


NewMesh = create_model("NewMesh", __base__=MeshBody, __doc__=MeshBody.__doc__, **limits())


class Meshes(Resource[Mesh]):
    model = Mesh
    new = NewMesh
    answer = record_of(
        NewMesh,
        "A mesh. Intervals are in seconds by size class; those not named are not tested. What it "
        "tests now, if it is enabled, is in `in_words` and the numbers before it: tests and "
        "bytes that quiet hours, caps and budgets let through, and how many may run at once. Its "
        "service and the credential for it are shown only to those who may see them.",
        **AS_ANSWERED,
        **NOW,
    )
    written = record_of(
        NewMesh,
        "A mesh as it was stored. `notice` is there only if it is enabled and tests of it cannot "
        "run as things are, or if it chooses endpoints that were never enabled: it says why, and "
        "what to do.",
        name="MeshWritten",
        **AS_ANSWERED,
        **NOW,
        notice=(str, ""),
    )
    internal = INTERNAL
    field_of = {"mesh_quiet_hours_have_two_ends": "quiet_hours"}
    calls = {
        "list": CallText("All meshes", "By name."),
        "add": CallText("Add a mesh", "Its tests start at the next run of the planner."),
        "show": CallText("One mesh"),
        "change": CallText(
            "Change a mesh",
            "Fields that are left out stay as they are; Lists and `every` are replaced completely.",
        ),
        "remove": CallText(
            "Delete a mesh",
            "Only one that is not enabled and has no results, as they are chosen by its name. "
            "Targets for this mesh are deleted with it.",
        ),
    }

    def rows(self) -> QuerySet[Mesh]:
        return Mesh.objects.select_related("service_credential").prefetch_related(*READ_FIRST)

    def records(self, rows: Iterable[Mesh], request: Request) -> list[Json]:
        for each in read_now(listed := list(rows)):
            each.mesh.now = each  # type: ignore[attr-defined]  # for `others`
        return super().records(listed, request)

    def others(self, row: Mesh) -> Json:
        now: MeshNow = row.now  # type: ignore[attr-defined]  # by `records`
        size = now.size
        return {
            **{end: row.filter_of(end) or names(row, end) or ALL for end in ENDS},
            "sources_now": size.sources,
            "destinations_now": size.destinations,
            "links_now": size.links,
            "tests_per_day": now.cost.tests_per_day,
            "bytes_per_day": now.cost.bytes_per_day,
            "tests_at_once": now.cost.peak.tests,
            "in_words": now.in_words,
            "service_credential": str(row.service_credential or ""),
            "every": {step.size_class.name: step.every_seconds for step in row.intervals.all()},
            "quiet_hours": row.quiet_hours,
            "scitag": scitags.written(row.scitag),
        }

    def remarks(self, row: Mesh, values: Values) -> Json:
        sentences = advice_on(row, timezone.now()) if row.enabled else []
        notice = " ".join([*sentences, *(f"{said}." for said in drafts(row))])
        return {"notice": notice} if notice else {}

    def refuse_removal(self, row: Mesh) -> None:
        if sentence := hindrance(row):
            raise Conflict({"name": [sentence]})

    def columns_of(self, row: Mesh, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in ELSEWHERE}
        if "scitag" in values:
            columns["scitag"] = values["scitag"] and scitags.parsed(values["scitag"])
        filters = {filter_column(end): filter_at(end, values[end]) for end in ENDS if end in values}
        return columns | filters | quiet_columns(values)

    def save_related(self, row: Mesh, values: Values) -> None:
        for end in ENDS:
            if end in values:
                set_members(row, end, members(end, values[end]))
        if "every" in values:
            set_intervals(row, intervals(values["every"]))
        judged = [field for field in ("mover", "mode", *ENDS) if field in values]
        if judged and (sentence := kept_mesh_problem(row)):
            raise BadQueryError({judged[0]: [sentence]})


def intervals(every: dict[str, int | str]) -> dict[SizeClass, int]:
    """Return seconds by size class."""
    classes = {row.name: row for row in SizeClass.objects.all()}
    for name in every:
        if name not in classes:
            names = ", ".join(classes)
            raise wrong("every", f"every: there is no size class “{cut(name)}”: use {names}.")
    return {
        classes[name]: seconds if isinstance(seconds, int) else interval(seconds)
        for name, seconds in every.items()
    }


MESHES = Meshes()


DAY = 86_400


class NewSizeClass(Body):
    """A size class to add; it ends where the next one begins."""

    name: Annotated[str, own_name()]
    from_bytes: Annotated[int, whole(0, MOST_BYTES, "smallest file size of the class")]
    test_bytes: Annotated[int, whole(1, MOST_BYTES, "size of the test file, within the class")]
    timeout_seconds: Annotated[
        int, whole(1, 30 * DAY, "a test that takes longer counts as failed")
    ] = 3600


class SizeClasses(Resource[SizeClass]):
    model = SizeClass
    new = NewSizeClass
    answer = record_of(NewSizeClass, "A size class.")
    written = record_of(
        NewSizeClass,
        "A size class as it was stored.\n\n"
        "Only if from_bytes was changed and results now lie outside the bounds of their class,\n"
        "`results_outside` is their number: of all, or of those since `results_outside_since` if "
        "there\nwas no time to check more. It is null if there was no time at all. `notice` says "
        "what to do.",
        name="SizeClassWritten",
        results_outside=(int | None, None),
        results_outside_since=(datetime | None, None),
        notice=(str, ""),
    )
    order = BY_SIZE
    # `sizes` says the same of all of them in better words.
    checks_constraints = False
    calls = {
        "list": CallText("List size classes", "Smallest first."),
        "add": CallText(
            "Add a size class",
            "The first size class begins at 0 bytes. Each test file must have a size "
            "within its class.",
        ),
        "show": CallText("Get a size class"),
        "change": CallText(
            "Change a size class",
            "Omitted fields are not changed. Results keep the class they were stored\n"
            "with until `manage.py reclass_results` moves them; The response gives their number.",
        ),
    }

    def check(self, row: SizeClass) -> None:
        others = SizeClass.objects.exclude(pk=row.pk)
        if problems := compatibility.size_class_problems([*others, row]):
            sentences = [f"{capfirst(problem)}." for problem in problems]
            raise BadQueryError({"from_bytes": sentences})

    def remarks(self, row: SizeClass, values: Values) -> Json:
        if "from_bytes" not in values:
            return {}
        outside = reclass.outside()
        if not (notice := reclass.notice(outside)):
            return {}
        none_seen = outside.since is None
        return {
            "results_outside": None if none_seen else outside.results,
            "results_outside_since": None if outside.is_complete else moment(outside.since),
            "notice": notice,
        }


SIZE_CLASSES = SizeClasses()
