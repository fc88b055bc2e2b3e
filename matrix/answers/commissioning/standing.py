"""The states of the links of a criteria set: passed, below now, on the way, lost, or without data.

A link that has passed keeps its record until it was below for a whole period; as soon as what is
measured now is below, it counts as `below now` and not as passed.

What is measured is that of the period before the last search, so that it fits its records.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.levels.criteria import MICROSECONDS, HourSums, LinkCriteria
from matrix.store import commissioning as store
from matrix.store import registry, runs
from sonar.models import CommissioningRecord, CommissioningSearch, CriteriaSet
from sonar.models.member_filters import ENDS
from sonar.notation.endpoint_filters import EndpointFilter, fits
from sonar.notation.units import MB, format_bytes, format_count, three_digits
from sonar.notation.windows import Window, format_day, unix_ms
from sonar.registry.mesh_members import fitting, read_endpoints

STATES = ("passed", "below now", "nearly", "on the way", "lost", "no data")
# What pages call states whose values in the API do not explain themselves.
LABELS = {"nearly": "nearly passed", "on the way": "in progress"}
# What a link that has passed must go on reaching; bytes are asked for only to pass.
KEPT_UP = ("mb_s", "percent")
# From this share of what is asked for on a link has nearly passed.
NEARLY = 80
HOUR = timedelta(hours=1)


def label(state: str) -> str:
    """Return the name of a state on pages."""
    return LABELS.get(state, state)


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


class Measurement(NamedTuple):
    """What was measured of a link: tests that counted, those that succeeded, bytes, seconds."""

    tests: int = 0
    ok: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def mb_s(self) -> float | None:
        return self.bytes / self.seconds / MB if self.seconds else None

    @property
    def success_percent(self) -> float | None:
        return 100 * self.ok / self.tests if self.tests else None

    @classmethod
    def of(cls, record: CommissioningRecord) -> "Measurement":
        return cls(record.tests, record.ok, record.bytes, record.seconds)


class Criterion(NamedTuple):
    """A criterion with what is needed and what was measured, in its unit; None for no test."""

    name: str
    words: str
    needed: float
    value: float | None

    @property
    def holds(self) -> bool:
        return self.value is not None and self.value >= self.needed

    @property
    def percent(self) -> int:
        """Return how much of what is needed there is, in whole percent; 100 only if it holds."""
        share = 100 * (self.value or 0) / self.needed
        return 100 if self.holds else min(99, int(share))

    @property
    def needed_words(self) -> str:
        return self._written(self.needed)

    @property
    def value_words(self) -> str:
        return "none" if self.value is None else self._written(self.value)

    def _written(self, value: float) -> str:
        if self.name == "tests":
            return format_count(int(value))
        if self.name == "bytes":
            return format_bytes(value)
        return f"{three_digits(value)} {'MB/s' if self.name == 'mb_s' else '%'}"


def criteria(required: Mapping[str, float | None], measured: Measurement) -> list[Criterion]:
    """Return what is required, as a set or a record has it, with what was measured."""
    listed = (
        ("tests", "tests", "least_tests", measured.tests),
        ("mb_s", "rate", "least_mb_s", measured.mb_s),
        ("percent", "success rate", "least_success_percent", measured.success_percent),
        ("bytes", "volume", "least_bytes", measured.bytes),
    )
    return [
        Criterion(name, words, needed, value)
        for name, words, key, value in listed
        if (needed := required[key])
    ]


@dataclass(frozen=True)
class LinkStanding:
    """A link in a set: what is measured now, and its newest record, if it ever passed."""

    source: EndpointInfo
    destination: EndpointInfo
    measured: Measurement
    criteria: Sequence[Criterion]
    record: CommissioningRecord | None

    @property
    def has_passed(self) -> bool:
        return self.record is not None and self.record.lost_at is None

    @property
    def below(self) -> list[Criterion]:
        """Return what a link that has passed does not reach now; nothing with too few tests."""
        enough = self.has_passed and self.criteria[0].holds
        return [
            each for each in self.criteria if each.name in KEPT_UP and not each.holds and enough
        ]

    @property
    def below_words(self) -> str:
        """Say what it does not reach: `17.8 of 20.0 MB/s`; empty for nothing."""
        shortfalls = (
            f"{three_digits(each.value or 0)} of {each.needed_words}" for each in self.below
        )
        return ", ".join(shortfalls)

    @property
    def words(self) -> str:
        """Return its state in words: `nearly passed, 85 % or more of each criterion reached`."""
        if self.below and self.record:
            day = format_day(self.record.passed_at, 0)
            return f"passed on {day}, now below the criteria: {self.below_words}"
        if self.state in ("passed", "no data"):
            return self.state
        return f"{self.label}, {self.percent} % or more of each criterion reached"

    @property
    def percent(self) -> int:
        """Return the progress: that of the criterion of which there is least."""
        return min(criterion.percent for criterion in self.criteria)

    @property
    def state(self) -> str:
        if self.has_passed:
            return "below now" if self.below else "passed"
        if not self.criteria[0].value:
            return "lost" if self.record else "no data"
        if self.record:
            return "lost"
        return "nearly" if self.percent >= NEARLY else "on the way"

    @property
    def label(self) -> str:
        return label(self.state)


@dataclass(frozen=True)
class SetStanding:
    """The links of a set as of its last search, if there was one; ends by site and name."""

    row: CriteriaSet
    search: CommissioningSearch | None
    sources: Sequence[EndpointInfo]
    destinations: Sequence[EndpointInfo]
    measured: Mapping[tuple[int, int], Measurement]
    records: Mapping[tuple[int, int], CommissioningRecord]

    def link(self, source: EndpointInfo, destination: EndpointInfo) -> LinkStanding:
        ends = source.id, destination.id
        measured = self.measured.get(ends)
        of_link = criteria(self._required, measured) if measured else self._without_tests
        record = self.records.get(ends)
        return LinkStanding(source, destination, measured or Measurement(), of_link, record)

    @cached_property
    def _required(self) -> Mapping[str, float | None]:
        return self.row.required

    @cached_property
    def _without_tests(self) -> list[Criterion]:
        return criteria(self._required, Measurement())

    @cached_property
    def links(self) -> list[LinkStanding]:
        """Return all links of the set, by their ends."""
        return [
            self.link(source, destination)
            for source in self.sources
            for destination in self.destinations
            if source.id != destination.id
        ]

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(link.state for link in self.links)
        return {state: counted[state] for state in STATES}


def read(row: CriteriaSet, chosen: Mapping[str, EndpointFilter] | None = None) -> SetStanding:
    """Return how the links of a set stand; ``chosen`` has filters of `source` and `destination`.

    It reads the results of one period.
    """
    places = {place.id: place for place in registry.read_places(registry.read_versions())}
    members = Members.of(row)
    search = CommissioningSearch.objects.filter(criteria_set=row).first()
    sources, destinations = (
        sorted(
            (
                place
                for place in map(places.__getitem__, ids)
                if fits((chosen or {}).get(end, {}), place.texts)
            ),
            key=lambda place: (place.site, place.name),
        )
        for end, ids in (("source", members.sources), ("destination", members.destinations))
    )
    records = {(record.source_id, record.destination_id): record for record in store.records(row)}
    measured = measure(row, members, search.end) if search else {}
    return SetStanding(row, search, sources, destinations, measured, records)


def measure(
    row: CriteriaSet, members: Members, end: datetime
) -> dict[tuple[int, int], Measurement]:
    """Return what counts of the period up to a moment, by link, of those with tests."""
    window = Window(end - row.period_hours * HOUR, end)
    results = runs.read(row.size_class.name, window, (), offsets=True, sizes=True)
    empty = np.empty(0, np.uint32)
    links = members.links(np.unique(np.concatenate([empty, *(run.links for run in results)])))
    hours = HourSums.of(results, links, unix_ms(window.start), row.period_hours)
    counted = hours.without(Downs.read(window, members).of_links(links))
    sums = zip(*(values.sum(axis=1).tolist() for values in counted.arrays().values()), strict=True)
    return {
        ends_of(link): Measurement(tests, ok, volume, micros / MICROSECONDS)
        for link, (tests, ok, volume, micros) in zip(links.tolist(), sums, strict=True)
    }
