"""What pictures over time share: looks of lines, axes, and bands and marks of what explains them.

Downtimes and conditions are bands, notes are lines, each with its words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from html import escape
from typing import Any

from matrix.answers.words.names import cut
from matrix.plots import ON_PAGE, Json, band, upright
from sonar.notation.windows import Window, format_typed

# Another window has an axis of time of its own, above the picture.
FIRST_AXIS, SECOND_AXIS = "x", "x2"
# A downtime and a note, as the registry has them, which pictures do not know.
Declared = Any
Noted = Any

# Colours of words and lines, by kind; bands have the same, fainter.
KINDS = {
    "downtime": "var(--downtime)",
    "at risk": "var(--downtime)",
    "note": "var(--note)",
    "failing": "var(--failing)",
    "slower": "var(--slower)",
    "faster": "var(--faster)",
    "silent": "var(--muted)",
}
# These have a line where they begin. All but notes without an end are bands as long as they hold.
LINES = ("note", "slower", "faster")
OPACITY = {"downtime": 0.22, "at risk": 0.1, "note": 0.08, "failing": 0.1}
# What a declared downtime is called, by whether it stops tests.
DECLARED = {True: "downtime", False: "at risk"}
LONGEST_WORDS = 34
# What a letter takes of the width of a picture, and a row of words of its height, in pixels.
LETTER, ROW = 0.0085, 16
MOST_ROWS = 4
# Words of what begins further right than this stand to the left of it.
TURN = 0.6
# A window of which results fill a smaller part than this begins with the first of them; so much
# stands before it at least.
FILLED, BEFORE_FIRST = 0.1, timedelta(minutes=5)
# Of windows whose lengths differ by more than this, the shorter would be too small to be seen.
ALIKE = 2
TIMES_IN_A_LINE = [
    {"dtickrange": [None, 43_200_000], "value": "%-d %b %H:%M"},
    {"dtickrange": [43_200_000, None], "value": "%-d %b"},
]


@dataclass(frozen=True)
class Look:
    """Colour, shapes and dash of a line; ``band`` fills its bars.

    ``prefix`` stands before its names in the legend, and ``axis`` is its axis of time. A ``faint``
    line is there to be compared with.
    """

    prefix: str
    colour: str
    band: str
    point: str
    cross: str
    dash: str
    axis: str = FIRST_AXIS
    faint: bool = False


THERE = Look("", "var(--there)", "var(--there-band)", "circle", "x-thin-open", "solid")
BACK = Look(
    "reverse: ", "var(--back)", "var(--back-band)", "diamond-open", "cross-thin-open", "dash"
)
OTHER = Look(
    "other: ",
    "var(--other)",
    "var(--other-band)",
    "circle-open",
    "cross-thin-open",
    "dash",
    faint=True,
)


def other_look(words: str, *, has_own_times: bool) -> Look:
    """Return the look of what something is compared with, whose names begin with these words."""
    axis = SECOND_AXIS if has_own_times else FIRST_AXIS
    return replace(OTHER, prefix=f"{escape(words)}: ", axis=axis)


@dataclass(frozen=True)
class TimeSpan:
    """A time that explains what is seen. ``kind`` is one of KINDS; without ``end`` it still holds.

    ``text`` stands in the picture, cut if it is long, and whole under the pointer.
    """

    kind: str
    start: datetime
    end: datetime | None
    text: str


def spans_of(
    downtimes: Sequence[Declared], notes: Sequence[Noted], window: Window
) -> list[TimeSpan]:
    """Return the declared downtimes and the notes that a picture of a window has."""
    downs = [
        TimeSpan(
            DECLARED[downtime.stops_tests],
            downtime.starts_at,
            downtime.ends_at,
            f"{DECLARED[downtime.stops_tests]}, {downtime.subject}: {downtime.reason}",
        )
        for downtime in downtimes
        if downtime.starts_at < window.end
    ]
    return downs + [
        TimeSpan("note", note.starts_at, note.ends_at, f"note: {note.text}") for note in notes
    ]


def shapes_of(spans: Sequence[TimeSpan], window: Window) -> list[Json]:
    """Return bands over the whole height, and dashed lines where notes and changes begin."""
    drawn: list[Json] = []
    for span in spans:
        own = {"name": span.kind, "xref": "x"}
        if span.kind != "note" or span.end:
            start, end = map(unix_ms, bounds_within(span, window))
            opacity = OPACITY.get(span.kind, 0.1)
            drawn.append(band(start, end, KINDS[span.kind], opacity) | own)
        if span.kind in LINES and window.start <= span.start < window.end:
            line = {"color": KINDS[span.kind], "width": 1.5, "dash": "dash"}
            drawn.append(upright(unix_ms(span.start), line) | own)
    return drawn


def words_of(spans: Sequence[TimeSpan], window: Window) -> list[Json]:
    """Return what each span is called, at the top of the picture, in rows that do not collide.

    What finds no room in MOST_ROWS rows is left out: pages list notes and downtimes as well.
    """
    rows: list[float] = [0.0] * MOST_ROWS
    length = (window.end - window.start).total_seconds()
    drawn: list[Json] = []
    for span in sorted(spans, key=lambda span: span.start):
        start, _ = bounds_within(span, window)
        text = cut(" ".join(span.text.split()), LONGEST_WORDS)
        place = (start - window.start).total_seconds() / length
        left = place - LETTER * len(text) if place > TURN else place
        row = next((row for row, end in enumerate(rows) if end <= max(left, 0)), None)
        if row is not None:
            rows[row] = max(left, 0) + LETTER * len(text)
            drawn.append(word(span, start, text, row, turned=place > TURN))
    return drawn


def word(span: TimeSpan, at: datetime, text: str, row: int, *, turned: bool) -> Json:
    until = f" to {format_typed(span.end)}" if span.end else ""
    return {
        "name": span.kind,
        "text": escape(text),
        "hovertext": f"{escape(span.text)}<br>from {format_typed(span.start)}{until}",
        "xref": "x",
        "yref": "paper",
        "x": unix_ms(at),
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


def bounds_within(span: TimeSpan, window: Window) -> tuple[datetime, datetime]:
    """Return from when to when a span is in a window."""
    return max(span.start, window.start), min(span.end or window.end, window.end)


def unix_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def layout_of(spans: Sequence[TimeSpan], window: Window, other: Window | None, axis: Json) -> Json:
    """Return the layout that pictures over time have in common, with what explains them."""
    return time_axes(window, other, axis) | {
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
        "dragmode": "zoom",
        **ON_PAGE,
        "shapes": shapes_of(spans, window),
        "annotations": words_of(spans, window),
    }


def time_axes(window: Window, other: Window | None, own: Json) -> Json:
    """Return the axis of a window, with what is its own, and that of another if there is one.

    Both begin at the left and have one scale, as long as the longer window. Where one is more than
    twice as long as the other, each fills the picture.
    """
    length = window.end - window.start
    of_other = other.end - other.start if other else length
    if length <= ALIKE * of_other and of_other <= ALIKE * length:
        length = of_other = max(length, of_other)
    axes: Json = {"xaxis": {"type": "date", "range": range_of(window.start, length)} | own}
    if other:
        axes["xaxis2"] = {
            "type": "date",
            "range": range_of(other.start, of_other),
            "overlaying": "x",
            "side": "top",
            "anchor": "free",
            "position": 1,
            "showgrid": False,
            "automargin": True,
            # By itself it would be "sync", whose times are those of pixels: 11:59 for noon.
            "tickmode": "auto",
            "nticks": 4,
            "tickfont": {"color": OTHER.colour, "size": 11},
            "tickformatstops": TIMES_IN_A_LINE,
        }
    return axes


def filled(window: Window, first: datetime) -> Window:
    """Return the part of a window that has results, of which the first began then.

    That is all of it, unless they fill so little that they would all stand at its right edge.
    """
    rest = window.end - first
    if rest >= FILLED * (window.end - window.start):
        return window
    return Window(max(window.start, first - max(rest / 20, BEFORE_FIRST)), window.end)


def range_of(start: datetime, length: timedelta) -> list[int]:
    return [unix_ms(start), unix_ms(start + length)]
