"""A slow link: both its ends are faster on their other links, and nothing more is known."""

from __future__ import annotations

from matrix.answers.diagnosis.evidence import SLOW, LinkEvidence
from matrix.answers.diagnosis.peer_words import rate_words
from matrix.answers.diagnosis.rule import Diagnosis
from sonar.units import format_count, three_digits

# Where it is slow is less than why.
LESS = 0.3


def slow_link(evidence: LinkEvidence) -> Diagnosis | None:
    elsewhere = evidence.both_elsewhere
    if not (evidence.is_slow_beside and evidence.median <= SLOW * elsewhere):
        return None
    streams = evidence.streams
    advice = "Look at the path between them: the route in both directions, and lost packets."
    if streams is None:
        advice += " Order an experiment with streams: it tells windows and loss from capacity."
    return Diagnosis(
        "slow-link",
        f"Only this way is slow: both ends are faster on their other links than "
        f"{three_digits(evidence.median)} MB/s.",
        (
            f"{rate_words(evidence, 'source')}.",
            f"{rate_words(evidence, 'destination')}; this link has "
            f"{three_digits(evidence.median)} (n = {format_count(evidence.ok)}).",
            *([f"{streams.words}."] if streams else []),
        ),
        advice,
        LESS * (1 - evidence.median / elsewhere),
    )
