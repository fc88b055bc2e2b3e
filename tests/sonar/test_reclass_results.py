"""`manage.py reclass_results`: every result ends in the class of its bytes, and segments say so."""

import random
from collections import Counter
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from sonar.models import DirtyMark, Probe, Segment, SizeClass, Transfer
from sonar.people.roles import Role
from sonar.results import reclass, sealing, segments, store
from sonar.results.store import Result
from tests.accounts import account, logged_in
from tests.sonar.history import HOUR, MIDNIGHT, NOW
from tests.sonar.world import three_endpoints

pytestmark = pytest.mark.django_db
MB = 10**6
# Around the bounds of the default classes and of those that these tests make.
SIZES = [1, 20 * MB, 50 * MB - 1, 50 * MB, 99_999_999, 100 * MB, 200 * MB, 10**9, 3 * 10**9]
CLASS_OF_BYTES = """
    SELECT count(*) FROM sonar_transfer t WHERE size_class_id <> (
        SELECT id FROM sonar_sizeclass WHERE from_bytes <= t.bytes ORDER BY from_bytes DESC LIMIT 1)
"""


def wrong() -> int:
    """Count by plain SQL what is not in the class of its bytes."""
    with connection.cursor() as cursor:
        cursor.execute(CLASS_OF_BYTES)
        return int(cursor.fetchone()[0])


def classes() -> list[tuple[int, int]]:
    return list(SizeClass.objects.order_by("from_bytes").values_list("from_bytes", "id"))


def class_of(size: int) -> int:
    return [found for begins, found in classes() if begins <= size][-1]


def store_results(moments_and_sizes: list[tuple[datetime, int]]) -> None:
    glasgow, lancs, _ = three_endpoints()
    profile = store.Profiles().id_of(mover="http-tpc")
    store.make_months(moment for moment, _ in moments_and_sizes)
    store.store(
        [
            Result(
                id=uuid4(),
                source_id=glasgow.id,
                destination_id=lancs.id,
                size_class_id=class_of(size),
                profile_id=profile,
                state="done",
                started_at=moment,
                seconds=2.0,
                bytes=size,
            )
            for moment, size in moments_and_sizes
        ]
    )


@pytest.fixture
def history(db: None) -> None:
    """Three days over the change of a month, sealed: each size in some hours."""
    chance = random.Random(7)
    store_results(
        [
            (MIDNIGHT + timedelta(hours=chance.randrange(-24, 48), seconds=number), size)
            for number, size in enumerate(SIZES * 20)
        ]
    )
    sealing.seal(NOW)
    assert not wrong()


def move_bound(name: str, from_bytes: int) -> None:
    test_bytes = max(150 * MB, from_bytes) if name == "medium" else 150 * MB
    SizeClass.objects.filter(name="medium").update(test_bytes=test_bytes)
    SizeClass.objects.filter(name=name).update(from_bytes=from_bytes)


def run_reclass(*options: str) -> str:
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rich.console.Console.file", property(lambda _: out, lambda *_: None))
        call_command("reclass_results", *options)
    return out.getvalue()


def kept() -> list[tuple[object, ...]]:
    return sorted(Transfer.objects.values_list("id", "size_class_id", "bytes", "started_at"))


def in_segments(level: str, seconds: int) -> Counter[tuple[int, datetime, int]]:
    """Return what segments hold: (size class, bucket, bytes), each result once."""
    return Counter(
        (segment.size_class_id, segment.start, int(size))
        for segment in Segment.objects.filter(level=level)
        for size in segments.decode("sizes", bytes(segment.sizes)).astype(np.int64)
    )


def in_rows(level: str) -> Counter[tuple[int, datetime, int]]:
    """Return what plain SQL says of the same."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT size_class_id, date_trunc(%s, started_at, 'UTC'), bytes FROM sonar_transfer",
            [level],
        )
        return Counter(cursor.fetchall())


def exactly_sealed() -> None:
    sealing.seal(NOW)
    assert not DirtyMark.objects.exclude(level="day").exists()
    for level, seconds in (("hour", 3600), ("day", 86_400)):
        assert in_segments(level, seconds) == in_rows(level)
    assert not Segment.objects.filter(rows=0).exists()


def test_results_go_to_the_class_of_their_bytes_and_segments_are_exact_again(history):
    before = kept()
    move_bound("medium", 50 * MB)
    expected = wrong()
    assert expected == 40
    told = run_reclass()
    assert "40 results moved from small to medium." in told
    assert "3 days checked" in told
    assert wrong() == 0
    assert [(one[0], *one[2:]) for one in kept()] == [(one[0], *one[2:]) for one in before]
    exactly_sealed()
    assert "All results are in the right size class." in run_reclass()


@pytest.mark.parametrize(
    ("bounds", "pairs"),
    [
        ({"medium": 200 * MB, "large": 10**9 + 1}, {"medium to small", "large to medium"}),
        ({"large": 200 * MB}, {"medium to large"}),
    ],
)
def test_bounds_may_move_either_way(history, bounds: dict[str, int], pairs: set[str]):
    for name in sorted(bounds):  # large before medium
        move_bound(name, bounds[name])
    told = run_reclass()
    assert {line.partition(" from ")[2] for line in told.splitlines() if " moved " in line} == {
        f"{pair}." for pair in pairs
    }
    assert wrong() == 0
    exactly_sealed()


def test_a_new_class_takes_its_results_from_the_one_below(history):
    SizeClass.objects.create(name="huge", from_bytes=2 * 10**9 + 1, test_bytes=4 * 10**9)
    assert "20 results moved from large to huge." in run_reclass()
    assert wrong() == 0
    exactly_sealed()


def test_an_hour_that_loses_all_its_results_loses_its_segment(db):
    store_results([(MIDNIGHT, 60 * MB), (MIDNIGHT + HOUR, MB)])
    sealing.seal(NOW)
    small = SizeClass.objects.get(name="small")
    segment = Segment.objects.filter(size_class=small, level="hour", start=MIDNIGHT)
    assert segment.exists()
    move_bound("medium", 50 * MB)
    run_reclass()
    sealing.seal(NOW)
    assert not segment.exists()
    assert Segment.objects.filter(size_class__name="medium", start=MIDNIGHT).count() == 2
    exactly_sealed()


def test_a_dry_run_counts_the_same_and_changes_nothing(history):
    move_bound("medium", 50 * MB)
    before = kept(), list(DirtyMark.objects.values_list("seq", flat=True))
    assert "40 results would move from small to medium." in run_reclass("--dry-run")
    assert (kept(), list(DirtyMark.objects.values_list("seq", flat=True))) == before


def test_what_was_stopped_goes_on_where_it_was(history, monkeypatch: pytest.MonkeyPatch):
    move_bound("medium", 50 * MB)
    move_hour, moved = reclass.move_hour, []

    def stopped(hour: datetime) -> reclass.Moves:
        if len(moved) == 3:
            raise KeyboardInterrupt
        moved.append(hour)
        return move_hour(hour)

    monkeypatch.setattr(reclass, "move_hour", stopped)
    with pytest.raises(CommandError, match="so far are complete; run the command again"):
        run_reclass()
    assert 0 < wrong() < 40
    sealing.seal(NOW)
    monkeypatch.setattr(reclass, "move_hour", move_hour)
    run_reclass()
    assert wrong() == 0
    exactly_sealed()


@pytest.mark.usefixtures("real_commits")
def test_each_hour_is_committed_by_itself():
    store_results([(MIDNIGHT + number * HOUR, 60 * MB) for number in range(5)])
    move_bound("medium", 50 * MB)
    left = []
    for _ in reclass.move_day(MIDNIGHT):
        assert not connection.in_atomic_block
        left.append(wrong())
    assert left == [4, 3, 2, 1, 0]


def test_tests_under_way_whose_class_is_not_that_of_their_bytes_are_said(history):
    glasgow, lancs, _ = list(Transfer.objects.model.source.field.related_model.objects.all())
    Probe.objects.create(
        source=glasgow,
        destination=lancs,
        size_class=SizeClass.objects.get(name="small"),
        bytes=60 * MB,
        requested_at=NOW,
        sent_at=NOW,
        mover="fake",
        mode="pull",
    )
    assert "under way" not in run_reclass()
    move_bound("medium", 50 * MB)
    assert (
        "The result of 1 test in progress will be stored in a size class that does not match"
        in run_reclass()
    )


def test_without_results_there_is_nothing_to_do(db):
    assert "All results are in the right size class." in run_reclass()
    assert reclass.notice(reclass.outside()) == ""


# What who changes a size class is told.


def test_the_look_is_complete_where_there_is_time(history):
    assert reclass.notice(reclass.outside(60)) == ""
    move_bound("medium", 50 * MB)
    found = reclass.outside(60)
    assert (found.results, found.is_complete) == (40, True)
    assert reclass.notice(found) == (
        "40 results are outside the bounds of their size class but stay in that class. manage.py "
        "reclass_results moves these results to the right class (--dry-run only counts the "
        "results)."
    )


def test_the_look_ends_in_time_and_says_how_far_it_came(history, monkeypatch):
    move_bound("medium", 50 * MB)
    assert reclass.outside(0) == reclass.Outside(0, None, is_complete=False)
    assert "they could not be checked in time" in reclass.notice(reclass.outside(0))
    slow = reclass.COUNT.replace("count(*)", "count(*) + length(pg_sleep(0.2)::text)")
    monkeypatch.setattr(reclass, "COUNT", slow)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '30s'")
        assert not reclass.outside(0.1).is_complete
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("30s",)
    newest = reclass.Outside(3, MIDNIGHT, is_complete=False)
    assert "counted from 1 Nov: older results could not be checked in time" in (
        reclass.notice(newest)
    )


def test_the_form_of_a_size_class_says_how_many_results_lie_outside(history):
    admin = logged_in(account(Role.ADMINISTRATOR))
    medium = SizeClass.objects.get(name="medium")
    fields = ("name", "from_bytes", "test_bytes", "timeout_seconds")
    form = {name: getattr(medium, name) for name in fields}
    url = reverse("admin:sonar_sizeclass_change", args=[medium.id])
    said = "40 results are outside the bounds of their size class"
    assert said not in admin.post(url, form | {"timeout_seconds": 9}, follow=True).content.decode()
    page = admin.post(url, form | {"from_bytes": 50 * MB}, follow=True).content.decode()
    assert said in page
    assert "manage.py reclass_results" in page


def test_loading_a_registry_file_says_how_many_results_lie_outside(history, tmp_path: Path):
    def load(from_bytes: int) -> str:
        medium = f"{{name: medium, from_bytes: {from_bytes}, test_bytes: 200000000}}"
        (tmp_path / "grid.yaml").write_text(f"size_classes:\n  - {medium}\n")
        out = StringIO()
        call_command("load_registry", str(tmp_path / "grid.yaml"), stdout=out)
        return out.getvalue()

    assert "outside" not in load(100 * MB)
    assert "40 results are outside the bounds of their size class" in load(50 * MB)
    assert "outside" not in load(50 * MB)
