"""What calls that compare answer of two samples."""

from __future__ import annotations

from matrix.api.schema.schemas import Answer


class TogetherAnswer(Answer):
    """What `links` have in common: a factor with its 95 % interval, and p of chance.

    Each link is taken against itself and counts by its tests, of which `ok` and `other_ok`
    succeeded on both sides. Null where there are too few to tell.
    """

    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    links: int
    ok: int
    other_ok: int


class ComparedRates(Answer):
    """Both medians (or means) in MB/s, their ratio with its 95 % interval, p of chance.

    `ok` and `other_ok` are the successes of both sides; with fewer than three on either there is
    no ratio.
    """

    rate: float | None
    other: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    ok: int
    other_ok: int
