"""The description of changes/."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from matrix.answers.changes.question import MOST_FACTOR, SURE, WINDOW
from matrix.api import pagination
from matrix.api.schema.describe import described
from matrix.api.schema.names import SIZE
from matrix.api.schema.parameters import choice, number, paging, text
from matrix.api.schema.queries import LINKS_FILTERED
from matrix.api.schema.queries import WINDOW as BOUNDS
from matrix.api.schema.schemas import Answer, Listed
from matrix.store.changes import LEVELS
from sonar.models import Change
from sonar.notation.windows import PRESETS


class ChangeOfLevel(Answer):
    """A jump of a rate to another level.

    Of a link it has both ends, of an endpoint as source or destination one, of all links together
    none. `factor` is the new level divided by the one before, `low` and `high` its interval of
    95 %. It came to pass between `earliest` and `latest` (95 %); `at` is the start of the first
    test of the new level. Rates are those of a link, geometric means. `chance` is how often noise
    alone gives so many tests a change as clear, `sure` whether that is beyond what so many
    searches find by chance: of those, one in twenty at most.
    """

    id: int
    kind: Literal["link", "source", "destination", "grid"]
    source: str | None
    destination: str | None
    size: str
    at: datetime
    earliest: datetime
    latest: datetime
    factor: float
    low: float
    high: float
    before_mb_s: float | None
    after_mb_s: float | None
    ok_before: int
    ok_after: int
    links: int
    chance: float
    sure: bool
    found_at: datetime
    sentence: str
    near: list[str]
    comparison_url: str


ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query: window as two times, filters by their names.",
    "properties": {
        **{
            name: {"type": ["string", "null"]}
            for name in ("size", "window", "kind", "level", "factor")
        },
        **{name: {"type": "string"} for name in ("start", "end", "sure")},
    },
    "required": ["size", "window", "start", "end", "kind", "level", "factor", "sure"],
    "additionalProperties": {"type": "array", "items": {"type": "string"}},
}
SEARCHED: dict[str, Any] = {
    "type": "object",
    "description": "When the results of each size class were last searched.",
    "additionalProperties": {"type": "string", "format": "date-time"},
}
PAGE = (
    "https://sonar.example.org/sites/Glasgow/?from=2026-11-14T03:12:40Z&to=2026-11-20T12:01:00Z"
    "&compare=2026-11-07T03:12:40Z..2026-11-14T03:12:40Z"
)
CHANGE = {
    "id": 7,
    "kind": "source",
    "source": "Glasgow_DATADISK",
    "destination": None,
    "size": "large",
    "at": "2026-11-14T03:12:40Z",
    "earliest": "2026-11-14T01:50:02Z",
    "latest": "2026-11-14T03:12:40Z",
    "factor": 0.49,
    "low": 0.44,
    "high": 0.55,
    "before_mb_s": None,
    "after_mb_s": None,
    "ok_before": 1140,
    "ok_after": 228,
    "links": 18,
    "chance": 0.0000012,
    "sure": True,
    "found_at": "2026-11-16T04:00:02Z",
    "sentence": "Glasgow_DATADISK sends large files at 0.49× (0.44–0.55) since 2026-11-14 03:12 "
    "UTC, 18 links, n = 1140 before and 228 since, p < 0.001.",
    "near": ["2026-11-14 02:00 UTC: TCP buffers changed"],
    "comparison_url": PAGE,
}
EXAMPLE = {
    "query": {
        "size": None,
        "window": WINDOW,
        "start": "2026-10-21T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "kind": None,
        "level": None,
        "factor": None,
        "sure": "yes",
    },
    "description": "Changes in rate, the last 30 days",
    "searched": {"large": "2026-11-20T12:00:02Z"},
    "changes": [CHANGE],
    "next": None,
}
COLUMNS = tuple(ChangeOfLevel.model_fields)
CSV = ",".join(COLUMNS) + (
    "\n7,source,Glasgow_DATADISK,,large,2026-11-14T03:12:40Z,2026-11-14T01:50:02Z,"
    "2026-11-14T03:12:40Z,0.49,0.44,0.55,,,1140,228,18,1.2e-06,True,2026-11-16T04:00:02Z,"
    '"Glasgow_DATADISK sends large files at 0.49× (0.44–0.55) since 2026-11-14 03:12 UTC, 18 '
    'links, n = 1140 before and 228 since, p < 0.001.",2026-11-14 02:00 UTC: TCP buffers changed,'
    f"{PAGE}\n"
)

CHANGES = described(
    "Changes in rate, newest first: when a link or an endpoint became faster or slower",
    answer=Listed(
        "changes",
        ChangeOfLevel,
        also={"query": ECHO, "description": {"type": "string"}, "searched": SEARCHED},
    ),
    parameters=[
        text("size", "Only with files of this size class; by default of all.", SIZE),
        choice("window", PRESETS, "When it changed: up to now; not with from and to.", WINDOW),
        *BOUNDS[1:],
        *LINKS_FILTERED,
        choice("kind", Change.Kind.values, "What changed; by default anything."),
        choice("level", LEVELS, "To which level it changed; by default either."),
        number(
            "factor", "Only by at least this factor, either way.", minimum=1, maximum=MOST_FACTOR
        ),
        choice("sure", SURE, "With any, those that chance may explain, too.", SURE[0]),
        *paging(pagination.TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
