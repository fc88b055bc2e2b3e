"""The diagnosis of a link, from the report on it and all links beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from matrix.answers import grid
from matrix.answers.diagnosis import evidence
from matrix.answers.diagnosis.diagnosis import diagnose
from matrix.answers.diagnosis.evidence import DirectedLink, LinkEvidence
from matrix.answers.diagnosis.failing_pattern import hours_only
from matrix.answers.diagnosis.fault import FailureCounts, Fault, fault_of
from matrix.answers.diagnosis.link_peers import AgainstOthers, against_others
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.diagnosis.streams import disobeyed, of_experiments
from matrix.answers.experiments.report import ExperimentReport
from matrix.answers.inside import lowest
from matrix.answers.link.report import LinkReport
from matrix.query.matrix_query import MatrixQuery
from matrix.store.transfers import CommonError


@dataclass(frozen=True)
class LinkDiagnosis:
    """``diagnoses`` are what the rules say, the strongest first.

    ``fault`` says whose it is that size classes fail now, of all of them together.
    """

    evidence: LinkEvidence
    diagnoses: list[Diagnosis]
    fault: Fault | None = None

    @property
    def beside_failing(self) -> list[Diagnosis]:
        """Return what is left to say beside a verdict that has the errors and whose they are."""
        left: list[Diagnosis] = []
        for said in self.diagnoses:
            is_said = said.kind == "failing-pattern"
            left += hours_only(self.evidence, said) if is_said else [said]
        return left

    @property
    def against_others(self) -> AgainstOthers | None:
        return against_others(self.evidence)

    @property
    def silence(self) -> str:
        """Say why there is no diagnosis; nothing if there is one."""
        if self.diagnoses:
            return ""
        size = self.evidence.size
        if not self.evidence.ok and not self.evidence.failures:
            return f"No results with {size} files in this window to judge by."
        if self.evidence.is_slow:
            return f"It is slow with {size} files, but no rule has the figures to say why."
        return f"Nothing stands out with {size} files."

    @property
    def wants_streams(self) -> bool:
        """Say whether an experiment with streams would tell more of why it is slow."""
        is_told = any(each.kind == "start-limited" for each in self.diagnoses)
        return self.evidence.is_slow and self.evidence.wants_streams and not is_told


def of_report(
    answer: LinkReport, reports: Sequence[ExperimentReport], now: datetime
) -> LinkDiagnosis:
    """Diagnose the direction of a report in the size class of its question.

    ``reports`` are the newest experiments of the link, newest first.
    """
    question, ends = answer.question, answer.question.ends
    source, destination = ends
    of_class = next(part for part in answer.classes if part.size == question.query.size)
    there = of_class.there
    link = DirectedLink(source, destination, there.size, there.level, there.usual, there.now)
    links = grid.build(beside(question.query), now)
    of_ends = evidence.of_link(
        link,
        links,
        answer.results,
        of_class.results,
        answer.profiles,
        tests=of_class.tests,
        overhead=answer.overhead(),
        streams=of_experiments(reports),
        disobeyed=disobeyed(reports, there.size),
        within=answer.inside,
        nominal=lowest(evidence.nominal_capacities({end.site for end in ends})),
        failures=answer.failures,
        network=answer.network,
        reported_round_trip_ms=answer.reported_round_trip_ms,
    )
    counts = FailureCounts(
        {"source": of_ends.source, "destination": of_ends.destination},
        where_counts(error for of_size in answer.errors.values() for error in of_size),
        evidence.failed_elsewhere(links, link),
    )
    return LinkDiagnosis(of_ends, diagnose(of_ends), fault_of(counts) if counts.where else None)


def where_counts(errors: Iterable[CommonError]) -> Counter[str]:
    """Return how many tests failed where."""
    counts: Counter[str] = Counter()
    for error in errors:
        counts[error.where] += error.count
    return counts


def beside(query: MatrixQuery) -> MatrixQuery:
    """Return the question to the matrix whose cells a link is compared with: medians of links."""
    return query.replace(stat="median", rows="endpoint", columns="endpoint", compare=None)
