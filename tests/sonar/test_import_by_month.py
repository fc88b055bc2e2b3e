"""Many results of a file go straight to their months: stored, marked and checked like few."""

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError

from sonar.models import DirtyMark, Profile, Transfer
from sonar.records import importing, storing
from sonar.results import store
from tests.sonar.stored_files import store_file
from tests.sonar.test_import_results import line, quiet, write
from tests.sonar.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_four")]

ROWS = 180
FAILED = {"state": "failed", "error_where": "source"}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "MANY", 10)
    monkeypatch.setattr(storing, "ROWS_FOR_A_FORM", 2)


def over_three_months(numbers: Iterable[int]) -> list[str]:
    """Write results of which some lie in the same hour, some failed, and each class has some."""
    return [
        line(
            number,
            started_at=(NOW - timedelta(days=number % 45, minutes=5 + number // 45)).isoformat(),
            bytes=str(20_000_000 if number % 4 < 2 else 2_000_000_000),
            **(FAILED | {"error": f"reason {number % 40}"} if number % 7 == 0 else {}),
        )
        for number in numbers
    ]


def stored_rows() -> list[tuple[object, ...]]:
    names = ("id", "started_at", "bytes", "state", "error", "error_where", "size_class", "source")
    return sorted(Transfer.objects.values_list(*names, "profile__mover", "samples", "worker"))


def marked_hours() -> set[tuple[int, datetime]]:
    return set(DirtyMark.objects.values_list("size_class_id", "start"))


def test_many_are_stored_as_few_are_and_leave_the_same_marks(tmp_path, grid, monkeypatch):
    lines = over_three_months(range(1, ROWS + 1))
    straight: list[datetime] = []
    append_marked = store.append_marked
    with monkeypatch.context() as patch:
        patch.setattr(storing, "MANY", ROWS)
        store_file(write(tmp_path / "few.csv", lines), NOW, quiet)
    rows, marks = stored_rows(), marked_hours()
    assert len(rows) == ROWS
    assert len({start for _, start in marks}) > 40
    Transfer.objects.all().delete()
    DirtyMark.objects.all().delete()

    def noted(rows: Iterable[bytes], month: datetime) -> None:
        straight.append(month)
        append_marked(rows, month)

    monkeypatch.setattr(store, "append_marked", noted)
    assert store_file(write(tmp_path / "many.csv", lines), NOW, quiet) == (ROWS, 0)
    assert (stored_rows(), marked_hours()) == (rows, marks)
    assert [f"{month:%Y_%m}" for month in straight] == ["2026_10", "2026_11"]


def test_of_many_an_id_counts_once_whatever_its_month_and_the_first_of_a_file(tmp_path, grid):
    store_file(write(tmp_path / "a.csv", [line(3)]), NOW, quiet)
    before = (NOW - timedelta(days=60)).isoformat()
    again = [line(3, started_at=before), line(4, seconds="7"), line(4, started_at=before)]
    lines = [*again, *over_three_months(range(5, 50))]
    assert store_file(write(tmp_path / "b.csv", lines), NOW, quiet) == (46, 2)
    assert Transfer.objects.get(id=uuid.UUID(int=3)).started_at == NOW - timedelta(minutes=3)
    assert Transfer.objects.get(id=uuid.UUID(int=4)).seconds == 7


@pytest.mark.parametrize("field", ["source", "size_class"])
def test_what_none_of_many_may_refer_to_is_refused(tmp_path, grid, field: str):
    """It is said of one result among many that refer to others."""
    lines = over_three_months(range(1, ROWS + 1))
    odd = line(1000, started_at=(NOW - timedelta(days=1, minutes=5)).isoformat())  # as the first
    with importing.checked(write(tmp_path / "a.csv", [*lines, odd]), NOW, quiet) as sound:
        batch, _ = next(importing.spooled(sound.spool))
        batch.rows[field][-1] = 60_000
        profile = Profile.objects.create(mover="gfal2", origin="external")
        with pytest.raises(IntegrityError, match="60000 which does not exist"):
            storing.store_batch(batch, [profile.id])
