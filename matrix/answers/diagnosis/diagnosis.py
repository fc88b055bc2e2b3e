"""Why a link is slow or fails, as far as its evidence tells: what rules say, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from matrix.answers.diagnosis.at_capacity import at_capacity
from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.failing_pattern import failing_pattern
from matrix.answers.diagnosis.loss_limited import loss_limited
from matrix.answers.diagnosis.network_words import network_words
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.diagnosis.slow_link import slow_link
from matrix.answers.diagnosis.start_limited import start_limited
from matrix.answers.diagnosis.storage_limited import storage_limited
from matrix.answers.diagnosis.window_limited import window_limited

Rule = Callable[[LinkEvidence], Diagnosis | None]

RULES: tuple[Rule, ...] = (
    failing_pattern,
    start_limited,
    window_limited,
    loss_limited,
    at_capacity,
    storage_limited,
)
# So many are said of a link: the fourth guess helps nobody.
MOST = 3


def diagnose(evidence: LinkEvidence) -> list[Diagnosis]:
    """Return what the rules say, the strongest first; nothing of a healthy link.

    Where a link is slow is only said if no rule knows why.
    """
    said = [diagnosis for rule in RULES if (diagnosis := rule(evidence))]
    if all(diagnosis.kind == "failing-pattern" for diagnosis in said):
        said += [diagnosis for rule in (slow_link,) if (diagnosis := rule(evidence))]
    strongest = sorted(said, key=lambda diagnosis: -diagnosis.strength)[:MOST]
    return [with_network(diagnosis, evidence) for diagnosis in strongest]


def with_network(diagnosis: Diagnosis, evidence: LinkEvidence) -> Diagnosis:
    """Add what tests of the network alone say to what is said of a slow link."""
    if diagnosis.kind == "failing-pattern":
        return diagnosis
    sentences = dict.fromkeys((*diagnosis.evidence, *network_words(evidence)))
    return replace(diagnosis, evidence=tuple(sentences))
