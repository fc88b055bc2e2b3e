"""A failing pattern: what the failures of a link have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from matrix.answers.diagnosis.evidence import FailureEvidence, LinkEvidence
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.link.class_words import shortened
from matrix.answers.link.errors import WHERE
from matrix.statistics.states import PARTLY_FROM
from sonar.units import format_count

# Fewer failures have no pattern.
FEWEST = 3
# What most failures have in common, most of them have.
MOST = 2 / 3
# Hours of the day are a pattern where most failures are within so many of them, beyond chance.
HOURS = 6
CHANCE = 0.01
# An end fails elsewhere, too, if so many of its tests on other links do.
OFTEN = 0.5


def failing_pattern(evidence: LinkEvidence) -> Diagnosis | None:
    failures = evidence.failures
    if (
        failures is None
        or failures.failed < FEWEST
        or failures.failed < PARTLY_FROM * failures.tests
    ):
        return None
    patterns = [*common_cause(failures), *same_hours(failures), *ends(evidence, failures)]
    if not patterns:
        return None
    share = failures.failed / failures.tests
    headlines, advice = zip(*patterns, strict=True)
    return Diagnosis(
        "failing-pattern",
        f"{format_count(failures.failed)} of {format_count(failures.tests)} tests with "
        f"{evidence.size} files failed, and not at random.",
        headlines,
        " ".join(dict.fromkeys(advice)),
        share,
    )


def common_cause(failures: FailureEvidence) -> Iterator[tuple[str, str]]:
    """Say what most of them died of."""
    if not failures.groups:
        return
    first = failures.groups[0]
    total = sum(group.count for group in failures.groups)
    if first.count >= max(FEWEST, MOST * total):
        count = f"{format_count(first.count)} of {format_count(total)}"
        where = WHERE[first.where]
        yield (
            f"{count} have one cause, {where}: {shortened(first.example.error)}",
            "Begin with that error: one cause explains most failures.",
        )


def same_hours(failures: FailureEvidence) -> Iterator[tuple[str, str]]:
    """Say in which hours of the day most of them were, if chance does not explain it."""
    counts = np.bincount(failures.hours, minlength=24)
    tests = np.bincount(failures.hours_of_tests, minlength=24)
    within, of_tests = (around_the_clock(values) for values in (counts, tests))
    start = int(np.argmax(within - of_tests * failures.failed / failures.tests))
    bad, share = int(within[start]), float(of_tests[start]) / failures.tests
    if bad < max(FEWEST, MOST * failures.failed) or share >= 1:
        return
    # Each of the 24 stretches may be the one that stands out.
    if 24 * at_least(bad, failures.failed, share) > CHANCE:
        return
    yield (
        f"{format_count(bad)} of {format_count(failures.failed)} were between {start:02}:00 and "
        f"{(start + HOURS) % 24:02}:00 UTC, with {share:.0%} of all tests.",
        "Look at what runs in these hours: backups, maintenance, production at its peak.",
    )


def around_the_clock(counts: np.ndarray) -> np.ndarray:
    """Return for each hour how many are in the HOURS from then on."""
    return np.array([np.roll(counts, -hour)[:HOURS].sum() for hour in range(24)])


def at_least(count: int, of: int, share: float) -> float:
    """Return the chance of so many or more of so many, each with the chance ``share``."""
    return sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count, of + 1))


def ends(evidence: LinkEvidence, failures: FailureEvidence) -> Iterator[tuple[str, str]]:
    """Say which end fails on its other links, too, or that none does."""
    names = {"source": evidence.source, "destination": evidence.destination}
    judged = {end: counts for end, counts in failures.elsewhere.items() if counts[1] >= FEWEST}
    for end, (bad, tests) in judged.items():
        words = f"{format_count(bad)} of {format_count(tests)} tests on the other links of"
        if bad >= OFTEN * tests:
            yield f"{words} {names[end]} as a {end} failed, too.", f"Look at {names[end]} first."
    if len(judged) == 2 and all(bad < PARTLY_FROM * tests for bad, tests in judged.values()):
        counts = " and ".join(
            f"{format_count(bad)} of {format_count(tests)} from {names[end]}"
            if end == "source"
            else f"{format_count(bad)} of {format_count(tests)} to {names[end]}"
            for end, (bad, tests) in judged.items()
        )
        yield (
            f"On their other links few tests fail: {counts}.",
            "Look at what only this pair shares: rights of one at the other, routes, firewalls.",
        )
