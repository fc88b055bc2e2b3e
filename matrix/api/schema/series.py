"""The description of series/."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import create_model

from matrix.answers.series import AUTO, BUCKETS
from matrix.api.schema.compared import ComparedRates
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import choice, text
from matrix.api.schema.queries import (
    COMPARE,
    METHOD_FILTERED,
    SIZE_CLASS,
    WINDOW,
    Echo,
    compared_by,
)
from matrix.api.schema.schemas import Answer
from matrix.http.negotiation import FIGURE, TABLE
from matrix.query.catalogue import QUANTILES, SERIES_FIELDS
from matrix.query.filters import PROFILE_FILTERS

Numbers = list[float | None]
RATES = dict.fromkeys(SERIES_FIELDS, (Numbers, ...))


class SeriesEcho(Echo):
    source: str
    destination: str


class BucketCounts(Answer):
    start: list[datetime]
    ok: list[int]
    failed: list[int]


class Buckets(create_model("BucketRates", __base__=BucketCounts, **RATES)):  # type: ignore[misc]
    """A value for each bucket, including empty ones: counts 0, rates null."""


class Points(Answer):
    """A value for each result, oldest first; a failed one has no rate."""

    started_at: list[datetime]
    state: list[Literal["done", "failed"]]
    rate_mb_s: Numbers


class SeriesComparison(ComparedRates):
    """The successes of both sides; `description` says with what the link is compared."""

    description: str


class OneSeries(Answer):
    """A link over time."""

    query: SeriesEcho
    simulated: bool
    bucket: str
    bucket_seconds: int
    buckets: Buckets
    points: Points = Points(started_at=[], state=[], rate_mb_s=[])


class Series(OneSeries):
    """A link over time; `comparison` and `other` are there if it is compared with something."""

    unit: Literal["MB/s"]
    comparison: SeriesComparison | None = None
    other: OneSeries | None = None


# Three transfers, of 4.26, 4.7 and 5.14 MB/s.
EXAMPLE_RATES = {
    field: round(4.26 + 0.88 * QUANTILES.get(name, 0.5), 1) for field, name in SERIES_FIELDS.items()
}
EXAMPLE = {
    "query": {
        "source": "Glasgow_DATADISK",
        "destination": "RAL_DATADISK",
        "size": "large",
        "window": "6h",
        "start": "2026-11-20T06:01:00Z",
        "end": "2026-11-20T12:01:00Z",
    },
    "unit": "MB/s",
    "simulated": False,
    "bucket": "1h",
    "bucket_seconds": 3600,
    "buckets": {
        "start": ["2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"],
        "ok": [0, 3],
        "failed": [0, 1],
        **{field: [None, rate] for field, rate in EXAMPLE_RATES.items()},
    },
}
CSV = f"""start,ok,failed,{",".join(EXAMPLE_RATES)}
2026-11-20T10:00:00Z,0,0{"," * len(EXAMPLE_RATES)}
2026-11-20T11:00:00Z,3,1,{",".join(map(str, EXAMPLE_RATES.values()))}
"""

FORMATS = (*TABLE, *FIGURE)

SERIES = described(
    "One link over time",
    answer=Series,
    parameters=[
        text("source", "The source endpoint.", "Glasgow_DATADISK", required=True),
        text("destination", "The destination endpoint.", "RAL_DATADISK", required=True),
        SIZE_CLASS,
        *WINDOW,
        *METHOD_FILTERED,
        *COMPARE,
        *compared_by(PROFILE_FILTERS),
        choice("bucket", (AUTO, *BUCKETS), "Length of a bucket.", AUTO),
        choice("points", ("1",), "Include single results; in CSV, instead of the buckets."),
    ],
    formats=FORMATS,
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
