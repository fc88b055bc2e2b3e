"""What the matrix reads of registry and schedule: once for each version of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar, cast

import numpy as np
from cachetools import LRUCache, TTLCache
from django.db import connection
from django.db.models import F, Q
from numpy.typing import NDArray

from matrix.query.attributes import FACTS, OF_PROFILES
from matrix.query.filters import Filter, alternatives
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex, PauseInfo
from matrix.store import data_version
from matrix.store.cache import Kept
from matrix.store.data_version import DataVersion
from matrix.store.profiles import condition
from sonar.database import pg_columns
from sonar.models import AllTests, Endpoint, Mesh, Schedule
from sonar.models.fields import quiet_words
from sonar.movers.catalogue import carries_files

T = TypeVar("T")

# What a mesh promises are transfers with these values, made as these columns of it say.
PROMISED = {
    name: attribute.promised for name, attribute in OF_PROFILES.items() if attribute.promised
}
MESH_FIELDS = {name: attribute.mesh for name, attribute in OF_PROFILES.items() if attribute.mesh}
NO_PRIORITY = -1
PAUSE = ("paused_since", "paused_until", "pause_reason")
SITE_PAUSE = tuple(f"site__{column}" for column in PAUSE)
TESTING_TIMES = ("site__quiet_from", "site__quiet_until", *SITE_PAUSE, *PAUSE)
# Newest hour first, until one has a result: a mark may stand for one that was deleted.
LAST = """
    SELECT last FROM (
        SELECT DISTINCT start FROM (
            SELECT size_class_id, level, start FROM sonar_segment
            UNION ALL SELECT size_class_id, level, start FROM sonar_dirtymark) AS buckets
        WHERE level = 'hour'
          AND size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
        ORDER BY start DESC) AS hours
    CROSS JOIN LATERAL (
        SELECT max(started_at) AS last FROM sonar_transfer
        WHERE size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
          AND profile_id NOT IN (SELECT id FROM sonar_profile WHERE origin <> 'test')
          AND state <> 'lost' AND started_at >= hours.start
          AND started_at < hours.start + interval '1 hour') AS newest
    WHERE last IS NOT NULL ORDER BY hours.start DESC LIMIT 1
"""


def read_versions() -> DataVersion:
    """Read the versions of both; whoever reads them first gets data as new as that, or newer."""
    return data_version.fetch(data_version.PLANNED)


@dataclass(frozen=True)
class MeshPromises:
    """What the meshes do with each link in one size class; read-only arrays, numbered as Links.

    ``every`` is the shortest interval in seconds at which one tests it, else infinity;
    ``priority`` the highest of those that test it, else NO_PRIORITY.
    """

    every: Floats
    priority: NDArray[np.int16]

    @classmethod
    def blank(cls, links: LinkIndex) -> Self:
        size = len(links.places) ** 2
        return cls(np.full(size, np.inf), np.full(size, NO_PRIORITY, dtype=np.int16))


_places: Kept[tuple[EndpointInfo, ...]] = Kept(LRUCache(2))
_links: Kept[LinkIndex] = Kept(LRUCache(2))
# 10 MB each at 1,000 endpoints.
_plans: Kept[MeshPromises] = Kept(LRUCache(8))


def read_places(version: DataVersion) -> tuple[EndpointInfo, ...]:
    """Return every endpoint but drafts, in the order of ids that Links needs."""
    return _places.get(version.registry, _read_places)


def read_links(version: DataVersion) -> LinkIndex:
    """Return the links between all endpoints, with what is kept of their rows and columns."""
    return _links.get(version.registry, lambda: LinkIndex(read_places(version)))


def _read_places() -> tuple[EndpointInfo, ...]:
    columns = [column for attribute in FACTS.values() for column in attribute.columns]
    rows = Endpoint.objects.listed().order_by("id").annotate(retired=Q(retired_at__isnull=False))
    return tuple(
        EndpointInfo(
            row["id"],
            row["name"],
            {
                key: attribute.value([row[column] for column in attribute.columns])
                for key, attribute in FACTS.items()
            },
            row["simulated"],
            row["retired"],
            quiet_words(row["site__quiet_from"], row["site__quiet_until"]),
            # The newest pauses of a site and of its endpoint, whether they last or not.
            tuple(
                PauseInfo(row["site__name"], endpoint, *(row[column] for column in pause))
                for endpoint, pause in (("", SITE_PAUSE), (row["name"], PAUSE))
                if row[pause[0]]
            ),
            has_files=carries_files(row["base_url"]),
        )
        for row in rows.values(
            *("id", "name", "simulated", "retired", "base_url", "site__name"),
            *TESTING_TIMES,
            *columns,
        )
    )


def read_promises(query: MatrixQuery, links: LinkIndex, version: DataVersion) -> Floats:
    """Return the shortest interval in seconds at which a mesh tests each link, else infinity."""
    return read_plan(query, links, version).every


def read_plan(query: MatrixQuery, links: LinkIndex, version: DataVersion) -> MeshPromises:
    """Return what the meshes promise in the size class of the query.

    Only meshes that pass the filters promise anything: where the question is for results
    made otherwise, a link without any is not called untested. ``links`` are those of the
    same version.
    """
    if not asks_for_tests(query.filters):
        return MeshPromises.blank(links)
    filters = tuple(option for option in query.filters if option.parameter in MESH_FIELDS)
    key = (version.plan, len(links.places), query.size, filters)
    return _plans.get(key, lambda: _read_plan(query.size, filters, links))


def _read_plan(size: str, filters: Iterable[Filter], links: LinkIndex) -> MeshPromises:
    schedules = Schedule.objects.filter(size_class__name=size)
    if meshes := condition(filters, MESH_FIELDS):
        schedules = schedules.filter(mesh__in=Mesh.objects.filter(meshes).values("id"))
    fields = {
        "source_id": pg_columns.INTEGER,
        "destination_id": pg_columns.INTEGER,
        "every_seconds": pg_columns.SHORT,
        "priority": pg_columns.SHORTEST,
    }
    rows = pg_columns.columns(schedules.annotate(priority=F("mesh__priority")), fields)
    plan, numbers = MeshPromises.blank(links), links.numbers(rows)
    np.minimum.at(plan.every, numbers, rows["every_seconds"])
    np.maximum.at(plan.priority, numbers, rows["priority"].astype(np.int16))
    retired = links.ends(place.retired for place in links.places)
    plan.every[retired], plan.priority[retired] = np.inf, NO_PRIORITY
    plan.every.flags.writeable = plan.priority.flags.writeable = False
    return plan


def asks_for_tests(filters: Iterable[Filter]) -> bool:
    """Say whether the filters let tests pass that ran without concurrent tests.

    No mesh promises concurrent tests.
    """
    return all(
        any(
            option.value in (PROMISED[option.parameter], OF_PROFILES[option.parameter].every)
            for option in options
        )
        != options[0].exclude
        for options in alternatives(filters, PROMISED)
    )


def read_last(size: str) -> datetime | None:
    """Return when the newest test of a size class started.

    The hours that have a segment or a mark say where to look: all rows of a class that was
    last measured long ago may be millions.
    """
    with connection.cursor() as cursor:
        cursor.execute(LAST, {"size": size})
        (last,) = cursor.fetchone() or (None,)
    return cast("datetime | None", last)


# How old a page's notice of a stop of all tests may be.
STOPPED_SECONDS = 5
_stopped: Kept[AllTests] = Kept(TTLCache(1, STOPPED_SECONDS))


def stopped(now: datetime) -> AllTests | None:
    """Return the stop of all tests for a notice on every page; None while they run.

    It may be some seconds old. One SQL query then.
    """
    row = _stopped.get("", AllTests.read)
    return row if row.is_paused(now) else None


def forget_stopped() -> None:
    """Drop the cached answer to whether all tests are stopped."""
    _stopped.forget()
