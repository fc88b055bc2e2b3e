"""The results of a window as sorted runs: segments where they are up to date, else raw rows."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from operator import itemgetter
from typing import NamedTuple, Self

import numpy as np
from django.db import connection
from django.db.models import Q
from numpy.typing import NDArray

from matrix.query.attributes import ORIGIN
from matrix.query.filters import OTHER_ORIGINS, Filter, counted, on_profiles
from matrix.statistics.arrays import Flags
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.run import NO_LINKS, Keep, Newest, OfLinks, Run, failures_of
from matrix.store import read_plan, segment_columns
from matrix.store.data_version import snapshot
from matrix.store.profiles import PROFILE_FIELDS, RESULT_FIELDS, condition, passing
from matrix.store.read_plan import Span, moment
from matrix.store.segment_columns import OTHERS, Array, Key, all_but
from matrix.store.window_buckets import WindowBuckets
from sonar.database import reader
from sonar.models import Profile
from sonar.notation.windows import Window
from sonar.results import segments

# What is made of a column of a whole segment once, and kept in place of the column.
DERIVED_FROM = {"distinct_profiles": "profiles", "failures": "offsets"}


class Extras(NamedTuple):
    """What of a Run is asked for beside its keys.

    ``links`` are its links and when the newest result of each started, half of what there is to
    read where links are tested once a day; without them both are empty. What is read ``once`` is
    not kept for others.
    """

    links: bool = True
    once: bool = False
    sizes: bool = False
    profiles: bool = False
    distinct_profiles: bool = False
    failures: bool = False
    offsets: bool = False


class Piece(NamedTuple):
    """A segment, of which the part from ``low`` to ``high`` (ms since its start) is wanted."""

    start: int
    segment: int
    low: int
    high: int
    length: int

    @classmethod
    def of(cls, segment: int, bucket: Span, window: Span) -> Self:
        part, start = bucket.within(window), bucket.start
        return cls(start, segment, part.start - start, part.end - start, bucket.end - start)

    @property
    def whole(self) -> bool:
        return self.low == 0 and self.to_end

    @property
    def to_end(self) -> bool:
        """Say whether nothing is cut off its end: the newest results of links are those of all."""
        return self.high == self.length


def read(size: str, window: Window, filters: Sequence[Filter], **extras: bool) -> tuple[Run, ...]:
    """Read the results of a size class that started in the window, in order of time.

    ``extras`` are those of Extras; ``failures`` need ``links``.

    Filters on how a result was made (PROFILE_FILTERS) are applied, those on links are not.
    Tests alone count, without sweeps, unless a filter asks for others
    (query.filters.counted). RESULT_FILTERS, which segments do not have, are asked of the raw rows
    of the whole window.
    What Run.distinct_profiles and Run.failures have of a segment is found once and kept.
    Everything is seen as of one moment, with at most four SQL statements: what stands there
    (store.window_buckets), the profiles that pass or, where some do not count, those of segments,
    columns that are not in the cache, and raw rows. One without a transaction does where all is in
    the cache. Runs without a result are left out.
    """
    question = RunsQuestion(size, Span.of(window), tuple(filters), Extras(**extras))
    if not connection.in_atomic_block:
        with reader.chosen(), suppress(segment_columns.NotKept):
            return question.runs(may_read=False)
    with snapshot():
        return question.runs()


class RunsQuestion(NamedTuple):
    """Which results are asked for, and what of them."""

    size: str
    span: Span
    filters: tuple[Filter, ...]
    extras: Extras

    def runs(self, *, may_read: bool = True) -> tuple[Run, ...]:
        """Answer it; raise NotKept if it takes more than one statement and ``may_read`` nothing."""
        of_results = condition(self.filters, RESULT_FIELDS)
        by_profile = on_profiles(self.filters)
        if not may_read and (of_results or by_profile):
            raise segment_columns.NotKept
        buckets = WindowBuckets.read(self.size, self.span)
        not_counted = buckets.not_counted
        allowed = passing(counted(self.filters)) if by_profile else None
        if of_results:
            of_rows = all_but(not_counted) if allowed is None and not_counted else allowed
            pairs = list(_of_rows(buckets.size_class, self.span, of_rows, self.extras, of_results))
        else:
            pieces = pieces_of(buckets, self.span)
            # Filtering rows costs more than leaving those few out once, and keeping the rest.
            apart = {}
            if allowed is None and not_counted:
                starts = {piece.segment: piece.start for piece in pieces}
                apart = segment_columns.rows_with(not_counted, starts, may_read=may_read)
            pairs = list(_of_segments(pieces, allowed, self.extras, apart, may_read=may_read))
        pairs.sort(key=itemgetter(0))
        return tuple(run for _, run in pairs if run.keys.size)


def pieces_of(buckets: WindowBuckets, span: Span) -> list[Piece]:
    plan = read_plan.plan(span, buckets.dirty)
    return [Piece.of(*segment, span) for segment in buckets.segments(plan)]


def others(
    sizes: Iterable[str], window: Window, filters: Sequence[Filter]
) -> Iterator[tuple[str, NDArray[np.uint64]]]:
    """Yield the keys of results of other origins that read() leaves out, each with their origin.

    None where the filters name an origin, or what segments do not have. One SQL statement while no
    profile is of another origin; else one more for each size class, and one for columns that are
    not in the cache.
    """
    if any(each.parameter in (ORIGIN, *RESULT_FIELDS) for each in filters):
        return
    conditions = condition(counted((*filters, OTHER_ORIGINS)), PROFILE_FIELDS)
    profiles: dict[str, list[int]] = {}
    for profile, origin in Profile.objects.filter(conditions).values_list("id", "origin"):
        profiles.setdefault(origin, []).append(profile)
    span = Span.of(window)
    for size in sizes if profiles else ():
        with snapshot():
            buckets = WindowBuckets.read(size, span)
            pieces = pieces_of(buckets, span)
            starts = {piece.segment: piece.start for piece in pieces}
            apart = segment_columns.rows_with(buckets.not_counted, starts)
            columns = segment_columns.others(apart, starts)
        for piece in pieces:
            if piece.segment in apart:
                keys, offsets, ids = (columns[Key(piece.segment, name)] for name in OTHERS)
                inside = (offsets >= piece.low) & (offsets < piece.high)
                for origin, of_origin in profiles.items():
                    yield origin, keys[inside & np.isin(ids, of_origin)]


def _of_segments(
    pieces: Sequence[Piece],
    allowed: Flags | None,
    extras: Extras,
    apart: Mapping[int, Array],
    *,
    may_read: bool,
) -> Iterator[tuple[int, Run]]:
    # What is made of whole segments to be kept: nothing where results are filtered.
    distinct = extras.distinct_profiles and not extras.profiles
    derived = ["distinct_profiles"] * distinct + ["failures"] * extras.failures
    if allowed is not None:
        derived = []
    kept = segment_columns.CACHE.get(
        [Key(piece.segment, name) for piece in pieces if piece.whole for name in derived]
    )
    names = {piece: _columns_for(piece, allowed, extras, kept) for piece in pieces}
    starts = {
        Key(piece.segment, name): piece.start for piece, needed in names.items() for name in needed
    }
    # These columns of a whole segment are only looked through.
    columns_once = [DERIVED_FROM[name] for name in derived]
    once = {Key(piece.segment, name) for piece in pieces if piece.whole for name in columns_once}
    loaded = segment_columns.load(starts, starts if extras.once else once, apart, may_read=may_read)
    for piece, needed in names.items():
        columns = {name: loaded[Key(piece.segment, name)] for name in needed}
        keys = {name: Key(piece.segment, name) for name in derived if piece.whole}
        columns |= {name: kept[key] for name, key in keys.items() if key in kept}
        keep = None
        if "links" in columns and not extras.once:
            keep = partial(_kept, piece.segment, piece.segment in apart, columns["links"])
        run = _run(piece, columns, allowed, extras, keep)
        segment_columns.CACHE.put(
            {key: getattr(run, name) for name, key in keys.items() if key not in kept}
        )
        yield piece.start, run


def _kept(segment: int, counted: bool, links: Array, name: str, of_links: OfLinks) -> Array:
    return segment_columns.derived(Key(segment, name, counted), lambda: of_links(links))


def _columns_for(
    piece: Piece, allowed: Flags | None, extras: Extras, kept: Container[Key]
) -> list[str]:
    """Name the columns to read: what is cut at its end or filtered has to find its links anew."""
    uncut = piece.whole and allowed is None
    names = ["keys"] if uncut else ["keys", "offsets"]
    if extras.links and piece.to_end and allowed is None:
        names += ["links", "lasts"]
    has = {name: uncut and Key(piece.segment, name) in kept for name in DERIVED_FROM}
    if uncut and (extras.offsets or (extras.failures and not has["failures"])):
        names.append("offsets")
    distinct = extras.distinct_profiles and not has["distinct_profiles"]
    if allowed is not None or extras.profiles or distinct:
        names.append("profiles")
    return names + ["sizes"] * extras.sizes


def _of_part(keep: Keep, part: NDArray[np.intp], name: str, of_links: OfLinks) -> Array:
    """Return what is made of a part of the links of a segment, and keep that of all of them."""
    return keep(name, of_links).take(part)


def _run(
    piece: Piece,
    columns: Mapping[str, Array],
    allowed: Flags | None,
    extras: Extras,
    keep: Keep | None,
) -> Run:
    if piece.whole and allowed is None:
        newest = Newest(columns["links"], columns["lasts"]) if extras.links else NO_LINKS
        return _run_of(columns["keys"], newest, columns, extras, piece.start, keep=keep)
    offsets = columns["offsets"]
    inside = [offsets >= piece.low] if piece.low else []
    if not piece.to_end:
        inside.append(offsets < piece.high)
    if allowed is not None:
        inside.append(allowed.take(columns["profiles"]))
    # Taking rows by number costs a fifth of a mask.
    rows = np.flatnonzero(reduce(np.logical_and, inside))
    of_rows = ["keys", *(name for name in ("sizes", "profiles") if name in columns)]
    has_links = "links" in columns
    if extras.offsets or extras.failures or (extras.links and not has_links):
        of_rows.append("offsets")
    taken = {name: columns[name].take(rows) for name in of_rows}
    newest = NO_LINKS
    if has_links:
        later = np.flatnonzero(columns["lasts"] >= piece.start + piece.low)
        newest = Newest(columns["links"].take(later), columns["lasts"].take(later))
        keep = keep and partial(_of_part, keep, later)
    elif extras.links:
        links, lasts = segments.newest(taken["keys"], taken["offsets"])
        newest = Newest(links, lasts + np.int64(piece.start))
    return _run_of(taken["keys"], newest, taken, extras, piece.start, keep=keep)


def _run_of(
    keys: NDArray[np.uint64],
    newest: Newest,
    columns: Mapping[str, Array],
    extras: Extras,
    start: int,
    *,
    keep: Keep | None = None,
) -> Run:
    """Make a run with what is asked for beside its keys; offsets count from ``start``."""
    distinct = failures = None
    if extras.distinct_profiles:
        distinct = columns.get("distinct_profiles")
        if distinct is None:
            # Ascending; marking the ids costs a fifth of sorting all.
            seen = np.zeros(segments.PROFILE_IDS, dtype=bool)
            seen[columns["profiles"]] = True
            distinct = np.flatnonzero(seen).astype(np.uint16)
    if extras.failures:
        failures = columns.get("failures")
        if failures is None:
            failures = failures_of(keys, columns["offsets"], newest.links, start)
    profiles = columns["profiles"] if extras.profiles else None
    offsets = columns["offsets"] if extras.offsets else None
    sizes = columns.get("sizes")
    return Run(keys, *newest, sizes, profiles, distinct, failures, offsets, start, keep)


def _of_rows(
    size_class: int, span: Span, allowed: Flags | None, extras: Extras, own: Q
) -> Iterator[tuple[int, Run]]:
    """Read raw rows: what of them a filter asks for (``own``) no segment has."""
    rows = segments.read_rows(size_class, [(moment(span.start), moment(span.end))], own)
    if allowed is not None:
        rows = rows[allowed[rows["profile_id"]]]
    days = list(span.by_day())
    for day, part in zip(days, segments.split(rows, days), strict=True):
        columns = segments.encode(part, moment(day.start))
        newest = Newest(columns.links, columns.lasts + np.int64(day.start))
        others: dict[str, Array] = {"profiles": columns.profiles, "offsets": columns.offsets}
        if extras.sizes:
            others["sizes"] = columns.sizes
        yield day.start, _run_of(columns.keys, newest, others, extras, day.start)


def profiles_of(
    runs: Iterable[Run], numbering: Numbering | None = None, shown: Flags | None = None
) -> frozenset[int]:
    """Return the ids of the profiles that occur in runs read with ``distinct_profiles``.

    Where only some links are shown, by their numbers in ``shown`` of shape (ids, ids), the runs
    must have been read with ``profiles`` instead.
    """
    if numbering is None or shown is None:
        parts = [run.distinct_profiles for run in runs if run.distinct_profiles is not None]
        return frozenset(np.concatenate([np.empty(0, np.uint16), *parts]).tolist())
    is_shown = np.pad(shown, (0, 1)).ravel()
    seen = np.zeros(segments.PROFILE_IDS, dtype=bool)
    for run in runs:
        if run.profiles is None:
            raise ValueError(
                "results read without profiles cannot show the profiles of individual links"
            )
        seen[run.profiles[is_shown[numbering.numbers(run.keys)]]] = True
    return frozenset(np.flatnonzero(seen).tolist())
