"""What the matrix reads of registry and schedule: once for each version of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Generic, TypeVar, cast

import numpy as np
from django.db import connection
from django.db.models import Q

from matrix.filters import Filter, alternatives
from matrix.places import Links, Place
from matrix.profiles import condition
from matrix.query import MatrixQuery
from matrix.statistics import Floats
from sonar import binary
from sonar.models import Endpoint, Mesh, Schedule

T = TypeVar("T")

# What a mesh promises are transfers of origin test, made like this.
MESH_FIELDS = {"mover": "mover", "streams": "streams", "mesh": "name"}
# A counter alone would repeat itself after a rollback or a restored backup; together with
# the transaction that raised it last (xmin) it does not.
VERSION = "coalesce((SELECT value || '.' || xmin FROM sonar_version WHERE name = '{}'), '0')"
# In the order of the fields of Versions; runs.fingerprint asks for them with its own.
VERSIONS = f"{VERSION.format('registry')}, {VERSION.format('schedule')}"
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
          AND state <> 'lost' AND started_at >= hours.start
          AND started_at < hours.start + interval '1 hour') AS newest
    WHERE last IS NOT NULL ORDER BY hours.start DESC LIMIT 1
"""


@dataclass(frozen=True)
class Versions:
    """What changes with every change of the registry, and of the schedule."""

    registry: str
    schedule: str


def read_versions() -> Versions:
    """Read the versions; whoever reads them first gets data as new as that, or newer."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {VERSIONS}")
        return Versions(*cursor.fetchone())


class Remembered(Generic[T]):
    """The answers that were used last, a bounded number of them. Safe for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the answer for a key; two threads may both read one that is not there yet."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = read()
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer


_places: Remembered[tuple[Place, ...]] = Remembered(2)
# 8 MB each at 1,000 endpoints.
_promises: Remembered[Floats] = Remembered(8)


def read_places(versions: Versions) -> tuple[Place, ...]:
    """Return every endpoint, in the order of ids that Links needs."""
    return _places.get(versions.registry, _read_places)


def _read_places() -> tuple[Place, ...]:
    site = ("site__name", "site__cloud", "site__tier", "site__country")
    rows = Endpoint.objects.order_by("id").annotate(retired=Q(retired_at__isnull=False))
    return tuple(
        Place(*row)
        for row in rows.values_list("id", "name", *site, "label", "simulated", "retired")
    )


def read_promises(query: MatrixQuery, links: Links, versions: Versions) -> Floats:
    """Return the shortest interval in seconds at which a mesh tests each link, else infinity.

    Only meshes that pass the filters promise anything: where the question is for results
    made otherwise, a link without any is not called untested. ``links`` are those of the
    same versions; the array is read-only.
    """
    if not asks_for_tests(query.filters):
        return np.full(len(links.places) ** 2, np.inf)
    made = tuple(one for one in query.filters if one.parameter in MESH_FIELDS)
    key = (versions, len(links.places), query.size, made)
    return _promises.get(key, lambda: _read_promises(query.size, made, links))


def _read_promises(size: str, made: Iterable[Filter], links: Links) -> Floats:
    schedules = Schedule.objects.filter(size_class__name=size)
    if wanted := condition(made, MESH_FIELDS):
        schedules = schedules.filter(mesh__in=Mesh.objects.filter(wanted).values("id"))
    fields = {
        "source_id": binary.INTEGER,
        "destination_id": binary.INTEGER,
        "every_seconds": binary.SHORT,
    }
    rows = binary.columns(schedules, fields)
    promise = np.full(len(links.places) ** 2, np.inf)
    np.minimum.at(promise, links.numbers(rows), rows["every_seconds"])
    promise[links.ends(place.retired for place in links.places)] = np.inf
    promise.flags.writeable = False
    return promise


def asks_for_tests(filters: Iterable[Filter]) -> bool:
    """Say whether the filters on the origin let tests pass."""
    of_origin = alternatives(one for one in filters if one.parameter == "origin")
    return all(("test" in {one.value for one in some}) != some[0].exclude for some in of_origin)


def read_last(size: str) -> datetime | None:
    """Return when the newest result of a size class started.

    The hours that have a segment or a mark say where to look: all rows of a class that was
    last measured long ago may be millions.
    """
    with connection.cursor() as cursor:
        cursor.execute(LAST, {"size": size})
        (last,) = cursor.fetchone() or (None,)
    return cast("datetime | None", last)
