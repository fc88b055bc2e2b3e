"""What the rate does inside transfers, as calls answer it."""

from __future__ import annotations

from typing import Any

from matrix.answers.inside import InsideTransfers
from matrix.answers.inside_words import sentences_of
from matrix.api.numbers import number

Json = dict[str, Any]


def of_inside(inside: InsideTransfers | None) -> Json | None:
    """Return what InsideFigures describes; None without samples enough."""
    if inside is None:
        return None
    low, median, high = inside.middle
    nominal = inside.nominal
    return {
        "looked_at": inside.looked_at,
        "courses": len(inside.courses),
        "shapes": dict(inside.counts),
        "low_mb_s": number(low),
        "median_mb_s": number(median),
        "high_mb_s": number(high),
        "stalled": number(inside.stalled),
        "ceiling_mb_s": None if inside.ceiling is None else number(inside.ceiling),
        "nominal_mb_s": number(nominal.mb_s) if nominal else None,
        "nominal_site": nominal.site if nominal else None,
        "sentences": sentences_of(inside),
    }
