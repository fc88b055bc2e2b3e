"""Quiet hours and pauses of a site: what they hold back, for how long, and whose they are."""

import re
from datetime import UTC, datetime, time, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Q

from sonar import scheduler
from sonar.database.actor import acting
from sonar.models import AllTests, Downtime, Endpoint, HistoryEntry, Probe, Schedule, Site
from sonar.obstacles.obstacle import Restrictions
from sonar.ordering.request_probes import resume_all, stop_all
from tests.sonar.test_scheduler import links
from tests.sonar.world import NOW, claimed, endpoint, ordered, reasons, request, roomy

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
WITHOUT_END = "GLASGOW has paused its tests until someone resumes them."


@pytest.fixture
def glasgow() -> Endpoint:
    """One of three endpoints of a mesh; of the 18 tests 12 touch it."""
    return roomy()[0]


def pause(row: Site | Endpoint, until: datetime | None = None, since: datetime = NOW) -> None:
    row.pause(since, "new firewall", until, None)
    row.save()


def at(moment: time) -> datetime:
    return NOW.replace(hour=moment.hour, minute=moment.minute, second=moment.second)


@pytest.mark.parametrize(
    ("start", "end", "moment", "quiet"),
    [
        ("23:00", "04:30", time(22, 59, 59), False),
        ("23:00", "04:30", time(23), True),
        ("23:00", "04:30", time(0), True),
        ("23:00", "04:30", time(4, 29, 59), True),
        ("23:00", "04:30", time(4, 30), False),
        ("01:00", "05:30", time(0, 59, 59), False),
        ("01:00", "05:30", time(1), True),
        ("01:00", "05:30", time(5, 29, 59), True),
        ("01:00", "05:30", time(5, 30), False),
        ("00:00", "06:00", time(0), True),
        ("22:00", "00:00", time(23, 59, 59), True),
        ("22:00", "00:00", time(0), False),
    ],
)
def test_a_site_is_quiet_from_its_first_moment_up_to_its_last(
    glasgow: Endpoint, start: str, end: str, moment: time, quiet: bool
):
    Site.objects.filter(id=glasgow.site_id).update(quiet_from=start, quiet_until=end)
    scheduler.claim_due(at(moment))
    touched = Probe.objects.filter(Q(source=glasgow) | Q(destination=glasgow))
    assert touched.exists() is not quiet
    assert reasons() == ({"quiet site": 12, "link": 4} if quiet else {"link": 12})


def test_what_waited_for_the_end_of_quiet_hours_is_tested_then_and_not_dropped(glasgow: Endpoint):
    Site.objects.filter(id=glasgow.site_id).update(quiet_from="23:00", quiet_until="04:30")
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="quiet site")
    assert set(held.values_list("next_due", "skipped_since")) == {(NOW, NOW)}
    scheduler.claim_due(NOW + timedelta(minutes=29))
    assert set(held.values_list("next_due", "skipped_since")) == {(NOW, NOW)}
    assert links(Probe.objects.all()) == [("LANCS", "RAL"), ("RAL", "LANCS")]
    after = NOW + timedelta(minutes=30)
    scheduler.claim_due(after)
    assert ("GLASGOW", "RAL") in links(Probe.objects.all())
    begun = Schedule.objects.filter(source=glasgow, skipped_because="")
    assert set(begun.values_list("next_due", "skipped_since")) == {(after + HOUR, None)}


def test_a_pause_without_an_end_lasts_until_it_is_resumed(glasgow: Endpoint):
    pause(glasgow.site)
    for days in (0, 1, 400):
        now = NOW + timedelta(days=days)
        Probe.objects.all().delete()
        scheduler.claim_due(now)
        assert links(Probe.objects.all()) == [("LANCS", "RAL"), ("RAL", "LANCS")]
        assert reasons()["paused"] == 12
    glasgow.site.resume()
    glasgow.site.save()
    Probe.objects.all().delete()
    scheduler.claim_due(now)
    assert len(links(Probe.objects.all())) == 6
    assert "paused" not in reasons()


def test_a_pause_with_an_end_ends_by_itself(glasgow: Endpoint):
    pause(glasgow.site, until=NOW + HOUR)
    scheduler.claim_due(NOW)
    held = Schedule.objects.filter(skipped_because="paused")
    assert set(held.values_list("next_due", "skipped_since")) == {(NOW, NOW)}
    scheduler.claim_due(NOW + HOUR - timedelta(seconds=1))
    assert held.count() == 12
    scheduler.claim_due(NOW + HOUR)
    assert held.count() == 0
    assert ("GLASGOW", "RAL") in links(Probe.objects.all())


def test_that_of_one_endpoint_holds_back_its_links_and_no_others_of_its_site(glasgow: Endpoint):
    Endpoint.objects.filter(name="RAL_DATADISK").update(site=glasgow.site)
    pause(glasgow, until=NOW + HOUR)
    scheduler.claim_due(NOW)
    # Of RAL_DATADISK, which is of the same site.
    assert links(Probe.objects.all()) == [("GLASGOW", "LANCS"), ("LANCS", "GLASGOW")]
    assert reasons()["paused"] == 12
    scheduler.claim_due(NOW + HOUR)
    assert len(links(Probe.objects.all())) == 6


def test_a_pause_that_a_clock_ahead_began_holds_all_the_same(glasgow: Endpoint):
    pause(glasgow.site, since=NOW + HOUR)
    scheduler.claim_due(NOW)
    assert reasons()["paused"] == 12


def test_what_lasts_is_said_before_what_passes_by_itself(glasgow: Endpoint):
    site = glasgow.site
    site.quiet_from, site.quiet_until = time(1), time(5)
    site.save()
    Downtime.objects.create(site=site, starts_at=NOW, ends_at=NOW + HOUR, reason="power")
    scheduler.claim_due(NOW)
    assert reasons()["downtime"] == 12
    pause(site)
    scheduler.claim_due(NOW)
    assert reasons()["paused"] == 12


def test_all_endpoints_of_the_site_are_restrictions_and_no_others(django_assert_num_queries):
    one, other = endpoint("GLASGOW"), endpoint("RAL")
    second = Endpoint.objects.create(name="GLASGOW_TAPE", site=one.site, base_url="fake://t/d")
    Site.objects.create(name="Empty", quiet_from="01:00", quiet_until="05:00")
    pause(one.site)
    Site.objects.filter(name="RAL").update(quiet_from="01:00", quiet_until="05:00")
    hour = {"starts_at": NOW, "ends_at": NOW + HOUR, "reason": "tape"}
    Downtime.objects.create(endpoint=second, **hour)
    pause(endpoint("LANCS"))
    with django_assert_num_queries(1):
        restrictions = Restrictions.at(NOW)
    own = "The tests of LANCS_DATADISK are paused until someone resumes them."
    third = Endpoint.objects.get(name="LANCS_DATADISK")
    assert restrictions.paused == dict.fromkeys([one.id, second.id], WITHOUT_END) | {third.id: own}
    assert restrictions.quiet == {other.id}
    assert restrictions.down == {second.id}


def order(source: Endpoint, destination: Endpoint) -> scheduler.Ordered:
    return scheduler.order_all([request(source, destination)], NOW)


def test_people_test_in_quiet_hours_as_in_those_of_a_mesh(glasgow: Endpoint):
    Site.objects.filter(id=glasgow.site_id).update(quiet_from="01:00", quiet_until="05:30")
    ral = Endpoint.objects.get(name="RAL_DATADISK")
    assert len(order(glasgow, ral).started) == 1


@pytest.mark.parametrize("end", ["source", "destination"])
def test_nobody_tests_what_is_paused(glasgow: Endpoint, end: str):
    pause(glasgow.site, until=NOW + HOUR)
    ral = Endpoint.objects.get(name="RAL_DATADISK")
    ends = (glasgow, ral) if end == "source" else (ral, glasgow)
    with pytest.raises(scheduler.RefusedError) as refused:
        order(*ends)
    sentence = "GLASGOW has paused its tests until 20 Nov 05:00 UTC."
    assert refused.value.errors == {end: [sentence]}
    assert not Probe.objects.exists()


def test_nothing_starts_while_all_tests_are_stopped_and_what_is_due_does_after_it(
    glasgow: Endpoint,
):
    ral = Endpoint.objects.get(name="RAL_DATADISK")
    order(glasgow, ral)
    order(glasgow, ral)
    Probe.objects.exclude(state="waiting").delete()
    stop_all("new firewall", None, None, NOW, running=False)
    sentence = "All Sonar tests are stopped until someone resumes them: new firewall."
    assert scheduler.claim_due(NOW) == []
    assert reasons() == {"stopped": 18}
    with pytest.raises(scheduler.RefusedError) as refused:
        order(glasgow, ral)
    assert refused.value.errors == {"": [sentence]}
    assert Probe.objects.get().waits_because == sentence
    assert resume_all(NOW) is True
    assert resume_all(NOW) is False
    assert len(scheduler.claim_due(NOW)) > 1


def test_a_stop_of_all_tests_that_has_an_end_is_over_then(glasgow: Endpoint):
    stop_all("new firewall", NOW + HOUR, None, NOW, running=False)
    assert scheduler.claim_due(NOW + HOUR - timedelta(seconds=1)) == []
    assert scheduler.claim_due(NOW + HOUR) != []


def test_who_stopped_all_tests_and_who_let_them_go_on_is_in_the_history(db):
    with acting("page", "ops"):
        stop_all("new firewall", None, None, NOW, running=False)
        resume_all(NOW)
    first, second = HistoryEntry.objects.filter(kind="all tests").exclude(changes={}).order_by("id")
    assert (first.who, first.name) == ("ops", "all tests")
    assert first.changes["pause_reason"] == [None, "new firewall"]
    assert second.changes["pause_reason"] == ["new firewall", None]


def test_the_command_stops_all_tests_and_lets_them_start_again(glasgow: Endpoint, capsys):
    until = datetime.now(UTC) + HOUR
    ral = Endpoint.objects.get(name="RAL_DATADISK")
    running = claimed(ordered(glasgow, ral))
    call_command("stop", "all", "new firewall", "--until", until.isoformat(), "--running")
    out = capsys.readouterr().out
    assert out.startswith("All Sonar tests are stopped until ")
    assert out.endswith(": new firewall.\nRunning tests being cancelled: 1.\n")
    assert Probe.objects.get().cancelled_by == "an operator"
    call_command("stop", "show")
    assert str(running.id) in capsys.readouterr().out
    for expected in ("Tests can start again.\n", "Tests were not stopped.\n"):
        call_command("stop", "resume")
        assert capsys.readouterr().out == expected
    call_command("stop", "test", str(ordered(ral, glasgow).id))
    assert capsys.readouterr().out.endswith(" was cancelled before it started.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all", ""], "A pause needs a start and a reason"),
        (["all", "x" * 201], "at most 200 characters"),
        (["all", "x", "--until", "2020-01-01T00:00:00Z"], "must end after it starts"),
        (["all", "x", "--until", "soonish"], "--until soonish: 'soonish' is not a time"),
        (["test", "00000000-0000-0000-0000-000000000001"], "has already ended"),
    ],
)
def test_the_command_says_what_cannot_be_and_stops_nothing(db, words: list[str], said: str):
    with pytest.raises(CommandError, match=re.escape(said)):
        call_command("stop", *words)
    assert not AllTests.objects.exclude(paused_since=None).exists()


def test_an_ordered_test_that_waits_goes_on_waiting_until_the_pause_is_over(glasgow: Endpoint):
    ral = Endpoint.objects.get(name="RAL_DATADISK")
    order(glasgow, ral)
    order(glasgow, ral)
    pause(glasgow.site)
    Probe.objects.exclude(state="waiting").delete()
    assert scheduler.start_waiting(NOW) == []
    assert Probe.objects.get().waits_because == WITHOUT_END
    pause(glasgow.site, until=NOW + HOUR)
    assert scheduler.start_waiting(NOW) == []
    assert "until 20 Nov 05:00 UTC." in Probe.objects.get().waits_because
    assert len(scheduler.start_waiting(NOW + HOUR)) == 1
