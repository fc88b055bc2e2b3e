"""Which source, destination, site or link explains what a comparison shows, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matrix.answers.causes.attribution import Attribution
from matrix.answers.causes.words import LOOK, VERBS, links
from matrix.statistics.axes import AxisGroup
from matrix.statistics.naming import Cause, name_causes
from sonar.units import format_chance, format_factor


@dataclass(frozen=True)
class NamedCause:
    """A cause of a change: the groups that it is about, and a sentence to quote.

    ``kind`` is `slow` or `fast`; a source has no ``destination``, and the other way round.
    """

    cause: Cause
    source: AxisGroup | None
    destination: AxisGroup | None
    kind: str
    sentence: str

    @property
    def site(self) -> str:
        """Return the site that it is about; nothing for a link, which has two."""
        group = self.source or self.destination
        return "" if self.cause.kind == "link" or group is None else group.site or ""


def named(attribution: Attribution) -> list[NamedCause]:
    """Name what explains the ratios of a comparison, the most certain first; none without one."""
    grid, model = attribution.grid, attribution.model
    if grid.comparison is None or grid.other is None:
        return []
    groups = *grid.sources, *grid.destinations
    counts = grid.comparison.ok, grid.comparison.other_ok
    few = [np.maximum(count, 1) for count in counts]
    causes = name_causes(
        np.where(np.isnan(model.rest), np.nan, model.fitted + model.rest),
        sites=[group.site or group.name for group in groups],
        endpoints=[group.name for group in groups],
        spread=np.sqrt(1 / few[0] + 1 / few[1]),
    )
    return [named_cause(cause, attribution, grid.other.words) for cause in causes]


def named_cause(cause: Cause, attribution: Attribution, other: str) -> NamedCause:
    source = group_at(attribution.grid.sources, cause.row)
    destination = group_at(attribution.grid.destinations, cause.column)
    kind = "slow" if cause.factor < 1 else "fast"
    factor = format_factor(cause.factor, cause.low, cause.high)
    evidence = f"n = {links(cause.n)}, {format_chance(cause.p)}"
    sentence = f"{subject(cause, source, destination)} at {factor} of {other} ({evidence})"
    if kind == "slow":
        sentence += f": {advice(cause)}"
    return NamedCause(cause, source, destination, kind, f"{sentence}.")


def group_at(groups: Sequence[AxisGroup], at: int | None) -> AxisGroup | None:
    return None if at is None else groups[at]


def subject(cause: Cause, source: AxisGroup | None, destination: AxisGroup | None) -> str:
    """Say what changed, up to the factor: `RAL sends`."""
    if cause.kind == "link" and source and destination:
        return f"Only the link from {source.name} to {destination.name} moves"
    group = source or destination
    name = "" if group is None else group.name
    if cause.kind == "site" and group is not None:
        name = f"All of {group.site or group.name}"
    doing = [VERBS[end] for end, side in (("source", source), ("destination", destination)) if side]
    return f"{name} {' and '.join(doing)}"


def advice(cause: Cause) -> str:
    if cause.kind == "link":
        return "look at the path between them"
    if cause.row is not None and cause.column is not None:
        return LOOK["both"]
    return LOOK["source" if cause.row is not None else "destination"]
