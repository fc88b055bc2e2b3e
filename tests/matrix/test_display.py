"""How a matrix is drawn: every parameter, there and back; and what a bad one is answered with."""

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from matrix.plots.display import LARGEST, ORDERS, SCALES, Display, number_text
from matrix.plots.palettes import PALETTES
from matrix.query.catalogue import STATS
from matrix.query.forms import BadQueryError
from matrix.statistics.cells.states import LOOKS


def asked(text: str, stat: str = "mean") -> Display:
    return Display.from_params(dict(QueryDict(text).lists()), stat)


def sentences(text: str, stat: str = "mean") -> dict[str, list[str]]:
    with pytest.raises(BadQueryError) as caught:
        asked(text, stat)
    return caught.value.errors


numbers = st.one_of(
    st.none(), st.integers(1, int(LARGEST)).map(float), st.floats(1e-9, LARGEST, allow_nan=False)
)
pairs = st.tuples(numbers, numbers).map(
    lambda pair: sorted(pair) if None not in pair and pair[0] != pair[1] else [pair[0], None]
)


@given(
    order=st.sampled_from(ORDERS),
    transpose=st.booleans(),
    wall=st.booleans(),
    only=st.sets(st.sampled_from(LOOKS)),
    palette=st.sampled_from(["", *PALETTES]),
    scale=st.sampled_from(SCALES),
    focus=pairs,
    colours=pairs,
    stat=st.sampled_from(STATS),
)
def test_every_display_survives_its_own_url(
    order, transpose, wall, only, palette, scale, focus, colours, stat
):
    display = Display(
        order=order,
        transpose=transpose,
        only=tuple(state for state in LOOKS if state in only),
        above=focus[0],
        below=focus[1],
        palette=palette,
        scale=scale,
        low=colours[0],
        high=colours[1],
        wall=wall,
    )
    again = Display.from_params(display.to_params(), stat)
    assert again == display
    assert again.to_params() == display.to_params()


def test_defaults_are_left_out_and_states_stand_in_one_order():
    assert asked("order=name&scale=middle&transpose=&only=&low=&palette=").to_params() == {}
    assert asked("only=stale&only=failed&only=stale").to_params() == {"only": ["failed", "stale"]}
    assert asked("wall=1&high=10.0&below=0.50").to_params() == {
        "below": ["0.5"],
        "high": ["10"],
        "wall": ["1"],
    }


def test_a_bound_of_zero_is_a_bound():
    assert asked("above=0").above == 0
    assert asked("above=-0.0").to_params() == {"above": ["0"]}
    assert asked("above=0").focuses
    assert asked("above=0").to_params() == {"above": ["0"]}


@pytest.mark.parametrize(
    ("text", "parameter", "sentence"),
    [
        ("order=size", "order", "order “size” is not known: use name, cloud, tier, average or"),
        ("order=name&order=tier", "order", "order is given 2 times: give it once."),
        ("transpose=yes", "transpose", "transpose “yes” is not known: use 1."),
        ("wall=0", "wall", "wall “0” is not known: use 1."),
        (
            "only=red",
            "only",
            "only “red” is not known: use measured, failing, failed, stale, untested, down, "
            "usual, slower, faster, unknown or partly.",
        ),
        ("only=not_applicable", "only", "only “not_applicable” is not known"),
        ("palette=jet", "palette", "use viridis, cividis, magma or rdylgn."),
        ("scale=log", "scale", "scale “log” is not known: use middle or whole."),
        ("above=much", "above", "above “much” is not a number from 0 up to 10¹²"),
        ("above=nan", "above", "is not a number from 0"),
        ("below=inf", "below", "is not a number from 0"),
        ("below=-1", "below", "is not a number from 0"),
        ("above=5&below=4", "above", "above must not be greater than below."),
        ("low=0", "low", "low “0” is not a number above 0 up to 10¹²: write one like 0.5"),
        ("high=0", "high", "high “0” is not a number above 0"),
        ("low=5&high=5", "low", "low must be less than high."),
    ],
)
def test_a_bad_value_is_answered_with_a_sentence_that_names_the_parameter(
    text, parameter, sentence
):
    found = sentences(text)
    assert list(found) == [parameter]
    assert sentence in found[parameter][0]


def test_all_bad_parameters_are_named_at_once():
    assert set(sentences("order=x&low=x&only=x&wall=2")) == {"order", "low", "only", "wall"}


def test_colours_of_a_share_may_begin_at_zero():
    assert asked("low=0&high=50", "success").low == 0
    assert "low" in sentences("low=0&high=50", "median")


def test_numbers_of_another_unit_are_dropped_with_the_statistic_that_they_were_meant_for():
    text = "above=5&below=50&low=1&high=10&order=tier&unit="
    assert asked(text + "MB/s", "mean") == asked(text)
    assert asked(text + "MB/s", "p95") == asked(text)
    assert asked(text + "MB/s", "success") == Display(order="tier")
    assert asked(text + "%25", "success") == asked(text)


def test_a_focus_is_taken_away_as_one():
    display = asked("only=failed&above=1&below=2&order=tier")
    assert display.focuses
    assert display.unfocused() == Display(order="tier")
    assert not display.unfocused().focuses


def test_displays_have_fingerprints_of_their_own():
    some = [Display(), Display(transpose=True), Display(low=1), Display(only=("failed",))]
    assert len({one.fingerprint for one in some}) == len(some)
    assert Display().fingerprint == asked("order=name").fingerprint


@given(st.floats(0, LARGEST))
def test_a_number_is_read_as_it_was_written(value):
    assert float(number_text(value)) == value
