"""status/: is Sonar itself well? And what is dear in it is not read for each request."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from matrix.answers.status import figures
from sonar.models import (
    Assessment,
    Circuit,
    Condition,
    Credential,
    CredentialState,
    DirtyMark,
    Probe,
    Schedule,
    SignOfLife,
    SizeClass,
)
from sonar.people import roles
from sonar.people.roles import Role
from sonar.results import sealing
from tests.accounts import account
from tests.conditions import stored_condition
from tests.matrix import responses
from tests.matrix.world import NOW, downtime, free_link, of_service, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_status")]
URL = "/api/v1/status/"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
KIND = SignOfLife.Kind


def sign(name: str, kind: KIND, ago: float = 1, every: int = 10, *queues: str) -> None:
    seen = NOW - timedelta(seconds=ago)
    SignOfLife.objects.create(
        name=name, kind=kind, seen_at=seen, every_seconds=every, queues=list(queues)
    )


def get(client: Client) -> Any:
    return responses.answer(client, URL)


def test_a_sonar_that_has_never_run_says_so(client):
    found = get(client)
    never = {"last": None, "age_seconds": None, "every_seconds": None, "late": True}
    assert found["planner"] == found["scheduler"] == never
    not_yet = never | {"late": False}
    names = ["recovery", "cleanup", "check_credentials", "import_downtimes", "propose_topology"]
    names += ["compaction", "retention", "assess", "judge_links"]
    names += ["notify", "send_reports"]
    assert found["tasks"] == dict.fromkeys(names, not_yet)
    assert found["workers"] == {
        queue: {"count": 0} for queue in ("transfers", "control", "cleanup")
    }
    assert found["circuits"] == []
    never_assessed = {"as_of": None, "is_late": False, "doubtful_since": None}
    assert found["assessment"] == never_assessed
    assert found["probes"] == {
        "waiting": 0,
        "queued": 0,
        "running": 0,
        "oldest_queued": None,
        "in_flight_limit": 100,
    }
    assert found["results_last_hour"] == {"done": 0, "failed": 0, "lost": 0}
    assert found["compaction"] == {
        "uncompacted": 0,
        "uncompacted_since": None,
        "uncompacted_seconds": 0.0,
    }
    assert found["sonar_version"]
    assert found["time"] == "2026-11-20T12:00:30Z"


def test_the_last_tick_has_its_time_and_age_and_is_late_after_three(client):
    sign("planner", KIND.TASK, ago=4)
    sign("compaction", KIND.TASK, ago=31)
    found = get(client)
    assert found["planner"] == {
        "last": "2026-11-20T12:00:26Z",
        "age_seconds": 4.0,
        "every_seconds": 10,
        "late": False,
    }
    assert found["tasks"]["compaction"]["late"] is True


def test_workers_are_counted_by_queue_and_the_silent_are_not(client):
    sign("a", KIND.WORKER, 1, 10, "transfers")
    sign("b", KIND.WORKER, 29, 10, "transfers", "control")
    sign("c", KIND.WORKER, 31, 10, "transfers")
    counts = {queue: of["count"] for queue, of in get(client)["workers"].items()}
    assert counts == {"transfers": 2, "control": 1, "cleanup": 0}


@pytest.mark.parametrize(
    ("role", "sees"), [(Role.READER, False), (Role.OPERATOR, True), (Role.ADMINISTRATOR, True)]
)
def test_names_of_workers_are_for_operators(client, role, sees):
    sign("transfers@host-7.internal", KIND.WORKER, 1, 10, "transfers")
    sign("beat@host-8.internal", KIND.BEAT)
    user = User.objects.create_user("one")
    roles.give(user, role)
    client.force_login(user)
    text = client.get(URL).content.decode()
    assert ("host-7.internal" in text) is sees
    assert "host-8" not in text
    if sees:
        assert get(client)["workers"]["transfers"]["names"] == ["transfers@host-7.internal"]


def probe(state: str, ago: timedelta, **fields: object) -> Probe:
    source, destination = free_link()
    running = {"started_at": NOW, "deadline": NOW + HOUR} if state == "running" else {}
    return Probe.objects.create(
        source=source,
        destination=destination,
        size_class=SizeClass.objects.get(name="small"),
        bytes=1,
        state=state,
        requested_at=NOW - ago,
        sent_at=NOW,
        **running,
        **fields,
    )


def test_waiting_queued_and_running_are_counted_at_once(client, small_world):
    states = ["queued", "queued", "running", "waiting", "waiting", "waiting"]
    for number, state in enumerate(states):
        probe(state, timedelta(seconds=number))
    found = get(client)["probes"]
    assert (found["waiting"], found["queued"], found["running"]) == (3, 2, 1)
    assert found["oldest_queued"] == "2026-11-20T12:00:29Z"


def test_what_waited_before_it_was_queued_is_not_queued_for_long(client, small_world):
    probe("queued", 5 * HOUR, queued_at=NOW - timedelta(seconds=3))
    assert get(client)["probes"]["oldest_queued"] == "2026-11-20T12:00:27Z"


def test_open_circuits_are_told_and_others_are_not(client, small_world):
    since = {"since": NOW - HOUR, "last_at": NOW - timedelta(minutes=2), "error": "no answer"}
    Circuit.objects.create(endpoint=small_world.desy, failures=4, **since)
    Circuit.objects.create(endpoint=small_world.ral, failures=5, next_test_at=NOW + HOUR, **since)
    assert get(client)["circuits"] == [
        {
            "endpoint": "RAL_DATADISK",
            "site": "RAL",
            "failures": 5,
            "since": "2026-11-20T11:00:30Z",
            "last_at": "2026-11-20T11:58:30Z",
            "next_test_at": "2026-11-20T13:00:30Z",
            "error": "no answer",
        }
    ]


def test_it_says_when_results_were_assessed_and_since_when_they_are_doubtful(
    client, small_world, settings
):
    late = NOW - timedelta(seconds=3 * settings.SONAR_INCIDENTS_SECONDS + 1)
    for size in SizeClass.objects.all():
        Assessment.objects.create(size_class=size, assessed_at=late)
    found = get(client)["assessment"]
    assert (found["is_late"], found["doubtful_since"]) == (True, None)
    assert found["as_of"] == f"{late:%Y-%m-%dT%H:%M:%SZ}"
    Assessment.objects.update(assessed_at=NOW)
    # What changes a condition is seen at once, whatever is kept.
    stored_condition("slow", since=2 * HOUR)
    assert get(client)["assessment"] == {
        "as_of": "2026-11-20T12:00:30Z",
        "is_late": False,
        "doubtful_since": "2026-11-20T10:00:30Z",
    }


def test_credentials_in_trouble_are_told_and_their_names_to_who_may_see_them(client, small_world):
    credential = Credential.objects.create(name="grid-client", hosts=["ral"], kind="macaroon")
    for end, role in ((small_world.ral, "own"), (small_world.desy, "lent")):
        CredentialState.objects.create(
            credential=credential,
            endpoint=end,
            role=role,
            since=NOW - HOUR,
            holds=role == "own",
            sentence="the endpoint did not issue a macaroon: 403",
            expires_at=None if role == "own" else NOW + HOUR,
            checked_at=NOW,
        )
    of_service(credential, "by-fts")
    ral, desy, mesh = get(client)["credentials"]
    assert ral == {
        "endpoint": "RAL_DATADISK",
        "site": "RAL",
        "mesh": None,
        "role": "own",
        "since": "2026-11-20T11:00:30Z",
        "tests_wait": True,
        "expires_at": None,
    }
    expected = ("lent", False, "2026-11-20T13:00:30Z")
    assert (desy["role"], desy["tests_wait"], desy["expires_at"]) == expected
    client.force_login(account(Role.SITE_ADMIN, small_world.ral.site))
    ral, desy, unnamed = get(client)["credentials"]
    assert mesh == unnamed
    where = [mesh[name] for name in ("endpoint", "site", "mesh", "role")]
    assert where == [None, None, "by-fts", "service"]
    assert not {"credential", "kind", "detail"} & set(mesh)
    assert ral["credential"] == "grid-client"
    assert (ral["kind"], ral["detail"]) == (
        "macaroon",
        "the endpoint did not issue a macaroon: 403",
    )
    assert "credential" not in desy
    client.force_login(account(Role.OPERATOR, name="op"))
    mesh = get(client)["credentials"][2]
    assert (mesh["credential"], mesh["detail"]) == ("grid-client", "the secret is empty")


def test_what_waits_is_counted_by_reason_with_the_longest(client, small_world):
    Schedule.objects.update(next_due=NOW + HOUR)
    rows = list(Schedule.objects.order_by("id"))
    for row, minutes in zip(rows[:3], (5, 9, 1), strict=True):
        since = NOW - timedelta(minutes=minutes)
        due = {"next_due": NOW - HOUR, "skipped_because": "cap", "skipped_since": since}
        Schedule.objects.filter(id=row.id).update(**due)
    Schedule.objects.filter(id=rows[3].id).update(next_due=NOW)
    answer = get(client)["waiting"]
    assert [reason["reason"] for reason in answer] == [
        "stopped",
        "credential",
        "two vantages",
        "vantage",
        "mover",
        "not enabled",
        "paused",
        "downtime",
        "quiet hours",
        "quiet site",
        "budget",
        "hourly bytes",
        "circuit",
        "link",
        "cap",
        "next tick",
    ]
    assert [reason for reason in answer if reason["tests"] or reason["since"]] == [
        {"reason": "cap", "tests": 3, "since": "2026-11-20T11:51:30Z", "because": []},
        {"reason": "next tick", "tests": 1, "since": None, "because": []},
    ]


def test_results_of_the_last_hour_are_counted_by_state(client, small_world):
    made = small_world
    transfer(made.ral, made.desy, 5.0)
    transfer(made.ral, made.desy, 5.0, ago=timedelta(minutes=59))
    transfer(made.ral, made.desy, None)
    transfer(made.ral, made.desy, None, state="lost")
    transfer(made.ral, made.desy, 5.0, ago=timedelta(minutes=61))
    assert get(client)["results_last_hour"] == {"done": 2, "failed": 1, "lost": 1}


def test_an_hour_is_dirty_when_it_is_over_and_clean_when_it_is_sealed(client, small_world):
    made = small_world
    transfer(made.ral, made.desy, 5.0, ago=timedelta(minutes=0))  # this hour goes on
    assert get(client)["compaction"]["uncompacted"] == 0
    transfer(made.ral, made.desy, 5.0, ago=2 * HOUR)  # 10:00 to 11:00
    figures.forget()
    expected = {
        "uncompacted": 1,
        "uncompacted_since": "2026-11-20T11:00:00Z",
        "uncompacted_seconds": 3630.0,
    }
    assert get(client)["compaction"] == expected
    sealing.seal(NOW)
    figures.forget()
    assert get(client)["compaction"]["uncompacted"] == 0
    assert DirtyMark.objects.exists()  # of the hour and the day that go on


def test_a_day_that_is_over_counts_as_well(client, small_world):
    size = SizeClass.objects.get(name="large")
    midnight = NOW.replace(hour=0, minute=0, second=0)
    DirtyMark.objects.create(size_class=size, level="day", start=midnight - DAY)
    DirtyMark.objects.create(size_class=size, level="day", start=midnight)
    found = get(client)["compaction"]
    assert (found["uncompacted"], found["uncompacted_since"]) == (1, "2026-11-20T00:00:00Z")


def test_coverage_has_the_states_of_the_matrix_of_a_day(client, small_world):
    made = small_world
    transfer(made.ral, made.glasgow, 50.0)
    transfer(made.glasgow, made.ral, None)
    transfer(made.ral, made.desy, 5.0, ago=timedelta(hours=5))  # tested every hour
    transfer(made.desy, made.ral, 5.0, ago=timedelta(hours=25))
    downtime(endpoint=made.scratch)
    sizes = {one.pop("size"): one for one in get(client)["coverage"]}
    assert list(sizes) == ["small", "medium", "large"]
    counted = {
        "measured": 1,
        "failing": 0,
        "failed": 1,
        "stale": 1,
        "untested": 3,
        "down": 6,
        "links": 12,
    }
    assert sizes["large"] == counted | {"as_of": "2026-11-20T12:00:30Z"}
    assert sizes["small"]["links"] == 0
    states = client.get("/api/v1/matrix/", {"window": "24h"}).json()["cells"]["state"]
    flat = [state for row in states for state in row]
    assert {name: flat.count(name) for name in counted if name != "links"} == {
        name: number for name, number in counted.items() if name != "links"
    }
    # A condition is seen at once, and only what is confirmed makes a link failing.
    ends = {"source": made.glasgow, "destination": made.ral}
    stored_condition("failing", **ends, confirmed=False)
    large = get(client)["coverage"][2]
    assert (large["failing"], large["failed"]) == (0, 1)
    Condition.objects.update(confirmed_at=NOW)
    large = get(client)["coverage"][2]
    assert (large["failing"], large["failed"]) == (1, 0)


def test_the_data_version_moves_with_everything(client, small_world):
    seen = [get(client)["data_version"]]

    def moved() -> bool:
        seen.append(get(client)["data_version"])
        return len(set(seen)) == len(seen)

    transfer(small_world.ral, small_world.desy, 5.0, ago=timedelta(0))
    assert moved()
    transfer(small_world.ral, small_world.desy, 5.0, ago=2 * DAY)
    assert moved()
    sealing.seal(NOW)  # of a day that is over no mark is left: only a segment says it
    assert moved()
    small_world.ral.label = "NEW"
    small_world.ral.save()
    assert moved()
    assert get(client)["data_version"] == seen[-1]


def test_what_is_dear_is_read_once_in_a_while(client, small_world, django_assert_num_queries):
    get(client)
    with django_assert_num_queries(5):  # among them whether all tests are stopped
        get(client)


def test_the_first_reading_costs_the_same_with_few_and_with_many(
    client, small_world, django_assert_max_num_queries
):
    counts = []
    for number in (1, 1, 60):  # the first time registry and schedule are read, too
        for minute in range(number):
            transfer(small_world.ral, small_world.desy, 5.0, ago=timedelta(minutes=minute))
        figures.forget()
        with django_assert_max_num_queries(53) as context:
            get(client)
        counts.append(len(context))
    assert counts[1] == counts[2]


def test_a_change_of_the_registry_is_seen_at_once(client, small_world):
    assert {one["size"] for one in get(client)["coverage"]} == {"small", "medium", "large"}
    SizeClass.objects.create(name="huge", from_bytes=10**11, test_bytes=10**11)
    assert "huge" in {one["size"] for one in get(client)["coverage"]}


def test_due_tests_are_found_by_the_index_and_not_by_reading_them_all(small_world):
    explained = Schedule.objects.filter(next_due__lte=NOW).values_list("skipped_because")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    assert "schedule_next_due" in explained.order_by().explain()


def test_parameters_are_refused(client):
    assert client.get(URL, {"window": "7d"}).status_code == 400
