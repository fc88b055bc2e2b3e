"""What answers about links and about sites both tell of a link."""

from typing import Annotated

from matrix.answers.diagnosis.evidence import Kind
from matrix.api.schema.records import As, At, Digits, Number, to_number
from matrix.api.schema.schemas import Answer
from matrix.statistics.transfers.rate_profile import ProfileShape


class ComparedRates(Answer):
    """Both medians (or means) in MB/s, their ratio with a 95 % interval, and its p-value.

    `ok` and `other_ok` count the successful tests of both sides. With fewer than three on either
    side there is no ratio.
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
    """The conclusion of a rule and the figures behind it. `strength` is between 0 and 1."""

    kind: Kind
    headline: str
    evidence: list[str]
    next: str
    strength: Annotated[float, As(to_number)]


class LinkRuleSays(RuleSays):
    """The conclusion of the strongest rule about a link."""

    source: str
    destination: str


class InsideFigures(Answer):
    """Rates within transfers, from their progress samples.

    - `looked_at`: newest successful transfers examined; `courses`: those with enough samples.
    - `shapes`: number of transfers by shape.
    - `low_mb_s`, `high_mb_s`: limits that contain 90 % of the rates, weighted by time.
    - `stalled`: share of the time without any progress after the first bytes.
    - `ceiling_mb_s`: rate at which most transfers run evenly.
    - `nominal_mb_s`: lowest nominal capacity of the two sites; `nominal_site`: the site that has
      it.
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
