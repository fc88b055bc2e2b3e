"""Tests that people and scripts ask for: read from a body or a form, checked, and ordered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, TypeVar
from uuid import UUID

from django.db.models import Model
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from matrix.query.filters import either
from matrix.query.forms import BadQueryError
from matrix.store import probes, transfers
from sonar.models import Endpoint, Probe, SizeClass, Transfer
from sonar.models.mesh import fitting, mover_choices
from sonar.models.registry import NAME
from sonar.request_probes import Wish

Named = TypeVar("Named", bound=Model)
Name = Annotated[str, StringConstraints(pattern=NAME, max_length=80)]

# The permission to order; site admins have it for tests with an end at a site of theirs.
ORDER = "sonar.add_probe"
MOST_SIZES, MOST_TESTS, MOST_STREAMS = 10, 10, 64
MOVERS = [name for name, _ in mover_choices()]


class OrderedTests(BaseModel, extra="forbid", strict=True):
    """Tests of one link, ``count`` of each size class; all of them are ordered, or none."""

    source: Name
    destination: Name
    sizes: Annotated[list[Name], Field(min_length=1, max_length=MOST_SIZES)]
    count: Annotated[int, Field(ge=1, le=MOST_TESTS)] = 1
    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS)] = 1
    mover: Annotated[str, Field(json_schema_extra={"enum": list(MOVERS)})] = "http-tpc"
    mode: Literal["pull", "push"] = "pull"


ALLOWED = {
    "source": "the name of a registered endpoint",
    "destination": "the name of a registered endpoint",
    "sizes": f"a list of 1 to {MOST_SIZES} names of size classes",
    "count": f"a whole number from 1 to {MOST_TESTS}",
    "streams": f"a whole number from 1 to {MOST_STREAMS}",
    "mover": either(MOVERS),
    "mode": "pull or push",
}


def read(given: Mapping[str, object]) -> list[Wish]:
    """Read what is asked for; raise BadQueryError with sentences by field. Two SQL queries."""
    try:
        asked = OrderedTests.model_validate(given)
    except ValidationError as error:
        raise BadQueryError(sentences(error)) from error
    return wishes(asked)


def sentences(error: ValidationError) -> dict[str, list[str]]:
    """Say what is allowed, for each field that is wrong."""
    found: dict[str, list[str]] = {}
    for problem in error.errors():
        field = str(problem["loc"][0])
        found[field] = [sentence(field, problem["type"])]
    return found


def sentence(field: str, kind: str) -> str:
    if kind == "extra_forbidden":
        return f"There is no field “{field}”: use {either(sorted(ALLOWED))}."
    if kind == "missing":
        return f"{field} is missing: give {ALLOWED[field]}."
    return f"{field} must be {ALLOWED[field]}."


def wishes(asked: OrderedTests) -> list[Wish]:
    """Find what is named, and make each test that is wanted."""
    ends = by_name(Endpoint, [asked.source, asked.destination])
    sizes = by_name(SizeClass, asked.sizes)
    if wrong := problems(asked, ends, sizes):
        raise BadQueryError(wrong)
    return [
        Wish(
            source=ends[asked.source],
            destination=ends[asked.destination],
            size_class=sizes[size],
            mover=asked.mover,
            mode=asked.mode,
            streams=asked.streams,
        )
        for size in asked.sizes
        for _ in range(asked.count)
    ]


def problems(
    asked: OrderedTests, ends: Mapping[str, Endpoint], sizes: Mapping[str, SizeClass]
) -> dict[str, list[str]]:
    """Say what cannot be, whatever goes on at the moment."""
    found: dict[str, list[str]] = {}
    for field in ("source", "destination"):
        if (name := getattr(asked, field)) not in ends:
            found[field] = [f"{field} “{name}” is no registered endpoint."]
    if asked.source == asked.destination:
        found["destination"] = ["destination must be another endpoint than source."]
    unknown = [name for name in asked.sizes if name not in sizes]
    if unknown:
        found["sizes"] = [f"sizes “{unknown[0]}” is no size class."]
    elif len(set(asked.sizes)) < len(asked.sizes):
        found["sizes"] = ["sizes names a size class twice: use count for several tests."]
    if asked.mover not in MOVERS:
        found["mover"] = [sentence("mover", "")]
    elif misfit := fitting(asked.mover, {name: end.base_url for name, end in ends.items()}):
        found["mover"] = [misfit]
    return found


def by_name(model: type[Named], names: Sequence[str]) -> dict[str, Named]:
    rows = model._default_manager.filter(name__in=names)
    return {row.name: row for row in rows}  # type: ignore[attr-defined]


def ordered_test(sought: UUID) -> Probe | Transfer | None:
    """Find a test by its id, whether it has ended or not."""
    return probes.rows().filter(id=sought).first() or transfers.known(sought)


def sites_of(tests: Iterable[Wish | Probe | Transfer]) -> set[int]:
    """Return the ids of the sites at both ends: an admin of either may order, and cancel."""
    return {end.site_id for one in tests for end in (one.source, one.destination)}
