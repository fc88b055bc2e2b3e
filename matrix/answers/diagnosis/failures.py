"""Why tests of a link fail: whose fault it is, and what their failures have in common."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from matrix.answers.conditions import words
from matrix.answers.diagnosis.evidence import Diagnosis, FailureEvidence, LinkEvidence
from matrix.answers.words.advice import PAIR, SONAR
from matrix.answers.words.phrases import WHERE, shortened
from matrix.query.attributes import ENDS
from matrix.statistics.cells.states import PARTLY_FROM
from matrix.store.transfers import CommonError, SimilarFailures
from sonar.models import Condition
from sonar.notation.units import format_count

# Fewer failures have no pattern.
FEWEST_FAILURES = 3
# What most failures have in common, most of them have: a cause, hours, or where they happen.
MOST_FAILURES = 2 / 3
# Hours of the day are a pattern where most failures are within so many of them, beyond chance.
HOURS = 6
CHANCE = 0.01
# An end is judged by its other links from so many of their tests on, and fails there, too, if so
# many of these do.
FEWEST_ELSEWHERE = 3
OFTEN = 0.5
OPPOSITE = {"source": "destination", "destination": "source"}
# Tests on the other links of an end: `from other sources to CAM`.
OTHERS = {"source": "from {} to other destinations", "destination": "from other sources to {}"}


@dataclass(frozen=True)
class Fault:
    """Whose it is in one sentence, with the counts that say so, and what to check."""

    sentence: str
    advice: str


@dataclass(frozen=True)
class FailureCounts:
    """Failed tests of a link by where they failed, and tests on other links of its ends.

    ``names`` are those of the ends; ``elsewhere`` has, by end, how many of the tests on its other
    links failed, and how many there were. ``conditions`` are those that make it fail, by whose they
    are, as LinkEvidence has them.
    """

    names: Mapping[str, str]
    where: Mapping[str, int]
    elsewhere: Mapping[str, tuple[int, int]]
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return where most of them failed; nothing where they failed here and there."""
        total = sum(self.where.values())
        return next(
            (at for at, count in self.where.items() if count >= MOST_FAILURES * total > 0), ""
        )

    def judged(self, end: str) -> bool:
        return self.elsewhere.get(end, (0, 0))[1] >= FEWEST_ELSEWHERE

    def fails(self, end: str, share: float) -> bool:
        """Return whether such a share of the tests on the other links of an end failed."""
        bad, tests = self.elsewhere.get(end, (0, 0))
        return self.judged(end) and bad >= share * tests

    def at(self, end: str, with_others: str) -> Fault:
        """Say that an end fails with others, too: `30 of 40 tests from other sources to CAM`."""
        bad, tests = self.elsewhere[end]
        counts = f"{format_count(bad)} of {format_count(tests)} tests"
        others = OTHERS[end].format(self.names[end])
        return Fault(
            f"The {end} fails with {with_others}, too: {counts} {others} failed.",
            f"Check {self.names[end]} first.",
        )

    def of_condition(self, end: str) -> Fault:
        """Say that an end fails with others, too, by its condition."""
        condition = self.conditions[end]
        evidence = ", ".join(words.evidence(condition))
        return Fault(f"The {end} fails with others, too: {evidence}.", words.advice(condition))


def where_of(errors: Iterable[CommonError | SimilarFailures]) -> Counter[str]:
    """Count failed tests by where they failed."""
    where: Counter[str] = Counter()
    for error in errors:
        where[error.where] += error.count
    return where


def fault_of(counts: FailureCounts) -> Fault | None:
    """Say whose the failures are in one statement; None where there is nothing to tell by.

    A condition of an end says it. Without one the tests on other links of both ends do.
    """
    place = counts.place
    if place == "control":
        return Fault("Sonar itself failed, not an endpoint.", SONAR)
    # An end that fails with others, too, is first looked for where the tests of this link fail.
    order = (place, OPPOSITE[place]) if place in ENDS else ENDS
    if wide := [counts.of_condition(end) for end in order if end in counts.conditions]:
        return wide[0]
    for end in order:
        if counts.fails(end, OFTEN):
            return counts.at(end, "others")
    # Where they fail in between, or here and there, both ends have to work otherwise.
    if place not in ENDS and not all(map(counts.judged, ENDS)):
        return None
    for end in order[:1] if place in ENDS else ENDS:
        if counts.fails(end, PARTLY_FROM):
            return counts.at(end, "some others")
    return only_here(counts, place)


def only_here(counts: FailureCounts, place: str) -> Fault:
    """Say that other links work, or are not known to: of one end, or of both."""
    if place in ENDS and not counts.judged(place):
        return Fault(
            f"The {place} fails; its other links have too few tests to compare.",
            f"Check {counts.names[place]} first.",
        )
    whose = [counts.elsewhere[place]] if place in ENDS else counts.elsewhere.values()
    bad, tests = (format_count(sum(each)) for each in zip(*whose, strict=True))
    if place in ENDS:
        first = f"The {place} refuses this {OPPOSITE[place]} only; others work"
    else:
        first = "Only this link fails; other links of both endpoints work"
    return Fault(f"{first} ({bad} of {tests} tests failed).", PAIR)


def failing_pattern(evidence: LinkEvidence) -> Diagnosis | None:
    """Say what the failures of a link have in common; None for few, or without a pattern."""
    failures = evidence.failures
    if failures is None or failures.failed < FEWEST_FAILURES:
        return None
    if failures.failed < PARTLY_FROM * failures.tests:
        return None
    where = where_of(failures.groups)
    counts = FailureCounts(evidence.names, where, failures.elsewhere, evidence.failing)
    fault = fault_of(counts)
    whose = [(fault.sentence, fault.advice)] if fault else []
    patterns = [*whose, *common_cause(failures), *same_hours(failures)]
    if not patterns:
        return None
    sentences, advice = zip(*patterns, strict=True)
    failed, tests = map(format_count, (failures.failed, failures.tests))
    said = f"All {failed}" if failed == tests else f"{failed} of {tests}"
    return Diagnosis(
        "failing-pattern",
        f"{said} {evidence.size}-file tests failed.",
        sentences,
        " ".join(dict.fromkeys(advice)),
        failures.failed / failures.tests,
    )


def hours_only(evidence: LinkEvidence, said: Diagnosis) -> list[Diagnosis]:
    """Return what is left to say beside a verdict with the errors and whose they are: the hours."""
    hours = same_hours(evidence.failures) if evidence.failures else ()
    return [replace(said, evidence=(sentence,), next=advice) for sentence, advice in hours]


def common_cause(failures: FailureEvidence) -> Iterator[tuple[str, str]]:
    """Say what most of them died of."""
    total = sum(group.count for group in failures.groups)
    for first in failures.groups[:1]:
        if first.count >= max(FEWEST_FAILURES, MOST_FAILURES * total):
            yield (
                f"{format_count(first.count)} of {format_count(total)} have one cause, "
                f"{WHERE[first.where]}: {shortened(first.example.error)}.",
                "Begin with that error.",
            )


def same_hours(failures: FailureEvidence) -> Iterator[tuple[str, str]]:
    """Say in which hours of the day most of them were, if chance does not explain it."""
    within, of_tests = (
        np.array([np.roll(counts, -hour)[:HOURS].sum() for hour in range(24)])
        for counts in (
            np.bincount(hours, minlength=24) for hours in (failures.hours, failures.hours_of_tests)
        )
    )
    failed = failures.failed
    start = int(np.argmax(within - of_tests * failed / failures.tests))
    bad, share = int(within[start]), float(of_tests[start]) / failures.tests
    if bad < max(FEWEST_FAILURES, MOST_FAILURES * failed) or share >= 1:
        return
    # The chance of so many or more; each of the 24 stretches may be the one that stands out.
    chance = sum(
        math.comb(failed, count) * share**count * (1 - share) ** (failed - count)
        for count in range(bad, failed + 1)
    )
    if 24 * chance > CHANCE:
        return
    yield (
        f"{format_count(bad)} of {format_count(failed)} failed between {start:02}:00 and "
        f"{(start + HOURS) % 24:02}:00 UTC, when {100 * share:.0f} % of all tests ran.",
        "Check what runs in these hours: backups, maintenance, production at its peak.",
    )
