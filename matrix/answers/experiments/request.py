"""Experiments that people and scripts ask for: read from a body or a form, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from matrix.answers import probe_request
from matrix.answers.probe_request import MOST_STREAMS, MOST_TESTS, MOVERS, Name
from matrix.query.forms import DEFAULT_SIZE, BadQueryError
from sonar.models import Experiment, SizeClass
from sonar.models.mesh import Mode
from sonar.movers import catalogue
from sonar.ordering.experiments import Sweep
from sonar.ordering.request_probes import ProbeRequest

MOST_VALUES = 10
# Of one experiment: its tests run one after the other, and somebody waits for them.
MOST_STEPS = 50
USUAL_STREAMS = (1, 2, 4, 8, 16)
USUAL_REPEATS = 3

Variable = Literal["streams", "size", "mode"]


class OrderedExperiment(BaseModel, extra="forbid", strict=True):
    """Tests of one link that differ in one variable, ``repeats`` of each value.

    Without ``values`` they are 1, 2, 4, 8 and 16 streams, all size classes, or pull and push.
    """

    source: Name
    destination: Name
    variable: Variable
    values: Annotated[list[int | Name], Field(min_length=2, max_length=MOST_VALUES)] | None = None
    repeats: Annotated[int, Field(ge=1, le=MOST_TESTS)] = USUAL_REPEATS
    size: Name = DEFAULT_SIZE
    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS)] = 1
    mover: Annotated[str, Field(json_schema_extra={"enum": list(MOVERS)})] = catalogue.DEFAULT
    mode: Literal["pull", "push"] = "pull"


ALLOWED = {
    **{name: probe_request.ALLOWED[name] for name in ("source", "destination", "streams")},
    **{name: probe_request.ALLOWED[name] for name in ("mover", "mode")},
    "variable": "streams, size or mode",
    "values": f"a list of 2 to {MOST_VALUES} values of the variable, or left out",
    "repeats": f"a whole number from 1 to {MOST_TESTS}",
    "size": "the name of a size class",
}
VALUES = {
    "streams": f"whole numbers from 1 to {MOST_STREAMS}, like 1, 2, 4",
    "size": "names of size classes",
    "mode": "pull and push",
}


def read(data: Mapping[str, object]) -> Sweep:
    """Read what is asked for; raise BadQueryError with sentences by field.

    Two SQL queries for each value, and one for the size classes.
    """
    try:
        ordered = OrderedExperiment.model_validate(data)
    except ValidationError as error:
        raise probe_request.refusal(error, ALLOWED) from error
    if catalogue.kept(ordered.mover).of_network:
        sentence = (
            f"The mover {ordered.mover} moves no files, and an experiment compares transfers."
        )
        raise BadQueryError({"mover": [sentence]})
    values = values_of(ordered)
    requests = [request_for(ordered, value) for value in values]
    steps = in_turns(range(len(values)), ordered.repeats)
    size_class = None if ordered.variable == "size" else requests[0].size_class
    return Sweep(
        variable=Experiment.Variable(ordered.variable),
        probe_requests=[requests[step] for step in steps],
        values=[str(values[step]) for step in steps],
        size_class=size_class,
        mode="" if ordered.variable == "mode" else ordered.mode,
        streams=None if ordered.variable == "streams" else ordered.streams,
    )


def values_of(ordered: OrderedExperiment) -> list[int | str]:
    """Return the values in their order; raise BadQueryError for what the variable cannot have."""
    values = sorted_values(ordered.variable, ordered.values or usual_values(ordered.variable))
    if len(values) < 2:
        raise BadQueryError(
            {"values": ["values must be at least two different ones: there is nothing to compare."]}
        )
    if len(values) * ordered.repeats > MOST_STEPS:
        tests = f"{len(values)} values with {ordered.repeats} repeats are"
        raise BadQueryError({"repeats": [f"{tests} more than {MOST_STEPS} tests: ask for fewer."]})
    return values


def usual_values(variable: Variable) -> list[int | str]:
    if variable == "size":
        return list(SizeClass.objects.values_list("name", flat=True))
    return list(USUAL_STREAMS) if variable == "streams" else list(Mode.values)


def sorted_values(variable: Variable, values: Sequence[int | str]) -> list[int | str]:
    """Return them once each, in ascending order; raise BadQueryError for one of another kind."""
    allowed: dict[int | str, int]
    if variable == "size":
        rows = SizeClass.objects.values_list("name", "test_bytes")
        allowed = dict(rows)
    elif variable == "mode":
        allowed = {mode: number for number, mode in enumerate(Mode.values)}
    else:
        allowed = {number: number for number in range(1, MOST_STREAMS + 1)}
    for value in values:
        # True would be a number of streams, of which Python says that it is 1.
        if value not in allowed or isinstance(value, bool):
            sentence = f"values “{value}” is not allowed for {variable}: use {VALUES[variable]}."
            raise BadQueryError({"values": [sentence]})
    return sorted(set(values), key=lambda value: allowed[value])


def request_for(ordered: OrderedExperiment, value: int | str) -> ProbeRequest:
    """Return the test of one value, checked as any test that is ordered."""
    test: dict[str, Any] = {
        "source": ordered.source,
        "destination": ordered.destination,
        "sizes": [ordered.size],
        "streams": ordered.streams,
        "mover": ordered.mover,
        "mode": ordered.mode,
    }
    test["sizes" if ordered.variable == "size" else ordered.variable] = (
        [value] if ordered.variable == "size" else value
    )
    try:
        (probe_request_of_value,) = probe_request.read(test)
    except BadQueryError as error:
        raise BadQueryError(by_own_fields(error, ordered.variable)) from error
    return probe_request_of_value


def by_own_fields(error: BadQueryError, variable: Variable) -> dict[str, list[str]]:
    """Return the sentences of a test by the fields of the experiment."""
    own = {"sizes": "size", variable: "values"} | (
        {"sizes": "values"} if variable == "size" else {}
    )
    return {own.get(field, field): texts for field, texts in error.errors.items()}


def in_turns(values: Sequence[int], repeats: int) -> list[int]:
    """Return all tests in the order in which they run: there and back through the values.

    So a rate that drifts while they run pulls no value more than another.
    """
    back = values[::-1]
    return [value for turn in range(repeats) for value in (back if turn % 2 else values)]


def form_values(text: str, variable: str) -> list[int | str] | None:
    """Read `1, 2, 4` as a form has it; nothing stands for the usual values."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        return None
    return [int(part) if variable == "streams" and part.isdecimal() else part for part in parts]
