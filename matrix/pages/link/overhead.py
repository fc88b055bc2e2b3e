"""Overhead and bandwidth on the link page: a sentence, a picture, and its numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from matrix.answers.link.overhead import ClassTime, Overhead
from matrix.plots import overhead as overhead_plot
from matrix.statistics.transfers.overhead import TOLERANCE
from sonar.notation.units import (
    MB,
    format_bytes,
    format_count,
    format_factor,
    format_seconds,
    three_digits,
)


@dataclass(frozen=True)
class OverheadPart:
    """``sentence`` says what the line says, or that it does not fit."""

    sentence: str
    figure: dict[str, Any]
    classes: tuple[ClassTime, ...]
    fits: bool


def part_of(overhead: Overhead | None) -> OverheadPart | None:
    if overhead is None:
        return None
    sentence = line_words(overhead) if overhead.fits else why_not(overhead)
    return OverheadPart(
        f"{sentence} {count_words(overhead)}",
        overhead_plot.figure(overhead),
        overhead.classes,
        overhead.fits,
    )


def line_words(overhead: Overhead) -> str:
    """Return the line in words; its numbers are those of the matrix and of the API."""
    if overhead.overhead == 0:
        sentence = f"No overhead is seen (at most {format_seconds(overhead.overhead_high)}): "
        return f"{sentence}bytes are sent at {bandwidth_words(overhead)} whatever the size."
    seconds = format_seconds(overhead.overhead, overhead.overhead_low, overhead.overhead_high)
    sentence = f"Each transfer takes {seconds} whatever its size"
    if math.isnan(overhead.bandwidth):
        return f"{sentence}. Larger files take no longer, so the bandwidth is not known."
    half = format_bytes(overhead.half_size * MB)
    return (
        f"{sentence}, and sends its bytes at {bandwidth_words(overhead)}. "
        f"Files under {half} spend most of their time waiting."
    )


def bandwidth_words(overhead: Overhead) -> str:
    low = three_digits(overhead.bandwidth_low)
    if math.isinf(overhead.bandwidth_high):
        return f"{three_digits(overhead.bandwidth)} MB/s (at least {low})"
    high = three_digits(overhead.bandwidth_high)
    return f"{three_digits(overhead.bandwidth)} MB/s ({low}–{high})"


def why_not(overhead: Overhead) -> str:
    """Say what is off the line."""
    sentence = "Overhead and bandwidth cannot be separated here: "
    furthest = overhead.furthest
    if furthest is None or 1 / TOLERANCE < furthest.off < TOLERANCE:
        return f"{sentence}smaller files move faster than any overhead would let them."
    return (
        f"{sentence}{furthest.name} files take {format_factor(furthest.off)} the time that the "
        "other size classes suggest."
    )


def count_words(overhead: Overhead) -> str:
    counts = [f"{format_count(each.ok)} {each.name}" for each in overhead.classes]
    of = f"From the median times of {', '.join(counts)} files"
    return f"{of}; 95 % intervals in brackets." if overhead.fits else f"{of}."
