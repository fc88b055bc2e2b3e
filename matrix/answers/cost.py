"""What tests of an endpoint cost in a mesh, and what they would let people notice."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from matrix.statistics.cells.standing import FEWEST_SUCCESSES
from matrix.statistics.samples.newest import NEWEST
from sonar.models import Endpoint, Mesh
from sonar.registry.cost import estimate
from sonar.registry.cost.figures import ClassCost, Cost
from sonar.registry.cost.rates import DAY


@dataclass(frozen=True)
class Noticed:
    """Within what time a link's trouble is noticed by tests of one size class, in seconds.

    ``slowdown_seconds`` is for a rate that halves, which the newest successes must agree on;
    ``failing_seconds`` for a link that fails each test. ``usual_seconds`` is when there are first
    enough results to say what is usual for it: of whole UTC days. None for never.
    """

    size: str
    slowdown_seconds: float | None
    failing_seconds: float | None
    usual_seconds: float | None


@dataclass(frozen=True)
class CostAnswer:
    """What it costs, with what would be noticed by size class in the order of `cost.classes`."""

    cost: Cost
    noticed: tuple[Noticed, ...]


def of_endpoint(
    endpoint: Endpoint,
    mesh: Mesh,
    now: datetime,
    *,
    every: Mapping[str, int] | None = None,
    partners: Collection[int] | None = None,
) -> CostAnswer:
    """Answer for an endpoint that joins a mesh (sonar.registry.cost.estimate). Six SQL queries."""
    return _answer(estimate.of_endpoint(endpoint, mesh, now, every=every, partners=partners))


def of_mesh(
    mesh: Mesh,
    now: datetime,
    *,
    ends: Mapping[str, Collection[int]] | None = None,
    every: Mapping[str, int] | None = None,
) -> CostAnswer:
    """Answer for a mesh as it would be saved, likewise."""
    return _answer(estimate.of_mesh(mesh, now, ends=ends, every=every))


def _answer(cost: Cost) -> CostAnswer:
    return CostAnswer(cost, tuple(noticed_by(each) for each in cost.classes))


def noticed_by(tests: ClassCost) -> Noticed:
    """Return what tests as often as these let people notice: at worst it began after a test."""
    between = tests.seconds_between_tests
    if between is None:
        return Noticed(tests.name, None, None, None)
    judged = NEWEST * between
    return Noticed(tests.name, judged, judged, FEWEST_SUCCESSES * between + DAY)
