"""Tokens that were asked for, kept until they are renewed: files that only Sonar's user may read.

All workers that share the directory share its tokens: one of them at a time renews a token,
under a lock on a file beside it, and the others take what it got. A token is renewed when a third
of its life is left, or when less is left than the test may take. While it cannot be renewed the
old one is used as long as a test can be expected to end before it does.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from sonar import token_sources
from sonar.movers.base import MoverError, Stopped
from sonar.token_sources.base import CredentialError, Purpose, StorageToken

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
    if not entry.why or now - entry.failed_at >= RETRY_SECONDS:
        entry = _answer(purpose, entry, needed, now)
        write(file, entry)
    if entry.token and (not entry.why or is_usable(entry.token, needed)):
        return UsableToken(entry.token, entry.why)
    raise CredentialError(entry.why)


def _answer(purpose: Purpose, entry: Entry, needed: float, now: float) -> Entry:
    """Ask the source; an endpoint that fails is no trouble while its old token is usable."""
    try:
        token = token_sources.get(purpose.kind).obtain(purpose)
        if token.left(now) > 0:
            return Entry(token)
        return Entry(entry.token, now, "the token given has expired already: compare the clocks")
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
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(file.with_name(f"{file.name}.lock"), flags, 0o600)
    try:
        yield _locked(lock, patient=patient)
    finally:
        os.close(lock)


def _locked(lock: int, *, patient: bool) -> bool:
    """Wait for a lock, which goes with the process that holds it."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not patient:
                return False
            if time.monotonic() > deadline:
                raise CredentialError("another process does not end renewing it") from None
            time.sleep(LOCK_LOOK_SECONDS)
        else:
            return True


def _make(directory: Path) -> None:
    """Make the directory; CredentialError if it cannot be, or if others may look into it."""
    try:
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        mode = directory.stat().st_mode & 0o777
    except OSError as error:
        why = f"SONAR_TOKEN_CACHE_DIR cannot be made: {error.strerror}"
        raise CredentialError(why) from None
    if mode & ~PRIVATE:
        raise CredentialError("SONAR_TOKEN_CACHE_DIR is open to others: its mode must be 0700")


def read(file: Path) -> Entry:
    """Read what is kept; nothing if there is no such file, or it is none of ours."""
    try:
        values = json.loads(file.read_text())
        token = StorageToken(**values["token"]) if values["token"] else None
        return Entry(token, values["failed_at"], values["why"])
    except (OSError, ValueError, TypeError, KeyError):
        return Entry()


def write(file: Path, entry: Entry) -> None:
    """Replace what is kept at once and whole; who may not write there renews for every test."""
    try:
        # Its mode is 0600 from the beginning.
        with NamedTemporaryFile("w", dir=file.parent, prefix=".", delete=False) as fresh:
            json.dump(asdict(entry), fresh)
        Path(fresh.name).replace(file)
    except OSError as error:
        raise CredentialError(f"SONAR_TOKEN_CACHE_DIR: {error.strerror}") from None


def drop(purpose: Purpose, directory: Path) -> None:
    """Forget a token that is refused, so that the next one is asked for; why it failed stays."""
    file = directory / name_of(purpose)
    if not read(file).why:
        file.unlink(missing_ok=True)


def endings_in(directory: Path) -> list[str]:
    """Return the ends of all tokens that are kept, so that texts can be searched for them.

    Without its end, where the signature is, a token is of no use. There may be hundreds, and to
    look for one takes memory by its length.
    """
    try:
        files = sorted(directory.iterdir())
    except OSError:  # a process that uses none: of the web, say
        return []
    entries = map(read, files)
    return [entry.token.text[-ENDING:] for entry in entries if entry.token]


def forget(directory: Path) -> None:
    """Delete what has expired, and what failed a day ago; no lock, as somebody may wait for it."""
    now = time.time()
    for file in directory.glob("*-*"):
        entry = read(file)
        over = entry.token is None or entry.token.left(now) <= 0
        if file.suffix != ".lock" and over and now - entry.failed_at > FORGET_SECONDS:
            file.unlink(missing_ok=True)
