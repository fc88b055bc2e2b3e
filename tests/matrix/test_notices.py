"""What the reader is told before the cells, and when."""

from datetime import timedelta
from itertools import permutations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from matrix.pages.matrix.page import MatrixPage
from matrix.pages.parts.notices import Notice
from sonar.models import Endpoint, Probe, Schedule
from sonar.results import store
from tests.matrix import sent, world
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def told(text: str = "") -> dict[str, Notice]:
    """Return the notices of a matrix page, by kind and in their order."""
    page = MatrixPage.read(QueryDict(text))
    return {
        one.kind: one for one in page.context(NOW, page.version(NOW), AnonymousUser())["notices"]
    }


def probe(ago: timedelta, *, running: bool = False, size: str = "large") -> Probe:
    worker = {"worker": "worker-1"} if running else {}
    return sent.probe(*world.free_link(), ago, size, **worker)


def test_nothing_is_said_of_a_matrix_that_is_well(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert told() == {}


def test_no_endpoints_no_mesh_and_no_match_are_told_apart(small_world):
    assert list(told("cloud=FR")) == ["nothing-matches"]
    assert told("stat=max&cloud=FR")["nothing-matches"].links == (
        ("Show the matrix without filters", "/?stat=max"),
    )
    Schedule.objects.all().delete()
    assert list(told("size=small")) == ["no-mesh"]
    assert "An operator can add a mesh" in told("size=small")["no-mesh"].links[0][0]
    Endpoint.objects.update(retired_at=NOW)
    notice = told("size=small")["no-endpoints"]
    assert notice.sentence.startswith(
        "4 endpoints are registered. Drafts and retired endpoints are"
    )
    assert notice.links[0][1] == "/operations/topology/"


def test_the_view_without_the_filters_is_drawn_as_before(small_world):
    links = told("cloud=FR&order=tier&only=failed")["nothing-matches"].links
    assert links[0][1] == "/?order=tier&only=failed"


def test_a_focus_on_nothing_says_so_and_offers_the_view_without_it(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    notice = told("only=failed&only=stale&above=5&order=tier&stat=max")["unfocused"]
    assert notice.sentence == "None of the 16 cells is failed or stale, and at least 5 MB/s."
    assert notice.links == (("Show all cells", "/?stat=max&order=tier"),)


def test_a_focus_on_something_says_what_is_left_out_and_what_the_means_are_of(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    notice = told("only=measured&order=tier")["focused"]
    assert notice.quiet
    assert notice.title == "Only matching cells are shown."
    assert notice.sentence == "Means still include all measured cells of a row or column."
    assert notice.links == (("Show all cells", "/?order=tier"),)


def test_a_window_without_results_says_what_is_on_its_way(small_world):
    probe(MINUTE)
    probe(MINUTE, size="small")
    notice = told("window=1h")["no-results"]
    assert "Sonar has no results for large files yet." in notice.sentence
    assert "Tests of this size class: 0 running, 1 queued." in notice.sentence
    assert notice.links == (("Show the last 90 days", "/?window=90d"),)


def test_a_window_in_which_everything_failed_says_so(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    transfer(small_world.ral, small_world.glasgow, None)
    transfer(small_world.glasgow, small_world.ral, None)
    notice = told("window=24h")["all-failed"]
    assert notice.title == "Every test in this time range failed."
    assert "3 tests ran in 2 cells and none succeeded." in notice.sentence
    assert notice.links[0][1] == "/table/?window=24h&ordering=-large.failed"
    assert client.get(notice.links[0][1]).status_code == 200
    transfer(small_world.ral, small_world.desy, 1.0)
    assert told("window=24h") == {}


def test_tests_that_nobody_takes_are_said_after_twice_the_time_to_send_them_again(
    small_world, settings
):
    settings.SONAR_RESEND_SECONDS = 120
    transfer(small_world.ral, small_world.glasgow, 1.0)
    waiting = probe(4 * MINUTE)
    assert told() == {}
    Probe.objects.filter(id=waiting.id).update(requested_at=NOW - 5 * MINUTE)
    notice = told()["no-workers"]
    assert "1 test has been queued since 20 Nov 11:55 UTC and none is running." in notice.sentence
    assert "start a worker" in notice.sentence
    probe(5 * MINUTE, running=True, size="small")
    assert told() == {}


def test_tests_that_nobody_queues_are_said(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    Schedule.objects.update(next_due=NOW - 4 * MINUTE)
    assert told() == {}
    Schedule.objects.update(next_due=NOW - 30 * MINUTE)
    notice = told()["no-planner"]
    assert "Tests have been due since 20 Nov 11:30 UTC (30 min ago)" in notice.sentence
    probe(MINUTE)
    assert told() == {}


@pytest.mark.parametrize(
    ("reason", "is_said"),
    [("", True), ("cap", True), ("downtime", False), ("quiet hours", False), ("budget", False)],
)
def test_a_reason_to_wait_is_none_of_the_planners_but_a_cap_while_nothing_runs_is(
    small_world, reason: str, is_said: bool
):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    since = NOW - HOUR if reason else None
    Schedule.objects.update(next_due=NOW - HOUR, skipped_because=reason, skipped_since=since)
    assert ("no-planner" in told()) == is_said


def test_data_that_stopped_coming_are_said_with_the_time_of_the_last(small_world):
    Schedule.objects.update(every_seconds=1200)
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=HOUR)
    notice = told()["stopped"]
    assert notice.title == "Data stopped arriving at 20 Nov 11:00 UTC."
    assert "The newest result here is 1 h old, but a mesh schedules a test every 20 min." in (
        notice.sentence
    )
    transfer(small_world.ral, small_world.desy, 1.0, ago=10 * MINUTE)
    assert told() == {}


def test_a_window_that_is_over_has_not_stopped(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=5 * HOUR)
    assert list(told()) == ["stopped"]
    assert told("from=2026-11-20T00:00:00Z&to=2026-11-20T11:00:00Z") == {}


def test_the_most_serious_comes_first(small_world):
    transfer(small_world.ral, small_world.glasgow, None, ago=5 * HOUR)
    transfer(small_world.ral, small_world.desy, 1.0, ago=5 * HOUR)
    Schedule.objects.update(next_due=NOW - 5 * HOUR)
    made = world.profile(streams=8)
    transfer(small_world.ral, small_world.glasgow, None, ago=5 * HOUR, made=made)
    assert list(told("only=untested&above=1")) == ["no-planner", "stopped", "unfocused", "pooled"]


def test_ways_of_measuring_that_a_cell_may_pool_are_named_and_can_be_told_apart(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    transfer(small_world.ral, small_world.glasgow, 9.0, made=world.profile(streams=8, ip_version=6))
    notice = told("order=tier")["pooled"]
    assert notice.quiet
    assert notice.title == "These numbers mix tests with 1 and 8 streams."
    assert notice.sentence == "Show only:"
    assert notice.links == (("1", "/?streams=1&order=tier"), ("8", "/?streams=8&order=tier"))
    assert [*told("streams=8")] == ["ways"]
    assert [*told("streams=!8")] == ["ways"]
    assert "pooled" in told("origin=test")


def test_pulled_and_pushed_results_are_not_pooled_unsaid(small_world):
    for mode in ("pull", "push", ""):
        transfer(small_world.ral, small_world.glasgow, 1.0, made=world.profile(mode=mode))
    notice = told()["pooled"]
    assert notice.title == "These numbers mix tests with mode pull and push."
    assert notice.links == (("pull", "/?mode=pull"), ("push", "/?mode=push"))
    assert [*told("mode=push")] == ["ways"]


def test_results_that_are_made_up_are_no_other_way_of_measuring(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    made = world.profile(**store.profile_fields(NOW - HOUR))
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=2 * HOUR, made=made)
    assert told() == {}


def test_where_all_results_are_made_up_the_first_tests_are_on_their_way(small_world):
    made = world.profile(**store.profile_fields(NOW - HOUR))
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=5 * HOUR, made=made)
    probe(MINUTE, running=True)
    notice = told()["first-tests"]
    assert notice.sentence == (
        "All results shown are demo data. Tests of this size class: 1 running, 0 queued."
    )
    transfer(small_world.ral, small_world.desy, 1.0, ago=30 * MINUTE)
    assert told() == {}


def test_only_ways_that_one_cell_mixes_are_said_to_be_mixed(small_world):
    ral, glasgow, desy, _ = small_world.endpoints
    transfer(ral, glasgow, 1.0, made=world.profile(mode="pull"))
    transfer(ral, glasgow, 1.0, made=world.profile(mode="push"), ago=3 * DAY)
    transfer(ral, glasgow, 1.0, made=world.profile(streams=4, mode="pull"), size="small")
    transfer(desy, glasgow, 1.0, made=world.profile(streams=8, mode="pull"), ago=10 * MINUTE)
    assert told()["pooled"].title == "1 of 2 cells mix tests with mode pull and push."
    assert "pooled" not in told("window=24h")
    assert (
        told("source_site=RAL")["pooled"].title
        == "These numbers mix tests with mode pull and push."
    )
    assert "pooled" not in told("source_site=!RAL")
    transfer(desy, glasgow, 1.0, made=world.profile(streams=1, mode="pull"), ago=10 * MINUTE)
    notice = told()["pooled"]
    assert notice.title == "2 of 2 cells mix tests with mode pull and push, with 1 and 8 streams."
    assert [text for text, _ in notice.links] == [
        *("mode pull", "mode push"),
        *("streams 1", "streams 8"),
    ]
    # A cell of all these links mixes what they differ in.
    whole = told("rows=cloud&columns=cloud&window=24h&source_cloud=DE&source_cloud=UK")["pooled"]
    assert "with 1 and 8 streams" in whole.title


def test_what_a_few_of_many_cells_mix_is_said_on_their_own_pages_alone(small_world):
    links = list(permutations(small_world.endpoints, 2))
    for source, destination in links[1:]:
        transfer(source, destination, 1.0)
    transfer(*links[0], 1.0)
    transfer(*links[0], 1.0, made=world.profile(streams=8))
    assert "pooled" not in told()
    source, destination = links[0]
    ends = f"source_endpoint={source.name}&destination_endpoint={destination.name}"
    assert told(ends)["pooled"].title == "These numbers mix tests with 1 and 8 streams."
    transfer(*links[1], 1.0, made=world.profile(streams=8))
    transfer(*links[2], 1.0, made=world.profile(streams=8))
    assert told()["pooled"].title == "3 of 12 cells mix tests with 1 and 8 streams."


def test_what_is_unknown_does_not_differ(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0, made=world.profile(ip_version=6))
    transfer(small_world.ral, small_world.glasgow, None, made=world.profile(ip_version=None))
    assert told() == {}
    transfer(small_world.ral, small_world.glasgow, 1.0, made=world.profile(ip_version=4))
    notice = told()["pooled"]
    assert notice.title == "These numbers mix tests with IP version 4 and 6."
    assert [text for text, _ in notice.links] == ["4", "6"]


def test_at_most_so_many_tests_that_are_due_are_looked_at(small_world, monkeypatch):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    Schedule.objects.update(next_due=NOW - HOUR, skipped_because="budget", skipped_since=NOW)
    last = Schedule.objects.latest("id")
    Schedule.objects.filter(id=last.id).update(
        next_due=NOW - 10 * MINUTE, skipped_because="", skipped_since=None
    )
    assert "no-planner" in told()
    monkeypatch.setattr("matrix.pages.parts.notices.OLDEST_DUE", 3)
    assert told() == {}


def test_two_queries_and_the_ways_are_all_that_notices_cost(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    told()
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            told()
        asked = [one["sql"].replace('"', "") for one in captured.captured_queries]
        about = ("sonar_probe", "sonar_schedule", "sonar_profile")
        counts.append(sum(any(f"FROM {table} " in sql for table in about) for sql in asked))
        for streams in range(2, 7):
            world.profile(streams=streams)
            probe(HOUR)
        Schedule.objects.update(next_due=NOW - HOUR)
    assert counts == [3, 3]


def test_ages_in_a_window_that_is_over_are_from_now(small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=5 * HOUR)
    past = "from=2026-11-20T00:00:00Z&to=2026-11-20T03:00:00Z"
    assert "The last result for large files was 5 h ago" in told(past)["no-results"].sentence
