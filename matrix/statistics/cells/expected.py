"""How links and cells do against what is expected of them: below, near or above it. Pure numpy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import ArrayFields, Counts, Flags, Floats
from matrix.statistics.cells.axes import Layout
from matrix.statistics.samples.reduce import ratio

# The worst last. An expectation has the parts of its rate from which on a link is near or above.
AGAINST = ("unknown", "above", "near", "below")
UNKNOWN, ABOVE, NEAR, BELOW = range(len(AGAINST))
EXPECTED_LOOKS = AGAINST[:UNKNOWN:-1]
AGAINST_WORDS = {
    "below": "below what is expected: the median of its newest three successes is too low",
    "near": "near what is expected: neither below nor yet as expected",
    "above": "as expected, or more",
}


class LinkRule(NamedTuple):
    """What is expected of some links; rates in bytes/s, fields as in the model of expectations.

    ``floor`` is NaN where the usual rate of each link is expected.
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
class Expected(ArrayFields):
    """What is expected of each link; arrays of shape (places, places).

    ``rate`` is in bytes/s, NaN where it is unknown: a floor, or what is usual. A link is below it
    under the part ``below`` of it, and near it up to the part ``above``.
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
class CellExpectations(ArrayFields):
    """How cells do against what is expected; arrays of shape (sources, destinations).

    Of a cell that pools several links, ``now`` and ``expected`` are the means of those of which
    both are known, in bytes/s, and ``against``, which indexes AGAINST, is the worst that most of
    them are at best: below, if more than half of them are, else near, if more than half are that
    or below. The others count those links.
    """

    now: Floats
    expected: Floats
    against: NDArray[np.uint8]
    below_links: Counts
    near_links: Counts
    above_links: Counts

    @classmethod
    def of(cls, expected: Expected, now: Floats, counted: Flags, layout: Layout) -> Self:
        """Pool the links that are ``counted``; ``now`` is their rate in bytes/s."""
        level = expected.against(now) * counted
        below, near, above = (
            layout.pool(np.add, (level == kind).astype(np.int32)) for kind in (BELOW, NEAR, ABOVE)
        )
        links, is_known = below + near + above, level != UNKNOWN
        now, rate = (layout.mean(each, is_known) for each in (now, expected.rate))
        judged = [links == 0, 2 * below > links, 2 * (below + near) > links]
        against = np.select(judged, [UNKNOWN, BELOW, NEAR], ABOVE).astype(np.uint8)
        return cls(now, rate, against, below, near, above)

    def where(self, shown: Flags) -> Self:
        """Return them with nothing known of the other cells."""
        counts = {
            f"{name}_links": getattr(self, f"{name}_links") * shown for name in EXPECTED_LOOKS
        }
        return replace(self, against=self.against * shown, **counts)

    def of_look(self, look: str) -> Flags:
        """Say which cells have a link that is below, near or above."""
        return np.asarray(getattr(self, f"{look}_links") > 0)

    def each(self, change: Any) -> Self:  # noqa: ANN401 - of any array
        """Return them with each array changed, as to gather or to order its cells."""
        return type(self)(*map(change, self.arrays().values()))
