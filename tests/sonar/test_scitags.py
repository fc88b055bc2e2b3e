"""Flow labels: one number for servers, experiment/activity for people."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.notation import scitags
from sonar.notation.scitags import Scitag


def test_the_label_of_atlas_functional_tests_is_139():
    assert scitags.parsed("2/11") == 139
    assert scitags.written(139) == "2/11"
    assert scitags.written(None) is None


@given(st.integers(1, 1023), st.integers(1, 63))
def test_what_is_written_is_read_again(experiment: int, activity: int):
    number = Scitag(experiment, activity).number
    assert scitags.LEAST <= number <= scitags.MOST
    assert scitags.parsed(scitags.written(number)) == number


def test_anything_else_is_told_with_what_is_allowed():
    wrong = ("", "2", "2/", "/11", "0/1", "1/0", "1/64", "1024/1", "02/11", "2/011", "2 / 11")
    for text in (*wrong, "-1/2"):
        with pytest.raises(
            ValueError, match="for example 2/11: the experiment from 1 to 1023, the activ"
        ):
            scitags.parsed(text)
        assert not re.search(scitags.NOTATION, text)
