"""What is expected of each link: the rules that people wrote, and which of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.incidents.link_states import LinkRule, LinkRules
from sonar.models import Expectation, Schedule, SizeClass
from sonar.models.member_filters import ENDS
from sonar.notation.endpoint_filters import NOT

# What is expected of a link that nobody has written anything about.
USUAL = Expectation(name="usual")


def read() -> list[Expectation]:
    """Read those in use, the one that counts first first. One SQL query."""
    in_use = Expectation.objects.filter(enabled=True)
    return list(in_use.select_related("site").order_by("-priority", "name"))


def rules_of(size_class: SizeClass, rows: Sequence[Expectation], links: LinkIndex) -> LinkRules:
    """Say which rule counts for each link in a size class; shape (places, places).

    One SQL query for each that is of a mesh.
    """
    own = [row for row in rows if row.size_class_id in (None, size_class.id)]
    number = np.zeros(links.shape, dtype=np.uint16)
    # The one that counts first is written last.
    for place, row in reversed([*enumerate(own, start=1)]):
        number[matching(row, size_class, links)] = place
    return LinkRules([rule_of(row) for row in (USUAL, *own)], number)


def rule_of(row: Expectation) -> LinkRule:
    floor = float("nan") if row.floor is None else row.floor
    return LinkRule(floor, row.below, row.above, row.bad, row.of, row.failures, row.silent_after)


def matching(row: Expectation, size_class: SizeClass, links: LinkIndex) -> Flags:
    """Return the links that an expectation is about."""
    flags = links.passing(filters_of(row)).reshape(links.shape)
    if row.mesh_id is None:
        return flags
    tested = np.zeros(links.shape, dtype=bool)
    schedules = Schedule.objects.filter(mesh=row.mesh_id, size_class=size_class)
    ids = np.array(list(schedules.values_list("source_id", "destination_id")), dtype=np.int64)
    if ids.size:
        places = np.searchsorted(links.numbering.ids, ids)
        tested[places[:, 0], places[:, 1]] = True
    return flags & tested


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
