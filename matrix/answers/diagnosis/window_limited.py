"""Window-limited: a TCP window that is too small for the distance."""

from __future__ import annotations

from matrix.answers.diagnosis.connections import (
    course_of,
    course_words,
    in_flight_words,
    proportional,
)
from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.rule import Diagnosis
from sonar.notation.units import three_digits


def window_limited(evidence: LinkEvidence) -> Diagnosis | None:
    streams = proportional(evidence)
    if streams is None or course_of(evidence) != "steady":
        return None
    return Diagnosis(
        "window-limited",
        f"Each connection runs at the same {three_digits(streams.each)} MB/s, however many there "
        "are: the TCP window is too small.",
        (f"{streams.words}.", *course_words(evidence), *in_flight_words(evidence)),
        "Check the TCP buffers of both endpoints (net.ipv4.tcp_rmem, tcp_wmem, server settings). "
        "They must hold the rate you want times the round trip. Until then, more streams help.",
        min(streams.slope.exponent, 1.0),
    )
