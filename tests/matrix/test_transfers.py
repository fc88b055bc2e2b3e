"""Lists of single results: their order, pages and filters; failures put together by cause."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from matrix.query.filters import Filter
from matrix.store import registry, transfers
from matrix.store.keyset import Cursor
from matrix.store.transfers import TransferSelection
from sonar.models import Transfer
from sonar.notation.windows import Window
from tests.matrix import world
from tests.matrix.sent import MINUTE, PLAIN, many, send
from tests.matrix.world import HOUR, NOW

pytestmark = pytest.mark.django_db
DAY = Window(NOW - 24 * HOUR, NOW + HOUR)
EVERY = tuple(Transfer.State.values)


def rows(*filters: Filter, **more: Any) -> QuerySet[Transfer]:
    wanted = TransferSelection(DAY, filters=filters, **more)
    return wanted.rows(registry.read_places(registry.read_versions()))


def ids(*filters: Filter, **more: Any) -> set[UUID]:
    return {one.id for one in rows(*filters, **more)}


def test_pages_follow_each_other_newest_first_and_leave_nothing_out(small_world):
    ends = small_world.ral, small_world.glasgow
    sent = [send(*ends, NOW - (number // 3) * MINUTE) for number in range(10)]
    seen: list[UUID] = []
    after = None
    for _ in range(4):
        page = transfers.listing(rows(), 3, after)
        seen += [one.id for one in page.results]
        after = Cursor.parse(str(page.next)) if page.next else None
    assert after is None
    assert len(seen) == 10
    assert set(seen) == set(sent)
    found = Transfer.objects.in_bulk(seen)
    order = [(found[one].started_at, one) for one in seen]
    assert order == sorted(order, reverse=True)


def test_a_last_page_that_is_full_has_no_next(small_world):
    for number in range(4):
        send(small_world.ral, small_world.glasgow, NOW - number * MINUTE)
    assert transfers.listing(rows(), 4).next is None
    assert transfers.listing(rows(), 3).next is not None


@pytest.mark.parametrize("text", ["", "_", "2026-11-20T12:00:00Z", "x_y", f"2026_{UUID(int=7)}x"])
def test_a_cursor_that_no_answer_had_is_an_error(text):
    with pytest.raises(ValueError):
        Cursor.parse(text)


def test_filters_on_ends_choose_what_the_matrix_chooses(small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    there = send(ral, glasgow, NOW)
    back = send(glasgow, ral, NOW)
    far = send(desy, scratch, NOW)
    assert ids(Filter("source_site", "RAL")) == {there}
    assert ids(Filter("destination_endpoint", "RAL_DATADISK")) == {back}
    assert ids(Filter("site", "RAL")) == {there, back}
    assert ids(Filter("site", "RAL", exclude=True)) == {far}
    assert ids(Filter("source_site", "RAL"), Filter("source_site", "DESY")) == {there, far}
    assert ids(Filter("cloud", "UK"), Filter("source_tier", "1", exclude=True)) == {back}
    assert ids(Filter("cloud", "FR")) == set()
    assert ids(Filter("cloud", "FR", exclude=True)) == {there, back, far}


def test_state_error_size_window_and_method_narrow_a_list(small_world):
    ends = small_world.ral, small_world.glasgow
    done = send(*ends, NOW)
    failed = send(*ends, NOW, error="503 Service Unavailable")
    lost = send(*ends, NOW, state="lost", error="its worker died", error_where="control")
    four = send(*ends, NOW, profile_id=world.profile(**PLAIN | {"streams": 4}).id, size="small")
    send(*ends, DAY.start - MINUTE)
    assert ids() == {done, failed, four}
    assert ids(states=EVERY) == {done, failed, lost, four}
    assert ids(states=("lost",)) == {lost}
    assert ids(states=EVERY, error="SERVICE un") == {failed}
    assert ids(states=EVERY, error="100%") == set()
    assert ids(Filter("streams", "4")) == {four}
    small = Transfer.objects.get(id=four).size_class_id
    assert ids(size_class=small) == {four}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"no file {UUID(int=7)} here", f"no file {UUID(int=8)} here"),
        ("GET https://a.example.org:80/x/1 failed", "GET https://b.example.org:81/y failed"),
        ("cannot open /data/1/file", "cannot open /other/file: "),
        ("stalled after 12.5 s", "stalled after 3.25 s"),
        ("adler32 1a2b3c4d5e6f7a8b is wrong", "adler32 ffffffffffffffff is wrong"),
        ("503 from node01.example.org", "503 from node22.example.org"),
        ("it is 123456 bytes", "it is 98765 bytes"),
    ],
)
def test_errors_of_one_cause_are_one_group(small_world, one, other):
    send(small_world.ral, small_world.glasgow, NOW - HOUR, error=one)
    newest = send(small_world.ral, small_world.glasgow, NOW, error=other.removesuffix(": "))
    (group,) = transfers.failures(rows())
    assert (group.count, group.where, group.is_lost) == (2, "destination", False)
    assert (group.first, group.last) == (NOW - HOUR, NOW)
    assert group.example.id == newest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("503 Service Unavailable", "403 Forbidden"),
        ("status 503", "status 500"),
        ("no route over IPv4", "no route over IPv6"),
    ],
)
def test_errors_that_say_something_else_are_two_groups(small_world, one, other):
    for error in (one, other):
        send(small_world.ral, small_world.glasgow, NOW, error=error)
    assert [group.count for group in transfers.failures(rows())] == [1, 1]


def test_groups_differ_by_where_and_lost_ones_stand_apart(small_world):
    ends = small_world.ral, small_world.glasgow
    for where in ("source", "destination", "source"):
        send(*ends, NOW, error="timeout", error_where=where)
    send(*ends, NOW, state="lost", error="timeout", error_where="source")
    found = transfers.failures(rows(states=EVERY))
    assert (found[0].where, found[0].count, found[0].is_lost) == ("source", 2, False)
    assert {(one.where, one.count, one.is_lost) for one in found[1:]} == {
        ("destination", 1, False),
        ("source", 1, True),
    }


def test_a_page_and_the_groups_take_the_same_queries_whatever_there_is(small_world):
    many(small_world.ral, small_world.glasgow, 6, NOW)
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            transfers.listing(rows(), 50)
            transfers.failures(rows())
        pinned = [
            one["sql"] for one in captured.captured_queries if "sonar_version" not in one["sql"]
        ]
        assert len([sql for sql in pinned if "sonar_transfer" in sql]) == 3, pinned
        many(small_world.ral, small_world.glasgow, 300, NOW - HOUR)


def test_the_results_of_a_link_are_found_by_its_index(small_world):
    for source in small_world.endpoints:
        for destination in small_world.endpoints:
            if source != destination:
                # So many that pages which rows of other tests have left in the index do not matter.
                many(source, destination, 600, NOW)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sonar_transfer")
    ends = (
        Filter("source_endpoint", "RAL_DATADISK"),
        Filter("destination_endpoint", "DESY_DATADISK"),
    )
    plan = rows(*ends).order_by("-started_at", "-id")[:50].explain()
    assert "source_id_destination_id_started_at_idx" in plan, plan
    newest = TransferSelection(Window(NOW - timedelta(days=30), NOW + HOUR)).rows([])
    assert "Index Scan Backward" in newest.order_by("-started_at", "-id")[:50].explain()
