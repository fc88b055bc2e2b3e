"""The content of test files: the same for the same size, incompressible, checksum known."""

import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from sonar.movers import content
from sonar.movers.content import CHUNK_BYTES, TestFile, adler32

SIZES = (1, 1000, CHUNK_BYTES, CHUNK_BYTES + 1, 3_000_000)


def whole(file: TestFile, piece_bytes: int = 65_536) -> bytes:
    pieces = []
    while piece := file.read(piece_bytes):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("size", SIZES)
def test_a_file_has_its_size_and_its_checksum(size: int):
    data = whole(TestFile(size))
    assert len(data) == size == TestFile(size).len
    assert adler32(size) == f"{zlib.adler32(data):08x}"


def test_the_content_does_not_depend_on_how_it_is_read():
    assert whole(TestFile(3_000_000), 1_000) == whole(TestFile(3_000_000), -1)


def test_files_of_two_sizes_differ():
    assert whole(TestFile(2000))[:1000] != whole(TestFile(1000))


def test_it_cannot_be_compressed():
    data = whole(TestFile(3_000_000))
    assert len(zlib.compress(data)) > len(data)


def test_it_can_be_sent_again_from_its_beginning_only():
    file = TestFile(3000)
    first = file.read(1000)
    assert file.tell() == 1000
    assert file.seek(0) == 0
    assert file.read(1000) == first
    with pytest.raises(OSError, match="only be read from its beginning"):
        file.seek(5)


def test_threads_that_want_one_checksum_work_it_out_once(monkeypatch):
    passes = []

    class Counted(TestFile):
        def __init__(self, size_bytes: int) -> None:
            passes.append(size_bytes)
            super().__init__(size_bytes)

    monkeypatch.setattr(content, "TestFile", Counted)
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(adler32, [20_000_003] * 8))
    assert len(found) == 1
    assert passes == [20_000_003]
