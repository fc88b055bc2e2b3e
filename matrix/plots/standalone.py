"""Figures that are drawn without a page: in a notebook, or as one HTML file that needs no host.

A page puts its colours in by a script; here they come from the same style sheet, always the light
ones, as on paper.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import orjson
from django.contrib.staticfiles import finders
from plotly.io import to_html

from matrix.plots import Json
from sonar.notation.windows import Window, format_window

STYLE_SHEET = "css/sonar.css"
# At the beginning of a line: what is indented is of the dark theme.
LIGHT = re.compile(r"^:root \{(.*?)^\}", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"--([\w-]+):\s*([^;]+);")
NAME_OF_VARIABLE = re.compile(r"var\(--([\w-]+)\)")
VEIL = re.compile(r"veil\((.+)\)")
HEIGHT = 520
# As static/js/picture.js: nothing that is drawn talks to a host.
CONFIG = {"displaylogo": False, "responsive": True, "showSendToCloud": False, "plotlyServerURL": ""}
DOCUMENT = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>{figure}</body>
</html>
"""


@dataclass(frozen=True)
class FigureTitle:
    """What stands above a figure: what it shows, with its size class, of when, in which unit."""

    words: str
    window: Window
    unit: str
    simulated: bool

    def lines(self) -> Json:
        """Return it for a layout. Plotly reads some HTML: names must not become any."""
        simulated = ["simulated endpoints"] if self.simulated else []
        facts = [format_window(self.window), self.unit, *simulated]
        return {
            "text": escape(self.words),
            "subtitle": {"text": escape(", ".join(filter(None, facts)))},
            "x": 0.01,
            "xanchor": "left",
            "y": 0.99,
            "yanchor": "top",
            "yref": "container",
            "automargin": True,
        }


def standalone(figure: Json, title: FigureTitle) -> Json:
    """Return a figure of a page with colours for those variables, and with its title."""
    alone: Json = with_colours(figure)
    alone["layout"] = {"height": HEIGHT} | alone["layout"] | {"title": title.lines()}
    return alone


def with_colours(value: Any) -> Any:  # noqa: ANN401 - any part of a figure
    """Return a part of a figure with the colours of the style sheet in place of their names."""
    if isinstance(value, str):
        return colour_of(value)
    if isinstance(value, dict):
        return {key: with_colours(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_colours(part) for part in value]
    return value


def colour_of(text: str) -> str:
    if match := NAME_OF_VARIABLE.fullmatch(text):
        return light_colours()[match[1]]
    if match := VEIL.fullmatch(text):
        return faded(colour_of(match[1]))
    return text


def faded(colour: str) -> str:
    """Mix a colour with the surface, as static/js/colours.js does."""
    share = float(light_colours()["veil-share"])
    pairs = zip(channels(colour), channels(light_colours()["surface"]), strict=True)
    mixed = ", ".join(str(round(own * (1 - share) + under * share)) for own, under in pairs)
    return f"rgb({mixed})"


def channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


@lru_cache(maxsize=1)
def light_colours() -> Mapping[str, str]:
    """Read the variables of the light theme, by their names."""
    path = finders.find(STYLE_SHEET)
    if path is None:
        raise FileNotFoundError(f"{STYLE_SHEET} is not among the static files.")
    blocks = LIGHT.findall(Path(path).read_text(encoding="utf-8"))
    return {name: value for block in blocks for name, value in VARIABLE.findall(block)}


def as_json(figure: Json) -> bytes:
    """Write a figure for ``plotly.io.from_json``."""
    return orjson.dumps(figure, option=orjson.OPT_SERIALIZE_NUMPY)


def as_html(figure: Json) -> bytes:
    """Write a figure as a page of its own, with the library that draws it inside."""
    drawn = to_html(
        figure,
        config=CONFIG,
        include_plotlyjs=True,
        full_html=False,
        validate=False,
        default_height=f"{figure['layout']['height']}px",
        # By itself it would be another one each time, and with it the ETag.
        div_id="figure",
    )
    return DOCUMENT.format(title=figure["layout"]["title"]["text"], figure=drawn).encode()
