"""Lines of a file that are found by their commas are those that the csv module reads."""

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.records import files, source
from sonar.records.cells import PlainCells, plain
from sonar.records.files import LONGEST_LINE, Line, PlainLines
from tests.properties import examples

CELLS = st.sampled_from(
    ["", "a", "12.5", "b c", "é", '"x"', '"a,b"', '"two\nlines"', '"q""q"', "=1"]
)
LINES = st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=30)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


def batches(path: Path) -> list[list[Line] | PlainLines]:
    return list(files.batches(path, lambda position: None))


def read_by_csv(text: str) -> list[Line]:
    reader, began, found = csv.reader(io.StringIO(text, newline=""), strict=True), 1, list[Line]()
    for cells in reader:
        if cells:
            found.append((began, cells))
        began = reader.line_num + 1
    return found


@examples(200)
@given(LINES, ENDS, st.booleans(), st.booleans(), st.integers(60, 150))
def test_lines_and_their_numbers_are_those_that_csv_reads(
    tmp_path: Path, lines: list[list[str]], end: str, is_packed: bool, is_whole: bool, size: int
) -> None:
    text = end.join(",".join(line) for line in [["id", "source", "destination"], *lines])
    text += end if is_whole else ""
    data = text.encode("utf-8-sig" if size % 2 else "utf-8")
    path = tmp_path / "some.csv"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK", size)
        patch.setattr(source, "_PIECE", 7)
        found = [line for batch in batches(path) for line in batch]
    assert found == read_by_csv(text)


def test_blocks_without_quotes_are_found_by_commas_beside_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "BLOCK", 100)
    monkeypatch.setattr(source, "_PIECE", 20)
    path = tmp_path / "some.csv"
    path.write_text("a,b\n" * 50 + '"c\nd",e\n' + "f,g\n" * 50)
    kinds = [isinstance(batch, PlainLines) for batch in batches(path)]
    assert kinds[:3] == [False, True, False]
    assert kinds[-1]


TEXT = b"one,,three\n4,fuenf,\n"


def test_cells_are_given_by_the_column() -> None:
    for data in (TEXT, TEXT.replace(b"\n", b"\r\n")):
        cells = plain(data, ["a", "b", "c"], LONGEST_LINE)
        assert isinstance(cells, PlainCells)
        assert [cells.texts(name) for name in "abc"] == [["one", "4"], ["", "fuenf"], ["three", ""]]
        texts, codes = cells.distinct("c")
        assert [texts[code] for code in codes] == ["three", ""]
        assert (cells.filled("b"), cells.filled("other")) == (1, 0)
        assert cells.line(1) == {"a": "4", "b": "fuenf", "c": ""}


@pytest.mark.parametrize(
    "data",
    [
        *(b"a,b", b"a,b\nc\n", b"a\nb,c,d\n", b"a,b\n\n", b'a,"b"\n', b"a,\0\n"),
        *(b"a,b\r\nc,d\n", b"a\r,b\n", "a,é\n".encode(), b"a," + b"x" * LONGEST_LINE + b"\n"),
    ],
)
def test_other_text_is_not_plain(data: bytes) -> None:
    assert plain(data, ["a", "b"], LONGEST_LINE) is None
