"""Parts of sentences, the same on every page: times (short, in UTC), counts, lists, errors."""

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.transfers import REPORTER, CommonError
from sonar.notation.units import format_count, format_counted, format_span
from sonar.notation.windows import short_time

# Of an error beside others, and of the one that stands for what happens now.
LONGEST_ERROR, WHOLE_ERROR = 90, 400
# Two names or more of a path.
PATH = re.compile(r"(?:/[^\s/,;)\"']+){2,}/?")
BEFORE_QUOTE = re.compile(r'(?<!\s)\s+"(?=[\s.,;:)]|$)')
WHERE = {
    "source": "at the source",
    "destination": "at the destination",
    "transfer": "during the transfer",
    "control": "in Sonar itself",
}


counted = format_counted


def time_words(unix: float, moment: datetime) -> str:
    """Write a Unix time as seen from a moment: `19 Nov 20:15`, later `19 Nov 2026 20:15`."""
    return short_time(datetime.fromtimestamp(unix, UTC), moment.year)


def join(parts: Iterable[str]) -> str:
    """Join parts as a sentence does: `a`, `a and b`, `a, b and c`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def lower_first(text: str) -> str:
    """Begin a sentence as it stands within another one."""
    return text[:1].lower() + text[1:]


def sentences(*parts: str | Sequence[str]) -> str:
    flat = [part for each in parts for part in ([each] if isinstance(each, str) else each)]
    return " ".join(part for part in flat if part)


def why_no_rate(state: str, since: float, moment: datetime) -> str:
    """Say why a rate now would mislead: all tests since its successes failed; empty if it counts.

    ``since`` is when it began to fail, in Unix s.
    """
    if state == "failing":
        span = timedelta(seconds=0 if math.isnan(since) else moment.timestamp() - since)
        return f"failing: the last successful tests are more than {format_span(span)} old"
    if state == "failed":
        return "failed: the last successful tests are from before this time range"
    return ""


def shortened(error: str, longest: int = LONGEST_ERROR) -> str:
    """Return an error as part of a sentence: one line, not too long, without a full stop.

    Who reported it goes, then paths of a long one, and then its middle: the reason often stands at
    its end.
    """
    line = re.sub(REPORTER, "", " ".join(error.split())).rstrip(".")
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


def where_at(where: str, source: EndpointInfo, destination: EndpointInfo) -> str:
    """Say where something failed on a link; an end by its name, as it goes into a ticket."""
    end = {"source": source, "destination": destination}.get(where)
    return f"{WHERE[where]}, {end.name}" if end else WHERE[where]


def common_words(error: CommonError, tests: int) -> str:
    """Say the most common error of that many failed tests for one link, where it is named."""
    text = f"{WHERE[error.where]}: {shortened(error.text)}"
    failed = f"{format_count(tests)} failed tests"
    if error.count == tests:
        return f"The same error in all {failed}, {text}"
    return f"The same error in {format_count(error.count)} of {failed}, {text}"
