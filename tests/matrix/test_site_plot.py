"""The picture of the links of a site over time."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from plotly import graph_objects

from matrix.answers.site.history import RatioSeries
from matrix.plots.over_time import TimeSpan
from matrix.plots.site import axes_of_rates, axes_of_ratios, figure
from sonar.notation.windows import Window
from tests.matrix.world import HOUR, NOW

START = NOW.replace(minute=0, second=0)
WINDOW = Window(START, START + timedelta(hours=6))
NAN = float("nan")


def series(
    median: Sequence[float], *, failed: Sequence[int] = (0,) * 6, spread: float = 1.0
) -> RatioSeries:
    """Return an hour for each median; NaN for one in which no link has a ratio."""
    values = np.array(median)
    links = np.where(np.isnan(values), 0, 3)
    starts = START.timestamp() + 3600.0 * np.arange(len(values))
    return RatioSeries(
        "1h", starts, values / spread, values, values * spread, links, links * 2, np.array(failed)
    )


def drawn(line: RatioSeries, spans: Sequence[TimeSpan] = (), **more: Any) -> Any:
    return graph_objects.Figure(figure(line, WINDOW, spans, axes_of_ratios([line]), **more))


def trace(picture: Any, name: str) -> Any:
    (found,) = [one for one in picture.data if one.name == name]
    return found


def test_the_median_is_a_step_as_wide_as_its_bucket_with_gaps_where_nothing_was_measured():
    line = trace(drawn(series([1.0, 0.5, NAN, NAN, 0.25, 1.0])), "median link")
    milliseconds = int(START.timestamp() * 1000)
    hours = [None if x is None else (x - milliseconds) / 3.6e6 for x in line.x]
    assert hours == [0, 1, 1, 2, None, 4, 5, 5, 6, None]
    assert list(line.y) == [1.0, 1.0, 0.5, 0.5, None, 0.25, 0.25, 1.0, 1.0, None]
    assert "0.50× the usual rate, median of 3 links" in line.text[2]


def test_usual_is_a_line_in_the_middle_of_a_logarithmic_axis():
    picture = drawn(series([1.0, 0.25, 1.0, 1.0, 1.0, 1.0], spread=1.5))
    low, high = picture.layout.yaxis.range
    assert picture.layout.yaxis.type == "log"
    assert low == pytest.approx(-high)
    assert 10**low < 0.25 / 1.5
    ticks = dict(zip(picture.layout.yaxis.tickvals, picture.layout.yaxis.ticktext, strict=True))
    assert [ticks[at].strip() for at in (1, 0.5, 2)] == ["usual", "0.5×", "2×"]
    (usual,) = [shape for shape in picture.layout.shapes if shape.name == "usual"]
    assert (usual.y0, usual.y1) == (1, 1)


@pytest.mark.parametrize("lowest", [0.3, 0.25, 0.26, 0.217, 0.12, 1 / 60])
def test_no_tick_stands_at_an_end_of_the_axis_where_other_words_are(lowest):
    axis = drawn(series([1.0, lowest, 1.0, 1.0, 1.0, 1.0])).layout.yaxis
    assert 1 in axis.tickvals
    for tick in axis.tickvals:
        from_edge = axis.range[1] - abs(np.log10(tick))
        assert from_edge >= 0.1 * (axis.range[1] - axis.range[0]) - 1e-9


def test_failed_tests_are_bars_from_zero_that_say_of_how_many():
    picture = drawn(series([1.0] * 6, failed=[0, 2, 0, 0, 5, 0]))
    bars = trace(picture, "failed tests")
    assert list(bars.y) == [2, 5]
    assert bars.hovertext[0].startswith("2 of 8 tests failed<br>1h from 20 Nov 13:00 UTC")
    assert picture.layout.yaxis2.range[0] == 0
    assert list(picture.layout.yaxis2.ticktext) == ["5 failed"]
    assert list(drawn(series([1.0] * 6)).layout.yaxis2.ticktext) == ["none failed"]


def test_both_ends_have_the_same_axes_so_that_they_compare():
    near, far = series([1.0] * 6), series([0.1, *[1.0] * 5], failed=[0, 0, 7, 0, 0, 0])
    axes = axes_of_ratios([near, far])
    assert furthest([near, far]) == pytest.approx(10 * 1.15)
    assert axes.failed == 7
    for one in (near, far):
        layout = figure(one, WINDOW, (), axes)["layout"]
        assert layout["yaxis2"]["range"] == [0, pytest.approx(7.35)]
    assert furthest([near]) == pytest.approx(2.5)
    assert axes_of_ratios([near]).failed == 0
    assert furthest([series([1e-9, *[1.0] * 5])]) == pytest.approx(64)


def furthest(ends: Sequence[RatioSeries]) -> float:
    """Return how far from usual the axis goes, either way."""
    low, high = axes_of_ratios(ends).rates["range"]
    assert low == -high
    return 10.0**high


def test_before_anything_is_usual_rates_begin_at_zero_and_have_their_unit():
    line = series([2.0, 4.0, NAN, 3.0, 3.0, 3.0], failed=[0, 0, 1, 0, 0, 0], spread=1.5)
    picture = graph_objects.Figure(figure(line, WINDOW, (), axes_of_rates([line])))
    assert picture.layout.yaxis.range == (0, pytest.approx(4 * 1.5 * 1.15))
    assert picture.layout.yaxis.ticksuffix == " MB/s"
    assert not picture.layout.shapes, "nothing is usual"
    assert "4.00 MB/s, median of 3 links" in trace(picture, "median link").text[2]


def test_notes_and_downtimes_are_in_the_picture_with_their_words():
    spans = [
        TimeSpan("note", START + HOUR, None, "note: <b>firmware</b>"),
        TimeSpan("downtime", START + 3 * HOUR, START + 4 * HOUR, "downtime, RAL: disks"),
    ]
    layout = drawn(series([1.0] * 6), spans).layout
    names = {shape.name for shape in layout.shapes}
    assert names == {"note", "downtime", "usual"}
    texts = [one.text for one in layout.annotations]
    assert "note: &lt;b&gt;firmware&lt;/b&gt;" in texts
    assert "downtime, RAL: disks" in texts


def test_slower_links_colour_the_line():
    colours = {
        is_slower: trace(drawn(series([1.0] * 6), is_slower=is_slower), "median link").line.color
        for is_slower in (False, True)
    }
    assert colours == {False: "var(--there)", True: "var(--slower)"}
