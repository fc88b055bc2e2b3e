"""What the trouble of a site has in common: it sends badly, receives badly, both, or neither.

As MaDDash's Madalert did it for failures; here with numbers, and for slowness, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matrix.answers.site.ranking import ENDS, RankedSide
from matrix.answers.site.reports import Report
from matrix.statistics.arrays import Flags
from sonar.notation.units import format_count

# From so many partners on, most of them say something about the site.
FEWEST = 3
MOST = 2 / 3
# Of what the median of the peers gets with the same partner.
SLOW = 0.5
FEWEST_PEERS = 2
NAMED = 5

AS = {"source": "as source", "destination": "as destination"}
TO = {"source": "to", "destination": "from"}
OTHER = {"source": "destination", "destination": "source"}
LOOK = {
    "source": "All read from this site: check its test files, read permissions and outgoing doors.",
    "destination": "All write to this site: check its free space, write permissions and incoming "
    "doors.",
    "both": "All involve this site: check its storage service, network and credential.",
}

OTHERS_WORK = (
    "Most others work: check first which partners fail with other sites, then the network between."
)
FEW = "Too few partners were tested to say whether the problem is here or at them."


@dataclass(frozen=True)
class Finding:
    title: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class FailureShare:
    """How many of the partners that can be judged are bad."""

    bad: int
    judged: int

    @property
    def is_most(self) -> bool:
        return self.judged >= FEWEST and self.bad >= MOST * self.judged

    def __str__(self) -> str:
        return f"{format_count(self.bad)} of {format_count(self.judged)}"


@dataclass(frozen=True)
class Judged:
    """The partners of a site at one end, judged; arrays by partner."""

    side: RankedSide
    bad: Flags
    judged: Flags

    @property
    def share(self) -> FailureShare:
        return FailureShare(int(self.bad.sum()), int(self.judged.sum()))


def findings(report: Report) -> list[Finding]:
    """Return what stands out in the size class asked for, failures first."""
    failing: dict[str, Judged] = {}
    slow: dict[str, Judged] = {}
    for end in ENDS:
        side = RankedSide.of(report.sites[report.query.size], end)
        row = side.row_of(report.name)
        if row is None:
            nobody = np.zeros(len(side.partners), dtype=bool)
            failing[end] = slow[end] = Judged(side, nobody, nobody)
            continue
        ok, failed = side.ok[row], side.failed[row]
        # By counts, bad is a partner with which more tests failed than were ok.
        failing[end] = Judged(side, failed > ok, failed + ok > 0)
        slow[end] = slow_of(side, row)
    return [*of_failures(failing, report.name), *of_slowness(slow)]


def slow_of(side: RankedSide, row: int) -> Judged:
    """Judge by rates: those of the other sites of the tier with the same partner."""
    tiers = side.tiers
    peers = side.mean[(tiers == tiers[row]) & (np.arange(len(tiers)) != row)]
    enough = (~np.isnan(peers)).sum(axis=0) >= FEWEST_PEERS
    judged = enough & ~np.isnan(side.mean[row])
    usual = np.full(len(judged), np.nan)
    usual[judged] = np.nanmedian(peers[:, judged], axis=0) if judged.any() else np.nan
    return Judged(side, judged & (side.mean[row] < SLOW * usual), judged)


def of_failures(failing: dict[str, Judged], name: str) -> Iterator[Finding]:
    shares = {end: judged.share for end, judged in failing.items()}
    if all(share.is_most for share in shares.values()):
        yield Finding(
            "Fails as source and as destination.",
            f"More tests failed than succeeded with {shares['source']} destinations and with "
            f"{shares['destination']} sources.",
            LOOK["both"],
        )
        return
    for end, share in shares.items():
        if share.is_most:
            yield Finding(
                f"Fails {AS[end]}, not {AS[OTHER[end]]}.",
                f"More tests failed than succeeded with {share} {OTHER[end]}s; {AS[OTHER[end]]} "
                f"only with {shares[OTHER[end]]} {end}s.",
                LOOK[end],
            )
        elif share.bad:
            yield single(failing[end], name)


def single(judged: Judged, name: str) -> Finding:
    """Name the partners, and say of each with how many others it fails likewise."""
    side, end, share = judged.side, judged.side.end, judged.share
    others = np.array([group.name != name for group in side.groups], dtype=bool)
    partners = np.flatnonzero(judged.bad).tolist()
    named = []
    for partner in partners[:NAMED]:
        ok, failed = side.ok[others, partner], side.failed[others, partner]
        of_others = FailureShare(int((failed > ok).sum()), int((failed + ok > 0).sum()))
        likewise = f"fails with {of_others} other" if of_others.judged else "not tested with other"
        named.append(f"{TO[end]} {side.partners[partner].name} ({likewise} {end}s)")
    more = f", and {len(partners) - NAMED} more" if len(partners) > NAMED else ""
    return Finding(
        f"Fails {AS[end]} on individual links.",
        f"More tests failed than succeeded with {share} {OTHER[end]}s: {', '.join(named)}{more}.",
        FEW if share.judged < FEWEST else OTHERS_WORK,
    )


def of_slowness(slow: dict[str, Judged]) -> Iterator[Finding]:
    for end, judged in slow.items():
        if judged.share.is_most:
            does = "sends to" if end == "source" else "receives from"
            yield Finding(
                f"Slow {AS[end]} with most {OTHER[end]}s.",
                f"It {does} {judged.share} {OTHER[end]}s at less than half the median rate of "
                "its tier with the same partner.",
                "Compare its fastest transfer with its nominal WAN capacity, and check the load on "
                "its storage.",
            )
