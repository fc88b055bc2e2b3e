"""What is expected of each link: the rules that people wrote, and which of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.expected import Expected
from sonar.alerting.subjects import Whose
from sonar.database import pg_columns
from sonar.models import Expectation, HeldLevel, Schedule, SizeClass
from sonar.models.member_filters import ENDS
from sonar.notation.endpoint_filters import NOT

ENDS_OF_LINKS = {"source_id": pg_columns.INTEGER, "destination_id": pg_columns.INTEGER}
# What is expected of a link that nobody has written anything about.
USUAL = Expectation(name="usual")


class LinkRule(NamedTuple):
    """What is expected of some links; rates in bytes/s, fields as in the model of expectations.

    ``floor`` is NaN where the usual rate of each link is expected.
    """

    floor: float
    below: float
    above: float
    bad: int
    of: int
    failures: int
    silent_after: float


@dataclass(frozen=True)
class LinkRules:
    """The rules, and by link which of them counts; shape (places, places)."""

    rules: Sequence[LinkRule]
    number: NDArray[np.uint16]

    def each(self, name: str) -> NDArray[np.float32]:
        """Return by link what its rule says."""
        values = np.array([getattr(rule, name) for rule in self.rules], dtype=np.float32)
        return values.take(self.number)


def read() -> list[Expectation]:
    """Read those in use, the one that counts first first. One SQL query."""
    return list(Expectation.objects.filter(enabled=True).select_related("site"))


def read_held(moment: datetime) -> dict[Whose, float]:
    """Return the rates (bytes/s) that are held at a moment, by link. One SQL query."""
    held = HeldLevel.objects.filter(since__lte=moment).exclude(until__lte=moment)
    rows = held.values_list("source_id", "destination_id", "size_class_id", "rate")
    return {(source, destination, size): rate for source, destination, size, rate in rows}


def with_held(
    usual: Floats, held: Mapping[Whose, float], size_class: SizeClass, links: LinkIndex
) -> Floats:
    """Put the rates that are held in the place of what is usual, of shape (places, places)."""
    number = {place.id: at for at, place in enumerate(links.places)}
    own = [
        (number[source], number[destination], rate)
        for (source, destination, of_class), rate in held.items()
        if of_class == size_class.id and source in number and destination in number
    ]
    if not own:
        return usual
    rates = usual.copy()
    for source, destination, rate in own:
        rates[source, destination] = rate
    return rates


def expected(size_class: SizeClass, links: LinkIndex, usual: Floats, moment: datetime) -> Expected:
    """Return what is expected of each link of a size class, by its usual rate in bytes/s."""
    rules = rules_of(size_class, read(), links)
    rates = with_held(usual, read_held(moment), size_class, links)
    floor = rules.each("floor")
    rate = np.where(np.isnan(floor), rates, floor)
    return Expected(rate, rules.each("below"), rules.each("above"))


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


def counting(
    size_class: SizeClass, rows: Sequence[Expectation], links: LinkIndex, at: tuple[int, int]
) -> Expectation:
    """Return the expectation that counts for one link; USUAL, which is not kept, for none."""
    own = of_class(size_class, rows)
    return next((row for row in own if matching(row, size_class, links)[at]), USUAL)


def rule_of(row: Expectation) -> LinkRule:
    floor = float("nan") if row.floor is None else row.floor
    return LinkRule(floor, row.below, row.above, row.bad, row.of, row.failures, row.silent_after)


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
