"""What stands out in a matrix, and in which words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from matrix.answers.conditions.reading import Judgement, read_open
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.highlights import MOST_ITEMS, Highlight, Highlights
from matrix.query.matrix_query import MatrixQuery
from sonar.notation.windows import Window
from tests.conditions import TYPES, stored_condition
from tests.matrix.grids import grid_of, group, square
from tests.matrix.world import HOUR, NOW

QUIET = Judgement([], None, is_late=False, moment=NOW)
PLACES = [group("a"), group("b")]


def found(grid: Grid, judgement: Judgement = QUIET) -> dict[str, Highlight]:
    more = {kind: f"/?only={kind}" for kind in ("failed", "slower")}
    finder = Highlights(grid, judgement, lambda row, column: f"/{row}/{column}", more)
    return {one.kind: one for one in finder.all()}


def said(one: Highlight) -> list[tuple[str, str]]:
    return [(item.text, item.why) for item in one.items]


def asking(stat: str, values: list[list[float | None]], **arrays: list[list[int]]) -> Grid:
    return grid_of(values, PLACES, PLACES, query=MatrixQuery(stat=stat), **arrays)


def test_each_kind_is_found_with_its_reason():
    stands_out = found(square())
    assert list(stands_out) == ["worst", "stale", "failed"]
    assert said(stands_out["worst"]) == [("from B to c", "5.00 MB/s, mean of 3 tests")]
    assert said(stands_out["failed"]) == [("from B to a", "0 ok, 0 failed")]
    assert said(stands_out["stale"]) == [("from a to c", "last result just now")]
    assert stands_out["worst"].items[0].url == "/1/2"
    assert [one.more for one in stands_out.values()] == ["", "", "/?only=failed"]
    assert stands_out["worst"].items[0].title == "last result 20 Nov 12:00:30 UTC"


def test_failing_cells_come_by_failures_and_stale_ones_by_age():
    failing = grid_of([[None] * 2] * 2, PLACES, PLACES, ["-f", "f-"], failed=[[0, 3], [12, 0]])
    expected = [("from b to a", "0 ok, 12 failed"), ("from a to b", "0 ok, 3 failed")]
    assert said(found(failing)["failed"]) == expected
    stale = grid_of(
        [[None, 1], [1, None]], PLACES, PLACES, ["-s", "s-"], age=[[0, 9000], [300000, 0]]
    )
    expected = [("from b to a", "last result 3 d ago"), ("from a to b", "last result 2 h ago")]
    assert said(found(stale)["stale"]) == expected


def test_ages_in_a_window_that_is_over_are_said_to_be_from_its_end():
    stale = grid_of(
        [[None, 1], [None, None]], PLACES, PLACES, ["-s", "--"], age=[[0, 9000], [0, 0]]
    )
    past = replace(stale, window=Window(NOW - timedelta(days=1), NOW))
    assert said(found(past)["stale"]) == [
        ("from a to b", "last result 2 h before the end of the time range")
    ]


def test_of_two_directions_the_slow_one_is_named_with_both_rates():
    grid = asking("mean", [[None, 1.1], [12.0, None]])
    assert said(found(grid)["asymmetric"]) == [
        ("from a to b", "1.10 MB/s, 0.092× of the reverse direction (12.0 MB/s)")
    ]


def test_the_most_asymmetric_is_the_lowest_part_of_its_reverse():
    values = [[None, 1.0, 5.0], [2.0, None, 0.0], [50.0, 4.0, None]]
    places = [group("a"), group("b"), group("c")]
    asymmetric = found(grid_of(values, places, places))["asymmetric"]
    expected = [("from b to c", "0×"), ("from a to c", "0.10×"), ("from a to b", "0.50×")]
    assert [(item.text, item.figure) for item in asymmetric.items] == expected


@pytest.mark.parametrize("back", [1.4, None])
def test_directions_that_differ_little_or_cannot_be_compared_are_not_asymmetric(back):
    assert "asymmetric" not in found(asking("mean", [[None, 1.0], [back, None]]))


def test_stale_rates_are_not_compared():
    grid = grid_of([[None, 1], [100, None]], PLACES, PLACES, ["-m", "s-"])
    assert "asymmetric" not in found(grid)


def test_directions_are_compared_by_name_where_rows_and_columns_differ():
    rows, columns = [group("b"), group("a")], [group("a"), group("b"), group("c")]
    grid = grid_of([[2.0, None, 9.0], [None, 20.0, 9.0]], rows, columns)
    assert said(found(grid)["asymmetric"]) == [
        ("from b to a", "2.00 MB/s, 0.10× of the reverse direction (20.0 MB/s)")
    ]


def test_groups_of_different_kinds_have_no_other_direction():
    query = MatrixQuery(rows="site", columns="cloud")
    assert "asymmetric" not in found(grid_of([[1, 2], [30, 1]], PLACES, PLACES, query=query))


@pytest.mark.parametrize(
    ("stat", "values", "expected"),
    [
        (
            "median",
            [[None, 3.0], [2.5, None]],
            [("from b to a", "2.50 MB/s, median of 3 tests")] * 1,
        ),
        (
            "success",
            [[None, 75.0], [100.0, None]],
            [("from a to b", "75.0 % succeeded, 3 ok, 0 failed")],
        ),
        ("last", [[None, 60.0], [None, None]], [("from a to b", "last result 1 h ago")]),
        ("now", [[None, 3.0], [2.5, None]], [("from b to a", "2.50 MB/s now")]),
        (
            "vs_predicted",
            [[None, 1.1], [0.25, None]],
            [("from b to a", "0.25× the predicted rate, 3 tests")],
        ),
        ("vs_usual", [[None, 3.0], [0.5, None]], None),
        ("count", [[None, 3.0], [2.0, None]], None),
        ("std", [[None, 3.0], [2.0, None]], None),
    ],
)
def test_the_worst_of_each_statistic_makes_sense(stat, values, expected):
    worst = found(asking(stat, values, age=[[0, 3600], [60, 0]])).get("worst")
    assert (worst and said(worst)[:1]) == expected


def test_the_oldest_comes_first_where_ages_are_asked():
    worst = found(asking("last", [[None, 60.0], [900.0, None]], age=[[0, 60], [900, 0]]))["worst"]
    assert worst.title == "oldest"
    assert [item.source for item in worst.items] == ["b"]


@pytest.mark.parametrize(("values", "count"), [([5.0, 9.0], 1), ([5.0, None], 1), ([1.0, 1.0], 1)])
def test_the_better_half_is_never_among_the_worst(values, count):
    assert found(asking("mean", [[None, values[0]], [values[1], None]]))["worst"].count == count


def test_at_most_ten_are_named():
    places = [group(f"p{number:02d}") for number in range(12)]
    values = [[float(1 + row * 12 + column) for column in range(12)] for row in range(12)]
    worst = found(grid_of(values, places, places))["worst"]
    assert [item.why.split()[0] for item in worst.items] == [
        *("1.00", "2.00", "3.00", "4.00", "5.00", "6.00", "7.00", "8.00", "9.00", "10.0")
    ]
    assert len(worst.items) == worst.count == MOST_ITEMS
    failing = found(grid_of(values, places, places, ["f" * 12] * 12))["failed"]
    assert (len(failing.items), failing.count) == (MOST_ITEMS, 144)


def test_nothing_stands_out_of_nothing():
    assert found(grid_of([], [], [])) == {}
    assert found(asking("mean", [[None, None], [None, None]])) == {}


@pytest.mark.django_db
def test_conditions_come_first_each_in_one_row_with_its_figures(small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    stored_condition(TYPES.FAILING, source=ral, destination=glasgow, since=30 * HOUR)
    stored_condition(TYPES.FAILING, destination=scratch, since=2 * HOUR, sizes=("small", "large"))
    stored_condition(TYPES.SLOW, source=glasgow, since=5 * HOUR, of_links=4)
    stored_condition(TYPES.SLOW, source=desy, destination=ral, confirmed=False)
    stored_condition(TYPES.SILENT, source=desy, destination=glasgow, confirmed=False)
    stands_out = found(square(), read_open(NOW))
    kinds = ["failing", "slower", "unconfirmed", "worst", "stale", "failed"]
    assert list(stands_out) == kinds
    rows = {
        kind: [(item.text, item.figure, item.why) for item in stands_out[kind].items]
        for kind in kinds[:3]
    }
    assert rows == {
        # What most links show comes first.
        "failing": [
            (
                "DESY_SCRATCHDISK as destination",
                "2 h",
                "on 3 of 3 links, 60 of 60 tests failed, since 20 Nov 10:00 UTC",
            ),
            (
                "from RAL_DATADISK to Glasgow_DATADISK",
                "30 h",
                "10 of 10 tests failed, since 19 Nov 06:00 UTC",
            ),
        ],
        "slower": [
            (
                "Glasgow_DATADISK as source",
                "0.40×",
                "on 3 of 4 links, 30 tests, since 20 Nov 07:00 UTC",
            )
        ],
        "unconfirmed": [
            (
                "from DESY_DATADISK to Glasgow_DATADISK",
                "silent",
                "since 20 Nov 06:00 UTC",
            ),
            ("from DESY_DATADISK to RAL_DATADISK", "0.40×", "10 tests, since 20 Nov 06:00 UTC"),
        ],
    }
    slow = stands_out["slower"]
    assert (slow.more, slow.items[0].url) == ("/?only=slower", "/sites/Glasgow/")
    assert slow.items[0].title == (
        "Glasgow_DATADISK has been slow as source since 20 Nov 07:00 UTC, "
        "at 0.40× (0.35–0.46) of the baseline, with large files, on 3 of 4 links, 30 tests."
    )
