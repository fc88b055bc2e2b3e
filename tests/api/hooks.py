"""What schemathesis leaves out and puts in, and what it looks for beside its own checks."""

import gc
import json
import os
import re
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from zlib import crc32

import schemathesis
from schemathesis import Case, CheckContext, HookContext, Response, SerializationContext
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.openapi.checks import UseAfterFree

from tests.api import edges

# What was imported stays: there is no garbage to look for in it.
gc.freeze()

# gunicorn answers a longer first line itself, before Sonar sees it.
LONGEST_QUERY = 3500
# Of the addresses of the world's endpoints, which are not for everybody.
INTERNAL = "disk.example.org"
# Whose deletion cancels what has not begun, and leaves them to be read.
CANCELLED = re.compile(r"/(sweeps|probes)/")
# What the small world has, put in place of two made up values of three.
SITES = ("RAL", "Glasgow", "DESY")
ENDPOINTS = ("RAL_DATADISK", "Glasgow_DATADISK", "DESY_DATADISK", "DESY_SCRATCHDISK")
KNOWN = {
    "site": SITES,
    "sites": SITES,
    "endpoint": ENDPOINTS,
    "endpoints": ENDPOINTS,
    "source": ENDPOINTS[:2],
    "destination": ENDPOINTS[2:],
    "size": ("small", "medium", "large"),
    "compare": ("previous", "week", "month"),
    "around": ("2026-11-19T20:15:00Z",),
    "sources": ENDPOINTS,
    "destinations": ENDPOINTS,
    "mover": ("http-tpc", "fake"),
    "mesh": ("everything",),
    "meshes": ("everything",),
    "size-classes": ("small", "medium", "large"),
    "from": ("2026-11-13T00:00:00Z", "2026-11-20T11:00:00Z"),
    "to": ("2026-11-20T14:00:00Z",),
    "streams": ("1", "8"),
    "fields": ("value,ok",),
    "cursor": ("",),
    "max_age": ("3h", "7200"),
    "age": ("6h", "86400"),
    "size_mean_bytes": ("200MB", "0"),
    "size_std_bytes": ("1.5 GB", "0"),
    "data_hosts": ("st-*.disk.example.org:1094", "192.0.2.0/24:20000-25000", "[2001:db8::/48]"),
    "cloud": ("UK", "DE"),
    "tag": ("dc27",),
}
# `source_site` is a site, `large.age.max` an age.
NOT_THE_NAME = re.compile(r"^(compare\.)?(source_|destination_|\w+\.(?=\w+\.))?|\.(min|max)$")
Values = dict[str, Any]


def mended(name: str, given: object) -> object:
    """Return what the world knows by this name, if it knows anything, chosen by what was given."""
    if isinstance(given, list):
        return [mended(name, one) for one in given]
    if name == "every":
        return {"small": "6h", "large": 86400}
    if isinstance(given, dict):
        return {key: mended(key, one) for key, one in given.items()}
    if isinstance(given, float):
        return round(given % 1000, 3)
    if not isinstance(given, str):
        return given
    names = KNOWN.get(NOT_THE_NAME.sub("", name))
    printable = "".join(filter(str.isprintable, given))
    return names[number_of(given) % len(names)] if names else printable


def number_of(given: object) -> int:
    """Return a number that is the same whenever the same is made up."""
    return sum(map(ord, str(given)))


def chance_of(case: Case) -> Random:
    """Return what decides about a case: the same whenever the same is made up of one seed."""
    parts = (case.method, case.path, case.query, case.path_parameters, case.body)
    made_up = os.environ["FUZZ_PASS"] + repr(parts)
    return Random(crc32(made_up.encode(errors="surrogatepass")))


@schemathesis.hook
def filter_query(context: HookContext, query: Values | None) -> bool:
    return is_short(query or {})


def is_short(query: Values) -> bool:
    return len(urlencode(query, doseq=True)) < LONGEST_QUERY


@schemathesis.hook
def filter_failure(context: HookContext, failure: Failure, case: Case, response: Response) -> bool:
    """Drop that a parameter was not refused that is as good as none: it was sent empty or blank.

    What is sent tells, as empty lists and objects are made the same of: `name=`. And that an
    sweep or a test is still there that was deleted: that cancels what has not begun.
    """
    if isinstance(failure, UseAfterFree):
        return not CANCELLED.search(failure.free)
    if not isinstance(failure, AcceptedNegativeData):
        return True
    sent = parse_qsl(urlsplit(response.request.url).query, keep_blank_values=True)
    return all(text.strip() for _, text in sent)


@schemathesis.hook
def map_case(context: HookContext, case: Case) -> Case:
    """Mend all of a case that is meant to be right, or nothing: one unknown name is a 400.

    Then go to the ends with one or two of its values, in half of these cases.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return case
    chance = chance_of(case)
    if chance.randrange(3):
        mend(case)
    if chance.randrange(2):
        for _ in range(chance.randint(1, 2)):
            go_to_an_end(case, chance)
    return case


def mend(case: Case) -> None:
    if case.query:
        case.query = mended_query(dict(case.query))
    if "name" in (case.path_parameters or {}):
        plural = case.operation.path.split("/")[3]
        name = mended(plural, case.path_parameters["name"])
        case.path_parameters = {**case.path_parameters, "name": name}
    if isinstance(case.body, dict):
        case.body = {name: mended(name, given) for name, given in case.body.items()}


def go_to_an_end(case: Case, chance: Random) -> None:
    """Put a value at an end of its range, or a name in a strange form, in place of one of a case.

    Where a body is sent it is most often there, and seldom in the path, which leads to a 404.
    """
    body = deepcopy(case.body)
    places = list(leaves(body))
    if places and chance.randrange(4):
        container, key, name = chance.choice(places)
        container[key] = edges.in_json(name, container[key], chance)
        case.body = body
    elif case.path_parameters and chance.randrange(6) == 0:
        end_of_path(case, chance)
    else:
        end_of_query(case, chance)


def end_of_path(case: Case, chance: Random) -> None:
    name = chance.choice(sorted(case.path_parameters))
    given = edges.written(name, chance)
    # Dots are taken out of a path before it is sent, which leads to another call.
    case.path_parameters = {**case.path_parameters, name: quote(given.replace(".", "_"), safe="")}


def end_of_query(case: Case, chance: Random) -> None:
    names = [one.name for one in case.operation.query]
    if names:
        name = chance.choice(sorted(names))
        query = {**(case.query or {}), name: edges.written(name, chance)}
        case.query = query if is_short(query) else case.query


def leaves(body: object, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield each value of a body by what holds it, its key there, and the name of its field."""
    if isinstance(body, dict | list):
        for key, value in list(body.items() if isinstance(body, dict) else enumerate(body)):
            named = str(key) if isinstance(body, dict) else name
            yield (body, key, named)
            yield from leaves(value, named)


def mended_query(query: Values) -> Values:
    if query.keys() & {"from", "to"}:
        query = {name: query[name] for name in query if name != "window"} | {"from": "", "to": ""}
    return {name: mended(name, given) for name, given in query.items()}


@schemathesis.serializer("application/json")
def json_of(context: SerializationContext, value: object) -> bytes:
    """Write a body as what is sent: with surrogates where something stands for them."""
    if isinstance(value, bytes):  # Made up as what is no JSON.
        return value
    return edges.with_surrogates(json.dumps(value)).encode()


@schemathesis.check
def errors_have_one_shape(context: CheckContext, response: Response, case: Case) -> None:
    """Every refusal is JSON that says what is wrong, also where the schema knows no such call."""
    if response.status_code < 400 or case.method == "HEAD":
        return
    assert response.headers["content-type"] == ["application/json"], response.headers
    told = response.json()
    assert told.keys() == {"detail", "errors"}, told
    sentences = [one for some in told["errors"].values() for one in some]
    assert all(isinstance(one, str) and one for one in [told["detail"], *sentences]), told


@schemathesis.check
def nobody_is_told_internal_addresses(
    context: CheckContext, response: Response, case: Case
) -> None:
    if os.environ["FUZZ_AS"] == "anonymous":
        assert INTERNAL not in (response.text or "")
