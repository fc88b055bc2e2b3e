"""Importing a file of results: check all of it first, then store all of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.db import transaction

from sonar import results
from sonar.records import files
from sonar.records.admission import Known
from sonar.records.files import BrokenFileError, Progress
from sonar.records.record import WrongRecordError
from sonar.results import Result, Stored

NAMED = 20


class FaultyFileError(Exception):
    """A file that was not imported: the sentences of its first faults, and how many more."""

    def __init__(self, sentences: list[str], more: int = 0) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences
        self.more = more


def check(path: Path, now: datetime, progress: Progress) -> int:
    """Check every line of a file and return how many results it has; raise FaultyFileError.

    Takes no lock and stores nothing: a file with a mistake in its last line disturbs nobody.
    """
    known = Known.at(now)
    sound = faults = 0
    named: list[str] = []
    try:
        lines = files.lines(path, progress)
        names = files.columns(next(lines, None))
        for number, cells in lines:
            try:
                known.check(files.record(names, cells))
                sound += 1
            except WrongRecordError as error:
                faults += len(error.problems)
                named += _named(number, error) if len(named) < NAMED else []
    except BrokenFileError as error:
        faults += 1
        named.append(str(error))
    if faults:
        raise FaultyFileError(named[:NAMED], faults - len(named[:NAMED]))
    return sound


def _named(number: int, error: WrongRecordError) -> list[str]:
    return [f"line {number}: {sentence}" for _, sentence in error.problems]


@transaction.atomic
def store(path: Path, now: datetime, progress: Progress) -> Stored:
    """Store every result of a checked file, or nothing; raise FaultyFileError.

    Holds the lock of imports until the end of the transaction.
    """
    results.lock_imports()
    try:
        return results.store(_results(path, now, progress))
    except BrokenFileError as error:
        raise FaultyFileError([str(error)]) from error


def _results(path: Path, now: datetime, progress: Progress) -> Iterator[Result]:
    known = Known.at(now)
    lines = files.lines(path, progress)
    names = files.columns(next(lines, None))
    for number, cells in lines:
        try:
            record = files.record(names, cells)
            known.check(record)
        except WrongRecordError as error:
            raise FaultyFileError(_named(number, error)) from error
        yield known.result(record)
