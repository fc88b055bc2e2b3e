"""Palettes of the matrix: the colours, those in between, and the ink that reads on each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from matrix.query.catalogue import Statistic
from matrix.statistics.arrays import Flags, Floats

DEFAULT_PALETTE = "viridis"
# As plotly.colors has them, from low to high.
PALETTES: dict[str, tuple[str, ...]] = {
    "viridis": (
        *("#440154", "#482878", "#3e4989", "#31688e", "#26828e"),
        *("#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"),
    ),
    "cividis": (
        *("#00224e", "#123570", "#3b496c", "#575d6d", "#707173"),
        *("#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"),
    ),
    "magma": (
        *("#000004", "#180f3d", "#440f76", "#721f81", "#9e2f7f"),
        *("#cd4071", "#f1605d", "#fd9668", "#feca8d", "#fcfdbf"),
    ),
    "rdylgn": (
        *("#a50026", "#d73027", "#f46d43", "#fdae61", "#fee08b", "#ffffbf"),
        *("#d9ef8b", "#a6d96a", "#66bd63", "#1a9850", "#006837"),
    ),
}
# Ratios fade from two dark colours, that no colour blindness makes one, to a pale one at 1: paler
# than any other, but still no white of a cell without a result, and no glare on a dark page.
DIVERGING = (
    *("#6b3003", "#96480a", "#bf6a1c", "#d8954f", "#dcbd94"),
    "#d9d5ca",
    *("#a9c0d4", "#6f9fc8", "#3c79ac", "#1c558a", "#0b3563"),
)
PALETTE_LABELS = {
    "cividis": "cividis (colour-blind safe)",
    "rdylgn": "red-yellow-green",
}
# What a channel of sRGB adds to the luminance (WCAG 2).
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def palette_for(name: str, statistic: Statistic) -> tuple[str, ...]:
    """Return the colours from the low to the high end of a statistic's scale; "" is the default.

    Around 1 no palette shows what is what that has no middle: of all, red-yellow-green has one.
    """
    if statistic.scale == "diverging" and name != "rdylgn":
        return DIVERGING
    colours = PALETTES[name or DEFAULT_PALETTE]
    # Red is at the end of the bad values.
    is_turned = name == "rdylgn" and statistic.worse == "high"
    return colours[::-1] if is_turned else colours


def colorscale(colours: Sequence[str]) -> list[list[float | str]]:
    """Return evenly spaced stops as Plotly wants them."""
    last = len(colours) - 1
    return [[number / last, colour] for number, colour in enumerate(colours)]


@lru_cache(maxsize=16)
def white_reads(colours: tuple[str, ...], steps: int) -> Flags:
    """Say for each of so many steps along the palette whether white reads better than black."""
    luminances = luminance(ramp(colours, steps))
    reads: Flags = contrast(1.0, luminances) >= contrast(luminances, 0.0)
    return reads


def ramp(colours: Sequence[str], steps: int) -> Floats:
    """Return the colours of evenly spaced steps as Plotly mixes them: RGB from 0 to 1."""
    stops = np.array(
        [[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in colours]
    )
    positions = np.linspace(0, len(colours) - 1, steps)
    channels = [np.interp(positions, np.arange(len(colours)), channel) for channel in stops.T]
    return np.stack(channels, axis=-1)


def luminance(rgb: Floats) -> Floats:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ LUMINANCE)


def contrast(lighter: Floats | float, darker: Floats | float) -> Floats:
    return np.asarray((lighter + 0.05) / (darker + 0.05))
