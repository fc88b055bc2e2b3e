"""The figure: valid for Plotly, every cell in the look of its state, readable numbers."""

import base64
import dataclasses
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from django.http import QueryDict
from hypothesis import example, given
from hypothesis import strategies as st
from plotly.colors import sample_colorscale, unlabel_rgb

from matrix.answers.matrix import grid
from matrix.answers.words.names import cut, shortened
from matrix.plots import marks, palettes
from matrix.plots import matrix as plots
from matrix.plots.arrangement import Arrangement, arrange
from matrix.plots.display import Display
from matrix.plots.matrix import labels_for
from matrix.plots.scales import scale_for
from matrix.query.catalogue import STATISTICS, STATS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.standing import FASTER, SLOWER
from matrix.statistics.cells.states import STATES
from sonar.models import Downtime
from tests.conditions import TYPES, stored_condition
from tests.matrix import world
from tests.matrix.grids import grid_of, group, square
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db
CSS = Path(__file__).parents[2] / "static" / "css" / "sonar.css"


def answered(text: str = "", display: Display | None = None) -> Arrangement:
    query = MatrixQuery.from_params(QueryDict(text))
    return arrange(grid.build(query, NOW), display or Display())


def drawn(text: str = "", **display: Any) -> dict[str, Any]:
    return plots.figure(answered(text, Display(**display)))


def sketched(**display: Any) -> dict[str, Any]:
    """Return the figure of three places without the database."""
    return plots.figure(arrange(square(), Display(**display)))


def of_values(values: list[Any], states: Sequence[str] = (), **display: Any) -> dict[str, Any]:
    """Return the figure of a square of values."""
    places = [group(f"place{number}") for number in range(len(values))]
    return plots.figure(arrange(grid_of(values, places, places, states), Display(**display)))


def unpacked(array: dict[str, str]) -> np.ndarray:
    shape = [int(size) for size in array["shape"].split(", ")]
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def codes(figure: dict[str, Any]) -> np.ndarray:
    return unpacked(cells_of(figure)["z"])


def cells_of(figure: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in figure["data"] if one.get("name") == "cells")
    return found


def colour_of(figure: dict[str, Any], code: int) -> str:
    """Return the colour of the stop that a code stands on."""
    place = code / plots.GAP
    return next(str(name) for at, name in cells_of(figure)["colorscale"] if at == place)


def every_state(small_world: World) -> None:
    """Make one cell of each state: from RAL to Glasgow, DESY and the scratch disk and back."""
    ral, glasgow, desy, scratch = small_world.endpoints
    transfer(ral, glasgow, 12.0)
    transfer(glasgow, ral, None)
    transfer(desy, ral, 3.0, ago=5 * HOUR)
    for number in range(3):
        transfer(desy, glasgow, None, ago=number * HOUR)
    stored_condition(TYPES.FAILING, source=desy, destination=glasgow)
    Downtime.objects.create(
        endpoint=scratch, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="disk"
    )


@pytest.mark.parametrize("stat", STATS)
def test_the_figure_of_every_statistic_is_valid_for_plotly(small_world, stat):
    every_state(small_world)
    transfer(small_world.desy, small_world.scratch, 70.0)
    figure = go.Figure(valid(drawn(f"stat={stat}")))
    assert figure.layout.xaxis.title.text.startswith("to (destination endpoint")
    assert figure.layout.yaxis.title.text.startswith("from (source endpoint")


def valid(figure: dict[str, Any]) -> dict[str, Any]:
    """Put colours in the place of names, as static/js/colours.js does."""
    text = repr(figure)
    for name in ("var", "veil"):  # what is veiled may be a variable
        text = re.sub(rf"{name}\([^)]*\)", "#123456", text)
    found: dict[str, Any] = eval(text)  # what repr has just written
    return found


@pytest.mark.parametrize(
    "display",
    [
        {"order": "cloud", "transpose": True, "palette": "rdylgn"},
        {"only": ("failed",), "low": 2.0},
        {"above": 1.0, "high": 5.0, "order": "-average"},
    ],
)
def test_the_figure_of_every_display_is_valid_too(small_world, display):
    every_state(small_world)
    go.Figure(valid(drawn(**display)))
    go.Figure(valid(drawn("rows=tier&columns=country", **display)))


def test_the_figure_of_bare_and_of_grouped_cells_is_valid_too(small_world):
    go.Figure(valid(drawn()))
    transfer(small_world.ral, small_world.glasgow, 12.0)
    go.Figure(valid(drawn("rows=tier&columns=country")))


def test_each_state_has_a_look_of_its_own(small_world):
    every_state(small_world)
    arrangement = answered()
    figure = plots.figure(arrangement)
    looks: dict[str, set[int]] = {state: set() for state in STATES}
    for state, code in zip(arrangement.state.ravel(), codes(figure).ravel(), strict=True):
        # The measured and the stale cell have a colour of their value.
        looks[STATES[state]].add(code // plots.STEPS if code < 2 * plots.STEPS else code)
    assert all(len(some) == 1 for some in looks.values()), looks
    assert len(set.union(*looks.values())) == len(STATES)
    assert (looks["measured"], looks["stale"]) == ({0}, {1})
    assert {
        state: colour_of(figure, *looks[state]) for state in STATES[1:] if state != "stale"
    } == {
        "failing": "var(--failed)",
        "failed": "var(--failed-few)",
        "untested": "var(--untested)",
        "down": "var(--down)",
        "not_applicable": "var(--not-applicable)",
    }
    marked = {
        trace["name"]: trace["marker"]["symbol"] for trace in figure["data"] if "marker" in trace
    }
    assert set(outlined(figure)) == {"failing"}
    assert marked == {
        "failed": "x-thin-open",
        "stale": "hourglass-open",
        "untested": "circle",
        "down": "line-ew-open",
    }


def test_the_colour_of_a_rate_is_its_logarithm_and_the_bar_says_mb_per_second():
    figure = of_values([[1, 10], [None, 100]])
    assert codes(figure)[[0, 0, 1], [0, 1, 1]].tolist() == [0, 61, 122]
    axis = figure["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (0, 2)
    # The tick at its very end has a line of its own.
    assert axis["colorbar"]["title"]["text"] == "MB/s<br>\u200b \u200b"
    bar = axis["colorbar"]
    assert dict(zip(bar["ticktext"], bar["tickvals"], strict=True))["10.0"] == pytest.approx(1.0)


def test_an_hourglass_is_in_a_corner_and_covers_no_digit():
    figure = of_values([[1, 10], [1, 10]], ["ms", "mm"])
    (mark,) = [one for one in figure["data"] if one.get("name") == "stale"]
    assert (mark["x"], mark["y"]) == ([pytest.approx(1.4)], [pytest.approx(0.32)])
    assert mark["marker"]["size"][0] < 6


def test_stale_cells_have_the_same_colours_faded():
    figure = of_values([[1, 10], [1, 10]], ["mm", "ss"])
    found = codes(figure)
    np.testing.assert_array_equal(found[1], found[0] + plots.STEPS)
    first, last = palettes.PALETTES["viridis"][0], palettes.PALETTES["viridis"][-1]
    assert colour_of(figure, found[0, 0]) == first
    assert colour_of(figure, found[1, 0]) == f"veil({first})"
    assert colour_of(figure, found[1, 1]) == f"veil({last})"


def failing_and_others() -> Arrangement:
    """Return b to c failing for 30 hours, a to b slower, a to c faster, c to a partly failing."""
    places = [group("a"), group("b"), group("c")]
    since = NOW.timestamp() - 30 * 3600
    made = grid_of(
        [[None, 10, 20], [30, None, 5], [1, 2, None]],
        places,
        places,
        ["-mm", "m-x", "ms-"],
        level=[[0, SLOWER, FASTER], [0, 0, SLOWER], [0, FASTER, 0]],
        since=[[np.nan, since, since], [np.nan, np.nan, since], [np.nan] * 3],
        ok=[[0, 8, 8], [8, 0, 0], [8, 8, 0]],
        failed=[[0, 0, 0], [0, 0, 8], [2, 0, 0]],
    )
    return arrange(made, Display())


def outlined(figure: dict[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Return the cells (row, column) of each outline."""
    traces = [trace for trace in figure["data"] if trace.get("meta")]
    # What is framed is told from other frames by their colour.
    shapes = {"failing": "frame", **{name: name for name in ("slower", "faster", "partly")}}
    assert all(trace["meta"] == {"outline": shapes[trace["name"]]} for trace in traces)
    return {trace["name"]: list(zip(trace["y"], trace["x"], strict=True)) for trace in traces}


def test_a_failing_cell_says_for_how_long_in_a_frame_of_its_own():
    figure = plots.figure(failing_and_others())
    assert colour_of(figure, codes(figure)[1, 2]) == "var(--failed)"
    assert outlined(figure)["failing"] == [(1, 2)]
    written = next(one for one in figure["data"] if one.get("name") == "durations")
    assert written["text"][1][2] == "<b>30 h</b>"
    assert all_texts(figure).count("<b>30 h</b>") == 1
    # Its mean of the window is on the card and in the table.
    assert "5.00" not in all_texts(figure)


def test_levels_and_partly_failing_cells_have_marks_of_different_shapes():
    marked = outlined(plots.figure(failing_and_others()))
    assert marked == {
        "failing": [(1, 2)],
        "slower": [(0, 1)],
        # A stale cell keeps its level, a failing one has none.
        "faster": [(0, 2), (2, 1)],
        "partly": [(2, 0)],
    }
    go.Figure(valid(plots.figure(failing_and_others())))


def test_where_colours_are_factors_what_is_certain_is_framed():
    arranged = failing_and_others()
    query = arranged.grid.query.replace(stat="vs_usual")
    arranged = arrange(dataclasses.replace(arranged.grid, query=query), Display())
    marks = [trace for trace in plots.figure(arranged)["data"] if trace.get("meta")]
    assert {mark["name"]: mark["meta"]["outline"] for mark in marks} == {
        "failing": "frame", "slower": "frame", "faster": "frame", "partly": "partly",
    }  # fmt: skip
    assert {mark["line"]["color"] for mark in marks if mark["name"] in ("slower", "faster")} == {
        "var(--ink)"
    }


def test_what_is_out_of_focus_has_no_mark():
    focused = arrange(failing_and_others().grid, Display(above=15.0))
    assert set(outlined(plots.figure(focused))) == {"faster"}


def test_a_failing_cell_too_small_for_a_frame_has_a_square_around_it_that_can_be_found():
    figure = of_values(np.ones((61, 61)).tolist(), ["x" + "m" * 60, *["m" * 61] * 60])
    assert colour_of(figure, codes(figure)[0, 0]) == "var(--failed)"
    square = next(one for one in figure["data"] if one.get("name") == "failing")
    assert (square["x"], square["y"], square["marker"]["symbol"]) == ([0], [0], "square-open")
    assert square["marker"]["size"] >= 9


@pytest.mark.parametrize("failed", [1, 30])
def test_however_many_tests_failed_only_what_certainly_fails_is_loud(failed):
    places = [group("a"), group("b")]
    values = [[None, None], [1.0, None]]
    made = grid_of(values, places, places, ["-f", "m-"], failed=[[0, failed], [0, 0]])
    figure = plots.figure(arrange(made, Display()))
    assert colour_of(figure, codes(figure)[0, 1]) == "var(--failed-few)"
    crosses = [one for one in figure["data"] if one.get("name") == "failed"]
    assert [one["marker"]["color"] for one in crosses] == ["var(--failing)"]


def test_a_cell_of_several_links_counts_those_that_are_failing_or_slower():
    places = [group("a"), group("b")]
    made = grid_of([[1.0, 2.0], [3.0, 4.0]], places, places)
    counted = {"failing_links": [[0, 3], [0, 0]], "slower_links": [[0, 1], [12, 0]]}
    cells = dataclasses.replace(made.cells, **{k: np.array(v) for k, v in counted.items()})
    made = dataclasses.replace(made, cells=cells)
    assert not [one for one in plots.figure(arrange(made, Display()))["data"]
                if one.get("name", "").endswith(" links")]  # fmt: skip
    pooled = dataclasses.replace(made, query=made.query.replace(rows="site", columns="site"))
    figure = plots.figure(arrange(pooled, Display()))
    counts = {one["name"]: one["text"] for one in figure["data"] if "textposition" in one}
    assert counts == {"failing links": ["3"], "slower links": ["1", "12"]}
    go.Figure(valid(figure))


def test_the_palettes_are_those_of_plotly():
    from plotly.colors import diverging, sequential, unlabel_rgb

    usual = {name.lower(): colours for name, colours in vars(sequential).items()}
    for name in ("viridis", "cividis", "magma"):
        assert list(palettes.PALETTES[name]) == usual[name]
    assert list(palettes.PALETTES["rdylgn"]) == [
        "#" + "".join(f"{round(part):02x}" for part in unlabel_rgb(colour))
        for colour in diverging.RdYlGn
    ]


def test_the_stops_of_the_codes_rise_from_0_to_1():
    for colours in palettes.PALETTES.values():
        places = [at for at, _ in plots.scale_of_codes(colours)]
        assert places[0] == 0
        assert places[-1] == 1
        assert all(one < other for one, other in pairwise(places))


def test_a_measured_cell_without_its_statistic_says_so():
    figure = of_values([[1, None], [3, 4]], ["mm", "mm"])
    assert codes(figure)[0, 1] == plots.NO_VALUE
    assert all_texts(figure).count("–") == 1


def test_fixed_ends_of_the_colours_say_what_lies_beyond():
    figure = sketched(low=2.0, high=10.0)
    axis = figure["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == pytest.approx((np.log10(2), 1))
    assert axis["colorbar"]["ticktext"][0] == "≤ 2"
    assert axis["colorbar"]["ticktext"][-1] == "≥ 10"
    # From c to a 1.0 is down; 20 is stale and beyond the high end, 10 at it.
    assert codes(figure)[0, 2] == 2 * plots.STEPS - 1
    assert codes(figure)[0, 1] == plots.STEPS - 1
    free = sketched(high=10.0)["layout"]["coloraxis"]
    assert free["cmin"] == 0
    assert not [text for text in free["colorbar"]["ticktext"] if text.startswith("≤")]


def test_colours_run_over_the_middle_of_the_values_and_arrows_say_that_some_lie_beyond():
    values = np.array([0.01, *range(100, 138), 90_000.0])
    scale = scale_for(STATISTICS["mean"], values)
    assert (10**scale.low, 10**scale.high) == pytest.approx((100, 137))
    assert (scale.ticks[scale.low], scale.ticks[scale.high]) == ("▼ 100", "▲ 137")
    assert set(scale.shares(values[[0, -1]])) == {0, 1}
    whole = scale_for(STATISTICS["mean"], values, whole=True)
    assert 10**whole.high == pytest.approx(90_000)
    assert not [text for text in whole.ticks.values() if text.startswith("▲")]


def test_an_end_that_is_fixed_needs_no_arrow():
    values = np.array([0.01, *range(100, 138), 90_000.0])
    scale = scale_for(STATISTICS["mean"], values, 50, 500)
    assert (scale.ticks[scale.low], scale.ticks[scale.high]) == ("≤ 50", "≥ 500")


def test_few_values_have_the_colours_to_themselves_and_shares_the_whole_of_them():
    few = np.geomspace(1, 1000, 19)
    assert scale_for(STATISTICS["mean"], few) == scale_for(STATISTICS["mean"], few, whole=True)
    success = scale_for(STATISTICS["success"], np.array([*[100.0] * 50, 3.0, 7.0, 9.0]))
    assert (success.low, success.high) == (0, 100)


def test_one_end_beyond_all_values_still_leaves_room_for_colours():
    for stat, low, high in [("mean", 1000, None), ("mean", None, 0.001), ("count", 500, None)]:
        scale = scale_for(STATISTICS[stat], np.array([1.0, 5.0]), low, high)
        assert scale.low < scale.high
        assert set(scale.shares(np.array([1.0, 5.0]))) == {0.0 if low else 1.0}


@example(values=[5e-324], stat="mean", low=None, high=None)
@example(values=[1.0, 1e-15], stat="std", low=None, high=None)
@example(values=[], stat="mean", low=1e-9, high=1e12)
@given(
    values=st.lists(st.floats(0, 1e9), max_size=20),
    stat=st.sampled_from(STATS),
    low=st.none() | st.floats(1e-9, 1e3),
    high=st.none() | st.floats(2e3, 1e12),
)
def test_every_value_stands_on_its_scale(values, stat, low, high):
    array = np.array([*values, np.nan])
    array = np.minimum(array, 100) if stat == "success" else array
    scale = scale_for(STATISTICS[stat], array, low, high, whole=True)
    positions = scale.positions(array)
    assert scale.low < scale.high
    assert np.isnan(positions[-1])
    slack = 1e-9 * max(1.0, abs(scale.high))
    if low is None and high is None:
        assert all(scale.low - slack <= place <= scale.high + slack for place in positions[:-1])
    shares = scale.shares(array)
    assert np.isnan(shares[-1])
    assert ((shares[:-1] >= 0) & (shares[:-1] <= 1)).all()
    assert all(scale.low - slack <= tick <= scale.high + slack for tick in scale.ticks)
    assert len(scale.ticks) <= 16


def test_red_is_where_it_is_bad():
    red, green = palettes.PALETTES["rdylgn"][0], palettes.PALETTES["rdylgn"][-1]
    assert palettes.palette_for("rdylgn", STATISTICS["mean"])[0] == red
    assert palettes.palette_for("rdylgn", STATISTICS["last"])[0] == green
    assert palettes.palette_for("cividis", STATISTICS["last"]) == palettes.PALETTES["cividis"]


@pytest.mark.parametrize("name", palettes.PALETTES)
def test_numbers_are_readable_on_every_colour_of_every_palette(name):
    colours = palettes.PALETTES[name]
    whites = palettes.white_reads(colours, 201)
    for share, white in zip(np.linspace(0, 1, 201), whites, strict=True):
        rgb = unlabel_rgb(sample_colorscale(list(map(rgb_text, colours)), [float(share)])[0])
        below = luminance([part / 255 for part in rgb])
        assert contrast(1.0 if white else 0.0, below) >= 4.5, share


def rgb_text(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_numbers_are_readable_on_the_faded_colours_of_stale_cells():
    veil = float(re.findall(r"--veil-share: ([\d.]+);", CSS.read_text())[0])
    for theme in themes():
        for colours in palettes.PALETTES.values():
            for rgb in palettes.ramp(colours, 51):
                faded = [
                    veil * paper + (1 - veil) * part
                    for paper, part in zip(theme["surface"], rgb, strict=True)
                ]
                assert contrast(luminance(theme["ink"]), luminance(faded)) >= 4.5


def themes() -> list[dict[str, list[float]]]:
    light, dark = re.findall(r":root\S* \{(.*?)\n *\}", CSS.read_text(), re.DOTALL)[:2]
    return [variables(light), variables(light) | variables(dark)]


def test_text_of_both_themes_has_the_contrast_of_wcag_aa():
    for theme in themes():
        for ink, paper in [
            ("ink", "surface"),
            ("ink", "raised"),
            ("muted", "surface"),
            ("accent", "surface"),
            ("on-accent", "accent"),
            ("on-warning", "warning"),
            ("failed-mark", "failed"),
            ("ink", "failed-few"),
            ("down-mark", "down"),
        ]:
            measured = contrast(luminance(theme[ink]), luminance(theme[paper]))
            assert measured >= 4.5, f"{ink} on {paper}: {measured:.2f}"


def variables(css: str) -> dict[str, list[float]]:
    found = re.findall(r"--([\w-]+): #(\w{6});", css)
    return {name: [int(text[i : i + 2], 16) / 255 for i in (0, 2, 4)] for name, text in found}


def luminance(rgb: list[float]) -> float:
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_every_colour_in_the_figure_is_a_variable_of_the_style_sheet(small_world):
    every_state(small_world)
    used = set(re.findall(r"var\(--([\w-]+)\)", str(drawn())))
    assert used >= {"ink", "surface", "failed", "down", "untested", "not-applicable", "unfocused"}
    assert used <= set(re.findall(r"--([\w-]+):", CSS.read_text()))


def written(figure: dict[str, Any]) -> list[str]:
    """Return every number that stands in a cell or an average."""
    return [text for text in all_texts(figure) if text != "–"]


def all_texts(figure: dict[str, Any]) -> list[str]:
    rows = [row for trace in figure["data"] for row in trace.get("text", [])]
    return sorted(text for row in rows for text in row if text)


def test_numbers_have_three_significant_digits_and_no_unit(small_world):
    transfer(small_world.ral, small_world.glasgow, 12.345)
    transfer(small_world.glasgow, small_world.ral, 0.0456)
    assert written(drawn())[:3] == ["0.0456"] * 3
    assert written(drawn())[3:] == ["12.3", "12.3", "12.3", "6.20"]


@pytest.mark.parametrize(
    ("stat", "expected"), [("success", "50.0"), ("count", "2"), ("last", "30 min")]
)
def test_other_statistics_are_written_in_their_own_way(small_world, stat, expected):
    transfer(small_world.ral, small_world.glasgow, 12.345)
    transfer(small_world.ral, small_world.glasgow, None)
    assert set(written(drawn(f"stat={stat}"))) == {expected}


def test_the_published_averages_stand_in_the_strips(db):
    table = world.make_published()
    assert f"{table.average:.2f}" in written(drawn())


@pytest.mark.parametrize("columns", [25, 26])
def test_numbers_are_written_while_they_fit(columns):
    values = np.ones((2, columns))
    assert bool(marks.number_texts(values, STATISTICS["mean"], "#000000", {})) == (columns == 25)


def test_dark_colours_carry_white_numbers_and_light_ones_black():
    for palette in ("cividis", "magma"):
        figure = of_values([[1, 100], [1, 100]], palette=palette)
        white = [one for one in figure["data"] if one.get("textfont", {}).get("color") == "#ffffff"]
        said = {text for one in white for row in one["text"] for text in row if text}
        assert "1.00" in said
        assert "100" not in said


def test_nothing_in_the_figure_answers_the_pointer():
    figure = sketched(order="cloud")
    assert {trace["hoverinfo"] for trace in figure["data"]} == {"skip"}
    assert figure["layout"]["hovermode"] is False


def test_what_is_not_in_focus_is_pale_without_number_and_mark():
    figure = sketched(above=5.0, below=10.0)
    # Rows a and B, columns B and c: from a to c is stale, from B to B nothing.
    assert codes(figure)[0, 1] == plots.UNFOCUSED
    assert colour_of(figure, plots.UNFOCUSED) == "var(--unfocused)"
    assert codes(figure)[1, 0] == plots.CODES[STATES.index("not_applicable")]
    cells = [one for one in figure["data"] if "text" in one and not {"xaxis", "yaxis"} & {*one}]
    assert sorted(text for one in cells for row in one["text"] for text in row if text) == [
        "10.0",
        "5.00",
    ]
    assert not [one for one in figure["data"] if one["type"] == "scatter"]
    # The means stay those of the whole.
    assert written(figure).count("15.0") == 1


def test_gaps_are_lines_of_the_surface_and_what_begins_behind_them_is_named_in_bold():
    figure = sketched(order="cloud")
    found = codes(figure)
    assert found.shape == (4, 4)
    assert (found[1] == plots.GAP).all()
    assert (found[:, 1] == plots.GAP).all()
    assert not (found[np.ix_([0, 2, 3], [0, 2, 3])] == plots.GAP).any()
    assert colour_of(figure, plots.GAP) == "var(--surface)"
    assert figure["layout"]["yaxis"]["ticktext"] == ["<b>DE</b> B", "", "<b>UK</b> a", "c"]
    assert figure["layout"]["xaxis"]["ticktext"] == ["B <b>DE</b>", "", "a <b>UK</b>", "c"]
    assert figure["layout"]["yaxis"]["tickvals"] == [0, 1, 2, 3]
    marked = next(one for one in figure["data"] if one.get("name") == "failed")
    assert (marked["x"], marked["y"]) == ([2], [0])
    strip = next(one for one in figure["data"] if one.get("xaxis") == "x2")
    assert np.isnan(unpacked(strip["z"])[1, 0])


def test_a_mean_of_nothing_is_a_dash_and_a_gap_is_none():
    places = [group("a", "UK"), group("b", "DE"), group("c", "DE")]
    values = [[None, 1.0, 2.0], [None, None, 3.0], [None, None, None]]
    figure = plots.figure(arrange(grid_of(values, places, places), Display(order="cloud")))
    said = {}
    for one in figure["data"]:
        for row, texts in enumerate(one.get("text", [])):
            for column, text in enumerate(texts):
                if text and {"xaxis", "yaxis"} & {*one}:
                    said[one.get("xaxis", "x"), one.get("yaxis", "y"), row, column] = text
    # Rows and columns are b c, a gap, a.
    means = {0: "3.00", 1: "–", 3: "1.50"}
    assert {row: text for (x, y, row, _), text in said.items() if (x, y) == ("x2", "y")} == means
    means = {0: "1.00", 1: "2.50", 3: "–"}
    assert {at: text for (x, y, _, at), text in said.items() if (x, y) == ("x", "y2")} == means


def test_transposed_the_titles_say_so():
    layout = sketched(transpose=True)["layout"]
    assert layout["yaxis"]["title"]["text"] == "to (destination endpoint)"
    assert layout["xaxis"]["title"]["text"] == "from (source endpoint)"
    np.testing.assert_array_equal(codes(sketched(transpose=True)), codes(sketched()).T)


def test_a_zoom_is_kept_as_long_as_the_same_rows_and_columns_are_drawn():
    meta = [sketched(**one)["layout"]["meta"] for one in ({}, {"palette": "magma"})]
    assert meta[0] == meta[1]
    assert sketched(order="average")["layout"]["meta"] != meta[0]


def test_a_label_that_all_endpoints_share_is_said_once(db):
    world.make_published()
    layout = drawn()["layout"]
    parts = {"_DATADISK", "UKI", "HEP", "LCG2", "NORTHGRID", "SOUTHGRID"}
    assert set(labels_for(answered()).left_out) == parts
    assert layout["xaxis"]["title"]["text"] == "to (destination endpoint)"
    assert layout["yaxis"]["title"]["text"] == "from (source endpoint)"
    # T1 stands in two names only, SCOTGRID in one.
    assert {"TRIUMF", "INFN-T1", "BNL-OSG2"} <= set(layout["xaxis"]["ticktext"])
    assert {"LANCS", "SCOTGRID-GLASGOW", "RALPP"} <= set(layout["yaxis"]["ticktext"])


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        # Nothing but numbers would be left, or another's name.
        ("ep-1 ep-2 ep-3 ep-4", "ep-1 ep-2 ep-3 ep-4"),
        ("UK-A-X UK-A-Y UK-A", "X Y UK-A"),
        ("UK-A-LCG UK-A DE-B-LCG UK-C-LCG", "UK-A-LCG UK-A DE-B C"),
        ("A-T2 B-T2", "A-T2 B-T2"),
        ("RAL", "RAL"),
    ],
)
def test_a_label_keeps_what_tells_it_from_others(names, labels):
    texts, _ = shortened([group(name) for name in names.split()], "")
    assert list(texts.values()) == labels.split()
    assert len(set(texts.values())) == len(texts)


@given(st.sets(st.from_regex(r"\A[AB1]{1,2}(-[AB1]{1,2}){0,3}\Z"), min_size=1, max_size=12))
def test_no_two_names_have_one_label(names):
    texts, _ = shortened([group(name) for name in sorted(names)], "")
    assert len(set(texts.values())) == len(names)


def test_long_names_are_cut_in_the_middle():
    assert cut("UKI-NORTHGRID-MAN-HEP_DATADISK", 26) == "UKI-NORTHGRID-MAN…DATADISK"
    assert cut("UKI-LT2-QMUL", 26) == "UKI-LT2-QMUL"


@given(st.text(min_size=1), st.integers(4, 40))
def test_a_cut_name_is_never_longer_than_allowed(name, longest):
    assert len(cut(name, longest)) <= longest


def test_names_cannot_become_html_in_the_figure(small_world):
    small_world.ral.site.cloud = "<b>&<a href='x'>"
    small_world.ral.site.save()
    small_world.ral.save()
    ticks = drawn("rows=cloud&columns=cloud")["layout"]["xaxis"]["ticktext"]
    assert not [text for text in ticks if "<" in text or "'" in text]
    titled = [text for text in drawn(order="cloud")["layout"]["xaxis"]["ticktext"] if "<b>" in text]
    assert [
        text
        for text in titled
        if text.endswith("<b>&lt;b&gt;&amp;&lt;a href=&#x27;x&#x27;&gt;</b>")
    ]


def test_many_cells_are_one_small_trace():
    figure = of_values(np.arange(90_000.0).reshape(300, 300).tolist())
    assert cells_of(figure)["z"]["dtype"] == "u1"
    # The cells, three strips, and the number of the grand mean.
    assert len(figure["data"]) == 5
