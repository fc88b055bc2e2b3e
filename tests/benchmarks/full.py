"""A matrix of any size with one result in each cell, made in seconds.

For what is about drawing, not about how many results are behind a cell.
"""

from datetime import datetime, timedelta
from uuid import uuid4

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from sonar import scheduler
from sonar.models import Endpoint, Mesh, MeshInterval, Profile, SizeClass
from sonar.results import partitions, sealing, store
from tests.benchmarks import data, load, registry
from tests.benchmarks.data import Day
from tests.benchmarks.scale import SEED


def fill(endpoints: int, hour: datetime) -> NDArray[np.void]:
    """Register endpoints and a mesh, and store a large file on each link in this hour.

    The hour is sealed, as it is a while after it is over. Returns the results as data.ROW: its
    ends are numbers from 0, in the order of names.
    """
    register(endpoints, hour)
    rows = one_for_each_link(endpoints, hour)
    month = hour.replace(day=1, hour=0)
    with transaction.atomic(), connection.cursor() as cursor:
        day = Day(month, rows)
        load.load_month(cursor.cursor, month, [day], registry.known_ids(), lambda _: None)
    large = SizeClass.objects.get(name="large")
    sealing.seal_day(large.id, hour.replace(hour=0), hour + timedelta(hours=2))
    load.vacuum("sonar_transfer", "sonar_schedule", "sonar_segment", "sonar_dirtymark")
    return rows


def store_one_link(start: datetime, hours: int) -> None:
    """Store a large file on one link in each of these hours: the strip of time begins with them."""
    first, second, *_ = Endpoint.objects.order_by("name")
    large = SizeClass.objects.get(name="large")
    profile = Profile.objects.earliest("id")
    partitions.ensure([start])
    store.store(
        store.Result(
            id=uuid4(),
            source_id=first.id,
            destination_id=second.id,
            size_class_id=large.id,
            profile_id=profile.id,
            state="done",
            started_at=start + timedelta(hours=hour),
            seconds=10.0,
            bytes=large.test_bytes,
        )
        for hour in range(hours)
    )


def register(endpoints: int, now: datetime) -> None:
    """Make the registry of the benchmarks, whose mesh tests with large files alone."""
    sites = registry.make_sites(endpoints)
    Endpoint.objects.bulk_create(
        Endpoint(
            name=f"{site.name}_{label}",
            site=site,
            label=label,
            base_url=registry.url(site, label),
        )
        for site, label in registry.homes(sites, endpoints)
    )
    mesh = Mesh.objects.create(name="all-links", mover="http-tpc")
    large = SizeClass.objects.get(name="large")
    MeshInterval.objects.create(mesh=mesh, size_class=large, every_seconds=registry.EVERY_SECONDS)
    # As data.measure wants them; alike, so that no cell is a mixture.
    Profile.objects.bulk_create(
        Profile(mover="http-tpc", mode="pull", activity=f"part {number}")
        for number in range(data.PROFILES)
    )
    scheduler.follow_registry(now)


def one_for_each_link(endpoints: int, hour: datetime) -> NDArray[np.void]:
    ends = np.indices((endpoints, endpoints)).reshape(2, -1)
    source, destination = ends[:, ends[0] != ends[1]]
    rows = np.zeros(len(source), dtype=data.ROW)
    rows["started_us"] = data.unix_us(hour) + data.HOUR_US // 2
    rows["source"], rows["destination"] = source, destination
    rows["size_class"] = len(data.TEST_BYTES) - 1
    data.measure(np.random.default_rng(SEED), rows, data.usual_rates(endpoints))
    return rows
