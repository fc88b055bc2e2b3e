"""Whose fault it is that tests of a link fail: where they fail, and what other links do there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matrix.statistics.cells.states import PARTLY_FROM
from sonar.notation.units import format_count

# An end is judged by its other links from so many of their tests on.
FEWEST = 3
# Failures are of one end where so many of them happen there.
MOST = 2 / 3
# An end fails elsewhere, too, if so many of the tests on its other links do.
OFTEN = 0.5
ENDS = ("source", "destination")
OPPOSITE = {"source": "destination", "destination": "source"}
# Tests on the other links of an end: `from other sources to CAM`.
OTHERS = {"source": "from {} to other destinations", "destination": "from other sources to {}"}
PAIR = "Check what is specific to this pair: permissions, routing, firewalls."
SONAR = "Check Sonar's own workers first: the page of operations says how they are."


@dataclass(frozen=True)
class Fault:
    """Whose it is in one sentence, with the counts that say so, and what to check."""

    sentence: str
    advice: str


@dataclass(frozen=True)
class FailureCounts:
    """Failed tests of a link by where they failed, and tests on other links of its ends.

    ``names`` are those of the ends; ``elsewhere`` has, by end, how many of the tests on its other
    links failed, and how many there were.
    """

    names: Mapping[str, str]
    where: Mapping[str, int]
    elsewhere: Mapping[str, tuple[int, int]]

    @property
    def place(self) -> str:
        """Return where most of them failed; nothing where they failed here and there."""
        total = sum(self.where.values())
        return next((at for at, count in self.where.items() if count >= MOST * total > 0), "")

    def judged(self, end: str) -> bool:
        return self.elsewhere.get(end, (0, 0))[1] >= FEWEST

    def fails(self, end: str, share: float) -> bool:
        """Say whether such a share of the tests on the other links of an end failed."""
        bad, tests = self.elsewhere.get(end, (0, 0))
        return self.judged(end) and bad >= share * tests

    def others(self, end: str) -> str:
        """Count tests elsewhere: `30 of 40 tests from other sources to CAM failed`."""
        bad, tests = self.elsewhere[end]
        counts = f"{format_count(bad)} of {format_count(tests)} tests"
        return f"{counts} {OTHERS[end].format(self.names[end])} failed"


def fault_of(counts: FailureCounts) -> Fault | None:
    """Say whose the failures are in one statement; None where there is nothing to tell by."""
    place = counts.place
    if place == "control":
        return Fault("Sonar itself failed, not an endpoint.", SONAR)
    # An end that fails with others, too, is first looked for where the tests of this link fail.
    order = (place, OPPOSITE[place]) if place in ENDS else ENDS
    bad = [end for end in order if counts.fails(end, OFTEN)]
    if bad:
        return at_end(counts, bad[0])
    if place in ENDS:
        return of_place(counts, place)
    return of_pair(counts)


def at_end(counts: FailureCounts, end: str) -> Fault:
    """Say that an end fails with others, too."""
    return Fault(
        f"The {end} fails with others, too: {counts.others(end)}.",
        f"Check {counts.names[end]} first.",
    )


def of_place(counts: FailureCounts, end: str) -> Fault:
    """Say of the end where most tests fail whether this link is the only one."""
    check = f"Check {counts.names[end]} first."
    if not counts.judged(end):
        return Fault(f"The {end} fails; its other links have too few tests to compare.", check)
    if counts.fails(end, PARTLY_FROM):
        return Fault(f"The {end} fails with some others, too: {counts.others(end)}.", check)
    bad, tests = counts.elsewhere[end]
    return Fault(
        f"The {end} refuses this {OPPOSITE[end]} only; others work "
        f"({format_count(bad)} of {format_count(tests)} tests failed).",
        PAIR,
    )


def of_pair(counts: FailureCounts) -> Fault | None:
    """Say of tests that fail in between, or here and there, that both ends work otherwise."""
    if not all(map(counts.judged, ENDS)):
        return None
    partly = [end for end in ENDS if counts.fails(end, PARTLY_FROM)]
    if partly:
        return Fault(
            f"The {partly[0]} fails with some others, too: {counts.others(partly[0])}.",
            f"Check {counts.names[partly[0]]} first.",
        )
    pairs = zip(*counts.elsewhere.values(), strict=True)
    bad, tests = (format_count(sum(each)) for each in pairs)
    return Fault(
        "Only this link fails; other links of both endpoints work "
        f"({bad} of {tests} tests failed).",
        PAIR,
    )
