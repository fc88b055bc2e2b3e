"""Transfers from within: how their rate behaves, and how close it comes to nominal capacities."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matrix.answers.words.phrases import counted
from matrix.query.filters import Filter
from matrix.query.filters import counted as counted_filters
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.transfers.rate_profile import (
    FEWEST_STRETCHES,
    LONG_STALL,
    SHAPES,
    ProfileShape,
    RateProfile,
    weighted_quantiles,
)
from matrix.store.transfers import TransferSelection
from sonar.models import Transfer
from sonar.notation.units import MB, format_count, format_share, three_digits
from sonar.notation.windows import Window

# How many of the newest transfers are looked at: their samples are read one by one.
MOST_TRANSFERS = 300
# The shapes of fewer say little of a link.
FEWEST_COURSES = 3
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
class TransferProfiles:
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
        low, median, high = weighted_quantiles(self.rates, self.seconds, [LOW, MEDIAN, HIGH])
        return float(low), float(median), float(high)

    @property
    def stalled(self) -> float:
        """Return which share of all their time nothing moved."""
        return sum(course.stalled_seconds for course in self.courses) / float(self.seconds.sum())

    @property
    def ceiling(self) -> float | None:
        """Return the ceiling that transfers at one have in common, in MB/s; None for none."""
        tops = [course.quantile(HIGH) for course in self.courses if course.shape() == "ceiling"]
        if len(tops) < FEWEST_COURSES or 2 * len(tops) < len(self.courses):
            return None
        low, median, high = np.quantile(tops, [0.25, 0.5, 0.75]).tolist()
        return float(median) if high <= ONE_CEILING * low else None

    @property
    def sentences(self) -> list[str]:
        """Say how many transfers do what, their rates, and what these come close to."""
        number = len(self.courses)
        counts = [(count, shape) for shape, count in self.counts.items() if count]
        counts.sort(key=lambda pair: -pair[0])
        shapes = ", ".join(f"{format_count(count)} {verb(shape, count)}" for count, shape in counts)
        stall = f"; transfers were stalled for {format_share(self.stalled)} of the time"
        stall = stall if self.stalled else ""
        few = " Only a few transfers were available." if number < FEWEST_COURSES else ""
        low, median, high = map(three_digits, self.middle)
        said = [
            f"Of {counted(number, f'{self.size}-file transfer')} with {FEWEST_STRETCHES} or more "
            f"progress samples, {shapes}{stall}.{few}",
            f"During these transfers, the median rate is {median} MB/s "
            f"(5th to 95th percentile: {low}–{high}).",
        ]
        if ceiling := self.ceiling:
            said.append(
                f"These transfers have about the same maximum rate: {three_digits(ceiling)} MB/s."
            )
        if nominal := self.nominal:
            fastest = self.middle[2]
            whose = f"the nominal capacity of {nominal.site} ({three_digits(nominal.mb_s)} MB/s)"
            is_full = fastest >= FULL * nominal.mb_s
            said.append(
                f"The 95th percentile reaches {whose}: the site's WAN connection may be full."
                if is_full
                else f"The 95th percentile is {format_share(fastest / nominal.mb_s)} of {whose}."
            )
        return said


def read(
    query: MatrixQuery,
    window: Window,
    endpoints: Sequence[EndpointInfo],
    ends: Iterable[Filter],
    sites: Collection[str],
) -> TransferProfiles | None:
    """Look into the newest transfers of the size class that succeeded; None without any course.

    ``endpoints`` are all that the filters ``ends`` may name, ``sites`` those whose nominal
    capacities limit them. One SQL query.
    """
    filters = (*counted_filters(query.filters), *ends)
    selection = TransferSelection(window, None, filters, (Transfer.State.DONE,))
    rows = (
        selection.rows(endpoints).filter(size_class__name=query.size).order_by("-started_at", "-id")
    )
    taken = list(rows.values_list(*COLUMNS)[:MOST_TRANSFERS])
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
    return TransferProfiles(
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
    return NominalCapacity(site, capacities[site] * 1e9 / 8 / MB)


# What transfers of a shape do, and what it may mean.
SHAPE_WORDS: dict[ProfileShape, tuple[str, str]] = {
    "stalls": (
        "stall",
        f"no bytes move for at least {format_share(LONG_STALL)} of the time: check both storage "
        "endpoints, and look for packet loss",
    ),
    "saw-tooth": (
        "follow a saw-tooth pattern",
        "slow rises and sharp drops, typical of TCP after packet loss",
    ),
    "ramps": (
        "start slowly",
        "the first third has less than half the rate of the last: small TCP windows, or a slow "
        "source",
    ),
    "slows": (
        "slow down",
        "the last third has less than half the rate of the first: a buffer fills, or storage is "
        "slow",
    ),
    "ceiling": (
        "run at a constant maximum rate",
        "a steady rate, limited by a TCP window, a quota or a full network link",
    ),
    "uneven": ("vary irregularly", "typical of competing traffic"),
}
# The rate comes this close to the capacity where that limits it.
FULL = 0.9


def verb(shape: ProfileShape, count: int) -> str:
    """Return what transfers of a shape do, as is said of one or of several."""
    words = SHAPE_WORDS[shape][0]
    if count != 1:
        return words
    first, space, rest = words.partition(" ")
    third_person = f"{first[:-1]}ies" if first.endswith("y") else f"{first}s"
    return f"{third_person}{space}{rest}"
