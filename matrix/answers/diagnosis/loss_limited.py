"""Loss-limited: packets are lost, and TCP slows down after each of them."""

from __future__ import annotations

from matrix.answers.diagnosis.connections import (
    course_of,
    course_words,
    in_flight_words,
    proportional,
)
from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.network_words import loss_words
from matrix.answers.diagnosis.rule import Diagnosis
from sonar.notation.units import three_digits


def loss_limited(evidence: LinkEvidence) -> Diagnosis | None:
    streams = proportional(evidence)
    if streams is None or course_of(evidence) != "uneven":
        return None
    return Diagnosis(
        "loss-limited",
        f"Each connection gets about {three_digits(streams.each)} MB/s with ups and downs, "
        "however many there are: packets are lost.",
        (
            f"{streams.words}.",
            *course_words(evidence),
            *loss_words(evidence),
            *in_flight_words(evidence),
        ),
        "Check the path for packet loss: error counters of interfaces, dirty optics, short queues "
        "of switches. Count retransmissions at the source (ss -ti, nstat). "
        "Until then, more streams help.",
        min(streams.slope.exponent, 1.0),
    )
