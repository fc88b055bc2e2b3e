"""Transfers from within: how their rate behaves, and how close it comes to nominal capacities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matrix.answers.site.ranking import capacity
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.transfers.rate_profile import (
    SHAPES,
    ProfileShape,
    RateProfile,
    weighted_quantiles,
)
from matrix.store.transfers import TransferSelection
from sonar.models import Transfer
from sonar.notation.windows import Window

# So many of the newest transfers are looked at: their samples are read one by one.
MOST = 300
# The shapes of fewer say little of a link.
FEWEST = 3
# Ceilings of several transfers are one where the middle half of them differs by no more than this.
ONE_CEILING = 1.25
COLUMNS = (
    *("samples", "seconds", "moved_bytes"),
    *("source__site__name", "source__site__wan_gbit_s"),
    *("destination__site__name", "destination__site__wan_gbit_s"),
)
LOW, MEDIAN, HIGH = 0.05, 0.5, 0.95


@dataclass(frozen=True)
class NominalCapacity:
    """The lower of the nominal WAN capacities of some sites, in MB/s, and whose it is."""

    site: str
    mb_s: float


@dataclass(frozen=True)
class InsideTransfers:
    """The courses of the transfers of a size class, of ``looked_at`` of the newest.

    ``counts`` are those of each shape; ``rates`` (MB/s) and ``seconds`` of all their stretches.
    """

    size: str
    looked_at: int
    courses: tuple[RateProfile, ...]
    counts: dict[ProfileShape, int]
    rates: Floats
    seconds: Floats
    nominal: NominalCapacity | None

    @property
    def middle(self) -> tuple[float, float, float]:
        """Return the 5th percentile, the median and the 95th percentile of the rate over time."""
        values = weighted_quantiles(self.rates, self.seconds, [LOW, MEDIAN, HIGH])
        low, median, high = values.tolist()
        return low, median, high

    @property
    def stalled(self) -> float:
        """Return which share of all their time nothing moved."""
        return sum(course.stalled_seconds for course in self.courses) / float(self.seconds.sum())

    @property
    def ceiling(self) -> float | None:
        """Return the ceiling that transfers at one have in common, in MB/s; None for none."""
        tops = [course.quantile(HIGH) for course in self.courses if course.shape() == "ceiling"]
        if len(tops) < FEWEST or 2 * len(tops) < len(self.courses):
            return None
        low, median, high = np.quantile(tops, [0.25, 0.5, 0.75]).tolist()
        return float(median) if high <= ONE_CEILING * low else None


def read(
    query: MatrixQuery,
    window: Window,
    endpoints: Sequence[EndpointInfo],
    ends: Iterable[Filter],
    sites: Collection[str],
) -> InsideTransfers | None:
    """Look into the newest transfers of the size class that succeeded; None without any course.

    ``endpoints`` are all that the filters ``ends`` may name, ``sites`` those whose nominal
    capacities limit them. One SQL query.
    """
    filters = (*query.filters, *ends)
    selection = TransferSelection(window, None, filters, (Transfer.State.DONE,), experiments=False)
    rows = selection.rows(endpoints).filter(size_class__name=query.size).order_by("-started_at")
    taken = list(rows.values_list(*COLUMNS)[:MOST])
    courses = [
        RateProfile.of(samples, seconds, moved or 0) for samples, seconds, moved, *_ in taken
    ]
    present = tuple(course for course in courses if course)
    if not present:
        return None
    shapes = [course.shape() for course in present]
    capacities = {
        site: wan for row in taken for site, wan in (row[3:5], row[5:7]) if site in sites and wan
    }
    return InsideTransfers(
        size=query.size,
        looked_at=len(taken),
        courses=present,
        counts={shape: shapes.count(shape) for shape in SHAPES},
        rates=np.concatenate([course.rates for course in present]),
        seconds=np.concatenate([course.seconds for course in present]),
        nominal=lowest(capacities),
    )


def lowest(capacities: Mapping[str, float]) -> NominalCapacity | None:
    """Return the lowest of the capacities of sites, given in Gbit/s."""
    if not capacities:
        return None
    site = min(capacities, key=lambda site: (capacities[site], site))
    return NominalCapacity(site, capacity(capacities[site]))
