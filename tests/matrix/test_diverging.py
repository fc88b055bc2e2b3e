"""Ratios in colours: a scale around 1, its ticks, and a palette that any eye tells apart."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.words.numbers import number
from matrix.plots.palettes import (
    DIVERGING,
    INKS,
    PALETTES,
    RATIO_COLOURS,
    contrast,
    inks_on,
    luminance,
    palette_for,
    ramp,
)
from matrix.plots.scales import LEAST_VALUE, Scale, scale_for
from matrix.query.catalogue import RATIO, STATISTICS
from tests.imports import PROJECT

THEMES = tuple(RATIO_COLOURS)
# What eyes see that lack one of the three kinds of cones (Machado, Oliveira and Fernandes 2009, of
# severity 1), in linear RGB.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def scale(*values: float, low: float | None = None, high: float | None = None) -> Scale:
    return scale_for(RATIO, np.array([*values, np.nan]), low, high)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((), ["¼×", "½×", "1×", "2×", "4×"]),
        ((1.02, 0.9), ["¼×", "½×", "1×", "2×", "4×"]),
        ((0.27, 1.1), ["¼×", "½×", "1×", "2×", "4×"]),
        ((7.0,), ["0.12×", "¼×", "½×", "1×", "2×", "4×", "8×"]),
        ((0.04,), ["0.033×", "0.1×", "0.33×", "1×", "3×", "10×", "30×"]),
        ((5.0, 0.002), ["0.001×", "0.01×", "0.1×", "1×", "10×", "100×", "1\u202f000×"]),
    ],
)
def test_the_scale_of_ratios_is_the_same_to_both_sides_of_one(values, ticks):
    around = scale_for(RATIO, np.array([*values, np.nan]), whole=True)
    assert around.low == -around.high
    assert list(around.ticks.values()) == ticks
    assert around.shares(np.array([1.0]))[0] == 0.5


@pytest.mark.parametrize("name", ["vs_usual", "vs_predicted"])
def test_a_colour_means_the_same_factor_wherever_factors_are_shown(name):
    factors = np.array([0.25, 0.3, 0.5, 1, 1.1, 2, 4])
    wide = np.array([*factors, 0.01, 30.0])
    other = scale_for(STATISTICS[name], wide)
    np.testing.assert_allclose(scale(*factors).shares(factors), other.shares(factors), atol=1e-12)
    assert palette_for("", STATISTICS[name]) == palette_for("", RATIO)


def test_a_bound_of_the_colours_holds_for_both_ends():
    for around in (scale(0.1, 9, low=0.25), scale(0.1, 9, high=4), scale(0.1, 9, low=0.5, high=4)):
        assert 10**around.high == pytest.approx(4)
        assert list(around.ticks.values()) == ["≤ ¼×", "½×", "1×", "2×", "≥ 4×"]
    # A bound at 1 leaves room for colours.
    assert scale(3.0, high=1).high > 0


def test_ratios_beyond_the_ends_are_told_by_arrows():
    around = scale(*np.geomspace(0.6, 1.6, 60), 0.001, 500)
    assert [*around.ticks.values()][::4] == ["▼ ¼×", "▲ 4×"]
    whole = scale_for(RATIO, np.array([*np.geomspace(0.6, 1.6, 60), 0.001, 500]), whole=True)
    assert [*whole.ticks.values()][-1] == "1\u202f000×"


@given(
    st.lists(st.floats(0, 1e9), max_size=30),
    st.none() | st.floats(1e-9, 1e12),
    st.none() | st.floats(1e-9, 1e12),
)
def test_every_ratio_has_a_place_of_its_side(values, low, high):
    array = np.array([*values, np.nan])
    around = scale_for(RATIO, array, low, high)
    shares = around.shares(array)
    assert around.low == -around.high < 0
    assert np.isnan(shares[-1])
    present, places = array[:-1], shares[:-1]
    assert ((places >= 0) & (places <= 1)).all()
    assert (places[present < 1 - 1e-6] < 0.5).all()
    assert (places[present > 1 + 1e-6] > 0.5).all()
    # Bounds may reach further down than the least value.
    assert (places[present <= min(LEAST_VALUE, 10**around.low)] < 1e-9).all()
    assert all(around.low - 1e-9 <= tick <= around.high + 1e-9 for tick in around.ticks)
    assert len(around.ticks) <= 9


def test_around_one_there_is_the_one_palette_whatever_is_chosen():
    assert {palette_for(name, RATIO) for name in ("", *PALETTES)} == {DIVERGING}
    assert palette_for("magma", STATISTICS["mean"]) == PALETTES["magma"]


@pytest.mark.parametrize("theme", THEMES)
def test_the_palette_is_nearest_to_the_page_at_one_and_further_the_further_from_it(theme):
    shades = luminance(ramp(RATIO_COLOURS[theme], 201)) * (1 if theme == "light" else -1)
    assert all(one < other for one, other in pairwise(shades[:101]))
    assert all(one > other for one, other in pairwise(shades[100:]))


@pytest.mark.parametrize("theme", THEMES)
def test_slower_is_brown_and_faster_is_teal(theme):
    red, _, blue = ramp(RATIO_COLOURS[theme], 201).T
    assert (red[:90] > blue[:90]).all()
    assert (red[111:] < blue[111:]).all()


def test_the_style_sheet_has_the_colours_of_each_theme():
    style = (PROJECT / "static" / "css" / "sonar.css").read_text()
    written = re.findall(r"--ratio-(\d): (#[0-9a-f]{6});", style)
    numbered = [(str(number), colour) for colours in RATIO_COLOURS.values()
                for number, colour in enumerate(colours, 1)]  # fmt: skip
    assert written == numbered
    assert [f"var(--ratio-{number})" for number, _ in numbered] == [*DIVERGING, *DIVERGING]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", BLIND)
def test_slower_and_faster_look_different_to_any_eye(kind, theme):
    seen = lightness_and_hues(ramp(RATIO_COLOURS[theme], 201), np.array(BLIND[kind]))
    for step in range(40, 101, 10):
        slower, faster = seen[100 - step], seen[100 + step]
        # Two colours that differ by 10 in CIE Lab are told apart at a glance.
        assert np.linalg.norm(slower - faster) >= 20, step


def lightness_and_hues(rgb: np.ndarray, eye: np.ndarray) -> np.ndarray:
    """Return the colours in CIE Lab (white D65), as an eye sees them."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ eye.T, 0, 1)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = np.cbrt(np.maximum(seen @ to_xyz.T / [0.9505, 1, 1.089], 1e-6)).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@pytest.mark.parametrize("theme", THEMES)
def test_numbers_are_readable_on_every_ratio(theme):
    style = (PROJECT / "static" / "css" / "sonar.css").read_text()

    def shade(ink: str) -> float:
        """Return the luminance of an ink, of which the style sheet has one for each theme."""
        name = ink.removeprefix("var(").removesuffix(")")
        of_themes = re.findall(rf"^ +{name}: (#[0-9a-f]{{6}});", style, re.MULTILINE)
        colour = of_themes[THEMES.index(theme)] if of_themes else ink
        return float(luminance(ramp((colour, colour), 2))[0])

    steps = 1000
    inks = np.array([shade(ink) for ink in INKS])[inks_on(DIVERGING, steps)]
    grounds = luminance(ramp(RATIO_COLOURS[theme], steps))
    read = contrast(np.maximum(inks, grounds), np.minimum(inks, grounds))
    assert read.min() >= 4.5


def test_a_ratio_is_written_with_two_digits():
    written = [number(value, RATIO) for value in (0.4934, 1.0, 2.06, 12.3, 345.6, np.nan)]
    assert written == ["0.49", "1.00", "2.1", "12", "346", ""]
