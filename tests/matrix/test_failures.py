"""Errors of links, grouped by cause."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from matrix.answers.site.failures import Failures, grouped
from matrix.query.filters import Filter
from sonar.models import Endpoint, Transfer
from sonar.notation.windows import preset
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db


def failed(source: Endpoint, destination: Endpoint, error: str, **how: object) -> Transfer:
    made = transfer(source, destination, None, **how)  # type: ignore[arg-type]
    Transfer.objects.filter(id=made.id).update(error=error)
    return made


def groups(
    world: World, *filters: Filter, size: str = "large", window: str = "7d"
) -> tuple[list[Failures], int]:
    links = [(world.ral.id, world.glasgow.id), (world.ral.id, world.desy.id)]
    return grouped(links, size, preset(window, NOW), filters)


def test_what_differs_in_numbers_hosts_and_paths_is_one_group(small_world):
    failed(small_world.ral, small_world.glasgow, "503 at node01: /data/a1", ago=3 * HOUR)
    failed(small_world.ral, small_world.desy, "503 at node22: /data/b2", ago=2 * HOUR)
    last = failed(small_world.ral, small_world.desy, "503 at node3: /data/c", ago=HOUR)
    failed(small_world.ral, small_world.desy, "504 at node3: /data/c", ago=4 * HOUR)
    (first, second), total = groups(small_world)
    assert (first.count, first.links, first.where) == (3, 2, "destination")
    assert (first.error, first.newest) == ("503 at node3: /data/c", last.id)
    assert (first.first, first.last) == (NOW - 3 * HOUR, NOW - HOUR)
    assert (second.count, second.error, total) == (1, "504 at node3: /data/c", 4)


def test_only_failed_tests_of_these_links_size_and_window_count(small_world):
    failed(small_world.ral, small_world.glasgow, "counts")
    failed(small_world.glasgow, small_world.ral, "the other way")
    failed(small_world.ral, small_world.glasgow, "too small", size="small")
    failed(small_world.ral, small_world.glasgow, "too old", ago=200 * HOUR)
    transfer(small_world.ral, small_world.glasgow, None, state="lost")
    transfer(small_world.ral, small_world.glasgow, 5.0)
    found, total = groups(small_world)
    assert ([one.error for one in found], total) == (["counts"], 1)


def test_only_those_made_as_asked_count(small_world):
    for streams, error in ((1, "one stream"), (4, "four streams")):
        made = world.profile(streams=streams)
        failed(small_world.ral, small_world.glasgow, error, made=made)
    found, _ = groups(small_world, Filter("streams", "4"))
    assert [one.error for one in found] == ["four streams"]
    assert groups(small_world, Filter("streams", "9")) == ([], 0)


def test_ten_groups_at_most_are_returned_and_all_failures_counted(small_world):
    for number in range(12):
        failed(small_world.ral, small_world.glasgow, "abcdefghijkl"[number] * 3)
    found, total = groups(small_world)
    assert (len(found), total) == (10, 12)


def test_no_links_need_no_query(db):
    with CaptureQueriesContext(connection) as captured:
        assert grouped([], "large", preset("7d", NOW), ()) == ([], 0)
    assert len(captured) == 0
