"""The image that a chat shows of a page: what is wrong in words, and the picture, as PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageDraw import ImageDraw as Pen

from matrix.plots.raster import INK, WHITE, Box, draw
from sonar.notation.windows import Window, format_window

Json = dict[str, Any]

# Of all places that show such images; drawn at twice that, for smooth lines.
WIDTH, HEIGHT = 1200, 630
SCALE = 2
MARGIN, BETWEEN = 96, 64
MUTED = (80, 90, 100)
# Sizes of text: the answer, of what, of when.
ANSWER, TITLE, FACTS = 88, 60, 48
MOST_LINES = 3


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
