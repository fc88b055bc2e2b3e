"""Errors as parts of sentences: where a test failed, and of what."""

import re

from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.transfers import CommonError
from sonar.notation.units import format_count

# Of an error beside others, and of the one that stands for what happens now.
LONGEST_ERROR, WHOLE_ERROR = 90, 400
# Two names or more of a path.
PATH = re.compile(r"(?:/[^\s/,;)\"']+){2,}/?")
# What HTTP third-party copies put before the reason; where it happened is said anyway.
REPORTER = re.compile(r"^COPY \S+(?:, redirected to another server)? reported about \S+: ")
BEFORE_QUOTE = re.compile(r'\s+"(?=[\s.,;:)]|$)')
WHERE = {
    "source": "at the source",
    "destination": "at the destination",
    "transfer": "during the transfer",
    "control": "in Sonar itself",
}


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


def where_at(where: str, source: EndpointInfo, destination: EndpointInfo) -> str:
    """Say where something failed on a link; an end by its name, as it goes into a ticket."""
    end = {"source": source, "destination": destination}.get(where)
    return f"{WHERE[where]}, {end.name}" if end else WHERE[where]


def common_words(error: CommonError, tests: int) -> str:
    """Say the most common error of that many failed tests for one link, where it is named."""
    text = f"{WHERE[error.where]}: {shortened(error.text)}"
    if error.count == tests:
        return f"Error of all {format_count(tests)} failed tests, {text}"
    return f"Error of {format_count(error.count)} of {format_count(tests)} failed tests, {text}"
