"""Which samples go into which cell, and how the runs of a window are cut for it. Pure numpy."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers, each
from matrix.statistics.samples.run import NO_LINKS, Newest, Run

Cells = NDArray[np.uint16]

# About so many samples are worked on at a time: what is made of them stays in the CPU's cache.
CHUNK = 1 << 17
# The cell of a sample that is not shown. Cells are numbered within a chunk to fit in 16 bits:
# numpy groups by those with a radix sort, at a fifth of the time of any other.
HIDDEN = np.iinfo(np.uint16).max
# Of more links their numbers are not kept: those of a month would take up much of the cache.
MOST_KEPT = 1 << 18
# Above all links, as runs have them.
ANY_LINK = np.uint32(2**32 - 1)
# The part of a key below its source.
_DESTINATIONS = np.uint64((1 << 48) - 1)


@dataclass(frozen=True)
class Numbering:
    """Numbers links ``source * stride + destination``, ends by their place in the ids' order.

    An id that is not among them (of an endpoint registered just now) is behind the last. In one of
    parts(), ``sources`` are the ids of its sources.
    """

    ids: Integers
    sources: Integers | None = None

    @property
    def stride(self) -> int:
        return len(self.ids) + 1

    @property
    def size(self) -> int:
        return (len(self.source_ids) + 1) * self.stride

    @property
    def source_ids(self) -> Integers:
        return self.ids if self.sources is None else self.sources

    def parts(self, links: int) -> list[Self]:
        """Return numberings of some sources each, with about so many links at most."""
        number = min(-(-self.size // links), len(self.source_ids)) or 1
        parts = np.array_split(self.source_ids, number)
        return [type(self)(self.ids, sources) for sources in parts]

    def own(self, run: Run) -> Run:
        """Return a run from its first source to its last, its keys and offsets; copy nothing."""
        first, last = int(self.source_ids.min(initial=HIDDEN)), int(self.source_ids.max(initial=0))
        bounds = np.array([first << 48, (last << 48) | int(_DESTINATIONS)], dtype=np.uint64)
        rows = slice(*run.keys.searchsorted(bounds).tolist())
        offsets = None if run.offsets is None else run.offsets[rows]
        return Run(run.keys[rows], *NO_LINKS, offsets=offsets, start=run.start)

    @cached_property
    def _destination(self) -> NDArray[np.intp]:
        return _places(self.ids)

    @cached_property
    def _source(self) -> NDArray[np.intp]:
        return _places(self.source_ids) * self.stride

    def numbers(self, links: NDArray[np.unsignedinteger]) -> NDArray[np.intp]:
        """Return the number of each link, or of the link of each key."""
        ends = links.view("<u2").reshape(-1, links.itemsize // 2)
        number = self._source.take(ends[:, -1], mode="clip")
        number += self._destination.take(ends[:, -2], mode="clip")
        return number

    def numbers_of(self, run: Run | Newest, part: slice = slice(None)) -> NDArray[np.intp]:
        """Return the number of each of its links, or of a part of them; of few links it is kept."""
        keep = run.keep if isinstance(run, Run) and self.size <= MOST_KEPT else None
        if keep is None:
            return self.numbers(run.links[part])
        # By other integers than these, numpy takes three times as long to write.
        kind = np.min_scalar_type(self.size)
        numbers = keep(self._name, lambda links: self.numbers(links).astype(kind))
        return numbers[part].astype(np.intp)

    @cached_property
    def _name(self) -> str:
        return f"numbers {hashlib.sha256(self.ids.tobytes()).hexdigest()}"

    def links(self, cells: Integers) -> NDArray[np.uint32]:
        """Return the links of cells of a (ids, ids) array, by their place in it as it is flat."""
        source, destination = np.divmod(cells, len(self.ids))
        return (self.ids[source] << 16 | self.ids[destination]).astype(np.uint32)

    def square(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values by number, shape (..., size), as shape (..., sources, ids)."""
        wide = values.reshape(*values.shape[:-1], -1, self.stride)
        return wide[..., :-1, :-1]

    def newest(self, runs: Sequence[Run | Newest]) -> Integers:
        """Return when the newest result of each link started, in Unix ms; 0 for none.

        The runs, or what they have of one outcome, are in the order of time. Shape (ids, ids).
        """
        newest = np.zeros(self.size, dtype=np.int64)

        def of_sources(bounds: NDArray[np.uint32]) -> None:
            # Of several for one link, the last is kept.
            for run in runs:
                part = slice(*run.links.searchsorted(bounds).tolist())
                newest[self.numbers_of(run, part)] = run.lasts[part]

        if runs:
            parts = parts_for(sum(len(run.links) for run in runs))
            firsts = self.ids[:: -(-len(self.ids) // parts) or 1] << 16
            bounds = np.full(len(firsts) + 1, ANY_LINK)
            bounds[:-1] = firsts
            each(of_sources, [bounds[at : at + 2] for at in range(len(firsts))])
        return self.square(newest)


def _places(ids: Integers) -> NDArray[np.intp]:
    """Return the place of each id; that of others, and of all above them, is behind the last."""
    place = np.full(ids.max(initial=0) + 2, len(ids), dtype=np.intp)
    place[ids] = np.arange(len(ids))
    return place


def parts_for(samples: int) -> int:
    """Return in how many parts to work on so many samples; fewer would not pay a thread."""
    return max(1, -(-samples // CHUNK))


@dataclass(frozen=True)
class Pooling:
    """The cell of each link: the row of its source and the column of its destination.

    ``rows`` and ``columns`` are by place in the numbering, ``shown`` says which links count,
    shape (sources, ids).
    """

    numbering: Numbering
    rows: Integers
    columns: Integers
    shown: Flags
    shape: tuple[int, int]

    def cells(self, first: Integers, kind: type[np.unsignedinteger] = np.uint16) -> NDArray[Any]:
        """Return the cell of each link by its number; ``first`` is the first cell of each row.

        What is not shown has all bits of its kind set, as HIDDEN has.
        """
        cells = np.full(self.numbering.size, np.iinfo(kind).max, dtype=kind)
        row, column = first[self.rows].astype(kind), self.columns.astype(kind)
        # numpy.where takes ten times as long, as flags are hard to guess.
        hidden = self.shown.astype(kind) - kind(1)
        self.numbering.square(cells)[:] = (row[:, None] + column) | hidden
        return cells

    def keeps_links_apart(self) -> bool:
        """Say whether no cell has more than one link: no two places with one are in one group."""
        for groups, axis in ((self.rows, 1), (self.columns, 0)):
            counts = np.bincount(groups[groups >= 0])
            if (counts > 1).any() and (np.bincount(groups[self.shown.any(axis=axis)]) > 1).any():
                return False
        return True


@dataclass(frozen=True)
class Chunk:
    """Some rows of the matrix and their samples: parts of runs, with sizes if they have any."""

    rows: Integers | slice
    cells: int
    keys: list[NDArray[np.uint64]]
    sizes: list[NDArray[np.int64]]


def cut(runs: Sequence[Run], pooling: Pooling) -> tuple[Cells, list[Chunk]]:
    """Return the cell of each link within its chunk, and the chunks."""
    height, width = pooling.shape
    parts = parts_for(sum(len(run.keys) for run in runs))
    if parts == 1 and height * width <= HIDDEN:
        sizes = [run.sizes for run in runs if run.sizes is not None]
        chunks = [Chunk(slice(None), height * width, [run.keys for run in runs], sizes)]
    else:
        chunks = _chunks(runs, pooling, parts)
    first = np.zeros(height, dtype=np.int64)
    for chunk in chunks:
        first[chunk.rows] = np.arange(0, chunk.cells, width)
    return pooling.cells(first), chunks


def _chunks(runs: Sequence[Run], pooling: Pooling, parts: int) -> list[Chunk]:
    """Cut the runs by source. Samples of sources that are not shown are not even looked at."""
    sources = np.flatnonzero(pooling.shown.any(axis=1))
    if not sources.size:
        return []
    rows = pooling.rows[sources]
    bounds = pooling.numbering.source_ids[sources].astype(np.uint64) << np.uint64(48)
    bounds = np.stack([bounds, bounds | _DESTINATIONS])
    # About which share of the samples each source has: that in the longest run.
    keys = max((run.keys for run in runs), key=len)
    low, high = keys.searchsorted(bounds)
    share = np.asarray((high - low) / max(len(keys), 1))
    # Rows are put together in the order of their sources.
    distinct, place = np.unique(rows, return_index=True)
    distinct = distinct[place.argsort()]
    shares = np.bincount(rows, share)[distinct]
    part = ((np.cumsum(shares) - shares / 2) * parts).astype(np.int64)
    page = np.arange(len(distinct)) // (HIDDEN // pooling.shape[1])
    batches = np.split(distinct, np.flatnonzero(np.diff(part) | np.diff(page)) + 1)
    chunks = [Chunk(batch, len(batch) * pooling.shape[1], [], []) for batch in batches]
    chunk_of = np.empty(pooling.shape[0], dtype=np.int64)
    for index, batch in enumerate(batches):
        chunk_of[batch] = index
    # Neighbours of one chunk are cut as one.
    breaks = np.flatnonzero(np.diff(chunk_of[rows]) | (np.diff(sources) > 1))
    firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(sources) - 1)
    owners = [chunks[index] for index in chunk_of[rows[firsts]].tolist()]
    of_chunks = np.stack([bounds[0, firsts], bounds[1, lasts]])
    for run in runs:
        places = run.keys.searchsorted(of_chunks).tolist()
        for chunk, low, high in zip(owners, *places, strict=True):
            chunk.keys.append(run.keys[low:high])
            if run.sizes is not None:
                chunk.sizes.append(run.sizes[low:high])
    return chunks
