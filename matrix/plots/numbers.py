"""Heatmaps, and the numbers that are written on them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.plots.packed import packed
from matrix.query.catalogue import Statistic
from matrix.statistics.arrays import Flags, Floats
from sonar.notation.units import DASH, factor_digits, format_age, format_count, three_digits

Json = dict[str, Any]

# Numbers stand in the cells up to this many columns and rows, gaps between cells likewise.
COLUMNS_WITH_NUMBERS, ROWS_WITH_NUMBERS = 25, 40
CELLS_APART = 60
TRANSPARENT = "rgba(0,0,0,0)"


def heatmap(z: NDArray[Any], kind: str, looks: Json) -> Json:
    apart = int(max(z.shape) <= CELLS_APART)
    plain = {
        "type": "heatmap",
        "z": packed(z, kind),
        "x0": 0,
        "dx": 1,
        "y0": 0,
        "dy": 1,
        "xgap": apart,
        "ygap": apart,
        "showscale": False,
        "hoverinfo": "skip",
    }
    return plain | looks


def dashes(where: Flags, axes: Json) -> list[Json]:
    """Write a dash where there is no number."""
    return text_in(where, np.where(where, DASH, "").tolist(), "var(--ink)", axes)


def number_texts(values: Floats, statistic: Statistic, ink: str, axes: Json) -> list[Json]:
    """Return a trace of numbers, or none where there are no values or no room."""
    if not room_for_numbers(values.shape):
        return []
    texts = [[number(value, statistic) for value in row] for row in values.tolist()]
    return text_in(~np.isnan(values), texts, ink, axes)


def text_in(where: Flags, texts: list[list[str]], ink: str, axes: Json) -> list[Json]:
    if not room_for_numbers(where.shape) or not where.any():
        return []
    looks = {
        "text": texts,
        "texttemplate": "%{text}",
        "textfont": {"color": ink, "size": 11},
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, TRANSPARENT], [1, TRANSPARENT]],
    }
    return [heatmap(np.where(where, 0.0, np.nan), "f4", looks | axes)]


def room_for_numbers(shape: tuple[int, ...]) -> bool:
    return shape[0] <= ROWS_WITH_NUMBERS and shape[1] <= COLUMNS_WITH_NUMBERS


def number(value: float, statistic: Statistic) -> str:
    """Write a value as it stands in a cell, without its unit; nothing for none."""
    if np.isnan(value):
        return ""
    written = statistic.unit.written
    if written == "age":
        return format_age(timedelta(seconds=value)).removesuffix(" ago")
    if written == "factor":
        return factor_digits(value)
    if written == "count" and value == int(value):
        return format_count(int(value))
    return three_digits(value)
