"""Files that are written whole or not at all: keys and exports, also where a process was killed."""

import fcntl
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sonar.notation import whole_files
from sonar.sandbox import home
from sonar.sandbox.processes import StartError
from tests.small_disks import SmallDisk, small_disk
from tests.sonar.test_import_results import line, write


@pytest.fixture
def disk(tmp_path: Path):
    with small_disk(tmp_path / "disk") as made:
        yield made


def put(path: Path, content: bytes) -> None:
    with whole_files.written(path) as file:
        file.write(content)


def names(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def test_a_file_is_its_owners_alone_and_changes_at_once_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    put(path, b"first")
    with suppress(ZeroDivisionError), whole_files.written(path) as file:
        file.write(b"second")
        file.flush()
        assert path.read_bytes() == b"first"
        raise ZeroDivisionError
    assert (names(tmp_path), path.read_bytes()) == (["file"], b"first")
    assert path.stat().st_mode & 0o777 == 0o600


def test_of_two_that_write_a_file_one_waits_for_the_other(tmp_path, monkeypatch):
    path, comes = tmp_path / "file", threading.Event()

    def flock(*arguments: object) -> None:
        comes.set()
        real(*arguments)

    real = fcntl.flock
    with ThreadPoolExecutor() as threads, whole_files.written(path) as file:
        monkeypatch.setattr(fcntl, "flock", flock)
        other = threads.submit(put, path, b"of the other")
        assert comes.wait(120)
        file.write(b"of the first")
        whole_files.forget(tmp_path)
        assert names(tmp_path) == [".file.part"]
    other.result()
    assert (names(tmp_path), path.read_bytes()) == (["file"], b"of the other")


def test_many_that_write_a_file_leave_one_that_is_whole(tmp_path):
    path = tmp_path / "file"
    with ThreadPoolExecutor(12) as threads:
        contents = [bytes([65 + number]) * 100_000 for number in range(24)]
        writing = [threads.submit(put, path, content) for content in contents]
        while not all(thread.done() for thread in writing):
            whole_files.forget(tmp_path)
    assert [thread.result() for thread in writing] == [None] * 24
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() in contents


def test_what_a_killed_process_left_is_overwritten(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from sonar.notation import whole_files\n"
        "with whole_files.written(Path(sys.argv[1])) as file:\n"
        "    file.write(b'left' * 99); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert names(tmp_path) == [".file.part"]
    put(tmp_path / "file", b"next")
    assert (names(tmp_path), (tmp_path / "file").read_bytes()) == (["file"], b"next")


def test_no_link_is_followed_to_a_file_of_somebody_else(tmp_path):
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / ".file.part").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="symbolic links"):
        put(tmp_path / "file", b"ours")
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_a_key_that_found_no_room_is_made_by_the_next_start(disk: SmallDisk):
    disk.fill()
    with pytest.raises(StartError, match=r"Cannot write .*secret-key: No space left on device"):
        home.make(disk.path / "home")
    assert names(disk.path / "home") == ["log"]
    disk.empty()
    home.make(disk.path / "home")
    key = (disk.path / "home" / "secret-key").read_text()
    assert len(key) > 50
    home.make(disk.path / "home")
    assert (disk.path / "home" / "secret-key").read_text() == key


def test_an_empty_key_of_before_is_made_anew(tmp_path):
    (tmp_path / "secret-key").touch()
    home.make(tmp_path)
    assert len((tmp_path / "secret-key").read_text()) > 50


@pytest.mark.django_db
def test_an_export_that_finds_no_room_leaves_what_there_was(disk: SmallDisk):
    path = disk.path / "out.csv"
    path.write_text("of before")
    disk.fill()
    with pytest.raises(CommandError, match=r"Cannot write .*out\.csv: No space left on device"):
        call_command("export_results", str(path), stdout=StringIO())
    assert names(disk.path) == ["filler", "out.csv"]
    assert path.read_text() == "of before"


@pytest.mark.django_db
def test_an_import_that_finds_no_room_for_its_temporary_file_says_so(
    disk: SmallDisk, tmp_path, grid, at_four, monkeypatch
):
    path = write(tmp_path / "in.csv", [line(1)])
    monkeypatch.setattr(tempfile, "tempdir", str(disk.path))
    disk.fill()
    for options in ([], ["--check"]):
        errors = StringIO()
        with pytest.raises(CommandError, match=r"\(see above\): .*in.csv"):
            call_command("import_results", str(path), *options, stdout=StringIO(), stderr=errors)
        assert errors.getvalue() == (
            f"{path}: nothing was stored. {disk.path}: No space left on device.\n"
        )
    disk.empty()
    call_command("import_results", str(path), stdout=StringIO())
