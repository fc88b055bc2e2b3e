"""Sweeps that people and scripts ask for: read from a body or a form, and checked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from matrix.query.forms import DEFAULT_SIZE, BadQueryError
from matrix.store import probes, transfers
from sonar.models import Endpoint, Probe, Site, SizeClass, Sweep, Transfer
from sonar.models.fields import NAME
from sonar.models.mesh import Mode
from sonar.movers import catalogue
from sonar.notation.enumeration import either, unknown_field
from sonar.ordering.request_probes import AN_OPERATOR, ProbeRequest, SweepRequest
from sonar.people import roles
from sonar.people.roles import ORDER as ORDER  # noqa: PLC0414 - who orders tests asks here
from sonar.people.roles import Anyone

Name = Annotated[str, StringConstraints(pattern=NAME, max_length=80)]

MOST_SIZES, MOST_TESTS, MOST_STREAMS = 10, 10, 64
MOVERS = catalogue.names()


class OrderedTests(BaseModel, extra="forbid", strict=True):
    """A request for tests of one link."""

    source: Name
    destination: Name
    sizes: Annotated[list[Name], Field(min_length=1, max_length=MOST_SIZES)]
    count: Annotated[int, Field(ge=1, le=MOST_TESTS)] = 1
    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS)] = 1
    mover: Annotated[str, Field(json_schema_extra={"enum": list(MOVERS)})] = catalogue.DEFAULT
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


def read_tests(data: Mapping[str, object]) -> list[ProbeRequest]:
    """Read what is asked for; raise BadQueryError with sentences by field. Two SQL queries."""
    try:
        tests = OrderedTests.model_validate(data)
    except ValidationError as error:
        raise refusal(error, ALLOWED) from error
    ends = [tests.source, tests.destination]
    endpoints = Endpoint.objects.in_bulk(ends, field_name="name")
    sizes = SizeClass.objects.in_bulk(tests.sizes, field_name="name")
    if errors := problems(tests, endpoints, sizes):
        raise BadQueryError(errors)
    return [
        ProbeRequest(
            source=endpoints[tests.source],
            destination=endpoints[tests.destination],
            size_class=sizes[size],
            mover=tests.mover,
            mode=tests.mode,
            streams=tests.streams,
        )
        for size in tests.sizes
        for _ in range(tests.count)
    ]


def endpoints_of(text: str) -> list[Endpoint] | None:
    """Return the endpoint of this name, or those in use of the site of this name; else None.

    Whatever its case: no two names differ in that alone. Of a site those with files are meant, if
    it has any. Two SQL queries, three for a site.
    """
    endpoint = Endpoint.objects.select_related("site").filter(name__iexact=text).first()
    if endpoint:
        return [endpoint]
    site = Site.objects.filter(name__iexact=text).first()
    if site is None:
        return None
    in_use = list(Endpoint.objects.in_use().filter(site=site).select_related("site"))
    with_files = [end for end in in_use if catalogue.carries_files(end.base_url)]
    return with_files or in_use


def refusal_for(user: Anyone, tests: Iterable[ProbeRequest]) -> str:
    """Say why an account may not order these tests; nothing if it may."""
    if roles.may(user, ORDER, sites_of(tests)):
        return ""
    names = list(Site.objects.filter(id__in=roles.sites_of(user)).values_list("name", flat=True))
    whose = f"your site {names[0]}" if len(names) == 1 else f"one of your sites: {either(names)}"
    return f"The source or the destination must be at {whose}."


def canceller(user: Anyone) -> str:
    """Name who cancels a test, as all readers may read it; the history has the account."""
    return AN_OPERATOR if user.has_perm(ORDER) else "an admin of its site"


def refusal(error: ValidationError, allowed: Mapping[str, str]) -> BadQueryError:
    """Say of each field of a body that is wrong what is allowed there."""
    wrong = {str(each["loc"][0]): each["type"] for each in error.errors()}
    return BadQueryError({field: [sentence(field, kind, allowed)] for field, kind in wrong.items()})


def sentence(field: str, kind: str, allowed: Mapping[str, str] = ALLOWED) -> str:
    if kind == "extra_forbidden":
        return unknown_field(field, sorted(allowed))
    if kind == "missing":
        return f"{field} is missing: give {allowed[field]}."
    return f"{field} must be {allowed[field]}."


def problems(
    tests: OrderedTests, endpoints: Mapping[str, Endpoint], sizes: Mapping[str, SizeClass]
) -> dict[str, list[str]]:
    """Say what cannot be, whatever goes on at the moment."""
    errors: dict[str, list[str]] = {}
    for field in ("source", "destination"):
        if (name := getattr(tests, field)) not in endpoints:
            errors[field] = [f"{field} “{name}” is not a registered endpoint."]
    if tests.source == tests.destination:
        errors["destination"] = ["“destination” must be a different endpoint from “source”."]
    unknown = [name for name in tests.sizes if name not in sizes]
    if unknown:
        errors["sizes"] = [f"“{unknown[0]}” is not a size class."]
    elif len(set(tests.sizes)) < len(tests.sizes):
        errors["sizes"] = ["“sizes” contains a size class twice: use “count” to run several tests."]
    if tests.mover not in MOVERS:
        errors["mover"] = [sentence("mover", "")]
        return errors
    base_urls = {name: endpoint.base_url for name, endpoint in endpoints.items()}
    mover = catalogue.describe(tests.mover)
    if mismatch := mover.scheme_mismatch(tests.mode, base_urls):
        errors["mover"] = [mismatch]
    refusals = mover.refusals(tests.mode, streams=tests.streams)
    return errors | {field: [refusal] for field, refusal in refusals.items()}


def ordered_test(test_id: UUID) -> Probe | Transfer | None:
    return probes.rows().filter(id=test_id).first() or transfers.by_id(test_id)


def sites_of(tests: Iterable[ProbeRequest | Probe | Transfer | Sweep]) -> set[int]:
    """Return the ids of the sites at both ends: an admin of either may order, and cancel."""
    return {end.site_id for test in tests for end in (test.source, test.destination)}


MOST_VALUES = 10
# Of one sweep: its tests run one after the other, and somebody waits for them.
MOST_STEPS = 50
USUAL_STREAMS = (1, 2, 4, 8, 16)
USUAL_REPEATS = 3

Variable = Literal["streams", "size", "mode"]


class OrderedSweep(BaseModel, extra="forbid", strict=True):
    """A request for a parameter sweep: tests of one link that differ in one variable."""

    source: Name
    destination: Name
    variable: Variable
    values: Annotated[list[int | Name], Field(min_length=2, max_length=MOST_VALUES)] | None = None
    repeats: Annotated[int, Field(ge=1, le=MOST_TESTS)] = USUAL_REPEATS
    size: Name = DEFAULT_SIZE
    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS)] = 1
    mover: Annotated[str, Field(json_schema_extra={"enum": list(MOVERS)})] = catalogue.DEFAULT
    mode: Literal["pull", "push"] = "pull"


ALLOWED_IN_SWEEPS = {
    **{name: ALLOWED[name] for name in ("source", "destination", "streams")},
    **{name: ALLOWED[name] for name in ("mover", "mode")},
    "variable": "streams, size or mode",
    "values": f"a list of 2 to {MOST_VALUES} values of the variable, or omitted",
    "repeats": f"a whole number from 1 to {MOST_TESTS}",
    "size": "the name of a size class",
}
VALUES = {
    "streams": f"whole numbers from 1 to {MOST_STREAMS}, for example, 1, 2, 4",
    "size": "names of size classes",
    "mode": "pull and push",
}


def read_sweep(data: Mapping[str, object]) -> SweepRequest:
    """Read what is asked for; raise BadQueryError with sentences by field.

    Two SQL queries for each value, and one for the size classes.
    """
    try:
        ordered = OrderedSweep.model_validate(data)
    except ValidationError as error:
        raise refusal(error, ALLOWED_IN_SWEEPS) from error
    if catalogue.kept(ordered.mover).of_network:
        sentence = (
            f"The transfer tool {ordered.mover} does not copy files, but a sweep requires copies."
        )
        raise BadQueryError({"mover": [sentence]})
    values = values_of(ordered)
    requests, is_of_sizes = [], ordered.variable == "size"
    for value in values:
        # The test of this value, checked as any test that is ordered.
        test: dict[str, Any] = {
            name: getattr(ordered, name)
            for name in ("source", "destination", "streams", "mover", "mode")
        } | {"sizes": [value if is_of_sizes else ordered.size]}
        if not is_of_sizes:
            test[ordered.variable] = value
        try:
            requests += read_tests(test)
        except BadQueryError as error:
            # Each sentence stands at the field of the sweep.
            own = {"sizes": "values" if is_of_sizes else "size", ordered.variable: "values"}
            errors = {own.get(field, field): texts for field, texts in error.errors.items()}
            raise BadQueryError(errors) from error
    # There and back through the values: so a rate that drifts pulls no value more than another.
    there = range(len(values))
    steps = [
        step for turn in range(ordered.repeats) for step in (there[::-1] if turn % 2 else there)
    ]
    size_class = None if is_of_sizes else requests[0].size_class
    return SweepRequest(
        variable=Sweep.Variable(ordered.variable),
        probe_requests=[requests[step] for step in steps],
        values=[str(values[step]) for step in steps],
        size_class=size_class,
        mode="" if ordered.variable == "mode" else ordered.mode,
        streams=None if ordered.variable == "streams" else ordered.streams,
    )


def why_not_varied(movers: Sequence[str], base_urls: Mapping[str, str]) -> dict[str, str]:
    """Say of each variable why no sweep of a link can vary it; nothing of those that it can.

    ``movers`` are those that fit the link, ``base_urls`` those of its ends by name. One SQL query.
    """
    able = [catalogue.describe(name) for name in movers]
    moves_files = [mover for mover in able if not mover.of_network]
    reasons = {}
    if not any("streams" in mover.parameters for mover in moves_files):
        reasons["streams"] = "no transfer tool of this link accepts a number of streams"
    if SizeClass.objects.count() < 2:
        reasons["size"] = "there is only one size class"
    offered = (
        [mode for mode in mover.modes if not mover.scheme_mismatch(mode, base_urls)]
        for mover in moves_files
        if not mover.asks_service
    )
    if not any(len(modes) > 1 for modes in offered):
        reasons["mode"] = "no transfer tool of this link supports both pull and push"
    return reasons


def values_of(ordered: OrderedSweep) -> list[int | str]:
    """Return the values once each, in ascending order.

    Raise BadQueryError for what the variable cannot have, for a single value and too many tests.
    """
    places: dict[int | str, int]
    if ordered.variable == "size":
        places = dict(SizeClass.objects.values_list("name", "test_bytes"))
    elif ordered.variable == "mode":
        places = {mode: number for number, mode in enumerate(Mode.values)}
    else:
        places = {number: number for number in range(1, MOST_STREAMS + 1)}
    usual = USUAL_STREAMS if ordered.variable == "streams" else places
    values = ordered.values or list(usual)
    for value in values:
        # True would be a number of streams, of which Python says that it is 1.
        if value not in places or isinstance(value, bool):
            allowed = f"is not allowed for {ordered.variable}: use {VALUES[ordered.variable]}."
            raise BadQueryError({"values": [f"values “{value}” {allowed}"]})
    ascending = sorted(set(values), key=lambda value: places[value])
    if len(ascending) < 2:
        raise BadQueryError({"values": ["“values” must contain at least two different values."]})
    if len(ascending) * ordered.repeats > MOST_STEPS:
        sentence = (
            f"{len(ascending)} values with {ordered.repeats} repeats exceed the limit of "
            f"{MOST_STEPS} tests: use fewer values or repeats."
        )
        raise BadQueryError({"repeats": [sentence]})
    return ascending


def form_values(text: str, variable: str) -> list[int | str] | None:
    """Read values with commas or spaces between them; return None if there are no values."""
    parts = text.replace(",", " ").split()
    if not parts:
        return None
    return [int(part) if variable == "streams" and part.isdecimal() else part for part in parts]
