"""Errors of links by cause."""

import pytest

from matrix.answers.site.failures import Failures, grouped
from matrix.query.filters import Filter
from matrix.store import transfers
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


REFUSED = 'Remote side failed with status code 503; error message: "too many transfers{}"'
ONE_CAUSE = [
    (f"COPY /a/sonar/1 reported about se.example:443: {REFUSED.format(' ')}", REFUSED.format("")),
    (
        "COPY /a/b, redirected to another server reported about d1.se.example: timeout",
        "COPY /c/d reported about se.example: timeout",
    ),
    # What is cut off at the end of a long path must not differ by the length of the path.
    (f"open /{'a' * 190}: disk is full", "open /b: disk is full"),
    ("transfer 3f2a9c41 failed", "transfer 9B00AC1F7 failed"),
    ("request 0x1f at slot", "request 0x2c44 at slot"),
    (
        "token 5aa3c3ee-5b4f-4a43-9d38-6f2f7b5ff7a1 expired",
        "token 0B0B12CD-5b4f-4a43-9d38-6f2f7b5ff7a1 expired",
    ),
    ("pool17 is full", "pool3 is full"),
    ("disk7.ral.example:443 is away", "disk12.ral.example:20001 is away"),
    ("connect to 10.0.0.7:1094 failed", "connect to 130.246.1.1:443 failed"),
    ("connect to [2001:db8::1]:443 failed", "connect to [2001:db8:1:2::17:9]:8443 failed"),
    ("no data since 2026-11-20 09:00:01 UTC", "no data since 2026-11-21 17:31:09 UTC"),
    ("expired at 2026-11-20T09:00:01Z", "expired at 2026-11-21T17:31:09.5Z"),
    ("expired on Nov 20 09:00", "expired on Dec  1 17:31"),
    ("17 bytes are missing", "812 bytes are missing"),
    ("12.5 MB of 20 MB after 31 s", "1 MB of 20 MB after 9 s"),
    ("cannot open '/a/b c'", "cannot open '/d'"),
    ('cannot open "/a/b c"', 'cannot open "/d"'),
    ("pid 17 died", "pid 812 died"),
]
OTHER_CAUSES = [
    ("HTTP 503 from the server", "HTTP 403 from the server"),
    ("HTTP/1.1 503", "HTTP/1.1 403"),
    ("status code:503", "status code:403"),
    ("errno 13", "errno 28"),
    ("[3010] denied", "[ERROR] denied"),
    ("no route over IPv4", "no route over IPv6"),
    ("pool17 is full", "door17 is full"),
]


def causes(world: World) -> list[list[int]]:
    """Return how many failures of one link each list of errors counts for each cause."""
    found, _ = groups(world)
    rows = Transfer.objects.filter(source=world.ral, destination=world.glasgow)
    large = rows[0].size_class_id
    similar = transfers.failures(rows)
    common = transfers.common_errors(rows, {large: NOW - HOUR})[large]
    return [sorted(group.count for group in list_) for list_ in (found, similar, common)]


@pytest.mark.parametrize("pair", ONE_CAUSE)
def test_errors_of_one_cause_are_one_group_in_every_list(small_world, pair):
    for error in pair:
        failed(small_world.ral, small_world.glasgow, error)
    assert causes(small_world) == [[2], [2], [2]]


@pytest.mark.parametrize("pair", OTHER_CAUSES)
def test_errors_of_two_causes_are_two_groups_in_every_list(small_world, pair):
    for error in pair:
        failed(small_world.ral, small_world.glasgow, error)
    assert causes(small_world) == [[1, 1], [1, 1], [1, 1]]


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


def test_no_links_need_no_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert grouped([], "large", preset("7d", NOW), ()) == ([], 0)
