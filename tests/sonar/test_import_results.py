"""`manage.py import_results`: all of a file or nothing, and what is said about a bad one."""

import contextlib
import gzip
import itertools
import re
import threading
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from sonar.models import Endpoint, Profile, Transfer
from sonar.records import importing, storing
from sonar.records.admission import Admission
from sonar.records.columns import Batch
from sonar.results import store
from tests.sonar.stored_files import store_file
from tests.sonar.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_four")]

HEADER = "id,source,destination,started_at,seconds,bytes,state,error,error_where,mover"


def line(number: int, **change: str) -> str:
    fields = {
        "id": str(uuid.UUID(int=number)),
        "source": "GLASGOW_DATADISK",
        "destination": "RAL_DATADISK",
        "started_at": (NOW - timedelta(minutes=number)).isoformat(),
        "seconds": "12.5",
        "bytes": "20000000",
        "state": "done",
        "error": "",
        "error_where": "",
        "mover": "gfal2",
    }
    return ",".join((fields | change).values())


def write(path: Path, lines: Iterable[str], header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def run(*arguments: object) -> str:
    out = StringIO()
    call_command("import_results", *map(str, arguments), stdout=out, stderr=StringIO())
    return out.getvalue()


def quiet(position: int) -> None:
    """Show no progress."""


def refused(*arguments: object) -> str:
    """Import bad files; return what was said, after making sure that nothing came of them."""
    before = Transfer.objects.count()
    error = StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("import_results", *map(str, arguments), stdout=StringIO(), stderr=error)
    assert caught.value.returncode == 1
    assert Transfer.objects.count() == before
    return error.getvalue()


def test_a_file_is_stored_and_its_summary_is_one_line(tmp_path, grid):
    path = write(tmp_path / "some.csv", [line(n) for n in range(1, 4)])
    said = run(path)
    assert re.fullmatch(
        rf"{re.escape(str(path))}: 3 accepted, 0 duplicates, [\d.]+ s, [\d,]+ results/s\n", said
    )
    one = Transfer.objects.get(id=uuid.UUID(int=2))
    assert (one.source.name, one.destination.name) == ("GLASGOW_DATADISK", "RAL_DATADISK")
    assert (one.size_class.name, one.seconds, one.state) == ("small", 12.5, "done")
    assert (one.profile.mover, one.profile.origin) == ("gfal2", "external")


@pytest.mark.parametrize("bytes_of_last", ["20000000", " 7 "], ids=["by column", "by row"])
def test_the_command_says_of_which_origin_results_are_that_name_none(tmp_path, grid, bytes_of_last):
    """They are those of an earlier test system, say; what a file names itself holds."""
    header = f"{HEADER},origin"
    lines = [
        f"{line(number, bytes=bytes_of_last if number == 4 else '20000000')},{origin}"
        for number, origin in enumerate(("", "external", "production", "test"), 1)
    ]
    run(write(tmp_path / "some.csv", lines, header), "--origin", "test")
    origins = Transfer.objects.order_by("id").values_list("profile__origin", flat=True)
    assert list(origins) == ["test", "test", "production", "test"]
    with pytest.raises(CommandError, match="invalid choice: 'mars'"):
        run(tmp_path / "some.csv", "--origin", "mars")


@pytest.mark.parametrize("also", [[], [line(2, bytes=" 7 ")]], ids=["by the column", "by the row"])
def test_errors_from_elsewhere_are_kept_without_where_endpoints_are(tmp_path, grid, also):
    """Whoever imported them saw them; all may read what is kept."""
    Endpoint.objects.filter(name="RAL_DATADISK").update(base_url="davs://se.ral.example:1094/disk")
    error = "told of se.ral.example:1094: Could not connect to 10.1.2.3"
    failed = line(1, state="failed", error=error, error_where="destination")
    run(write(tmp_path / "some.csv", [failed, *also]))
    kept = Transfer.objects.get(id=uuid.UUID(int=1))
    assert kept.error == "told of RAL_DATADISK: Could not connect to [address]"


def test_importing_it_again_stores_nothing_twice(tmp_path, grid):
    path = write(tmp_path / "some.csv", [line(n) for n in range(1, 4)])
    run(path)
    assert "1 accepted, 3 duplicates" in run(write(path, [line(n) for n in range(1, 5)]))
    # Nor twice in a file, or with another time in another month.
    lines = [line(5), line(5, seconds="99")]
    assert "1 accepted, 1 duplicate," in run(write(path, lines))
    assert Transfer.objects.get(id=uuid.UUID(int=5)).seconds == 12.5
    moved = line(1, started_at=(NOW - timedelta(days=60)).isoformat())
    assert "0 accepted, 1 duplicate" in run(write(path, [moved]))
    assert Transfer.objects.count() == 5


def test_gzip_a_byte_order_mark_windows_lines_and_blank_lines_make_no_difference(tmp_path, grid):
    text = "\r\n".join([HEADER, line(1), "", line(2)]) + "\r\n\r\n"
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    assert "2 accepted" in run(path)
    assert "0 accepted, 0 duplicates" in run(write(path, []))


def test_columns_may_stand_in_any_order_and_optional_ones_may_be_absent(tmp_path, grid):
    names = HEADER.split(",")
    cells = dict(zip(names, line(1).split(","), strict=True))
    some = [name for name in reversed(names) if not name.startswith("error")]
    row = ",".join(cells[name] for name in some)
    assert "1 accepted" in run(write(tmp_path / "some.csv", [row], ",".join(some)))


def test_an_error_with_line_breaks_commas_and_quotes_arrives_as_it_was(tmp_path, grid):
    text = 'first, "second"\r\nthird\rfourth\n'
    quoted = '"' + text.replace('"', '""') + '"'
    path = tmp_path / "some.csv"
    bad = line(1, state="failed", error=quoted, error_where="source")
    path.write_bytes(f"{HEADER}\n{bad}\n{line(2)}\n".encode())
    assert "2 accepted" in run(path)
    assert Transfer.objects.get(id=uuid.UUID(int=1)).error == text


def test_check_stores_nothing_and_says_whether_it_would(tmp_path, grid):
    path = write(tmp_path / "some.csv", [line(1), line(2)])
    assert run("--check", path) == f"{path}: 2 results are valid; nothing was stored.\n"
    write(path, [line(1)])
    assert run("--check", path) == f"{path}: 1 result is valid; nothing was stored.\n"
    assert not Transfer.objects.exists()
    assert not Profile.objects.exists()
    assert "line 2: bytes 'x'" in refused("--check", write(path, [line(1, bytes="x")]))


def test_one_bad_line_keeps_the_whole_file_out_and_is_named(tmp_path, grid):
    lines = [line(n) for n in range(1, 12_001)]
    lines[11_499] = line(7, source="NOWHERE", seconds="fast")
    said = refused(write(tmp_path / "some.csv", lines))
    assert "some.csv: nothing was stored." in said
    assert "  line 11501: seconds 'fast' is not a number of seconds" in said


def test_files_before_and_after_a_bad_one_stay(tmp_path, grid):
    good, bad, more = (tmp_path / name for name in ("good.csv", "bad.csv", "more.csv"))
    write(good, [line(1)])
    write(bad, [line(2), line(3, state="?")])
    write(more, [line(4)])
    with pytest.raises(CommandError, match=r"Files not imported \(see above\): .*bad\.csv$"):
        run(good, bad, more)
    assert {one.id.int for one in Transfer.objects.all()} == {1, 4}


def test_the_first_twenty_mistakes_are_named_and_the_rest_counted(tmp_path, grid):
    path = tmp_path / "some.csv"
    said = refused(write(path, [line(n, bytes="0") for n in range(1, 51)]))
    assert said.count("bytes '0' is not a whole number") == 20
    assert "  line 21: bytes" in said
    assert "... and 30 more" in said
    # The lines of quoted cells count.
    first = line(1, state="failed", error='"a\nb\nc"', error_where="source")
    assert "line 5: bytes '0'" in refused(write(path, [first, line(2, bytes="0")]))


def packed(lines: Iterable[str]) -> bytes:
    return gzip.compress("\n".join([HEADER, *lines]).encode())


BROKEN = {
    "empty": (b"", "the file is empty: its first line must name the columns"),
    "blank": (b"\n\n", "the file is empty"),
    "a header that is data": (
        line(1).encode(),
        "line 1: this line must name the columns: unknown field ",
    ),
    "semicolons": (
        HEADER.replace(",", ";").encode(),
        "line 1: the columns are separated by semicolons: use commas",
    ),
    "tabs": (HEADER.replace(",", "\t").encode(), "line 1: the columns are separated by tabs: "),
    "bars": (HEADER.replace(",", "|").encode(), "the columns are separated by vertical bars: "),
    "quoted names and semicolons": (
        ('"' + HEADER.replace(",", '";"') + '"\n').encode(),
        "line 1: the columns are separated by semicolons: use commas",
    ),
    "an index": (
        f",{HEADER}\n0,{line(1)}\n".encode(),
        "line 1: column 1 has no name: was the table written with its index?",
    ),
    "a comma too many": (
        f"{HEADER},\n{line(1)},\n".encode(),
        f"line 1: column {HEADER.count(',') + 2} has no name: was there an extra comma?",
    ),
    "capitals": (
        HEADER.upper().encode(),
        "line 1: column names must be in lower case: id, source, ",
    ),
    "spaces": (
        HEADER.replace(",", ", ").encode(),
        "line 1: the column ' source' has a space before or after its name",
    ),
    "an unknown column": (f"{HEADER},rate\n".encode(), "line 1: unknown field 'rate': the"),
    "a renamed column": (
        f"{HEADER},beside_source_max\n".encode(),
        "line 1: the field 'beside_source_max' is now called concurrent_at_source_max",
    ),
    "a missing column": (
        b"id,source\n",
        "line 1: required columns are missing: destination, started_at",
    ),
    "a column twice": (f"{HEADER},id\n".encode(), "line 1: the column id appears twice"),
    "too few cells": (f"{HEADER}\na,b\n".encode(), "line 2: 2 cells, but the header names 10"),
    "too many cells": (f"{HEADER}\n{line(1)},\n".encode(), "line 2: 11 cells, but"),
    "an open quote": (
        f'{HEADER}\n{line(1)}\n"{line(2)}\n{line(3)}'.encode(),
        'line 3: a cell that begins with " has no closing quote',
    ),
    "an open quote far from the end": (
        f'{HEADER}\n"{line(1)}\n'.encode() + f"{line(2)}\n".encode() * 5000,
        "line 2: more than 50,000 characters, which is too long for a result. A cell that begins",
    ),
    "a quote within": (
        f'{HEADER}\n"a"b,{line(1)}\n'.encode(),
        "line 2: text follows the closing quote of a cell",
    ),
    "latin-1": (
        f"{HEADER}\n{line(1)}\n{line(2, error='é')}\n".encode("latin-1"),
        "line 3: byte 0xe9 is not UTF-8 text",
    ),
    "utf-16": (HEADER.encode("utf-16"), "the file is in UTF-16: save it in UTF-8"),
    "utf-16, the other way": (
        b"\xfe\xff" + HEADER.encode("utf-16-be"),
        "the file is in UTF-16: save it in UTF-8",
    ),
    "NUL": (
        f"{HEADER}\n{line(1, state='failed', error=chr(0), error_where='source')}\n".encode(),
        r"line 2: error '\x00' is not text of at most 10000 characters, without NUL characters",
    ),
    "gzip cut off": (
        packed(line(n) for n in range(1, 5000))[:-2000],
        "the gzip data end too early: the file is truncated",
    ),
    "gzip damaged": (packed([line(1)])[:40] + b"\0" * 60, "the gzip data are damaged"),
}


@pytest.mark.parametrize(("body", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_clear_sentence(tmp_path, grid, body: bytes, said: str):
    path = tmp_path / "broken.csv"
    path.write_bytes(body)
    found = refused(path)
    assert said in found
    assert "Traceback" not in found


def test_a_file_that_is_not_there_or_not_a_file_is_a_sentence(tmp_path, grid):
    assert "the file cannot be read: No such file or directory" in refused(tmp_path / "none.csv")
    assert "the file cannot be read: Is a directory" in refused(tmp_path)


@pytest.mark.long
def test_a_failure_in_the_middle_of_storing_takes_everything_back(tmp_path, grid, monkeypatch):
    monkeypatch.setattr(importing, "ROWS_PER_STATEMENT", 8_000)
    path = write(tmp_path / "some.csv", [line(n) for n in range(1, 25_001)])
    original, calls = storing.store_batch, itertools.count()

    def fails_at_the_third(batch: Batch, profiles: Sequence[int]) -> store.Stored:
        found = original(batch, profiles)
        if next(calls) == 2:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(storing, "store_batch", fails_at_the_third)
    with pytest.raises(CommandError, match="Stopped; no results from") as caught:
        run(path)
    assert caught.value.returncode == 130
    assert not Transfer.objects.exists()


def test_what_was_checked_is_stored_whatever_becomes_of_the_file(tmp_path, grid):
    path = write(tmp_path / "some.csv", [line(1), line(2)])
    with importing.checked(path, NOW, quiet) as sound:
        write(path, [line(1, seconds="99"), line(2, bytes="0")])
        assert importing.keep(sound, NOW, quiet) == (2, 0)
    assert set(Transfer.objects.values_list("seconds", flat=True)) == {12.5}


def test_a_registry_that_changes_between_checking_and_storing_is_said(tmp_path, grid):
    path = write(tmp_path / "some.csv", [line(1)])
    with importing.checked(path, NOW, quiet) as sound:
        Endpoint.objects.filter(name="RAL_DATADISK").update(name="RAL_DISK")
        with pytest.raises(importing.FaultyFileError, match="changed during the check"):
            importing.keep(sound, NOW, quiet)
    assert not Transfer.objects.exists()
    assert not Profile.objects.exists()


def test_what_the_database_refuses_is_a_sentence_too(tmp_path, grid, monkeypatch):
    path = write(tmp_path / "some.csv", [line(1)])
    real = importing.Admission.at

    def with_an_endpoint_that_went(now: datetime) -> Admission:
        known = real(now)
        known.ends.ids["RAL_DATADISK"] = 60_000
        return known

    monkeypatch.setattr(importing.Admission, "at", with_an_endpoint_that_went)
    with transaction.atomic():
        assert "the database rejected the results: a transfer refers to endpoint" in refused(path)


def test_the_progress_goes_to_the_last_bytes_of_the_file(tmp_path, grid):
    path = write(tmp_path / "some.csv", [line(n) for n in range(1, 6001)])
    seen: list[int] = []
    with importing.checked(path, NOW, seen.append) as sound:
        assert sound.count == 6000
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] <= path.stat().st_size


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("many", [10, 1000], ids=["by month", "by triggers"])
def test_two_imports_at_once_store_each_id_once(tmp_path, real_commits, grid, monkeypatch, many):
    """Same ids, other times: the primary key would let both in, as it holds the time too."""
    monkeypatch.setattr(storing, "MANY", many)
    moved = [line(n, started_at=(NOW - timedelta(hours=n)).isoformat()) for n in range(1, 101)]
    paths = [
        write(tmp_path / name, lines)
        for name, lines in (("a.csv", [line(n) for n in range(1, 101)]), ("b.csv", moved))
    ]
    # The profile is there: of two that make it, one would wait for the other anyway.
    run(write(tmp_path / "first.csv", [line(1000)]))
    original, both = store.known_ids, threading.Barrier(2)

    def waits_for_the_other(ids: bytes) -> list[uuid.UUID]:
        found = original(ids)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(1)
        return found

    def once(path: Path) -> store.Stored:
        stored = store_file(path, NOW, quiet)
        connection.close()
        return stored

    monkeypatch.setattr(store, "known_ids", waits_for_the_other)
    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(once, paths)) == [(0, 100), (100, 0)]
    assert Transfer.objects.count() == 101


@pytest.mark.parametrize("started", ["2026-11-20T03:00:00Z", "2026-11-20T04:00:00+01:00"])
def test_what_csv_of_the_api_tells_besides_is_left_aside(
    grid: None, tmp_path: Path, started: str
) -> None:
    """Read by the column, and one by one where a time is written otherwise."""
    rows = [
        line(number, started_at=started) + f",{size},{rate},,t"
        for number, (size, rate) in enumerate([("small", "1.6"), ("giant", "fast")], 1)
    ]
    header = f"{HEADER},size,rate_mb_s,moved_bytes,verified"
    call_command("import_results", str(write(tmp_path / "a.csv", rows, header)))
    found = Transfer.objects.values_list("size_class__name", "bytes", "verified", "moved_bytes")
    assert list(found) == [("small", 20_000_000, None, None)] * 2
