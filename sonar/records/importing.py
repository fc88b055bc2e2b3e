"""Importing a file of results: check all of it first, then store all of it at once."""

import pickle
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from django.db import transaction

from sonar.models import Profile
from sonar.records import files, storing
from sonar.records.admission import PROFILE_FIELDS, Admission
from sonar.records.cells import OtherwiseError
from sonar.records.columns import Batch, Columns
from sonar.records.end_names import ENDS, named_by
from sonar.records.files import BrokenFileError, Line, PlainLines, Progress
from sonar.records.record import Record, WrongRecordError
from sonar.registry.aliases import Unknown
from sonar.results import store
from sonar.results.store import Stored

EXTERNAL = Profile.Origin.EXTERNAL.value
NAMED = 20
# So many ids are looked for at once: the more there are, the less each costs.
ROWS_PER_STATEMENT = 1_000_000


def spooled(spool: IO[bytes]) -> Iterator[tuple[Batch, int]]:
    """Give batches from a temporary file, joined to statements, with where each was read to."""
    spool.seek(0)
    waiting, count, position = list[Batch](), 0, 0
    with suppress(EOFError):
        while True:
            batch, position = pickle.load(spool)  # noqa: S301 - written by `checked`
            waiting.append(batch)
            count += len(batch.rows)
            if count >= ROWS_PER_STATEMENT:
                yield _joined(waiting), position
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting), position


def _joined(batches: list[Batch]) -> Batch:
    rows = np.concatenate([batch.rows for batch in batches])
    errors, accounts, at = list[tuple[str, str]](), list[dict[str, Any]](), 0
    for batch in batches:
        part = rows["account"][at : at + len(batch.rows)]
        part[part >= 0] += len(accounts)
        at += len(batch.rows)
        errors += batch.errors
        accounts += batch.accounts
    return Batch(rows, errors, accounts)


class FaultyFileError(Exception):
    """A file that was not imported: the sentences of its first faults, and how many more.

    ``unknown`` are names of ends in it that stand for nothing.
    """

    def __init__(
        self, sentences: list[str], more: int = 0, unknown: Collection[Unknown] = ()
    ) -> None:
        super().__init__("\n".join(sentences))
        self.sentences, self.more, self.unknown = sentences, more, unknown


@dataclass
class Faults:
    """What is wrong with a file so far: the first sentences, and how many there are."""

    named: list[str] = field(default_factory=list)
    count: int = 0
    unknown: Collection[Unknown] = ()
    """Names of ends that stand for nothing."""

    def add(self, sentences: list[str]) -> None:
        self.count += len(sentences)
        self.named += sentences[: NAMED - len(self.named)]


@dataclass
class Checked:
    """The results of a file in which nothing is wrong, and what they were checked against."""

    admission: Admission
    columns: Columns
    spool: IO[bytes]
    """Batches, each with where its file was read to; 80 bytes a result on disk."""
    count: int = 0


@contextmanager
def checked(path: Path, now: datetime, progress: Progress) -> Iterator[Checked]:
    """Check every line of a file and give what it holds; raise FaultyFileError.

    Takes no lock and stores nothing: a file with a mistake in its last line disturbs nobody.
    """
    faults, position = Faults(), 0

    def note(at: int) -> None:
        nonlocal position
        position = at
        progress(at)

    with TemporaryFile() as spool:
        try:
            batches = (lines for lines in files.batches(path, note) if lines)
            header = next(batches, None)
            names = files.columns(header[0] if isinstance(header, list) else None)
            admission = Admission.at(now)
            faults.unknown = admission.ends.unknown.values()
            sound = Checked(admission, Columns(admission, names), spool)
            for lines in batches:
                if batch := _read(lines, names, sound, faults):
                    sound.count += len(batch.rows)
                    pickle.dump((batch, position), spool)
        except BrokenFileError as error:
            faults.add([str(error)])
        if faults.count:
            more = faults.count - len(faults.named)
            raise FaultyFileError(faults.named, more, faults.unknown)
        yield sound


def _read(
    lines: list[Line] | PlainLines, names: list[str], sound: Checked, faults: Faults
) -> Batch | None:
    """Read a batch of lines, by the column if all are plain; None once there is a fault."""
    if isinstance(lines, PlainLines):
        try:
            return sound.columns.of_cells(lines.cells)
        except OtherwiseError:
            lines = list(lines)
    # Lines without all of their cells name no ends.
    source, destination = map(names.index, ENDS)
    whole = (cells for _, cells in lines if len(cells) == len(names))
    sound.admission.ends.learn(named_by((cells[source], cells[destination]) for cells in whole))
    try:
        return sound.columns.of_lines([cells for _, cells in lines])
    except OtherwiseError:
        records = list[Record]()
    for number, cells in lines:
        try:
            record = files.record(names, cells)
            sound.admission.check(record)
            records.append(record)
        except WrongRecordError as error:
            faults.add([f"line {number}: {sentence}" for _, sentence in error.problems])
    return None if faults.count else sound.columns.of_records(records)


@transaction.atomic
def keep(sound: Checked, now: datetime, progress: Progress, origin: str = EXTERNAL) -> Stored:
    """Store every result of a checked file, or nothing; raise FaultyFileError.

    Results that name no origin get this one; `external` is the same as none. Holds the lock of
    imports until the end of the transaction.
    """
    store.lock_imports()
    admission = Admission.at(now)
    if not admission.has_the_registry_of(sound.admission):
        sentence = "endpoints or size classes changed during the check: import the file again"
        raise FaultyFileError([sentence])
    place = PROFILE_FIELDS.index("origin")
    profiles = [
        admission.profile_of(
            (*fields[:place], origin, *fields[place + 1 :]) if fields[place] == EXTERNAL else fields
        )
        for fields in sound.columns.profiles
    ]
    accepted = duplicates = 0
    for batch, position in spooled(sound.spool):
        stored = storing.store_batch(batch, profiles)
        accepted, duplicates = accepted + stored.accepted, duplicates + stored.duplicates
        progress(position)
    return Stored(accepted, duplicates)
