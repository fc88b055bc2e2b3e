"""What is drawn of a grid: order, gaps, transposition and focus."""

import numpy as np
import pytest

from matrix.plots.arrangement import Arrangement, arrange
from matrix.plots.display import Display
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import STATES
from tests.matrix.grids import grid_of, group, square


def drawn(**display: object) -> Arrangement:
    return arrange(square(), Display(**display))  # type: ignore[arg-type]


def names(arrangement: Arrangement) -> tuple[list[str], list[str]]:
    return arrangement.rows.names, arrangement.columns.names


def lines(arrangement: Arrangement) -> list[str]:
    """Return what stands at each row, a line for a gap, and titles in brackets."""
    rows = arrangement.rows
    found = dict.fromkeys(rows.gaps, "-")
    for number, (at, name) in enumerate(zip(rows.at.tolist(), rows.names, strict=True)):
        found[at] = f"[{rows.titles[number]}] {name}" if number in rows.titles else name
    return [found[at] for at in range(rows.length)]


def test_by_default_rows_are_sources_in_the_order_of_the_grid():
    plain = drawn()
    assert names(plain) == (["a", "B", "c"], ["a", "B", "c"])
    assert (plain.rows.end, plain.columns.end) == ("source", "destination")
    np.testing.assert_array_equal(plain.value, square().cells.value)
    assert plain.in_focus.all()


def test_rows_and_columns_are_ordered_by_their_averages_with_none_last():
    # Means of rows: 15, 5, 1; of columns: 1, 10, 12.5.
    assert names(drawn(order="average")) == (["a", "B", "c"], ["c", "B", "a"])
    assert names(drawn(order="-average")) == (["c", "B", "a"], ["a", "B", "c"])
    blank = grid_of([[None, 1], [3, 2]], *[[group("x"), group("y")]] * 2)
    assert names(arrange(blank, Display(order="average"))) == (["y", "x"], ["x", "y"])
    empty = grid_of([[1, 2], [None, None]], *[[group("x"), group("y")]] * 2)
    assert arrange(empty, Display(order="average")).rows.names == ["x", "y"]
    assert arrange(empty, Display(order="-average")).rows.names == ["x", "y"]


def test_cells_follow_the_order_of_their_rows_and_columns():
    sorted_by_average = drawn(order="average")
    expected = square().cells.value[np.ix_([0, 1, 2], [2, 1, 0])]
    np.testing.assert_array_equal(sorted_by_average.value, expected)
    np.testing.assert_array_equal(sorted_by_average.rows.average, [15, 5, 1])
    np.testing.assert_array_equal(sorted_by_average.columns.average, [12.5, 10, 1])


def test_clouds_and_tiers_stand_apart_and_are_named():
    assert lines(drawn(order="cloud")) == ["[DE] B", "-", "[UK] a", "c"]
    assert lines(drawn(order="tier")) == ["[Tier 1] B", "c", "-", "[Tier 2] a"]


def test_groups_of_several_clouds_or_of_none_come_last():
    places = [group("a", None, None), group("b", ""), group("c", "uk"), group("d", "UK")]
    places += [group("e", "DE"), group("f", "DE")]
    grid = grid_of(np.ones((6, 6)).tolist(), places, places)
    assert lines(arrange(grid, Display(order="cloud"))) == [
        *("[DE] e", "f", "-", "[UK] d", "[uk] c"),
        *("[no cloud] b", "[several clouds] a"),
    ]
    assert lines(arrange(grid, Display(order="tier")))[-2:] == ["-", "[several tiers] a"]


@pytest.mark.parametrize("clouds", [["UK", "UK"], ["UK", "DE"]])
def test_there_is_no_gap_where_nothing_is_set_apart(clouds):
    places = [group(f"place{at}", cloud) for at, cloud in enumerate(clouds)]
    arrangement = arrange(grid_of([[1, 2], [3, 4]], places, places), Display(order="cloud"))
    assert not arrangement.rows.gaps
    assert arrangement.rows.length == 2


def test_values_are_spread_around_the_gaps():
    arrangement = drawn(order="cloud")
    spread = arrangement.spread(arrangement.value, -1)
    assert spread.shape == (4, 4)
    assert (spread[1] == -1).all()
    assert (spread[:, 1] == -1).all()
    np.testing.assert_array_equal(spread[np.ix_([0, 2, 3], [0, 2, 3])], arrangement.value)


def test_transposed_the_destinations_are_rows():
    transposed = drawn(transpose=True, order="average")
    assert (transposed.rows.end, transposed.columns.end) == ("destination", "source")
    assert names(transposed) == (["c", "B", "a"], ["a", "B", "c"])
    np.testing.assert_array_equal(transposed.value, drawn(order="average").value.T)
    np.testing.assert_array_equal(transposed.state, drawn(order="average").state.T)


def test_groupings_of_both_ends_are_told_apart_when_transposed():
    query = MatrixQuery(rows="site", columns="cloud")
    grid = grid_of([[1, 2]], [group("s")], [group("c"), group("d")], query=query)
    transposed = arrange(grid, Display(transpose=True))
    assert (transposed.rows.grouping, transposed.columns.grouping) == ("cloud", "site")


@pytest.mark.parametrize(
    ("display", "cells"),
    [
        (Display(only=("failed",)), {("B", "a")}),
        (Display(only=("failed", "stale")), {("B", "a"), ("a", "c")}),
        (Display(above=10), {("a", "B"), ("a", "c")}),
        (Display(below=10), {("a", "B"), ("B", "c"), ("c", "a")}),
        (Display(above=5, below=10), {("a", "B"), ("B", "c")}),
        (Display(only=("measured",), below=9), {("B", "c")}),
        (Display(only=("untested",), above=1), set()),
    ],
)
def test_only_what_matches_is_in_focus_and_other_rows_and_columns_are_left_out(display, cells):
    arrangement = arrange(square(), display)
    rows, columns = names(arrangement)
    found = {(rows[row], columns[column]) for row, column in np.argwhere(arrangement.in_focus)}
    assert found == cells
    assert set(rows) == {source for source, _ in cells}
    assert set(columns) == {destination for _, destination in cells}


def test_averages_stay_those_of_the_whole_answer():
    focused = drawn(only=("stale",))
    assert focused.rows.average.tolist() == [15]
    assert focused.grid.averages.grand == 9


def test_the_digest_stays_while_rows_and_columns_do_and_the_version_changes_with_the_data():
    plain = drawn()
    assert plain.digest == drawn(palette="magma").digest
    some = [plain, drawn(transpose=True), drawn(order="average"), drawn(order="tier")]
    assert len({one.digest for one in some}) == len(some)
    assert plain.version != drawn(palette="magma").version
    assert plain.version.text.startswith(square().version.text)


def test_a_matrix_of_nothing_is_arranged_too():
    empty = grid_of([], [], [])
    for order in ("name", "average", "cloud"):
        assert arrange(empty, Display(order=order, only=("failed",))).value.shape == (0, 0)


def test_states_are_drawn_where_their_cells_are():
    arrangement = drawn(order="-average")
    rows, columns = names(arrangement)
    at = rows.index("B"), columns.index("a")
    assert STATES[arrangement.state[at]] == "failed"
