"""probes/: what is queued and running, and ordering tests by REST."""

import csv
import json
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from itertools import permutations
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from django.test import Client
from hypothesis import example, given
from hypothesis import strategies as st

from sonar import scheduler
from sonar.models import AllTests, Endpoint, Probe, Transfer
from sonar.movers.base import Receipt
from sonar.movers.catalogue import names
from sonar.movers.measure import Outcome
from sonar.notation.enumeration import either
from sonar.ordering import request_probes
from sonar.people import tokens
from sonar.people.roles import Role
from sonar.results import endings
from sonar.work import probes
from tests.accounts import account
from tests.matrix import responses
from tests.matrix.sent import probe
from tests.matrix.world import NOW, downtime, transfer
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
URL = "/api/v1/probes/"
MINUTE = timedelta(minutes=1)
WORKER = "worker-7.internal.example.org"


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[UUID]]:
    """Ids that were sent to the workers."""
    ids: list[UUID] = []
    monkeypatch.setattr(request_probes, "send", ids.extend)
    return ids


def probe_request(**change: object) -> dict[str, Any]:
    return {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "sizes": ["small"]} | change


def post(client: Client, body: object, **headers: str) -> Any:
    sent = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(URL, sent, content_type="application/json", headers=headers)


def refused(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    answer = response.json()
    assert set(answer) == {"detail", "errors"}
    assert not Probe.objects.exists()
    return answer


def get(client: Client, path: str = "", **params: object) -> Any:
    return responses.answer(client, URL + path, params)


# Ordering.


def test_an_order_is_accepted_with_what_can_be_asked_for(
    operator, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        response = post(operator, probe_request(sizes=["small", "large"], streams=4, mode="push"))
    assert response.status_code == 202
    assert response["Cache-Control"] == "no-store"
    first, second = response.json()["probes"]
    assert [first["size"], second["size"]] == ["small", "large"]
    assert [one["state"] for one in (first, second)] == ["queued", "waiting"]
    assert [one["place_in_queue"] for one in (first, second)] == [1, 1]
    assert [one["waits_because"] for one in (first, second)] == [
        None,
        "Another test of this link is running.",
    ]
    assert sent == [UUID(first["id"])]
    assert operator.get(first["url"]).json()["id"] == first["id"]
    stored = Probe.objects.get(id=first["id"])
    assert (stored.mesh, stored.streams, stored.mode) == (None, 4, "push")
    assert stored.requested_at == NOW


def test_count_is_for_each_size(operator):
    Endpoint.objects.update(inbound_cap=20, outbound_cap=20)
    made = post(operator, probe_request(sizes=["small", "medium"], count=3)).json()["probes"]
    assert [one["size"] for one in made] == ["small"] * 3 + ["medium"] * 3
    assert [one["state"] for one in made] == ["queued"] + ["waiting"] * 5
    assert [one["place_in_queue"] for one in made] == [1, 1, 2, 3, 4, 5]


def test_five_tests_fit_a_cap_of_two_one_after_the_other(operator, sent):
    made = post(operator, probe_request(count=5)).json()["probes"]
    for one in made:
        assert get(operator, f"{one['id']}/")["state"] == "queued"
        running = probes.claim(UUID(one["id"]), NOW)
        assert running is not None
        endings.end_probe(running, Outcome(Receipt(1, 4.0), None, None, 5.0))
        scheduler.start_waiting(NOW)
    assert Transfer.objects.filter(state="done").count() == 5


def test_a_place_is_that_among_those_that_wait_for_the_same_ends(client, small_world):
    made = small_world
    waiting = {"state": "waiting", "waits_because": "It must."}
    ordered = [
        probe(*ends, (9 - number) * MINUTE, **waiting)
        for number, ends in enumerate(
            [
                (made.ral, made.desy),
                (made.glasgow, made.desy),
                (made.ral, made.desy),
                (made.ral, made.glasgow),
                (made.glasgow, made.scratch),
                (made.desy, made.ral),
            ]
        )
    ]
    probe(made.scratch, made.ral)
    found = {one["id"]: one["place_in_queue"] for one in get(client)["probes"]}
    assert [found[str(one.id)] for one in ordered] == [1, 2, 3, 3, 2, 1]
    assert get(client, state="waiting")["probes"][0]["waits_because"] == "It must."
    assert len(get(client, state="waiting")["probes"]) == 6


def test_what_the_ends_do_not_bear_is_a_409_by_field_and_nothing_is_ordered(
    operator, small_world, sent
):
    downtime(endpoint=small_world.desy)
    Endpoint.objects.filter(id=small_world.ral.id).update(budget_bytes_per_day=50_000_000)
    answer = refused(post(operator, probe_request(count=3)), 409)
    assert answer["errors"] == {
        "source": [
            "RAL_DATADISK has only 50 MB of its test budget left for today, but the tests need "
            "60 MB."
        ],
        "destination": ["DESY_DATADISK is in a declared downtime."],
    }
    assert answer["detail"].startswith("RAL_DATADISK has only 50 MB of its test budget")
    assert sent == []


def test_a_planner_that_is_busy_is_a_503_to_try_again(operator, monkeypatch):
    def busy(*_: object) -> None:
        raise request_probes.PlannerBusyError("The planner is busy: try again in a few seconds.")

    monkeypatch.setattr(request_probes, "order", busy)
    response = post(operator, probe_request())
    assert refused(response, 503)["detail"].startswith("The planner is busy")
    assert response["Retry-After"] == "5"


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"source": "nowhere"}, "source", "source “nowhere” is not a registered endpoint."),
        ({"destination": "RAL_DATADISK"}, "destination", "a different endpoint from “source”"),
        ({"source": 7}, "source", "source must be the name of a registered endpoint."),
        ({"source": "a\0b"}, "source", "must be the name of a registered endpoint"),
        ({"source": None}, "source", "must be the name"),
        ({"sizes": []}, "sizes", "sizes must be a list of 1 to 10 names of size classes."),
        ({"sizes": "small"}, "sizes", "must be a list"),
        ({"sizes": ["huge"]}, "sizes", "“huge” is not a size class"),
        ({"sizes": ["small", "small"]}, "sizes", "twice: use “count”"),
        ({"sizes": ["small"] * 11}, "sizes", "list of 1 to 10"),
        ({"count": 0}, "count", "count must be a whole number from 1 to 10."),
        ({"count": 11}, "count", "from 1 to 10"),
        ({"count": "2"}, "count", "from 1 to 10"),
        ({"count": True}, "count", "from 1 to 10"),
        ({"count": 1.0}, "count", "from 1 to 10"),
        ({"count": 10**30}, "count", "from 1 to 10"),
        ({"streams": 65}, "streams", "from 1 to 64"),
        ({"mover": "tape"}, "mover", f"mover must be {either(names())}."),
        (
            {"mover": "fake"},
            "mover",
            "The transfer tool fake supports the URL scheme fake, not those of DESY_DATADISK "
            "(https), "
            "RAL_DATADISK (https).",
        ),
        ({"mode": "both"}, "mode", "mode must be pull or push."),
        ({"priority": 1}, "priority", "There is no field “priority”"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(
    operator, change: dict[str, object], field: str, said: str
):
    answer = refused(post(operator, probe_request(**change)), 400)
    assert list(answer["errors"]) == [field]
    assert said in answer["errors"][field][0]


def test_all_that_is_missing_is_said_at_once(operator):
    answer = refused(post(operator, {}), 400)
    assert set(answer["errors"]) == {"source", "destination", "sizes"}
    assert answer["errors"]["sizes"] == [
        "sizes is missing: give a list of 1 to 10 names of size classes."
    ]


@pytest.mark.parametrize("body", ["", "[]", "null", "{", '{"count": NaN}', '"text"', b"\xff{}"])
def test_what_is_no_json_object_is_a_400(operator, body):
    refused(post(operator, body), 400)


def test_a_mover_is_for_endpoints_of_its_schemes(operator, small_world):
    Endpoint.objects.filter(id=small_world.ral.id).update(base_url="root://ral.example.org/data")
    answer = refused(post(operator, probe_request()), 400)
    assert answer["errors"] == {
        "mover": [
            "The transfer tool http-tpc supports the URL schemes dav, davs, http, https, not "
            "those of "
            "RAL_DATADISK (root)."
        ]
    }
    for end in (small_world.ral, small_world.desy):
        Endpoint.objects.filter(id=end.id).update(base_url=f"fake://{end.id}/x")
    assert post(operator, probe_request(mover="fake")).status_code == 202


BODIES = st.dictionaries(
    st.sampled_from(["source", "destination", "sizes", "count", "streams", "mover", "mode", "x"]),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
        st.sampled_from(["RAL_DATADISK", "DESY_DATADISK", "small", "pull", "http-tpc"]),
        st.lists(st.one_of(st.text(), st.sampled_from(["small", "large"])), max_size=3),
        st.dictionaries(st.text(), st.integers(), max_size=2),
    ),
)


@given(BODIES)
@example({"source": "\ud800"})
@examples(150)
def test_no_body_breaks_it(operator, body: dict[str, Any]):
    response = post(operator, body)
    assert response.status_code in (202, 400, 409), response.content


def test_orders_cost_the_same_number_of_queries_however_many(
    operator, django_assert_max_num_queries
):
    with django_assert_max_num_queries(26) as one:
        post(operator, probe_request(count=2))
    back = {"source": "DESY_DATADISK", "destination": "RAL_DATADISK"}
    with django_assert_max_num_queries(26) as many:
        post(operator, probe_request(sizes=["small", "medium", "large"], count=10, **back))
    assert len(one) == len(many)


# Who may order.


def test_an_admin_of_either_site_may_order_and_no_other(client, small_world):
    Endpoint.objects.update(inbound_cap=9, outbound_cap=9)
    for site, status in (
        (small_world.ral.site, 202),
        (small_world.desy.site, 202),
        (small_world.glasgow.site, 403),
    ):
        client.force_login(account(Role.SITE_ADMIN, site, name=f"admin of {site}"))
        assert post(client, probe_request()).status_code == status, site


@pytest.mark.parametrize(("scopes", "status"), [(["operate"], 202), (["read"], 403)])
def test_a_token_needs_the_scope_operate(client, small_world, scopes: list[str], status: int):
    _, text = tokens.create(account(Role.OPERATOR), "script", scopes, 1)
    assert post(client, probe_request(), authorization=f"Token {text}").status_code == status


def test_nobody_and_a_reader_may_not(client, small_world):
    refused(post(client, probe_request()), 401)
    client.force_login(account(Role.READER))
    refused(post(client, probe_request()), 403)


# Cancelling.


def cancel(client: Client, one: object, **headers: str) -> Any:
    return client.delete(f"{URL}{one}/", headers=headers)


def test_a_test_that_waits_or_is_queued_is_cancelled(
    operator, sent, django_capture_on_commit_callbacks
):
    made = post(operator, probe_request(count=3)).json()["probes"]
    with django_capture_on_commit_callbacks(execute=True):
        response = cancel(operator, made[0]["id"])
    assert (response.status_code, response.content) == (204, b"")
    assert sent[-1] == UUID(made[1]["id"])
    assert cancel(operator, made[2]["id"]).status_code == 204
    assert [one["id"] for one in get(operator)["probes"]] == [made[1]["id"]]
    assert operator.get(f"{URL}{made[0]['id']}/").status_code == 404
    assert not Transfer.objects.exists()


def test_one_that_runs_is_ended_by_its_worker_one_that_has_ended_is_a_409_an_unknown_one_a_404(
    operator, small_world
):
    one = probe(small_world.ral, small_world.desy, worker=WORKER)
    assert cancel(operator, one.id).status_code == 204
    assert Probe.objects.get(id=one.id, state="running").cancelled_by == "an operator"
    assert endings.end_probe(one, Outcome(Receipt(one.bytes, 4.0), None, None, 5.0))
    response = cancel(operator, one.id)
    assert response.status_code == 409
    said = f"The test {one.id} has already ended and cannot be cancelled."
    assert response.json()["detail"] == said
    assert cancel(operator, uuid4()).status_code == 404
    assert operator.delete(f"{URL}{one.id}/?force=1").status_code == 400


def test_who_may_order_it_may_cancel_it_and_no_other(client, small_world):
    one = probe(small_world.ral, small_world.desy)
    assert cancel(client, one.id).status_code == 401
    client.force_login(account(Role.READER))
    assert cancel(client, one.id).status_code == 403
    client.force_login(account(Role.SITE_ADMIN, small_world.glasgow.site))
    assert cancel(client, one.id).status_code == 403
    assert Probe.objects.exists()
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site, name="admin of DESY"))
    assert cancel(client, one.id).status_code == 204


# Stopping all tests.

STOP = "/api/v1/stop/"
PAUSED = {"paused": True, "pause_reason": "x"}


def patch(client: Client, **body: object) -> Any:
    return client.patch(STOP, json.dumps(body), content_type="application/json")


def test_all_tests_are_stopped_and_start_again(operator, small_world):
    running = probe(small_world.ral, small_world.desy, worker=WORKER)
    idle = {"paused": False, "paused_until": None, "pause_reason": "", "paused_since": None}
    assert responses.answer(operator, STOP) == idle | {"paused_by": None}
    stopped = {
        "paused": True,
        "paused_until": "2026-11-20T13:00:00Z",
        "pause_reason": "new firewall",
        "paused_since": "2026-11-20T12:00:30Z",
    }
    sent = {name: stopped[name] for name in ("paused", "paused_until", "pause_reason")}
    answer = patch(operator, **sent, cancel_running=True)
    assert answer.status_code == 200
    assert answer.json() == stopped | {"paused_by": "the-operator", "cancelled": 1}
    assert responses.answer(Client(), STOP) == stopped
    running.refresh_from_db()
    assert running.cancelled_by == "an operator"
    response = post(operator, probe_request())
    assert response.status_code == 409
    assert "All Sonar tests are stopped until 20 Nov 13:00 UTC" in response.json()["detail"]
    assert patch(operator, paused=False).json() == idle | {"paused_by": None, "cancelled": 0}
    assert post(operator, probe_request()).status_code == 202


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "paused"),
        ({"paused": "yes"}, "paused"),
        ({"paused": True}, "pause_reason"),
        ({"paused": True, "pause_reason": " "}, "pause_reason"),
        ({"paused": True, "pause_reason": "x" * 201}, "pause_reason"),
        ({**PAUSED, "paused_until": "2026-11-20T11:00:00Z"}, "paused_until"),
        ({**PAUSED, "paused_until": "soonish"}, "paused_until"),
        ({"paused": False, "pause_reason": "x"}, "pause_reason"),
        ({**PAUSED, "cancel_running": 1}, "cancel_running"),
        ({**PAUSED, "who": "me"}, "who"),
    ],
)
def test_a_stop_that_cannot_be_is_named_and_changes_nothing(operator, body, field: str):
    response = patch(operator, **body)
    assert (response.status_code, list(response.json()["errors"])) == (400, [field])
    assert not AllTests.objects.exists()


def test_operators_alone_stop_all_tests(client, small_world):
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site))
    assert patch(client, paused=True, pause_reason="x").status_code == 403
    assert not AllTests.objects.exists()


# What is under way.


def test_the_oldest_come_first_with_their_place_in_the_queue(client, small_world):
    made = small_world
    second = probe(made.ral, made.desy, 1 * MINUTE)
    first = probe(made.ral, made.glasgow, 2 * MINUTE)
    running = probe(made.desy, made.ral, 3 * MINUTE, worker=WORKER, progress_bytes=5_000_000)
    found = get(client)["probes"]
    assert [one["id"] for one in found] == [str(one.id) for one in (running, first, second)]
    assert [one["place_in_queue"] for one in found] == [None, 1, 2]


def test_a_running_test_says_how_far_it_is_whatever_the_clock_and_the_bytes(client, small_world):
    running = probe(small_world.ral, small_world.desy, worker=WORKER, progress_bytes=5_000_000)
    found = get(client, f"{running.id}/")
    assert (found["state"], found["ended"]) == ("running", False)
    assert found["share"] == 5 / 20
    assert found["running_seconds"] == 10.0
    assert found["rate_mb_s"] == 0.5
    assert found["started_at"] == "2026-11-20T12:00:20Z"
    Probe.objects.update(started_at=NOW + MINUTE, progress_bytes=30_000_000)
    found = get(client, f"{running.id}/")
    assert (found["share"], found["running_seconds"], found["rate_mb_s"]) == (1, 0, None)


def test_a_queued_test_has_no_rate_and_no_time(client, small_world):
    found = get(client, f"{probe(small_world.ral, small_world.desy).id}/")
    nothing = ("started_at", "deadline", "running_seconds", "rate_mb_s", "mesh")
    assert [found[name] for name in nothing] == [None] * 5
    assert (found["share"], found["place_in_queue"]) == (0, 1)


def test_a_test_that_has_ended_is_the_transfer_it_has_become(client, small_world):
    one = probe(small_world.ral, small_world.desy, worker=WORKER)
    assert endings.end_probe(one, Outcome(Receipt(one.bytes, 4.0), None, None, 5.0))
    found = get(client, f"{one.id}/")
    assert found.pop("ended") is True
    assert found == client.get(f"/api/v1/transfers/{one.id}/").json()
    assert (found["state"], found["rate_mb_s"], found["mesh"]) == ("done", 5.0, None)
    one = transfer(small_world.ral, small_world.desy, None)
    assert get(client, f"{one.id}/")["state"] == "failed"


def test_an_id_that_nobody_knows_is_a_404(client, small_world):
    response = client.get(f"{URL}{uuid4()}/")
    assert response.status_code == 404
    assert "Results are kept for" in response.json()["detail"]


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"source": "RAL_DATADISK"}, {"a", "b"}),
        ({"destination": "RAL_DATADISK"}, {"c"}),
        ({"site": "DESY"}, {"a", "c"}),
        ({"size": "large"}, {"b"}),
        ({"state": "running"}, {"c"}),
        ({"state": "queued", "site": "DESY"}, {"a"}),
    ],
)
def test_filters_choose(client, small_world, params, found: set[str]):
    made = small_world
    tests = {
        "a": probe(made.ral, made.desy),
        "b": probe(made.ral, made.glasgow, size="large"),
        "c": probe(made.scratch, made.ral, worker=WORKER),
    }
    names = {str(one.id): name for name, one in tests.items()}
    assert {names[one["id"]] for one in get(client, **params)["probes"]} == found


@pytest.mark.parametrize(
    "params",
    [
        {"source": "nowhere"},
        {"site": "a\0b"},
        {"size": "huge"},
        {"state": "done"},
        {"page_size": "0"},
        {"page_size": "1001"},
        {"cursor": "x"},
        {"cursor": "9999-12-31T23:59:59-23:00_00000000-0000-4000-8000-000000000000"},
        {"format": "xml"},
        {"cloud": "UK"},
        {"format": "csv", "page_size": "1"},
    ],
)
def test_a_wrong_parameter_is_a_400_that_names_it(client, small_world, params: dict[str, str]):
    response = client.get(URL, params)
    assert response.status_code == 400
    assert set(response.json()["errors"]) <= set(params)
    assert response.json()["errors"]


def test_pages_go_through_all_of_them_once(client, small_world):
    made = small_world
    # Ordered together, and so with the same time.
    ids = {str(probe(made.ral, made.desy, state="waiting").id) for _ in range(5)}
    ids |= {str(probe(*ends, 2 * MINUTE).id) for ends in permutations((made.ral, made.desy))}
    seen, url = [], f"{URL}?page_size=2&site=RAL"
    while url:
        answer = client.get(url).json()
        assert len(answer["probes"]) <= 2
        seen += [one["id"] for one in answer["probes"]]
        url = answer["next"]
    assert len(seen) == 7
    assert set(seen) == ids


def test_csv_and_ndjson_have_the_same_rows(client, small_world):
    made = small_world
    probe(made.desy, made.ral, 2 * MINUTE, worker=WORKER, progress_bytes=1)
    probe(made.ral, made.desy)
    rows = get(client)["probes"]
    lines = client.get(URL, {"format": "ndjson"}).content.splitlines()
    assert [orjson.loads(line) for line in lines] == rows
    text = client.get(URL, {"format": "csv"}).content.decode()
    read = list(csv.DictReader(StringIO(text)))
    assert [list(one) for one in read] == [list(one) for one in rows]
    assert [one["id"] for one in read] == [one["id"] for one in rows]
    assert read[1]["rate_mb_s"] == ""


@pytest.mark.parametrize(
    ("role", "sees"), [(None, False), (Role.READER, False), (Role.OPERATOR, True)]
)
@pytest.mark.parametrize("form", ["json", "csv", "ndjson"])
def test_the_name_of_a_worker_is_for_operators(
    client, small_world, role: Role | None, sees: bool, form: str
):
    one = probe(small_world.ral, small_world.desy, worker=WORKER)
    if role:
        client.force_login(account(role))
    assert (WORKER.encode() in client.get(URL, {"format": form}).content) is sees
    assert (WORKER.encode() in client.get(f"{URL}{one.id}/").content) is sees


def test_a_list_costs_the_same_with_few_and_with_many(
    client, small_world, django_assert_num_queries
):
    probe(small_world.ral, small_world.desy, worker=WORKER)
    for count in (1, 30):
        for _ in range(count):
            probe(small_world.ral, small_world.desy, state="waiting")
        with django_assert_num_queries(2):
            get(client)


def test_an_etag_spares_what_has_not_changed(client, small_world):
    one = probe(small_world.ral, small_world.desy)
    etag = client.get(URL)["ETag"]
    assert client.get(URL, headers={"if-none-match": etag}).status_code == 304
    Probe.objects.filter(id=one.id).delete()
    assert client.get(URL, headers={"if-none-match": etag}).status_code == 200
    assert not Transfer.objects.exists()
