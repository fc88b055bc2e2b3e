"""Bands, note lines and their words in pictures over time."""

from datetime import UTC, datetime, timedelta

import plotly.graph_objects as go

from matrix.plots.over_time import LONGEST_WORDS, MOST_ROWS, TimeSpan, shapes_of, words_of
from sonar.notation.windows import Window

START = datetime(2026, 11, 13, tzinfo=UTC)
DAY = timedelta(days=1)
WEEK = Window(START, START + 7 * DAY)
MS = 1000


def at(days: float) -> datetime:
    return START + days * DAY


def test_a_downtime_is_a_band_as_long_as_it_holds_within_the_window():
    spans = [TimeSpan("downtime", at(-3), at(1), "disks"), TimeSpan("downtime", at(6), None, "net")]
    first, second = shapes_of(spans, WEEK)
    assert (first["type"], first["x0"], first["x1"]) == (
        "rect",
        at(0).timestamp() * MS,
        at(1).timestamp() * MS,
    )
    assert (second["x0"], second["x1"]) == (at(6).timestamp() * MS, at(7).timestamp() * MS)


def test_a_note_is_a_line_where_it_begins_and_a_faint_band_only_if_it_ends():
    (line,) = shapes_of([TimeSpan("note", at(2), None, "new switch")], WEEK)
    assert (line["type"], line["x0"], line["x1"]) == ("line", *[at(2).timestamp() * MS] * 2)
    kinds = [shape["type"] for shape in shapes_of([TimeSpan("note", at(2), at(3), "tests")], WEEK)]
    assert kinds == ["rect", "line"]
    before = shapes_of([TimeSpan("note", at(-1), at(3), "tests")], WEEK)
    assert [shape["type"] for shape in before] == ["rect"], "it begins before the picture does"


def test_words_stand_beside_their_line_and_turn_at_the_right_edge():
    left, right = words_of(
        [TimeSpan("note", at(1), None, "one"), TimeSpan("note", at(6.5), None, "two")], WEEK
    )
    assert (left["text"], left["xanchor"]) == ("one", "left")
    assert (right["text"], right["xanchor"]) == ("two", "right")
    go.Figure({"data": [], "layout": {"annotations": [left, right]}})


def test_words_that_would_collide_stand_in_rows_and_too_many_are_left_out():
    spans = [TimeSpan("note", at(1 + number / 100), None, f"note {number}") for number in range(9)]
    shown = words_of(spans, WEEK)
    assert len(shown) == MOST_ROWS
    assert len({label["yshift"] for label in shown}) == MOST_ROWS
    apart = [TimeSpan("note", at(number), None, "note") for number in range(5)]
    assert {label["yshift"] for label in words_of(apart, WEEK)} == {0}


def test_long_words_are_cut_and_whole_under_the_pointer_and_markup_is_text():
    text = "<b>disk</b> servers of the whole site are being replaced"
    (label,) = words_of([TimeSpan("downtime", at(1), at(2), text)], WEEK)
    assert len(label["text"]) <= LONGEST_WORDS + len("&lt;&gt;") * 2
    assert "<b>" not in label["text"] + label["hovertext"]
    assert "of the whole site" in label["hovertext"]
    assert "from 14 Nov 00:00 UTC to 15 Nov 00:00 UTC" in label["hovertext"]
