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
from sonar.records.end_names import ENDS
from sonar.records.record import ACCOUNT, FIELDS, Record, WrongRecordError, from_text

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
Texts = Sequence[str]

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
    """What some results say of themselves (``Record.account``), by their number in a row."""


class OtherwiseError(Exception):
    """A batch that is not plain, or not right: to know which, read its rows."""


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
        require(set(map(len, lines)) == {len(self._names)})
        cells = dict(zip(self._names, zip(*lines, strict=True), strict=True))
        nothing = ("",) * len(lines)
        texts: dict[str, Texts] = {name: cells.get(name, nothing) for name in FIELDS}
        rows = np.zeros(len(lines), ROW)
        ids = uuids(texts["id"])
        rows["high"], rows["low"] = ids.T
        self._see_that_none_is_open(ids)
        self._ends(rows, texts)
        rows["started"] = moments(texts["started_at"])
        rows["seconds"], rows["bytes"] = numbers(texts["seconds"]), wholes(texts["bytes"])
        rows["failed"] = failures(texts["state"])
        self._see_that_numbers_are_likely(rows)
        rows["size_class"] = self._size_classes(rows["bytes"])
        errors = errors_of(rows["failed"], texts["error"], texts["error_where"])
        require(not any(any(texts[name]) for name in ACCOUNT))
        rows["account"] = NOTHING
        rows["profile"] = self._profiles(lines, texts)
        numbers_of_failed = np.flatnonzero(rows["failed"]).tolist()
        ends = (
            (texts["source"][number], texts["destination"][number]) for number in numbers_of_failed
        )
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

    def _see_that_none_is_open(self, ids: NDArray[np.uint64]) -> None:
        if self.admission.open_probes:
            packed = ids.astype(">u8").tobytes()
            in_file = {packed[at : at + 16] for at in range(0, len(packed), 16)}
            if not in_file.isdisjoint(probe.bytes for probe in self.admission.open_probes):
                raise OtherwiseError

    def _ends(self, rows: Rows, texts: dict[str, Texts]) -> None:
        try:
            for end in ENDS:
                rows[end] = [self.admission.ends.ids[name] for name in texts[end]]
        except KeyError as error:
            raise OtherwiseError from error
        require((rows["source"] != rows["destination"]).all())

    def _see_that_numbers_are_likely(self, rows: Rows) -> None:
        started, seconds = rows["started"], rows["seconds"]
        require((self._oldest <= started).all() and (started <= self._newest).all())
        require((seconds <= LONGEST_SECONDS).all())
        done = ~rows["failed"]
        require((seconds[done] > 0).all())
        require((rows["bytes"][done] / seconds[done] <= FASTEST).all())

    def _size_classes(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        require(self.admission.size_ids)
        positions = np.searchsorted(self.admission.size_begins, sizes, "right") - 1
        return np.array(self.admission.size_ids, np.int64)[positions]

    def _profiles(self, lines: Sequence[Sequence[str]], texts: dict[str, Texts]) -> list[int]:
        # Most of these columns hold the same in every line of a file.
        columns = [texts[name] for name in PROFILE_FIELDS if name in texts]
        varying = [column for column in columns if column.count(column[0]) < len(lines)]
        rows = list(zip(*varying, strict=True)) or [()] * len(lines)
        numbers = {row: self._read_profile(lines[rows.index(row)]) for row in set(rows)}
        return [numbers[row] for row in rows]

    def _read_profile(self, line: Sequence[str]) -> int:
        try:
            record = from_text(dict(zip(self._names, line, strict=True)))
            self.admission.check(record)
        except WrongRecordError as error:
            raise OtherwiseError from error
        return self._number(profile_fields_of(record))

    def _number(self, fields: ProfileFields) -> int:
        if fields not in self._numbers:
            self._numbers[fields] = len(self.profiles)
            self.profiles.append(fields)
        return self._numbers[fields]


def require(holds: object) -> None:
    if not holds:
        raise OtherwiseError


def letters(texts: Texts, lengths: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return texts that have the same length, one of these, as a table of ASCII letters."""
    length = len(texts[0])
    require(length in lengths and set(map(len, texts)) == {length})
    joined = "".join(texts)
    require(joined.isascii())
    return np.frombuffer(joined.encode(), np.uint8).reshape(len(texts), length)


def uuids(texts: Texts) -> NDArray[np.uint64]:
    """Return the upper and the lower half of each, which are written with their four dashes."""
    table = letters(texts, (36,))
    require((table[:, _DASHES] == ord("-")).all())
    nibbles = _NIBBLES[table[:, _DIGITS]]
    require((nibbles < 16).all())
    packed = nibbles[:, 0::2] << 4 | nibbles[:, 1::2]
    return np.ascontiguousarray(packed).view(">u8")


def moments(texts: Texts) -> NDArray[np.int64]:
    """Return microseconds since 2000 of times in UTC, with or without microseconds."""
    table = letters(texts, _LENGTHS_OF_TIMES)
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


def numbers(texts: Texts) -> NDArray[np.float64]:
    return np.array(_read(texts, _NUMBERS, float))


def wholes(texts: Texts) -> NDArray[np.int64]:
    return np.array(_read(texts, _WHOLE, int), np.int64)


def _read(texts: Texts, written: re.Pattern[str], kind: Callable[[str], float]) -> list[float]:
    require(written.fullmatch(",".join(texts) + ","))
    try:
        return [kind(text) for text in texts]
    except ValueError as error:  # one cell with two numbers and a comma between them
        raise OtherwiseError from error


def failures(states: Texts) -> list[bool]:
    require({"done", "failed"}.issuperset(states))
    return [state == "failed" for state in states]


def errors_of(failed: NDArray[np.bool_], errors: Texts, wheres: Texts) -> list[tuple[str, str]]:
    """Return why and where those failed that failed; no other may say so."""
    numbers_of_failed = np.flatnonzero(failed).tolist()
    failures = [(csv_text.unquoted(errors[number]), wheres[number]) for number in numbers_of_failed]
    require(len(failures) == sum(map(bool, errors)) == sum(map(bool, wheres)))
    for error, where in failures:
        require(0 < len(error) <= 10_000 and "\0" not in error)
        require(where in {"source", "destination", "transfer", "control"})
    return failures
