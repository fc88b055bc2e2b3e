"""Storage-limited: one end is slow on its other links, too, and more streams do not help."""

from __future__ import annotations

import math

from matrix.answers.causes.attribution import NOTABLE
from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.peer_words import PARTNERS, ends_of, factor_words, rate_words
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.statistics.transfers.evidence import PeerRates
from sonar.notation.units import three_digits

# What an end always does says nothing of a link that became slower, but for most of its links did.
MOST = 0.5
# What is left to say of storage where nobody knows what more streams do.
WITHOUT_STREAMS = 0.6
STREAMS = " A stream experiment shows whether the disks or the connections are the limit."
WORK = {"source": ("read from", "sends"), "destination": ("written to", "receives")}


def storage_limited(evidence: LinkEvidence) -> Diagnosis | None:
    streams = evidence.streams
    if not evidence.is_slow or (streams and streams.helps):
        return None
    slow = sorted(
        (rates.factor, end) for end, (_, rates) in ends_of(evidence).items() if is_slow(rates)
    )
    slow = [(factor, end) for factor, end in slow if explains(end, evidence)]
    if not slow:
        return None
    _, end = slow[0]
    name, (action, verb) = ends_of(evidence)[end][0], WORK[end]
    shown = []
    if streams and streams.is_of_no_use:
        shown = [f"{streams.words}: no single connection is held back."]
    return Diagnosis(
        "storage-limited",
        f"The {end} is the limit: {name} {verb} slowly on its other links as well.",
        (
            *(f"{factor_words(evidence, each)}." for _, each in slow),
            f"{rate_words(evidence, end)}; this link has {three_digits(evidence.median)}.",
            *shown,
        ),
        f"At {name}, compare the rate at which files are {action} disk with that of its network. "
        "Check the load of disks and servers, full caches, and limits of the storage system."
        + ("" if shown else STREAMS),
        (1 - math.prod(factor for factor, _ in slow)) * (1.0 if shown else WITHOUT_STREAMS),
    )


def is_slow(rates: PeerRates) -> bool:
    """Say whether an end is notably slower than its peers, and not by chance."""
    return rates.factor <= 1 / NOTABLE and (math.isnan(rates.high) or rates.high < 1)


def explains(end: str, evidence: LinkEvidence) -> bool:
    """Say whether this link is about as slow as the others of an end, the other end considered.

    One that became slower while most others of the end did not has a cause of its own.

    Two slow ends may make it as slow as the slower of them, or both together.
    """
    if evidence.is_new_beside(end, MOST):
        return False
    rates, other = (ends_of(evidence)[each][1] for each in (end, PARTNERS[end]))
    expected = rates.rate * (other.factor if is_slow(other) else 1.0)
    return expected <= NOTABLE * evidence.median
