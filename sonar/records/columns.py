"""Checking result records column by column, many at a time.

A batch in which every cell is written plainly (as export_results writes it) and is right takes
a fifth of the time that its rows take one by one. Of any other batch this says nothing but that
it is another one: its rows are then read by sonar.records.record, which also accepts other
ways to write a value, and has the sentences about what is wrong.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sonar.notation import csv_text
from sonar.notation.units import FASTEST, LONGEST_SECONDS
from sonar.records.admission import PROFILE_FIELDS, Admission, ProfileFields, profile_fields_of
from sonar.records.cells import Cells, OtherwiseError, ReadCells, Texts, require
from sonar.records.end_names import ENDS
from sonar.records.record import ACCOUNT, Record, WrongRecordError, from_text

EPOCH_2000, MICROSECOND = datetime(2000, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
# A result that is fine, with names as ids: what importing keeps of it until it is stored.
ROW = np.dtype(
    [
        ("high", ">u8"),
        ("low", ">u8"),
        ("source", "<i8"),
        ("destination", "<i8"),
        ("size_class", "<i8"),
        ("started", "<i8"),  # microseconds since 2000, as PostgreSQL counts
        ("seconds", "<f8"),
        ("bytes", "<i8"),
        ("profile", "<u2"),
        ("failed", "?"),
        ("account", "<i4"),  # which of the batch's accounts; -1 for none
    ]
)
NOTHING = -1
Rows = NDArray[np.void]

_NUMBERS = re.compile(r"(?:\d{1,15}(?:\.\d{1,25})?(?:e-?\d{1,2})?,)+", re.ASCII)
_WHOLE = re.compile(r"(?:[1-9]\d{0,17},)+", re.ASCII)
_DASHES = [8, 13, 18, 23]
_DIGITS = [place for place in range(36) if place not in _DASHES]
_NIBBLES = np.full(256, 255, np.uint8)
for _place, _digit in enumerate(b"0123456789abcdef"):
    _NIBBLES[[_digit, ord(chr(_digit).upper())]] = _place
_LENGTHS_OF_TIMES = (len("2026-11-20T03:00:00Z"), len("2026-11-20T03:00:00.000000Z"))
_TIME = np.frombuffer(b"0000-00-00T00:00:00.000000", np.uint8)
_IS_DIGIT = np.equal(_TIME, ord("0"))


class Batch(NamedTuple):
    """Sound results: one row each; of those that failed why and where, in their order."""

    rows: Rows
    errors: list[tuple[str, str]]
    accounts: list[dict[str, Any]]
    """Fields that only some results have (``Record.account``), by their number in a row."""


class Columns:
    """Turns lines of a file, or records, into rows; numbers the profiles that it meets."""

    def __init__(self, admission: Admission, names: Sequence[str]) -> None:
        self.admission = admission
        self.profiles: list[ProfileFields] = []
        self._names = names
        self._numbers: dict[ProfileFields, int] = {}
        self._oldest, self._newest = (
            (moment - EPOCH_2000) // MICROSECOND for moment in (admission.oldest, admission.newest)
        )

    def of_lines(self, lines: Sequence[Sequence[str]]) -> Batch:
        """Check the cells of some lines, whose ends are learned; raises OtherwiseError."""
        return self.of_cells(ReadCells(lines, self._names))

    def of_cells(self, cells: Cells) -> Batch:
        """Check cells by the column; raises OtherwiseError."""
        rows = np.zeros(len(cells), ROW)
        ids = uuids(cells.letters("id", (36,)))
        rows["high"], rows["low"] = ids.T
        if self.admission.open_probes:
            packed = ids.astype(">u8").tobytes()
            in_file = {packed[at : at + 16] for at in range(0, len(packed), 16)}
            require(in_file.isdisjoint(probe.bytes for probe in self.admission.open_probes))
        try:
            for end in ENDS:
                texts, codes = cells.distinct(end)
                rows[end] = np.array([self.admission.ends.ids[name] for name in texts])[codes]
        except KeyError as error:
            raise OtherwiseError from error
        require((rows["source"] != rows["destination"]).all())
        rows["started"] = moments(cells.letters("started_at", _LENGTHS_OF_TIMES))
        rows["seconds"] = _read(cells.texts("seconds"), _NUMBERS, float)
        rows["bytes"] = np.array(_read(cells.texts("bytes"), _WHOLE, int), np.int64)
        states, codes = cells.distinct("state")
        require({"done", "failed"}.issuperset(states))
        rows["failed"] = np.array([state == "failed" for state in states])[codes]
        started, seconds, done = rows["started"], rows["seconds"], ~rows["failed"]
        require((self._oldest <= started).all() and (started <= self._newest).all())
        require((seconds <= LONGEST_SECONDS).all())
        require((seconds[done] > 0).all())
        require((rows["bytes"][done] / seconds[done] <= FASTEST).all())
        require(self.admission.size_ids)
        positions = np.searchsorted(self.admission.size_begins, rows["bytes"], "right") - 1
        rows["size_class"] = np.array(self.admission.size_ids, np.int64)[positions]
        failed = np.flatnonzero(rows["failed"]).tolist()
        errors = errors_of(cells, failed)
        require(not any(cells.filled(name) for name in ACCOUNT))
        rows["account"] = NOTHING
        rows["profile"] = self._profiles(cells)
        ends = zip(*(cells.of_lines(name, failed) for name in ENDS), strict=True)
        return Batch(rows, self._for_all(errors, ends), [])

    def of_records(self, records: Sequence[Record]) -> Batch:
        """Turn records that were checked one by one into rows."""
        rows, accounts = np.zeros(len(records), ROW), list[dict[str, Any]]()
        for number, record in enumerate(records):
            if record.account:
                accounts.append(record.account)
            rows[number] = (
                *divmod(record.id.int, 1 << 64),
                self.admission.ends.ids[record.source],
                self.admission.ends.ids[record.destination],
                self.admission.size_class_of(record.bytes),
                (record.started_at - EPOCH_2000) // MICROSECOND,
                record.seconds,
                record.bytes,
                self._number(profile_fields_of(record)),
                record.state == "failed",
                len(accounts) - 1 if record.account else NOTHING,
            )
        failed = [record for record in records if record.state == "failed"]
        errors = [(record.error, record.error_where) for record in failed]
        ends = ((record.source, record.destination) for record in failed)
        return Batch(rows, self._for_all(errors, ends), accounts)

    def _for_all(
        self, errors: Iterable[tuple[str, str]], ends: Iterable[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        return [
            (self.admission.error_for_all(error, *link), where)
            for (error, where), link in zip(errors, ends, strict=True)
        ]

    def _profiles(self, cells: Cells) -> NDArray[np.int64]:
        # Most of these columns hold the same in every line of a file.
        kinds = np.zeros(len(cells), np.int64)
        for name in PROFILE_FIELDS:
            texts, codes = cells.distinct(name)
            if len(texts) > 1:
                _, kinds = np.unique(kinds * len(texts) + codes, return_inverse=True)
        _, first, kinds = np.unique(kinds, return_index=True, return_inverse=True)
        profiles = []
        for number in first.tolist():
            try:
                record = from_text(cells.line(number))
                self.admission.check(record)
            except WrongRecordError as error:
                raise OtherwiseError from error
            profiles.append(self._number(profile_fields_of(record)))
        return np.array(profiles, np.int64)[kinds]

    def _number(self, fields: ProfileFields) -> int:
        if fields not in self._numbers:
            self._numbers[fields] = len(self.profiles)
            self.profiles.append(fields)
        return self._numbers[fields]


def uuids(table: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the upper and the lower half of each, which are written with their four dashes."""
    require((table[:, _DASHES] == ord("-")).all())
    nibbles = _NIBBLES[table[:, _DIGITS]]
    require((nibbles < 16).all())
    packed = nibbles[:, 0::2] << 4 | nibbles[:, 1::2]
    return np.ascontiguousarray(packed).view(">u8")


def moments(table: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return microseconds since 2000 of times in UTC, with or without microseconds."""
    require((table[:, -1] == ord("Z")).all())
    table = np.ascontiguousarray(table[:, :-1])
    width = table.shape[1]
    digits = _IS_DIGIT[:width]
    require((table[:, ~digits] == _TIME[:width][~digits]).all())
    figures = table[:, digits]
    require((figures >= ord("0")).all() and (figures <= ord("9")).all())
    try:
        times = table.view(f"S{width}").ravel().astype("M8[us]")
    except ValueError as error:  # 30 February
        raise OtherwiseError from error
    return (times - np.datetime64("2000-01-01", "us")).astype(np.int64)


def _read(texts: Texts, written: re.Pattern[str], kind: Callable[[str], float]) -> list[float]:
    require(written.fullmatch(",".join(texts) + ","))
    try:
        return [kind(text) for text in texts]
    except ValueError as error:  # one cell with two numbers and a comma between them
        raise OtherwiseError from error


def errors_of(cells: Cells, failed: list[int]) -> list[tuple[str, str]]:
    """Return why and where those failed that failed; no other may say so."""
    require(len(failed) == cells.filled("error") == cells.filled("error_where"))
    errors, wheres = (cells.of_lines(name, failed) for name in ("error", "error_where"))
    failures = list(zip(map(csv_text.unquoted, errors), wheres, strict=True))
    for error, where in failures:
        require(0 < len(error) <= 10_000 and "\0" not in error)
        require(where in {"source", "destination", "transfer", "control"})
    return failures
