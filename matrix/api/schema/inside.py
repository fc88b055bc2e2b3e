"""The description of inside/."""

from __future__ import annotations

from matrix.api.schema.describe import described
from matrix.api.schema.diagnosis import LINK, DiagnosisQuery
from matrix.api.schema.schemas import Answer
from matrix.statistics.transfers.rate_profile import SHAPES, ProfileShape


class InsideFigures(Answer):
    """The rates within transfers, over their time, from their progress samples.

    Of the newest successful transfers that were `looked_at`, `courses` have samples enough,
    and `shapes` says how many have which shape. Over their time, 90 % of the rates are between
    `low_mb_s` and `high_mb_s`.
    `stalled` is the share of all their time in which nothing moved after the first bytes,
    `ceiling_mb_s` the rate at which most of them run evenly. `nominal_mb_s` is the lowest nominal
    capacity of the sites, and `nominal_site` whose it is.
    """

    looked_at: int
    courses: int
    shapes: dict[ProfileShape, int]
    low_mb_s: float | None
    median_mb_s: float | None
    high_mb_s: float | None
    stalled: float | None
    ceiling_mb_s: float | None
    nominal_mb_s: float | None
    nominal_site: str | None
    sentences: list[str]


class LinkInside(Answer):
    """What happens inside the transfers of a link; `inside` is null without samples enough."""

    query: DiagnosisQuery
    unit: str
    simulated: bool
    inside: InsideFigures | None


FIGURES = {
    "looked_at": 58,
    "courses": 56,
    "shapes": dict.fromkeys(SHAPES, 0) | {"stalls": 2, "ceiling": 54},
    "low_mb_s": 78.1,
    "median_mb_s": 80.0,
    "high_mb_s": 81.9,
    "stalled": 0.0031,
    "ceiling_mb_s": 80.4,
    "nominal_mb_s": 125.0,
    "nominal_site": "Glasgow",
    "sentences": [
        "Of 56 large-file transfers with 6 or more progress samples, 54 run at a ceiling, 2 stall; "
        "nothing moves for 0.31 % of all their time.",
        "While they run, the median rate is 80.0 MB/s (5th to 95th percentile: 78.1–81.9).",
        "Those at a ceiling have much the same one: 80.4 MB/s.",
        "The 95th percentile is 66 % of the nominal capacity of Glasgow (125 MB/s).",
    ],
}
EXAMPLE = {
    "query": {
        "source": "Glasgow_DATADISK",
        "destination": "RAL_DATADISK",
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
    },
    "unit": "MB/s",
    "simulated": False,
    "inside": FIGURES,
}

INSIDE = described(
    "What the rate of a link does while its transfers run",
    answer=LinkInside,
    parameters=LINK,
    example=EXAMPLE,
    tag="results",
)
