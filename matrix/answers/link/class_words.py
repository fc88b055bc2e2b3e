"""Words for the size classes of a link, as parts of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isnan

from django.utils.text import capfirst

from matrix.answers.link.directions import Direction
from matrix.answers.time_words import time_words
from sonar.notation.units import format_factor, format_span, three_digits

# Of an error beside others, and of the one that stands for what happens now.
LONGEST_ERROR, WHOLE_ERROR = 90, 400
# Two names or more of a path.
PATH = re.compile(r"(?:/[^\s/,;)\"']+){2,}/?")
# What HTTP third-party copies put before the reason; where it happened is said anyway.
REPORTER = re.compile(r"^COPY \S+(?:, redirected to another server)? reported about \S+: ")
BEFORE_QUOTE = re.compile(r'\s+"(?=[\s.,;:)]|$)')
# How newest tests compare with usual is said of a class in these states, of the others what failed.
COMPARED = ("measured", "stale", "untested")


# What a class is called whose newest tests are compared with usual.
LEVELS_SAID = {
    "usual": "as usual",
    "slower": "slower than usual",
    "faster": "faster than usual",
}


def standing_words(direction: Direction) -> str:
    """Say how a class is: its state, or where that is measured, how it compares with usual."""
    if direction.state != "measured":
        return direction.state.replace("_", " ")
    return LEVELS_SAID.get(direction.level, direction.state)


def of_state(classes: Iterable[Direction], state: str) -> list[Direction]:
    return [each for each in classes if each.state == state]


def of_level(classes: Iterable[Direction], level: str) -> list[Direction]:
    """Return the classes of a level: as usual only where fresh tests of the window say so."""
    states = COMPARED if level in ("slower", "faster") else ("measured",)
    return [each for each in classes if each.level == level and each.state in states]


def shortened(error: str, longest: int = LONGEST_ERROR) -> str:
    """Return an error as part of a sentence: one line, not too long, without a full stop.

    Who reported it goes, then paths of a long one, and then its middle: the reason often stands at
    its end.
    """
    line = REPORTER.sub("", " ".join(error.split())).rstrip(".")
    line = BEFORE_QUOTE.sub('"', line)
    if len(line) > longest:
        line = PATH.sub("/…", line)
    if len(line) <= longest:
        return line
    head = longest // 3
    before, after = line[: head + 1], line[head + 2 - longest :]
    # Whole words, but of those that have no end.
    before = before.rpartition(" ")[0] or before[:head]
    after = after.partition(" ")[2] or after[1:]
    return f"{before.rstrip()} … {after.lstrip()}"


def since_words(classes: Sequence[Direction], at: datetime) -> str:
    """Return the earliest moment since which one of these is as it is, as seen from ``at``."""
    return time_words(min(each.since for each in classes), at)


def age(at: datetime, moment: datetime) -> str:
    return format_span(at - moment)


def factor(direction: Direction) -> str:
    return format_factor(direction.ratio)


def factor_between(direction: Direction) -> str:
    """Write now / usual with its interval of 95 %, of a class that is slower or faster."""
    return format_factor(direction.ratio, direction.ratio_low, direction.ratio_high)


def has_rate(direction: Direction) -> bool:
    return not isnan(direction.now)


def rate_words(direction: Direction) -> str:
    return f"{three_digits(direction.now)} MB/s"


def rates_now(classes: Iterable[Direction]) -> str:
    """Say the rates that are known: `3.1 MB/s with small files and 33 MB/s with large files`."""
    rates = [f"{rate_words(each)} with {each.size} files" for each in classes if has_rate(each)]
    return join(rates) if rates else ""


def files(classes: Sequence[Direction]) -> str:
    """Begin a sentence with the files of these classes: `Small and medium files`."""
    return capfirst(f"{sizes(classes)} files")


def sizes(classes: Sequence[Direction]) -> str:
    return join(each.size for each in classes)


def join(parts: Iterable[str]) -> str:
    """Join parts as a sentence does: `a`, `a and b`, `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def sentences(*parts: str | Sequence[str]) -> str:
    flat = [part for each in parts for part in ([each] if isinstance(each, str) else each)]
    return " ".join(part for part in flat if part)
