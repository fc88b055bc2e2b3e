"""Compare links and cells with their rate targets: below, near or above. Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Counts, Flags, Floats
from matrix.statistics.cells.axes import Layout
from matrix.statistics.samples.reduce import ratio

# The worst last. A target has the fractions of its rate from which a link is near or above.
AGAINST = ("unknown", "above", "near", "below")
UNKNOWN, ABOVE, NEAR, BELOW = range(len(AGAINST))
TARGET_LOOKS = AGAINST[:UNKNOWN:-1]
AGAINST_WORDS = {
    "below": "below target: the median of the three latest successful tests is too low",
    "near": "near target: between the limits for “below target” and “on target”",
    "above": "on target, or faster",
}


class LinkRule(NamedTuple):
    """A target as in the model Target; rates in bytes/s.

    ``floor`` is NaN for a target that is the baseline of each link.
    """

    floor: float
    below: float
    above: float
    failures: int
    silent_after: float


@dataclass(frozen=True)
class LinkRules:
    """The rules, and by link which of them counts; shape (places, places)."""

    rules: Sequence[LinkRule]
    number: NDArray[np.uint16]

    def each(self, name: str) -> NDArray[np.float32]:
        """Return by link what its rule says."""
        values = np.array([getattr(rule, name) for rule in self.rules], dtype=np.float32)
        return values.take(self.number)


@dataclass(frozen=True)
class TargetRates(ArrayFields):
    """The rate target of each link; arrays of shape (places, places).

    ``rate`` is the minimum rate or the baseline in bytes/s, NaN where it is unknown. A link is
    below target under the fraction ``below`` of it, and near target up to the fraction ``above``.
    """

    rate: Floats
    below: NDArray[np.float32]
    above: NDArray[np.float32]

    def against(self, now: Floats) -> NDArray[np.uint8]:
        """Return of each link the number in AGAINST, by its rate now in bytes/s."""
        part = ratio(now, self.rate)
        judged = [np.isnan(part), part < self.below, part < self.above]
        return np.select(judged, [UNKNOWN, BELOW, NEAR], ABOVE).astype(np.uint8)


@dataclass(frozen=True)
class CellTargets(ArrayFields):
    """How cells compare with their targets; arrays of shape (sources, destinations).

    For a cell that pools several links, ``now`` and ``target`` are means in bytes/s over the links
    for which both are known. ``against`` indexes AGAINST: below, if more than half of these links
    are below; else near, if more than half are near or below. The other arrays count links.
    """

    now: Floats
    target: Floats
    against: NDArray[np.uint8]
    below_links: Counts
    near_links: Counts
    above_links: Counts

    @classmethod
    def of(cls, targets: TargetRates, now: Floats, counted: Flags, layout: Layout) -> Self:
        """Pool the links that are ``counted``; ``now`` is their rate in bytes/s."""
        level = targets.against(now) * counted
        below, near, above = (
            layout.pool(np.add, (level == kind).astype(np.int32)) for kind in (BELOW, NEAR, ABOVE)
        )
        links, is_known = below + near + above, level != UNKNOWN
        now, rate = (layout.mean(each, is_known) for each in (now, targets.rate))
        judged = [links == 0, 2 * below > links, 2 * (below + near) > links]
        against = np.select(judged, [UNKNOWN, BELOW, NEAR], ABOVE).astype(np.uint8)
        return cls(now, rate, against, below, near, above)

    def where(self, shown: Flags) -> Self:
        """Return them with nothing known of the other cells."""
        counts = {f"{name}_links": getattr(self, f"{name}_links") * shown for name in TARGET_LOOKS}
        return replace(self, against=self.against * shown, **counts)

    def of_look(self, look: str) -> Flags:
        """Say which cells have a link that is below, near or above."""
        return np.asarray(getattr(self, f"{look}_links") > 0)

    def each(self, change: Any) -> Self:  # noqa: ANN401 - of any array
        """Return them with each array changed, as to gather or to order its cells."""
        return type(self)(*map(change, self.arrays().values()))
