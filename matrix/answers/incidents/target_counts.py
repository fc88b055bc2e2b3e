"""Count the links that a target matches now, and those below, near and above it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.answers.incidents import target_rates
from matrix.answers.matrix import standing
from matrix.answers.site.reports import ENDS, Report, at_end
from matrix.assessment import targets
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cell_targets import ABOVE, BELOW, NEAR, UNKNOWN, TargetRates
from matrix.statistics.cells.states import DOWN
from matrix.store import registry
from sonar.models import SizeClass, Target


@dataclass(frozen=True)
class LinksNow:
    """How many links, each by its worst size class; the rest of ``links`` has no rate now."""

    links: int
    below: int
    near: int
    above: int


@dataclass(frozen=True)
class ClassRates:
    """The links of a size class that meshes test; arrays of shape (places, places).

    ``now`` and ``usual`` are in bytes/s; what is held is in the place of what is usual.
    """

    size_class: SizeClass
    links: LinkIndex
    tested: Flags
    now: Floats
    usual: Floats

    @classmethod
    def read_all(cls, now: datetime) -> list[Self]:
        """Read all size classes; what is kept for other pages is read from there."""
        version = registry.read_versions()
        links = registry.read_links(version)
        held = target_rates.read_held(now)
        possible = links.matching(()).reshape(links.shape)
        classes = []
        size_classes, window = list(SizeClass.objects.all()), MatrixQuery().window_at(now)
        marks = standing.read_marks([each.name for each in size_classes], window, now, links)
        for size_class in size_classes:
            query = MatrixQuery(size=size_class.name)
            every = registry.read_promises(query, links, version).reshape(links.shape)
            of_class = marks[query.size]
            stand = standing.read(query.size, (), window, now, links, marks=of_class)
            usual = target_rates.with_held(stand.usual, held, size_class, links)
            rates = np.where(stand.failing, np.nan, stand.now)
            classes.append(cls(size_class, links, np.isfinite(every) & possible, rates, usual))
        return classes

    def against(self, row: Target) -> tuple[Flags, NDArray[np.uint8]]:
        """Return which links a target matches, and how each compares with it (AGAINST)."""
        matched = targets.matching(row, self.size_class, self.links) & self.tested
        rate = np.full_like(self.usual, row.floor) if row.floor else self.usual
        of_each = [np.full(rate.shape, part, dtype=np.float32) for part in (row.below, row.above)]
        return matched, np.where(matched, TargetRates(rate, *of_each).against(self.now), UNKNOWN)


def counted(row: Target, classes: Sequence[ClassRates]) -> LinksNow:
    """Count the links that a target matches, whether or not it is enabled.

    One SQL query for each size class if the target is for a mesh.
    """
    own = [each for each in classes if row.size_class_id in (None, each.size_class.id)]
    if not own:
        return LinksNow(0, 0, 0, 0)
    parts = [each.against(row) for each in own]
    matched = np.logical_or.reduce([flags for flags, _ in parts])
    worst = np.maximum.reduce([levels for _, levels in parts])
    links = int(np.count_nonzero(matched))
    return LinksNow(links, *(int(np.count_nonzero(worst == kind)) for kind in (BELOW, NEAR, ABOVE)))


def below_of(report: Report) -> tuple[int, int]:
    """Return how many links of a site are below target, and of how many this is known.

    The counts are those of the matrix of these links. Three SQL queries, and one for each target
    for a mesh.
    """
    links, standings = LinkIndex(report.all_endpoints), report.standings_of_links
    size_class = SizeClass.objects.get(name=report.query.size)
    targets_now = target_rates.read_target_rates(size_class, links, standings.usual, report.moment)
    against = targets_now.against(np.where(standings.failing, np.nan, standings.now))
    place = {each.name: at for at, each in enumerate(links.places)}
    matrix = report.links
    rows, columns = (
        [place[group.name] for group in side] for side in (matrix.sources, matrix.destinations)
    )
    own = np.logical_or(*(at_end(matrix, end, report.name) for end in ENDS))
    shown = own & (matrix.cells.ok > 0) & (matrix.cells.state != DOWN)
    levels = against[np.ix_(rows, columns)] * shown
    return int(np.count_nonzero(levels == BELOW)), int(np.count_nonzero(levels))
