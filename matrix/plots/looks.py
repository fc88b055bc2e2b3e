"""How the lines of a picture over time differ: in colour, and in shape for who sees no colour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

# Another window has an axis of time of its own, above the picture.
FIRST_AXIS, SECOND_AXIS = "x", "x2"


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
