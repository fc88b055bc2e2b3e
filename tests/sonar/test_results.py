"""The door: results enter once, all or nothing, into the month they belong to."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from uuid import UUID

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from sonar.models import DirtyMark, Segment, SizeClass, Transfer
from sonar.results import store
from sonar.results.store import Result
from tests.sonar import world

pytestmark = pytest.mark.django_db

NOW = world.NOW
DAY = timedelta(days=1)


@pytest.fixture
def some(db: None) -> list[Result]:
    """Six results of six links within six minutes."""
    return list(make_some())


def make_some() -> Iterator[Result]:
    profile = store.Profiles().id_of(mover="fake", streams=4)
    for number, ends in enumerate(permutations(world.three_endpoints(), 2)):
        yield Result(
            id=UUID(int=number + 1),
            source_id=ends[0].id,
            destination_id=ends[1].id,
            size_class_id=SizeClass.objects.get(name="large").id,
            profile_id=profile,
            state="done",
            started_at=NOW + timedelta(minutes=number, microseconds=123456),
            seconds=2.5,
            bytes=2 * 10**9,
        )


def test_results_are_stored_as_they_are(some):
    whole = replace(
        some[0],
        state="failed",
        first_byte_seconds=0.25,
        samples=[[1.0, 10], [2.0, 30]],
        remote_connections=["tcp:[::1]:1094"],
        error="404 \u2013 not\tthere\n",
        error_where="source",
        error_is_permanent=True,
        worker="w1",
    )
    assert store.store([whole, *some[1:]]) == (6, 0)
    stored = Transfer.objects.get(id=whole.id)
    for name in Result.__slots__:
        assert getattr(stored, name) == getattr(whole, name), name


def test_a_repeated_id_is_counted_and_not_stored_twice_even_with_another_time(some, monkeypatch):
    assert store.store([*some, some[0]]) == (6, 1)
    later = replace(some[1], started_at=NOW + timedelta(days=40), seconds=9.0)
    assert store.store([later, *some]) == (0, 7)
    assert Transfer.objects.count() == 6
    assert Transfer.objects.get(id=some[1].id).seconds == 2.5
    # Nor across the batches of one call.
    Transfer.objects.all().delete()
    monkeypatch.setattr(store, "BATCH", 2)
    assert store.store([*some, *reversed(some)]) == (6, 6)
    assert store.store(iter([])) == (0, 0)


def test_reading_all_ids_finds_what_looking_for_each_finds(some, monkeypatch):
    """Many ids are found in one pass over the indexes, few one by one: the answer is the same."""
    store.store([*some[:3], replace(some[3], started_at=NOW - timedelta(days=40))])
    ids = b"".join(sorted(one.id.bytes for one in some))
    found = []
    for many, way in ((len(some), "OFFSET 0"), (len(some) + 1, "sonar_known_ids")):
        monkeypatch.setattr(store, "MANY", many)
        with CaptureQueriesContext(connection) as queries:
            found.append(set(store.known_ids(ids)))
        assert way in queries.captured_queries[-1]["sql"]
    assert found == [{one.id for one in some[:4]}] * 2


def test_a_bad_result_keeps_all_others_out(some, monkeypatch):
    monkeypatch.setattr(store, "BATCH", 2)
    bad = replace(some[4], bytes=0)
    with pytest.raises(IntegrityError, match="transfer_numbers_are_positive"):
        store.store([*some[:4], bad])
    assert not Transfer.objects.exists()
    assert not DirtyMark.objects.exists()


def test_months_are_made_on_demand_for_old_and_late_results_and_ahead(some):
    before = set(store.months())
    old = replace(some[0], started_at=datetime(2025, 3, 31, 23, 59, 59, 999999, tzinfo=UTC))
    new = replace(some[1], started_at=datetime(2025, 4, 1, tzinfo=UTC))
    store.store([old, new])
    made = set(store.months()) - before
    assert made == {"sonar_transfer_2025_03", "sonar_transfer_2025_04"}
    assert Transfer.objects.count() == 2
    store.make_months_ahead(datetime(2027, 1, 20, tzinfo=UTC))
    assert store.months()[-2:] == ["sonar_transfer_2027_01", "sonar_transfer_2027_03"]
    store.make_months_ahead(datetime(2027, 2, 1, tzinfo=UTC))
    assert store.months()[-2:] == ["sonar_transfer_2027_02", "sonar_transfer_2027_03"]


def segment(size_class: int, level: str, start: datetime) -> Segment:
    empty = dict.fromkeys(("keys", "offsets", "sizes", "profiles", "links", "lasts"), b"")
    return Segment.objects.create(
        size_class_id=size_class, level=level, start=start, rows=0, **empty
    )


def test_a_month_that_is_too_old_goes_with_its_segments_and_marks_and_nothing_else_does(some):
    september = replace(some[0], started_at=datetime(2026, 9, 30, 23, 0, tzinfo=UTC))
    october = replace(some[1], started_at=datetime(2026, 10, 1, tzinfo=UTC))
    store.store([september, october])
    gone = segment(october.size_class_id, "day", datetime(2026, 9, 30, tzinfo=UTC))
    kept = segment(october.size_class_id, "hour", datetime(2026, 10, 1, tzinfo=UTC))
    assert store.drop_expired(datetime(2026, 10, 30, tzinfo=UTC), keep_days=30) == []
    dropped = store.drop_expired(datetime(2026, 10, 31, tzinfo=UTC), keep_days=30)
    assert dropped == ["sonar_transfer_2026_09"]
    assert list(Transfer.objects.values_list("id", flat=True)) == [october.id]
    assert list(Segment.objects.all()) == [kept]
    assert gone.id != kept.id
    assert [mark.start for mark in DirtyMark.objects.all()] == [october.started_at]


def test_a_month_that_somebody_reads_is_left_for_the_next_time(real_commits, monkeypatch, caplog):
    monkeypatch.setattr(store, "LONGEST_WAIT_SECONDS", 0.1)
    old = datetime(2024, 1, 1, tzinfo=UTC)
    store.make_months([old])
    with psycopg.connect(**connection.get_connection_params()) as reader:
        reader.execute("SELECT count(*) FROM sonar_transfer_2024_01")
        assert store.drop_expired(NOW, keep_days=400) == []
    assert "sonar_transfer_2024_01 is too old but could not be dropped" in caplog.text
    assert "sonar_transfer_2024_01" in store.drop_expired(NOW, keep_days=400)


def test_writers_of_one_hour_do_not_wait_for_each_other(real_commits):
    one, other, *_ = make_some()
    with psycopg.connect(**connection.get_connection_params()) as slow:
        with slow.cursor().copy(store.COPY) as copy:
            copy.set_types(list(store.TYPES.values()))
            copy.write_row(one.row())
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
            assert store.store([other]) == (1, 0)
    assert Transfer.objects.count() == 2
