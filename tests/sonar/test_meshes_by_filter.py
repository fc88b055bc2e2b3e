"""Meshes by filter: what they test, how that follows the registry, and what is said of it."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from sonar import scheduler
from sonar.models import Endpoint, Mesh, Probe, Schedule, Site, Version
from sonar.notation.endpoint_filters import FilterError, as_query, from_query, tidied
from sonar.people.roles import Role
from sonar.registry import mesh_size
from tests.accounts import account, logged_in
from tests.properties import examples
from tests.sonar.test_admin import mesh_form, posted
from tests.sonar.world import NOW, endpoint, mesh, three_endpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    return logged_in(account(Role.ADMINISTRATOR))


def links() -> set[tuple[str, str]]:
    scheduler.follow_registry(NOW)
    pairs = Schedule.objects.values_list("source__name", "destination__name")
    return {(source.partition("_")[0], other.partition("_")[0]) for source, other in pairs}


def test_links_come_and_go_with_what_fits_and_nobody_saves_the_mesh():
    glasgow, lancs, ral = three_endpoints()
    mesh("tagged", sources_filter={"tag": ["dc27"], "cloud": ["UK"]})
    assert links() == set()
    glasgow.tags = ["dc27"]
    glasgow.save()
    assert links() == {("GLASGOW", "LANCS"), ("GLASGOW", "RAL")}
    Schedule.objects.update(next_due=NOW + timedelta(hours=9))
    Site.objects.filter(name="RAL").update(tags=["dc27"])
    of_ral = {("RAL", "GLASGOW"), ("RAL", "LANCS")}
    assert links() == {("GLASGOW", "LANCS"), ("GLASGOW", "RAL")} | of_ral
    # What was there already is not made anew.
    assert {one.source_id for one in Schedule.objects.filter(next_due__lte=NOW)} == {ral.id}
    Endpoint.objects.filter(pk=lancs.pk).update(retired_at=NOW)
    Site.objects.filter(name="GLASGOW").update(cloud="DE")
    assert links() == {("RAL", "GLASGOW")}
    endpoint("CERN", tags=["dc27"], base_url="https://cern.example/data")
    assert links() == {("RAL", "GLASGOW")}  # whose files the mover does not move


def test_a_mesh_of_all_endpoints_that_gets_a_filter_which_nothing_fits_tests_nothing():
    three_endpoints()
    uk = mesh()
    assert len(links()) == 6
    Mesh.objects.update(destinations_filter={"cloud": ["DE"]})
    assert links() == set()
    uk.refresh_from_db()
    said = (
        "from all endpoints (3 now) to endpoints of cloud DE (none now): 0 links, so no tests run"
    )
    assert mesh_size.words_now(uk) == said
    Mesh.objects.update(destinations_filter={})
    assert len(links()) == 6


def test_a_test_under_way_of_a_link_that_left_goes_on():
    glasgow, *_ = three_endpoints()
    Endpoint.objects.update(tags=["dc27"])
    mesh(sources_filter={"tag": ["dc27"]})
    scheduler.follow_registry(NOW)
    scheduler.claim_due(NOW)
    probe = Probe.objects.filter(source=glasgow).first()
    assert probe
    Endpoint.objects.filter(pk=glasgow.pk).update(tags=[])
    assert all(source != "GLASGOW" for source, _ in links())
    probe.refresh_from_db()
    assert (probe.schedule_id, probe.mesh_id) == (None, Mesh.objects.get().id)


def test_twenty_meshes_by_filter_cost_one_query_more_and_none_while_nothing_changes():
    three_endpoints()
    scheduler.follow_registry(NOW)
    without = queries()
    for number in range(20):
        mesh(f"m{number}", sources_filter={"cloud": ["UK"]}, destinations_filter={"tag": ["!x"]})
    assert queries() == without + 1  # the endpoints: meshes with a filter are always asked for
    assert Schedule.objects.count() == 20 * 6 * 3
    with CaptureQueriesContext(
        connection,
    ) as made:
        scheduler.follow_registry(NOW)
    assert len(made) == 1


def queries() -> int:
    """Count the queries of a planning in which the schedule changes."""
    Version.objects.filter(name__in=["wanted", "schedule"]).update(value=-1)
    with CaptureQueriesContext(connection) as made:
        scheduler.follow_registry(NOW)
    return len(made)


def test_what_a_mesh_tests_is_said_in_words_and_numbers():
    _, _, ral = three_endpoints()
    endpoint("CERN", base_url="https://cern.example/data")
    Endpoint.objects.update(label="DATADISK")
    chosen = {"label": ["DATADISK"], "cloud": ["UK"]}
    uk = mesh(sources_filter=chosen, destinations_filter=chosen)
    said = (
        "endpoints of cloud UK with label DATADISK: 3 now, 6 links, 432 tests and 320 GB a day, at "
        "most 6 tests at once"
    )
    more = "1 more endpoint is not tested, because fake does not support its protocol"
    assert mesh_size.words_now(uk) == f"{said}; {more}"
    uk.enabled, uk.destinations_filter = False, {}
    uk.destinations.set([ral])
    assert mesh_size.words_now(uk).startswith(
        "from endpoints of cloud UK with label DATADISK (3 now) to RAL_DATADISK (1 now): 2 links, "
        "144 tests and 107 GB a day, at most 2 tests at once, but the mesh is not enabled"
    )
    uk.intervals.all().delete()
    assert "2 links, but no interval is set, so no tests run" in mesh_size.words_now(uk)


@pytest.mark.long
def test_the_admin_takes_the_notation_of_the_matrix_and_says_what_is_tested(admin):
    glasgow, *_ = three_endpoints()
    page = posted(admin, "mesh", **mesh_form(mover="fake", sources_filter="klout=UK"))
    assert "“klout” is not an attribute of endpoints: use site, cloud, tier" in page
    both = mesh_form(mover="fake", sources_filter="cloud=UK", sources=[glasgow.id])
    assert "Write a filter or choose endpoints, not both." in posted(admin, "mesh", **both)
    assert not Mesh.objects.exists()
    assert posted(admin, "mesh", **mesh_form(mover="fake", sources_filter="?tag=!x&cloud=UK")) == ""
    made = Mesh.objects.get()
    assert made.sources_filter == {"cloud": ["UK"], "tag": ["!x"]}
    said = "from endpoints of cloud UK, without tag x (3 now) to all endpoints (3 now): 6 links"
    page = admin.get(reverse("admin:sonar_mesh_change", args=[made.id])).content.decode()
    assert 'value="cloud=UK&amp;tag=!x"' in page
    assert said in page
    assert said in admin.get(reverse("admin:sonar_mesh_changelist")).content.decode()


TEXT = st.from_regex("!?[A-Za-z0-9éß+&=% ;,]{1,9}", fullmatch=True)
FILTERS = st.dictionaries(
    st.sampled_from(["cloud", "label", "tag", "country"]),
    st.lists(TEXT, min_size=1, max_size=3),
    min_size=1,
)


@examples(40)
@given(FILTERS)
def test_a_filter_reads_as_it_is_written(values):
    chosen = tidied(values)
    assert from_query(as_query(chosen)) == chosen
    assert tidied(chosen) == chosen


@given(st.text())
def test_whatever_is_written_is_a_filter_or_refused(text):
    with suppress(FilterError):
        assert from_query(text)
