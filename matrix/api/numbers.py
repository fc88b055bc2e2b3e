"""Numbers and times of reports as calls answer them: NaN is null."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np

from matrix.statistics.arrays import rounded
from sonar.notation.windows import format_time


def number(value: float) -> float | None:
    return None if math.isnan(value) else float(rounded(np.asarray(value)))


def known_number(value: float | None) -> float | None:
    return None if value is None else number(value)


def time(unix: float) -> str | None:
    moment = None if math.isnan(unix) else datetime.fromtimestamp(unix, UTC)
    return format_time(moment) if moment else None
