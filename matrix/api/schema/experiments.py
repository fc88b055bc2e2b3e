"""The descriptions of experiments/ and of one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from matrix.answers.experiments.request import OrderedExperiment, Variable
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging, text
from matrix.api.schema.schemas import Answer, Listed
from matrix.http.negotiation import TABLE

Trend = Literal["flat", "proportional", "rising", "falling", "unclear", "failed", "gone"]
StepState = Literal["waiting", "queued", "running", "done", "failed", "lost", "gone"]


class ExperimentSlope(Answer):
    """The rate goes with the variable to the power of `exponent`; intervals are of 95 %.

    `factor` is what that makes of the rate from the least to the greatest value.
    """

    exponent: float
    exponent_low: float
    exponent_high: float
    factor: float
    factor_low: float
    factor_high: float
    n: int


class ExperimentValue(Answer):
    """The tests of one value of the variable."""

    value: str
    median_mb_s: float | None
    done: int
    failed: int
    open: int


class ExperimentTest(Answer):
    """One test; `gone` if it was cancelled or its result is no longer kept."""

    id: UUID
    value: str
    state: StepState
    started_at: datetime | None
    rate_mb_s: float | None


class ExperimentSummary(Answer):
    """Tests of a link that differ in one variable, and what they show so far.

    `size`, `streams` and `mode` are what all of them have in common; null for the variable.
    """

    id: UUID
    url: str
    source: str
    destination: str
    variable: Variable
    title: str
    size: str | None
    streams: int | None
    mode: Literal["pull", "push"] | None
    mover: str
    requested_at: datetime
    ended: bool
    tests: int
    open: int
    done: int
    failed: int
    trend: Trend | None
    finding: str
    slope: ExperimentSlope | None
    values: list[ExperimentValue]


class WholeExperiment(ExperimentSummary):
    """An experiment with its single tests, in the order in which they run."""

    steps: list[ExperimentTest]


COLUMNS = tuple(ExperimentTest.model_fields)
SUMMARY: dict[str, Any] = {
    "id": "7d0f6f0e-3f53-4b6c-9d43-5a5e8d2f8a11",
    "url": "https://sonar.example.org/api/v1/experiments/7d0f6f0e-3f53-4b6c-9d43-5a5e8d2f8a11/",
    "source": "Glasgow_DATADISK",
    "destination": "RAL_DATADISK",
    "variable": "streams",
    "title": "1 and 4 streams with small files, pull",
    "size": "small",
    "streams": None,
    "mode": "pull",
    "mover": "http-tpc",
    "requested_at": "2026-11-20T12:00:30.000000Z",
    "ended": False,
    "tests": 2,
    "open": 1,
    "done": 1,
    "failed": 0,
    "trend": "unclear",
    "finding": "1 successful test: too few to say anything yet.",
    "slope": None,
    "values": [
        {"value": "1", "median_mb_s": 4.7, "done": 1, "failed": 0, "open": 0},
        {"value": "4", "median_mb_s": None, "done": 0, "failed": 0, "open": 1},
    ],
}
STEPS: list[dict[str, Any]] = [
    {
        "id": "6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
        "value": "1",
        "state": "done",
        "started_at": "2026-11-20T12:00:31.000000Z",
        "rate_mb_s": 4.7,
    },
    {
        "id": "0c1b7a80-6d3e-4b0e-8d55-a4f4b3a7e0c1",
        "value": "4",
        "state": "waiting",
        "started_at": None,
        "rate_mb_s": None,
    },
]
WHOLE = SUMMARY | {"steps": STEPS}
CSV = "\n".join(
    [
        ",".join(COLUMNS),
        *(",".join("" if v is None else str(v) for v in step.values()) for step in STEPS),
        "",
    ]
)
EXPERIMENTS = described(
    "Experiments, newest first, and what each shows",
    answer=Listed("experiments", ExperimentSummary),
    parameters=[
        text("source", "The name of an endpoint.", "Glasgow_DATADISK"),
        text("destination", "The name of an endpoint.", "RAL_DATADISK"),
        *paging(),
    ],
    example={"experiments": [SUMMARY], "next": None},
    tag="operation",
)
ORDER = described(
    "Order an experiment: all of its tests, or none",
    answer=WholeExperiment,
    status=202,
    body=OrderedExperiment,
    body_example={
        "source": "Glasgow_DATADISK",
        "destination": "RAL_DATADISK",
        "variable": "streams",
        "values": [1, 4],
        "repeats": 1,
        "size": "small",
    },
    errors=(409,),
    example=WHOLE,
    tag="operation",
)
EXPERIMENT = described(
    "An experiment: its tests, how far they are, and what they show",
    answer=WholeExperiment,
    errors=(404,),
    formats=TABLE,
    example=WHOLE,
    csv_example=CSV,
    tag="operation",
)
CANCEL = described(
    "Cancel the tests of an experiment that have not begun",
    answer=None,
    status=204,
    errors=(404, 409),
    tag="operation",
)
