"""The diagnosis of a link, from the report on it and all links beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from matrix.answers.causes.attribution import NOTABLE
from matrix.answers.causes.words import percent
from matrix.answers.diagnosis import evidence, rules
from matrix.answers.diagnosis.evidence import (
    FEWEST_TESTS,
    SLOW,
    Diagnosis,
    DirectedLink,
    LinkEvidence,
)
from matrix.answers.link.report import LinkReport, of_links
from matrix.answers.link.verdict import ordered
from matrix.answers.matrix import grid
from matrix.answers.ordering.sweeps import SweepReport
from matrix.store.transfers import led_tests
from sonar.models import Condition
from sonar.notation.units import format_count, three_digits, two_digits


@dataclass(frozen=True)
class LinkDiagnosis:
    """What the rules say, the strongest first; ``fault`` says whose all failing classes are."""

    evidence: LinkEvidence
    diagnoses: list[Diagnosis]
    fault: rules.Fault | None = None

    @property
    def beside_failing(self) -> list[Diagnosis]:
        """Return what is left to say of a failing link: of failures, only their hours."""
        failures, rest = self.evidence.failures, []
        for said in self.diagnoses:
            if said.kind != "failing-pattern":
                rest.append(said)
            elif failures:
                hours = rules.same_hours(failures)
                rest += [replace(said, evidence=(text,), next=advice) for text, advice in hours]
        return rest

    @property
    def against_others(self) -> dict[str, str] | None:
        """Compare the link with what both its ends reach elsewhere; None where that is unknown.

        `kind` is a level, for the colour; `rest` has the rates for the `first` sentence.
        """
        link = self.evidence
        elsewhere = link.both_elsewhere
        if link.ok < FEWEST_TESTS or math.isnan(elsewhere):
            return None
        part = link.median / elsewhere
        kind = "slower" if part <= SLOW else "faster" if part * SLOW >= 1 else "usual"
        words = {"slower": "Slow compared with", "faster": "Fast compared with"}.get(
            kind, "Similar to"
        )
        if kind == "usual" and not 1 / NOTABLE < part < NOTABLE:
            words = f"Somewhat {'slower' if part < 1 else 'faster'} than"
        low, high = (bound / elsewhere for bound in link.around)
        interval = "" if math.isnan(low) else f"{two_digits(100 * low)}–{percent(high)}, "
        return {
            "kind": kind,
            "first": f"{words} the other links of both endpoints in this time range: "
            f"{percent(part)} of their rate ({interval}{format_count(link.ok)} tests).",
            "rest": f"{three_digits(link.median)} MB/s with {link.size} files. "
            f"{rules.rate_words(link, 'source')}. {rules.rate_words(link, 'destination')}.",
        }

    @property
    def silence(self) -> str:
        if self.diagnoses:
            return ""
        size = self.evidence.size
        if not self.evidence.ok and not self.evidence.failures:
            return f"There are no results for {size} files to diagnose in this time range."
        if self.evidence.is_slow:
            return f"This link is slow with {size} files, but its results do not show why."
        return f"No problem stands out with {size} files."

    @property
    def wants_streams(self) -> bool:
        """Say whether a sweep with streams would tell more of why it is slow."""
        is_told = any(each.kind == "start-limited" for each in self.diagnoses)
        return self.evidence.is_slow and self.evidence.wants_streams and not is_told


def diagnosis_of_report(
    answer: LinkReport,
    reports: Sequence[SweepReport],
    now: datetime,
    *,
    names_machines: bool,
) -> LinkDiagnosis:
    """Diagnose the direction of a report in the size class of its question.

    ``reports`` are the newest sweeps of the link, newest first. Data servers are named only
    for those who may see machines.
    """
    question, of_class = answer.question, answer.chosen
    there, conditions = of_class.there, of_links(answer.judgement)
    link = DirectedLink(*question.ends, there.size, there.level, there.usual, there.now, conditions)
    links = grid.build(evidence.beside_query(question.query), now)
    led = led_tests(answer.rows, link.size)
    of_ends = evidence.link_evidence(
        link,
        links,
        answer.results,
        of_class.results,
        answer.profiles,
        tests=of_class.tests,
        reports=reports,
        capacities=evidence.nominal_capacities({end.site for end in question.ends}),
        overhead=answer.overhead(),
        profile=answer.rate_profile,
        failures=answer.failures,
        network=answer.network,
        reported_round_trip_ms=answer.reported_round_trip_ms,
        led=led if names_machines else [test._replace(host="") for test in led],
    )
    where = rules.where_of(chain.from_iterable(answer.errors.values()))
    elsewhere = evidence.failed_elsewhere(links, link)
    # Of all size classes that fail, whichever is drawn.
    failing = {
        side: each
        for each in reversed(ordered(conditions))
        if each.type == Condition.Type.FAILING and each.confirmed_at
        for side in link.sides(each)
    }
    names = {end: peer.name for end, peer in of_ends.ends.items()}
    fault = rules.fault_of(names, where, elsewhere, failing) if where else None
    return LinkDiagnosis(of_ends, rules.diagnose(of_ends), fault)
