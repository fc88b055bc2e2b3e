"""The single results of a site's links, numbered by link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.store import link_rows
from matrix.store.link_rows import Ends
from sonar.database import pg_copy
from sonar.notation.units import MB
from sonar.notation.windows import Window
from sonar.results import segments


@dataclass(frozen=True)
class LinkResults:
    """Results that say something about a link; arrays by result.

    ``link`` is a place in the links that were asked for, ``started`` in Unix ms, ``rate`` in MB/s
    (exact to float32, as everywhere; NaN for a failed one), ``size`` in bytes.
    """

    link: Integers
    started: Integers
    rate: Floats
    size: Integers

    @property
    def ok(self) -> Flags:
        return ~np.isnan(self.rate)

    @classmethod
    def read(
        cls, links: Sequence[Ends], window: Window, filters: Sequence[Filter], size: str
    ) -> LinkResults:
        """Read those of these links and of a size class. One SQL statement."""
        rows = link_rows.read(links, window, filters, size)
        place = {ends: at for at, ends in enumerate(links)}
        pairs = zip(rows["source_id"].tolist(), rows["destination_id"].tolist(), strict=True)
        link = np.fromiter((place.get(pair, -1) for pair in pairs), np.int64, count=len(rows))
        rates = segments.rates(rows)
        results = cls(
            link,
            pg_copy.unix_ms(rows["started_at"]),
            np.where(rates >= 0, rates / np.float64(MB), np.nan),
            rows["bytes"].astype(np.int64),
        )
        return results.taken(link >= 0)

    def taken(self, rows: Flags) -> LinkResults:
        return LinkResults(self.link[rows], self.started[rows], self.rate[rows], self.size[rows])

    def of_links(self, links: Sequence[int], count: int) -> LinkResults:
        """Return those of some of ``count`` links, numbered by their place among these."""
        place = np.full(count, -1)
        place[list(links)] = np.arange(len(links))
        link = place[self.link]
        own = link >= 0
        return LinkResults(link[own], self.started[own], self.rate[own], self.size[own])

    def during(self, start: datetime, end: datetime) -> LinkResults:
        """Return those that started at or after ``start`` and before ``end``."""
        low, high = segments.unix_ms(start), segments.unix_ms(end)
        return self.taken((self.started >= low) & (self.started < high))
