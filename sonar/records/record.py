"""The result record: the one form in which results come in from elsewhere and go out again."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, create_model

from sonar.notation import csv_text
from sonar.notation.csv_text import MOVER
from sonar.notation.renamed import new_name, new_value
from sonar.notation.result_columns import LONGEST_ERROR, RECORD, Column, Home, listed
from sonar.notation.units import LONGEST_SECONDS, MOST_BYTES
from sonar.notation.windows import parse_time
from sonar.results.concurrency import ConcurrentTests

Seconds = Annotated[float, Field(strict=True, ge=0, le=LONGEST_SECONDS, allow_inf_nan=False)]
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
    if not isinstance(value, str) or "\0" in value or len(value) > LONGEST_ERROR:
        raise ValueError("not a text")
    value.encode()  # a lone half of a surrogate pair is a ValueError too
    return value


class Record(BaseModel):
    """One result as JSON or CSV has it. Numbers in JSON are numbers: strict; in CSV, text.

    What each must say, or is judged by, is named here; ``READ`` adds the other columns.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: UUID
    source: str
    destination: str
    started_at: Annotated[datetime, PlainValidator(_moment)]
    seconds: Seconds
    bytes: Annotated[int, Field(strict=True, ge=1, le=MOST_BYTES)]
    state: Literal["done", "failed"]
    error: Annotated[str, PlainValidator(_text)] = ""
    error_where: Literal["", "source", "destination", "transfer", "control"] = ""
    mover: Annotated[str, Field(pattern=f"^{MOVER}$")]
    streams: Annotated[int, Field(strict=True, ge=1, le=9999)] = 1

    @property
    def concurrent(self) -> int | None:
        """0 without concurrent tests, 1 with some, None where not recorded: as in Profile."""
        counts = (getattr(self, name) for name in ConcurrentTests._fields)
        return ConcurrentTests(*counts).concurrent

    @property
    def account(self) -> dict[str, Any]:
        """Return those fields of ``ACCOUNT`` of which it says something, by their names."""
        return {name: value for name in ACCOUNT if (value := getattr(self, name)) not in (None, "")}


def _type_of(column: Column) -> Any:  # noqa: ANN401 - a type
    """Return what pydantic checks a value of a column by: numbers are numbers, in JSON."""
    kind: Any = column.kind
    if kind is str and column.choices:
        return Literal[*column.choices, *([""] if column.empty == "" else [])]
    strict: dict[str, Any] = {} if kind is str else {"strict": True}
    finite: dict[str, Any] = {"allow_inf_nan": False} if kind is float else {}
    checked: Any = Annotated[kind, Field(**column.limits, **strict, **finite)]
    return checked if column.empty == "" else checked | None


READ: type[Record] = create_model(  # type: ignore[call-overload]  # fields by the table
    "Record",
    __base__=Record,
    **{
        column.name: (_type_of(column), column.empty if column.default is None else column.default)
        for column in RECORD
        if column.name not in Record.model_fields
    },
)
FIELDS = tuple(column.name for column in RECORD)
# What few results from elsewhere say: fields of a result that are kept with it, not in its profile.
ACCOUNT = tuple(
    column.name
    for column in RECORD
    if column.home is Home.RESULT and column.name not in Record.model_fields
)
# What CSV of the API says of a result besides: it follows from the record, or is what Sonar itself
# saw. An import leaves these columns aside.
TOLD_BESIDES = tuple(column.name for column in listed(internal=True) if column.name not in FIELDS)
REQUIRED = tuple(column.name for column in RECORD if column.required)
ALLOWED = {column.name: column.allowed for column in RECORD}
CHOICES = {column.name: tuple(map(str, column.choices)) for column in RECORD if column.choices}


def from_text(cells: Mapping[str, str]) -> Record:
    """Read a record from the cells of a CSV line; raise WrongRecordError."""
    values = {name: text for name, text in cells.items() if text and name not in TOLD_BESIDES}
    if "error" in values:
        values["error"] = csv_text.unquoted(values["error"])
    try:
        return READ.model_validate_strings(values)
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
        return READ.model_validate(values)
    except ValidationError as error:
        raise WrongRecordError(_sentences(error, values)) from None


def _sentences(error: ValidationError, values: Mapping[str, object]) -> list[Problem]:
    """Say of each field once what stands there and what may; unknown ones in one sentence."""
    wrong = {str(detail["loc"][0]): detail["type"] for detail in error.errors(include_url=False)}
    problems = [
        (name, f"{name} is missing: it must be {ALLOWED[name]}")
        if wrong[name] == "missing"
        else (name, _wrong_value(name, values[name]))
        for name in FIELDS
        if name in wrong
    ]
    if unknown := [name for name in wrong if name not in FIELDS]:
        problems.append(_unknown(unknown))
    return problems


def _wrong_value(name: str, value: object) -> str:
    if isinstance(value, str) and (now := new_value(value, CHOICES.get(name, ()))):
        return f"{name} {shown(value)} is now called {now}"
    return f"{name} {shown(value)} is not {ALLOWED[name]}"


def _unknown(names: list[str]) -> Problem:
    return cut(names[0]), unknown_fields(names)


def unknown_fields(names: list[str]) -> str:
    renamed = ((name, new_name(name, FIELDS)) for name in names)
    for name, now in renamed:
        if now:
            return f"the field {name!r} is now called {now}"
    few = ", ".join(shown(name) for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"unknown field {few}{more}: the fields are {', '.join(FIELDS)}"


def shown(value: object) -> str:
    """Write a value for a sentence, cut where it is long."""
    try:
        return cut(repr(value[: SHOWN_CHARACTERS * 2] if isinstance(value, str) else value))
    except RecursionError:  # lists in lists in lists: JSON may have 1,024 of them
        return "[[...]]"


def cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
