"""The results of a window as sorted runs: segments where they are up to date, else raw rows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags
from matrix.statistics.pooling import Numbering
from matrix.statistics.run import FAILURE, Newest, Run
from matrix.store import read_plan, segment_columns
from matrix.store.profile_filters import IDS, passing
from matrix.store.read_plan import DAY_MS, HOUR_MS, Dirty, ReadPlan, Span, moment
from matrix.store.segment_columns import Array, Key
from matrix.store.snapshot import snapshot
from sonar import segments
from sonar.windows import Window

LENGTHS = {"hour": HOUR_MS, "day": DAY_MS}
OUTCOME = np.uint64(31)
# What is made of a column of a whole segment once, and kept in place of the column.
MADE_OF = {"ways": "profiles", "failures": "offsets"}

DIRTY = """
    SELECT c.id, m.level, (extract(epoch FROM m.start) * 1000)::bigint
    FROM sonar_sizeclass c LEFT JOIN (
        SELECT DISTINCT size_class_id, level, start FROM sonar_dirtymark
        WHERE start >= %s AND start < %s
    ) m ON m.size_class_id = c.id
    WHERE c.name = %s
"""
SEGMENTS = """
    SELECT id, level, (extract(epoch FROM start) * 1000)::bigint FROM sonar_segment
    WHERE size_class_id = %s AND (
        level = 'day' AND start >= %s AND start < %s OR level = 'hour' AND start = ANY(%s))
"""


class Also(NamedTuple):
    """What of a Run is asked for beside its keys."""

    sizes: bool = False
    profiles: bool = False
    ways: bool = False
    failures: bool = False


class Piece(NamedTuple):
    """A segment of which the part from ``low`` to ``high`` (ms since its start) is wanted."""

    start: int
    segment: int
    low: int
    high: int
    whole: bool


def read(
    size: str,
    window: Window,
    filters: Sequence[Filter],
    *,
    sizes: bool = False,
    profiles: bool = False,
    ways: bool = False,
    failures: bool = False,
) -> tuple[Run, ...]:
    """Read the results of a size class that started in the window, in order of time.

    Filters on how a result was made (PROFILE_FILTERS) are applied, those on links are not.
    What Run.ways and Run.failures have of a segment is found once and kept.
    Everything is seen as of one moment, with at most five SQL statements: what is dirty, the
    profiles that pass, which segments there are, those of their columns that are not in the
    cache, and raw rows. Runs without a result are left out.
    """
    span, also = Span.of(window), Also(sizes, profiles, ways, failures)
    with snapshot():
        size_class, dirty = _dirty(size, span)
        plan = read_plan.plan(span, dirty)
        allowed = passing(filters)
        runs = [
            *_of_segments(list(_pieces(size_class, plan, span)), allowed, also),
            *_of_rows(size_class, plan.raw, allowed, also),
        ]
    return tuple(run for _, run in sorted(runs, key=lambda some: some[0]) if run.keys.size)


def _dirty(size: str, window: Span) -> tuple[int, Dirty]:
    """Return the id of the size class and what is marked in the days of the window."""
    first = read_plan.floor(window.start, DAY_MS)
    past = -read_plan.floor(-window.end, DAY_MS)
    with connection.cursor() as cursor:
        cursor.execute(DIRTY, [moment(first), moment(past), size])
        rows = cursor.fetchall()
    if not rows:
        raise ValueError(f"there is no size class {size!r}")
    marked = {level: frozenset(row[2] for row in rows if row[1] == level) for level in LENGTHS}
    return rows[0][0], Dirty(marked["day"], marked["hour"])


def _pieces(size_class: int, plan: ReadPlan, window: Span) -> Iterator[Piece]:
    hours = [moment(hour) for hour in plan.hours]
    with connection.cursor() as cursor:
        cursor.execute(SEGMENTS, [size_class, *map(moment, plan.days), hours])
        for segment, level, start in cursor.fetchall():
            if level == "hour" or start not in plan.split:
                part = window.within(Span(start, start + LENGTHS[level]))
                low, high = part.start - start, part.end - start
                yield Piece(start, segment, low, high, high - low == LENGTHS[level])


def _of_segments(
    pieces: Sequence[Piece], allowed: Flags | None, also: Also
) -> Iterator[tuple[int, Run]]:
    kept = _kept(pieces, allowed, also)
    names = {piece: _columns_for(piece, allowed, also, kept) for piece in pieces}
    wanted = {
        Key(piece.segment, name): piece.start for piece, needed in names.items() for name in needed
    }
    # These columns of a whole segment are only looked through.
    passing_by = _made_once(allowed, also)
    columns_once = [column for name, column in MADE_OF.items() if name in passing_by]
    once = {Key(piece.segment, name) for piece in pieces if piece.whole for name in columns_once}
    loaded = segment_columns.load(wanted, once)
    for piece, needed in names.items():
        columns = {name: loaded[Key(piece.segment, name)] for name in needed}
        known = {name: Key(piece.segment, name) for name in passing_by if piece.whole}
        columns |= {name: kept[key] for name, key in known.items() if key in kept}
        run = _run(piece, columns, allowed, also)
        made = {key: getattr(run, name) for name, key in known.items() if key not in kept}
        segment_columns.keep(made)
        yield piece.start, run


def _made_once(allowed: Flags | None, also: Also) -> list[str]:
    """Name what is made of whole segments to be kept: nothing where results are filtered."""
    if allowed is not None:
        return []
    wanted = {"ways": also.ways and not also.profiles, "failures": also.failures}
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _kept(pieces: Iterable[Piece], allowed: Flags | None, also: Also) -> dict[Key, Array]:
    """Return what was made of whole segments before."""
    names = _made_once(allowed, also)
    return segment_columns.CACHE.get(
        [Key(piece.segment, name) for piece in pieces if piece.whole for name in names]
    )


def _columns_for(
    piece: Piece, allowed: Flags | None, also: Also, kept: Container[Key]
) -> list[str]:
    """Name the columns to read: what is cut or filtered has to find its links anew."""
    uncut = piece.whole and allowed is None
    names = ["keys", "links", "lasts"] if uncut else ["keys", "offsets"]
    known = [name for name in MADE_OF if uncut and Key(piece.segment, name) in kept]
    if uncut and also.failures and "failures" not in known:
        names.append("offsets")
    if allowed is not None or also.profiles or (also.ways and "ways" not in known):
        names.append("profiles")
    return names + ["sizes"] * also.sizes


def _run(piece: Piece, columns: Mapping[str, Array], allowed: Flags | None, also: Also) -> Run:
    if piece.whole and allowed is None:
        newest = Newest(columns["links"], columns["lasts"])
        return _made(columns["keys"], newest, columns, also, piece.start)
    # Taking rows by number costs a fifth of a mask.
    rows = np.flatnonzero(_wanted(piece, columns, allowed))
    taken = {
        name: columns[name].take(rows)
        for name in ("keys", "offsets", "sizes", "profiles")
        if name in columns
    }
    links, lasts = segments.newest(taken["keys"], taken["offsets"])
    newest = Newest(links, lasts + np.int64(piece.start))
    return _made(taken["keys"], newest, taken, also, piece.start)


def _made(
    keys: NDArray[np.uint64], newest: Newest, columns: Mapping[str, Array], also: Also, start: int
) -> Run:
    """Make a run with what is asked for beside its keys; offsets count from ``start``."""
    ways = failures = None
    if also.ways:
        ways = columns["ways"] if "ways" in columns else _occurring(columns["profiles"])
    if also.failures:
        failures = columns.get("failures")
    if also.failures and failures is None:
        failures = failures_of(keys, columns["offsets"], newest.links, start)
    profiles = columns["profiles"] if also.profiles else None
    return Run(keys, *newest, columns.get("sizes"), profiles, ways, failures)


def failures_of(
    keys: NDArray[np.uint64], offsets: NDArray[np.uint32], links: NDArray[np.uint32], start: int
) -> NDArray[np.void]:
    """Return the links with a failed result (FAILURE), of keys in their order.

    The ok results of a link stand before its failed ones, so that these are neighbours.
    """
    if not keys.size:
        return np.empty(0, FAILURE)
    outcomes = keys >> OUTCOME
    first = np.flatnonzero(np.concatenate([[True], outcomes[1:] != outcomes[:-1]]))
    lasts = np.maximum.reduceat(offsets, first).astype(np.int64) + start
    outcomes = outcomes[first]
    failed = np.flatnonzero(outcomes & np.uint64(1))
    # Of the first of all it is the last of all, which is of no smaller link.
    mixed = outcomes[failed - 1] == outcomes[failed] - np.uint64(1)
    found = np.empty(len(failed), FAILURE)
    found["at"] = links.searchsorted((outcomes[failed] >> np.uint64(1)).astype(np.uint32))
    found["ok"] = np.where(mixed, lasts[failed - 1], 0)
    found["failed"] = lasts[failed]
    return found


def _occurring(profiles: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Return the distinct ids, ascending; marking them costs a fifth of sorting all."""
    seen = np.zeros(IDS, dtype=bool)
    seen[profiles] = True
    return np.flatnonzero(seen).astype(np.uint16)


def _wanted(piece: Piece, columns: Mapping[str, Array], allowed: Flags | None) -> Flags:
    offsets = columns["offsets"]
    inside: Flags = (offsets >= piece.low) & (offsets < piece.high)
    return inside if allowed is None else inside & allowed.take(columns["profiles"])


def _of_rows(
    size_class: int, spans: Sequence[Span], allowed: Flags | None, also: Also
) -> Iterator[tuple[int, Run]]:
    if not spans:
        return
    rows = segments.read_rows(size_class, [(moment(one.start), moment(one.end)) for one in spans])
    if allowed is not None:
        rows = rows[allowed[rows["profile_id"]]]
    # Sealing is by the day at most, and so is what offsets count.
    days = [part for one in spans for part in one.by_day()]
    for span, part in zip(days, segments.split(rows, days), strict=True):
        columns = segments.encode(part, moment(span.start))
        newest = Newest(columns.links, columns.lasts + np.int64(span.start))
        others: dict[str, Array] = {"profiles": columns.profiles, "offsets": columns.offsets}
        if also.sizes:
            others["sizes"] = columns.sizes
        yield span.start, _made(columns.keys, newest, others, also, span.start)


def profiles_of(
    found: Iterable[Run], numbering: Numbering | None = None, shown: Flags | None = None
) -> frozenset[int]:
    """Return the ids of the profiles that occur in runs that were read with ``ways``.

    Where only some links are shown, by their numbers in ``shown`` of shape (ids, ids), the runs
    must have been read with ``profiles`` instead.
    """
    if numbering is None or shown is None:
        parts = [run.ways for run in found if run.ways is not None]
        return frozenset(np.concatenate([np.empty(0, np.uint16), *parts]).tolist())
    is_shown = np.pad(shown, (0, 1)).ravel()
    seen = np.zeros(IDS, dtype=bool)
    for run in found:
        if run.profiles is None:
            raise ValueError("runs with profiles are needed to tell those of some links")
        seen[run.profiles[is_shown[numbering.numbers(run.keys)]]] = True
    return frozenset(np.flatnonzero(seen).tolist())
