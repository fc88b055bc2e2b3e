"""Where a test failed, and the most common error of several, as people say it."""

from __future__ import annotations

from matrix.answers.link.class_words import shortened
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.transfers import CommonError
from sonar.notation.units import format_count

WHERE = {
    "source": "at the source",
    "destination": "at the destination",
    "transfer": "during the transfer",
    "control": "in Sonar itself",
}


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
