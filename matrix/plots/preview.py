"""The image that a chat shows of a page: what is wrong in words, and the picture, as PNG.

A figure as pixels has cells, lines, points and bars on their axes: only what the figures of pages
have, without words but those of its axes.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.ImageDraw import ImageDraw as Pen

from matrix.plots import Json
from sonar.notation.windows import Window, format_window

Colour = tuple[int, int, int]
Point = tuple[float, float]
INK, LINE = (20, 24, 29), (201, 207, 214)
WHITE = (255, 255, 255)
CHANNELS = re.compile(r"[\d.]+")
TICK_TEXT, TICK_ROOM = 34, 130
# Below a picture are times, at multiples of the first step that leaves room for each.
TIMES_ROOM, DATE_WIDTH, TIME_WIDTH = 56, 150, 260
HOUR_MS = 3_600_000
TIME_STEPS_HOURS = (1, 3, 6, 12, 24, 48, 96, 168, 336, 672, 1344, 2688, 8736)
# A line of the figure is so many pixels wide for each of its own.
WEIGHT = 3.0
FEWEST_TICKS = 3
# Of all places that show such images; drawn at twice that, for smooth lines.
WIDTH, HEIGHT = 1200, 630
SCALE = 2
MARGIN, BETWEEN = 96, 64
MUTED = (80, 90, 100)
# Sizes of text: the answer, of what, of when.
ANSWER, TITLE, FACTS = 88, 60, 48
MOST_LINES = 3
# Signs that the font does not have.
IN_FONT = str.maketrans({"×": "x", "→": "to", "–": "-", "−": "-", "≥": ">=", "≤": "<="})


class Box(NamedTuple):
    """Where something is drawn, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class PlotAxis:
    """Turns values into pixels; an axis of logarithms has those as its range."""

    start: float
    end: float
    is_log: bool
    first: float
    last: float

    def at(self, value: float) -> float:
        value = math.log10(value) if self.is_log else value
        share = (value - self.start) / (self.end - self.start)
        return self.first + share * (self.last - self.first)


@dataclass(frozen=True)
class Plot:
    """A figure in a box. The axes of each trace are named as Plotly does: x, x2."""

    pen: Pen
    image: Image.Image
    layout: Json
    box: Box

    def axis(self, name: str) -> PlotAxis:
        left, top, right, bottom = self.box
        first, last = (left, right) if name[0] == "x" else (bottom, top)
        own = self.layout[f"{name[0]}axis{name[1:]}"]
        low, high = own["range"]
        start, end = (first + share * (last - first) for share in own.get("domain", (0, 1)))
        return PlotAxis(low, high, own.get("type") == "log", start, end)

    def place(self, trace: Json) -> tuple[PlotAxis, PlotAxis]:
        return self.axis(trace.get("xaxis", "x")), self.axis(trace.get("yaxis", "y"))


def draw(image: Image.Image, figure: Json, box: Box) -> None:
    layout = figure["layout"]
    cells = next((trace for trace in figure["data"] if trace.get("name") == "cells"), None)
    if cells:
        # The strips of means are left out, and the cells have all of the box.
        layout = layout | {
            name: {key: value for key, value in layout[name].items() if key != "domain"}
            for name in ("xaxis", "yaxis")
        }
    else:
        box = box._replace(left=box.left + TICK_ROOM, bottom=box.bottom - TIMES_ROOM)
    plot = Plot(ImageDraw.Draw(image), image, layout, box)
    if cells:
        draw_cells(plot, cells)
    else:
        draw_ticks(plot)
        draw_times(plot)
    for shape in layout.get("shapes", ()):
        draw_shape(plot, shape)
    for trace in figure["data"]:
        # The numbers in cells are left out: there is no room for them.
        if trace["type"] in DRAWN:
            DRAWN[trace["type"]](plot, trace)


def draw_cells(plot: Plot, trace: Json) -> None:
    packed = trace["z"]
    rows, columns = shape = [int(length) for length in packed["shape"].split(",")]
    codes = np.frombuffer(base64.b64decode(packed["bdata"]), f"<{packed['dtype']}").reshape(shape)
    if not codes.size:
        return
    stops = trace["colorscale"]
    positions = np.array([stop for stop, _ in stops]) * (trace["zmax"] - trace["zmin"])
    colours = np.array([colour_of(colour) for _, colour in stops])
    channels = [np.interp(codes, positions + trace["zmin"], channel) for channel in colours.T]
    pixels = np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
    left, top, right, bottom = (round(edge) for edge in plot.box)
    size = right - left, bottom - top
    plot.image.paste(Image.fromarray(pixels).resize(size, Image.Resampling.NEAREST), (left, top))
    for at in range(1, max(rows, columns)) if trace["xgap"] else ():
        x, y = left + at * size[0] / columns, top + at * size[1] / rows
        plot.pen.line([(x, top), (x, bottom)], fill=WHITE, width=2)
        plot.pen.line([(left, y), (right, y)], fill=WHITE, width=2)


def draw_times(plot: Plot) -> None:
    """Write times in UTC below the picture, and draw what begins, ends or lasts then."""
    axis, pen = plot.axis("x"), plot.pen
    hours, room = (axis.end - axis.start) / HOUR_MS, plot.box.right - plot.box.left
    fitting = (
        each
        for each in TIME_STEPS_HOURS
        if hours / each * (DATE_WIDTH if each >= 24 else TIME_WIDTH) <= room
    )
    step = next(fitting, TIME_STEPS_HOURS[-1])
    first = math.ceil(axis.start / (step * HOUR_MS)) * step * HOUR_MS
    font = ImageFont.load_default(TICK_TEXT)
    for moment in np.arange(first, axis.end, step * HOUR_MS).tolist():
        x, when = axis.at(moment), datetime.fromtimestamp(moment / 1000, UTC)
        text = f"{when.day} {when:%b}" if step >= 24 else f"{when.day} {when:%b %H:%M}"
        pen.line([(x, plot.box.bottom), (x, plot.box.bottom + 10)], fill=MUTED, width=2)
        pen.text((x, plot.box.bottom + 14), text, fill=INK, font=font, anchor="ma")
    failed = plot.layout["yaxis2"]
    for value, text in zip(failed["tickvals"], failed["ticktext"], strict=True):
        place = plot.box.left - 16, plot.axis("y2").at(value)
        pen.text(place, text, fill=INK, font=font, anchor="rm")


def draw_ticks(plot: Plot) -> None:
    own, axis = plot.layout["yaxis"], plot.axis("y")
    values = own.get("tickvals", ())
    if "tickvals" not in own:
        # A few round values from 0 to the higher bound.
        high = own["range"][1]
        step = 10 ** math.floor(math.log10(high))
        while high / step < FEWEST_TICKS:
            step /= 2
        values = [at * step for at in range(int(high / step) + 1)]
    texts = own["ticktext"] if "ticktext" in own else [f"{value:g}" for value in values]
    font = ImageFont.load_default(TICK_TEXT)
    for value, text in zip(values, texts, strict=True):
        y = axis.at(value)
        # As with Plotly, an axis may have ticks beyond its range.
        if not axis.last <= y <= axis.first:
            continue
        plot.pen.line([(plot.box.left, y), (plot.box.right, y)], fill=LINE, width=2)
        place = plot.box.left - 16, y
        plot.pen.text(place, text.translate(IN_FONT), fill=INK, font=font, anchor="rm")


def draw_shape(plot: Plot, shape: Json) -> None:
    """Draw a band or a line across the picture, or from its top to its bottom at a time."""
    left, top, right, bottom = plot.box
    if (shape.get("xref"), shape.get("yref")) == ("paper", "y"):
        bottom, top = (plot.axis("y").at(shape[end]) for end in ("y0", "y1"))
    elif (shape.get("xref"), shape.get("yref")) == ("x", "paper"):
        left, right = (plot.axis("x").at(shape[end]) for end in ("x0", "x1"))
    else:
        return
    if shape["type"] == "rect":
        # Bands may cross: what is below one shows through it.
        area = round(left), round(top), round(right), round(bottom)
        share = float(shape.get("opacity", 1))
        red, green, blue, *opacity = channels_of(shape["fillcolor"])
        below = plot.image.crop(area)
        colour = Image.new("RGB", below.size, (round(red), round(green), round(blue)))
        plot.image.paste(Image.blend(below, colour, share * (opacity[0] if opacity else 1)), area)
        return
    # A line of dashes; it has no width or no height.
    across, down = np.arange(left, right, 16), np.arange(top, bottom, 16)
    dashes = [(x, top, min(x + 7, right), top) for x in across.tolist()]
    dashes += [(left, y, left, min(y + 7, bottom)) for y in down.tolist()]
    for dash in dashes:
        plot.pen.line(dash, fill=colour_of(shape["line"]["color"]), width=3)


def draw_scatter(plot: Plot, trace: Json) -> None:
    across, up = plot.place(trace)
    for stretch in stretches(trace["x"], trace["y"]):
        points = [(across.at(x), up.at(y)) for x, y in stretch]
        if trace.get("fill") == "toself":
            plot.pen.polygon(points, fill=colour_of(trace["fillcolor"], trace.get("opacity", 1)))
        line = trace.get("line", {})
        if trace["mode"] == "lines" and line.get("width", 1) and len(points) > 1:
            width = round(WEIGHT * line.get("width", 1))
            plot.pen.line(points, fill=colour_of(line["color"]), width=width, joint="curve")
        if "markers" in trace["mode"]:
            draw_markers(plot.pen, points, trace["marker"])


def stretches(
    xs: Sequence[float | None], ys: Sequence[float | None]
) -> Iterator[list[tuple[float, float]]]:
    stretch: list[tuple[float, float]] = []
    for x, y in [*zip(xs, ys, strict=True), (None, None)]:
        if x is not None and y is not None:
            stretch.append((x, y))
        elif stretch:
            yield stretch
            stretch = []


def draw_markers(pen: Pen, points: Sequence[Point], marker: Json) -> None:
    colour = colour_of(marker["color"], marker.get("opacity", 1))
    sizes = marker["size"] if isinstance(marker["size"], list) else [marker["size"]] * len(points)
    for (x, y), size in zip(points, sizes, strict=True):
        half = WEIGHT * size / 2
        if marker["symbol"].startswith(("x", "cross")):
            pen.line([(x - half, y - half), (x + half, y + half)], fill=colour, width=6)
            pen.line([(x - half, y + half), (x + half, y - half)], fill=colour, width=6)
        elif marker["symbol"].startswith("line-ew"):
            pen.line([(x - half, y), (x + half, y)], fill=colour, width=6)
        else:
            pen.ellipse([x - half, y - half, x + half, y + half], fill=colour)


def draw_bars(plot: Plot, trace: Json) -> None:
    across, up = plot.place(trace)
    colour = colour_of(trace["marker"]["color"])
    half = trace["width"] / 2
    for x, y in zip(trace["x"], trace["y"], strict=True):
        plot.pen.rectangle([across.at(x - half), up.at(y), across.at(x + half), up.at(0)], colour)


def colour_of(text: str, share: float = 1) -> Colour:
    """Return the channels of #rrggbb, rgb(...) or rgba(...), as with its opacity on white."""
    *channels, opacity = (*channels_of(text), 1.0)[:4]
    red, green, blue = (round(255 + (own - 255) * opacity * share) for own in channels)
    return red, green, blue


def channels_of(text: str) -> list[float]:
    if text.startswith("#"):
        return [float(int(text[at : at + 2], 16)) for at in (1, 3, 5)]
    return [float(channel) for channel in CHANNELS.findall(text)]


DRAWN = {"scatter": draw_scatter, "bar": draw_bars}


@dataclass(frozen=True)
class Preview:
    """``figures`` have their colours; two stand beside each other, each with its word above it.

    Cells stand beside the words, everything else below them.
    """

    title: str
    answer: str
    window: Window
    simulated: bool
    figures: Sequence[tuple[str, Json]]


def png(preview: Preview) -> bytes:
    """Draw it: 1200 by 630 pixels."""
    image = Image.new("RGB", (SCALE * WIDTH, SCALE * HEIGHT), WHITE)
    if any("coloraxis" in figure["layout"] for _, figure in preview.figures):
        side = image.height - 2 * MARGIN
        left = image.width - MARGIN - side
        write(image, preview, left - BETWEEN)
        draw(image, preview.figures[0][1], Box(left, MARGIN, left + side, MARGIN + side))
    else:
        # Figures from the left to the right, in the room that the words leave.
        top = write(image, preview, image.width - MARGIN) + BETWEEN / 2
        count, font = len(preview.figures), ImageFont.load_default(FACTS)
        wide = (image.width - 2 * MARGIN - BETWEEN * (count - 1)) / count
        for at, (words, figure) in enumerate(preview.figures):
            place = MARGIN + at * (wide + BETWEEN)
            ImageDraw.Draw(image).text((place, top), words, fill=INK, font=font)
            above = top + 1.4 * FACTS * bool(words)
            draw(image, figure, Box(place, above, place + wide, image.height - MARGIN))
    written = BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.BOX).save(written, "PNG", compress_level=3)
    return written.getvalue()


def write(image: Image.Image, preview: Preview, right: float) -> float:
    """Write the words up to an edge, the answer first; return where they end."""
    pen, top = ImageDraw.Draw(image), float(MARGIN)
    facts = format_window(preview.window) + ". Simulated endpoints" * preview.simulated
    texts = (preview.answer, ANSWER, INK), (preview.title, TITLE, INK), (facts, FACTS, MUTED)
    for text, size, colour in texts:
        font = ImageFont.load_default(size)
        for line in wrapped(pen, text, font, right - MARGIN):
            pen.text((MARGIN, top), line, fill=colour, font=font)
            top += 1.2 * size
        top += 0.4 * size
    return top


def wrapped(pen: Pen, text: str, font: Any, room: float) -> list[str]:  # noqa: ANN401 - of Pillow
    """Break a text into lines, the last of which says with dots that there is more."""
    lines = [""]
    for word in text.translate(IN_FONT).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and pen.textlength(longer, font=font) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} ..."]
    return lines
