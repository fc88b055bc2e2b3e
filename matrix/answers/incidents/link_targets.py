"""The rate targets of one link, its rates now, and its accepted baselines: for its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import numpy as np

from matrix.answers.incidents import target_rates
from matrix.answers.link.directions import Direction
from matrix.assessment import targets
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cell_targets import AGAINST, TargetRates
from sonar.models import HeldLevel, HistoryEntry, SizeClass, Target
from sonar.notation.units import MB

MOST = 20
# States in which a link has no rate now, whatever it had before.
NO_RATE = ("failing", "failed", "down", "untested")


@dataclass(frozen=True)
class ClassTarget:
    """The target of a link in a size class; rates in bytes/s, NaN where unknown.

    ``against`` is one of AGAINST; ``row`` is not stored if no target matches the link.
    """

    size_class: SizeClass
    row: Target
    rate: float
    now: float
    held: HeldLevel | None

    @property
    def against(self) -> str:
        parts = [np.array(part, dtype=np.float32) for part in (self.row.below, self.row.above)]
        return AGAINST[int(TargetRates(np.array(self.rate), *parts).against(np.array(self.now)))]


@dataclass(frozen=True)
class LinkTargets:
    """``accepted`` is what people took for normal, each with the size class."""

    classes: list[ClassTarget]
    accepted: list[tuple[HistoryEntry, str]]

    @classmethod
    def read(cls, directions: Sequence[Direction], moment: datetime) -> Self:
        """Read it of a link in some size classes.

        Four SQL queries, and one for each target for a mesh.
        """
        source, destination = directions[0].source, directions[0].destination
        links = LinkIndex(tuple(sorted((source, destination), key=lambda place: place.id)))
        at = links.places.index(source), links.places.index(destination)
        rows = targets.read()
        levels = HeldLevel.objects.filter(
            source=source.id, destination=destination.id, since__lte=moment
        ).exclude(until__lte=moment)
        held = {level.size_class_id: level for level in levels.select_related("by")}
        sizes, classes = {row.name: row for row in SizeClass.objects.all()}, []
        for each in directions:
            size_class = sizes[each.size]
            row = target_rates.counting(size_class, rows, links, at)
            level = held.get(size_class.id)
            usual = level.rate if level else each.usual * MB
            now = np.nan if each.state in NO_RATE else each.now * MB
            classes.append(ClassTarget(size_class, row, row.floor or usual, now, level))
        accepted = HistoryEntry.objects.filter(
            kind=HistoryEntry.Kind.BASELINE,
            name__startswith=f"{source.name} → {destination.name}, ",
        ).order_by("-at", "-id")
        return cls(classes, [(each, each.name.rpartition(", ")[2]) for each in accepted[:MOST]])
