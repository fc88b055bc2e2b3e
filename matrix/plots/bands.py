"""What explains a picture over time: downtimes as bands, notes as lines, each with its words.

For any figure whose x axis is time: `shapes` and `words` go into its layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Protocol

from matrix.answers.short_names import cut
from sonar.notation.windows import Window, format_typed

Json = dict[str, Any]

# Colours of words and lines, by kind; bands have the same, fainter.
KINDS = {
    "downtime": "var(--downtime)",
    "note": "var(--note)",
    "failing": "var(--failing)",
    "slower": "var(--slower)",
    "faster": "var(--faster)",
}
# These are moments: a line where they begin. The others are bands as long as they hold.
LINES = ("note", "slower", "faster")
OPACITY = {"downtime": 0.22, "note": 0.08, "failing": 0.1}
LONGEST_WORDS = 34
# What a letter takes of the width of a picture, and a row of words of its height, in pixels.
LETTER, ROW = 0.0085, 16
MOST_ROWS = 4
# Words of what begins further right than this stand to the left of it.
TURN = 0.6


@dataclass(frozen=True)
class TimeSpan:
    """A time that explains what is seen. ``kind`` is one of KINDS; without ``end`` it still holds.

    ``text`` stands in the picture, cut if it is long, and whole under the pointer.
    """

    kind: str
    start: datetime
    end: datetime | None
    text: str


class Declared(Protocol):
    """A downtime, of a site or of an endpoint, as the registry has it."""

    site: Any
    endpoint: Any
    starts_at: Any
    ends_at: Any
    reason: Any


class Noted(Protocol):
    """A note, as the registry has it; one without an end still holds."""

    text: Any
    starts_at: Any
    ends_at: Any


def spans_of(
    downtimes: Sequence[Declared], notes: Sequence[Noted], window: Window
) -> list[TimeSpan]:
    """Return the declared downtimes and the notes that a picture of a window has."""
    downs = [
        TimeSpan(
            "downtime",
            downtime.starts_at,
            downtime.ends_at,
            f"downtime, {downtime.site or downtime.endpoint}: {downtime.reason}",
        )
        for downtime in downtimes
        if downtime.starts_at < window.end
    ]
    return downs + [
        TimeSpan("note", note.starts_at, note.ends_at, f"note: {note.text}") for note in notes
    ]


def shapes(spans: Sequence[TimeSpan], window: Window) -> list[Json]:
    """Return bands over the whole height, and dashed lines where notes and changes begin."""
    drawn: list[Json] = []
    for span in spans:
        if span.kind not in LINES or span.end:
            drawn.append(band(span, window))
        if span.kind in LINES and window.start <= span.start < window.end:
            drawn.append(line(span))
    return drawn


def band(span: TimeSpan, window: Window) -> Json:
    start, end = inside(span, window)
    return {
        "type": "rect",
        "name": span.kind,
        "xref": "x",
        "yref": "paper",
        "x0": milliseconds(start),
        "x1": milliseconds(end),
        "y0": 0,
        "y1": 1,
        "fillcolor": KINDS[span.kind],
        "opacity": OPACITY.get(span.kind, 0.1),
        "line": {"width": 0},
        "layer": "below",
    }


def line(span: TimeSpan) -> Json:
    at = milliseconds(span.start)
    return {
        "type": "line",
        "name": span.kind,
        "xref": "x",
        "yref": "paper",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "line": {"color": KINDS[span.kind], "width": 1.5, "dash": "dash"},
    }


def words(spans: Sequence[TimeSpan], window: Window) -> list[Json]:
    """Return what each span is called, at the top of the picture, in rows that do not collide.

    What finds no room in MOST_ROWS rows is left out: pages list notes and downtimes as well.
    """
    rows: list[float] = [0.0] * MOST_ROWS
    length = (window.end - window.start).total_seconds()
    drawn: list[Json] = []
    for span in sorted(spans, key=lambda span: span.start):
        start, _ = inside(span, window)
        text = cut(" ".join(span.text.split()), LONGEST_WORDS)
        place = (start - window.start).total_seconds() / length
        left = place - LETTER * len(text) if place > TURN else place
        row = next((row for row, end in enumerate(rows) if end <= max(left, 0)), None)
        if row is not None:
            rows[row] = max(left, 0) + LETTER * len(text)
            drawn.append(label(span, start, text, row, turned=place > TURN))
    return drawn


def label(span: TimeSpan, at: datetime, text: str, row: int, *, turned: bool) -> Json:
    until = f" to {format_typed(span.end)}" if span.end else ""
    return {
        "name": span.kind,
        "text": escape(text),
        "hovertext": f"{escape(span.text)}<br>from {format_typed(span.start)}{until}",
        "xref": "x",
        "yref": "paper",
        "x": milliseconds(at),
        "y": 1,
        "xanchor": "right" if turned else "left",
        "yanchor": "top",
        "xshift": -3 if turned else 3,
        "yshift": -ROW * row,
        "showarrow": False,
        "font": {"color": KINDS[span.kind], "size": 11},
        "bgcolor": "var(--surface)",
        "borderpad": 1,
    }


def inside(span: TimeSpan, window: Window) -> tuple[datetime, datetime]:
    """Return from when to when a span is in a window."""
    return max(span.start, window.start), min(span.end or window.end, window.end)


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
