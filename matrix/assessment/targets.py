"""Targets: the links that each one matches, and the rules of a link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cell_targets import LinkRule, LinkRules
from sonar.database import pg_columns
from sonar.models import Schedule, SizeClass, Target
from sonar.models.member_filters import ENDS
from sonar.notation.endpoint_filters import NOT

ENDS_OF_LINKS = {"source_id": pg_columns.INTEGER, "destination_id": pg_columns.INTEGER}
# The rule for links that no target matches.
BASELINE = Target(name="baseline")


def read() -> list[Target]:
    """Read the enabled targets, the highest priority first. One SQL query."""
    return list(Target.objects.filter(enabled=True).select_related("site"))


def rules_of(size_class: SizeClass, rows: Sequence[Target], links: LinkIndex) -> LinkRules:
    """Return the rule of each link in a size class; shape (places, places).

    One SQL query for each target for a mesh.
    """
    own = of_class(size_class, rows)
    number = np.zeros(links.shape, dtype=np.uint16)
    # The highest priority is written last.
    for place, row in reversed([*enumerate(own, start=1)]):
        number[matching(row, size_class, links)] = place
    return LinkRules([rule_of(row) for row in (BASELINE, *own)], number)


def of_class(size_class: SizeClass, rows: Sequence[Target]) -> list[Target]:
    return [row for row in rows if row.size_class_id in (None, size_class.id)]


def rule_of(row: Target) -> LinkRule:
    floor = float("nan") if row.floor is None else row.floor
    return LinkRule(floor, row.below, row.above, row.failures, row.silent_after)


def matching(row: Target, size_class: SizeClass, links: LinkIndex) -> Flags:
    """Return the links that a target matches."""
    flags = links.passing(filters_of(row)).reshape(links.shape)
    if row.mesh_id is None:
        return flags
    ids = links.numbering.ids.tolist()
    schedules = Schedule.objects.filter(
        mesh=row.mesh_id, size_class=size_class, source__in=ids, destination__in=ids
    )
    tested = np.zeros(flags.size, dtype=bool)
    tested[links.numbers(pg_columns.columns(schedules, ENDS_OF_LINKS))] = True
    return flags & tested.reshape(links.shape)


def filters_of(row: Target) -> Iterator[Filter]:
    """Yield its filters as those of the matrix."""
    if row.site is not None:
        yield Filter("site", row.site.name)
    for end in ENDS:
        for attribute, values in row.filter_of(end).items():
            yield from filters_at(end.removesuffix("s"), attribute, values)


def filters_at(end: str, attribute: str, values: Iterable[str]) -> Iterator[Filter]:
    for value in values:
        yield Filter(f"{end}_{attribute}", value.removeprefix(NOT), value.startswith(NOT))
