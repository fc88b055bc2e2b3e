"""The page of operations: what it says of a Sonar that is well, ill, empty; and ordering there."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.test import Client
from pytest_django import Settings

from matrix.answers.status import figures
from matrix.store import waiting
from sonar import request_probes
from sonar import settings as project
from sonar.models import Circuit, Downtime, Endpoint, Probe, Schedule, SignOfLife, SizeClass
from sonar.roles import Role
from tests import refusing
from tests.accounts import account
from tests.matrix import world
from tests.matrix.world import NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_status")]
URL, ORDER = "/operations/", "/operations/probes/"
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
WORKER = "worker-7.internal"
MARKUP = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_probes, "send", lambda ids: None)


@pytest.fixture
def well(db: None) -> None:
    """The signs of a Sonar that is well."""
    signs = {
        f"transfers@{WORKER}": "worker",
        f"control@{WORKER}": "worker",
        f"cleaning@{WORKER}": "worker",
        f"beat@{WORKER}": "beat",
    }
    signs |= dict.fromkeys(figures.TASKS, "task")
    SignOfLife.objects.bulk_create(
        SignOfLife(
            name=name,
            kind=kind,
            seen_at=NOW - timedelta(seconds=3),
            every_seconds=10,
            queues=[name.partition("@")[0]] if kind == "worker" else [],
        )
        for name, kind in signs.items()
    )


def text(client: Client, url: str = URL) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def probe(source: Endpoint, destination: Endpoint, **fields: object) -> Probe:
    size = SizeClass.objects.get(name="small")
    started = {"state": "running", "started_at": NOW - 10 * MINUTE, "deadline": NOW + HOUR}
    return Probe.objects.create(
        source=source,
        destination=destination,
        size_class=size,
        bytes=size.test_bytes,
        requested_at=NOW - 11 * MINUTE,
        sent_at=NOW,
        mover="http-tpc",
        **(started | fields if "worker" in fields else fields),
    )


# What it says.


def test_a_sonar_that_is_well_says_so_in_one_line(
    client: Client, small_world: World, well: None
) -> None:
    page = text(client)
    assert "Sonar is well: beat and workers live" in page
    assert "silent" not in page
    assert page.count("1 lives") == 3


def test_simulated_endpoints_are_said_as_long_as_one_is_in_use(
    client: Client, small_world: World
) -> None:
    assert "Simulated." not in text(client)
    Endpoint.objects.filter(pk=small_world.ral.pk).update(simulated=True)
    assert "Simulated. Some or all endpoints are sandbox nodes" in text(client)
    Endpoint.objects.filter(pk=small_world.ral.pk).update(retired_at=NOW)
    assert "Simulated." not in text(client)


def test_an_empty_sonar_without_processes_says_what_to_start(client: Client) -> None:
    page = text(client)
    assert "No worker takes from the queue “transfers”: nothing is measured." in page
    assert "No worker takes from the queue “control”" in page
    assert "The beat sends nothing: it has never been heard of." in page
    for words in (
        "No test is running at this moment",
        "Nothing that is due has to wait",
        "No test has ended in the last 24 hours",
        "None.",
    ):
        assert words in page


def test_a_planner_that_does_not_end_is_said_only_if_nothing_else_explains_it(
    client: Client, small_world: World, well: None
) -> None:
    SignOfLife.objects.filter(name="plan").update(seen_at=NOW - HOUR)
    assert "The task “plan” does not end: last heard of 1 h ago" in text(client)
    SignOfLife.objects.filter(kind="beat").update(seen_at=NOW - HOUR)
    page = text(client)
    assert "The beat sends nothing: last heard of 1 h ago" in page
    assert "The task “plan”" not in page


@pytest.mark.parametrize("way", refusing.WAYS)
def test_a_beat_that_a_full_redis_makes_silent_is_told_by_its_cause(
    client: Client, small_world: World, well: None, way: str
) -> None:
    refuse, why = refusing.WAYS[way]
    SignOfLife.objects.filter(kind="beat").update(seen_at=NOW - HOUR)
    with refuse(project.REDIS_URL):
        page = text(client)
    assert f"The queue does not work: Redis answers and refuses writes: {why}" in page
    assert "The beat sends nothing" not in page


def test_without_redis_the_page_names_it_and_not_all_who_are_silent_with_it(
    client: Client, small_world: World, settings: Settings
) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    page = text(client)
    assert "The queue does not work: Redis does not answer" in page
    assert "No worker takes from" not in page


def test_a_task_that_stopped_is_said_and_one_that_has_not_come_yet_is_not(
    client: Client, small_world: World, well: None
) -> None:
    SignOfLife.objects.filter(name="keep_months").delete()
    assert "Sonar is well" in text(client)
    assert "not yet" in text(client)
    SignOfLife.objects.filter(name="sweep").update(seen_at=NOW - HOUR)
    assert "The task “sweep” does not end" in text(client)
    assert "worker for the queue “control”" in text(client)
    SignOfLife.objects.filter(name="sweep").update(seen_at=NOW)
    SignOfLife.objects.filter(name="clean").update(seen_at=NOW - HOUR)
    assert "The task “clean” does not end" in text(client)
    assert "worker for the queue “cleaning”" in text(client)


def test_a_queue_that_does_not_move_and_hours_that_nobody_seals_are_said(
    client: Client, small_world: World, well: None
) -> None:
    probe(small_world.ral, small_world.desy)
    transfer(small_world.ral, small_world.desy, 5.0, ago=5 * HOUR)
    page = text(client)
    assert "1 test is queued, the oldest since 11 min ago" in page
    assert "Sealing is late: 1 hour or day that is over is not sealed" in page


def test_running_tests_have_a_bar_and_lead_to_their_pages(
    client: Client, small_world: World, well: None
) -> None:
    one = probe(small_world.ral, small_world.desy, worker=WORKER, progress_bytes=15_000_000)
    page = client.get(URL).content.decode()
    assert '<progress max="100" value="75"' in page
    assert f'href="/transfers/{one.id}/"' in page
    assert "every 5s, refresh" in page
    Probe.objects.all().delete()
    assert "every 5s" not in client.get(URL).content.decode()


def test_what_waits_has_its_reason_and_the_links_that_wait_longest(
    client: Client, small_world: World, well: None
) -> None:
    made = small_world
    Schedule.objects.update(next_due=NOW + HOUR)
    waiting = Schedule.objects.filter(source=made.ral)
    since = {"skipped_because": "cap", "skipped_since": NOW - 20 * MINUTE}
    waiting.update(next_due=NOW - HOUR, **since)
    waiting.filter(destination=made.desy).update(next_due=NOW - 2 * HOUR)
    page = client.get(URL).content.decode()
    assert "has as many tests at once as it bears" in page
    row = page.partition('<th scope="row">cap</th>')[2].partition("</tr>")[0]
    assert '<td class="number">3</td>' in row
    first = re.findall(r'href="(/links/[^"]+)"', row)[0]
    assert first == "/links/RAL_DATADISK/DESY_DATADISK/"


def test_only_the_oldest_are_looked_at_for_examples(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    Schedule.objects.filter(source=small_world.ral).update(next_due=NOW - HOUR)
    Schedule.objects.filter(source=small_world.desy).update(
        skipped_because="cap", skipped_since=NOW
    )
    assert {reason: len(some) for reason, some in waiting.examples(NOW).items()} == {
        "next tick": 3,
        "cap": 3,
    }
    monkeypatch.setattr(waiting, "OLDEST_DUE", 2)
    assert {reason: len(some) for reason, some in waiting.examples(NOW).items()} == {"next tick": 2}


def test_coverage_leads_to_the_matrix_of_these_links(
    client: Client, small_world: World, well: None
) -> None:
    transfer(small_world.ral, small_world.desy, None)
    page = client.get(URL).content.decode()
    assert '<a href="/?window=24h&amp;only=failed">1</a>' in page
    assert "Only cells in focus" in client.get("/?window=24h&only=failed").content.decode()


def test_results_and_downtimes_are_there_and_escaped(
    client: Client, small_world: World, well: None
) -> None:
    made = small_world
    one = transfer(made.ral, made.desy, 5.0)
    transfer(made.desy, made.ral, None)
    for begin, end in ((-1, 1), (24, 30), (24 * 8, 24 * 9), (-3, -2)):
        Downtime.objects.create(
            site=made.desy.site,
            starts_at=NOW + begin * HOUR,
            ends_at=NOW + end * HOUR,
            reason=f"disks {begin} {MARKUP}",
        )
    page = client.get(URL).content.decode()
    assert f'href="/transfers/{one.id}/"' in page
    assert "disks -1" in page
    assert "disks 24 " in page
    assert "disks 192" not in page
    assert "disks -3" not in page
    assert MARKUP not in page
    assert "<strong>now</strong>" in page


def test_tests_that_wait_for_a_link_or_for_an_end_that_fails_have_their_words(
    client: Client, small_world: World, well: None
) -> None:
    Schedule.objects.update(next_due=NOW - HOUR, skipped_because="link", skipped_since=NOW)
    Schedule.objects.filter(source=small_world.ral).update(skipped_because="circuit")
    Schedule.objects.filter(source=small_world.desy).update(skipped_because="credential")
    page = text(client)
    assert "an end lends no credential, or has one for another host" in page
    assert "another test of their link has not ended: a link has one at a time" in page
    assert "tests of an end keep failing, so that it is tested now and then only" in page


def circuit(end: Endpoint, failures: int = 7) -> Circuit:
    return Circuit.objects.create(
        endpoint=end,
        failures=failures,
        since=NOW - 3 * HOUR,
        last_at=NOW - MINUTE,
        error=f"no answer {MARKUP}",
    )


def test_an_end_by_which_tests_keep_failing_is_said_with_its_last_error(
    client: Client, small_world: World, well: None
) -> None:
    circuit(small_world.ral)
    circuit(small_world.desy, failures=4)
    words = (
        "7 tests have failed by RAL_DATADISK in a row since 2026-11-20 09:00:30 UTC, the last "
        "1 min ago: its tests are spread thin until one succeeds. The last error: no answer"
    )
    page = client.get(URL).content.decode()
    assert words in text(client)
    assert "by DESY_DATADISK" not in page
    assert MARKUP not in page
    assert '<a href="/sites/RAL/">Look at RAL</a>' in page
    assert "Sonar is well" not in page
    assert words in text(client, "/sites/RAL/")
    assert "failed by RAL_DATADISK" not in text(client, "/sites/DESY/")


def test_of_many_such_ends_the_first_are_named_and_the_others_counted(
    client: Client, small_world: World, well: None
) -> None:
    for number in range(12):
        circuit(world.endpoint(f"E{number}", small_world.desy.site))
    page = text(client)
    assert page.count("tests have failed by E") == 10
    assert "2 more ends fail:" in page


def test_ordered_tests_that_have_not_begun_say_their_place_and_what_they_wait_for(
    client: Client, small_world: World, well: None
) -> None:
    made = small_world
    why = {"state": "waiting", "waits_because": "Another test of this link runs."}
    probe(made.ral, made.desy)
    waiting = [probe(made.ral, made.desy, **why) for _ in range(2)]
    planned = probe(made.desy, made.ral, mesh=made.mesh)
    for ago, one in enumerate([planned, *reversed(waiting)]):
        Probe.objects.filter(id=one.id).update(requested_at=NOW - ago * MINUTE)
    page = client.get(URL).content.decode()
    part = page.partition('<h2 id="ordered">')[2].partition("</section>")[0]
    assert part.count("<tr>") == 1 + 3
    assert part.count("Another test of this link runs.") == 2
    assert "a worker: it is queued" in part
    assert re.findall(r'<td class="number">(\d+)</td>', part) == ["1", "1", "2"]
    assert all(f'href="/transfers/{one.id}/"' in part for one in waiting)
    assert "2 queued and 2 ordered and waiting" in text(client)
    assert "Cancel" not in part
    assert "every 5s" in page


@pytest.mark.parametrize(
    ("role", "sees"), [(None, False), (Role.READER, False), (Role.OPERATOR, True)]
)
def test_names_of_machines_are_for_operators(
    client: Client, small_world: World, well: None, role: Role | None, sees: bool
) -> None:
    probe(small_world.ral, small_world.desy, worker=WORKER)
    if role:
        client.force_login(account(role))
    assert (WORKER in client.get(URL).content.decode()) is sees


def test_the_page_costs_the_same_with_few_and_with_many(
    client: Client, small_world: World, well: None, django_assert_max_num_queries
) -> None:
    counts = []
    for number in (1, 1, 40):
        for minute in range(number):
            transfer(small_world.ral, small_world.desy, 5.0, ago=minute * MINUTE)
            other = world.endpoint(f"E{Endpoint.objects.count()}", small_world.desy.site)
            probe(small_world.ral, other, worker=WORKER)
            probe(small_world.ral, other, state="waiting", waits_because="It must.")
        client.get(URL)  # what is dear is known
        with django_assert_max_num_queries(12) as context:
            client.get(URL)
        counts.append(len(context))
    assert counts[1] == counts[2]


def test_it_has_no_parameters_and_needs_what_reading_needs(
    client: Client, small_world: World, settings: Settings
) -> None:
    assert client.get(URL, {"size": "small"}).status_code == 400
    settings.SONAR_PUBLIC_READ = False
    assert client.get(URL).status_code == 302


# Ordering.


def order(client: Client, **change: object) -> object:
    form = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "size": "small"}
    return client.post(ORDER, form | change)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMINISTRATOR])
def test_who_may_orders_a_test_and_is_led_to_it(
    client: Client, small_world: World, role: Role
) -> None:
    client.force_login(account(role))
    assert 'action="/operations/probes/"' in client.get(URL).content.decode()
    response = order(client)
    made = Probe.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/transfers/{made.id}/")
    assert (made.source, made.destination, made.mesh) == (small_world.ral, small_world.desy, None)
    page = client.get(f"/transfers/{made.id}/").content.decode()
    assert "asked for by hand" in page
    assert "This test has not ended" in page


def test_an_admin_of_a_site_orders_for_it_alone(client: Client, small_world: World) -> None:
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site))
    assert "one of the ends must be at a site of yours" in text(client)
    assert order(client).status_code == 302
    assert order(client, destination="Glasgow_DATADISK").status_code == 403
    assert Probe.objects.count() == 1


def test_readers_have_no_form_and_may_not(client: Client, small_world: World) -> None:
    assert ORDER not in client.get(URL).content.decode()
    response = order(client)
    assert (response.status_code, response["Location"]) == (302, f"/login/?next={ORDER}")
    client.force_login(account(Role.READER))
    assert ORDER not in client.get(URL).content.decode()
    assert order(client).status_code == 403
    assert order(client, source="nowhere").status_code == 403
    assert not Probe.objects.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "nowhere"}, "source “nowhere” is no registered endpoint"),
        ({"source": ""}, "Source must be the name"),
        ({"source": f"{MARKUP}"}, "Source must be the name"),
        ({"size": "huge"}, "“huge” is no size class"),
        ({"size": []}, "Sizes must be a list"),
    ],
)
def test_a_wrong_wish_is_answered_with_what_is_allowed(
    client: Client, small_world: World, change: dict[str, object], said: str
) -> None:
    client.force_login(account(Role.OPERATOR))
    response = order(client, **change)
    assert response.status_code == 400
    page = response.content.decode()
    assert said.casefold() in page.casefold()
    assert MARKUP not in page


def test_what_the_ends_do_not_bear_is_said(client: Client, small_world: World) -> None:
    client.force_login(account(Role.OPERATOR))
    Endpoint.objects.filter(id=small_world.ral.id).update(retired_at=NOW)
    response = order(client)
    assert response.status_code == 409
    assert "RAL_DATADISK is retired." in response.content.decode()
    assert not Probe.objects.exists()


def test_a_form_of_another_site_orders_nothing(small_world: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(account(Role.OPERATOR))
    assert order(strict).status_code == 403
    assert strict.get(ORDER).status_code == 405


def test_ids_of_ordered_tests_are_ids(client: Client, small_world: World) -> None:
    client.force_login(account(Role.OPERATOR))
    location = order(client)["Location"]
    assert UUID(location.split("/")[2])


# Cancelling.


def cancel(client: Client, one: Probe) -> object:
    return client.post(f"{ORDER}{one.id}/cancel/")


def test_who_may_cancels_a_test_and_is_led_to_the_operations_with_a_message(
    client: Client, small_world: World, well: None
) -> None:
    client.force_login(account(Role.OPERATOR))
    for _ in range(2):
        order(client)
    first, second = Probe.objects.order_by("state")
    for page in (URL, f"/transfers/{second.id}/"):
        assert f'action="{ORDER}{second.id}/cancel/"' in client.get(page).content.decode()
    response = cancel(client, second)
    assert (response.status_code, response["Location"]) == (302, URL)
    said = "The small test from RAL_DATADISK to DESY_DATADISK was cancelled: nothing was measured."
    assert said in text(client)
    assert said not in text(client)
    assert Probe.objects.get() == first


def test_the_page_of_a_waiting_test_says_its_place_and_why_it_waits(
    client: Client, small_world: World
) -> None:
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site))
    for _ in range(3):
        order(client)
    first, *waiting = Probe.objects.order_by("state", "requested_at", "id")
    said = "It was ordered and waits for room: Another test of this link runs."
    assert f"{said} It is next of those" in text(client, f"/transfers/{waiting[0].id}/")
    assert f"{said} It has place 2 of those" in text(client, f"/transfers/{waiting[1].id}/")
    assert "Cancel this test" in text(client, f"/transfers/{waiting[1].id}/")
    assert "It is queued and waits for a worker" in text(client, f"/transfers/{first.id}/")
    client.force_login(account(Role.SITE_ADMIN, small_world.glasgow.site, name="glasgow"))
    assert "Cancel this test" not in text(client, f"/transfers/{waiting[1].id}/")


def test_what_has_begun_or_ended_is_not_cancelled_and_that_is_said(
    client: Client, small_world: World
) -> None:
    client.force_login(account(Role.OPERATOR))
    one = probe(small_world.ral, small_world.desy, worker=WORKER)
    assert "Cancel this test" not in text(client, f"/transfers/{one.id}/")
    response = cancel(client, one)
    assert response.status_code == 409
    assert "runs already: it cannot be cancelled" in response.content.decode()
    assert "The test was not cancelled" in response.content.decode()
    done = transfer(small_world.ral, small_world.desy, 5.0)
    assert "has ended" in client.post(f"{ORDER}{done.id}/cancel/").content.decode()
    assert client.post(f"{ORDER}{uuid4()}/cancel/").status_code == 404
    assert Probe.objects.exists()


def test_who_may_not_order_it_may_not_cancel_it(client: Client, small_world: World) -> None:
    one = probe(small_world.ral, small_world.desy)
    assert cancel(client, one)["Location"].startswith("/login/")
    for user in (account(Role.READER), account(Role.SITE_ADMIN, small_world.glasgow.site)):
        client.force_login(user)
        assert cancel(client, one).status_code == 403
    assert client.get(f"{ORDER}{one.id}/cancel/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(account(Role.OPERATOR))
    assert cancel(strict, one).status_code == 403
    assert Probe.objects.exists()
