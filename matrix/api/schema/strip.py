"""The description of strip/."""

from __future__ import annotations

from datetime import datetime

from matrix.answers.time_strip import AUTO, WIDTHS
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import choice
from matrix.api.schema.queries import LINKS_FILTERED, METHOD_FILTERED, SIZE_CLASS, WINDOW, Echo
from matrix.api.schema.schemas import Answer
from matrix.http.negotiation import FIGURE, TABLE

Counts = list[int]


class StripBuckets(Answer):
    """A value for each bucket, including empty ones; `links` counts the links tested in it.

    Of `failed_links` a test failed, of `all_failed_links` all did. `failing_links` are in a row of
    at least three failed tests, from its first to its last. The successful tests of
    `slower_links` have a median of at most two thirds of the usual rate, that of the 28 days before
    the day in which the window begins, and so low that by chance a link would be in 3 of 100
    buckets at most, of all links of the class. `ok` and `failed` count tests.
    """

    start: list[datetime]
    links: Counts
    failed_links: Counts
    all_failed_links: Counts
    failing_links: Counts
    slower_links: Counts
    ok: Counts
    failed: Counts


class Strip(Answer):
    query: Echo
    bucket: str
    bucket_seconds: int
    buckets: StripBuckets


EXAMPLE = {
    "query": {
        "size": "large",
        "window": None,
        "start": "2026-11-20T10:00:00Z",
        "end": "2026-11-20T12:00:00Z",
    },
    "bucket": "1h",
    "bucket_seconds": 3600,
    "buckets": {
        "start": ["2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z"],
        "links": [332, 330],
        "failed_links": [3, 1],
        "all_failed_links": [2, 1],
        "failing_links": [1, 1],
        "slower_links": [5, 0],
        "ok": [330, 331],
        "failed": [4, 1],
    },
}
CSV = """start,links,failed_links,all_failed_links,failing_links,slower_links,ok,failed
2026-11-20T10:00:00Z,332,3,2,1,5,330,4
2026-11-20T11:00:00Z,330,1,1,1,0,331,1
"""

FORMATS = (*TABLE, *FIGURE)

STRIP = described(
    "How many links failed or were slower than usual, by the hour or day",
    answer=Strip,
    parameters=[
        SIZE_CLASS,
        *WINDOW,
        *LINKS_FILTERED,
        *METHOD_FILTERED,
        choice("bucket", (AUTO, *WIDTHS), "Length of a bucket; for up to 8 days an hour.", AUTO),
    ],
    formats=FORMATS,
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
