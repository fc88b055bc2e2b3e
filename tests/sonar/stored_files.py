"""Importing a whole file, for tests of what becomes of its results."""

from datetime import datetime
from pathlib import Path

from sonar.records import importing
from sonar.records.files import Progress
from sonar.results.store import Stored


def store_file(path: Path, now: datetime, progress: Progress) -> Stored:
    """Check a file and store every result of it, or nothing; raise FaultyFileError."""
    with importing.checked(path, now, progress) as sound:
        return importing.keep(sound, now, progress)
