"""What is drawn of a grid: order, gaps, transposition and focus."""

import dataclasses

import numpy as np
import pytest

from matrix.answers.matrix.grid_cells import Grid
from matrix.plots import cells_file
from matrix.plots.arrangement import LEFT_OUT, Arrangement, arrange
from matrix.plots.display import Display
from matrix.plots.matrix import GAP, codes, labels_for
from matrix.plots.scales import scale_for
from matrix.query.catalogue import STATISTICS
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import STATES
from tests.matrix.grids import grid_of, group, square
from tests.matrix.world import transfer


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


# All links of a few endpoints, drawn as two strips.
NAMES = "abcde"
OF_B = MatrixQuery(filters=(Filter("site", "b"),))


def left_with(own: str, query: MatrixQuery = OF_B, names: str = NAMES) -> Grid:
    """Make the grid of all links with an end in ``own``: rate 10 * source + destination."""
    places = [group(name, tier=1 + at % 2) for at, name in enumerate(names)]
    shown = np.array([[one in own or other in own for other in names] for one in names])
    count = np.arange(len(names))
    values = np.where(
        shown & ~np.eye(len(names), dtype=bool), 10.0 * count[:, None] + count, np.nan
    )
    states = ["".join("-" if np.isnan(value) else "m" for value in row) for row in values]
    grid = grid_of(values.tolist(), places, places, states, query=query)
    return dataclasses.replace(grid, left_out=~shown)


def strips_of(own: str, **display: object) -> Arrangement:
    return arrange(left_with(own), Display(**display))  # type: ignore[arg-type]


def test_one_row_and_column_are_a_strip_of_what_leaves_and_one_of_what_comes():
    strips = strips_of("b")
    assert (strips.rows.names, strips.columns.names) == (["b", "b"], ["a", "c", "d", "e"])
    assert strips.rows.directions == ["from", "to"]
    assert (strips.rows.end, strips.columns.end) == ("own", "partner")
    np.testing.assert_array_equal(strips.value, [[10, 12, 13, 14], [1, 21, 31, 41]])
    assert not strips.rows.gaps


def test_means_are_of_each_strip_and_of_both_directions_of_a_partner():
    strips = strips_of("b")
    assert strips.rows.average.tolist() == [12.25, 23.5]
    assert strips.columns.average.tolist() == [5.5, 16.5, 22, 27.5]
    assert strips.grid.averages.grand == left_with("b").averages.grand


def test_links_between_two_of_several_are_in_both_strips_which_a_gap_sets_apart():
    names = "abcdefghi"
    strips = arrange(left_with("bc", names=names), Display())
    assert strips.rows.names == ["b", "c", "b", "c"]
    assert (strips.rows.at.tolist(), strips.rows.gaps) == ([0, 1, 3, 4], [2])
    b_to_c = 12.0
    column = {name: at for at, name in enumerate(strips.columns.names)}
    assert strips.value[0, column["c"]] == strips.value[3, column["b"]] == b_to_c


def test_transposed_the_strips_stand_side_by_side():
    strips = strips_of("b", transpose=True)
    assert (strips.columns.names, strips.columns.directions) == (["b", "b"], ["from", "to"])
    np.testing.assert_array_equal(strips.value, strips_of("b").value.T)


def test_partners_are_ordered_and_the_strips_stay_apart():
    strips = strips_of("b", order="average")
    assert strips.columns.names == ["e", "d", "c", "a"]
    assert strips.rows.directions == ["from", "to"]
    np.testing.assert_array_equal(strips.value, [[14, 13, 12, 10], [41, 31, 21, 1]])
    assert [*strips_of("b", order="tier").columns.titles.values()] == ["Tier 1", "Tier 2"]


def test_only_what_is_in_focus_is_drawn_of_strips():
    strips = strips_of("b", above=20)
    assert (strips.rows.directions, strips.columns.names) == (["to"], ["c", "d", "e"])


def test_a_partner_at_one_end_alone_has_an_empty_cell_in_the_other_strip():
    whole = left_with("b")
    cells = {
        field.name: getattr(whole.cells, field.name)[1:]
        for field in dataclasses.fields(whole.cells)
        if field.name not in ("extras", "targets")
    }
    part = dataclasses.replace(
        whole,
        sources=whole.sources[1:],
        cells=dataclasses.replace(whole.cells, **cells, extras={}),
        left_out=whole.left_out[1:],  # type: ignore[index]
    )
    strips = arrange(part, Display())
    assert strips.columns.names == ["a", "c", "d", "e"]
    assert STATES[strips.state[1, 0]] == "not_applicable"
    assert np.isnan(strips.value[1, 0])
    only_from_some = MatrixQuery(filters=(Filter("site", "b"), Filter("source_site", "a", True)))
    filtered = arrange(dataclasses.replace(part, query=only_from_some), Display())
    assert filtered.state[1, 0] == LEFT_OUT


@pytest.mark.parametrize("own", ["abcd", "abcde", "abc"])
def test_where_nearly_all_is_shown_the_matrix_stays_whole(own):
    assert strips_of(own).rows.names == list(NAMES)


def test_rows_and_columns_of_different_kinds_are_no_strips():
    query = MatrixQuery(rows="site", columns="cloud", filters=OF_B.filters)
    assert arrange(left_with("b", query), Display()).rows.end == "source"


def test_what_is_shown_beside_the_cross_keeps_the_matrix_whole():
    grid = left_with("b")
    state, left_out = grid.cells.state.copy(), grid.left_out.copy()  # type: ignore[union-attr]
    state[0, 3], left_out[0, 3] = STATES.index("measured"), False
    more = dataclasses.replace(
        grid, cells=dataclasses.replace(grid.cells, state=state), left_out=left_out
    )
    arrangement = arrange(more, Display())
    assert arrangement.rows.names == list(NAMES)
    # What the filters leave out has a code, a state and words of its own.
    assert arrangement.state[0, 2] == LEFT_OUT
    for display in (Display(), Display(above=0.0)):
        arrangement = arrange(more, display)
        scale = scale_for(STATISTICS["mean"], more.cells.value, None, None)
        at = arrangement.rows.names.index("a"), arrangement.columns.names.index("c")
        assert codes(arrangement, scale)[at] == GAP
    facts = cells_file.facts(arrangement)
    assert facts["states"][LEFT_OUT].startswith("excluded by the filters")
    assert more.states()["not_applicable"] == 1  # b to b
    assert sum(more.states().values()) == 10


def test_labels_and_titles_say_the_direction():
    labels = labels_for(strips_of("b"))
    assert labels.rows == ["from b", "to b"]
    assert labels.rows_title == "direction (endpoint)"
    assert labels.columns_title == "partner (endpoint)"


@pytest.mark.django_db
@pytest.mark.usefixtures("at_noon")
def test_the_page_of_one_site_has_two_strips(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.desy, small_world.ral, 8.0)
    page = client.get("/?window=24h&endpoint=RAL_DATADISK").context
    partners = ["DESY_DATADISK", "DESY_SCRATCHDISK", "Glasgow_DATADISK"]
    assert page["picture"]["rows"]["names"] == ["RAL_DATADISK"] * 2
    assert page["picture"]["columns"]["names"] == partners
    assert page["picture"]["sending"] == 1
    assert page["table"]["corner"] == "partner"
    assert [name for name, _, _ in page["table"]["rows"]] == [
        "from RAL_DATADISK",
        "to RAL_DATADISK",
    ]
    assert [[text for text, *_ in cells] for _, cells, _ in page["table"]["rows"]] == [
        ["–", "–", "5.00"],
        ["8.00", "–", "–"],
    ]
    # The three pairs that have no end there are none of it; RAL to itself is not applicable.
    legend = {entry.state: entry.count for entry in page["legend"]}
    assert (legend["measured"], legend["not_applicable"]) == (2, 1)
