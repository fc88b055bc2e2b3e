"""What happened today beside a matrix: one sentence about the links that it shows."""

from __future__ import annotations

from datetime import datetime

from matrix.answers.events import reading, today
from matrix.answers.events.question import EventsQuestion
from matrix.answers.events.reading import UNKNOWN, Present
from matrix.answers.grid import Grid
from matrix.answers.short_names import short_names_of
from matrix.query.filters import on_links, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry


def todays_sentence(grid: Grid, now: datetime) -> str:
    """Say what happened today to the links of a matrix that reaches up to now; else nothing.

    Nor that there is nothing new where there is nothing at all. What goes on is known of its size
    class, where each cell is a link; of the others what the search has found. Results of some ways
    of measuring alone have no sentence.
    """
    query = grid.query
    if grid.window.end < now or on_profiles(query.filters):
        return ""
    places = registry.read_places(grid.version)
    of_links = (query.rows, query.columns) == ("endpoint", "endpoint")
    present = Present.of_grids([grid], places) if of_links else UNKNOWN
    events = reading.read(today.window_of(now), places, reading.size_names(), present)
    question = EventsQuestion(MatrixQuery(filters=tuple(on_links(query.filters))))
    chosen = list(question.chosen(events, places))
    if not (chosen or grid.has_results):
        return ""
    return f"{today.sentence(chosen, now, short_names_of(places))}."
