"""Both ends of a link on their other links, in words."""

from __future__ import annotations

from collections.abc import Mapping

from matrix.answers.causes.words import ELSEWHERE, VERBS, evidence_words, percent
from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.statistics.transfers.evidence import PeerRates
from sonar.notation.units import three_digits

PARTNERS = {"source": "destination", "destination": "source"}


def ends_of(evidence: LinkEvidence) -> Mapping[str, tuple[str, PeerRates]]:
    """Return the name of each end, and what it does on its other links."""
    return {
        "source": (evidence.source, evidence.sending),
        "destination": (evidence.destination, evidence.receiving),
    }


def rate_words(evidence: LinkEvidence, end: str) -> str:
    """Say what an end does on its other links: `RAL sends 41 MB/s to 3 other destinations`."""
    name, rates = ends_of(evidence)[end]
    other, to = PARTNERS[end], "to" if end == "source" else "from"
    count = f"{rates.partners} other {other}{'s' * (rates.partners != 1)}"
    return f"{name} {VERBS[end]} {three_digits(rates.rate)} MB/s {to} {count}"


def factor_words(evidence: LinkEvidence, end: str) -> str:
    """Say how an end does against its peers, without this link."""
    name, rates = ends_of(evidence)[end]
    return (
        f"Without this link, {name} {VERBS[end]} at {percent(rates.factor)} of {ELSEWHERE} "
        f"({evidence_words(rates.low, rates.high, rates.compared)})"
    )
