"""What is wrong with a body or a parameter is said in a sentence, and nothing is kept."""

import json
from typing import Any

import pytest
from django.apps import apps
from hypothesis import given
from hypothesis import strategies as st

from matrix.api.registry.aliases import ALIASES
from matrix.api.registry.criteria_sets import CRITERIA_SETS
from matrix.api.registry.meshes import MESHES, SIZE_CLASSES
from matrix.api.registry.notes import ANNOTATIONS, DOWNTIMES
from matrix.api.registry.sites import ENDPOINTS, SITES
from matrix.api.registry.subscriptions import SUBSCRIPTIONS
from matrix.api.registry.targets import TARGETS
from matrix.api.registry.values import worded
from sonar.movers.catalogue import names
from sonar.notation.enumeration import either
from tests.matrix.registry import BODIES, JSON, PLURALS, address, get, made, patch, post
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
RESOURCES = {
    resource.slug: resource
    for resource in (
        *(SITES, ENDPOINTS, SIZE_CLASSES, MESHES, CRITERIA_SETS, TARGETS),
        *(DOWNTIMES, ANNOTATIONS, ALIASES, SUBSCRIPTIONS),
    )
}
MODELS = (
    "Site",
    "Endpoint",
    "SizeClass",
    "Mesh",
    "MeshInterval",
    "CriteriaSet",
    "Target",
    "Downtime",
    "Annotation",
    "Alias",
)


def kept() -> list[Any]:
    models = [apps.get_model("sonar", name) for name in MODELS]
    return [list(model.objects.order_by("pk").values()) for model in models]


def refused(response: Any, field: str, said: str, status: int = 400) -> None:
    assert response.status_code == status, response.content
    answer = response.json()
    assert set(answer) == {"detail", "errors"}
    assert list(answer["errors"]) == [field]
    assert said in answer["errors"][field][0]
    assert said in answer["detail"]


NO_BUFFERS = "transfer tool http-tpc cannot set TCP buffers: “tcp_buffer_bytes” must"
LABELLED = {"scitag": "2/11", "mover": "gridftp", "mode": "push"}
OF_A_NOTE = "A note needs a site, or the source and destination of a link."
WRONG = [
    ("sites", {"name": "a b"}, "name", 'name "a b" is not 1 to 80 letters, digits, dots, dashes'),
    ("sites", {"name": ""}, "name", 'name "" is not 1 to 80 letters'),
    ("sites", {"name": "RAL\n"}, "name", 'name "RAL\\n" is not 1 to 80 letters'),
    ("sites", {"name": "x" * 81}, "name", "is not 1 to 80 letters"),
    ("sites", {"name": None}, "name", "name null is not 1 to 80 letters"),
    ("sites", {"name": 7}, "name", "name 7 is not"),
    ("sites", {"cloud": "U\0K"}, "cloud", 'cloud "U\\u0000K" is not a single line of at most'),
    ("sites", {"cloud": "x" * 41}, "cloud", "is not a single line of at most 40 characters"),
    ("sites", {"quiet_hours": "25:00-26:00"}, "quiet_hours", "in UTC (for example, 01:00-05:30)"),
    (
        "sites",
        {"quiet_hours": "05:00-05:00"},
        "quiet_hours",
        "need a start and an end, at different times",
    ),
    ("targets", {"floor_mb_s": "20"}, "floor_mb_s", 'floor_mb_s "20" is not a number from 0.001'),
    ("targets", {"floor_mb_s": 0}, "floor_mb_s", "floor_mb_s 0 is not a number from 0.001 to"),
    ("targets", {"floor": 20}, "floor", "The field “floor” is now called floor_mb_s."),
    ("targets", {"below": 1.5}, "below", "below 1.5 is not a number from 0.05 to 1"),
    ("targets", {"below": 0.9}, "above", "must not be less than “below”, which is 0.9."),
    ("targets", {"bad": 2}, "bad", "There is no field “bad”: use name, enabled,"),
    ("targets", {"of": 3}, "of", "There is no field “of”: use name, enabled,"),
    ("targets", {"mesh": "none"}, "mesh", "mesh “none” is not known: use the name of a"),
    ("targets", {"sources": ["RAL_DATADISK"]}, "sources", 'is not "all", or a filter by'),
    ("targets", {"sources": {"cloudy": "UK"}}, "sources", "“cloudy” is not an attribute"),
    ("targets", {"size_class": "huge"}, "size_class", "size_class “huge” is not known"),
    ("aliases", {"kind": "x"}, "kind", 'kind "x" is not rse, se_host'),
    ("aliases", {"name": " x"}, "name", "An alias must be printable text, without spaces"),
    ("aliases", {"site": "RAL"}, "site", "choose exactly one"),
    ("aliases", {"endpoint": "NO"}, "endpoint", "endpoint “NO” is not known"),
    ("sites", {"paused": "yes"}, "paused", 'paused "yes" is not true or false.'),
    (
        "sites",
        {"paused": True},
        "pause_reason",
        "“pause_reason” is missing: give the reason for the pause.",
    ),
    ("sites", {"paused": True, "pause_reason": " "}, "pause_reason", "“pause_reason” is missing"),
    ("sites", {"pause_reason": "x" * 201}, "pause_reason", "at most 200 characters"),
    ("sites", {"pause_reason": "x"}, "pause_reason", "“pause_reason” requires “paused”: true."),
    ("sites", {"paused_until": "3000-01-01T00:00:00Z"}, "paused_until", "is not an ISO 8601 time"),
    (
        "sites",
        {"paused_until": "2999-01-01T00:00:00Z"},
        "paused_until",
        "“paused_until” requires “paused”: true",
    ),
    ("sites", {"tier": 4}, "tier", "tier 4 is not a whole number from 0 to 3."),
    ("sites", {"tier": "2"}, "tier", 'tier "2" is not a whole number from 0 to 3.'),
    ("sites", {"tier": True}, "tier", "tier true is not a whole number from 0 to 3."),
    ("sites", {"tier": 2.5}, "tier", "tier 2.5 is not a whole number"),
    ("sites", {"tier": 10**30}, "tier", "is not a whole number from 0 to 3."),
    ("sites", {"tier": None}, "tier", "tier null is not a whole number from 0 to 3."),
    ("sites", {"country": "gb"}, "country", "two capital letters"),
    ("sites", {"latitude": 90.5}, "latitude", "latitude 90.5 is not a number from -90 to 90"),
    ("sites", {"latitude": "55"}, "latitude", "is not a number from -90 to 90, or null."),
    ("sites", {"wan_gbit_s": 0}, "wan_gbit_s", "wan_gbit_s 0 is not a number from 0.001 to"),
    ("sites", {"wan_gbit_s": [1]}, "wan_gbit_s", "wan_gbit_s [1] is not a number"),
    ("sites", {"colour": 1}, "colour", "There is no field “colour”: use name, cloud,"),
    ("sites", {"endpoints": []}, "endpoints", "There is no field “endpoints”"),
    ("endpoints", {"name": "state"}, "name", "The endpoint cannot be named “state”: Sonar uses"),
    ("targets", {"name": "add"}, "name", "The target cannot be named “add”: Sonar uses"),
    ("endpoints", {"site": "Nowhere"}, "site", "site “Nowhere” is not known: use the name of a"),
    ("endpoints", {"site": "a\0b"}, "site", "is not the name of a registered site"),
    ("endpoints", {"site": 1}, "site", "site 1 is not the name of a registered site"),
    ("endpoints", {"base_url": "file://x/y"}, "base_url", "“base_url” is not a URL of the form"),
    ("endpoints", {"base_url": "https://x/\0"}, "base_url", "scheme://host[:port]/path"),
    ("endpoints", {"base_url": "https://x y/z"}, "base_url", "scheme://host[:port]/path"),
    ("endpoints", {"base_url": "https://h/" + "x" * 400}, "base_url", "at most 400 characters"),
    ("endpoints", {"base_url": "ftp://["}, "base_url", "scheme://host[:port]/path"),
    ("endpoints", {"base_url": "ftp://[1:2]"}, "base_url", "A base URL needs a host. Its port"),
    ("endpoints", {"base_url": "http://h:70000/"}, "base_url", "A base URL needs a host. Its port"),
    ("endpoints", {"base_url": "http://:80/"}, "base_url", "scheme://host[:port]/path"),
    ("endpoints", {"inbound_cap": 0}, "inbound_cap", "inbound_cap 0 is not a whole number from 1"),
    ("endpoints", {"outbound_cap": 10**9}, "outbound_cap", "is not a whole number from 1 to 9999"),
    ("endpoints", {"budget_bytes_per_day": -1}, "budget_bytes_per_day", "or null."),
    ("endpoints", {"budget_bytes_per_day": 2**63}, "budget_bytes_per_day", "whole number from 1"),
    ("endpoints", {"credential": "../key"}, "credential", "is not the name of a registered"),
    (
        "endpoints",
        {"credential": None},
        "credential",
        "is not the name of a registered credential, or",
    ),
    ("endpoints", {"credential": "no"}, "credential", "credential “no” is not known: use the name"),
    ("endpoints", {"credential_lent": "no"}, "credential_lent", "use the name of a registered"),
    ("endpoints", {"lend_credential": "no"}, "lend_credential", 'lend_credential "no" is not true'),
    ("endpoints", {"retired": "yes"}, "retired", 'retired "yes" is not true or false'),
    ("endpoints", {"retired_at": None}, "retired_at", "There is no field “retired_at”"),
    ("size-classes", {"name": "Compare"}, "name", "A size class cannot be named “Compare”: query"),
    ("size-classes", {"name": "source"}, "name", "A size class cannot be named “source”: query"),
    ("size-classes", {"name": "16"}, "name", "A size class cannot be named “16”: it would"),
    ("size-classes", {"from_bytes": -1}, "from_bytes", "is not a whole number from 0 to"),
    ("size-classes", {"from_bytes": 10**9}, "from_bytes", "Large and huge start at the same size"),
    ("size-classes", {"test_bytes": 10**9}, "from_bytes", "The test size of huge, 1000000000"),
    ("size-classes", {"test_bytes": 10**18}, "test_bytes", "is not a whole number from 1 to 99999"),
    (
        "size-classes",
        {"timeout_seconds": 0},
        "timeout_seconds",
        "is not a whole number from 1 to 2592000",
    ),
    (
        "meshes",
        {"mover": "fts"},
        "mover",
        f'"fts" is not the name of a transfer tool: {either(names())}.',
    ),
    (
        "meshes",
        {"mover": "x" * 30},
        "mover",
        f"is not the name of a transfer tool: {either(names())}.",
    ),
    ("meshes", {"mover": "fake"}, "mover", "fake supports the URL scheme fake, not those of RAL_D"),
    ("meshes", {"mode": "shove"}, "mode", "is not pull or push."),
    ("meshes", {"streams": 0}, "streams", "streams 0 is not a whole number from 1 to 9999."),
    ("meshes", {"tcp_buffer_bytes": 65536}, "tcp_buffer_bytes", f"The {NO_BUFFERS} be left empty"),
    ("meshes", {"priority": 2**31}, "priority", "is not a whole number from 0 to 9999"),
    ("meshes", {"sources": []}, "sources", 'sources [] is not "all", a list of endpoint'),
    ("meshes", {"sources": {}}, "sources", "sources: a filter must have at least one of site, c"),
    ("meshes", {"sources": {"klout": "UK"}}, "sources", "“klout” is not an attribute of endpoints"),
    ("meshes", {"sources": {"tier": 4}}, "sources", "tier “4” is not known: use 0, 1, 2 or 3."),
    (
        "meshes",
        {"sources": {"cloud": None}},
        "sources",
        "“cloud” must be a string or a list of strings",
    ),
    ("meshes", {"sources": {"cloud": ["!"]}}, "sources", "cloud must be 1 to 80 printable"),
    ("meshes", {"sources": {"tag": ["a" * 81]}}, "sources", "“tag” can have at most 80"),
    ("meshes", {"sources": {"site": "Nowhere"}}, "sources", "site “Nowhere” is not known: use"),
    ("meshes", {"sources": {"label": [*"abc"] * 17 + [*map(str, range(50))]}}, "sources", "53 va"),
    ("meshes", {"sources": "some"}, "sources", 'sources "some" is not "all"'),
    ("meshes", {"sources": ["Nowhere"]}, "sources", "sources “Nowhere” is not known: use names"),
    ("meshes", {"sources": ["a\0b"]}, "sources", "is not"),
    ("meshes", {"destinations": [1]}, "destinations", 'destinations [1] is not "all"'),
    ("meshes", {"every": {}}, "every", "maps at least one size class to"),
    ("meshes", {"every": {"small": "10x"}}, "every", "a duration such as 10m, 6h or 1d"),
    ("meshes", {"every": {"small": 0}}, "every", 'every {"small":0} is not an object that'),
    ("meshes", {"every": {"small": "99999999d"}}, "every", "is not an object that maps"),
    (
        "meshes",
        {"every": {"tiny": 60}},
        "every",
        "“every” contains “tiny”, which is not a size class: use",
    ),
    ("meshes", {"quiet_hours": "25:00-26:00"}, "quiet_hours", "in UTC (for example, 01:00-05:30)"),
    (
        "meshes",
        {"quiet_hours": "05:00-05:00"},
        "quiet_hours",
        "need a start and an end, at different times",
    ),
    (
        "meshes",
        {"scitag": "2/64"},
        "scitag",
        "is not a flow label (SciTag) in the form experiment/activity (for",
    ),
    (
        "meshes",
        {"scitag": 139},
        "scitag",
        "is not a flow label (SciTag) in the form experiment/activity (for example, 2/11)",
    ),
    (
        "meshes",
        LABELLED,
        "scitag",
        "The transfer tool gridftp cannot send a flow label: “scitag” must be left",
    ),
    ("meshes", {"service": "https://fts.example"}, "service", "uses no service: “service” must be"),
    (
        "meshes",
        {"service": "https://u:p@fts.example"},
        "service",
        "“service” is not an empty string or a URL of the form https:",
    ),
    (
        "meshes",
        {"mover": "fts3"},
        "service",
        "The transfer tool fts3 needs a service: “service” must be a",
    ),
    ("meshes", {"service_credential": "a b"}, "service_credential", "of a registered credential"),
    ("downtimes", {"ends_at": "soon"}, "ends_at", 'ends_at "soon" is not an ISO 8601 time'),
    (
        "downtimes",
        {"ends_at": 1e9},
        "ends_at",
        "is not an ISO 8601 time between 1970 and 2999 (for",
    ),
    ("downtimes", {"ends_at": "0001-01-01T00:00:00+14:00"}, "ends_at", "between 1970 and 2999"),
    ("downtimes", {"ends_at": "9999-12-31T23:59:59-14:00"}, "ends_at", "between 1970 and 2999"),
    ("downtimes", {"ends_at": "9999-12-31T23:59:59Z"}, "ends_at", "between 1970 and 2999"),
    ("downtimes", {"ends_at": "2026-11-20T07:00:00Z"}, "ends_at", "A downtime must end after it"),
    ("downtimes", {"ends_at": None}, "ends_at", "ends_at null is not an ISO 8601 time"),
    ("downtimes", {"site": None}, "site", "a site or an endpoint: choose exactly one."),
    (
        "downtimes",
        {"endpoint": "RAL_DATADISK"},
        "site",
        "a site or an endpoint: choose exactly one.",
    ),
    ("downtimes", {"reason": "  "}, "reason", "of 1 to 200 characters, including at least one"),
    ("downtimes", {"reason": "a\nb"}, "reason", "is not a single line of"),
    ("annotations", {"text": ""}, "text", 'text "" is not a string of 1 to 500 characters'),
    ("annotations", {"text": "x" * 501}, "text", "is not a string of 1 to 500 characters"),
    ("annotations", {"text": "a\0b"}, "text", "is not a string of 1 to 500 characters"),
    ("annotations", {"site": "RAL"}, "site", OF_A_NOTE),
    ("annotations", {"source": None}, "site", OF_A_NOTE),
    ("annotations", {"source": "Nowhere"}, "source", "use the name of a registered endpoint."),
    ("annotations", {"destination": "RAL_DATADISK"}, "site", OF_A_NOTE),
    ("annotations", {"ends_at": "2026-11-20T12:00:30Z"}, "ends_at", "A note must end after it"),
    ("annotations", {"public": 1}, "public", "public 1 is not true or false"),
    ("annotations", {"author": "me"}, "author", "There is no field “author”"),
]


@pytest.mark.parametrize("plural", PLURALS)
def test_a_wrong_value_is_named_with_what_is_allowed_in_a_new_row_and_in_a_change(
    root, subtests, plural: str
):
    wrong = [entry[1:] for entry in WRONG if entry[0] == plural]
    before = kept()
    for changed, field, said in wrong:
        with subtests.test(new=changed):
            refused(post(root, f"{plural}/", BODIES[plural][0] | changed), field, said)
    assert kept() == before
    where = address(plural, made(root, plural))
    before = kept()
    for changed, field, said in wrong:
        with subtests.test(changed=changed):
            refused(patch(root, where, changed), field, said)
    assert kept() == before


@pytest.mark.parametrize("plural", PLURALS)
def test_what_is_missing_is_said_of_each_field(root, plural: str):
    response = post(root, f"{plural}/", {})
    assert response.status_code == 400
    fields = RESOURCES[plural].new.model_fields
    needed = {
        name: [f"“{name}” is missing: it must be {worded(one).rule}."]
        for name, one in fields.items()
    }
    required = {name for name, one in fields.items() if one.is_required()}
    assert response.json()["errors"] == {name: needed[name] for name in required}


def test_every_wrong_field_is_named_at_once(root):
    answer = post(root, "sites/", {"tier": 9, "country": "x", "Name": "RAL"}).json()
    assert set(answer["errors"]) == {"tier", "country", "Name", "name"}


def test_an_answer_to_a_large_or_deep_body_stays_small(root):
    many = {f"field{number}": 1 for number in range(5000)}
    response = post(root, "sites/", many)
    assert (response.status_code, len(response.json()["errors"])) == (400, 20)
    for value in ("x" * 90_000, {"x" * 90_000: 1}, ["x" * 90_000]):
        for plural, field in (("sites", "tier"), ("meshes", "every"), ("meshes", "sources")):
            response = post(root, f"{plural}/", BODIES[plural][0] | {field: value})
            assert response.status_code == 400
            assert len(response.content) < 1000
    deep = b'{"name": "a", "tier": ' + b"[" * 1000 + b"]" * 1000 + b"}"
    response = root.post("/api/v1/sites/", deep, content_type=JSON)
    refused(response, "tier", "tier […] is not a whole number from 0 to 3.")


def test_a_password_in_an_address_is_not_repeated(root):
    body = BODIES["endpoints"][0] | {"base_url": "https://me:sesame@host/data"}
    response = post(root, "endpoints/", body)
    assert response.status_code == 400
    assert b"sesame" not in response.content


@pytest.mark.parametrize(
    ("plural", "name"), [("sites", "RAL"), ("endpoints", "RAL_DATADISK"), ("size-classes", "large")]
)
def test_a_name_that_is_taken_is_a_conflict(root, plural: str, name: str):
    body = BODIES[plural][0] | {"name": name}
    if plural == "size-classes":
        body |= {"from_bytes": 10**10}
    before = kept()
    said = f"The value of “name” is already used by another {RESOURCES[plural].word}."
    refused(post(root, f"{plural}/", body), "name", said, status=409)
    assert kept() == before
    record = made(root, plural)
    refused(patch(root, address(plural, record), {"name": name}), "name", said, status=409)


def test_a_base_url_that_is_taken_is_a_conflict(root, small_world):
    body = BODIES["endpoints"][0] | {"base_url": small_world.ral.base_url}
    refused(
        post(root, "endpoints/", body),
        "base_url",
        "“base_url” is already used by another endpoint",
        status=409,
    )


NO_OBJECT = [
    (b"{", 400, "The body is not valid JSON"),
    (b"", 400, "The request has no body: send a JSON object"),
    (b"[]", 400, "The body is not a JSON object"),
    (b"null", 400, "The body is not a JSON object"),
    (b'"RAL"', 400, "The body is not a JSON object"),
    (b'{"name": NaN}', 400, "The body is not valid JSON"),
    (b'{"wan_gbit_s": 1e999}', 400, "The body is not valid JSON"),
    (b'{"cloud": "\\ud800"}', 400, "The body is not valid JSON"),
    (b'{"cloud": "\xff"}', 400, "The body is not valid JSON"),
    (b"[" * 90_000, 400, "The body is not valid JSON"),
    (b'{"name": "' + b"x" * 100_001 + b'"}', 413, "larger than 100,000 bytes"),
]


@pytest.mark.parametrize("plural", PLURALS)
def test_a_body_that_is_no_json_object_is_refused(root, subtests, plural: str):
    for body, status, said in NO_OBJECT:
        with subtests.test(body=body[:40]):
            response = root.post(f"/api/v1/{plural}/", body, content_type=JSON)
            assert response.status_code == status
            assert said in response.json()["detail"]


def test_another_content_type_is_refused(root):
    assert root.post("/api/v1/sites/", {"name": "x"}).status_code == 415


WRONG_PARAMETERS = [
    ("endpoints/?site=Nowhere", "site", "site “Nowhere” is not known: use the name of a"),
    ("endpoints/?site=%00", "site", "is not known"),
    ("endpoints/?cloud=%00", "cloud", "“cloud” must be at most 80 printable characters."),
    ("endpoints/?label=" + "x" * 81, "label", "at most 80 printable characters"),
    ("endpoints/?retired=1", "retired", "retired “1” is not known: use true or false."),
    ("endpoints/?tier=1", "tier", "There is no parameter “tier”: use cloud, cursor, enabled,"),
    ("endpoints/?site=RAL&site=DESY", "site", "“site” is given 2 times: give it only once."),
    ("endpoints/?page_size=0", "page_size", "is not a whole number from 1 to 1000."),
    ("endpoints/?page_size=1001", "page_size", "is not a whole number from 1 to 1000."),
    ("endpoints/?cursor=%00", "cursor", "is not valid: follow the “next” URL"),
    ("endpoints/?format=xml", "format", "use json, csv or ndjson."),
    ("endpoints/?format=csv&page_size=5", "page_size", "“page_size” applies to JSON only"),
    ("endpoints/?format=ndjson&cursor=x", "cursor", "“cursor” applies to JSON only"),
    ("endpoints/RAL_DATADISK/?format=csv", "format", "use json."),
    ("endpoints/RAL_DATADISK/?site=RAL", "site", "There is no parameter “site”"),
    ("size-classes/?cursor=a", "cursor", "is not valid: follow the “next” URL"),
    ("downtimes/?endpoint=Nowhere", "endpoint", "the name of a registered endpoint."),
    ("downtimes/?current=now", "current", "use true or false."),
    ("downtimes/?from=yesterday", "from", "is not a valid time. Use the format 2026-11-20 04:00"),
    (
        "downtimes/?to=0001-01-01T00:00:00Z",
        "to",
        "is not a valid time. Use the format 2026-11-20 04:00",
    ),
    ("downtimes/?from=2026-11-20T00:00&to=2026-11-20T00:00", "from", "“from” must be before “to”."),
    ("downtimes/?cursor=1", "cursor", "is not valid: follow the “next” URL"),
    (f"downtimes/?cursor={'9' * 18}.1", "cursor", "is not valid: follow the “next” URL"),
    (f"downtimes/?cursor={'9' * 5000}.1", "cursor", "is not valid: follow the “next” URL"),
    ("annotations/?destination=a b", "destination", "is not known"),
    ("annotations/?current=true", "current", "There is no parameter “current”"),
    ("sites/?page_size=x", "page_size", "is not a whole number"),
    ("sites/?cursor=x", "cursor", "is not valid: follow the “next” URL"),
    ("sites/?format=ndjson&cursor=1-1", "cursor", "“cursor” applies to JSON only"),
]


def test_a_wrong_parameter_is_named(client, small_world, subtests):
    for path, parameter, said in WRONG_PARAMETERS:
        with subtests.test(path):
            refused(client.get(f"/api/v1/{path}"), parameter, said)


def test_a_cursor_may_name_an_id_that_no_row_can_have(client, small_world):
    assert get(client, f"downtimes/?cursor=0.{'9' * 19}")["downtimes"] == []
    assert get(client, f"size-classes/?cursor={'9' * 19}")["size_classes"] == []


NOWHERE = (
    *("endpoints/Nowhere/", "meshes/Nowhere/", "size-classes/Nowhere/", "endpoints/%00/"),
    *("endpoints/a%0A/", "sites/%00/", f"sites/{'x' * 3000}/", "endpoints/%ED%A0%80/"),
    *("downtimes/1/", f"downtimes/{2**63}/", f"annotations/{'9' * 5000}/", "downtimes/-1/"),
    *("downtimes/one/", "annotations/0/"),
)


def test_what_is_not_there_is_a_404_for_every_method(root, subtests):
    for path in NOWHERE:
        with subtests.test(path):
            gone = root.get(f"/api/v1/{path}")
            assert gone.status_code == 404
            for response in (gone, patch(root, path, {}), root.delete(f"/api/v1/{path}")):
                assert response.status_code in (404, 405), response.content
                assert response.json()["errors"] == {}


def test_a_404_says_what_there_is_not(client, small_world):
    details = {
        path: client.get(f"/api/v1/{path}").json()["detail"]
        for path in ("size-classes/tiny/", "downtimes/7/", "endpoints/RAL/", "sites/Nowhere/")
    }
    assert list(details.values()) == [
        "No size class “tiny” is registered.",
        "Downtime 7 does not exist.",
        "No endpoint “RAL” is registered.",
        "No site “Nowhere” is registered.",
    ]


@pytest.mark.parametrize("plural", PLURALS)
def test_a_call_that_writes_has_no_parameters(root, plural: str):
    record = made(root, plural)
    refused(
        root.patch(f"/api/v1/{address(plural, record)}?name=x", {}, content_type=JSON),
        "name",
        "There is no parameter “name”: send fields in the body.",
    )
    refused(post(root, f"{plural}/?name=x", {}), "name", "There is no parameter")


def test_the_bounds_of_bodies_are_those_of_the_columns():
    for kind in RESOURCES.values():
        schema = kind.new.model_json_schema()["properties"]
        for field in kind.model._meta.concrete_fields:
            most = getattr(field, "max_length", None)
            if most and field.name in schema and not field.choices:
                assert schema[field.name]["maxLength"] == most, field


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.datetimes().map(lambda one: f"{one.isoformat()}Z")
    | st.sampled_from(["RAL", "RAL_DATADISK", "large", "all", "6h", "01:00-02:00", "pull", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A kind, and a valid body of which some fields are replaced, or any object."""
    plural = draw(st.sampled_from(PLURALS))
    fields = st.sampled_from(list(RESOURCES[plural].new.model_fields)) | st.text()
    changed = draw(st.dictionaries(fields, JSON_VALUES, max_size=4))
    return plural, (BODIES[plural][0] if draw(st.booleans()) else {}) | changed


@examples(120)
@given(sent=bodies())
def test_no_body_whatever_is_an_error_of_the_server(root, sent: tuple[str, dict[str, Any]]):
    plural, body = sent
    try:
        text = json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        text = json.dumps(body).encode()
    response = root.post(f"/api/v1/{plural}/", text, content_type=JSON)
    assert response.status_code in (201, 400, 409), response.content
    if response.status_code == 201:
        record = response.json()
        where = address(plural, record)
        assert root.patch(f"/api/v1/{where}", text, content_type=JSON).status_code == 200
        RESOURCES[plural].change.model_validate_json(text)
    else:
        assert set(response.json()) == {"detail", "errors"}


def test_a_mesh_that_names_an_endpoint_that_its_mover_does_not_fit_is_refused(root):
    endpoint = BODIES["endpoints"][0] | {"base_url": "root://tape.example.org/data"}
    assert post(root, "endpoints/", endpoint).status_code == 201
    record = made(root, "meshes")
    before = kept()
    body = BODIES["meshes"][0] | {"name": "other", "destinations": ["RAL_TAPE", "DESY_DATADISK"]}
    said = "http-tpc supports the URL schemes dav, davs, http, https, not those of RAL_TAPE (root)."
    refused(post(root, "meshes/", body), "sources", said)
    refused(post(root, "meshes/", body | {"mover": "http-tpc"}), "mover", said)
    refused(patch(root, address("meshes", record), {"sources": ["RAL_TAPE"]}), "sources", said)
    assert kept() == before


def test_a_base_url_that_a_mesh_does_not_fit_is_refused(root, small_world):
    made(root, "meshes")
    path = f"endpoints/{small_world.ral.name}/"
    before = kept()
    said = "RAL_DATADISK cannot have a base URL with gsiftp. The transfer tools of these"
    refused(patch(root, path, {"base_url": "gsiftp://ral.example.org/data"}), "base_url", said)
    assert kept() == before
    assert patch(root, path, {"base_url": "davs://ral.example.org/data"}).status_code == 200
    away = patch(root, path, {"base_url": "root://ral.example.org/data", "retired": True})
    assert away.status_code == 200
    refused(patch(root, path, {"retired": False}), "base_url", "cannot have a base URL with root")


def test_a_mesh_of_before_that_does_not_fit_may_be_changed_otherwise(root, small_world):
    record = made(root, "meshes")
    type(small_world.ral).objects.filter(pk=small_world.ral.pk).update(base_url="root://ral/data")
    assert patch(root, address("meshes", record), {"enabled": False}).status_code == 200
    path = f"endpoints/{small_world.ral.name}/"
    assert patch(root, path, {"label": "OLD"}).status_code == 200
