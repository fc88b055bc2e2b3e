"""What a small window and lost packets have in common: each connection is held back by itself."""

from __future__ import annotations

from typing import Literal

from matrix.answers.diagnosis.evidence import LinkEvidence
from matrix.answers.diagnosis.streams import StreamsEffect
from matrix.answers.inside import InsideTransfers
from matrix.statistics.transfers.evidence import PROPORTIONAL
from sonar.notation.units import format_count, three_digits

Course = Literal["steady", "uneven", ""]

# What most courses are like counts, of so many at least.
FEWEST_COURSES = 3


def proportional(evidence: LinkEvidence) -> StreamsEffect | None:
    """Return what streams do on a slow link where they help, and may do so in proportion."""
    streams = evidence.streams
    if streams is None or not evidence.is_slow or not streams.helps:
        return None
    return streams if streams.slope.high >= PROPORTIONAL else None


def course_of(evidence: LinkEvidence) -> Course:
    """Say whether its rates are steady: by a saw-tooth within transfers, or from test to test.

    A ceiling within them says nothing: samples every 5 s level out what single losses do.
    """
    if mostly_saw(evidence.inside):
        return "uneven"
    if evidence.scatter is None:
        return ""
    return "steady" if evidence.scatter.is_steady else "uneven"


def mostly_saw(inside: InsideTransfers | None) -> bool:
    """Say whether most transfers zigzag, of enough that are seen from within."""
    if inside is None or len(inside.courses) < FEWEST_COURSES:
        return False
    return 2 * inside.counts["saw-tooth"] > len(inside.courses)


def course_words(evidence: LinkEvidence) -> list[str]:
    """Say by which figures rates are steady, or are not."""
    said = []
    inside = evidence.inside
    if inside and mostly_saw(inside):
        saw, of = (
            format_count(count) for count in (inside.counts["saw-tooth"], len(inside.courses))
        )
        said.append(f"The rate within {saw} of {of} transfers is a saw-tooth.")
    if evidence.scatter:
        spread, by_loss = (
            f"{three_digits(100 * share)} %"
            for share in (evidence.scatter.spread, evidence.scatter.by_loss)
        )
        said.append(
            f"Identical tests scatter by {spread} (n = {format_count(evidence.scatter.n)}). "
            f"Packet loss would make that {by_loss} or more, a small window less."
        )
    return said


def in_flight_words(evidence: LinkEvidence) -> list[str]:
    """Say how many bytes are under way at once, where the round trip is known."""
    if evidence.rtt_ms is None:
        return []
    kilobytes = three_digits(evidence.single * evidence.rtt_ms)
    return [
        f"At a round trip of {three_digits(evidence.rtt_ms)} ms that is {kilobytes} kB in flight."
    ]
