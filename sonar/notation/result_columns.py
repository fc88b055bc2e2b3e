"""The columns of a result, once each: whatever stores, checks, reads or shows one is made of them.

A new one is an entry in ``COLUMNS``, a field of the model (Transfer, or Profile for how it was
measured) with its migration, and an assignment to ``watch.seen`` in a mover that can tell it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from sonar.notation import scitags
from sonar.notation.csv_text import DATA_SERVER, LOG_URL, MOVER, REMOTE_ID
from sonar.notation.units import LONGEST_SECONDS, MOST_BYTES

# As a smallint of PostgreSQL has it.
MOST_CONCURRENT = 32_767
LARGEST_BUFFER = 2**31 - 1
LONGEST_ERROR = 10_000


class Home(Enum):
    """Where a column is kept."""

    RESULT = "the row of the result in sonar_transfer"
    PROFILE = "the profile, which is shared by all results with the same settings"
    NAME = "a row that the result refers to by ID"
    NOWHERE = "computed from other columns"


class Reporter(Enum):
    """Who says what is in a column of a test of Sonar's own."""

    SONAR = "a value that Sonar requested or observed"
    MOVER = "an attribute of the object `Seen`, which the transfer tool sets during the transfer"


@dataclass(frozen=True)
class Fact:
    """How the page of a transfer shows a column where it has a value: behind which other fact."""

    label: str
    after: str
    words: str = "{}"


@dataclass(frozen=True)
class Column:
    """A column of a result.

    ``kind`` is the type of its values, of which there are only ``choices``, if any; answers may
    have those ``besides`` too. A record (sonar.records) has it if ``allowed`` says in words what
    may stand there: values within ``limits`` (as pydantic.Field has them). ``empty`` is what is
    stored where nobody can tell, ``default`` what a record means that leaves it out.
    ``postgres`` is its type in sonar_transfer. ``listed`` says whether lists of results have it,
    or only the answer for a single one; ``internal`` columns name machines, and are for those
    alone who may see these (sonar.view_transfer).
    """

    name: str
    sentence: str
    _: KW_ONLY
    kind: Any = str
    choices: tuple[str | int, ...] = ()
    besides: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    allowed: str = ""
    required: bool = False
    default: Any = None
    empty: Any = None
    postgres: str = ""
    unit: str = ""
    home: Home = Home.RESULT
    reporter: Reporter = Reporter.SONAR
    listed: bool = True
    internal: bool = False
    fact: Fact | None = None
    example: Any = None

    @property
    def null(self) -> bool:
        """Say whether answers may have null there."""
        return not self.required and self.default is None

    @property
    def sql(self) -> str:
        """Return its value where a result, its profile (made) and its names are joined."""
        if self.name in EXPRESSIONS:
            return EXPRESSIONS[self.name]
        place = {Home.PROFILE: f"made.{self.name}", Home.NAME: f"{self.name}.name"}
        value = place.get(self.home, self.name)
        return f"nullif({value}, '')" if self.empty == "" else value


EXPRESSIONS = {
    "started_at": """to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    "rate_mb_s": "CASE WHEN state = 'done' THEN bytes / seconds / 1e6 END",
}


def _seconds(name: str, sentence: str, **more: Any) -> Column:  # noqa: ANN401 - of Column
    return Column(
        name,
        sentence,
        kind=float,
        limits={"ge": 0, "le": LONGEST_SECONDS},
        allowed=f"a number of seconds from 0 to {LONGEST_SECONDS} or empty",
        postgres="float8",
        unit="s",
        **more,
    )


def _concurrent(name: str, kind: type, sentence: str, example: float) -> Column:
    number = "number" if kind is float else "whole number"
    return Column(
        name,
        sentence,
        kind=kind,
        limits={"ge": 0, "le": MOST_CONCURRENT},
        allowed=f"a {number} from 0 to {MOST_CONCURRENT} or empty",
        postgres="float8" if kind is float else "int2",
        example=example,
    )


def _text(name: str, sentence: str, pattern: str, allowed: str, **more: Any) -> Column:  # noqa: ANN401 - of Column
    return Column(name, sentence, limits={"pattern": f"^{pattern}$"}, allowed=allowed, **more)


def _key(name: str, sentence: str) -> Column:
    return Column(name, sentence, kind=int, required=True, postgres="int8", listed=False)


BUFFER: dict[str, Any] = {
    "kind": int,
    "limits": {"ge": 1, "le": LARGEST_BUFFER},
    "allowed": f"a whole number of bytes from 1 to {LARGEST_BUFFER} or empty",
    "unit": "bytes",
}
STREAMS: dict[str, Any] = {
    "kind": int,
    "limits": {"ge": 1, "le": 9999},
    "home": Home.PROFILE,
    "example": 1,
}

# In the order in which records and answers have them.
COLUMNS = (
    Column(
        "id",
        "UUID of the result; Sonar stores each ID once.",
        kind=UUID,
        allowed="a UUID, for example 6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
        required=True,
        postgres="uuid",
        example="6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
    ),
    Column(
        "source",
        "Endpoint that the file was read from.",
        allowed="the name of an endpoint",
        required=True,
        home=Home.NAME,
        example="Glasgow_DATADISK",
    ),
    Column(
        "destination",
        "Endpoint that the file was written to.",
        allowed="the name of an endpoint",
        required=True,
        home=Home.NAME,
        example="RAL_DATADISK",
    ),
    _key("source_id", "Endpoint that the file was read from."),
    _key("destination_id", "Endpoint that the file was written to."),
    _key("size_class_id", "Size class of the file."),
    _key("profile_id", "ID of the profile, which has the settings of the test."),
    Column(
        "started_at",
        "Start of the test (UTC).",
        kind=datetime,
        allowed="a time in ISO 8601 format in UTC, for example 2026-11-20T04:00:00Z",
        required=True,
        postgres="timestamptz",
        example="2026-11-20T11:30:00.000000Z",
    ),
    Column(
        "seconds",
        "Duration of the transfer, measured as described by `clock`.",
        kind=float,
        limits={"ge": 0, "le": LONGEST_SECONDS},
        allowed=f"a number of seconds from 0 to {LONGEST_SECONDS}",
        required=True,
        postgres="float8",
        unit="s",
        example=425.5,
    ),
    Column(
        "bytes",
        "Size of the file, whether or not it arrived.",
        kind=int,
        limits={"ge": 1, "lt": MOST_BYTES + 1},
        allowed="a whole number of bytes that is at least 1 and less than 10^18",
        required=True,
        postgres="int8",
        unit="bytes",
        example=2000000000,
    ),
    Column(
        "state",
        "Outcome: `done` or `failed`. In responses, it can also be `lost` (the worker died).",
        choices=("done", "failed"),
        besides=("lost",),
        allowed="done or failed",
        required=True,
        postgres="varchar",
        example="done",
    ),
    Column(
        "error",
        "Error message of a failed transfer.",
        limits={"max_length": LONGEST_ERROR},
        allowed=f"text of at most {LONGEST_ERROR} characters, without NUL characters",
        empty="",
        postgres="text",
    ),
    Column(
        "error_where",
        "Where the error occurred: source, destination, transfer or control (Sonar).",
        choices=("source", "destination", "transfer", "control"),
        allowed="source, destination, transfer or control",
        empty="",
        postgres="varchar",
    ),
    _text(
        "mover",
        "Transfer tool, for example http-tpc.",
        MOVER,
        "1 to 20 letters, digits, dots, dashes and underscores, for example http-tpc",
        required=True,
        home=Home.PROFILE,
        example="http-tpc",
    ),
    Column(
        "mode",
        "Active side of the copy: the destination pulled, or the source pushed.",
        choices=("pull", "push"),
        allowed="pull, push or empty",
        empty="",
        home=Home.PROFILE,
        example="pull",
    ),
    Column(
        "streams",
        "Number of TCP streams that were requested.",
        allowed="a whole number from 1 to 9999",
        default=1,
        **STREAMS,
    ),
    Column(
        "streams_used",
        "Number of TCP streams that were used.",
        allowed="a whole number from 1 to 9999 or empty",
        reporter=Reporter.MOVER,
        **STREAMS,
    ),
    Column(
        "ip_version",
        "IP version of the transfer.",
        kind=int,
        choices=(4, 6),
        # The even ones from 4 to 6: a check that holds for the text of a CSV file as well.
        limits={"ge": 4, "le": 6, "multiple_of": 2},
        allowed="4, 6 or empty",
        home=Home.PROFILE,
        reporter=Reporter.MOVER,
        example=6,
    ),
    Column(
        "origin",
        "Origin: a test by Sonar, or an imported result (production or external).",
        choices=("test", "production", "external"),
        allowed="test, production or external",
        default="external",
        home=Home.PROFILE,
        example="external",
    ),
    Column("size", "Size class of the file.", required=True, home=Home.NAME, example="large"),
    Column(
        "rate_mb_s",
        "Rate of the transfer; null unless it succeeded.",
        kind=float,
        unit="MB/s",
        home=Home.NOWHERE,
        example=4.700352526,
    ),
    _concurrent(
        "concurrent_at_source_mean",
        float,
        "Mean number of concurrent Sonar tests at the source.",
        1.4,
    ),
    _concurrent(
        "concurrent_at_source_max",
        int,
        "Highest number of concurrent Sonar tests at the source.",
        3,
    ),
    _concurrent(
        "concurrent_at_destination_mean",
        float,
        "Mean number of concurrent Sonar tests at the destination.",
        0.0,
    ),
    _concurrent(
        "concurrent_at_destination_max",
        int,
        "Highest number of concurrent Sonar tests at the destination.",
        0,
    ),
    Column(
        "clock",
        "How `seconds` was measured: from Sonar's request to the result, while the transfer tool "
        "ran, or by the transfer service.",
        choices=("request", "tool", "service"),
        allowed="request, tool, service or empty",
        empty="",
        home=Home.PROFILE,
    ),
    _seconds("prepare_seconds", "Time from the start of the test to the start of the transfer."),
    _seconds(
        "queue_seconds",
        "Time in the queue of the service that moved the file; not part of `seconds`.",
        reporter=Reporter.MOVER,
        fact=Fact(
            "queue",
            "preparation",
            "{} in the queue of the service that moved the file; not part of the duration",
        ),
        example=3.2,
    ),
    _seconds(
        "first_byte_seconds",
        "Time from the start of the transfer to the first byte.",
        reporter=Reporter.MOVER,
    ),
    _seconds(
        "transfer_seconds",
        "Time in which bytes moved, reported by a tool or service; part of `seconds`.",
        reporter=Reporter.MOVER,
        fact=Fact("moving", "duration", "{} of the duration, as reported by the transfer tool"),
        example=423.8,
    ),
    _seconds(
        "checksum_seconds",
        "Time to verify the checksum; not part of `seconds`.",
        reporter=Reporter.MOVER,
        fact=Fact("verification", "duration", "{} for the checksum; not part of the duration"),
    ),
    Column("tcp_buffer_bytes", "TCP buffer that was requested.", home=Home.PROFILE, **BUFFER),
    Column(
        "tcp_buffer_used_bytes",
        "TCP buffer that was used.",
        postgres="int8",
        reporter=Reporter.MOVER,
        **BUFFER,
    ),
    Column(
        "worker",
        "Worker that ran the test.",
        empty="",
        postgres="varchar",
        listed=False,
        internal=True,
    ),
    Column(
        "remote_connections",
        "TCP connections that a server reported.",
        kind=list[str],
        default=(),
        empty=(),
        postgres="jsonb",
        reporter=Reporter.MOVER,
        listed=False,
        internal=True,
    ),
    _text(
        "remote_id",
        "ID of the transfer at the service that moved the file.",
        REMOTE_ID,
        "1 to 100 letters, digits and ._:/@-, or empty",
        empty="",
        postgres="varchar",
        reporter=Reporter.MOVER,
        example="0ae3b5de-c6b5-11f0-8a1d-fa163e4bd5e1",
    ),
    _text(
        "log_url",
        "URL of the transfer log at the transfer service.",
        LOG_URL,
        "an http or https URL without a query string, or empty",
        empty="",
        postgres="varchar",
        reporter=Reporter.MOVER,
        listed=False,
        internal=True,
    ),
    Column(
        "scitag",
        "SciTags flow label of the transfer.",
        kind=int,
        limits={"ge": 1, "le": scitags.MOST},
        allowed=f"a whole number from 1 to {scitags.MOST} or empty",
        postgres="int4",
        reporter=Reporter.MOVER,
        example=1093,
    ),
    Column(
        "purpose",
        "Purpose of the test: scheduled, on demand (`ordered`) or part of a parameter sweep.",
        choices=("scheduled", "ordered", "sweep"),
        allowed="scheduled, ordered, sweep or empty",
        empty="",
        home=Home.PROFILE,
        example="scheduled",
    ),
    Column(
        "moved_bytes",
        "Bytes known to have arrived.",
        kind=int,
        postgres="int8",
        unit="bytes",
        reporter=Reporter.MOVER,
        example=2000000000,
    ),
    Column(
        "verified",
        "True if the checksum of the copy matched the checksum of the source file.",
        kind=bool,
        postgres="bool",
        example=True,
    ),
    _text(
        "data_server",
        "Host and port of the data server that moved the bytes, if they differ from those of the "
        "endpoint.",
        DATA_SERVER,
        "a host and a port, for example st-048.example.org:8443 or [2001:db8::48]:1094, or empty",
        empty="",
        postgres="varchar",
        reporter=Reporter.MOVER,
        internal=True,
        fact=Fact("data server", "remote_connections"),
    ),
    _seconds(
        "redirect_seconds",
        "Time until a redirector found a data server; part of `prepare_seconds`.",
        reporter=Reporter.MOVER,
        fact=Fact("redirect", "preparation", "{} until the redirector found a data server"),
        example=5.02,
    ),
    Column(
        "samples",
        "Progress samples: [seconds, bytes].",
        kind=list[list[float]],
        default=(),
        empty=(),
        postgres="jsonb",
        listed=False,
    ),
    Column(
        "error_is_permanent",
        "True if the error is expected to recur until its cause is fixed.",
        kind=bool,
        default=False,
        empty=False,
        postgres="bool",
        listed=False,
    ),
    Column(
        "verified_note",
        "Reason why the checksum was not verified.",
        empty="",
        postgres="text",
        listed=False,
    ),
    Column(
        "upload",
        "Upload of the source file by the worker before the test.",
        kind=dict[str, float],
        postgres="jsonb",
        listed=False,
    ),
)
BY_NAME = {column.name: column for column in COLUMNS}
STORED = tuple(column for column in COLUMNS if column.postgres)
# What imports say and exports have.
RECORD = tuple(column for column in COLUMNS if column.allowed)
REPORTED_BY_MOVERS = tuple(column for column in COLUMNS if column.reporter is Reporter.MOVER)


def dataclass_fields(columns: Iterable[Column]) -> list[Any]:
    """Return what `make_dataclass` needs for a value of each: empty if it is not given."""
    return [
        (column.name, Any) if column.required else (column.name, Any, field(default=column.empty))
        for column in columns
    ]


def listed(*, internal: bool) -> tuple[Column, ...]:
    """Return the columns of lists of results, those that name machines only if ``internal``."""
    return tuple(
        column for column in COLUMNS if column.listed and (internal or not column.internal)
    )
