"""Segments hold exactly what the raw rows say, whatever happened to them and in what order."""

from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given

from sonar.models import DirtyMark, Segment, Transfer
from sonar.models.version import Level
from sonar.notation.windows import unix_ms
from sonar.results import sealing, segments
from sonar.results import store as results
from sonar.results.store import Result
from tests.properties import examples
from tests.sonar import world
from tests.sonar.history import DAY, HOUR, MIDNIGHT, NOW, STEPS, Store, carry_out, undone

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(db: None) -> Store:
    return Store(world.three_endpoints())


def buckets(level: Level) -> dict[datetime, list[tuple[int, int, int, float]]]:
    """What segments say: by bucket, (link, started in ms, bytes, rate) of each result."""
    return {
        segment.start: sorted(
            zip(
                (keys >> np.uint64(32)).tolist(),
                (unix_ms(segment.start) + column(segment, "offsets").astype(int)).tolist(),
                column(segment, "sizes").tolist(),
                keys.astype(np.uint32).view(np.float32).tolist(),
                strict=True,
            )
        )
        for segment in Segment.objects.filter(level=level)
        for keys in [column(segment, "keys")]
    }


def column(segment: Segment, name: str) -> np.ndarray:
    return segments.decode(name, bytes(getattr(segment, name)))


def truth(length: timedelta) -> dict[datetime, list[tuple[int, int, int, float]]]:
    """What the raw rows say of the same, by plain Python."""
    found: dict[datetime, list[tuple[int, int, int, float]]] = {}
    for one in Transfer.objects.exclude(state="lost"):
        start = one.started_at.replace(minute=0, second=0, microsecond=0)
        start = start if length == HOUR else start.replace(hour=0)
        rate = float(np.float32(one.bytes / one.seconds)) if one.state == "done" else -1.0
        link = one.source_id << 16 | one.destination_id
        row = (link, unix_ms(one.started_at), one.bytes, rate)
        found.setdefault(start, []).append(row)
    return {start: sorted(rows) for start, rows in found.items()}


def clean(level: Level, length: timedelta) -> Callable[[datetime], bool]:
    """A bucket is clean without a mark of its own, and a day without one of its hours."""
    marks = list(DirtyMark.objects.values_list("level", "start"))

    def is_clean(start: datetime) -> bool:
        return not any(
            start <= mark < start + length
            for at, mark in marks
            if level == Level.DAY or at == level
        )

    return is_clean


def check_clean_buckets() -> None:
    for level, length in ((Level.HOUR, HOUR), (Level.DAY, DAY)):
        held, true, is_clean = buckets(level), truth(length), clean(level, length)
        for start in held.keys() | true.keys():
            if is_clean(start):
                assert held.get(start) == true.get(start), (level, start)


@pytest.mark.long
@examples(60)
@given(steps=STEPS)
def test_a_clean_bucket_holds_what_the_raw_rows_say_after_any_history(store, steps):
    with undone():
        stored: list[Result] = []
        for step in steps:
            carry_out(store, step, stored)
            check_clean_buckets()
        sealing.seal(NOW)
        check_clean_buckets()
        assert not sealing.dirty_days(NOW)


def test_an_hour_is_sealed_a_minute_after_its_end_and_its_day_a_minute_after_midnight(store):
    store.add(NOW.replace(hour=10, minute=59))
    assert sealing.seal(NOW.replace(hour=11, minute=0, second=59)) == 0
    assert sealing.seal(NOW.replace(hour=11, minute=1)) == 1
    assert list(buckets(Level.HOUR)) == [NOW.replace(hour=10, minute=0)]
    assert list(DirtyMark.objects.values_list("level", flat=True)) == ["day"]
    assert sealing.seal(MIDNIGHT + 3 * DAY) == 0
    assert sealing.seal(MIDNIGHT + 3 * DAY + timedelta(seconds=60)) == 1
    assert list(buckets(Level.DAY)) == [MIDNIGHT + 2 * DAY]
    assert not DirtyMark.objects.exists()


def test_the_hour_in_progress_stays_dirty_when_hours_before_it_are_sealed(store):
    store.add(NOW - HOUR)
    store.add(NOW)
    assert sealing.seal(NOW) == 1
    assert DirtyMark.objects.filter(level="hour", start=NOW.replace(minute=0)).exists()
    check_clean_buckets()


def test_sealing_again_gives_a_segment_a_new_id_and_sealing_nothing_none(store):
    store.add(MIDNIGHT)
    sealing.seal(NOW)
    before = set(Segment.objects.values_list("id", flat=True))
    assert sealing.seal(NOW) == 0
    store.add(MIDNIGHT)
    assert sealing.seal(NOW) == 2
    assert not before & set(Segment.objects.values_list("id", flat=True))


def test_marks_of_a_bucket_are_merged_so_that_readers_have_few_to_look_at(store):
    for _ in range(5):
        store.add(NOW)
        store.add(NOW - HOUR * 30)
    assert DirtyMark.objects.count() == 10
    sealing.merge_marks()
    assert DirtyMark.objects.count() == 2


def test_the_columns_are_as_documented(store):
    start = MIDNIGHT + HOUR
    for seconds, state in ((5, "done"), (7, "failed"), (9.25, "done")):
        store.add(start + timedelta(seconds=seconds), state, 1)
    store.add(start + timedelta(seconds=1), "done", 3)
    sealing.seal(NOW)
    held = Segment.objects.get(level="hour")
    links = [
        source.id << 16 | destination.id for source, destination in (store.links[1], store.links[3])
    ]
    rates = (column(held, "keys").astype(np.uint32)).view(np.float32)
    assert column(held, "links").tolist() == sorted(links)
    assert dict(
        zip(column(held, "links").tolist(), column(held, "lasts").tolist(), strict=True)
    ) == {
        links[0]: 9250,
        links[1]: 1000,
    }
    assert sorted(column(held, "offsets").tolist()) == [1000, 5000, 7000, 9250]
    assert (rates < 0).sum() == 1
    assert held.rows == 4
    assert set(column(held, "profiles").tolist()) <= set(store.profiles)


def test_payloads_lie_out_of_line_and_uncompressed(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'sonar_segment'::regclass "
            "AND attstorage = 'e' ORDER BY attnum"
        )
        assert [name for (name,) in cursor.fetchall()] == list(segments.DTYPES)


def test_two_sealers_do_not_seal_one_day_at_once(real_commits):
    store = Store(world.three_endpoints())
    store.add(MIDNIGHT)
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute(
            "SELECT pg_advisory_xact_lock(%s, %s)", [store.size_class, MIDNIGHT.toordinal()]
        )
        assert sealing.seal(NOW) == 0
    assert sealing.seal(NOW) == 2


def test_a_result_committed_while_its_hour_is_sealed_keeps_it_dirty(real_commits, monkeypatch):
    store = Store(world.three_endpoints())
    store.add(MIDNIGHT)
    late = store.result(MIDNIGHT + timedelta(minutes=5))
    original = segments.read_rows

    def read_and_be_overtaken(*spans: object) -> np.ndarray:
        rows = original(*spans)
        with (
            psycopg.connect(**connection.get_connection_params()) as other,
            other.cursor().copy(results.COPY) as copy,
        ):
            copy.set_types(list(results.TYPES.values()))
            copy.write_row(late.row())
        return rows

    monkeypatch.setattr(segments, "read_rows", read_and_be_overtaken)
    sealing.seal(NOW)
    monkeypatch.undo()
    assert DirtyMark.objects.filter(start=MIDNIGHT).count() == 1
    sealing.seal(NOW)
    assert len(buckets(Level.HOUR)[MIDNIGHT]) == 2
    check_clean_buckets()


def test_rebuilding_mends_what_was_broken_by_hand_and_may_be_repeated(store):
    for hours in (0, 1, 30):
        store.add(MIDNIGHT + hours * HOUR)
    sealing.seal(NOW)
    Segment.objects.filter(start=MIDNIGHT).update(keys=b"", rows=0)
    Segment.objects.create(
        size_class_id=store.size_class, level="hour", start=MIDNIGHT - DAY, rows=1,
        keys=b"12345678", offsets=b"1234", sizes=b"12345678", profiles=b"12", links=b"", lasts=b"",
    )  # fmt: skip
    for _ in range(2):
        call_command("rebuild_segments")
        assert buckets(Level.HOUR) == truth(HOUR)
        assert buckets(Level.DAY) == truth(DAY)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--size=giant"], "There is no size class 'giant'. Choose from small, medium, large."),
        (["--from=yesterday"], "--from: 'yesterday' is not a time"),
        (["--from=2026-11-02", "--to=2026-11-02"], "--from must be before --to"),
    ],
)
def test_rebuilding_names_what_is_wrong_with_its_options(db, arguments, sentence):
    with pytest.raises(CommandError, match=sentence.partition(":")[0]) as raised:
        call_command("rebuild_segments", *arguments)
    assert sentence in str(raised.value)


def test_rebuilding_says_what_it_did(store, capsys):
    store.add(MIDNIGHT)
    call_command("rebuild_segments", "--from=2026-11-01", "--to=2026-11-02", "--size=large")
    said = "2 segments written from 1 day (counted separately for each size class) in"
    assert said in capsys.readouterr().out
