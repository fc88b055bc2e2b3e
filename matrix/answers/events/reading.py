"""All that happened in a window: what the search has kept, with what goes on now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from matrix.answers import grid
from matrix.answers.events.event import Event
from matrix.answers.events.happening import Happening, of_changes, of_outage
from matrix.answers.events.merging import merged
from matrix.answers.events.present import joined, of_grid
from matrix.answers.grid import Grid
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import changes as stored
from matrix.store.data_version import snapshot
from sonar.models import SizeClass
from sonar.notation.windows import Window

EVERYTHING = Q()


@dataclass(frozen=True)
class Present:
    """What goes on at the end of a window, as far as it is known: of these size classes.

    ``shortest_promise`` is the shortest interval of tests in seconds, infinity for none.
    """

    happenings: Sequence[Happening] = ()
    sizes: frozenset[str] = frozenset()
    shortest_promise: float = math.inf

    @classmethod
    def of_grids(cls, grids: Iterable[Grid], places: Iterable[EndpointInfo]) -> Present:
        """Take it from grids of single links, each of a size class."""
        ids = {place.name: place.id for place in places}
        answered = list(grids)
        happenings = [each for answer in answered for each in of_grid(answer, ids)]
        promise = min((answer.shortest_promise for answer in answered), default=math.inf)
        return cls(happenings, frozenset(answer.query.size for answer in answered), promise)


UNKNOWN = Present()


def size_names() -> list[str]:
    """Return the size classes, smallest first. One SQL query."""
    return list(SizeClass.objects.values_list("name", flat=True))


def present_at(now: datetime, sizes: Iterable[str], places: Iterable[EndpointInfo]) -> Present:
    """Read how all links are now, of each size class as its matrix opens."""
    grids = [grid.build(MatrixQuery(size=size), now) for size in sizes]
    return Present.of_grids(grids, places)


def read(
    window: Window,
    places: Sequence[EndpointInfo],
    sizes: Sequence[str],
    present: Present = UNKNOWN,
    condition: Q = EVERYTHING,
) -> list[Event]:
    """Return the events of a window, and those that last from before it, newest first.

    ``condition`` is one on their ends, ``present`` is of the end of the window. Three SQL
    queries.
    """
    with snapshot():
        changes = stored.read_changes(window, condition)
        outages = stored.read_outages(window, condition)
        stored.with_ends(outages)
    kept = [*of_changes(changes), *map(of_outage, outages)]
    events = merged(joined(kept, present.happenings, present.sizes), places, sizes)
    return [event for event in events if event.until is None or window.start <= event.at]
