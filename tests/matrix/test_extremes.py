"""Times and numbers at both ends of their ranges, and texts that PostgreSQL does not take.

Whatever stands in a parameter, a form, a body or a path: there is an answer, and it is no crash.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
from django.test import Client
from hypothesis import example, given
from hypothesis import strategies as st
from pytest_django import Settings

from sonar.notation.windows import format_time, parse_time
from sonar.people.roles import Role
from tests.api.edges import BEYOND, FIRST, LAST
from tests.matrix.registry import BODIES, END, START, caller
from tests.matrix.world import World
from tests.properties import examples
from tests.rights_samples import RESULT

API = "/api/v1"
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
ID = str(UUID(int=7))
TIMES = (
    FIRST,
    f"{FIRST}+00:00",
    LAST,
    f"{LAST}.999999Z",
    "1970-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    *BEYOND,
)
CURSORS = tuple(f"{moment}_{ID}" for moment in TIMES)
NUMBERS = (
    *("0", "-0", "-1", "1", "1e400", "-1e400", "inf", "-inf", "nan", "NaN", "1e-400", "9" * 15),
    *(str(2**31), str(2**32), str(2**63), str(2**64)),
    *("1" + "0" * 30, "999999999999999TB", "1" * 5000, "0" * 5000 + "1"),
    *("9999999d", "99999999999d", "²", "१२", "0x10", "1_000", "1.", ".5"),
)
TEXTS = (
    *("\0", "a\0b", "\ud800", "a\udfff", "\uffff", "\u202e", "%00", "%ff"),
    *("\U0001f600" * 30, "=1+1", "'", "\\"),
)
PLACES = (
    *("0-0", "9999999999-1", "9999999999-999999999", "1-999999999"),
    *(f"{number}.{number}" for number in ("0", "-1", "9" * 18, "9" * 19)),
    *("99999999999999999.1", "-62135596800000001.1", "9" * 19, f"-{'9' * 19}"),
)
ANYTHING = (*BEYOND, *NUMBERS[-12:], *TEXTS)
VALUES = {
    **dict.fromkeys(("from", "to"), (*TIMES, *TEXTS)),
    **dict.fromkeys(("before", "cursor"), (*CURSORS, *PLACES, *NUMBERS[-12:], *TEXTS)),
    **dict.fromkeys(("page", "page_size", "p"), (*NUMBERS, "\0")),
}


def every_other(values: Sequence[Any], turn: int, step: int = 2) -> Sequence[Any]:
    """Return one in ``step`` values, of which neighbours are alike: at the next turn others."""
    return values[turn % step :: step]


# Those that all questions share are read by one form: one page and one call stand for all.
QUERY = ("from", "to", "tier", "source_tier", "ip_version", "streams", "size", "concurrent", "mesh")
BOUNDS = tuple(
    f"{column}.{bound}"
    for column, bound in (
        ("priority", "max"),
        ("large.size_mean_bytes", "min"),
        ("large.age", "max"),
    )
)
TABLE = ("from", "max_age", "min_mb_s", "source.has", "source.tier.is", "search")
# What takes times, numbers and texts, by address; none takes more than these kinds.
TAKES: dict[str, tuple[str, ...]] = {
    "/": (*QUERY, "above", "below", "low", "high", "site"),
    "/cells/": ("to", "above"),
    "/table/": (*TABLE, *BOUNDS, "page", "per_page"),
    LINK: ("from", "before", "show"),
    "/sites/": ("from", "search"),
    "/sites/RAL/": ("from", "to"),
    "/search/": ("q",),
    "/operations/": ("page",),
    f"{API}/matrix/": (*QUERY, "fields"),
    f"{API}/links/": (*TABLE, "page_size", "cursor"),
    f"{API}/series/?source=RAL_DATADISK&destination=DESY_DATADISK": ("from", "bucket", "points"),
    f"{API}/transfers/": ("from", "cursor", "page_size", "error", "source", "state"),
    f"{API}/probes/": ("cursor", "page_size", "source", "site", "size", "state"),
    f"{API}/sites/": ("from", "cursor", "page_size", "search"),
    f"{API}/sites/RAL/": ("from", "to"),
    f"{API}/endpoints/": ("cursor", "page_size", "site", "cloud", "label"),
    f"{API}/meshes/": ("cursor", "page_size", "mover"),
    f"{API}/size-classes/": ("cursor", "page_size"),
    f"{API}/downtimes/": ("cursor", "page_size", "from", "to", "site", "endpoint"),
    f"{API}/annotations/": ("cursor", "page_size", "from", "to", "site", "source"),
    "/admin/sonar/site/": ("q", "cloud", "tier__exact", "p", "o"),
    "/admin/sonar/transfer/": ("q", "state__exact", "p"),
}
PATHS = (
    *("/sites/{}/", "/links/{}/RAL_DATADISK/", "/transfers/{}/", "/operations/probes/{}/cancel/"),
    *(f"{API}/{plural}/{{}}/" for plural in BODIES),
    *(f"{API}/transfers/{{}}/", f"{API}/probes/{{}}/", "/admin/sonar/site/{}/change/"),
)

pytestmark = pytest.mark.django_db
in_process = examples(8)


@pytest.fixture
def everybody(small_world: World, settings: Settings) -> Client:
    """An administrator, who gets at everything, as often and as wrong as it takes."""
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = (100_000, 60)
    return caller(Role.ADMINISTRATOR)


def foreign_times() -> st.SearchStrategy[str]:
    """Times near both ends of what datetime has, with whatever zone there can be."""
    zones = st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59))
    far = timedelta(hours=30)
    moments = st.one_of(
        st.datetimes(datetime.min, datetime.min + far),
        st.datetimes(datetime.max - far, datetime.max),
        st.datetimes(),
    )
    return st.builds(
        lambda when, zone: when.replace(tzinfo=timezone(zone)).isoformat(), moments, zones
    )


def answered(response: Any) -> int:
    """Read an answer to its end, and return its status."""
    if response.streaming:
        b"".join(response.streaming_content)
    return int(response.status_code)


def asked(client: Client, address: str, **params: str) -> int:
    text = urlencode(params, errors="surrogatepass")
    return answered(client.get(f"{address}{'&' if '?' in address else '?'}{text}"))


# Reading a time


@given(foreign_times())
@example(f"{FIRST}+14:00")
@example(f"{LAST}-14:00")
def test_a_time_is_read_as_utc_or_refused_with_a_value_error(text):
    """Whoever reads one expects nothing else: an overflow once was a crash for everybody."""
    given_time = datetime.fromisoformat(text)
    try:
        read = parse_time(text)
    except ValueError:
        within = datetime.min + timedelta(days=1), datetime.max - timedelta(days=1)
        assert not within[0] <= given_time.replace(tzinfo=None) <= within[1]
    else:
        assert read == given_time
        assert read.utcoffset() == timedelta(0)


@given(st.text() | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d)?"))
def test_no_text_at_all_raises_anything_but_a_value_error(text):
    with suppress(ValueError):
        assert parse_time(text).tzinfo is UTC


def test_a_time_that_utc_does_not_have_is_refused_with_a_sentence():
    with pytest.raises(
        ValueError, match="'9999-12-31T23:59:59-14:00' is outside the years 1 to 99"
    ):
        parse_time(f"{LAST}-14:00")


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_of_whatever_year_is_written_as_it_is_read(moment):
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


# Parameters


@pytest.mark.parametrize(
    ("address", "parameter"), [(LINK, "before"), (f"{API}/transfers/", "cursor")]
)
def test_a_place_in_a_list_at_the_end_of_time_is_answered(everybody, address, parameter):
    """Both were crashes for anybody."""
    for moment in TIMES:
        response = everybody.get(address, {parameter: f"{moment}_{ID}"}, follow=True)
        assert response.status_code == (400 if moment in BEYOND else 200), moment
        if response.status_code == 400:
            assert f"“{parameter}” " in response.content.decode()


@pytest.mark.long
@pytest.mark.parametrize("address", TAKES)
def test_no_extreme_value_of_any_parameter_is_a_crash(everybody, address):
    """Each alone: an answer, or a 400 that names the parameter in its text."""
    for turn, name in enumerate(TAKES[address], list(TAKES).index(address)):
        # tests/test_odd_requests.py tries each parameter there is.
        for value in every_other(VALUES.get(name, ANYTHING), turn, 4):
            assert asked(everybody, address, **{name: value}) < 500, (name, value)


@pytest.mark.parametrize("address", [one for one in TAKES if "from" in TAKES[one]])
@in_process
@given(start=foreign_times(), end=foreign_times())
@example(start="1970-01-01T00:00:00Z", end=f"{LAST}Z")
@example(start="9999-12-31T23:59:58Z", end=f"{LAST}Z")
@example(start="1970-01-01T00:00:00Z", end="1970-01-01T00:00:01Z")
def test_no_window_however_far_or_long_is_a_crash(everybody, address, start, end):
    """What is computed of a window, like the one before it, may lie beyond what there is."""
    bounds = {"from": start.partition(".")[0], "to": end.partition(".")[0]}
    assert asked(everybody, address, **bounds) in (200, 302, 400, 404)
    response = everybody.get(address, bounds, follow=True)
    assert answered(response) in (200, 400)


@pytest.mark.long
def test_no_name_or_number_in_a_path_is_a_crash(everybody):
    for turn, path in enumerate(PATHS):
        for value in every_other(ANYTHING, turn):
            address = path.format(quote(value, safe="", errors="surrogatepass"))
            for method in (everybody.get, everybody.patch) if "/api/" in path else (everybody.get,):
                assert answered(method(address)) < 500, (path, value)


# Bodies and forms

WRITTEN = (*TIMES, *NUMBERS[-8:])
WRONG: tuple[Any, ...] = (
    *(0, -1, 2**31, 2**63, 2**64 - 1, -(2**63), 1.7e308, 5e-324, None, True),
    *([], {}, [[]], {"": ""}, "\0", "x" * 90_000, "\uffff"),
)
BODY_OF = {f"{API}/{plural}/": new for plural, (new, _) in BODIES.items()} | {
    f"{API}/probes/": {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "sizes": ["small"]}
}
FORMS = {
    "/notes/": {"site": "RAL", "text": "x", "starts_at": START, "ends_at": END},
    "/tokens/": {"name": "n", "scopes": "read", "days": "1"},
    "/tokens/revoke/": {"key": "x"},
    "/my-site/": {"site": "RAL", "next": "/"},
    "/operations/probes/": {
        "source": "RAL_DATADISK",
        "destination": "Glasgow_DATADISK",
        "size": "x",
    },
    "/login/": {"username": "x", "password": "y"},
    "/admin/sonar/site/add/": {"name": "x", "tier": "1", "latitude": "1", "wan_gbit_s": "1"},
    "/admin/sonar/downtime/add/": {"starts_at_0": "2026-01-01", "starts_at_1": "1:00"},
}


@pytest.mark.long
@pytest.mark.parametrize("address", BODY_OF)
def test_no_extreme_value_of_a_field_of_the_registry_is_a_crash(everybody, address):
    kind = BODIES.get(address.split("/")[-2], ({}, {}))
    body = BODY_OF[address] | kind[1]
    for turn, name in enumerate(body, list(BODY_OF).index(address)):
        for value in (*WRONG, *every_other(WRITTEN, turn)):
            sent = json.dumps(body | {name: value})
            response = everybody.post(address, sent, content_type="application/json")
            assert answered(response) < 500, (name, value)


def test_no_extreme_value_of_a_result_is_a_crash(everybody):
    for name in [*RESULT, "error", "streams", "ip_version", "concurrent_at_source_mean"]:
        sent = json.dumps([RESULT | {name: value} for value in (*WRONG, *WRITTEN)])
        response = everybody.post(f"{API}/transfers/", sent, content_type="application/json")
        assert answered(response) < 500, name


ODD_BODIES = (
    *("[" * 100_000, '{"a":' * 10_000, "[" * 1000 + "]" * 1000),
    '[{"id":' + "[" * 900 + "]" * 900 + "}]",
    *("1" * 10_000, f"[{'1' * 10_000}]", "[1e400]", "[NaN]", "[-Infinity]"),
    *('["\\ud800"]', '[{"\\ud800": 1}]', '{"name": "\\udc00"}'),
)


@pytest.mark.parametrize("address", [*BODY_OF, f"{API}/transfers/"])
def test_no_body_is_too_deep_or_too_odd_to_be_answered(everybody, address):
    for body in ODD_BODIES:
        response = everybody.post(address, body, content_type="application/json")
        assert response.status_code == 400, body[:20]


@pytest.mark.long
@pytest.mark.parametrize("address", FORMS)
def test_no_extreme_value_of_a_form_is_a_crash(everybody, address):
    for turn, name in enumerate(FORMS[address], list(FORMS).index(address)):
        for value in (*every_other((*BEYOND, *NUMBERS[-12:]), turn), "\0", "\uffff", "x" * 10_000):
            response = everybody.post(address, FORMS[address] | {name: value})
            assert answered(response) < 500, (name, value)
