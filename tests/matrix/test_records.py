"""An answer is made of what it tells of, as the types of its fields say."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from matrix.api.schema.records import At, Digits, NameOrNull, Number, Text, UnixTime, record
from matrix.api.schema.schemas import Answer
from sonar.models import Site


class Slope(Answer):
    exponent: float
    low: Annotated[Number, At("interval.0")]


class Line(Answer):
    """Fields of every kind; `worker` is only for some."""

    source: NameOrNull
    mesh: Annotated[NameOrNull, At("probe.mesh")]
    note: Text
    rate_mb_s: Annotated[Number, At("rate")]
    p: Digits
    since: UnixTime
    slope: Slope | None
    slopes: list[Slope]
    by_size: dict[str, Slope]
    worker: str | None = None


@dataclass
class Fit:
    exponent: float = 1.5
    interval: tuple[float, float] = (0.1234567891, 2.0)


@dataclass
class Thing:
    source: Site
    probe: None = None
    note: str = ""
    rate: float = math.nan
    p: float = 0.00012345678
    since: float = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
    slope: None = None
    slopes: tuple[Fit, ...] = (Fit(),)
    worker: str = "node01.example.org"


def test_each_field_is_found_and_written_as_its_type_says():
    fit = {"exponent": 1.5, "low": 0.123457}
    assert record(Line, Thing(Site(name="RAL")), by_size={"large": Fit()}) == {
        "source": "RAL",
        "mesh": None,
        "note": None,
        "rate_mb_s": None,
        "p": 0.000123457,
        "since": "2026-11-20T12:00:00Z",
        "slope": None,
        "slopes": [fit],
        "by_size": {"large": fit},
    }


def test_values_that_are_given_go_before_those_of_the_thing():
    thing = Thing(Site(name="RAL"))
    assert "worker" not in record(Line, thing, by_size={})
    assert record(Line, thing, by_size={}, worker=None)["worker"] is None
    assert record(Line, thing, by_size={}, rate_mb_s=4.25)["rate_mb_s"] == 4.25
