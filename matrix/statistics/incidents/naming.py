"""What links that are not as expected have in common: one cause for all that it explains.

Pure numpy. First it is asked whether the whole grid is bad, which is Sonar itself or its own
network; then which ends fail, are silent or stay below what was promised, by how many of their
links do; and what is slow, by how surely its links are slower than usual (statistics.causes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Flags
from matrix.statistics.causes.causes import Cause, name_slow_now
from matrix.statistics.incidents.link_states import LinkStates
from matrix.statistics.incidents.shared_ends import (
    GRID,
    MOST_OF_GRID,
    STILL_MOST,
    STILL_SHARED,
    Place,
    is_of_grid,
    shared_ends,
)

SLOW, SILENT, FAILING = "slow", "silent", "failing"
# What is slow by less is nothing to call somebody for, and what is slow by more is well again.
SLOWEST_WELL, WELL = 2 / 3, 0.8
# A single link that fails is called when so many failures in a row are as rare as this by chance,
# as a natural log: there are many links, and many rows of tests.
RARE = math.log(1e-8)
# A slow one waits for so many intervals: other links of its ends may say more by then.
ROUNDS = 3
LEVELS = {"both": "endpoint"}


@dataclass(frozen=True)
class NamedFault:
    """A cause of one size class, and the links of it that are not as expected.

    ``factor``, with the bounds of its interval, is rate / expected of what is slow; NaN where there
    is none. ``of_links`` counts its judged links.
    """

    place: Place
    condition: str
    links: Flags
    of_links: int
    factor: float = math.nan
    low: float = math.nan
    high: float = math.nan


def name_faults(states: LinkStates, sites: Sequence[str]) -> list[NamedFault]:
    """Return what is wrong in a grid, what explains most first; ``sites`` are those of places."""
    if is_of_grid(states.bad, states.judged, sites, MOST_OF_GRID):
        return [whole_grid(states)]
    faults = [
        *of_flags(states, FAILING, states.failing, sites),
        *of_flags(states, SILENT, states.silent, sites),
        *of_flags(states, SLOW, states.promised, sites),
        *single_links(states, sites),
        *both_directions(slow_faults(states, sites)),
    ]
    return [fault for fault in faults if is_due(fault, states)]


def is_due(fault: NamedFault, states: LinkStates) -> bool:
    """Say whether it can be called: a slow link by itself has to be slow for long enough."""
    is_slow_link = fault.place.level == "link" and fault.condition == SLOW
    return not is_slow_link or bool((states.rounds[fault.links] >= ROUNDS).all())


def both_directions(faults: Iterable[NamedFault]) -> Iterator[NamedFault]:
    """Make one fault of those of an endpoint as a source and as a destination."""
    by_place: dict[int, NamedFault] = {}
    for fault in faults:
        place = fault.place
        if place.level not in ("source", "destination"):
            yield fault
            continue
        end = place.source if place.source is not None else place.destination or 0
        other = by_place.pop(end, None)
        by_place[end] = fault if other is None else joined(other, fault, end)
    yield from by_place.values()


def joined(first: NamedFault, second: NamedFault, end: int) -> NamedFault:
    """Return the fault of an endpoint of those of its two directions, with the mean factor."""
    figures = (
        math.sqrt(getattr(first, name) * getattr(second, name))
        for name in ("factor", "low", "high")
    )
    links, of_links = first.links | second.links, first.of_links + second.of_links
    return NamedFault(Place("endpoint", end, end), SLOW, links, of_links, *figures)


def whole_grid(states: LinkStates) -> NamedFault:
    """Describe a grid that is bad as a whole, by what is most common."""
    flags = {FAILING: states.failing, SILENT: states.silent, SLOW: states.slow}
    condition = max(flags, key=lambda name: int(flags[name].sum()))
    return described(GRID, condition, flags[condition], states, sites=())


def of_flags(
    states: LinkStates, condition: str, flags: Flags, sites: Sequence[str]
) -> Iterator[NamedFault]:
    """Yield the ends and sites that flagged links have in common."""
    for place in shared_ends(flags, states.judged, sites):
        yield described(place, condition, flags, states, sites)


def single_links(states: LinkStates, sites: Sequence[str]) -> Iterator[NamedFault]:
    """Yield links by themselves: slow against a promise, or failing beyond what chance does."""
    rare = states.failing & (states.doubt <= RARE)
    for condition, flags in ((FAILING, rare), (SLOW, states.promised)):
        shared = np.zeros_like(flags)
        for place in shared_ends(flags, states.judged, sites):
            shared |= place.links(flags.shape, sites)
        for row, column in np.argwhere(flags & ~shared).tolist():
            yield described(Place("link", row, column), condition, flags, states, sites)


def slow_faults(states: LinkStates, sites: Sequence[str]) -> Iterator[NamedFault]:
    """Yield what is slower than usual beyond chance, and by enough."""
    judged = np.isfinite(states.change)
    if not judged.any():
        return
    dof = max(int(np.median(states.dof[judged])), 1)
    for cause in name_slow_now(states.change, states.error, dof, sites=sites):
        if cause.factor <= SLOWEST_WELL:
            yield slow_fault(cause, states, sites)


def slow_fault(cause: Cause, states: LinkStates, sites: Sequence[str]) -> NamedFault:
    """Describe a cause: the links nearer to its factor than to their usual are of it."""
    site = sites[_first(cause)] if cause.kind == "site" else None
    row, column = (None, None) if site is not None else (cause.row, cause.column)
    place = Place(LEVELS.get(cause.kind, cause.kind), row, column, site)
    own = place.links(states.judged.shape, sites) & np.isfinite(states.change)
    nearer = own & (states.change <= math.log(cause.factor) / 2)
    count = int(own.sum())
    return NamedFault(place, SLOW, nearer, count, cause.factor, cause.low, cause.high)


def _first(cause: Cause) -> int:
    return cause.row if cause.row is not None else cause.column or 0


def described(
    place: Place, condition: str, flags: Flags, states: LinkStates, sites: Sequence[str]
) -> NamedFault:
    own = place.links(flags.shape, sites) & states.judged
    links = own & flags
    factor = typical_factor(states, links) if condition == SLOW else math.nan
    return NamedFault(place, condition, links, int(own.sum()), factor)


def typical_factor(states: LinkStates, links: Flags) -> float:
    """Return the geometric mean of rate / expected of some links, NaN without any."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(states.rate[links] / states.expected[links])
    logs = logs[np.isfinite(logs)]
    return float(np.exp(logs.mean())) if logs.size else math.nan


def what_is_left(
    place: Place, condition: str, states: LinkStates, sites: Sequence[str]
) -> NamedFault | None:
    """Return what an open fault is now; None if it is well again, or nothing is tested any more.

    It is well again later than it became bad: that keeps it from opening twice.
    """
    own = place.links(states.judged.shape, sites) & states.judged
    if not own.any():
        return None
    level = rest_level(own, states)
    flags = {
        FAILING: (states.streak > 0) & own,
        SILENT: states.silent & own,
        SLOW: states.unsettled & ~states.silent & (states.streak == 0) & own,
    }[condition]
    lasts = flags.sum() >= STILL_SHARED * own.sum()
    if place == GRID:
        lasts = is_of_grid(states.bad, own, sites, STILL_MOST)
    elif condition == SLOW and place.level != "link":
        # Where no test has come through since, nothing says that it is well again.
        lasts = not level >= WELL
    if not lasts:
        return None
    return NamedFault(place, condition, flags, int(own.sum()), level)


def rest_level(own: Flags, states: LinkStates) -> float:
    """Return the geometric mean of rate / expected of links, beside the middle of all others."""
    mean = typical_factor(states, own)
    others = states.change[~own & np.isfinite(states.change)]
    return mean / float(np.exp(np.median(others))) if others.size else mean
