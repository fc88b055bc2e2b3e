"""How full the matrix is said to be."""

from datetime import datetime, timedelta

import pytest

from sonar import scheduler
from sonar.models import Endpoint, Profile, Schedule, SizeClass, Transfer
from sonar.results import store
from sonar.sandbox.progress import Coverage, of_each_class
from tests.sonar.world import NOW, mesh, three_endpoints

pytestmark = pytest.mark.django_db
LINKS = 6


@pytest.fixture
def grid() -> tuple[Endpoint, Endpoint, Endpoint]:
    """Three endpoints, scheduled in every size class; nothing has been measured."""
    endpoints = three_endpoints()
    mesh()
    scheduler.follow_registry(NOW)
    return endpoints


def result(link: tuple[Endpoint, Endpoint], state: str, started_at: datetime = NOW) -> None:
    failed = state != "done"
    Transfer.objects.create(
        source=link[0],
        destination=link[1],
        size_class=SizeClass.objects.get(name="small"),
        profile=Profile.objects.get_or_create(mover="fake")[0],
        state=state,
        started_at=started_at,
        seconds=1,
        bytes=10**6,
        error="broken" if failed else "",
        error_where="control" if failed else "",
    )


def small() -> Coverage:
    return of_each_class(NOW)[0]


def test_links_are_counted_by_class_in_the_order_of_sizes(grid):
    assert of_each_class(NOW) == [
        Coverage(name, LINKS, 0, 0) for name in ("small", "medium", "large")
    ]


def test_a_link_counts_once_in_however_many_meshes_it_is(grid):
    mesh("uk-push", mode="push")
    scheduler.follow_registry(NOW)
    assert Schedule.objects.count() == 2 * 3 * LINKS
    result((grid[0], grid[1]), "done")
    assert small() == Coverage("small", LINKS, measured=1, failed=0)


def test_a_link_that_succeeded_once_is_measured_whatever_came_before_and_after(grid):
    glasgow, lancs, ral = grid
    for minutes, state in enumerate(("failed", "done", "failed")):
        result((glasgow, lancs), state, NOW - timedelta(minutes=minutes))
    result((lancs, glasgow), "failed")
    result((glasgow, ral), "lost")
    assert small() == Coverage("small", LINKS, measured=1, failed=1)
    assert not small().is_full


def test_results_that_are_made_up_measure_no_link(grid):
    made_up_until = NOW - timedelta(hours=1)
    Profile.objects.create(**store.profile_fields(made_up_until))
    result((grid[0], grid[1]), "done", made_up_until - timedelta(hours=1))
    assert small() == Coverage("small", LINKS, measured=0, failed=0)
    result((grid[0], grid[1]), "done")
    assert small() == Coverage("small", LINKS, measured=1, failed=0)


def test_results_that_are_made_up_while_links_are_counted_measure_no_link(grid, monkeypatch):
    made_up_until = NOW - timedelta(hours=1)
    result((grid[0], grid[1]), "done", made_up_until - timedelta(hours=1))
    answers = iter([None, made_up_until, made_up_until, made_up_until])
    monkeypatch.setattr(store, "until", lambda: next(answers))
    assert small() == Coverage("small", LINKS, measured=0, failed=0)


def test_results_older_than_a_week_do_not_count(grid):
    glasgow, lancs, _ = grid
    result((glasgow, lancs), "done", NOW - timedelta(days=8))
    assert small().measured == 0


def test_the_matrix_is_full_once_every_link_has_a_result_good_or_bad(grid):
    for source in grid:
        for destination in grid:
            if source != destination:
                result((source, destination), "failed" if source == grid[0] else "done")
    assert small() == Coverage("small", LINKS, measured=4, failed=2)
    assert small().is_full
