"""Ratios in colours: a scale around 1, its ticks, and a palette that any eye tells apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.plots.numbers import number
from matrix.plots.palettes import (
    DIVERGING,
    PALETTES,
    contrast,
    luminance,
    palette_for,
    ramp,
    white_reads,
)
from matrix.plots.scales import LEAST, Scale, scale_for
from matrix.query.catalogue import STATISTICS, Statistic, Unit

RATIO = Statistic(
    "ratio", "ratio", "Ratio of {files}", unit=Unit("×", "ratio", "factor"), scale="diverging"
)
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
        ((), ["÷2", "÷1.5", "÷1.25", "1", "×1.25", "×1.5", "×2"]),
        ((1.02, 0.9), ["÷2", "÷1.5", "÷1.25", "1", "×1.25", "×1.5", "×2"]),
        ((0.27, 1.1), ["÷4", "÷2", "1", "×2", "×4"]),
        ((1.1, 3.5), ["÷4", "÷2", "1", "×2", "×4"]),
        ((0.04,), ["÷30", "÷10", "÷3", "1", "×3", "×10", "×30"]),
        ((5.0, 0.002), ["÷1\u202f000", "÷100", "÷10", "1", "×10", "×100", "×1\u202f000"]),
    ],
)
def test_the_scale_of_ratios_is_the_same_to_both_sides_of_one(
    values: tuple[float, ...], ticks: list[str]
) -> None:
    around = scale(*values)
    assert around.low == -around.high
    assert list(around.ticks.values()) == ticks
    assert around.shares(np.array([1.0]))[0] == 0.5


def test_a_bound_of_the_colours_holds_for_both_ends() -> None:
    for around in (scale(0.1, 9, low=0.25), scale(0.1, 9, high=4), scale(0.1, 9, low=0.5, high=4)):
        assert 10**around.high == pytest.approx(4)
        assert list(around.ticks.values()) == ["≤ ÷4", "÷2", "1", "×2", "≥ ×4"]
    # A bound at 1 leaves room for colours.
    assert scale(3.0, high=1).high > 0


def test_ratios_beyond_the_middle_of_them_are_told_by_arrows() -> None:
    around = scale(*np.geomspace(0.6, 1.6, 60), 0.001, 500)
    assert [*around.ticks.values()][::6] == ["▼ ÷2", "▲ ×2"]
    whole = scale_for(RATIO, np.array([*np.geomspace(0.6, 1.6, 60), 0.001, 500]), whole=True)
    assert [*whole.ticks.values()][-1] == "×1\u202f000"


@given(
    st.lists(st.floats(0, 1e9), max_size=30),
    st.none() | st.floats(1e-9, 1e12),
    st.none() | st.floats(1e-9, 1e12),
)
def test_every_ratio_has_a_place_of_its_side(
    values: list[float], low: float | None, high: float | None
) -> None:
    array = np.array([*values, np.nan])
    around = scale_for(RATIO, array, low, high)
    shares = around.shares(array)
    assert around.low == -around.high < 0
    assert np.isnan(shares[-1])
    present, places = array[:-1], shares[:-1]
    assert ((places >= 0) & (places <= 1)).all()
    assert (places[present < 1 - 1e-6] < 0.5).all()
    assert (places[present > 1 + 1e-6] > 0.5).all()
    assert (places[present <= LEAST] < 1e-9).all()
    assert all(around.low - 1e-9 <= tick <= around.high + 1e-9 for tick in around.ticks)
    assert len(around.ticks) <= 9


def test_a_palette_without_a_middle_gives_way_to_one_with() -> None:
    assert palette_for("", RATIO) == palette_for("magma", RATIO) == DIVERGING
    assert palette_for("rdylgn", RATIO) == PALETTES["rdylgn"]
    assert palette_for("magma", STATISTICS["mean"]) == PALETTES["magma"]


def test_the_palette_is_palest_at_one_and_darker_the_further_from_it() -> None:
    shades = luminance(ramp(DIVERGING, 201))
    assert all(one < other for one, other in pairwise(shades[:101]))
    assert all(one > other for one, other in pairwise(shades[100:]))


@pytest.mark.parametrize("kind", BLIND)
def test_slower_and_faster_look_different_to_any_eye(kind: str) -> None:
    seen = lightness_and_hues(ramp(DIVERGING, 201), np.array(BLIND[kind]))
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


def test_numbers_are_readable_on_every_ratio() -> None:
    whites = white_reads(DIVERGING, 201)
    shades = luminance(ramp(DIVERGING, 201))
    ink = np.where(whites, contrast(1.0, shades), contrast(shades, 0.0))
    assert ink.min() >= 4.5


def test_a_ratio_is_written_with_two_digits() -> None:
    written = [number(value, RATIO) for value in (0.4934, 1.0, 2.06, 12.3, 345.6, np.nan)]
    assert written == ["0.49", "1.0", "2.1", "12", "346", ""]
