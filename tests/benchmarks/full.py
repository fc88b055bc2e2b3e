"""A matrix of any size with one result in each cell, made in seconds.

For what is about drawing, not about how many results are behind a cell.
"""

from datetime import datetime, timedelta
from uuid import uuid4

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from sonar.models import Endpoint, Profile, SizeClass
from sonar.results import sealing, store
from tests.benchmarks import data, load, registry
from tests.benchmarks.data import Day
from tests.benchmarks.scale import SEED


def fill(endpoints: int, hour: datetime) -> NDArray[np.void]:
    """Register endpoints and a mesh, and store a large file on each link in this hour.

    The hour is sealed, as it is a while after it is over. Returns the results as data.ROW: its
    ends are numbers from 0, in the order of names.
    """
    ids = registry.register(endpoints, "large", hour)
    rows = data.of_each_link(np.random.default_rng(SEED), endpoints, hour, hours=1)
    month = hour.replace(day=1, hour=0)
    with transaction.atomic(), connection.cursor() as cursor:
        day = Day(month, rows)
        load.load_month(cursor.cursor, month, [day], ids, lambda _: None)
    large = SizeClass.objects.get(name="large")
    sealing.seal_day(large.id, hour.replace(hour=0), hour + timedelta(hours=2))
    load.vacuum("sonar_transfer", "sonar_schedule", "sonar_segment", "sonar_dirtymark")
    return rows


def store_one_link(start: datetime, hours: int) -> None:
    """Store a large file on one link in each of these hours: the strip of time begins with them."""
    first, second, *_ = Endpoint.objects.order_by("name")
    large = SizeClass.objects.get(name="large")
    profile = Profile.objects.earliest("id")
    store.make_months([start])
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
