"""What happened on the grid of a sandbox before its first start: the plot of its made-up past.

The front page of a sandbox asks its reader to find what goes on, so web processes read this, too:
it needs nothing that their image lacks.
"""

from dataclasses import dataclass

from sonar.sandbox.topology import ALWAYS_FAILS, FAILURE_RATE

PAST_HOURS = 36 * 24


@dataclass(frozen=True)
class Story:
    """Between two times, links had ``factor`` times their rates of today, or failed otherwise.

    Times are hours before the first start. An empty ``source`` or ``destination`` is any;
    ``site`` is a site as both. A ``note`` of the site is of its time, or ``of_end`` of the hour
    after it. A story with a ``question`` goes on: the front page asks its reader to find it.
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
    question: str = ""

    def is_of(self, source: str, destination: str) -> bool:
        if self.site:
            return self.site in (source, destination)
        return self.source in ("", source) and self.destination in ("", destination)

    @property
    def noted(self) -> tuple[float, float]:
        """Return from when to when its note is, in hours before the first start."""
        return (self.ended, self.ended - 1) if self.of_end else (self.began, self.ended)

    @property
    def links(self) -> str:
        if self.site or not self.source:
            return f"all links {'of' if self.site else 'to'} {self.site or self.destination}"
        return f"{self.source} → {self.destination}"


STORIES = (
    Story(
        "this link fails, but worked before",
        question="One link fails. Which one, and since when?",
        began=PAST_HOURS,
        ended=64,
        source=ALWAYS_FAILS[0],
        destination=ALWAYS_FAILS[1],
        failure_rate=FAILURE_RATE,
    ),
    Story(
        "a firewall slows transfers to this site to a third of the previous rate",
        question="One site receives slowly. Which one, and since when?",
        began=PAST_HOURS,
        ended=93,
        destination="TAIWAN-LCG2",
        factor=3,
    ),
    Story(
        "only this link has become slow",
        question="Another link has become slow, but no other link of its endpoints. Which one?",
        began=PAST_HOURS,
        ended=38,
        source="UKI-SOUTHGRID-RALPP",
        destination="NDGF-T1",
        factor=2.8,
    ),
    Story(
        "an endpoint at half its rate for four days, then normal again",
        began=12.5 * 24,
        ended=8.5 * 24,
        site="FZK-LCG2",
        factor=0.5,
    ),
    Story(
        "a jump in the rate that a note explains",
        began=PAST_HOURS,
        ended=5 * 24,
        site="TRIUMF-LCG2",
        factor=0.55,
        note="New network cards in the pool nodes: 10 instead of 1 Gbit/s.",
        of_end=True,
    ),
    Story(
        "a night with failed cooling",
        began=56,
        ended=40,
        site="UKI-LT2-QMUL",
        failure_rate=1,
        note="Cooling failed in the machine room: disk servers were switched off overnight.",
    ),
)
