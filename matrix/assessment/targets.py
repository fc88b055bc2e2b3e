"""Targets: which links the expectations that people wrote are about, and what they want of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.expected import LinkRule, LinkRules
from sonar.database import pg_columns
from sonar.models import Expectation, Schedule, SizeClass
from sonar.models.member_filters import ENDS
from sonar.notation.endpoint_filters import NOT

ENDS_OF_LINKS = {"source_id": pg_columns.INTEGER, "destination_id": pg_columns.INTEGER}
# What is expected of a link that nobody has written anything about.
USUAL = Expectation(name="usual")


def read() -> list[Expectation]:
    """Read those in use, the one that counts first first. One SQL query."""
    return list(Expectation.objects.filter(enabled=True).select_related("site"))


def rules_of(size_class: SizeClass, rows: Sequence[Expectation], links: LinkIndex) -> LinkRules:
    """Say which rule counts for each link in a size class; shape (places, places).

    One SQL query for each that is of a mesh.
    """
    own = of_class(size_class, rows)
    number = np.zeros(links.shape, dtype=np.uint16)
    # The one that counts first is written last.
    for place, row in reversed([*enumerate(own, start=1)]):
        number[matching(row, size_class, links)] = place
    return LinkRules([rule_of(row) for row in (USUAL, *own)], number)


def of_class(size_class: SizeClass, rows: Sequence[Expectation]) -> list[Expectation]:
    return [row for row in rows if row.size_class_id in (None, size_class.id)]


def rule_of(row: Expectation) -> LinkRule:
    floor = float("nan") if row.floor is None else row.floor
    return LinkRule(floor, row.below, row.above, row.failures, row.silent_after)


def matching(row: Expectation, size_class: SizeClass, links: LinkIndex) -> Flags:
    """Return the links that an expectation is about."""
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


def filters_of(row: Expectation) -> Iterator[Filter]:
    """Yield its filters as those of the matrix."""
    if row.site is not None:
        yield Filter("site", row.site.name)
    for end in ENDS:
        for attribute, values in row.filter_of(end).items():
            yield from filters_at(end.removesuffix("s"), attribute, values)


def filters_at(end: str, attribute: str, values: Iterable[str]) -> Iterator[Filter]:
    for value in values:
        yield Filter(f"{end}_{attribute}", value.removeprefix(NOT), value.startswith(NOT))
