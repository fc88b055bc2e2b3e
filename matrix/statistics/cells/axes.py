"""The endpoints of a matrix, the links between them, and the rows and columns they make."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from matrix.query.attributes import FACTS, NAME
from matrix.query.filters import LINK_FILTERS, Filter, alternatives
from matrix.statistics.arrays import Flags, Floats, Integers, nan_unless, zero_unless
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.reduce import ratio
from sonar.notation.endpoint_attributes import OF_ENDPOINTS, Value, texts_of

# So many ways to make rows or columns of the places are kept.
AXES_KEPT = 32


class PauseInfo(NamedTuple):
    """A pause of all tests of a site, or of one endpoint of it; ``endpoint`` is empty for all.

    ``until`` is None for one without an end.
    """

    site: str
    endpoint: str
    since: datetime
    until: datetime | None
    reason: str

    def lasts(self, moment: datetime) -> bool:
        return self.since <= moment and (self.until is None or moment < self.until)

    @property
    def name(self) -> str:
        return self.endpoint or self.site

    @property
    def words(self) -> str:
        if self.endpoint:
            return f"The tests of {self.endpoint} are paused"
        return f"{self.site} has paused its tests"


@dataclass(frozen=True)
class EndpointInfo:
    """An endpoint as the matrix sees it; ``facts`` by the names that records have for them.

    ``quiet_hours`` are those of its site, like `01:00-05:30`; ``pauses`` are the newest of
    its site and its own.
    Where it has no files it serves tests of the network alone: no link of the matrix leads there.
    """

    id: int
    name: str
    facts: Mapping[str, Value] = field(hash=False)
    simulated: bool
    retired: bool
    quiet_hours: str | None = None
    pauses: tuple[PauseInfo, ...] = ()
    has_files: bool = True

    @property
    def site(self) -> str:
        return cast("str", self.facts["site"])

    @property
    def tier(self) -> int:
        return cast("int", self.facts["tier"])

    @property
    def label(self) -> str:
        return cast("str", self.facts["label"])

    def value(self, key: str) -> Value:
        """Return its name, or a fact; raise KeyError for what is neither."""
        return self.name if key == NAME else self.facts[key]

    def cell(self, key: str) -> str | int:
        """Return a value as it stands in one cell of a table: several with blanks between."""
        value = self.value(key)
        return " ".join(value) if isinstance(value, tuple) else value

    def texts(self, attribute: str) -> tuple[str, ...]:
        """Return its values of an attribute that filters know."""
        return texts_of(self.value(OF_ENDPOINTS[attribute].key))

    def has(self, attribute: str, value: str) -> bool:
        return value in self.texts(attribute)

    def group_name(self, grouping: str) -> str:
        """Return the name of the row or column that it belongs to."""
        value = self.value(OF_ENDPOINTS[grouping].key)
        return f"no {grouping}" if value == "" else OF_ENDPOINTS[grouping].row.format(value)

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What answers say of it."""
        flags = {"simulated": self.simulated, "retired": self.retired}
        return {"name": self.name, **self.facts, **flags}


def pauses_of(places: Iterable[EndpointInfo], moment: datetime) -> list[PauseInfo]:
    """Return the pauses that last, of places in use, those of a whole site first."""
    in_use = (place for place in places if not place.retired)
    return sorted({pause for place in in_use for pause in place.pauses if pause.lasts(moment)})


@dataclass(frozen=True)
class AxisGroup:
    """A row or column: one endpoint, or those that share what rows or columns are made by.

    A fact that its endpoints do not share is None.
    """

    name: str
    facts: Mapping[str, Value | None] = field(hash=False)
    simulated: bool

    @property
    def site(self) -> str | None:
        return cast("str | None", self.facts["site"])

    @property
    def cloud(self) -> str | None:
        return cast("str | None", self.facts["cloud"])

    @property
    def tier(self) -> int | None:
        return cast("int | None", self.facts["tier"])

    @property
    def label(self) -> str | None:
        return cast("str | None", self.facts["label"])

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What answers say of it."""
        return {"name": self.name, **self.facts, "simulated": self.simulated}

    @classmethod
    def of(cls, name: str, members: Sequence[EndpointInfo]) -> Self:
        if len(members) == 1:
            return cls(name, members[0].facts, members[0].simulated)
        facts = {
            key: values.pop() if len(values) == 1 else None
            for key in FACTS
            for values in [{place.facts[key] for place in members}]
        }
        return cls(name, facts, simulated=any(place.simulated for place in members))


@dataclass(frozen=True)
class Axis:
    """The rows or the columns. ``of`` gives the group of each place, -1 for those not shown.

    ``order`` are the shown places group by group, ``starts`` where in it each group begins.
    """

    groups: tuple[AxisGroup, ...]
    of: Integers
    order: Integers
    starts: Integers

    @classmethod
    def along(cls, places: Sequence[EndpointInfo], shown: Flags, grouping: str) -> Self:
        """Group the shown places, in the order of the groups' names."""
        members: dict[str, list[int]] = {}
        for index in np.flatnonzero(shown).tolist():
            members.setdefault(places[index].group_name(grouping), []).append(index)
        names = sorted(members, key=str.casefold)
        sizes = [len(members[name]) for name in names]
        order = np.array([index for name in names for index in members[name]], dtype=np.int64)
        of = np.full(len(places), -1, dtype=np.int64)
        of[order] = np.repeat(np.arange(len(names)), sizes)
        starts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
        for shared in (of, order, starts):
            shared.flags.writeable = False
        groups = tuple(AxisGroup.of(name, [places[at] for at in members[name]]) for name in names)
        return cls(groups, of, order, starts)

    @cached_property
    def single(self) -> bool:
        return len(self.order) == len(self.groups)

    @cached_property
    def _in_order(self) -> bool:
        return np.array_equal(self.order, np.arange(len(self.of)))

    def pool(self, by: np.ufunc, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Make one of the values of each group's places: their minimum, say."""
        if not self._in_order:
            values = values.take(self.order, axis)
        return values if self.single else by.reduceat(values, self.starts, axis)


class Layout:
    """In which row and which column each place is, and so in which cell each link."""

    rows: Axis
    columns: Axis

    def pool(self, by: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Make one of the values of each cell's links; it may be the array that is given."""
        return self.columns.pool(by, self.rows.pool(by, values, 0), 1)

    def mean(self, values: NDArray[np.floating[Any]], counted: Flags) -> Floats:
        """Return the mean of the values of each cell's links that are counted, NaN of none."""
        values = values.astype(np.float64, copy=False)
        return self.alone(values, counted) if self._single else ratio(*self._sums(values, counted))

    def alone(self, values: NDArray[Any], counted: Flags) -> NDArray[Any]:
        """Return the value of the only link of each cell that is counted, NaN of none or more."""
        if self._single:
            return self.pool(np.add, nan_unless(counted, values))
        total, links = self._sums(values, counted)
        return nan_unless(links == 1, total)

    @property
    def _single(self) -> bool:
        return self.rows.single and self.columns.single

    def _sums(self, values: NDArray[Any], counted: Flags) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return by cell the sum of what is counted, and how many links that is of."""
        links = self.pool(np.add, counted.astype(np.int32))
        return self.pool(np.add, zero_unless(counted, values)), links

    def cells_of(self, numbers: Integers) -> Integers:
        """Return the flat places of the cells of applicable links, given by their numbers."""
        source, destination = np.divmod(numbers, len(self.rows.of))
        return self.rows.of[source] * len(self.columns.groups) + self.columns.of[destination]


@dataclass(frozen=True)
class LinkIndex:
    """All ordered pairs of places, numbered ``source * len(places) + destination``.

    Places are in the order of their ids.
    """

    places: tuple[EndpointInfo, ...]

    @cached_property
    def numbering(self) -> Numbering:
        return Numbering(np.array([place.id for place in self.places], dtype=np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), len(self.places)

    @cached_property
    def _axes(self) -> Callable[[bytes, str], Axis]:
        @lru_cache(maxsize=AXES_KEPT)
        def along(shown: bytes, grouping: str) -> Axis:
            return Axis.along(self.places, np.frombuffer(shown, dtype=bool), grouping)

        return along

    def axis(self, shown: Flags, grouping: str) -> Axis:
        """Group the shown places as Axis.along does; what matrices ask for is made once."""
        return self._axes(shown.tobytes(), grouping)

    def numbers(self, rows: NDArray[np.void]) -> Integers:
        """Return the links of records that carry source_id and destination_id.

        A place that is not known (registered just now) gives link 0, which is never shown:
        it leads from the first place to itself.
        """
        ids = self.numbering.ids
        source, destination = (
            np.searchsorted(ids, rows[name]) for name in ("source_id", "destination_id")
        )
        is_known = np.isin(rows["source_id"], ids) & np.isin(rows["destination_id"], ids)
        return np.where(is_known, source * len(ids) + destination, 0)

    def touched(self, links: Flags) -> tuple[Flags, Flags]:
        """Return the places that at least one of these links starts from, and goes to."""
        square = links.reshape(self.shape)
        return np.asarray(square.any(axis=1)), np.asarray(square.any(axis=0))

    def idle(self, allowed: Flags, applicable: Flags) -> tuple[str, ...]:
        """Name the places in use that have an allowed link, and none that is applicable."""
        used = np.logical_or(*self.touched(applicable))
        unused = np.logical_or(*self.touched(allowed)) & ~used
        places = (self.places[index] for index in np.flatnonzero(unused))
        return tuple(place.name for place in places if not place.retired)

    def ends(self, flags: Iterable[bool], end: str = "") -> Flags:
        """Return the links whose source, destination, or (for no end) one of both is flagged."""
        size = len(self.places)
        flagged = np.fromiter(flags, dtype=bool, count=size)
        sources: Flags = np.repeat(flagged, size)
        destinations: Flags = np.tile(flagged, size)
        if end == "source":
            return sources
        return destinations if end == "destination" else sources | destinations

    def touching(self, ids: Container[int]) -> Flags:
        """Return which links have one of these endpoints at an end; shape (places, places)."""
        return self.ends(place.id in ids for place in self.places).reshape(self.shape)

    def matching(self, filters: Iterable[Filter]) -> Flags:
        """Return the links that pass the filters on ends, and on which files can move."""
        return self.passing(filters) & self._possible

    @cached_property
    def _possible(self) -> Flags:
        possible = ~self.ends(not place.has_files for place in self.places)
        possible &= ~np.eye(len(self.places), dtype=bool).ravel()
        return possible

    def passing(self, filters: Iterable[Filter]) -> Flags:
        """Return the pairs of places that pass the filters on ends."""
        passing = np.ones(len(self.places) ** 2, dtype=bool)
        for options in alternatives(filters, LINK_FILTERS):
            attribute, values = options[0].attribute, {option.value for option in options}
            hits = (not values.isdisjoint(place.texts(attribute)) for place in self.places)
            flags = self.ends(hits, options[0].end)
            passing &= ~flags if options[0].exclude else flags
        return passing
