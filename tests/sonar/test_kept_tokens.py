"""Tokens where they cannot be kept, and what is left of them by a process that was killed."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.utils import timezone

from sonar import tasks
from sonar.credentials import cache, sources
from sonar.credentials.cache import Entry
from sonar.credentials.sources.base import Purpose, Right, SecretFile, StorageToken
from sonar.models import Credential, CredentialState
from sonar.movers.base import Where
from sonar.movers.catalogue import kept
from sonar.work import credential_checks, transfer_request
from tests.credentials import bind
from tests.small_disks import SmallDisk, small_disk
from tests.sonar.world import endpoint, in_threads

NO_ROOM = "tokens cannot be written to SONAR_TOKEN_CACHE_DIR: No space left on device"
FOR_ALL = "; each process requests its own tokens"


@dataclass
class Source:
    """Gives a token of an hour each time, and counts."""

    tokens: list[str] = field(default_factory=list)
    pause: threading.Event | None = None

    def obtain(self, purpose: Purpose) -> StorageToken:
        if self.pause:
            self.pause.wait(120)
        now = time.time()
        self.tokens.append(f"{'x' * 600}-token-{len(self.tokens)}")
        return StorageToken(self.tokens[-1], now, now + 3600)


@pytest.fixture(autouse=True)
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    monkeypatch.setattr(sources, "get", lambda _kind: made)
    monkeypatch.setattr(cache, "_unwritten", {})
    return made


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def directory(disk: SmallDisk) -> Path:
    return disk.path / "cache"


def purpose(name: str = "grid") -> Purpose:
    url = "https://se.example/x"
    return Purpose(name, "client_credentials", SecretFile(Path(name)), Where.SOURCE, url, Right.OWN)


def usable(directory: Path, name: str = "grid") -> str:
    return cache.obtain(purpose(name), directory, 60).token.text


def file_of(directory: Path, name: str = "grid") -> Path:
    return directory / cache.name_of(purpose(name))


def age(directory: Path) -> None:
    """Let a token need to be renewed."""
    entry = cache.read(file_of(directory))
    assert entry.token
    past = replace(entry.token, began_at=time.time() - 3000, expires_at=time.time() + 600)
    cache.write(file_of(directory), replace(entry, token=past))


def parts(directory: Path) -> list[str]:
    return [file.name for file in directory.iterdir() if file.name.startswith(".")]


# A full disk


def test_on_a_full_disk_each_process_gets_a_token_and_uses_it_until_it_ends(
    disk, directory, source, caplog
):
    first = usable(directory)
    age(directory)
    disk.fill()
    second = usable(directory)
    assert {usable(directory) for _ in range(5)} == {second} != {first}
    other = usable(directory, "other")
    assert usable(directory, "other") == other
    assert len(source.tokens) == 3
    assert [record.getMessage() for record in caplog.records] == [NO_ROOM + FOR_ALL]
    assert parts(directory) == []
    assert cache.problem(directory) == NO_ROOM + FOR_ALL
    # A server may repeat these, too.
    assert {text[-256:] for text in (second, other)} <= set(cache.endings_in(directory))
    disk.empty()
    assert cache.problem(directory) == ""
    assert usable(directory) == second
    age(directory)
    third = usable(directory)
    assert file_of(directory).is_file()
    assert {text[-256:] for text in (third, other)} == set(cache.endings_in(directory))
    assert cache._unwritten.keys() == {file_of(directory, "other")}


def test_threads_of_a_process_ask_once_though_nothing_can_be_locked(tmp_path, source):
    nowhere = tmp_path / "file" / "cache"
    (tmp_path / "file").touch()
    source.pause = threading.Event()
    tokens: list[str] = []
    threading.Timer(0.1, source.pause.set).start()
    in_threads(8, lambda: tokens.append(usable(nowhere)))
    assert tokens == source.tokens * 8
    assert len(source.tokens) == 1


def test_a_disk_that_is_only_read_gives_the_tokens_on_it_and_stops_nothing(disk, directory, source):
    first = usable(directory)
    disk.refuse_writes()
    assert usable(directory) == first
    age(directory)
    assert usable(directory) == source.tokens[1]
    assert usable(directory, "other") == source.tokens[2]
    assert "Read-only file system" in cache.problem(directory)
    cache.drop(purpose(), directory)
    assert usable(directory) == source.tokens[3]
    cache.forget(directory, {"nobody"})
    assert cache._unwritten == {}


def test_a_failure_that_cannot_be_written_is_remembered_as_well(tmp_path, monkeypatch, source):
    nowhere = tmp_path / "file" / "cache"
    (tmp_path / "file").touch()
    monkeypatch.setattr(source, "obtain", lambda _: StorageToken("x", 0, 1))
    for _ in range(2):
        with pytest.raises(sources.base.CredentialError, match="new token has already expired"):
            usable(nowhere)
        monkeypatch.setattr(source, "obtain", lambda _: pytest.fail("asked again at once"))


@pytest.mark.django_db
def test_operators_are_told_of_a_full_disk_until_it_has_room_and_tests_run(
    disk, directory, settings, tmp_path
):
    settings.SONAR_TOKEN_CACHE_DIR = directory
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    end = endpoint("RAL", base_url="https://se.example/x")
    bind(end, "iam")
    Credential.objects.update(kind="client_credentials", issuer="https://iam.example")
    credential_checks.check(timezone.now(), 10)
    assert not CredentialState.objects.exists()
    disk.fill()
    credential_checks.check(timezone.now(), 10)
    state = CredentialState.objects.get()
    assert (state.sentence, state.holds) == (NO_ROOM + FOR_ALL, False)
    end.refresh_from_db()
    assert transfer_request.end_at(Where.SOURCE, end, "f", kept("http-tpc")).token
    credential_checks.check(timezone.now(), 10)
    assert CredentialState.objects.get().sentence == NO_ROOM + FOR_ALL
    disk.empty()
    credential_checks.check(timezone.now(), 10)
    assert not CredentialState.objects.exists()


# A process that is killed


MIDWAY = """
import sys, time
from pathlib import Path
from sonar.credentials import cache
from sonar.credentials.sources.base import StorageToken

def wait(*_):
    print("midway", flush=True)
    time.sleep(300)

Path.replace = wait
cache.write(Path(sys.argv[1]), cache.Entry(StorageToken("a-whole-token", 0, 9e9)))
"""


@contextmanager
def writing(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has written a token, and not yet put it in its place."""
    command = [sys.executable, "-c", MIDWAY, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "midway\n"
            (part,) = [one for one in file.parent.iterdir() if one.name.startswith(".")]
            assert "a-whole-token" in part.read_text()
            assert part.stat().st_mode & 0o777 == 0o600
            yield process
        finally:
            process.kill()


@pytest.fixture
def kept_in(tmp_path: Path) -> Path:
    made = tmp_path / "cache"
    made.mkdir(mode=0o700)
    return made


def test_what_a_killed_process_left_is_gone_once_the_token_is_renewed(kept_in):
    with writing(file_of(kept_in)) as process:
        process.kill()
        process.wait()
        assert parts(kept_in)
        usable(kept_in)
        assert parts(kept_in) == []


def test_what_a_killed_process_left_goes_when_a_worker_starts_and_what_is_written_stays(
    kept_in, settings, monkeypatch
):
    settings.SONAR_TOKEN_CACHE_DIR = kept_in
    monkeypatch.setattr(tasks.pulse, "start", lambda *_: None)
    monkeypatch.setattr(tasks.cancellations, "start", lambda: None)
    with writing(file_of(kept_in)) as process:
        start_worker()
        assert len(parts(kept_in)) == 1
        process.kill()
        process.wait()
        start_worker()
        assert parts(kept_in) == []


def start_worker() -> None:
    queues = SimpleNamespace(consume_from={"transfers": None})
    app = SimpleNamespace(amqp=SimpleNamespace(queues=queues))
    tasks.worker_lives(sender=SimpleNamespace(hostname="w@here", app=app))


def test_a_failure_midway_leaves_nothing(kept_in, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    usable(kept_in)
    before = file_of(kept_in).read_text()
    age(kept_in)
    aged = file_of(kept_in).read_text()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        usable(kept_in)
    assert parts(kept_in) == []
    assert file_of(kept_in).read_text() == aged != before


def test_files_of_versions_that_took_no_lock_and_of_credentials_of_before_are_deleted(kept_in):
    usable(kept_in)
    usable(kept_in, "gone")
    usable(kept_in, "gone-too")
    old, fresh = kept_in / ".x_abc123", kept_in / ".y_abc123"
    for file in (old, fresh):
        file.write_text("a-whole-token")
    os.utime(old, (0, time.time() - 60))
    locks = {file.name for file in kept_in.iterdir() if file.suffix == ".lock"}
    cache.forget(kept_in, {"grid", "new"})
    left = {file.name for file in kept_in.iterdir()}
    assert left == {file_of(kept_in).name, fresh.name} | locks
    assert cache.read(file_of(kept_in)) != Entry()
