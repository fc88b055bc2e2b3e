"""What answers about links and about sites both tell of a link."""

from typing import Annotated

from matrix.answers.diagnosis.evidence import Kind
from matrix.api.schema.records import As, At, Digits, Number, to_number
from matrix.api.schema.schemas import Answer
from matrix.statistics.transfers.rate_profile import ProfileShape


class ComparedRates(Answer):
    """Both medians (or means) in MB/s, their ratio with its 95 % interval, p of chance.

    `ok` and `other_ok` are the successes of both sides; with fewer than three on either there is
    no ratio.
    """

    rate: Annotated[Digits, At("value")]
    other: Digits
    ratio: Digits
    low: Digits
    high: Digits
    p: Digits
    ok: int
    other_ok: int


class RuleSays(Answer):
    """What a rule says, with the figures that decided it; `strength` goes from 0 to 1."""

    kind: Kind
    headline: str
    evidence: list[str]
    next: str
    strength: Annotated[float, As(to_number)]


class LinkRuleSays(RuleSays):
    """What the strongest rule says of a link."""

    source: str
    destination: str


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
    courses: Annotated[int, As(len)]
    shapes: Annotated[dict[ProfileShape, int], At("counts")]
    low_mb_s: Annotated[Number, At("middle.0")]
    median_mb_s: Annotated[Number, At("middle.1")]
    high_mb_s: Annotated[Number, At("middle.2")]
    stalled: Number
    ceiling_mb_s: Annotated[Number, At("ceiling")]
    nominal_mb_s: Annotated[Number, At("nominal.mb_s")]
    nominal_site: Annotated[str | None, At("nominal.site")]
    sentences: list[str]
