"""The picture of a row or column of the matrix of sites."""

from __future__ import annotations

import math
from typing import Any

import pytest
from plotly import graph_objects

from matrix.answers.site.reports import ReportCell
from matrix.plots.site import figure, height_rem, rates_between, ticks_between

NAN = math.nan


def cell(partner: str, mean: float = NAN, state: str = "measured", std: float = NAN) -> ReportCell:
    return ReportCell("RAL", partner, mean, std, int(mean > 0), int(state == "failed"), 0.0, state)


def drawn(cells: list[ReportCell], mean: float = NAN) -> Any:
    return graph_objects.Figure(figure(cells, "source", "RAL", mean, rates_between(cells)))


def test_the_fastest_is_first_and_what_has_no_rate_is_last() -> None:
    cells = [cell("slow", 1.0), cell("never", state="untested"), cell("fast", 9.0)]
    found = drawn(cells)
    assert list(found.layout.yaxis.ticktext) == ["fast", "slow", "never"]
    assert [(trace.name, list(trace.y)) for trace in found.data] == [
        ("measured", [0, 1]),
        ("untested", [2]),
    ]
    assert found.layout.yaxis.range[0] > found.layout.yaxis.range[1]  # 0 is at the top


def test_states_differ_without_colour_and_are_named_where_no_rate_stands() -> None:
    cells = [
        cell("old", 5.0, "stale"),
        cell("broken", state="failed"),
        cell("never", state="untested"),
        cell("off", state="down"),
        cell("off-too", 3.0, "down"),
    ]
    marks = {trace.name: trace for trace in drawn(cells).data if trace.type == "scatter"}
    assert len({trace.marker.symbol for trace in marks.values()}) == 4
    assert list(marks["failed"].text) == [" failed"]
    assert list(marks["stale"].text) == [""]
    assert list(marks["down"].text) == ["", " down"]


def test_names_become_no_markup() -> None:
    found = drawn([cell("<b>bold</b>", 5.0)])
    assert found.layout.yaxis.ticktext[0] == "&lt;b&gt;bold&lt;/b&gt;"
    assert "to &lt;b&gt;bold&lt;/b&gt;<br>mean 5.00 MB/s" in found.data[0].hovertext[0]


def test_a_mean_is_said_with_its_spread_if_it_has_one() -> None:
    found = drawn([cell("one", 5.0), cell("two", 4.0, std=1.5)])
    assert "mean 5.00 MB/s" in found.data[0].hovertext[0]
    assert "mean 4.00 ± 1.50 MB/s" in found.data[0].hovertext[1]


def test_the_mean_of_all_is_a_line_behind_the_bars() -> None:
    found = drawn([cell("one", 5.0)], mean=5.0)
    (line,) = found.layout.shapes
    assert (line.x0, line.x1, line.layer) == (5.0, 5.0, "below")
    assert found.layout.annotations[0].text == "mean 5.00"
    assert found.layout.annotations[0].x == pytest.approx(math.log10(5))
    assert not drawn([cell("one", state="failed")]).layout.shapes


def test_of_too_many_those_that_fail_and_the_slowest_are_drawn() -> None:
    many = [cell(f"site-{number}", number + 1.0) for number in range(50)]
    many += [cell("broken", state="failed"), cell("never", state="untested")]
    names = list(drawn(many).layout.yaxis.ticktext)
    assert names == [*(f"site-{number}" for number in range(38, -1, -1)), "broken"]
    assert height_rem(1000) == height_rem(40) > height_rem(20)


def test_the_axis_has_room_for_all_rates_and_full_numbers_as_ticks() -> None:
    low, high = rates_between([cell("one", 0.3), cell("two", 40.0), cell("none")])
    assert low < 0.3
    assert high > 40
    assert ticks_between(0.4, 30) == pytest.approx([0.5, 1, 2, 5, 10, 20])
    assert ticks_between(0.002, 900) == pytest.approx([0.01, 0.1, 1, 10, 100])
    ticks = drawn([cell("one", 0.3), cell("two", 40.0)]).layout.xaxis.ticktext
    assert list(ticks) == ["0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"]


def test_a_picture_without_any_rate_has_an_axis_all_the_same() -> None:
    low, high = rates_between([cell("none", state="untested")])
    assert 0 < low < high


def test_the_direction_is_in_words_above_the_picture_and_under_the_pointer() -> None:
    sent = drawn([cell("Glasgow", 5.0)])
    assert sent.layout.title.text == "from RAL<br>to each destination, mean rate"
    assert sent.data[0].hovertext[0].startswith("from RAL<br>to Glasgow<br>")
    cells = [ReportCell("Glasgow", "RAL", 5.0, NAN, 1, 0, 0.0, "measured")]
    received = graph_objects.Figure(figure(cells, "destination", "RAL", NAN, (1.0, 9.0)))
    assert received.layout.title.text == "to RAL<br>from each source, mean rate"
    assert received.data[0].hovertext[0].startswith("from Glasgow<br>to RAL<br>")
