"""A slow link: what its ends do elsewhere does not make it slow, and nothing more is known."""

from __future__ import annotations

from matrix.answers.diagnosis.evidence import SLOW, LinkEvidence
from matrix.answers.diagnosis.peer_words import ends_of, rate_words
from matrix.answers.diagnosis.rule import Diagnosis
from sonar.notation.units import format_count, format_factor, three_digits

# Where it is slow is less than why.
LESS = 0.3
# A link became slower alone if at most this part of the others of each end did, too.
FEW = 0.25
ADVICE = "Check the path between them: the route in both directions, and lost packets."
EXPERIMENT = (
    " Run a stream experiment: it shows whether the TCP window or packet loss is the limit, or the "
    "capacity."
)


def slow_link(evidence: LinkEvidence) -> Diagnosis | None:
    if evidence.is_slow_beside and evidence.median <= SLOW * evidence.both_elsewhere:
        return slow_beside(evidence)
    if all(evidence.is_new_beside(end, FEW) for end in ("source", "destination")):
        return slower_alone(evidence)
    return None


def slow_beside(evidence: LinkEvidence) -> Diagnosis:
    """Say that both ends are faster on their other links."""
    median = three_digits(evidence.median)
    return Diagnosis(
        "slow-link",
        "Both endpoints are at least twice as fast on their other links.",
        (
            f"{rate_words(evidence, 'source')}.",
            f"{rate_words(evidence, 'destination')}; this link has {median} "
            f"(n = {format_count(evidence.ok)}).",
            *stream_words(evidence),
        ),
        ADVICE + (EXPERIMENT if evidence.wants_streams else ""),
        LESS * (1 - evidence.median / evidence.both_elsewhere),
    )


def slower_alone(evidence: LinkEvidence) -> Diagnosis:
    """Say that it became slower while the other links of both its ends did not."""
    part = evidence.now / evidence.usual
    counts = evidence.slower_elsewhere.values()
    others = sum(judged - slower for slower, judged in counts)
    return Diagnosis(
        "slow-link",
        f"Only this link slowed down ({format_factor(part)}); {format_count(others)} other links "
        "of both endpoints did not.",
        (
            f"{three_digits(evidence.now)} MB/s now, usually {three_digits(evidence.usual)}.",
            f"{count_words(evidence, 'source')}.",
            f"{count_words(evidence, 'destination')}.",
            *stream_words(evidence),
        ),
        f"{ADVICE} What changed when it did?" + (EXPERIMENT if evidence.wants_streams else ""),
        LESS * (1 - part),
    )


def stream_words(evidence: LinkEvidence) -> list[str]:
    """Say what more streams do, or why no experiment can tell; nothing if none has tried."""
    if evidence.streams:
        return [f"{evidence.streams.words}."]
    return [evidence.disobeyed] if evidence.disobeyed else []


def count_words(evidence: LinkEvidence, end: str) -> str:
    """Say how many other links of an end are slower than usual."""
    slower, judged = evidence.slower_elsewhere[end]
    to = "from" if end == "source" else "to"
    return (
        f"{format_count(slower)} of {format_count(judged)} other links {to} "
        f"{ends_of(evidence)[end][0]} {'is' if slower == 1 else 'are'} slower than usual"
    )
