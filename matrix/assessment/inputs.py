"""What the judge reads: the tests of a size class by UTC day, and what is known of the endpoints.

Of results only tests count, without sweeps (query.filters.counted), and of these those between
registered endpoints that are no drafts, in no declared outage of either end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from django.db.models import Case, IntegerField, Value, When
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers, places_in
from matrix.statistics.assessment.grid_links import (
    BLAMES_DESTINATION,
    BLAMES_SOURCE,
    DAY_MS,
    NOBODY,
    GridLinks,
    JudgedTests,
)
from matrix.statistics.assessment.judge import BACK_DAYS
from matrix.store import data_version, runs
from matrix.store.cache import STANDINGS
from matrix.store.read_plan import LATEST, floor, moment
from sonar.database import pg_columns
from sonar.database.cursors import planned_rows
from sonar.models import Downtime, Endpoint, SizeClass, Transfer
from sonar.notation.windows import Window, unix_ms

# Raised with anything by which the same results would be judged otherwise: all days are then judged
# again.
METHOD = 4
BLAME_FIELDS = {
    "source_id": pg_columns.INTEGER,
    "destination_id": pg_columns.INTEGER,
    "started_at": pg_columns.TIME,
    "named": pg_columns.SHORT,
}
# Which end the error of a failed test names. Sonar's own faults say nothing of a link.
NAMES = {
    Transfer.Where.SOURCE: BLAMES_SOURCE,
    Transfer.Where.DESTINATION: BLAMES_DESTINATION,
    Transfer.Where.CONTROL: 3,
}
BLAMES_SONAR = NAMES[Transfer.Where.CONTROL]
FIRST = """
    SELECT min(start) FROM (
        SELECT min(start) AS start FROM sonar_segment WHERE size_class_id = %(size_class)s
        UNION ALL SELECT min(start) FROM sonar_dirtymark WHERE size_class_id = %(size_class)s
    ) AS first
"""


class OutageSpan(NamedTuple):
    """A declared outage of an endpoint (id), from and until when (Unix ms)."""

    endpoint: int
    start: int
    end: int


@dataclass(frozen=True)
class Registry:
    """What is known of endpoints, by their ids: site, and when they were retired (Unix ms)."""

    site_of: Mapping[int, int]
    retired: Mapping[int, int]
    outages: Sequence[OutageSpan]

    @classmethod
    def read(cls, now: datetime) -> Self:
        """Read it as of now, with two SQL queries."""
        rows = Endpoint.objects.listed().order_by("id").values_list("id", "site_id", "retired_at")
        site_of = {endpoint: site for endpoint, site, _ in rows}
        of_site: dict[int, list[int]] = {}
        for endpoint, site in site_of.items():
            of_site.setdefault(site, []).append(endpoint)
        stopping = Downtime.objects.filter(severity=Downtime.Severity.OUTAGE, starts_at__lte=now)
        outages = [
            OutageSpan(endpoint, unix_ms(starts_at), unix_ms(min(ends_at, LATEST)))
            for of_endpoint, site, starts_at, ends_at in stopping.order_by("starts_at", "id")
            .values_list("endpoint_id", "site_id", "starts_at", "ends_at")
            for endpoint in ([of_endpoint] if of_endpoint else of_site.get(site, []))
        ]  # fmt: skip
        retired = {endpoint: unix_ms(at) for endpoint, _, at in rows if at is not None}
        return cls(site_of, retired, outages)

    @cached_property
    def ids(self) -> NDArray[np.uint32]:
        return np.array([*self.site_of], dtype=np.uint32)

    @cached_property
    def key(self) -> int:
        return hash(self.ids.tobytes())

    def outages_in(self, start: int, end: int) -> list[OutageSpan]:
        return [each for each in self.outages if each.start < end and each.end > start]


@dataclass(frozen=True)
class DayTests:
    """The tests of a size class that started in a UTC day, by start; of those at once by link.

    ``link`` is source id << 16 | destination id, ``started`` in Unix ms, ``rate`` in bytes/s (-1 of
    a failed test), ``blamed`` as in JudgedTests.
    """

    link: NDArray[np.uint32]
    started: Integers
    rate: NDArray[np.float32]
    blamed: NDArray[np.uint8]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in vars(self).values() if hasattr(column, "nbytes"))

    @property
    def digest(self) -> str:
        """Return what changes with these tests, or with how tests are judged."""
        digest = hashlib.blake2b(digest_size=16)
        for column in (self.link, self.started, self.rate, self.blamed):
            digest.update(column.tobytes())
        return f"{METHOD}.{digest.hexdigest()}"

    def taken(self, choice: slice | Flags) -> DayTests:
        return DayTests(*(each[choice] for each in vars(self).values()))

    def until(self, end: int) -> DayTests:
        """Return those that started before a moment (Unix ms)."""
        return self.taken(slice(int(self.started.searchsorted(end))))


@dataclass(frozen=True)
class LastTests:
    """When the newest test of each link (source id << 16 | destination id) started (Unix ms)."""

    link: NDArray[np.uint32]
    started: Integers

    @property
    def nbytes(self) -> int:
        return self.link.nbytes + self.started.nbytes

    def followed_by(self, tests: DayTests) -> LastTests:
        """Return them with later tests."""
        # Of several of one link, the first is taken.
        link = np.concatenate([tests.link[::-1], self.link])
        link, first = np.unique(link, return_index=True)
        return LastTests(link, np.concatenate([tests.started[::-1], self.started])[first])


def newest_before(
    size_class: SizeClass, day: int, texts: Mapping[int, str], registry: Registry
) -> LastTests:
    """Return the newest tests in the weeks before a day (Unix ms), kept for the next reader."""
    days = [past for past in range(day - BACK_DAYS * DAY_MS, day, DAY_MS) if past in texts]
    key = ("newest tests", size_class.id, day, tuple(texts[past] for past in days), registry.key)

    def build() -> LastTests:
        newest = LastTests(np.empty(0, np.uint32), np.empty(0, np.int64))
        for past in days:
            newest = newest.followed_by(read_day(size_class, past, texts[past], registry))
        return newest

    result: LastTests = STANDINGS.get(key, build)
    return result


def first_day(size_class: SizeClass, now: datetime, keep_days: int) -> int | None:
    """Return the UTC day (Unix ms) of the first results that are kept, None without any."""
    ((start,),) = planned_rows(FIRST, {"size_class": size_class.id})
    if start is None:
        return None
    return floor(unix_ms(max(start, now - timedelta(days=keep_days))), DAY_MS)


def versions(size_class: SizeClass, days: Sequence[int], registry: Registry) -> list[str]:
    """Return of each day (Unix ms) what changes with its tests; one SQL statement.

    It may also change when they do not: when results are sealed.
    """
    windows = [Window(moment(day), moment(day + DAY_MS)) for day in days]
    texts = data_version.read_results(size_class.name, windows)
    result = []
    for day, text in zip(days, texts, strict=True):
        outages = registry.outages_in(day, day + DAY_MS)
        of_outages = hashlib.blake2b(repr(outages).encode(), digest_size=6).hexdigest()
        result.append(f"{METHOD}/{text}" + (f"/{of_outages}" if outages else ""))
    return result


def read_day(size_class: SizeClass, day: int, version: str, registry: Registry) -> DayTests:
    """Return the tests of a day, as they were in that version of it; kept for the next reader."""
    key = ("tests of a day", size_class.id, day, version, registry.key)
    result: DayTests = STANDINGS.get(key, lambda: _read_day(size_class, day, registry))
    return result


def _read_day(size_class: SizeClass, day: int, registry: Registry) -> DayTests:
    window = Window(moment(day), moment(day + DAY_MS))
    of_day = runs.read(size_class.name, window, (), links=False, offsets=True, once=True)
    keys = np.concatenate([np.empty(0, np.uint64), *(run.keys for run in of_day)])
    started = np.concatenate(
        [np.empty(0, np.int64), *(run.started(np.arange(len(run.keys))) for run in of_day)]
    )
    link = (keys >> np.uint64(32)).astype(np.uint32)
    usable = np.isin(link >> 16, registry.ids) & np.isin(link & 0xFFFF, registry.ids)
    for outage in registry.outages_in(day, day + DAY_MS):
        own = (link >> 16 == outage.endpoint) | (link & 0xFFFF == outage.endpoint)
        usable &= ~(own & (started >= outage.start) & (started < outage.end))
    keys, started, link = keys[usable], started[usable], link[usable]
    # Those of one link that started at once in the order of their rates, as the keys have them.
    order = np.lexsort((keys, started))
    link, started = link[order], started[order]
    rate = keys[order].astype(np.uint32).view(np.float32)
    blamed = np.zeros(len(link), dtype=np.uint8)
    failed = np.flatnonzero(rate < 0)
    if failed.size:
        blamed[failed] = blames(size_class, window, link[failed], started[failed])
    return DayTests(link, started, rate, blamed).taken(blamed != BLAMES_SONAR)


def blames(
    size_class: SizeClass, window: Window, link: NDArray[np.uint32], started: Integers
) -> NDArray[np.uint8]:
    """Return what the errors of failed tests of a day name (NAMES), from raw rows.

    What happened between the ends says nothing of an end. One SQL statement.
    """
    rows = Transfer.objects.filter(
        state=Transfer.State.FAILED,
        error_where__in=[*NAMES],
        size_class=size_class,
        started_at__gte=window.start,
        started_at__lt=window.end,
    ).annotate(
        named=Case(
            *(When(error_where=where, then=Value(number)) for where, number in NAMES.items()),
            output_field=IntegerField(),
        )
    )
    named = pg_columns.columns(rows, BLAME_FIELDS)
    if not len(named):
        return np.zeros(len(link), dtype=np.uint8)
    # A test and its row have the same link and start.
    start = np.int64(unix_ms(window.start))
    of_row = named["source_id"].astype(np.int64) << 16 | named["destination_id"].astype(np.int64)
    of_row = of_row * DAY_MS + pg_columns.unix_ms(named["started_at"]) - start
    of_test = link.astype(np.int64) * DAY_MS + started - start
    order = np.argsort(of_row, kind="stable")
    row = order[np.minimum(of_row.searchsorted(of_test, sorter=order), len(order) - 1)]
    return np.where(of_row[row] == of_test, named["named"][row], NOBODY).astype(np.uint8)


@dataclass(frozen=True)
class Numbered:
    """Links as the judge takes them, and what its places stand for.

    ``ids`` are the endpoints by place, ``keys`` the links (source id << 16 | destination id),
    ``sites`` the ids of sites by their numbers.
    """

    ids: Integers
    keys: Integers
    sites: Integers
    links: GridLinks

    @classmethod
    def of_links(cls, keys: Integers, registry: Registry) -> Self:
        """Number links, by keys in ascending order."""
        source, destination = keys >> 16, keys & 0xFFFF
        ids = np.union1d(source, destination)
        of_site = np.array([registry.site_of[each] for each in ids.tolist()], dtype=np.int64)
        sites, site = np.unique(of_site, return_inverse=True)
        links = GridLinks(ids.searchsorted(source), ids.searchsorted(destination), site)
        return cls(ids, keys, sites, links)

    def judged(self, days: Sequence[DayTests]) -> JudgedTests:
        """Return the tests of some days as the judge takes them."""
        rate = np.concatenate([np.empty(0, np.float32), *(each.rate for each in days)])
        link = np.concatenate([np.empty(0, np.uint32), *(each.link for each in days)])
        log_rate = np.full(len(rate), np.nan)
        np.log(rate, out=log_rate, where=rate > 0, dtype=np.float64)
        return JudgedTests(
            self.keys.searchsorted(link),
            np.concatenate([np.empty(0, np.int64), *(each.started for each in days)]),
            log_rate,
            np.concatenate([np.empty(0, np.uint8), *(each.blamed for each in days)]),
        )

    def places(self, keys: Sequence[int]) -> list[int]:
        """Return the places of links by their keys, -1 of one that is not there."""
        return [*map(int, places_in(self.keys, np.array(keys, dtype=np.int64)))]

    def pair(self, link: int) -> tuple[int, int]:
        """Return the ids of the ends of a link by its place."""
        key = int(self.keys[link])
        return key >> 16, key & 0xFFFF
