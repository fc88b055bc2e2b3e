"""A failing pattern: what the failures of a link have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from matrix.answers.diagnosis.evidence import FailureEvidence, LinkEvidence
from matrix.answers.diagnosis.fault import FailureCounts, Fault, fault_of
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.link.class_words import shortened
from matrix.answers.link.errors import WHERE
from matrix.statistics.cells.states import PARTLY_FROM
from sonar.notation.units import format_count

# Fewer failures have no pattern.
FEWEST = 3
# What most failures have in common, most of them have.
MOST = 2 / 3
# Hours of the day are a pattern where most failures are within so many of them, beyond chance.
HOURS = 6
CHANCE = 0.01


def failing_pattern(evidence: LinkEvidence) -> Diagnosis | None:
    failures = evidence.failures
    if (
        failures is None
        or failures.failed < FEWEST
        or failures.failed < PARTLY_FROM * failures.tests
    ):
        return None
    fault = fault_in(evidence, failures)
    whose = [(fault.sentence, fault.advice)] if fault else []
    patterns = [*whose, *common_cause(failures), *same_hours(failures)]
    if not patterns:
        return None
    sentences, advice = zip(*patterns, strict=True)
    return Diagnosis(
        "failing-pattern",
        f"{count_words(failures)} {evidence.size}-file tests failed.",
        sentences,
        " ".join(dict.fromkeys(advice)),
        failures.failed / failures.tests,
    )


def count_words(failures: FailureEvidence) -> str:
    """Begin a sentence with how many of all tests failed: `All 3`, `30 of 47`."""
    if failures.failed == failures.tests:
        return f"All {format_count(failures.failed)}"
    return f"{format_count(failures.failed)} of {format_count(failures.tests)}"


def fault_in(evidence: LinkEvidence, failures: FailureEvidence) -> Fault | None:
    """Say whose the failures of a size class are."""
    where: Counter[str] = Counter()
    for group in failures.groups:
        where[group.where] += group.count
    names = {"source": evidence.source, "destination": evidence.destination}
    return fault_of(FailureCounts(names, where, failures.elsewhere))


def hours_only(evidence: LinkEvidence, said: Diagnosis) -> list[Diagnosis]:
    """Return what is left to say beside a verdict with the errors and whose they are: the hours."""
    hours = same_hours(evidence.failures) if evidence.failures else ()
    return [replace(said, evidence=(sentence,), next=advice) for sentence, advice in hours]


def common_cause(failures: FailureEvidence) -> Iterator[tuple[str, str]]:
    """Say what most of them died of."""
    if not failures.groups:
        return
    first = failures.groups[0]
    total = sum(group.count for group in failures.groups)
    if first.count >= max(FEWEST, MOST * total):
        count = f"{format_count(first.count)} of {format_count(total)}"
        yield (
            f"{count} have one cause, {WHERE[first.where]}: {shortened(first.example.error)}.",
            "Begin with that error.",
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
        f"{format_count(bad)} of {format_count(failures.failed)} failed between {start:02}:00 and "
        f"{(start + HOURS) % 24:02}:00 UTC, when {100 * share:.0f} % of all tests ran.",
        "Check what runs in these hours: backups, maintenance, production at its peak.",
    )


def around_the_clock(counts: np.ndarray) -> np.ndarray:
    """Return for each hour how many are in the HOURS from then on."""
    return np.array([np.roll(counts, -hour)[:HOURS].sum() for hour in range(24)])


def at_least(count: int, of: int, share: float) -> float:
    """Return the chance of so many or more of so many, each with the chance ``share``."""
    return sum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in range(count, of + 1))
