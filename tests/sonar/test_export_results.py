"""`manage.py export_results`: what comes out goes in again, and is the same."""

import csv
import gzip
import io
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from sonar.models import Endpoint, Mesh, Profile, SizeClass, Transfer
from sonar.models.transfer import WHERE
from sonar.notation.units import FASTEST
from sonar.records import exporting
from sonar.records.exporting import Choice
from sonar.records.record import FIELDS
from sonar.results import store
from sonar.results.store import Result
from tests.properties import examples
from tests.sonar.stored_files import store_file
from tests.sonar.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_four")]


def result(source: Endpoint, destination: Endpoint, minutes_ago: int, **change: object) -> Result:
    values: dict[str, object] = {
        "id": uuid.UUID(int=minutes_ago),
        "source_id": source.id,
        "destination_id": destination.id,
        "size_class_id": SizeClass.objects.get(name="large").id,
        "profile_id": Profile.objects.get_or_create(mover="http-tpc", mode="pull")[0].id,
        "state": "done",
        "started_at": NOW - timedelta(minutes=minutes_ago),
        "seconds": 10.0,
        "bytes": 2_000_000_000,
    }
    return Result(**(values | change))  # type: ignore[arg-type]


FAILED = {"state": "failed", "error": "503", "error_where": "destination"}


def write(path: Path, *arguments: str) -> Path:
    call_command("export_results", str(path), *arguments, stdout=io.StringIO())
    return path


@pytest.fixture
def exported(tmp_path: Path) -> Callable[..., list[dict[str, str]]]:
    """Return what exports with these arguments, and reads the file."""

    def export(*arguments: str) -> list[dict[str, str]]:
        with write(tmp_path / "out.csv", *arguments).open(newline="") as file:
            return list(csv.DictReader(file))

    return export


def numbers(rows: list[dict[str, str]]) -> list[int]:
    return [uuid.UUID(row["id"]).int for row in rows]


def test_a_result_is_one_line_with_names_and_all_its_digits(grid, exported):
    glasgow, _, ral = grid
    when = datetime.fromisoformat("2026-11-20T03:59:59.000001+00:00")
    store.store([result(glasgow, ral, 1, seconds=1 / 3, started_at=when)])
    (row,) = exported()
    assert tuple(row) == (*FIELDS, "rate_mb_s")
    assert {name: text for name, text in row.items() if text} == {
        "id": "00000000-0000-0000-0000-000000000001",
        "source": "GLASGOW_DATADISK",
        "destination": "RAL_DATADISK",
        "started_at": "2026-11-20T03:59:59.000001Z",
        "seconds": "0.3333333333333333",
        "bytes": "2000000000",
        "state": "done",
        "mover": "http-tpc",
        "mode": "pull",
        "streams": "1",
        "origin": "test",
        "rate_mb_s": "6000",
    }


def test_only_what_succeeded_has_a_rate_and_lost_tests_stay_here(grid, exported):
    glasgow, _, ral = grid
    lost = result(glasgow, ral, 3, **(FAILED | {"state": "lost"}))
    store.store([result(glasgow, ral, 1, seconds=8.0), result(ral, glasgow, 2, **FAILED), lost])
    assert [row["rate_mb_s"] for row in exported()] == ["", "250"]


def test_the_oldest_comes_first_and_of_one_time_the_smallest_id(grid, exported):
    glasgow, _, ral = grid
    same = {"started_at": NOW - timedelta(minutes=5)}
    store.store(result(glasgow, ral, number, **same) for number in (9, 3, 7))
    store.store([result(glasgow, ral, 60), result(ral, glasgow, 1)])
    assert numbers(exported()) == [60, 3, 7, 9, 1]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--source GLASGOW_DATADISK", [3, 1]),
        ("--source GLASGOW_DATADISK --source LANCS_DATADISK", [4, 3, 1]),
        ("--destination RAL_DATADISK", [4, 1]),
        ("--size small", [3]),
        ("--state failed", [2]),
        ("--state failed --state done", [4, 3, 2, 1]),
        ("--origin production", [4]),
        ("--from 2026-11-20T03:57:00Z", [3, 2, 1]),
        ("--to 2026-11-20T03:57:00Z", [4]),
        ("--from 2026-11-20T03:57:00Z --to 2026-11-20T03:58:30Z", [3, 2]),
        ("--source GLASGOW_DATADISK --destination RAL_DATADISK", [1]),
    ],
)
def test_filters_choose_which(grid, exported, words: str, found: list[int]):
    glasgow, lancs, ral = grid
    small = SizeClass.objects.get(name="small").id
    production = Profile.objects.create(mover="fts", origin="production").id
    store.store(
        [
            result(glasgow, ral, 1),
            result(ral, lancs, 2, **FAILED),
            result(glasgow, lancs, 3, size_class_id=small, bytes=20_000_000),
            result(lancs, ral, 4, profile_id=production),
        ]
    )
    assert numbers(exported(*words.split())) == found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--source GLASGOW", "There is no endpoint 'GLASGOW'. Did you mean GLASGOW_DATADISK"),
        ("--size huge", "There is no size class 'huge'"),
        ("--from now", "'now' is not a time: write ISO 8601 in UTC"),
        ("--state lost", "invalid choice: 'lost'"),
        ("--from 2026-11-20 --to 2026-11-20", "--from must be before --to"),
    ],
)
def test_a_bad_wish_is_refused_in_a_sentence_and_writes_nothing(
    grid, exported, tmp_path, words: str, said: str
):
    with pytest.raises(CommandError, match=said):
        exported(*words.split())
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CommandError, match=r"Cannot write .*: No such file or directory"):
        write(tmp_path / "none" / "out.csv")


def test_a_name_in_gz_is_packed_and_the_same_results_give_the_same_file(grid, tmp_path):
    glasgow, _, ral = grid
    one = result(glasgow, ral, 0)
    minutes = ((number, timedelta(minutes=number)) for number in range(1, 2500))
    store.store(
        replace(one, id=uuid.UUID(int=number), started_at=NOW - ago) for number, ago in minutes
    )
    first, second = tmp_path / "a.csv.gz", tmp_path / "b.csv.gz"
    for path in (first, second):
        call_command("export_results", str(path), stdout=(out := io.StringIO()))
        assert out.getvalue() == f"{path}: 2,499 results\n"
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()).count(b"\n") == 2500


def test_without_a_file_it_goes_to_standard_output_alone(grid, capfdbinary):
    glasgow, _, ral = grid
    store.store([result(glasgow, ral, 1, **(FAILED | {"error": "délai"}))])
    call_command("export_results")
    out, err = capfdbinary.readouterr()
    header, line = out.decode().splitlines()
    assert header == ",".join((*FIELDS, "rate_mb_s"))
    assert "délai" in line
    assert err == b""


def test_an_export_that_breaks_off_leaves_the_old_file_and_nothing_else(
    grid, tmp_path, monkeypatch
):
    path = tmp_path / "out.csv"
    path.write_text("as before")

    def breaks(choice: Choice) -> Iterator[tuple[bytes, int]]:
        yield b"half", 1
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "csv_pieces", breaks)
    with pytest.raises(KeyboardInterrupt):
        call_command("export_results", str(path))
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert path.read_text() == "as before"


def test_an_export_imported_again_gives_only_duplicates(grid, tmp_path):
    glasgow, lancs, ral = grid
    made = {"mover": "http-tpc", "mode": "push", "streams": 4, "tcp_buffer_bytes": 65536}
    own = Profile.objects.create(**made, ip_version=6, mesh=Mesh.objects.create(name="uk"))
    store.store([result(glasgow, ral, 1), result(lancs, ral, 2, profile_id=own.id, **FAILED)])
    path = write(tmp_path / "out.csv")
    assert store_file(path, NOW, lambda position: None) == (0, 2)


CONCURRENT = [
    f"concurrent_at_{end}_{number}"
    for end in ("source", "destination")
    for number in ("mean", "max")
]


def test_how_it_was_made_goes_from_one_sonar_to_another(grid, tmp_path):
    glasgow, _, ral = grid
    kind = {"mover": "http-tpc", "mode": "push", "streams": 4, "streams_used": 1, "ip_version": 6}
    profiles = [Profile.objects.create(**kind, concurrent=number).id for number in (0, 1, None)]
    all_counts = [(0.0, 0, 0.0, 0), (1.25, 2, 0.0, 0), (None,) * 4]
    store.store(
        result(
            glasgow, ral, number, profile_id=profile, **dict(zip(CONCURRENT, counts, strict=True))
        )
        for number, (profile, counts) in enumerate(zip(profiles, all_counts, strict=True), 1)
    )
    path = write(tmp_path / "out.csv")
    # Another Sonar: the same endpoints, and nothing else.
    Transfer.objects.all().delete()
    Profile.objects.all().delete()
    store_file(path, NOW, lambda position: None)
    there = list(Transfer.objects.order_by("id").select_related("profile"))
    assert [tuple(getattr(one, name) for name in CONCURRENT) for one in there] == all_counts
    assert [one.profile.concurrent for one in there] == [0, 1, None]
    for one in there:
        assert {name: getattr(one.profile, name) for name in kind} == kind


text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200
)
plain = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,19}", fullmatch=True)
edges = st.sampled_from([1, 99_999_999, 100_000_000, 999_999_999, 10**9, 10**18 - 1])


@st.composite
def records(draw: st.DrawFn) -> dict[str, object]:
    """Draw any record that parses."""
    source, destination = draw(st.permutations(["GLASGOW", "LANCS", "RAL"]))[:2]
    done = draw(st.booleans())
    size = draw(edges | st.integers(1, 10**18 - 1))
    shortest = size / FASTEST * (1 + 1e-12) if done else 0.0
    return {
        "id": str(draw(st.uuids())),
        "source": f"{source}_DATADISK",
        "destination": f"{destination}_DATADISK",
        "started_at": draw(
            st.datetimes(datetime(2025, 10, 17), datetime(2026, 11, 20, 4, 4))
        ).isoformat(),
        "seconds": draw(st.floats(max(shortest, 5e-324) if done else 0.0, 1e8)),
        "bytes": size,
        "state": "done" if done else "failed",
        "error": "" if done else draw(text),
        "error_where": "" if done else draw(st.sampled_from(WHERE)),
        "mover": draw(plain),
        "mode": draw(st.sampled_from(["", "pull", "push"])),
        "streams": draw(st.integers(1, 9999)),
        "streams_used": draw(st.just("") | st.integers(1, 9999)),
        "ip_version": draw(st.sampled_from(["", 4, 6])),
        "origin": draw(st.sampled_from(["test", "production", "external"])),
    }


def kept() -> list[dict[str, object]]:
    """Every result as it is stored, but for the number of its profile."""
    names = [field.attname for field in Transfer._meta.fields if field.attname != "profile_id"]
    names += [
        f"profile__{field.name}"
        for field in Profile._meta.fields
        if field.name not in ("id", "tcp_buffer_bytes", "clock", "purpose")
    ]
    return list(Transfer.objects.order_by("id").values(*names))


@examples(40)
@given(st.lists(records(), min_size=1, max_size=8, unique_by=lambda one: one["id"]))
def test_any_record_comes_out_as_it_went_in(grid, tmp_path, rows):
    Transfer.objects.all().delete()
    Profile.objects.all().delete()
    given_, again, third = (tmp_path / name for name in ("given.csv", "again.csv", "third.csv.gz"))
    with given_.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    quiet = {"stdout": io.StringIO()}
    call_command("import_results", str(given_), **quiet)
    before = kept()
    assert [str(one["id"]) for one in before] == sorted(str(one["id"]) for one in rows)
    write(again)
    assert store_file(again, NOW, lambda position: None) == (0, len(rows))
    Transfer.objects.all().delete()
    call_command("import_results", str(again), **quiet)
    assert kept() == before
    write(third)
    assert gzip.decompress(third.read_bytes()) == again.read_bytes()
