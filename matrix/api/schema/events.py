"""The description of events/."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from matrix.answers.events.event import KINDS, LEVELS
from matrix.answers.events.question import CERTAIN, NOW
from matrix.api import pagination
from matrix.api.schema.changes import SEARCHED
from matrix.api.schema.describe import described
from matrix.api.schema.names import SIZE
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.queries import LINKS_FILTERED
from matrix.api.schema.queries import WINDOW as BOUNDS
from matrix.api.schema.schemas import Answer, Listed
from sonar.notation.windows import PRESETS


class EventRecord(Answer):
    """Something that happened to a link, an endpoint, a site or the whole grid.

    Of a link it has both ends; of an endpoint that sends or receives otherwise than before, that
    end; of one both ways it is at both ends; of several endpoints of a site it has the `site`.
    All size classes that show it are one event, `sizes`. It came to pass between `earliest` and
    `latest`; `since` is the start of the first test that shows it, `until` that of the first test
    that shows its end, null while it lasts. A link is failing once three tests in a row failed;
    a failure that ended is `recovered`. `factor` is the rate since divided by the rate before,
    below 1 for slower, `low` and `high` its interval of 95 %, null where there is none. `tests`
    are those since, failed ones of a failure. `certain` says that it is beyond chance among all
    that was searched; what is failing always is.
    """

    id: str
    kind: Literal["slower", "faster", "failing", "recovered"]
    level: Literal["link", "source", "destination", "endpoint", "site", "grid"]
    source: str | None
    destination: str | None
    site: str | None
    sizes: list[str]
    since: datetime
    earliest: datetime
    latest: datetime
    until: datetime | None
    factor: float | None
    low: float | None
    high: float | None
    certain: bool
    tests: int
    links: int
    sentence: str
    near: list[str]
    url: str
    comparison_url: str


OPTIONAL = ("size", "window", "kind", "level", "now")
ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query: window as two times, filters by their names.",
    "properties": {
        **{name: {"type": ["string", "null"]} for name in OPTIONAL},
        **{name: {"type": "string"} for name in ("start", "end", "certain")},
    },
    "required": [*OPTIONAL, "start", "end", "certain"],
    "additionalProperties": {"type": "array", "items": {"type": "string"}},
}
PAGE = "https://sonar.example.org/links/Glasgow_DATADISK/RAL_DATADISK/"
URL = f"{PAGE}?from=2026-10-31T01:50:00Z&to=2026-11-20T12:01:00Z"
COMPARISON = (
    f"{PAGE}?from=2026-11-14T03:12:40Z&to=2026-11-20T12:01:00Z"
    "&compare=2026-11-07T03:12:40Z..2026-11-14T03:12:40Z"
)
EVENT = {
    "id": "slower:3-7:1794712360:medium.large",
    "kind": "slower",
    "level": "link",
    "source": "Glasgow_DATADISK",
    "destination": "RAL_DATADISK",
    "site": None,
    "sizes": ["medium", "large"],
    "since": "2026-11-14T03:12:40Z",
    "earliest": "2026-11-14T01:50:02Z",
    "latest": "2026-11-14T03:12:40Z",
    "until": None,
    "factor": 0.49,
    "low": 0.44,
    "high": 0.55,
    "certain": True,
    "tests": 228,
    "links": 1,
    "sentence": "Glasgow_DATADISK → RAL_DATADISK slowed to 0.49×.",
    "near": ["2026-11-14 02:00 UTC: TCP buffers changed"],
    "url": URL,
    "comparison_url": COMPARISON,
}
EXAMPLE = {
    "query": {
        "size": None,
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "kind": None,
        "level": None,
        "now": None,
        "certain": "yes",
    },
    "description": "Events, the last 7 days",
    "sentence": "Today: nothing new so far.",
    "searched": {"large": "2026-11-20T12:00:02Z"},
    "events": [EVENT],
    "next": None,
}
COLUMNS = tuple(EventRecord.model_fields)
CSV = ",".join(COLUMNS) + (
    "\nslower:3-7:1794712360:medium.large,slower,link,Glasgow_DATADISK,RAL_DATADISK,,"
    "medium large,2026-11-14T03:12:40Z,2026-11-14T01:50:02Z,2026-11-14T03:12:40Z,,0.49,0.44,0.55,"
    "True,228,1,Glasgow_DATADISK → RAL_DATADISK slowed to 0.49×.,"
    f"2026-11-14 02:00 UTC: TCP buffers changed,{URL},{COMPARISON}\n"
)

EVENTS = described(
    "What happened, newest first: what became slower or faster, fails or recovered",
    answer=Listed(
        "events",
        EventRecord,
        also={
            "query": ECHO,
            "description": {"type": "string"},
            "sentence": {"type": "string", "description": "What happened today (UTC)."},
            "searched": SEARCHED,
        },
    ),
    parameters=[
        text("size", "Only what shows with files of this size class; by default of any.", SIZE),
        choice("window", PRESETS, "When it happened: up to now; not with from and to.", "7d"),
        *BOUNDS[1:],
        text(
            "since",
            "What happened from this time on, up to now; not with a window.",
            "2026-11-20T04:00:00Z",
            format="date-time",
        ),
        *LINKS_FILTERED,
        choice("kind", KINDS, "What happened; by default anything."),
        choice("level", LEVELS, "To what it happened; by default to anything."),
        choice("now", NOW, "Only what lasts (yes), or what has ended (no)."),
        choice("certain", CERTAIN, "With any, what chance may explain, too.", CERTAIN[0]),
        *paging(pagination.TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
