"""How the links of a size class are now, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

import numpy as np

from matrix.answers.incidents import expectations
from matrix.answers.incidents.grid_now import GridNow
from matrix.answers.matrix.standing import ResultsOfLinks
from matrix.assessment import targets
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells import standing
from matrix.statistics.incidents.link_states import LinkStates, LinkTimes
from matrix.statistics.incidents.naming import NamedFault, name_faults
from matrix.statistics.incidents.shared_ends import GRID, Place
from matrix.store import data_version, registry
from matrix.store.read_plan import moment
from sonar.alerting.evaluation import FoundCause, FoundLink
from sonar.alerting.subjects import Subject
from sonar.models import (
    Incident,
    SizeClass,
)
from sonar.notation.windows import Window

# The first moment that tests show is that of an early one of them: some are slow by chance.
EARLY = 0.25


@dataclass(frozen=True)
class ClassNow:
    """How the links of a size class are now."""

    size_class: SizeClass
    states: LinkStates
    faults: Sequence[NamedFault]
    usual: Floats
    grid: GridNow

    @classmethod
    def read(cls, size_class: SizeClass, grid: GridNow) -> ClassNow:
        """Read the newest tests of a class; what whole days tell is kept from run to run."""
        states, usual = judged(size_class, grid)
        return cls(size_class, states, name_faults(states, grid.sites), usual, grid)

    def causes(self) -> Iterator[FoundCause]:
        for fault in self.faults:
            yield self.cause(fault)

    def cause(self, fault: NamedFault) -> FoundCause:
        """Return a fault with ids in the place of places."""
        links = np.argwhere(fault.links)
        members = [] if fault.place.level == "grid" else [*self.members(fault)]
        return FoundCause(
            subject=self.subject(fault.place),
            condition=fault.condition,
            began_at=self.began(fault),
            links=len(links),
            of_links=fault.of_links,
            sizes=(self.size_class.name,),
            factor=known_number(fault.factor),
            low=known_number(fault.low),
            high=known_number(fault.high),
            members=members,
        )

    def subject(self, place: Place) -> Subject:
        ids = self.grid.ids
        site = None
        if place.site is not None:
            site = self.grid.site_ids[ids[self.grid.sites.index(place.site)]]
        source, destination = (
            None if end is None else ids[end] for end in (place.source, place.destination)
        )
        return Subject(place.level, source, destination, site)

    def members(self, fault: NamedFault) -> Iterator[FoundLink]:
        ids, where = self.grid.ids, np.nonzero(fault.links)
        states, slow = self.states, fault.condition == Incident.Condition.SLOW
        columns = (states.since, states.expected, states.rate)
        rows = zip(*where, *(values[where].tolist() for values in columns), strict=True)
        for source, destination, since, expected, rate in rows:
            yield FoundLink(
                whose=(ids[source], ids[destination], self.size_class.id),
                condition=fault.condition,
                since=moment(since),
                expected=known_number(expected) if slow else None,
                rate=known_number(rate) if slow else None,
            )

    def began(self, fault: NamedFault) -> datetime:
        """Return when the tests that show it began: the first failure after the last success."""
        since = self.states.since[fault.links]
        if not since.size:
            return self.grid.now
        is_of_grid = fault.place == GRID
        if fault.condition == Incident.Condition.FAILING and not is_of_grid:
            last_ok = int(self.states.last_ok[fault.links].max())
            after = since[since > last_ok]
            return moment(int((after if after.size else since).min()))
        return moment(int(np.quantile(since, EARLY)))


def judged(size_class: SizeClass, grid: GridNow) -> tuple[LinkStates, Floats]:
    """Return how the links of a class are, and their usual rates, of which some are held."""
    midnight = datetime.combine(grid.now, time(), UTC)
    window = Window(midnight, grid.now + timedelta(minutes=1))
    usual_days = standing.usual_window(window)
    recent_days, rest = standing.recent_windows(window, grid.now)
    of_usual, of_recent = data_version.read_results(size_class.name, [usual_days, recent_days])
    results = ResultsOfLinks.of(size_class.name, (), grid.links)
    numbering = grid.links.numbering
    newest = results.newest(recent_days, rest, of_recent, numbering)
    usual = results.usual(usual_days, of_usual, numbering)
    median = expectations.with_held(usual.median, grid.held, size_class, grid.links)
    query = MatrixQuery(size=size_class.name)
    every = registry.read_promises(query, grid.links, grid.version).reshape(grid.links.shape)
    states = LinkStates.of(
        newest,
        replace(usual, median=median),
        targets.rules_of(size_class, grid.expectations, grid.links),
        LinkTimes(grid.now.timestamp(), grid.free_since, every, grid.testable),
        numbering,
    )
    return states, median


def known_number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
