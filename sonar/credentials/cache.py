"""Tokens that were asked for, kept until they are renewed: files that only Sonar's user may read.

All workers that share the directory share its tokens: one of them at a time renews a token,
under a lock on a file beside it, and the others take what it got. A token is renewed when a third
of its life is left, or when less is left than the test may take. While it cannot be renewed the
old one is used as long as a test can be expected to end before it does.

Where a file cannot be written (a full disk, one that is only read, another's directory) each
process asks for tokens of its own and keeps them in memory.
"""

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile

from sonar.credentials import sources
from sonar.credentials.sources.base import CredentialError, Purpose, StorageToken
from sonar.credentials.sources.unverified import LONGEST_TOKEN
from sonar.movers.base import MoverError, Stopped
from sonar.notation import whole_files

# Of its life, what is left when a token is renewed.
RENEW_AT = 1 / 3
# And what is left when it is not used any more for tests that might take longer than it lives.
LAST_SHARE = 1 / 6
# A token whose whole life is shorter than a test may take is not renewed for every one of them.
YOUNG_SECONDS = 60
# After a failure nobody asks again for so long.
RETRY_SECONDS = 30
# Longer than asking an issuer takes: discovery and request, 15 s each.
LOCK_SECONDS = 40
LOCK_LOOK_SECONDS = 0.05
PRIVATE = 0o700
FORGET_SECONDS = 86_400
ENDING = 256

EXPIRED = (
    "the new token has already expired: compare the clocks of this machine and of the server that "
    "issued the token"
)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """What is in a file: a token, and since when and why it could not be renewed."""

    token: StorageToken | None = None
    failed_at: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class UsableToken:
    """A token to use, and why it could not be renewed though it is time; empty if all is well."""

    token: StorageToken
    trouble: str = ""


def obtain(purpose: Purpose, directory: Path, needed: float) -> UsableToken:
    """Return a token that counts for so many seconds more, if such tokens are to be had.

    Raises CredentialError if none is, MoverError where the endpoint that gives it failed.
    """
    file = directory / name_of(purpose)
    entry = read(file)
    if entry.token and is_fresh(entry.token, needed):
        return UsableToken(entry.token)
    usable = is_usable(entry.token, needed)
    with _one_at_a_time(file, patient=not usable) as alone:
        entry = read(file)
        if entry.token and (is_fresh(entry.token, needed) or not alone):
            return UsableToken(entry.token, entry.why)
        return _renewed(purpose, file, entry, needed)


def name_of(purpose: Purpose) -> str:
    """Name the file of a token: another one for whatever another token would serve."""
    facts = json.dumps([asdict(purpose) | {"where": ""}], default=str, sort_keys=True)
    return f"{purpose.name}-{sha256(facts.encode()).hexdigest()[:24]}"


def is_fresh(token: StorageToken | None, needed: float) -> bool:
    """Say whether a token need not be renewed for a use of so many seconds."""
    if token is None:
        return False
    now = time.time()
    if token.began_at > now:  # the clock was ahead, and may have said so of its end, too
        return False
    left, life = token.left(now), token.life()
    young = now - token.began_at < min(YOUNG_SECONDS, life / 10)
    return left > 0 and left > life * RENEW_AT and (young or left >= needed)


def is_usable(token: StorageToken | None, needed: float) -> bool:
    """Say whether a token may be used while there is no other."""
    if token is None:
        return False
    life = token.life()
    least = needed if needed <= life * RENEW_AT else life * LAST_SHARE
    return token.left(time.time()) >= least


def _renewed(purpose: Purpose, file: Path, entry: Entry, needed: float) -> UsableToken:
    """Ask for a token, or note why there is none; the old one is returned while it is usable."""
    now = time.time()
    if not entry.why or abs(now - entry.failed_at) >= RETRY_SECONDS:
        entry = _answer(purpose, entry, needed, now)
        write(file, entry)
    if entry.token and (not entry.why or is_usable(entry.token, needed)):
        return UsableToken(entry.token, entry.why)
    raise CredentialError(entry.why)


def _answer(purpose: Purpose, entry: Entry, needed: float, now: float) -> Entry:
    """Ask the source; an endpoint that fails is no trouble while its old token is usable."""
    try:
        token = sources.get(purpose.kind).obtain(purpose)
        if token.left(now) > 0:
            return Entry(token)
        return Entry(entry.token, now, EXPIRED)
    except CredentialError as error:
        return Entry(entry.token, now, str(error))
    except Stopped:
        raise
    except MoverError:
        if entry.token and is_usable(entry.token, needed):
            return Entry(entry.token)
        raise


@contextmanager
def _one_at_a_time(file: Path, *, patient: bool) -> Iterator[bool]:
    """Hold the lock of a token, and say so; who is not patient goes on without it."""
    _make(file.parent)
    deadline = time.monotonic() + (LOCK_SECONDS if patient else 0)
    turn = _turns.setdefault(file, threading.Lock())
    if not turn.acquire(timeout=LOCK_SECONDS if patient else 0):
        yield _refused(patient=patient)
        return
    try:
        with _lock_file(file) as lock:
            alone = lock is None or _locked(lock, deadline)
            yield alone or _refused(patient=patient)
    finally:
        turn.release()


# The threads of this process take turns, also where there can be no lock between processes.
_turns: dict[Path, threading.Lock] = {}


@contextmanager
def _lock_file(file: Path) -> Iterator[int | None]:
    """Open what processes lock; None where it cannot be made."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(file.with_name(f"{file.name}.lock"), flags, 0o600)
    except OSError:
        yield None
        return
    try:
        yield lock
    finally:
        os.close(lock)


def _locked(lock: int, deadline: float) -> bool:
    """Wait until a moment for a lock, which goes with the process that holds it."""
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOCK_LOOK_SECONDS)
        else:
            return True


def _refused(*, patient: bool) -> bool:
    if patient:
        raise CredentialError("another process is still renewing the token")
    return False


def _make(directory: Path) -> None:
    """Make the directory if that can be; CredentialError if others may look into it."""
    with suppress(OSError):  # what cannot be written there is kept in memory
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if directory.stat().st_mode & 0o777 & ~PRIVATE:
            why = "SONAR_TOKEN_CACHE_DIR is accessible to other users: its mode must be 0700"
            raise CredentialError(why)


def read(file: Path) -> Entry:
    """Read what is kept; nothing if there is no such file, or it is none of ours."""
    return _unwritten.get(file) or _written(file)


def _written(file: Path) -> Entry:
    try:
        values = json.loads(file.read_text())
        token = StorageToken(**values["token"]) if values["token"] else None
        return Entry(token, values["failed_at"], values["why"])
    except (OSError, ValueError, TypeError, KeyError):
        return Entry()


def write(file: Path, entry: Entry) -> None:
    """Replace what is kept at once and whole; where that cannot be, this process remembers it."""
    try:
        with whole_files.written(file) as fresh:
            fresh.write(json.dumps(asdict(entry)).encode())
    except OSError as error:
        if not _unwritten:
            log.warning(_sentence(error))
        _unwritten[file] = entry
    else:
        _unwritten.pop(file, None)


# What could not be written, by the files where it belongs.
_unwritten: dict[Path, Entry] = {}


def problem(directory: Path) -> str:
    """Say why tokens cannot be kept; empty if they can. CredentialError if others may look."""
    _make(directory)
    try:
        with TemporaryFile(dir=directory) as file:
            file.write(bytes(LONGEST_TOKEN))
            file.flush()
    except OSError as error:
        return _sentence(error)
    return ""


def _sentence(error: OSError) -> str:
    why = f"tokens cannot be written to SONAR_TOKEN_CACHE_DIR: {error.strerror}"
    return f"{why}; each process requests its own tokens"


def drop(purpose: Purpose, directory: Path) -> None:
    """Forget a token that is refused, so that the next one is asked for; why it failed stays."""
    file = directory / name_of(purpose)
    if not read(file).why:
        write(file, Entry())


def endings_in(directory: Path) -> list[str]:
    """Return the ends of all tokens that are kept, so that texts can be searched for them.

    Without its end, where the signature is, a token is of no use. There may be hundreds, and to
    look for one takes memory by its length.
    """
    entries = [entry for file, entry in [*_unwritten.items()] if file.parent == directory]
    with suppress(OSError):  # a process that uses none: of the web, say
        entries += map(_written, sorted(directory.iterdir()))
    return [entry.token.text[-ENDING:] for entry in entries if entry.token]


def forget(directory: Path, credentials: Collection[str] | None = None) -> None:
    """Delete what has expired, what failed a day ago, and what is of none of these credentials.

    And what was left by processes that were killed. No lock, as somebody may wait for it.
    """
    now = time.time()
    with suppress(OSError):  # who looks after credentials says that it cannot be written
        whole_files.forget(directory)
        for file in directory.iterdir():
            if _is_over(file, now, credentials):
                file.unlink(missing_ok=True)
    for file in [*_unwritten]:
        if file.parent == directory and _is_over(file, now, credentials):
            _unwritten.pop(file, None)


def _is_over(file: Path, now: float, credentials: Collection[str] | None) -> bool:
    """Say whether nobody needs a file any more: a token of none, or one that has ended."""
    if file.name.startswith("."):
        return _is_old_part(file, now)
    name, dash, _ = file.name.rpartition("-")
    if not dash or file.suffix == ".lock":
        return False
    if credentials is not None and name not in credentials:
        return True
    entry = read(file)
    over = entry.token is None or entry.token.left(now) <= 0
    return over and now - entry.failed_at > FORGET_SECONDS


def _is_old_part(file: Path, now: float) -> bool:
    """Say whether a version of Sonar that took no lock for it was killed while it wrote this."""
    return file.suffix != whole_files.SUFFIX and now - file.stat().st_mtime > LOCK_SECONDS
