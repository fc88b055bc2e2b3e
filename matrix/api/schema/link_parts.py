"""What answers about links and about sites both tell of a link."""

from typing import Annotated

from matrix.answers.diagnosis.evidence import Kind
from matrix.api.schema.records import As, At, Digits, Number, to_number
from matrix.api.schema.schemas import Answer
from matrix.statistics.transfers.rate_profile import ProfileShape


class ComparedRates(Answer):
    """The rates of a link on the two sides of a comparison, and their ratio."""

    rate: Annotated[Digits, At("value")]
    other: Digits
    ratio: Digits
    low: Digits
    high: Digits
    p: Digits
    ok: int
    other_ok: int


class RuleSays(Answer):
    """A diagnosis: the probable reason why a link is slow or fails, with its evidence."""

    kind: Kind
    headline: str
    evidence: list[str]
    next: str
    strength: Annotated[float, As(to_number)]


class LinkRuleSays(RuleSays):
    """The strongest diagnosis of a link."""

    source: str
    destination: str


class InsideFigures(Answer):
    """Rates during transfers, computed from their progress samples."""

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
