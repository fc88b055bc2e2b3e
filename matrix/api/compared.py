"""A comparison of two samples as calls answer it."""

from __future__ import annotations

import math
from typing import Any

from matrix.answers.ratio_words import PairRatio
from matrix.statistics.compare.together import Together

DIGITS = 6


def of_pair(pair: PairRatio) -> dict[str, Any]:
    """Return what ComparedRates describes; what is missing is null."""
    return {
        "rate": shortened(pair.value),
        "other": shortened(pair.other),
        **{name: shortened(getattr(pair, name)) for name in ("ratio", "low", "high", "p")},
        "ok": pair.ok,
        "other_ok": pair.other_ok,
    }


def of_factor(together: Together) -> dict[str, float | None]:
    """Return the factor of links that are compared together, as TogetherAnswer describes it."""
    return {name: shortened(getattr(together, name)) for name in ("ratio", "low", "high", "p")}


def of_together(together: Together) -> dict[str, Any]:
    """Return what TogetherAnswer describes."""
    counts = {name: getattr(together, name) for name in ("links", "ok", "other_ok")}
    return of_factor(together) | counts


def shortened(value: float) -> float | None:
    """Leave out digits that are noise."""
    return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")
