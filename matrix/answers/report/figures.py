"""The figures of a report, as they stood when its period ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matrix.answers.causes.change_causes import NamedCause
from matrix.answers.events.event import Event
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.report.question import ReportQuestion
from matrix.query.forms import DEFAULT_SIZE
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.cells.states import STALE
from matrix.statistics.compare.together import Together
from matrix.statistics.samples.reduce import averages
from matrix.store.downtimes import DeclaredDowntime
from sonar.models import Incident


@dataclass(frozen=True)
class GridFigures:
    """What a grid of links says in numbers: rates in MB/s, shares in percent, NaN for none."""

    mean: float
    ok: int
    failed: int

    @classmethod
    def of(cls, links: Grid) -> GridFigures:
        cells = links.cells
        mean = averages(cells.mean).grand
        return cls(mean, int(cells.ok.sum()), int(cells.failed.sum()))

    @property
    def tests(self) -> int:
        return self.ok + self.failed

    @property
    def success(self) -> float:
        return 100 * self.ok / self.tests if self.tests else np.nan


@dataclass(frozen=True)
class ClassFigures:
    """A size class in a period: its ``links``, compared with the period before, and what they say.

    ``together`` is what the links have in common, None where there are none. Of the ``planned``
    links, which a mesh tests, so many were ``tested``; tests that succeeded moved ``volume`` bytes.
    ``causes`` explain the change since the period before, the most significant first.
    """

    size: str
    links: Grid
    own: GridFigures
    before: GridFigures
    together: Together | None
    planned: int
    tested: int
    volume: int
    causes: Sequence[NamedCause]

    @property
    def stale(self) -> int:
        return int((self.links.cells.state == STALE).sum())


@dataclass(frozen=True)
class ReportFigures:
    """All of it, as it stood when the period ended; ``places`` are the registered endpoints.

    ``events`` are the confirmed ones that came to pass in the period, newest first, and ``lasting``
    those from before it that went on when it ended. ``incidents`` were open at some time of it.
    """

    question: ReportQuestion
    places: Sequence[EndpointInfo]
    classes: Sequence[ClassFigures]
    events: Sequence[Event]
    lasting: Sequence[Event]
    downtimes: Sequence[DeclaredDowntime]
    incidents: Sequence[Incident]

    @property
    def main(self) -> ClassFigures:
        """Return the size class that the first sentences and the picture are of."""
        usual = [each for each in self.classes if each.size == DEFAULT_SIZE and each.own.tests]
        return (usual or sorted(self.classes, key=lambda each: -each.own.tests))[0]

    @property
    def tests(self) -> int:
        return sum(each.own.tests for each in self.classes)

    @property
    def used(self) -> list[ClassFigures]:
        """Return the size classes that are tested, or were in this period or the one before."""
        return [each for each in self.classes if each.planned + each.own.tests + each.before.tests]
