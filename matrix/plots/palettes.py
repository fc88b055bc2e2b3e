"""Palettes of the matrix: the colours, those in between, and the ink that reads on each."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import Statistic
from matrix.statistics.arrays import Flags, Floats

Inks = NDArray[np.int64]
DEFAULT_PALETTE = "viridis"


def colours_of(text: str) -> tuple[str, ...]:
    return tuple(f"#{colour}" for colour in text.split())


# From low to high, as Plotly has them; workers, which write reports for e-mail, are without it.
PALETTES: dict[str, tuple[str, ...]] = {
    "viridis": colours_of("440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725"),
    "cividis": colours_of("00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838"),
    "magma": colours_of("000004 180f3d 440f76 721f81 9e2f7f cd4071 f1605d fd9668 feca8d fcfdbf"),
    "rdylgn": colours_of(
        "a50026 d73027 f46d43 fdae61 fee08b ffffbf d9ef8b a6d96a 66bd63 1a9850 006837"
    ),
}
# Ratios go from brown, which is slower, to teal, which is faster: no colour blindness makes these
# one. In the middle, at 1, is almost the surface of the page, so that what is off stands out. Each
# is the variable --ratio-N of static/css/sonar.css, by the theme.
RATIO_COLOURS = {
    "light": ("#8c510a", "#bf812d", "#dfc27d", "#f7f8f8", "#80cdc1", "#35978f", "#01665e"),
    "dark": ("#e0a04d", "#b07a35", "#6e5230", "#20272e", "#2b5c59", "#3f968c", "#5fd0c0"),
}
DIVERGING = tuple(f"var(--ratio-{number})" for number in range(1, 8))
# The share of the scale to both sides of 1 in which a number is written in a quiet ink.
QUIET = 0.066
WHITE, BLACK, MUTED = "#ffffff", "#000000", "var(--muted)"
# What reads on a colour that is deep in light and pale in dark, and the other way round.
ON_DEEP, ON_PALE = "var(--on-deep)", "var(--on-pale)"
INKS = (BLACK, ON_PALE, ON_DEEP, WHITE, MUTED)
PALETTE_LABELS = {"cividis": "cividis (colour-blind safe)", "rdylgn": "red-yellow-green"}
# What a channel of sRGB adds to the luminance (WCAG 2).
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def palette_for(name: str, statistic: Statistic) -> tuple[str, ...]:
    """Return the colours from the low to the high end of a statistic's scale; "" is the default.

    Around 1 there is the one, whatever is chosen: below it is slower and brown, everywhere.
    """
    if statistic.scale == "diverging":
        return DIVERGING
    colours = PALETTES[name or DEFAULT_PALETTE]
    # Red is at the end of the bad values.
    is_turned = name == "rdylgn" and statistic.worse == "high"
    return colours[::-1] if is_turned else colours


@lru_cache(maxsize=16)
def inks_on(colours: tuple[str, ...], steps: int) -> Inks:
    """Return for each of so many steps along the palette the place in INKS of what reads on it."""
    if colours != DIVERGING:
        return np.where(white_reads(colours, steps), INKS.index(WHITE), INKS.index(BLACK))
    in_light, in_dark = (white_reads(RATIO_COLOURS[theme], steps) for theme in ("light", "dark"))
    inks = 2 * in_light + 1 * in_dark
    off_middle = np.abs(np.linspace(-0.5, 0.5, steps))
    return np.where(off_middle < QUIET, INKS.index(MUTED), inks)


@lru_cache(maxsize=16)
def white_reads(colours: tuple[str, ...], steps: int) -> Flags:
    """Say for each of so many steps along the palette whether white reads better than black."""
    luminances = luminance(ramp(colours, steps))
    return np.asarray(contrast(1.0, luminances) >= contrast(luminances, 0.0))


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
