"""A ratio in words: what it says, and when it says nothing."""

import math

import pytest

from matrix.answers.words.ratios import PairRatio

NAN = math.nan


def test_all_of_a_ratio_can_be_quoted():
    pair = PairRatio(41.2, 83.5, 0.4934, 0.41, 0.578, 1e-9, 1056, 58)
    assert pair.words == "0.49× (0.41–0.58), n = 1\u202f056 and 58, p < 0.001"
    bare = PairRatio(41.2, 83.5, 0.4934, NAN, NAN, NAN, 1, 58)
    assert bare.words == "0.49×, n = 1 and 58"


@pytest.mark.parametrize(
    ("ratio", "p", "kind"), [(0.5, 0.001, "slower"), (2.0, 0.001, "faster"), (NAN, NAN, "")]
)
def test_what_is_sure_is_slower_or_faster(ratio, p, kind):
    assert PairRatio(1.0, 1.0, ratio, NAN, NAN, p, 9, 9, sure=True).kind == kind


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [(0.93, 1.21, "same"), (1.02, 1.21, "perhaps"), (0.5, 0.99, "perhaps"), (1.02, 1.1, "same")],
)
def test_what_is_not_sure_may_differ_where_its_interval_leaves_out_1(low, high, kind):
    """But by a tenth at least: less is nothing that anybody would look into."""
    ratio = math.sqrt(low * high)
    assert PairRatio(1.0, 1.0, ratio, low, high, 0.029, 9, 9).kind == kind
