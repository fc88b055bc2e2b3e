"""The description of causes/."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from matrix.answers.causes.attribution import KINDS, OF
from matrix.api.schema.describe import described
from matrix.api.schema.matrix import MatrixEcho
from matrix.api.schema.parameters import choice
from matrix.api.schema.queries import QUERY, STAT
from matrix.api.schema.schemas import Answer
from matrix.http.negotiation import TABLE
from matrix.query.catalogue import UNITS
from matrix.statistics.estimates.two_way import FITS


class CausesEcho(MatrixEcho):
    fit: str


class CauseEffect(Answer):
    """A source or destination against its peers.

    `factor` is 1 for one that is as fast as its peers with the same partners; `low` and `high` are
    its 95 % interval. `kind` is slow or fast for what differs by half beyond chance. Only what
    has the same `component` can be compared: results connect it.
    """

    name: str
    site: str | None
    factor: float | None
    low: float | None
    high: float | None
    p: float | None
    partners: int
    component: int
    kind: Annotated[str, Field(json_schema_extra={"enum": list(KINDS)})]


class UnexplainedLink(Answer):
    """A link, its rate and what both its ends explain of it, in `unit`, and their ratio."""

    source: str
    destination: str
    rate: float | None
    expected: float | None
    factor: float | None
    p: float | None
    beyond_chance: bool


class CauseFinding(Answer):
    """What stands out of an end, as a sentence with value, interval and n."""

    name: str
    site: str | None
    kind: Literal["slow", "fast"]
    text: str


class ChangeCause(Answer):
    """What explains a comparison: an end (`both`: as source and destination), a site, or a link.

    With `compare=month`: what is slower than in the 30 days before. `ok` and `other_ok` count
    the successful transfers of both sides that it rests on.
    """

    kind: Literal["source", "destination", "both", "site", "link"]
    source: str | None
    destination: str | None
    factor: float | None
    low: float | None
    high: float | None
    p: float | None
    links: int
    ok: int
    other_ok: int
    text: str


class OwnHistoryCount(Answer):
    """How many links `compare=month` could judge by their own 30 days, and could not."""

    judged_links: int
    unjudged_links: int


class Causes(Answer):
    """`log rate = level + source + destination + rest`, and what is said by it."""

    query: CausesEcho
    description: str
    unit: Annotated[str, Field(json_schema_extra={"enum": list(UNITS)})]
    version: str
    simulated: bool
    headline: str
    level: float | None
    r2: float | None
    r2_adjusted: float | None
    r2_left_out: float | None
    scatter: float | None
    degrees_of_freedom: int
    links_explained: int
    components: int
    sources: list[CauseEffect]
    destinations: list[CauseEffect]
    links: list[UnexplainedLink]
    findings: list[CauseFinding]
    changes: list[ChangeCause]
    history: OwnHistoryCount | None


EXAMPLE = {
    "query": {
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "stat": "median",
        "rows": "endpoint",
        "columns": "endpoint",
        "max_age": None,
        "fit": "means",
    },
    "description": "Median rate of large-file transfers, the last 7 days, from endpoint to "
    "endpoint",
    "unit": "MB/s",
    "version": "1f0c-9-3b1d0f9c2a77",
    "simulated": False,
    "headline": "1 source is slow. Sources and destinations explain 85 % of the differences "
    "between 90 links.",
    "level": 4.57,
    "r2": 0.848,
    "r2_adjusted": 0.812,
    "r2_left_out": 0.763,
    "scatter": 1.46,
    "degrees_of_freedom": 72,
    "links_explained": 90,
    "components": 1,
    "sources": [
        {
            "name": "Glasgow_DATADISK",
            "site": "Glasgow",
            "factor": 0.415,
            "low": 0.323,
            "high": 0.535,
            "p": 3.1e-10,
            "partners": 10,
            "component": 0,
            "kind": "slow",
        }
    ],
    "destinations": [],
    "links": [
        {
            "source": "Glasgow_DATADISK",
            "destination": "RAL_DATADISK",
            "rate": 3.31,
            "expected": 11.5,
            "factor": 0.287,
            "p": 0.00037,
            "beyond_chance": True,
        }
    ],
    "findings": [
        {
            "name": "Glasgow_DATADISK",
            "site": "Glasgow",
            "kind": "slow",
            "text": "Glasgow_DATADISK sends at 42 % of what its partners reach elsewhere (32–54 %, "
            "10 partners). Receiving: 98 % (81–119 %, 10 partners). Check the outbound path.",
        }
    ],
    "changes": [],
    "history": None,
}
CSV = """end,name,site,factor,low,high,p,partners,component,kind
source,Glasgow_DATADISK,Glasgow,0.415,0.323,0.535,3.1e-10,10,0,slow
"""

CAUSES = described(
    "What sources and destinations explain of a matrix",
    answer=Causes,
    parameters=[
        *(parameter for parameter in QUERY if parameter is not STAT),
        choice("stat", OF, "What stands for each cell; not used while comparing.", OF[0]),
        choice(
            "fit",
            FITS,
            "By least squares (means), or by a median polish that a few odd links do not draw.",
            FITS[0],
        ),
    ],
    formats=TABLE,
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
