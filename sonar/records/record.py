"""The result record: the one form in which results come in from elsewhere and go out again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from sonar.notation import csv_text, scitags
from sonar.notation.csv_text import LOG_URL, MOVER, REMOTE_ID
from sonar.notation.units import LONGEST_SECONDS
from sonar.notation.windows import parse_time
from sonar.results.concurrency import Company

# As a smallint of PostgreSQL has it.
MOST_BESIDE = 32_767
LARGEST_BUFFER = 2**31 - 1
SHOWN_CHARACTERS = 60

Problem = tuple[str, str]


class WrongRecordError(Exception):
    """A record that cannot be a result: what is wrong as (field, sentence), in field order."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(sentence for _, sentence in problems))
        self.problems = problems


def _moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("not text")  # noqa: TRY004 - pydantic catches ValueError only
    return parse_time(value)


def _text(value: object) -> str:
    # PostgreSQL has no NUL in text.
    if not isinstance(value, str) or "\0" in value or len(value) > 10_000:
        raise ValueError("not a text")
    value.encode()  # a lone half of a surrogate pair is a ValueError too
    return value


Seconds = Annotated[float, Field(strict=True, ge=0, le=LONGEST_SECONDS, allow_inf_nan=False)]


class Record(BaseModel):
    """One result as JSON or CSV has it. Numbers in JSON are numbers: strict; in CSV, text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: UUID
    source: str
    destination: str
    started_at: Annotated[datetime, PlainValidator(_moment)]
    seconds: Seconds
    bytes: Annotated[int, Field(strict=True, ge=1, lt=10**18)]
    state: Literal["done", "failed"]
    error: Annotated[str, PlainValidator(_text)] = ""
    error_where: Literal["", "source", "destination", "transfer", "control"] = ""
    mover: Annotated[str, Field(pattern=f"^{MOVER}$")]
    mode: Literal["", "pull", "push"] = ""
    streams: Annotated[int, Field(strict=True, ge=1, le=9999)] = 1
    streams_used: Annotated[int, Field(strict=True, ge=1, le=9999)] | None = None
    # 4 or 6: the even ones from 4 to 6, a check that holds for the text of a CSV file as well.
    ip_version: Annotated[int, Field(strict=True, ge=4, le=6, multiple_of=2)] | None = None
    origin: Literal["test", "production", "external"] = "external"
    beside_source: Annotated[float, Field(strict=True, ge=0, le=MOST_BESIDE)] | None = None
    beside_source_max: Annotated[int, Field(strict=True, ge=0, le=MOST_BESIDE)] | None = None
    beside_destination: Annotated[float, Field(strict=True, ge=0, le=MOST_BESIDE)] | None = None
    beside_destination_max: Annotated[int, Field(strict=True, ge=0, le=MOST_BESIDE)] | None = None
    clock: Literal["", "request", "tool", "service"] = ""
    prepare_seconds: Seconds | None = None
    queue_seconds: Seconds | None = None
    first_byte_seconds: Seconds | None = None
    transfer_seconds: Seconds | None = None
    checksum_seconds: Seconds | None = None
    tcp_buffer_bytes: Annotated[int, Field(strict=True, ge=1, le=LARGEST_BUFFER)] | None = None
    tcp_buffer_used_bytes: Annotated[int, Field(strict=True, ge=1, le=LARGEST_BUFFER)] | None = None
    remote_id: Annotated[str, Field(pattern=f"^{REMOTE_ID}$")] = ""
    log_url: Annotated[str, Field(pattern=f"^{LOG_URL}$")] = ""
    scitag: Annotated[int, Field(strict=True, ge=1, le=scitags.MOST)] | None = None
    purpose: Literal["", "scheduled", "ordered", "experiment"] = ""

    @property
    def beside(self) -> int | None:
        """0 if it was alone at both ends, 1 if not, None if that is not known: as in Profile."""
        return self.company.beside

    @property
    def company(self) -> Company:
        return Company(*(getattr(self, name) for name in Company._fields))

    @property
    def account(self) -> dict[str, Any]:
        """Return those fields of ``ACCOUNT`` of which it says something, by their names."""
        return {name: value for name in ACCOUNT if (value := getattr(self, name)) not in (None, "")}


FIELDS = tuple(Record.model_fields)
# What few results from elsewhere say: fields of a result that are kept with it, not in its profile.
ACCOUNT = (
    *Company._fields,
    *("prepare_seconds", "queue_seconds", "first_byte_seconds", "transfer_seconds"),
    *("checksum_seconds", "tcp_buffer_used_bytes", "remote_id", "log_url", "scitag"),
)
# What CSV of the API says of a result besides: it follows from the record, or is what Sonar itself
# saw. An import leaves these columns aside.
TOLD_BESIDES = ("size", "rate_mb_s", "moved_bytes", "verified")
# Where a machine is: for who may see the names of machines.
INTERNAL = ("log_url",)
REQUIRED = tuple(name for name, field in Record.model_fields.items() if field.is_required())
BUFFER = f"a whole number of bytes from 1 to {LARGEST_BUFFER} or empty"
ALLOWED = {
    "id": "a UUID, like 6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
    "source": "the name of an endpoint",
    "destination": "the name of an endpoint",
    "started_at": "a time: write ISO 8601 in UTC, like 2026-11-20T04:00:00Z",
    "seconds": f"a number of seconds from 0 to {LONGEST_SECONDS}",
    "bytes": "a whole number of bytes from 1 to below 10^18",
    "state": "done or failed",
    "error": "a text of at most 10000 characters without NUL",
    "error_where": "source, destination, transfer or control",
    "mover": "1 to 20 letters, digits, dots, dashes and underscores, like http-tpc",
    "mode": "pull, push or empty",
    "streams": "a whole number from 1 to 9999",
    "streams_used": "a whole number from 1 to 9999 or empty",
    "ip_version": "4, 6 or empty",
    "origin": "test, production or external",
    **{
        name: f"a {kind} of other tests from 0 to {MOST_BESIDE} or empty"
        for name, kind in zip(Company._fields, ("mean number", "whole number") * 2, strict=True)
    },
    "clock": "request, tool, service or empty",
    **{
        f"{step}_seconds": f"a number of seconds from 0 to {LONGEST_SECONDS} or empty"
        for step in ("prepare", "queue", "first_byte", "transfer", "checksum")
    },
    **dict.fromkeys(
        ("tcp_buffer_bytes", "tcp_buffer_used_bytes"),
        f"a whole number of bytes from 1 to {LARGEST_BUFFER} or empty",
    ),
    "remote_id": "1 to 100 letters, digits and ._:/@-, or empty",
    "log_url": "an http or https address without a query, or empty",
    "scitag": f"a whole number from 1 to {scitags.MOST} or empty",
    "purpose": "scheduled, ordered, experiment or empty",
}


def from_text(cells: Mapping[str, str]) -> Record:
    """Read a record from the cells of a CSV line; raise WrongRecordError."""
    values = {name: text for name, text in cells.items() if text and name not in TOLD_BESIDES}
    if "error" in values:
        values["error"] = csv_text.unquoted(values["error"])
    try:
        return Record.model_validate_strings(values)
    except ValidationError as error:
        raise WrongRecordError(_sentences(error, values)) from None


def from_json(value: object) -> Record:
    """Read a record from a decoded JSON object; null and "" are as good as absent.

    Raises WrongRecordError; its field is empty where the whole value is wrong.
    """
    if not isinstance(value, dict):
        raise WrongRecordError([("", f"{shown(value)} is not a JSON object with a result")])
    values = {
        name: content for name, content in value.items() if content is not None and content != ""
    }
    if len(values) > len(FIELDS):  # at once, instead of a complaint about each of a million
        raise WrongRecordError([_unknown([name for name in values if name not in FIELDS])])
    try:
        return Record.model_validate(values)
    except ValidationError as error:
        raise WrongRecordError(_sentences(error, values)) from None


def _sentences(error: ValidationError, values: Mapping[str, object]) -> list[Problem]:
    """Say of each field once what stands there and what may; unknown ones in one sentence."""
    wrong = {str(detail["loc"][0]): detail["type"] for detail in error.errors(include_url=False)}
    problems = [
        (name, f"{name} is missing: it must be {ALLOWED[name]}")
        if wrong[name] == "missing"
        else (name, f"{name} {shown(values[name])} is not {ALLOWED[name]}")
        for name in FIELDS
        if name in wrong
    ]
    if unknown := [name for name in wrong if name not in Record.model_fields]:
        problems.append(_unknown(unknown))
    return problems


def _unknown(names: list[str]) -> Problem:
    return cut(names[0]), unknown_fields(names)


def unknown_fields(names: list[str]) -> str:
    few = ", ".join(shown(name) for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"a result has no {few}{more}: its fields are {', '.join(FIELDS)}"


def shown(value: object) -> str:
    """Write a value for a sentence, cut where it is long."""
    try:
        return cut(repr(value[: SHOWN_CHARACTERS * 2] if isinstance(value, str) else value))
    except RecursionError:  # lists in lists in lists: JSON may have 1,024 of them
        return "[[...]]"


def cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
