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

from matrix.api.parameters import wrong
from matrix.api.registry.mesh_ends import Ends, Filter, Names, ends, filter_at, members, names
from matrix.api.registry.resource import BY_SIZE, CallText, Resource
from matrix.api.registry.values import (
    Values,
    credential_name,
    field,
    flag,
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
    "a flow label (SciTag) in the form experiment/activity (for example, 2/11)",
    "Flow label that transfers of the mesh carry, as defined at scitags.org. Null means no flow "
    "label.",
    or_null=True,
    max_length=7,
    pattern=scitags.NOTATION,
)
Seconds = Annotated[int, Field(strict=True, ge=1, le=LONGEST_INTERVAL_SECONDS)]
Duration = Annotated[str, Field(strict=True, pattern=DURATION)]


# What is answered otherwise than it is sent.
AS_ANSWERED: dict[str, Any] = {
    "sources": Ends,
    "destinations": Ends,
    "every": Annotated[
        dict[str, int],
        Field(
            description="Interval between tests of a link in seconds, by size class. Size classes "
            "that are not listed are not tested."
        ),
    ],
    "service": (str, ""),
    "service_credential": (str, ""),
}


def now_field(kind: type[Any], description: str) -> Any:  # noqa: ANN401 - a type
    return Annotated[kind, Field(description=description)]


# What it tests now, if it is enabled, of sonar.registry.mesh_size.
NOW: dict[str, Any] = {
    "sources_now": now_field(
        int, "Number of source endpoints that match the mesh now and are enabled."
    ),
    "destinations_now": now_field(
        int, "Number of destination endpoints that match the mesh now and are enabled."
    ),
    "links_now": now_field(
        int, "Number of links that the mesh tests now, or would test if it were enabled."
    ),
    "tests_per_day": now_field(
        float, "Number of tests of the mesh per day, as allowed by quiet hours, caps and budgets."
    ),
    "bytes_per_day": now_field(
        float,
        "Number of bytes that tests of the mesh move per day, as allowed by quiet hours, caps and "
        "budgets.",
    ),
    "tests_at_once": now_field(
        int, "Maximum number of tests of the mesh that can run at the same time."
    ),
    "in_words": now_field(
        str, "Current numbers of endpoints, links, tests and bytes of the mesh, in words."
    ),
}


def limits() -> dict[str, Any]:
    """Return the fields of LIMITS, with what the model says of them."""
    meanings = {column.name: column.help_text for column in Mesh._meta.fields}
    return {
        name: (
            Annotated[
                int | None,
                whole(1, MOST_DAILY_BYTES, meanings[name].replace("Empty", "Null"), or_null=True),
            ],
            None,
        )
        for name in LIMITS
    }


class MeshBody(Body):
    """A mesh to add: which links are tested, how often and with which transfer tool."""

    name: Annotated[str, own_name("mesh")]
    enabled: Annotated[
        bool,
        flag("Whether the mesh starts tests. A mesh that is not enabled keeps its results."),
    ] = True
    mover: Annotated[
        str,
        field(
            MOVER_WORDS,
            "Transfer tool that copies the test files.",
            max_length=20,
            pattern=MOVER,
        ),
    ] = catalogue.DEFAULT
    mode: Annotated[
        Literal["pull", "push"],
        field(
            "pull or push",
            "Which endpoint carries out a transfer. In a pull the destination fetches the file; "
            "in a push the source sends it.",
            strict=None,
        ),
    ] = "pull"
    streams: Annotated[
        int, whole(1, 9999, "Number of parallel TCP connections (streams) per transfer.")
    ] = 1
    tcp_buffer_bytes: Annotated[
        int | None,
        whole(
            1,
            2**31 - 1,
            "Size of the TCP buffer in bytes, for transfer tools that can set it. Null means that "
            "the servers choose the buffer size.",
            or_null=True,
        ),
    ] = None
    scitag: Annotated[str | None, SCITAG] = None
    service: Annotated[
        str,
        field(
            "an empty string or a URL of the form https://host[:port]/path without user name, "
            "password or query string (at most 400 characters)",
            "URL of the transfer service, for transfer tools that use one. Empty for other "
            "transfer tools.",
            max_length=400,
            pattern=SERVICE,
        ),
    ] = ""
    service_credential: Annotated[
        str,
        credential_name(
            "Credential with which Sonar authenticates to the transfer service. It is sent only "
            "to that service."
        ),
    ] = ""
    priority: Annotated[
        int,
        whole(
            0,
            9999,
            "Priority of the tests of the mesh. If limits do not allow all due tests to start, "
            "tests of a higher priority start first.",
        ),
    ] = 5
    vantage: Annotated[
        str,
        vantage_name(
            "Vantage point whose workers run the tests of the mesh, unless a different "
            "vantage point is set for an endpoint. Empty means no particular vantage point."
        ),
    ] = ""
    sources: Annotated[
        Literal["all"] | Names | Filter, ends("Source endpoints of the tested links.")
    ] = "all"
    destinations: Annotated[
        Literal["all"] | Names | Filter, ends("Destination endpoints of the tested links.")
    ] = "all"
    every: Annotated[
        dict[str, Seconds | Duration],
        field(
            "an object that maps at least one size class to a number of seconds or to a duration "
            'such as 10m, 6h or 1d (for example, {"large": "6h"})',
            "Interval between tests of a link, for each size class that the mesh tests.",
            strict=None,
            min_length=1,
        ),
    ]
    quiet_hours: Annotated[
        str | None,
        quiet_times(
            "Period of the day in UTC in which no test of the mesh starts. Null means no quiet "
            "hours."
        ),
    ] = None


NewMesh = create_model("NewMesh", __base__=MeshBody, __doc__=MeshBody.__doc__, **limits())


class Meshes(Resource[Mesh]):
    model = Mesh
    new = NewMesh
    answer = record_of(
        NewMesh,
        "A mesh, with its present numbers of links and tests. `service` and "
        "`service_credential` are shown only to readers with the right to see them.",
        **AS_ANSWERED,
        **NOW,
    )
    written = record_of(
        NewMesh,
        "A mesh as it was stored, and a `notice` if some of its tests cannot run.",
        name="MeshWritten",
        **AS_ANSWERED,
        **NOW,
        notice=(
            Annotated[
                str,
                Field(
                    description="Sentences that state which tests of the enabled mesh cannot run "
                    "and which endpoints were never enabled, with recommended actions. Omitted "
                    "if there are no such sentences."
                ),
            ],
            "",
        ),
    )
    internal = INTERNAL
    field_of = {"mesh_quiet_hours_have_two_ends": "quiet_hours"}
    calls = {
        "list": CallText("List meshes", "Returns all meshes, sorted by name."),
        "add": CallText(
            "Add a mesh",
            "Tests of an enabled mesh start with the next run of the planner.",
        ),
        "show": CallText("Get a mesh", "Returns the mesh with this name."),
        "change": CallText(
            "Change a mesh",
            "Omitted fields keep their values. Lists and `every` are replaced as a whole.",
        ),
        "remove": CallText(
            "Delete a mesh",
            "Only a mesh that is not enabled and has no results can be deleted. Targets for the "
            "mesh are also deleted.",
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
            raise wrong(
                "every", f"“every” contains “{cut(name)}”, which is not a size class: use {names}."
            )
    return {
        classes[name]: seconds if isinstance(seconds, int) else interval(seconds)
        for name, seconds in every.items()
    }


MESHES = Meshes()


DAY = 86_400


class NewSizeClass(Body):
    """A size class to add. The range of a size class ends where that of the next one begins."""

    name: Annotated[str, own_name("size class")]
    from_bytes: Annotated[
        int, whole(0, MOST_BYTES, "Smallest file size in bytes that belongs to the size class.")
    ]
    test_bytes: Annotated[
        int,
        whole(
            1,
            MOST_BYTES,
            "Size of a test file in bytes. It must be within the range of the size class.",
        ),
    ]
    timeout_seconds: Annotated[
        int,
        whole(
            1,
            30 * DAY,
            "Maximum duration of a test, in seconds. A test that takes longer counts as failed.",
        ),
    ] = 3600


class SizeClasses(Resource[SizeClass]):
    model = SizeClass
    new = NewSizeClass
    answer = record_of(NewSizeClass, "A size class: a range of file sizes and its test file.")
    written = record_of(
        NewSizeClass,
        "A size class as it was stored. The last three fields are present only if `from_bytes` "
        "was changed and results are now outside the range of their size class.",
        name="SizeClassWritten",
        results_outside=(
            Annotated[
                int | None,
                Field(
                    description="Number of results whose file size is now outside the range of "
                    "their size class. Null if the results could not be counted in time."
                ),
            ],
            None,
        ),
        results_outside_since=(
            Annotated[
                datetime | None,
                Field(
                    description="Start time of the oldest result that was checked for "
                    "`results_outside`. Null if all results or no results were checked."
                ),
            ],
            None,
        ),
        notice=(
            Annotated[
                str,
                Field(description="Instructions for moving results to their new size class."),
            ],
            "",
        ),
    )
    order = BY_SIZE
    # `sizes` says the same of all of them in better words.
    checks_constraints = False
    calls = {
        "list": CallText(
            "List size classes", "Returns all size classes, sorted by file size, smallest first."
        ),
        "add": CallText(
            "Add a size class",
            "One size class must begin at 0 bytes. The size of each test file must be within the "
            "range of its size class.",
        ),
        "show": CallText("Get a size class", "Returns the size class with this name."),
        "change": CallText(
            "Change a size class",
            "Omitted fields keep their values. Results keep their size class until an "
            "administrator runs `manage.py reclass_results`. The response contains the number of "
            "results to move.",
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
