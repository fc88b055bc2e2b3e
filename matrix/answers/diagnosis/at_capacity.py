"""At capacity: the way between both ends carries no more, however many connections share it."""

from __future__ import annotations

from matrix.answers.diagnosis.evidence import SLOW, LinkEvidence
from matrix.answers.diagnosis.peer_words import rate_words
from matrix.answers.diagnosis.rule import Diagnosis
from sonar.notation.units import format_count, format_factor, three_digits

# So close to the nominal capacity of a site, it may be full.
FULL = 0.9


def at_capacity(evidence: LinkEvidence) -> Diagnosis | None:
    streams = evidence.streams
    if not evidence.is_slow or (streams and streams.helps):
        return None
    return full(evidence) or narrow(evidence)


def full(evidence: LinkEvidence) -> Diagnosis | None:
    """Compare its fastest with what its sites are said to have."""
    nominal = evidence.nominal
    high = evidence.inside.middle[2] if evidence.inside else evidence.high
    if nominal is None or not high >= FULL * nominal.mb_s:
        return None
    share = high / nominal.mb_s
    streams = (f"{evidence.streams.words}.",) if evidence.streams else ()
    return Diagnosis(
        "at-capacity",
        f"It fills the nominal WAN capacity of {nominal.site} ({three_digits(nominal.mb_s)} MB/s).",
        (
            f"Its 95th percentile is {three_digits(high)} MB/s, {format_factor(share)} of that "
            f"(n = {format_count(evidence.ok)}).",
            *streams,
        ),
        "Compare with the load of the site's WAN at these hours: other traffic takes the rest.",
        min(share, 1.0),
    )


def narrow(evidence: LinkEvidence) -> Diagnosis | None:
    """Say it where streams do not help, and both ends are faster on their other links.

    But not of a way that carries more when the network alone is tested.
    """
    streams = evidence.streams
    elsewhere = evidence.both_elsewhere
    if not (streams and streams.is_of_no_use and evidence.median <= SLOW * elsewhere):
        return None
    if evidence.is_faster_without_storage(SLOW):
        return None
    return Diagnosis(
        "at-capacity",
        f"The path carries no more than {three_digits(evidence.median)} MB/s: more streams do not "
        "help, and both endpoints are faster elsewhere.",
        (
            f"{streams.words}.",
            f"{rate_words(evidence, 'source')}.",
            f"{rate_words(evidence, 'destination')}.",
        ),
        "Look for the narrowest part of the path: route in both directions, backup line, slow "
        "interface, traffic limit.",
        1 - evidence.median / elsewhere,
    )
