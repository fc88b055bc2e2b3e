"""The figure: valid for Plotly, every cell in the look of its state, readable numbers."""

from __future__ import annotations

import base64
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from django.http import QueryDict
from hypothesis import example, given
from hypothesis import strategies as st
from plotly.colors import sample_colorscale, unlabel_rgb

from matrix import grid, hover, plots
from matrix.cells import STATES
from matrix.forms import STATS
from matrix.labels import cut
from matrix.layout import COLORSCALE
from matrix.query import MatrixQuery
from matrix.scales import scale_for
from sonar.models import Downtime
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db
CSS = Path(__file__).parents[2] / "static" / "css" / "sonar.css"


def drawn(text: str = "") -> dict[str, Any]:
    return plots.figure(grid.build(MatrixQuery.from_params(QueryDict(text)), NOW))


def unpacked(array: dict[str, str]) -> np.ndarray:
    shape = [int(size) for size in array["shape"].split(", ")]
    return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).reshape(shape)


def every_state(small_world: World) -> None:
    """Make one cell of each state: from RAL to Glasgow, DESY and the scratch disk and back."""
    ral, glasgow, desy, scratch = small_world.endpoints
    transfer(ral, glasgow, 12.0)
    transfer(glasgow, ral, None)
    transfer(desy, ral, 3.0, ago=5 * HOUR)
    Downtime.objects.create(
        endpoint=scratch, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="disk"
    )


@pytest.mark.parametrize("stat", STATS)
def test_the_figure_of_every_statistic_is_valid_for_plotly(small_world: World, stat: str) -> None:
    every_state(small_world)
    transfer(small_world.desy, small_world.scratch, 70.0)
    figure = go.Figure(drawn(f"stat={stat}"))
    assert figure.layout.xaxis.title.text.startswith("to (destination endpoint")
    assert figure.layout.yaxis.title.text.startswith("from (source endpoint")


def test_the_figure_of_bare_and_of_grouped_cells_is_valid_too(small_world: World) -> None:
    go.Figure(drawn())
    transfer(small_world.ral, small_world.glasgow, 12.0)
    go.Figure(drawn("rows=tier&columns=country"))


def test_each_state_has_a_look_of_its_own(small_world: World) -> None:
    every_state(small_world)
    looks: dict[str, set[str]] = {state: set() for state in STATES}
    answer = grid.build(MatrixQuery(), NOW)
    figure = plots.figure(answer)
    filled, coloured, veil = figure["data"][:3]
    for row, column in np.ndindex(answer.cells.state.shape):
        state = STATES[answer.cells.state[row, column]]
        look = f"{unpacked(filled['z'])[row, column]} "
        look += f"coloured={not np.isnan(unpacked(coloured['z'])[row, column])} "
        look += f"veiled={not np.isnan(unpacked(veil['z'])[row, column])}"
        looks[state].add(look)
    assert all(len(some) == 1 for some in looks.values()), looks
    assert len(set.union(*looks.values())) == len(STATES)
    marked = {
        trace["name"]: trace["marker"]["symbol"]
        for trace in figure["data"]
        if trace["type"] == "scatter"
    }
    assert marked == {
        "failed": "x-thin-open",
        "stale": "hourglass-open",
        "untested": "circle",
        "down": "line-ew-open",
    }


def test_the_colour_of_a_rate_is_its_logarithm_and_the_bar_says_mb_per_second(
    small_world: World,
) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0)
    transfer(small_world.glasgow, small_world.ral, 100.0)
    figure = drawn()
    z = unpacked(next(trace for trace in figure["data"] if trace.get("name") == "cells")["z"])
    assert sorted(z[~np.isnan(z)]) == pytest.approx([0.0, 2.0])
    bar = figure["layout"]["coloraxis"]["colorbar"]
    assert bar["title"]["text"] == "MB/s"
    assert dict(zip(bar["ticktext"], bar["tickvals"], strict=True))["10.0"] == pytest.approx(1.0)


@example(values=[5e-324], stat="mean")
@example(values=[1.0, 1e-15], stat="std")
@given(
    values=st.lists(st.floats(0, 1e9), max_size=20),
    stat=st.sampled_from(STATS),
)
def test_every_value_stands_on_its_scale(values: list[float], stat: str) -> None:
    array = np.array([*values, np.nan])
    array = np.minimum(array, 100) if stat == "success" else array
    scale = scale_for(stat, array)
    positions = scale.positions(array)
    assert scale.low < scale.high
    assert np.isnan(positions[-1])
    slack = 1e-9 * max(1.0, abs(scale.high))
    assert all(scale.low - slack <= place <= scale.high + slack for place in positions[:-1])
    assert all(scale.low - slack <= tick <= scale.high + slack for tick in scale.ticks)
    assert len(scale.ticks) <= 16


def test_numbers_are_readable_on_every_colour_of_the_scale() -> None:
    for share in np.linspace(0, 1, 201):
        rgb = unlabel_rgb(sample_colorscale(COLORSCALE, [float(share)])[0])
        below = luminance([part / 255 for part in rgb])
        ink = 1.0 if share <= plots.DARK_UP_TO else 0.0
        assert contrast(ink, below) >= 4.5, share


def test_text_of_both_themes_has_the_contrast_of_wcag_aa() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", CSS.read_text(), re.DOTALL)
    for theme in (variables(light), variables(light) | variables(dark)):
        for ink, paper in [
            ("ink", "surface"),
            ("ink", "raised"),
            ("muted", "surface"),
            ("accent", "surface"),
            ("on-accent", "accent"),
            ("on-warning", "warning"),
            ("failed-mark", "failed"),
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


def test_every_colour_in_the_figure_is_a_variable_of_the_style_sheet(small_world: World) -> None:
    every_state(small_world)
    used = set(re.findall(r"var\(--([\w-]+)\)", str(drawn())))
    assert used >= {"ink", "surface", "failed", "down", "untested", "veil", "not-applicable"}
    assert used <= set(re.findall(r"--([\w-]+):", CSS.read_text()))


def written(figure: dict[str, Any]) -> list[str]:
    """Return every number that stands in a cell or an average."""
    rows = [row for trace in figure["data"] for row in trace.get("text", [])]
    return sorted(text for row in rows for text in row if text)


def test_numbers_have_three_significant_digits_and_no_unit(small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, 12.345)
    transfer(small_world.glasgow, small_world.ral, 0.0456)
    assert written(drawn())[:3] == ["0.0456"] * 3
    assert written(drawn())[3:] == ["12.3", "12.3", "12.3", "6.20"]


@pytest.mark.parametrize(
    ("stat", "expected"), [("success", "50.0"), ("count", "2"), ("last", "30 min")]
)
def test_other_statistics_are_written_in_their_own_way(
    small_world: World, stat: str, expected: str
) -> None:
    transfer(small_world.ral, small_world.glasgow, 12.345)
    transfer(small_world.ral, small_world.glasgow, None)
    assert set(written(drawn(f"stat={stat}"))) == {expected}


def test_the_published_averages_stand_in_the_strips(db: None) -> None:
    table = world.make_published()
    assert f"{table.average:.2f}" in written(drawn())


@pytest.mark.parametrize("columns", [25, 26])
def test_numbers_are_written_while_they_fit(columns: int) -> None:
    values = np.ones((2, columns))
    assert bool(plots.written(values, "mean", "#000000", {})) == (columns == 25)


def test_a_label_that_all_endpoints_share_is_said_once(db: None) -> None:
    world.make_published()
    layout = drawn()["layout"]
    assert layout["xaxis"]["title"]["text"] == "to (destination endpoint, all DATADISK)"
    assert "TRIUMF-LCG2" in layout["xaxis"]["ticktext"]
    assert "UKI-NORTHGRID-LANCS-HEP" in layout["yaxis"]["ticktext"]


def test_long_names_are_cut_in_the_middle() -> None:
    assert cut("UKI-NORTHGRID-MAN-HEP_DATADISK", 26) == "UKI-NORTHGRID-MAN…DATADISK"
    assert cut("UKI-LT2-QMUL", 26) == "UKI-LT2-QMUL"


@given(st.text(min_size=1), st.integers(4, 40))
def test_a_cut_name_is_never_longer_than_allowed(name: str, longest: int) -> None:
    assert len(cut(name, longest)) <= longest


def test_names_cannot_become_html_in_the_figure(small_world: World) -> None:
    small_world.ral.site.cloud = "<b>&<a href='x'>"
    small_world.ral.site.save()
    small_world.ral.save()
    ticks = drawn("rows=cloud&columns=cloud")["layout"]["xaxis"]["ticktext"]
    assert not [text for text in ticks if "<" in text or "'" in text]


def test_the_hover_arrays_hold_what_the_grid_holds(small_world: World) -> None:
    every_state(small_world)
    answer = grid.build(MatrixQuery(), NOW)
    said = hover.cells(answer)
    assert len(said["states"]) == len(STATES)
    assert not said["past"]
    for name in ("value", "mean", "std", "ok", "failed", "last", "state"):
        found = unpacked(said[name]).astype(float)
        np.testing.assert_allclose(found, getattr(answer.cells, name).astype(float), rtol=1e-6)


def test_ages_in_a_window_that_is_over_count_from_its_end(small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=timedelta(hours=3))
    query = MatrixQuery.from_params(
        QueryDict("stat=last&from=2026-11-20T00:00:00Z&to=2026-11-20T10:00:30Z")
    )
    answer = grid.build(query, NOW)
    assert np.nanmax(answer.cells.value) == 3600
    assert hover.cells(answer)["past"]
