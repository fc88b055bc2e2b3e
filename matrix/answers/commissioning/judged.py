"""What judging the links of a criteria set needs: its criteria, its links, and their downtimes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.levels.criteria import LinkCriteria
from matrix.store import commissioning as store
from sonar.models import CriteriaSet
from sonar.models.member_filters import ENDS
from sonar.notation.units import MB
from sonar.notation.windows import Window
from sonar.registry.mesh_members import fitting, read_endpoints


@dataclass(frozen=True)
class Members:
    """The ids of the endpoints in use that a set judges, as sources and as destinations."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]

    @classmethod
    def of(cls, row: CriteriaSet) -> Self:
        """Read them. One SQL query."""
        endpoints = read_endpoints()
        fit = [fitting(row.filter_of(end), endpoints) for end in ENDS]
        return cls(*(tuple(each.id for each in at_end) for at_end in fit))

    def links(self, tested: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return those of some links, as keys have them, that the set judges."""
        of_sources = np.isin(tested >> 16, self.sources)
        return tested[of_sources & np.isin(tested & 0xFFFF, self.destinations)]


def criteria_of(row: CriteriaSet) -> LinkCriteria:
    return LinkCriteria(
        row.period_hours,
        row.least_tests,
        (row.least_mb_s or 0) * MB,
        row.least_success_percent or 0,
        row.least_bytes or 0,
    )


@dataclass(frozen=True)
class Downs:
    """In which hours endpoints were declared down; ``ids`` ascend, shape (endpoints, hours)."""

    ids: Integers
    hours: Flags

    @classmethod
    def read(cls, window: Window, members: Members) -> Self:
        ids = sorted({*members.sources, *members.destinations})
        return cls(np.array(ids, dtype=np.int64), store.hours_down(window, ids))

    def of_links(self, links: NDArray[np.uint32]) -> Flags:
        """Say in which hours either end of each link was."""
        ends = (links >> 16, links & 0xFFFF)
        source, other = (self.hours[self.ids.searchsorted(end)] for end in ends)
        return np.asarray(source | other)


def ends_of(link: int) -> tuple[int, int]:
    """Return the ids of the source and the destination of a link, as keys have it."""
    return link >> 16, link & 0xFFFF
