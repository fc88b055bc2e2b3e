"""Answers made of the things that they tell of: each type of a field says how it is written."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from pydantic import BaseModel

from matrix.statistics.arrays import rounded
from sonar.notation.windows import format_time

Json = dict[str, Any]
Write = Callable[[Any], Any]


@dataclass(frozen=True)
class At:
    """Where the value of a field is: `slope.n`, `interval.0`; null behind a null."""

    path: str

    def __call__(self, thing: Any) -> Any:  # noqa: ANN401 - whatever it tells of
        for name in self.path.split("."):
            if thing is not None:
                thing = thing[int(name)] if name.isdigit() else getattr(thing, name)
        return thing


@dataclass(frozen=True)
class As:
    """What is written of the value of a field."""

    write: Write


def to_number(value: float | None) -> float | None:
    """Round to what is no noise (see `rounded`); NaN is null."""
    blank = value is None or math.isnan(value)
    return None if blank else float(rounded(np.asarray(value)))


def to_digits(value: float | None) -> float | None:
    """Return six significant digits; NaN is null."""
    return None if value is None or math.isnan(value) else float(f"{value:.6g}")


def unix_time(value: float) -> str | None:
    """Write Unix seconds in UTC, to the second; NaN is null."""
    return None if math.isnan(value) else format_time(datetime.fromtimestamp(value, UTC))


def moment(value: datetime | None) -> str | None:
    """Write a time in UTC, exactly as it is kept."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value else None


def name_of(row: Any) -> str | None:  # noqa: ANN401 - of the registry
    return row.name if row else None


def present(value: object) -> object:
    """Write null for what is empty."""
    return value or None


Number = Annotated[float | None, As(to_number)]
Digits = Annotated[float | None, As(to_digits)]
Exact = Annotated[float | None, As(lambda value: None if np.isnan(value) else value)]
UnixTime = Annotated[datetime | None, As(unix_time)]
Second = Annotated[datetime, As(format_time)]
Moment = Annotated[datetime, As(moment)]
MomentOrNull = Annotated[datetime | None, As(moment)]
# Always with its six decimals.
Micros = Annotated[datetime, As(lambda value: f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}")]
# Texts that are null where they are empty, and names of rows, which may be null.
Text = Annotated[str | None, As(present)]
Name = Annotated[str, As(name_of)]
NameOrNull = Annotated[str | None, As(name_of)]


def record(answer: type[BaseModel], thing: object = None, **more: object) -> Json:
    """Return what an answer tells of a thing, field by field, each written as its type says.

    Values are those of ``more``, else attributes of the thing. What may be left out of an answer
    (it has a default) is only there if ``more`` has it.
    """
    return {
        name: write(more[name] if name in more else read(thing))
        for name, read, write, is_optional in fields_of(answer)
        if name in more or not is_optional
    }


@cache
def fields_of(answer: type[BaseModel]) -> list[tuple[str, Write, Write, bool]]:
    """Return name, reader and writer of each field, and whether it may be left out."""
    fields = []
    for name, field in answer.model_fields.items():
        read: Write = attrgetter(name)
        write = nested(field.annotation)
        for extra in field.metadata:
            if isinstance(extra, At):
                read = extra
            elif isinstance(extra, As):
                write = extra.write
        fields.append((name, read, write or (lambda value: value), not field.is_required()))
    return fields


def nested(kind: Any) -> Write | None:  # noqa: ANN401 - of a field
    """Return what writes answers within an answer: one, a list, or a dict of them by name."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        # What is null or a record already stays.
        return lambda thing: (
            thing if thing is None or isinstance(thing, dict) else record(kind, thing)
        )
    write = next(filter(None, map(nested, get_args(kind))), None)
    if write is None:
        return None
    if get_origin(kind) is list:
        return lambda things: [write(thing) for thing in things]
    if get_origin(kind) is dict:
        return lambda things: {name: write(thing) for name, thing in things.items()}
    return write
