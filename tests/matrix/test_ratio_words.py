"""A ratio in words: what it says, and when it says nothing."""

from __future__ import annotations

import math

import pytest

from matrix.answers.ratio_words import PairRatio

NAN = math.nan


def test_all_of_a_ratio_can_be_quoted() -> None:
    pair = PairRatio(41.2, 83.5, 0.4934, 0.41, 0.578, 1e-9, 1056, 58)
    assert pair.words == "0.49× (0.41–0.58), n = 1\u202f056 and 58, p < 0.001"
    bare = PairRatio(41.2, 83.5, 0.4934, NAN, NAN, NAN, 1, 58)
    assert bare.words == "0.49×, n = 1 and 58"


@pytest.mark.parametrize(
    ("ratio", "p", "kind"),
    [(0.5, 0.049, "slower"), (2.0, 0.049, "faster"), (0.5, 0.05, "same"), (NAN, NAN, "")],
)
def test_only_what_chance_does_not_explain_is_slower_or_faster(
    ratio: float, p: float, kind: str
) -> None:
    assert PairRatio(1.0, 1.0, ratio, NAN, NAN, p, 9, 9).kind == kind


@pytest.mark.parametrize(
    ("low", "high", "kind"), [(0.93, 1.21, "same"), (1.01, 1.21, "faster"), (0.5, 0.99, "slower")]
)
def test_where_the_true_ratio_may_be_1_nothing_is_faster(
    low: float, high: float, kind: str
) -> None:
    ratio = math.sqrt(low * high)
    assert PairRatio(1.0, 1.0, ratio, low, high, 0.029, 9, 9).kind == kind


@pytest.mark.parametrize(("counts", "can"), [((3, 3), False), ((3, 4), False), ((4, 4), True)])
def test_of_a_few_results_no_order_is_beyond_chance(counts: tuple[int, int], can: bool) -> None:
    assert PairRatio(1.0, 3.0, 0.3, NAN, NAN, 0.06, *counts).can_tell == can
