"""The page of operations: what it says of a Sonar that is well, ill, empty; and ordering there."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from matrix.answers.status import figures
from matrix.store import probes, registry
from sonar import settings as project
from sonar.models import (
    AllTests,
    Circuit,
    Condition,
    Credential,
    CredentialState,
    DowntimeSource,
    Endpoint,
    Mesh,
    Probe,
    Schedule,
    SignOfLife,
    Site,
    Transfer,
)
from sonar.movers.catalogue import names
from sonar.notation.enumeration import either
from sonar.people.roles import Role
from tests import refusing
from tests.accounts import account, logged_in
from tests.conditions import stored_condition
from tests.html import Page
from tests.matrix import responses, sent, world
from tests.matrix.world import NOW, World, of_service, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_status", "nothing_is_sent")]
URL, ORDER = "/operations/", "/operations/probes/"
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
WORKER = "worker-7.internal"
MARKUP = "<script>alert(1)</script>"


@pytest.fixture
def well(small_world: World) -> None:
    """The signs of a Sonar that is well."""
    signs = {
        f"transfers@{WORKER}": "worker",
        f"control@{WORKER}": "worker",
        f"cleanup@{WORKER}": "worker",
        f"beat@{WORKER}": "beat",
    }
    signs |= dict.fromkeys(figures.TASKS, "task")
    SignOfLife.objects.bulk_create(
        SignOfLife(
            name=name,
            kind=kind,
            seen_at=NOW - timedelta(seconds=3),
            every_seconds=10,
            queues=world.QUEUES[name.partition("@")[0]] if kind == "worker" else [],
        )
        for name, kind in signs.items()
    )


def look(client: Client, url: str = URL) -> Page:
    return responses.page(client, url)


# What it says.


def test_a_source_of_downtimes_that_does_not_answer_is_a_problem(client, well, settings):
    settings.SONAR_GOCDB_URL = settings.SONAR_OSG_DOWNTIMES_URL = "https://source.example.org/"
    DowntimeSource.objects.create(origin="osg", asked_at=NOW, answered_at=NOW)
    gocdb = DowntimeSource.objects.create(origin="gocdb", asked_at=NOW, answered_at=NOW)
    assert "Sonar is healthy" in look(client)
    for answered_at, words in ((NOW - 5 * HOUR, "for 5 h"), (None, "yet")):
        DowntimeSource.objects.filter(pk=gocdb.pk).update(answered_at=answered_at)
        page = look(client)
        assert f"Sonar has 1 problem GOCDB has not responded {words}. Sonar does not" in page


def test_a_sonar_that_is_well_says_so_in_one_line(client, well):
    page = look(client)
    assert "Health: Sonar is healthy All workers respond, due tests start" in page
    assert "silent" not in page
    assert "Failing endpoints" not in page
    assert page.words.count("1 running") == 3


def test_workers_are_listed_by_vantage_and_one_without_any_is_a_problem(client, well, small_world):
    Endpoint.objects.filter(pk=small_world.ral.pk).update(vantage="ral")
    Mesh.objects.update(vantage="cern")
    SignOfLife.objects.create(
        name="w@cern",
        kind="worker",
        seen_at=NOW,
        every_seconds=10,
        queues=["transfers@cern", "transfers.http-tpc@cern", "cleanup@cern"],
    )
    page = look(client)
    assert "workers for “transfers@cern” run tests, at the vantage point cern 1 running" in page
    assert (
        "workers for “cleanup@cern” clean up files and check credentials, at the vantage point cern"
        in page
    )
    assert "6 links are not tested. No worker can reach both endpoints: the vantage points" in page
    assert "all endpoints; at the vantage point cern" in page
    assert "start one there" not in page
    SignOfLife.objects.update(seen_at=NOW - HOUR)
    dead = (
        "No worker is running at the vantage point cern: start one there with SONAR_VANTAGE=cern."
    )
    assert f"Not all tests of the mesh everything can run: {dead}" in look(client)


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        ([9.0], ""),
        (
            [-42.0],
            "The clock of a worker or of the scheduler is 42 s behind the database clock: tokens",
        ),
        (
            [-12.0, 3600.0],
            "2 clocks are wrong; the worst is 3600 s ahead of the database clock: tokens",
        ),
    ],
)
def test_a_clock_that_is_wrong_is_a_problem_and_operators_see_whose(client, well, ahead, said):
    for name, seconds in zip(("control", "beat"), ahead, strict=False):
        SignOfLife.objects.filter(pk=f"{name}@{WORKER}").update(clock_ahead_seconds=seconds)
    page = look(client)
    assert said in page
    assert ("Sonar is healthy" in page) is not bool(said)
    client.force_login(account(Role.OPERATOR))
    whose = f"control@{WORKER} (clock {abs(ahead[0]):.0f} s behind)"
    assert (whose in look(client)) is bool(said)


def test_simulated_endpoints_are_said_as_long_as_one_is_in_use(client, small_world):
    assert "Simulated." not in look(client).source
    Endpoint.objects.filter(pk=small_world.ral.pk).update(simulated=True)
    assert "Simulated. Some or all endpoints are sandbox nodes" in look(client)
    Endpoint.objects.filter(pk=small_world.ral.pk).update(retired_at=NOW)
    assert "Simulated." not in look(client).source


def test_an_empty_sonar_without_processes_says_what_to_start(client):
    page = look(client)
    assert "No worker is running for the queue “transfers”. No tests are running." in page
    assert "No worker is running for the queue “control”" in page
    assert "The scheduler is not running: no task has been sent yet." in page
    for words in (
        "No test is running right now",
        "No due test is waiting",
        "No test has finished in the last 24 hours",
        "No downtimes are declared for this period.",
    ):
        assert words in page


def test_a_planner_that_does_not_end_is_said_only_if_nothing_else_explains_it(client, well):
    SignOfLife.objects.filter(name="planner").update(seen_at=NOW - HOUR)
    assert "The task “planner” is late: the last run finished 1 h ago" in look(client)
    SignOfLife.objects.filter(kind="beat").update(seen_at=NOW - HOUR)
    page = look(client)
    assert "The scheduler is not running: the last task was sent 1 h ago" in page
    assert "The task “planner”" not in page


@pytest.mark.parametrize("way", refusing.WAYS)
def test_a_beat_that_a_full_redis_makes_silent_is_told_by_its_cause(client, well, way: str):
    refuse, why = refusing.WAYS[way]
    SignOfLife.objects.filter(kind="beat").update(seen_at=NOW - HOUR)
    with refuse(project.REDIS_URL):
        page = look(client)
    assert f"The message broker has a problem: Redis responds but refuses writes: {why}" in page
    assert "The scheduler is not running" not in page


def test_without_redis_the_page_names_it_and_not_all_who_are_silent_with_it(
    client, small_world, settings
):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    page = look(client)
    assert "The message broker has a problem: Redis is not responding" in page
    assert "No worker is running for" not in page


def test_a_task_that_stopped_is_said_and_one_that_has_not_come_yet_is_not(client, well):
    SignOfLife.objects.filter(name="retention").delete()
    assert "Sonar is healthy" in look(client)
    assert "not run yet; runs every 1 h" in look(client)
    SignOfLife.objects.filter(name="recovery").update(seen_at=NOW - HOUR)
    assert "The task “recovery” is late" in look(client)
    assert "worker for the queue “control”" in look(client)
    SignOfLife.objects.filter(name="recovery").update(seen_at=NOW)
    SignOfLife.objects.filter(name="cleanup").update(seen_at=NOW - HOUR)
    assert "The task “clean-up” is late" in look(client)
    assert "worker for the queue “cleanup”" in look(client)


def test_a_queue_that_does_not_move_and_hours_that_nobody_seals_are_said(client, small_world, well):
    sent.probe(small_world.ral, small_world.desy, 11 * MINUTE)
    transfer(small_world.ral, small_world.desy, 5.0, ago=5 * HOUR)
    page = look(client)
    assert "1 test is queued. The oldest test has been waiting for 11 min" in page
    assert "Compaction is late: 1 completed hour or day has not been compacted" in page


def test_running_tests_have_a_bar_and_lead_to_their_pages(client, small_world, well):
    one = sent.probe(small_world.ral, small_world.desy, worker=WORKER, progress_bytes=15_000_000)
    page = look(client)
    assert page.part("progress")["value"] == "75"
    assert f"/transfers/{one.id}/" in page.links()
    assert page.parts('[hx-trigger="every 5s, refresh"]')
    Probe.objects.all().delete()
    assert "every 5s" not in look(client).source


def test_what_waits_has_its_reason_and_the_links_that_wait_longest(client, small_world, well):
    made = small_world
    Schedule.objects.update(next_due=NOW + HOUR)
    waiting = Schedule.objects.filter(source=made.ral)
    since = {"skipped_because": "cap", "skipped_since": NOW - 20 * MINUTE}
    waiting.update(next_due=NOW - HOUR, **since)
    waiting.filter(destination=made.desy).update(next_due=NOW - 2 * HOUR)
    page = look(client)
    assert "is running as many tests as its cap allows" in page
    reasons = page.section("waiting")
    assert reasons.by_head()["cap"][0] == "3"
    assert reasons.links("tbody a")[0] == "/links/RAL_DATADISK/DESY_DATADISK/"


def test_only_the_oldest_are_looked_at_for_examples(small_world, monkeypatch):
    Schedule.objects.filter(source=small_world.ral).update(next_due=NOW - HOUR)
    Schedule.objects.filter(source=small_world.desy).update(
        skipped_because="cap", skipped_since=NOW
    )
    assert {reason: len(some) for reason, some in probes.longest_waiting(NOW).items()} == {
        "next tick": 3,
        "cap": 3,
    }
    monkeypatch.setattr(probes, "OLDEST_DUE", 2)
    assert {reason: len(some) for reason, some in probes.longest_waiting(NOW).items()} == {
        "next tick": 2
    }


def test_coverage_leads_to_the_matrix_of_these_links(client, small_world, well):
    transfer(small_world.ral, small_world.desy, None)
    page = look(client)
    assert page.link("1") == "/?window=24h&only=failed"
    assert "Only matching cells" in look(client, "/?window=24h&only=failed")


def test_results_and_downtimes_are_there_and_escaped(client, small_world, well):
    made = small_world
    one = transfer(made.ral, made.desy, 5.0)
    transfer(made.desy, made.ral, None)
    for begin, end in ((-1, 1), (24, 30), (24 * 8, 24 * 9), (-3, -2)):
        reason = f"disks {begin} {MARKUP}"
        world.downtime(begin * HOUR, end * HOUR, site=made.desy.site, reason=reason)
    page = look(client)
    assert f"/transfers/{one.id}/" in page.links()
    assert "disks -1" in page
    assert "disks 24 " in page
    assert "disks 192" not in page.source
    assert "disks -3" not in page.source
    assert MARKUP not in page.source
    assert "now" in page.texts("li strong")


def test_tests_that_wait_for_a_link_or_for_an_end_that_fails_have_their_words(
    client, small_world, well
):
    Schedule.objects.update(next_due=NOW - HOUR, skipped_because="link", skipped_since=NOW)
    Schedule.objects.filter(source=small_world.ral).update(skipped_because="circuit")
    Schedule.objects.filter(source=small_world.desy).update(skipped_because="credential")
    page = look(client)
    why = "a credential is missing, is not delegated, is for another host, or does not work"
    assert why in page
    assert "another test of the link has not finished: each link runs one test at a time" in page
    assert "tests of an endpoint keep failing, so it is tested less often" in page


def failing(end: Endpoint, **values: Any) -> None:
    """Store that an endpoint fails as source, and the circuit that its failures opened."""
    stored_condition("failing", source=end, since=3 * HOUR, **values)
    Circuit.objects.create(
        endpoint=end,
        failures=7,
        since=NOW - 3 * HOUR,
        last_at=NOW - MINUTE,
        error=f"no answer {MARKUP}",
    )


SAID = (
    "RAL_DATADISK fails as source with large files, on 3 of 3 links, 30 of 30 tests failed, since "
    "20 Nov 09:00 UTC. Tests of this endpoint run less often until one succeeds. Last error (1 min "
    "ago): no answer"
)


def test_an_endpoint_that_fails_is_said_with_its_last_error(client, small_world, well):
    failing(small_world.ral)
    stored_condition("silent", destination=small_world.desy)
    stored_condition("failing", source=small_world.glasgow, destination=small_world.desy)
    page = look(client)
    assert SAID in page
    section = page.section("failing-ends")
    assert "DESY_DATADISK" not in section
    assert MARKUP not in page.source
    assert page.link("Open RAL") == "/sites/RAL/"
    site = look(client, "/sites/RAL/").part("#answer")
    assert site.words.count("RAL_DATADISK fails as source") == 1
    assert site.words.count("Last error (1 min ago): no answer") == 1
    partner = look(client, "/sites/DESY/").part("#answer")
    assert "Conditions at partner sites: RAL_DATADISK fails as source" in partner
    assert "Last error" not in partner


def test_a_circuit_without_a_condition_is_no_verdict_and_a_condition_needs_no_circuit(
    client, small_world, well
):
    failing(small_world.ral, ended=HOUR)
    assert "Failing endpoints" not in look(client)
    stored_condition("failing", site=small_world.desy.site, confirmed=False)
    stored_condition("failing", destination=small_world.ral, since=2 * HOUR)
    first, second = look(client).section("failing-ends").texts("p")
    assert first.startswith("RAL_DATADISK fails as destination with large files, on 3 of 3 links")
    assert second.startswith("DESY fails in both directions with large files, on 10 of 10 links")
    assert "since 20 Nov 06:00 UTC, unconfirmed" in second
    assert "Last error" not in second


def test_that_endpoints_fail_stands_apart_from_whether_sonar_is_healthy(client, small_world, well):
    failing(small_world.ral)
    page = look(client)
    assert "Sonar is healthy" in page.part("#health")
    assert "fails as source with" not in page.part("#health")
    apart = page.section("failing-ends")
    assert apart.texts("h2") == ["Failing endpoints"]
    assert SAID in apart
    SignOfLife.objects.filter(kind="beat").delete()
    page = look(client)
    assert "Sonar is healthy" not in page.source
    assert "The scheduler is not running:" in page.part("#health")
    assert SAID in page.section("failing-ends")


def test_of_many_such_endpoints_the_first_are_named_and_the_others_counted(
    client, small_world, well
):
    for number in range(12):
        failing(world.endpoint(f"E{number}", small_world.desy.site), links=[])
    page = look(client)
    assert page.words.count("fails as source") == 10
    assert "2 more endpoints fail." in page


def test_while_the_whole_grid_is_slow_results_are_doubtful_and_that_is_the_verdict(
    client, small_world, well
):
    stored_condition("slow", since=2 * HOUR, confirmed=False)
    assert "Health: Sonar is healthy All workers" in look(client)
    Condition.objects.all().delete()
    stored_condition("slow", since=2 * HOUR)
    failing(small_world.ral)
    stored_condition("failing", destination=small_world.desy, since=HOUR)
    figures.forget()
    page = look(client)
    assert page.texts("h1") == [
        "Health: Sonar is running; its results have been doubtful since 20 Nov 10:00 UTC"
    ]
    assert (
        "Results have been doubtful since 20 Nov 10:00 UTC: most links are slow at once, which "
        "suggests a problem on Sonar's machine. Check the load"
    ) in page.part("#health")
    assert "healthy" not in page
    # What began since then is not a fault of its own.
    assert SAID in page.section("failing-ends")
    assert "DESY_DATADISK" not in page.section("failing-ends")
    SignOfLife.objects.filter(kind="beat").delete()
    (heading,) = look(client).texts("h1")
    said = "Sonar has 1 problem; its results have been doubtful since 20 Nov 10:00 UTC"
    assert heading == f"Health: {said}"
    Condition.objects.filter(scope="grid").update(ended_at=NOW - MINUTE)
    assert "doubtful" not in look(client)


def test_ordered_tests_that_have_not_begun_say_their_place_and_what_they_wait_for(
    client, small_world, well
):
    made = small_world
    why = {"state": "waiting", "waits_because": "Another test of this link is running."}
    sent.probe(made.ral, made.desy, 11 * MINUTE)
    waiting = [sent.probe(made.ral, made.desy, **why) for _ in range(2)]
    planned = sent.probe(made.desy, made.ral, mesh=made.mesh)
    for ago, one in enumerate([planned, *reversed(waiting)]):
        Probe.objects.filter(id=one.id).update(requested_at=NOW - ago * MINUTE)
    page = look(client)
    ordered = page.section("ordered")
    assert [row[3] for row in ordered.table()] == ["1", "1", "2"]
    assert ordered.words.count("Another test of this link is running.") == 2
    assert "a worker (queued)" in ordered
    assert {f"/transfers/{one.id}/" for one in waiting} <= set(ordered.links())
    assert "2 queued and 2 requested and waiting" in page
    assert "Cancel" not in ordered
    assert page.parts('[hx-trigger^="every 5s"]')


@pytest.mark.parametrize(
    ("role", "sees"), [(None, False), (Role.READER, False), (Role.OPERATOR, True)]
)
def test_names_of_machines_are_for_operators(
    client, small_world, well, role: Role | None, sees: bool
):
    sent.probe(small_world.ral, small_world.desy, worker=WORKER)
    if role:
        client.force_login(account(role))
    assert (WORKER in look(client).source) is sees


@pytest.mark.long
def test_the_page_costs_the_same_with_few_and_with_many(
    client, small_world, well, django_assert_max_num_queries
):
    counts = []
    for number in (1, 1, 40):
        for minute in range(number):
            transfer(small_world.ral, small_world.desy, 5.0, ago=minute * MINUTE)
            other = world.endpoint(f"E{Endpoint.objects.count()}", small_world.desy.site)
            sent.probe(small_world.ral, other, worker=WORKER)
            sent.probe(small_world.ral, other, state="waiting", waits_because="It must.")
        client.get(URL)  # what is dear is known
        with django_assert_max_num_queries(20) as context:
            client.get(URL)
        counts.append(len(context))
    assert counts[1] == counts[2]


def test_it_has_no_parameters_and_needs_what_reading_needs(client, small_world, settings):
    assert client.get(URL, {"size": "small"}).context["ignored"]["names"] == ("size",)
    settings.SONAR_PUBLIC_READ = False
    assert client.get(URL).status_code == 302


# Ordering.


def order(client: Client, **change: object) -> object:
    form = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "size": "small"}
    return client.post(ORDER, form | change)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMINISTRATOR])
def test_who_may_orders_a_test_and_is_led_to_it(client, small_world, role: Role):
    client.force_login(account(role))
    assert look(client).parts('form[action="/operations/probes/"]')
    response = order(client)
    made = Probe.objects.get()
    followed = "/links/RAL_DATADISK/DESY_DATADISK/tests/"
    assert (response.status_code, response["Location"]) == (302, followed)
    assert (made.source, made.destination, made.mesh) == (small_world.ral, small_world.desy, None)
    page = look(client, f"/transfers/{made.id}/")
    assert "none: an on-demand test" in page.titles()
    assert "This test has not finished" in page


def test_an_admin_of_a_site_orders_for_it_alone(client, small_world):
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site))
    assert "At least one of the two endpoints must be at one of your sites" in look(client)
    assert order(client).status_code == 302
    refusal = order(client, destination="Glasgow_DATADISK", count="3")
    assert refusal.status_code == 403
    page = refusal.content.decode()
    assert "The source or the destination must be at your site DESY." in page
    assert 'value="Glasgow_DATADISK"' in page
    assert 'name="count" value="3"' in page
    assert Probe.objects.count() == 1


def test_an_admin_of_several_sites_reads_which(client, small_world):
    made = small_world
    client.force_login(account(Role.SITE_ADMIN, made.desy.site, made.ral.site))
    other = world.endpoint("Other_DATADISK", made.glasgow.site)
    refusal = order(client, source="Glasgow_DATADISK", destination=other.name)
    assert (
        "The source or the destination must be at one of your sites: DESY or RAL."
        in refusal.content.decode()
    )


def test_readers_have_no_form_and_may_not(client, small_world):
    assert ORDER not in look(client).source
    response = order(client)
    assert (response.status_code, response["Location"]) == (302, "/login/?next=/")
    client.force_login(account(Role.READER))
    assert ORDER not in look(client).source
    assert order(client).status_code == 403
    assert order(client, source="nowhere").status_code == 403
    assert not Probe.objects.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "nowhere"}, "“nowhere” is neither a registered endpoint nor a site."),
        ({"source": ""}, "Enter the name of an endpoint, or of a site with one endpoint."),
        ({"source": f"{MARKUP}"}, "is neither a registered endpoint nor a site."),
        ({"source": "a\0b"}, "Null characters are not allowed."),
        ({"source": "DESY"}, "DESY has 2 endpoints: choose DESY_DATADISK or DESY_SCRATCHDISK."),
        ({"source": "Empty"}, "The site Empty has no endpoint in use."),
        (
            {"source": "DESY_DATADISK"},
            "A test needs two different endpoints: the destination is also the source.",
        ),
        ({"size": "huge"}, "“huge” is not a size class"),
        ({"size": []}, "Choose a size class."),
        ({"count": "11"}, "Number of tests must be a whole number from 1 to 10."),
        ({"count": ""}, "Number of tests must be a whole number from 1 to 10."),
        ({"count": "three"}, "Number of tests must be a whole number from 1 to 10."),
        ({"streams": "0"}, "Streams must be a whole number from 1 to 64."),
        ({"streams": "1", "compare": "on"}, "The tests already use 1 stream"),
        ({"mode": "throw"}, "Mode must be pull or push."),
        ({"mover": "cart"}, f"Transfer tool must be {either(names())}."),
        (
            {"mover": "fake"},
            "The transfer tool fake supports the URL scheme fake, not those of DESY_DATADISK",
        ),
    ],
)
def test_a_wrong_wish_is_answered_with_what_is_allowed(
    operator, change: dict[str, object], said: str
):
    Site.objects.create(name="Empty")
    response = order(operator, **change)
    assert response.status_code == 400
    page = response.content.decode()
    assert said in page
    assert MARKUP not in page
    assert not Probe.objects.exists()


def test_a_name_of_a_site_stands_for_its_only_endpoint_and_is_told(operator, small_world):
    page = look(operator)
    assert set(page.texts('option[value="RAL"]')) == {"RAL_DATADISK"}
    assert set(page.texts('option[value="DESY"]')) == {"a site with 2 endpoints"}
    response = order(operator, source="ral", destination="desy_datadisk")
    assert Probe.objects.get().source == small_world.ral
    words = look(operator, response["Location"])
    assert "1 test was requested. For the site RAL, its endpoint RAL_DATADISK is used." in words


def test_a_site_with_several_endpoints_offers_them_and_keeps_the_rest(operator):
    response = order(operator, source="DESY", destination="RAL", both="on")
    form = Page(response.content.decode()).part(f'form[action="{ORDER}"]')
    choice = form.field("source")
    assert choice.texts('option[value="DESY"][selected]') == ["choose an endpoint of DESY"]
    assert choice.parts('option[value="DESY_SCRATCHDISK"]')
    assert form.field("destination")["value"] == "RAL"
    assert "checked" in form.field("both").attributes


def test_a_form_of_another_site_orders_nothing(small_world):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(account(Role.OPERATOR))
    assert order(strict).status_code == 403
    assert strict.get(ORDER).status_code == 405


# Cancelling.


def cancel(client: Client, one: Probe) -> object:
    return client.post(f"{ORDER}{one.id}/cancel/")


def test_who_may_cancels_a_test_and_is_led_to_the_operations_with_a_message(operator, well):
    for _ in range(2):
        order(operator)
    first, second = Probe.objects.order_by("state")
    for page in (URL, f"/transfers/{second.id}/"):
        assert look(operator, page).parts(f'form[action="{ORDER}{second.id}/cancel/"]')
    response = cancel(operator, second)
    assert (response.status_code, response["Location"]) == (302, URL)
    said = "The small test from RAL_DATADISK to DESY_DATADISK was cancelled before it started."
    assert said in look(operator)
    assert said not in look(operator).source
    assert Probe.objects.get() == first


def test_the_page_of_a_waiting_test_says_its_place_and_why_it_waits(client, small_world):
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site))
    for _ in range(3):
        order(client)
    first, *waiting = Probe.objects.order_by("state", "requested_at", "id")
    said = "This test was requested and is waiting for a free slot. This test is"
    why = "in the queue for its endpoints: Another test of this link is running."
    assert f"{said} next {why}" in look(client, f"/transfers/{waiting[0].id}/")
    assert f"{said} number 2 {why}" in look(client, f"/transfers/{waiting[1].id}/")
    assert "Cancel this test" in look(client, f"/transfers/{waiting[1].id}/")
    assert "This test is queued for a worker" in look(client, f"/transfers/{first.id}/")
    client.force_login(account(Role.SITE_ADMIN, small_world.glasgow.site, name="glasgow"))
    assert "Cancel this test" not in look(client, f"/transfers/{waiting[1].id}/").source


def test_what_has_ended_is_not_cancelled_and_that_is_said(operator, small_world):
    done = transfer(small_world.ral, small_world.desy, 5.0)
    response = operator.post(f"{ORDER}{done.id}/cancel/")
    assert response.status_code == 409
    assert "has already ended and cannot be cancelled" in response.content.decode()
    assert "The test was not cancelled" in response.content.decode()
    leads = operator.get(f"{ORDER}{done.id}/cancel/")
    assert (leads.status_code, leads["Location"]) == (302, f"/transfers/{done.id}/")
    assert operator.post(f"{ORDER}{uuid4()}/cancel/").status_code == 404


@pytest.mark.parametrize("end", ["ral", "desy"])
def test_a_running_test_is_cancelled_after_a_page_that_asks(client, small_world, end: str):
    one = sent.probe(small_world.ral, small_world.desy, worker=WORKER)
    asks = f"{ORDER}{one.id}/cancel/"
    pages = ("/operations/", f"/transfers/{one.id}/", f"/sites/{end.upper()}/")
    pages += ("/links/RAL_DATADISK/DESY_DATADISK/",)
    of_another_site = logged_in(account(Role.SITE_ADMIN, small_world.glasgow.site, name="other"))
    for page in pages:
        for reader in (Client(), of_another_site):
            assert not look(reader, page).parts(f'a[href^="{asks}"]'), page
    client.force_login(account(Role.SITE_ADMIN, getattr(small_world, end).site))
    for page in pages:
        assert look(client, page).parts(f'a[href^="{asks}"]'), page
    asked = look(client, f"{asks}?next=/sites/RAL/")
    assert "Cancel the small test from RAL_DATADISK to DESY_DATADISK?" in asked
    assert asked.parts(f'form[action="{asks}"] button')
    assert Probe.objects.get().cancelled_by == ""
    response = client.post(asks, {"next": "/sites/RAL/"})
    assert (response.status_code, response["Location"]) == (302, "/sites/RAL/")
    assert Probe.objects.get().cancelled_by == "an admin of its site"
    for page in pages:
        found = look(client, page)
        assert not found.parts(f'a[href^="{asks}"]'), page
        assert "being cancelled" in found, page


def test_the_page_of_a_cancelled_test_says_who_cancelled_it(client, small_world):
    one = transfer(small_world.ral, small_world.desy, None, state="lost")
    error = "cancelled by an operator while the test was running"
    Transfer.objects.filter(id=one.id).update(error=error, error_where="control")
    page = look(client, f"/transfers/{one.id}/")
    assert f"Cancelled {error} The transfer was stopped and its file deleted." in page
    assert "never reported" not in page


# Stopping all tests.


def stop(client: Client, **form: str) -> object:
    return client.post("/operations/stop/", {"pause_reason": "new firewall", **form})


def test_an_operator_stops_all_tests_and_every_page_says_so_until_they_start_again(
    operator, well, small_world
):
    sent.probe(small_world.ral, small_world.desy, worker=WORKER)
    assert look(operator).parts("#stop button")
    assert stop(operator)["Location"] == URL
    assert Probe.objects.get().cancelled_by == ""
    words = "All Sonar tests are stopped since 20 Nov 12:00 UTC (the-operator), until someone"
    words += " resumes them: new firewall. No test starts until tests are resumed."
    for page in (URL, "/", "/table/", "/sites/RAL/", "/links/RAL_DATADISK/DESY_DATADISK/"):
        assert words in look(operator, page), page
        assert "(the-operator)" not in look(Client(), page), page
        assert look(Client(), page).parts("#stopped"), page
    status = responses.answer(operator, "/api/v1/status/")["stopped"]
    assert status == {"since": "2026-11-20T12:00:30Z", "until": None, "reason": "new firewall"}
    operator.post("/operations/stop/", {"resume": ""})
    assert not look(operator, "/").parts("#stopped")
    assert responses.answer(operator, "/api/v1/status/")["stopped"] is None


def test_a_page_that_a_browser_has_kept_is_not_taken_for_that_of_a_stopped_sonar(
    operator, small_world
):
    kept = operator.get("/")
    again = {"headers": {"if-none-match": kept["ETag"]}}
    assert operator.get("/", **again).status_code == 304
    AllTests.objects.create(id=1, paused_since=NOW, pause_reason="new firewall")
    told = operator.get("/", headers={"if-none-match": operator.get("/")["ETag"]})
    assert told.status_code == 304  # what it read some seconds ago
    registry.forget_stopped()
    told = operator.get("/", headers={"if-none-match": told["ETag"]})
    assert told.status_code == 200
    assert 'id="stopped"' in told.content.decode()


def test_the_page_that_orders_a_stop_shows_it_at_once_in_each_process_of_the_web(
    operator, well, small_world
):
    """Another process has stopped them, and this one read a moment ago that they run."""
    AllTests.objects.create(id=1, paused_since=NOW, pause_reason="new firewall")
    assert "All Sonar tests are stopped" in look(operator)
    AllTests.objects.update(paused_since=None, pause_reason="")
    assert not look(operator).parts("#stopped")


def test_a_stop_that_somebody_else_has_ordered_meanwhile_is_not_overwritten(operator, well):
    AllTests.objects.create(id=1, paused_since=NOW, pause_reason="water")
    shown = dict(look(operator).part("#stop").hidden())
    AllTests.objects.update(pause_reason="fire")
    refused = operator.post("/operations/stop/", {"pause_reason": "water", **shown})
    assert refused.status_code == 400
    assert "after you opened the page" in refused.content.decode()
    assert AllTests.objects.get().pause_reason == "fire"


def test_tests_that_run_are_cancelled_with_all_if_that_is_ticked(operator, well, small_world):
    sent.probe(small_world.ral, small_world.desy, worker=WORKER)
    stop(operator, running="on", paused_until="2026-11-20 13:00")
    page = look(operator)
    assert (
        "All tests are stopped until 20 Nov 13:00 UTC: scheduled and on-demand tests do not start."
        in page
    )
    assert "1 running test will end within seconds." in page
    assert Probe.objects.get().cancelled_by == "an operator"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"pause_reason": ""}, "Enter a reason"),
        ({"paused_until": "2026-11-20 11:00"}, "The end must be in the future"),
        ({"paused_until": "soonish"}, "time"),
    ],
)
def test_a_stop_that_cannot_be_changes_nothing_and_says_why(operator, well, form, said: str):
    response = stop(operator, **form)
    assert response.status_code == 400
    assert said in Page(response.content.decode()).parts("#stop .error")[0].words
    assert not AllTests.objects.exists()


@pytest.mark.parametrize("role", [Role.READER, Role.SITE_ADMIN])
def test_nobody_else_stops_all_tests(client, well, small_world, role: Role):
    sites = [small_world.ral.site] if role is Role.SITE_ADMIN else []
    client.force_login(account(role, *sites))
    assert not look(client).parts("#stop")
    assert stop(client).status_code == 403
    assert not AllTests.objects.exists()


def test_who_may_not_order_it_may_not_cancel_it(client, small_world):
    one = sent.probe(small_world.ral, small_world.desy)
    assert cancel(client, one)["Location"].startswith("/login/")
    for user in (account(Role.READER), account(Role.SITE_ADMIN, small_world.glasgow.site)):
        client.force_login(user)
        assert cancel(client, one).status_code == 403
        assert client.get(f"{ORDER}{one.id}/cancel/").status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(account(Role.OPERATOR))
    assert cancel(strict, one).status_code == 403
    assert Probe.objects.exists()


def credential_in_trouble(end: Endpoint, *, holds: bool = True) -> CredentialState:
    made, _ = Credential.objects.get_or_create(name="grid-client", hosts=["ral.example"])
    return CredentialState.objects.create(
        credential=made,
        endpoint=end,
        role="own" if holds else "lent",
        since=NOW - 3 * HOUR,
        holds=holds,
        sentence=f"the issuer did not issue a token {MARKUP}",
        expires_at=None if holds else NOW + HOUR,
        checked_at=NOW,
    )


def test_a_credential_in_trouble_is_said_and_its_name_only_to_who_may_see_it(
    client, small_world, well
):
    credential_in_trouble(small_world.ral)
    credential_in_trouble(small_world.desy, holds=False)
    page = look(client)
    assert (
        "The credential of RAL_DATADISK does not work. The problem began at 20 Nov 09:00 UTC "
        "(3 h ago). "
        "Tests that need this credential are waiting. Open RAL"
    ) in look(client)
    assert (
        "The delegated credential of DESY_DATADISK needs attention. The problem began at 20 Nov "
        "09:00 UTC "
        "(3 h ago). Tests still run. The credential expires at 20 Nov 13:00 UTC."
    ) in look(client)
    assert "grid-client" not in page.source
    assert "the issuer" not in page.source
    client.force_login(account(Role.SITE_ADMIN, small_world.ral.site))
    page = look(client)
    assert page.words.count("Credential grid-client (file): the issuer did not issue a token") == 1
    assert MARKUP not in page.source
    client.force_login(account(Role.OPERATOR, name="op"))
    assert look(client).source.count("Credential grid-client (file)") == 2


def test_so_is_that_of_a_service_and_its_name_only_to_operators(client, small_world, well):
    made = Credential.objects.create(name="grid-client", hosts=["fts.example"])
    of_service(made, "by-fts")
    said = (
        "The credential for the service of the mesh by-fts does not work. The problem began at "
        "20 Nov "
        "12:00 UTC (just now). Tests that need this credential are waiting."
    )
    for user in (None, account(Role.SITE_ADMIN, small_world.ral.site)):
        if user:
            client.force_login(user)
        assert said in look(client)
        assert "grid-client" not in look(client).source
    client.force_login(account(Role.OPERATOR, name="op"))
    assert f"{said} Credential grid-client (file): the secret is empty." in look(client)


def test_links_with_two_proxies_are_said(client, small_world, well):
    proxied = [world.endpoint(name, small_world.ral.site) for name in ("P1", "P2", "P3")]
    for number, end in enumerate(proxied):
        kind = {"kind": "x509", "hosts": ["p.example"], "name": f"proxy-{number // 2}"}
        end.credential, _ = Credential.objects.get_or_create(name=kind["name"], defaults=kind)
        end.base_url = f"root://p.example/{number}"
        end.save()
    Mesh.objects.create(name="by-xrdcp", mover="xrootd")
    assert (
        "Not all tests of the mesh by-xrdcp can run: 4 links are not tested. P1 and "
        "P3 have different X.509 proxies, but xrootd uses one for both. Give both "
        "endpoints the same credential, or use another transfer tool."
    ) in look(client)
    assert "Sonar is healthy" not in look(client).source


def test_where_many_credentials_are_in_trouble_the_first_ones_are_named(client, small_world, well):
    for number in range(12):
        credential_in_trouble(world.endpoint(f"E{number}", small_world.desy.site))
    page = look(client)
    assert page.words.count("does not work. The problem began at") == 10
    assert "2 more credentials need attention. The API lists all credentials" in page
