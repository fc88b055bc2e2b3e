"""What happened on the sandbox's grid before its first start: made up, each with an end.

Nodes are as they are, today; a story says how its links were before, or for a while. One that
"goes on" is told by the other end: until then, links were better than they are now.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sonar.sandbox.topology import ALWAYS_FAILS, FAILURE_RATE, Link

PAST_HOURS = 36 * 24

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Story:
    """Between two times, links had ``factor`` times their rates of today, or failed otherwise.

    Times are hours before the first start. An empty ``source`` or ``destination`` is any;
    ``site`` is a site as both. A ``note`` of the site is of its time, or ``of_end`` of the hour
    after it.
    """

    name: str
    began: float
    ended: float
    source: str = ""
    destination: str = ""
    site: str = ""
    factor: float = 1
    failure_rate: float | None = None
    note: str = ""
    of_end: bool = False

    def is_of(self, source: str, destination: str) -> bool:
        if self.site:
            return self.site in (source, destination)
        return self.source in ("", source) and self.destination in ("", destination)

    @property
    def noted(self) -> tuple[float, float]:
        """Return from when to when its note is, in hours before the first start."""
        return (self.ended, self.ended - 1) if self.of_end else (self.began, self.ended)


STORIES = (
    Story(
        "a link that fails since, and worked before",
        began=PAST_HOURS,
        ended=64,
        source=ALWAYS_FAILS[0],
        destination=ALWAYS_FAILS[1],
        failure_rate=FAILURE_RATE,
    ),
    Story(
        "a firewall that slows one direction since, before which it received three times as fast",
        began=PAST_HOURS,
        ended=93,
        destination="TAIWAN-LCG2",
        factor=3,
    ),
    Story(
        "a single link that is slow since",
        began=PAST_HOURS,
        ended=38,
        source="UKI-SOUTHGRID-RALPP",
        destination="NDGF-T1",
        factor=2.8,
    ),
    Story(
        "an endpoint at half for four days, and well again",
        began=12.5 * 24,
        ended=8.5 * 24,
        site="FZK-LCG2",
        factor=0.5,
    ),
    Story(
        "a jump that a note explains",
        began=PAST_HOURS,
        ended=5 * 24,
        site="TRIUMF-LCG2",
        factor=0.55,
        note="New network cards in the pool nodes: 10 instead of 1 Gbit/s.",
        of_end=True,
    ),
    Story(
        "an overheated night",
        began=56,
        ended=40,
        site="UKI-LT2-QMUL",
        failure_rate=1,
        note="Cooling failed in the machine room: disk servers were switched off overnight.",
    ),
)


def of_link(link: Link) -> list[Story]:
    return [story for story in STORIES if story.is_of(link.source, link.destination)]


def course(link: Link, stories: Sequence[Story], hours_ago: Floats) -> tuple[Floats, Floats]:
    """Return how many times as fast as today a link was then, and which share of tests failed."""
    factors = np.ones(len(hours_ago))
    failing = np.full(len(hours_ago), link.failure_rate)
    for story in stories:
        then = (story.ended <= hours_ago) & (hours_ago < story.began)
        factors[then] *= story.factor
        if story.failure_rate is not None:
            failing[then] = story.failure_rate
    return factors, failing
