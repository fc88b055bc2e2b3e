"""The description of diagnosis/."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from matrix.answers.diagnosis.rule import Kind
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import text
from matrix.api.schema.queries import METHOD_FILTERED, SIZE_CLASS, WINDOW
from matrix.api.schema.schemas import Answer
from matrix.statistics.transfers.evidence import Trend


class RuleSays(Answer):
    """What a rule says, with the figures that decided it; `strength` goes from 0 to 1."""

    kind: Kind
    headline: str
    evidence: list[str]
    next: str
    strength: float


class LinkRuleSays(RuleSays):
    """What the strongest rule says of a link."""

    source: str
    destination: str


class ScatterEvidence(Answer):
    """Standard deviation of the logarithms of rates of tests made alike, 0.1 for about 10 %.

    `by_loss` is the least that it would be if lost packets held them back.
    """

    spread: float
    by_loss: float
    n: int


class StreamsEvidence(Answer):
    """The rate with the most streams in parts of that with the fewest."""

    least: int
    most: int
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    n: int
    trend: Trend


class EndEvidence(Answer):
    """An end without this link: the median of its other links, and against its peers there."""

    elsewhere_mb_s: float | None
    partners: int
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    compared: int


class DiagnosisEvidence(Answer):
    """What the rules went by.

    From `rtt_ms` on, it is from tests of the network alone between the two sites, `network_tests`
    of them in this direction: `loss` is the share of segments that were sent again, windows are
    the largest of a connection.
    """

    ok: int
    median_mb_s: float | None
    usual_mb_s: float | None
    level: Literal["unknown", "usual", "slower", "faster"]
    scatter: ScatterEvidence | None
    streams: StreamsEvidence | None
    source: EndEvidence
    destination: EndEvidence
    nominal_mb_s: float | None
    rtt_ms: float | None
    loss: float | None
    network_mb_s: float | None
    network_tests: int
    max_cwnd_bytes: int | None
    max_receive_window_bytes: int | None


class DiagnosisQuery(Answer):
    """What was asked for, and the filters."""

    model_config = ConfigDict(extra="allow")

    source: str
    destination: str
    size: str
    window: str | None
    start: datetime
    end: datetime


class LinkDiagnosed(Answer):
    """The strongest diagnosis first, three at most; `silence` says why there is none."""

    query: DiagnosisQuery
    diagnoses: list[RuleSays]
    silence: str
    evidence: DiagnosisEvidence


EXAMPLE = {
    "query": {
        "source": "Glasgow_DATADISK",
        "destination": "RAL_DATADISK",
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
    },
    "diagnoses": [
        {
            "kind": "at-capacity",
            "headline": "The path carries no more than 0.961 MB/s: more streams do not help, and "
            "both endpoints are faster elsewhere.",
            "evidence": [
                "2 streams give 1.0× (0.98–1.0) the rate of 1 (n = 6, tests of this window).",
                "Glasgow_DATADISK sends 17 MB/s to 3 other destinations.",
                "RAL_DATADISK receives 18.7 MB/s from 4 other sources.",
            ],
            "next": "Look for the narrowest part of the path: route in both directions, backup "
            "line, slow interface, traffic limit.",
            "strength": 0.943,
        }
    ],
    "silence": "",
    "evidence": {
        "ok": 6,
        "median_mb_s": 0.961,
        "usual_mb_s": None,
        "level": "unknown",
        "scatter": {"spread": 0.0121, "by_loss": 0.0616, "n": 9},
        "streams": {
            "least": 1,
            "most": 2,
            "factor": 1.0,
            "factor_low": 0.98,
            "factor_high": 1.02,
            "n": 6,
            "trend": "flat",
        },
        "source": {
            "elsewhere_mb_s": 17.0,
            "partners": 3,
            "factor": 1.02,
            "factor_low": 0.91,
            "factor_high": 1.14,
            "compared": 3,
        },
        "destination": {
            "elsewhere_mb_s": 18.7,
            "partners": 4,
            "factor": 1.1,
            "factor_low": 0.95,
            "factor_high": 1.27,
            "compared": 4,
        },
        "nominal_mb_s": None,
        "rtt_ms": 12.4,
        "loss": 0.00002,
        "network_mb_s": 1.02,
        "network_tests": 24,
        "max_cwnd_bytes": 217200,
        "max_receive_window_bytes": 3145728,
    },
}

# One direction of a link, a size class, a window, and ways of measuring.
LINK = (
    text("source", "The source endpoint.", "Glasgow_DATADISK", required=True),
    text("destination", "The destination endpoint.", "RAL_DATADISK", required=True),
    SIZE_CLASS,
    *WINDOW,
    *METHOD_FILTERED,
)

DIAGNOSIS = described(
    "Why a link is slow or fails",
    answer=LinkDiagnosed,
    parameters=LINK,
    example=EXAMPLE,
    tag="results",
)
