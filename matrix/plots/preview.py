"""The image that a chat shows of a page: what is wrong in words, and the picture, as PNG.

A figure as pixels has cells, lines, points and bars on their axes: only what the figures of pages
have, without words but those of the axis of values.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from PIL.ImageDraw import ImageDraw as Pen

from matrix.plots import Json
from matrix.statistics.arrays import Floats
from sonar.notation.windows import Window, format_window

Colour = tuple[int, int, int]
Point = tuple[float, float]

INK, LINE = (20, 24, 29), (201, 207, 214)
WHITE = (255, 255, 255)
CHANNELS = re.compile(r"[\d.]+")
TICK_TEXT, TICK_ROOM = 34, 130
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

    @classmethod
    def of(cls, layout: Json, first: float, last: float) -> PlotAxis:
        start, end = layout.get("domain", (0, 1))
        low, high = layout["range"]
        length = last - first
        is_log = layout.get("type") == "log"
        return cls(low, high, is_log, first + start * length, first + end * length)

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
        return PlotAxis.of(self.layout[f"{name[0]}axis{name[1:]}"], first, last)

    def place(self, trace: Json) -> tuple[PlotAxis, PlotAxis]:
        return self.axis(trace.get("xaxis", "x")), self.axis(trace.get("yaxis", "y"))


def draw(image: Image.Image, figure: Json, box: Box) -> None:
    """Draw a figure, whose colours are in it, into a box of an image."""
    layout = figure["layout"]
    cells = next((trace for trace in figure["data"] if trace.get("name") == "cells"), None)
    if cells:
        # The strips of means are left out, and the cells have all of the box.
        layout = layout | {
            name: {key: value for key, value in layout[name].items() if key != "domain"}
            for name in ("xaxis", "yaxis")
        }
    else:
        box = box._replace(left=box.left + TICK_ROOM)
    plot = Plot(ImageDraw.Draw(image), image, layout, box)
    if cells:
        draw_cells(plot, cells)
    else:
        draw_ticks(plot)
    for shape in layout.get("shapes", ()):
        draw_shape(plot, shape)
    for trace in figure["data"]:
        # The numbers in cells are left out: there is no room for them.
        if trace["type"] in DRAWN:
            DRAWN[trace["type"]](plot, trace)


def draw_cells(plot: Plot, trace: Json) -> None:
    codes = unpacked(trace["z"])
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
    rows, columns = codes.shape
    for at in range(1, max(rows, columns)) if trace["xgap"] else ():
        x, y = left + at * size[0] / columns, top + at * size[1] / rows
        plot.pen.line([(x, top), (x, bottom)], fill=WHITE, width=2)
        plot.pen.line([(left, y), (right, y)], fill=WHITE, width=2)


def unpacked(array: Json) -> NDArray[Any]:
    """Return an array that was packed for Plotly."""
    shape = [int(length) for length in array["shape"].split(",")]
    return np.frombuffer(base64.b64decode(array["bdata"]), f"<{array['dtype']}").reshape(shape)


def draw_ticks(plot: Plot) -> None:
    """Draw lines at values of the first axis of values, each with its number."""
    own, axis = plot.layout["yaxis"], plot.axis("y")
    values = own["tickvals"] if "tickvals" in own else round_ticks(own["range"])
    texts = own["ticktext"] if "ticktext" in own else [f"{value:g}" for value in values]
    font = ImageFont.load_default(TICK_TEXT)
    for value, text in zip(values, texts, strict=True):
        y = axis.at(value)
        # As with Plotly, an axis may have ticks beyond its range.
        if not axis.last <= y <= axis.first:
            continue
        plot.pen.line([(plot.box.left, y), (plot.box.right, y)], fill=LINE, width=2)
        # The sign of factors is not in the font.
        written = text.replace("×", "x")
        plot.pen.text((plot.box.left - 16, y), written, fill=INK, font=font, anchor="rm")


def round_ticks(bounds: Sequence[float]) -> list[float]:
    """Return a few round values from 0 to the higher bound."""
    high = bounds[1]
    step = 10 ** math.floor(math.log10(high))
    while high / step < FEWEST_TICKS:
        step /= 2
    return [at * step for at in range(int(high / step) + 1)]


def draw_shape(plot: Plot, shape: Json) -> None:
    """Draw a band or a line across, where that is given in values of the first axis."""
    if shape.get("yref") != "y" or shape.get("xref") != "paper":
        return
    axis = plot.axis("y")
    low, high = axis.at(shape["y0"]), axis.at(shape["y1"])
    left, right = plot.box.left, plot.box.right
    if shape["type"] == "rect":
        plot.pen.rectangle([left, high, right, low], fill=shade(shape, shape["fillcolor"]))
    else:
        colour = colour_of(shape["line"]["color"])
        for x in np.arange(left, right, 16).tolist():
            plot.pen.line([(x, low), (min(x + 7, right), low)], fill=colour, width=3)


def draw_scatter(plot: Plot, trace: Json) -> None:
    across, up = plot.place(trace)
    for stretch in stretches(trace["x"], trace["y"]):
        points = [(across.at(x), up.at(y)) for x, y in stretch]
        if trace.get("fill") == "toself":
            plot.pen.polygon(points, fill=shade(trace, trace["fillcolor"]))
        line = trace.get("line", {})
        if trace["mode"] == "lines" and line.get("width", 1) and len(points) > 1:
            width = round(WEIGHT * line.get("width", 1))
            plot.pen.line(points, fill=colour_of(line["color"]), width=width, joint="curve")
        if "markers" in trace["mode"]:
            draw_markers(plot.pen, points, trace["marker"])


def stretches(
    xs: Sequence[float | None], ys: Sequence[float | None]
) -> Iterator[list[tuple[float, float]]]:
    """Yield the points between gaps."""
    stretch: list[tuple[float, float]] = []
    for x, y in [*zip(xs, ys, strict=True), (None, None)]:
        if x is not None and y is not None:
            stretch.append((x, y))
        elif stretch:
            yield stretch
            stretch = []


def draw_markers(pen: Pen, points: Sequence[Point], marker: Json) -> None:
    colour = shade(marker, marker["color"])
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


def shade(looks: Json, colour: str) -> Colour:
    """Return a colour as it is on white with its opacity."""
    share = float(looks.get("opacity", 1))
    red, green, blue = (round(255 + (own - 255) * share) for own in colour_of(colour))
    return red, green, blue


def colour_of(text: str) -> Colour:
    """Return the channels of #rrggbb, rgb(...) or, on white, rgba(...)."""
    if text.startswith("#"):
        return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
    red, green, blue, *opacity = map(float, CHANNELS.findall(text))
    share = opacity[0] if opacity else 1.0
    mixed: Floats = np.rint(255 + (np.array([red, green, blue]) - 255) * share)
    return int(mixed[0]), int(mixed[1]), int(mixed[2])


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

    @property
    def facts(self) -> str:
        of_when = format_window(self.window)
        return f"{of_when}. Simulated endpoints" if self.simulated else of_when

    @property
    def has_cells(self) -> bool:
        return any("coloraxis" in figure["layout"] for _, figure in self.figures)


def png(preview: Preview) -> bytes:
    """Draw it: 1200 by 630 pixels."""
    image = Image.new("RGB", (SCALE * WIDTH, SCALE * HEIGHT), WHITE)
    if preview.has_cells:
        side = image.height - 2 * MARGIN
        left = image.width - MARGIN - side
        write(image, preview, left - BETWEEN)
        draw(image, preview.figures[0][1], Box(left, MARGIN, left + side, MARGIN + side))
    else:
        top = write(image, preview, image.width - MARGIN) + BETWEEN / 2
        draw_beside(image, preview.figures, top)
    written = BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.BOX).save(written, "PNG", compress_level=3)
    return written.getvalue()


def write(image: Image.Image, preview: Preview, right: float) -> float:
    """Write the words up to an edge, the answer first; return where they end."""
    pen, top = ImageDraw.Draw(image), float(MARGIN)
    texts = (
        (preview.answer, ANSWER, INK),
        (preview.title, TITLE, INK),
        (preview.facts, FACTS, MUTED),
    )
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
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and pen.textlength(longer, font=font) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} ..."]
    return lines


def draw_beside(image: Image.Image, figures: Sequence[tuple[str, Json]], top: float) -> None:
    """Draw figures from the left to the right, in the room that the words leave."""
    wide = (image.width - 2 * MARGIN - BETWEEN * (len(figures) - 1)) / len(figures)
    font = ImageFont.load_default(FACTS)
    for at, (words, figure) in enumerate(figures):
        left = MARGIN + at * (wide + BETWEEN)
        ImageDraw.Draw(image).text((left, top), words, fill=INK, font=font)
        above = top + 1.4 * FACTS * bool(words)
        draw(image, figure, Box(left, above, left + wide, image.height - MARGIN))
