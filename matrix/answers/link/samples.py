"""All that was measured between two endpoints, in both directions, of every size class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import transfers
from matrix.store.read_plan import Span
from sonar.database import pg_columns
from sonar.models import Profile
from sonar.notation.units import MB
from sonar.notation.windows import Window
from sonar.results import segments


@dataclass(frozen=True)
class Results:
    """Single results in the order of time, a value of each array for each.

    ``rates`` are in bytes/s, FAILED_RATE for a failed one, ``started`` in Unix ms, ``bytes`` what
    was to be moved; ``keys`` are link << 32 | bits of the rate, as everywhere in the matrix;
    ``ids`` are 16 bytes each.
    """

    started: Integers
    rates: NDArray[np.float32]
    keys: NDArray[np.uint64]
    sizes: Integers
    bytes: Integers
    profiles: Integers
    ids: NDArray[np.void]

    def __len__(self) -> int:
        return len(self.started)

    def taken(self, rows: Flags | Integers | slice) -> Results:
        return Results(*(values[rows] for values in vars(self).values()))

    def of_class(self, size_class: int) -> Results:
        return self.taken(self.sizes == size_class)

    def of_profiles(self, profiles: Iterable[Profile]) -> Results:
        return self.taken(np.isin(self.profiles, [profile.id for profile in profiles]))

    def of_link(self, source: EndpointInfo, destination: EndpointInfo) -> Results:
        link = source.id << 16 | destination.id
        return self.taken((self.keys >> np.uint64(32)) == link)

    def during(self, window: Window) -> Results:
        span = Span.of(window)
        return self.taken((self.started >= span.start) & (self.started < span.end))

    @property
    def ok(self) -> Flags:
        done: Flags = self.rates >= 0
        return done

    @property
    def successes(self) -> Floats:
        """Return the rates of those that succeeded, in MB/s."""
        rates: Floats = self.rates[self.ok] / np.float64(MB)
        return rates


def read(
    ends: Sequence[EndpointInfo],
    window: Window,
    filters: Sequence[Filter],
    *,
    sweeps: bool = False,
) -> Results:
    """Read the results between two endpoints, both ways, with one SQL statement."""
    source, destination = (endpoint.id for endpoint in ends)
    both = [(source, destination), (destination, source)]
    return read_links(both, window, filters, sweeps=sweeps)


def read_links(
    pairs: Sequence[tuple[int, int]],
    window: Window,
    filters: Sequence[Filter],
    *,
    sweeps: bool = False,
) -> Results:
    """Read the results of links, given by the ids of their ends, with one SQL statement.

    Sweeps only if they are asked for, here or by a filter.
    """
    rows = transfers.read_links(pairs, window, filters, sweeps=sweeps)
    rates = segments.rates(rows)
    links = rows["source_id"].astype(np.uint64) << np.uint64(16)
    links |= rows["destination_id"].astype(np.uint64)
    return Results(
        started=pg_columns.unix_ms(rows["started_at"]),
        rates=rates,
        keys=links << np.uint64(32) | rates.view(np.uint32),
        sizes=rows["size_class_id"].astype(np.int64),
        bytes=rows["bytes"].astype(np.int64),
        profiles=rows["profile_id"].astype(np.int64),
        ids=rows["id"],
    )
