"""Checking by the column: what it takes is what row by row is taken, and is the same."""

import csv
import uuid
from collections import defaultdict
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.models import Probe, SizeClass, Transfer
from sonar.records.admission import MOST_PROFILES, Admission
from sonar.records.cells import OtherwiseError, plain
from sonar.records.columns import Batch, Columns
from sonar.records.files import LONGEST_LINE
from sonar.records.record import ACCOUNT, FIELDS, WrongRecordError, from_text
from tests.properties import examples
from tests.sonar.stored_files import store_file
from tests.sonar.test_export_results import records
from tests.sonar.world import NOW

pytestmark = pytest.mark.django_db

QUICK = examples(300)
PLAIN = {
    "id": "6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
    "source": "GLASGOW_DATADISK",
    "destination": "RAL_DATADISK",
    "started_at": "2026-11-20T03:00:00.123456Z",
    "seconds": "12.5",
    "bytes": "2000000000",
    "state": "done",
    "error": "",
    "error_where": "",
    "mover": "http-tpc",
    "mode": "pull",
    "streams": "4",
    "streams_used": "1",
    "ip_version": "6",
    "origin": "test",
    "concurrent_at_source_mean": "",
    "concurrent_at_source_max": "",
    "concurrent_at_destination_mean": "",
    "concurrent_at_destination_max": "",
    **dict.fromkeys(ACCOUNT, ""),
    "clock": "service",
    "purpose": "sweep",
    "tcp_buffer_bytes": "1048576",
}
FAILED = PLAIN | {"state": "failed", "error": "503", "error_where": "source", "seconds": "0"}
# Ways to write a value: plain, unusual, and wrong. Each may be empty, too.
WRITTEN = """
    state failed done lost Done
    clock request tool sundial Tool
    purpose scheduled ordered fun Ordered
    concurrent_at_source_mean 0 1.5 -1 40000 x
    concurrent_at_destination_mean 0 1.5 -1 40000 x
    concurrent_at_source_max 0 2 -1 40000 1.5 x
    concurrent_at_destination_max 0 2 -1 40000 1.5 x
    tcp_buffer_bytes 1048576 0 1.5 x
    tcp_buffer_used_bytes 1048576 0 1.5 x
    remote_id 0ae3b5de-c6b5-11f0-8a1d-fa163e4bd5e1 7 =7
    log_url https://fts.example:8449/log/7 ftp://fts.example/7 https://me:secret@fts.example/7
    log_url https://fts.example/7?token=x
    data_server st-048.example.org:8443 [2001:db8::48]:1094 st-048.example.org -x.example.org:1
    data_server [::1]:x
    scitag 139 0 65535 65536 1.5
    id 6F1C9A52-8f0e-4a4e-9d0c-2b7f3c1d5e61 6f1c9a528f0e4a4e9d0c2b7f3c1d5e60 x
    id 6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e6g 6f1c9a52+8f0e+4a4e+9d0c+2b7f3c1d5e60
    id 6f1c9a5-28f0e-4a4e-9d0c-2b7f3c1d5e60
    source LANCS_DATADISK RAL_DATADISK NOWHERE glasgow_datadisk
    destination LANCS_DATADISK GLASGOW_DATADISK NOWHERE
    started_at 2026-11-20T03:00:00Z 2026-11-20T03:00:00 2026-11-20T03:00:00.12Z
    started_at 2026-11-20T03:00:00+00:00 2026-02-30T03:00:00.000000Z 2026-11-20T04:05:00.000000Z
    started_at 2026-11-20T04:05:00.000001Z 2025-10-16T04:00:00.000000Z 2025-10-16T03:59:59.999999Z
    started_at 2026-11-20T24:00:00Z 2026-11-20T03:60:00Z now 2026-11-20T03:00:60Z
    started_at 0000-01-01T00:00:00Z 2026-13-01T00:00:00Z ٢026-11-20T03:00:00Z 2026-00-10T00:00:00Z
    started_at 2026-11-20T03:00:00,123456Z 2026-11-20t03:00:00z
    seconds 1 0 1e-5 1E5 0.0019 0.002 .5 5. +5 -1 nan inf 1e400 1_0 100000000 100000000.1 0x10 ١
    seconds 1e-400 1,5 123456789012345678 0.1234567890123456789012345678 00012.5 1e10 -0
    bytes 1 0 -5 01 +1 1.0 1e3 1_000 999999999999999999 1000000000000000000 ٣ 100000000 99999999
    bytes x 1,2
    error 503
    error_where source destination transfer control nowhere
    mover fts
    mode push both
    streams 1 0 10000 x 01
    streams_used 2 0 10000 x
    ip_version 4 5 x
    origin production Test
"""
CELLS = defaultdict[str, list[str]](lambda: [""])
for name, *cells in map(str.split, WRITTEN.strip().splitlines()):
    CELLS[name] += cells
for name in ACCOUNT:
    if name.endswith("_seconds"):
        CELLS[name] += ["0", "2.5", "-1", "1e9", "x"]
# Those that are long, or have a blank in them.
CELLS["remote_id"] += ["a b", "x" * 101]
CELLS["id"] += ["é" * 36, " 6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e6"]
CELLS["started_at"] += ["2026-11-20 03:00:00Z"]
CELLS["seconds"] += [" 1"]
CELLS["bytes"] += [" 1", "9" * 30]
CELLS["error"] += ["a\0b", "x" * 10_000, "x" * 10_001, "é\n\"'"]
CELLS["mover"] += ["m" * 21, "a b"]
lines = st.builds(
    lambda base, change: base | change,
    st.sampled_from([PLAIN, PLAIN, FAILED]),
    st.lists(
        st.sampled_from(FIELDS).flatmap(
            lambda name: st.tuples(st.just(name), st.sampled_from(CELLS[name]))
        ),
        max_size=2,
    ).map(dict),
)


def by_row(known: Admission, given_: list[dict[str, str]]) -> Batch | None:
    """Return what reading row by row makes of it; None if there is anything wrong."""
    try:
        found = [from_text(one) for one in given_]
        for one in found:
            known.check(one)
    except WrongRecordError:
        return None
    return Columns(known, FIELDS).of_records(found)


def by_column(known: Admission, given_: list[dict[str, str]]) -> Batch | None:
    columns = Columns(known, FIELDS)
    try:
        return columns.of_lines([[one[name] for name in FIELDS] for one in given_])
    except OtherwiseError:
        return None


def by_text(known: Admission, given_: list[dict[str, str]]) -> Batch | None:
    """Return what is made of lines that were not read one by one, if they are plain."""
    text = "".join(",".join(one[name] for name in FIELDS) + "\n" for one in given_)
    cells = plain(text.encode(), FIELDS, LONGEST_LINE)
    try:
        return None if cells is None else Columns(known, FIELDS).of_cells(cells)
    except OtherwiseError:
        return None


def same(one: Batch, other: Batch) -> bool:
    """Compare all but the numbers of kinds, which are given as they come."""
    names = [name for name in one.rows.dtype.names or () if name != "profile"]
    return one.errors == other.errors and all(
        (one.rows[name] == other.rows[name]).all() for name in names
    )


@QUICK
@given(st.lists(lines, min_size=1, max_size=4))
def test_what_is_taken_by_the_column_is_taken_by_the_row_and_is_the_same(known, given_):
    for found in (by_column(known, given_), by_text(known, given_)):
        if found is not None:
            expected = by_row(known, given_)
            assert expected is not None
            assert same(found, expected)


@pytest.mark.long
@pytest.mark.usefixtures("grid")
def test_no_way_to_write_a_cell_is_taken_otherwise_than_by_the_row():
    for name in FIELDS:
        known = Admission.at(NOW)
        for base, cell in product((PLAIN, FAILED), CELLS[name]):
            lines_ = [base, base | {name: cell}]
            expected = by_row(known, lines_)
            for found in (by_column(known, lines_), by_text(known, lines_)):
                alike = found is None or (expected is not None and same(found, expected))
                assert alike, (name, cell)


@pytest.mark.parametrize("base", [PLAIN, FAILED], ids=["done", "failed"])
def test_plain_lines_are_taken_by_the_column(known: Admission, base: dict[str, str]):
    for change in ({}, {"streams_used": "", "mode": ""}, {"seconds": "1e-05", "bytes": "1"}):
        assert by_column(known, [base, base | change, PLAIN]) is not None
        assert by_text(known, [base, base | change, PLAIN]) is not None


def test_kinds_are_those_of_the_lines_in_every_batch(known: Admission):
    columns = Columns(known, FIELDS)
    batches = [[PLAIN, PLAIN | {"mode": "push"}], [PLAIN | {"mode": "push"}], [PLAIN, FAILED]]
    batches.append([PLAIN | {"streams": "2"}, PLAIN])
    for batch in batches:
        rows = columns.of_lines([[one[name] for name in FIELDS] for one in batch]).rows
        kinds = [columns.profiles[number] for number in rows["profile"]]
        assert [(kind[1], str(kind[2])) for kind in kinds] == [
            (one["mode"], one["streams"]) for one in batch
        ]


def test_too_many_kinds_and_the_id_of_an_open_test_are_left_to_the_row(known: Admission):
    for number in range(MOST_PROFILES):
        known.profiles[f"m{number}", "", 1, None, None, "external", None] = None
    assert by_column(known, [PLAIN]) is None
    glasgow, ral = (known.ends.ids[f"{name}_DATADISK"] for name in ("GLASGOW", "RAL"))
    Probe.objects.create(
        id=uuid.UUID(PLAIN["id"]),
        source_id=glasgow,
        destination_id=ral,
        size_class=SizeClass.objects.get(name="small"),
        bytes=1,
        mover="fake",
        requested_at=NOW,
        sent_at=NOW,
    )
    assert by_column(Admission.at(NOW), [PLAIN]) is None
    other = str(uuid.UUID(int=5))
    assert by_column(Admission.at(NOW), [PLAIN | {"id": other}]) is not None


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    return path


@st.composite
def files_with_repeats(draw: st.DrawFn) -> list[list[dict[str, object]]]:
    """Draw some files of few ids, which come again at once, later, and with other times."""
    ids = [str(uuid.UUID(int=number)) for number in (1, 2, 1 << 64, (1 << 64) + 1, (1 << 128) - 1)]
    one = st.builds(
        lambda record, number, days: (
            record
            | {
                "id": number,
                "started_at": (datetime(2026, 11, 20) - timedelta(days=days)).isoformat(),
            }
        ),
        records(),
        st.sampled_from(ids),
        st.sampled_from([0, 1, 30, 61, 200, 399]),
    )
    plain = one.map(lambda record: record | {"started_at": f"{record['started_at']}Z"})
    return draw(st.lists(st.lists(one | plain, max_size=8), min_size=1, max_size=3))


@pytest.fixture(params=[1, 3, 1000])
def batches_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for the ids of one result at a time, of some, and of a whole file."""
    monkeypatch.setattr("sonar.records.importing.ROWS_PER_STATEMENT", request.param)
    monkeypatch.setattr("sonar.records.files.LINES", min(request.param, 2))


@examples(30)
@given(files_with_repeats())
def test_each_id_is_stored_once_as_it_came_first(grid, batches_of, tmp_path, given_):
    Transfer.objects.all().delete()
    first: dict[str, dict[str, object]] = {}
    for number, rows in enumerate(given_):
        before = len(first)
        for row in rows:
            first.setdefault(str(row["id"]), row)
        stored = store_file(written(tmp_path / f"{number}.csv", rows), NOW, lambda _: None)
        assert stored == (len(first) - before, len(rows) - len(first) + before)
    found = {
        str(one.id): (one.bytes, one.seconds, one.error, one.started_at.isoformat()[:10])
        for one in Transfer.objects.all()
    }
    assert found == {
        number: (row["bytes"], row["seconds"], row["error"], str(row["started_at"])[:10])
        for number, row in first.items()
    }
