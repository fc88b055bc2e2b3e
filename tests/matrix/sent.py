"""Tests under way, and results with everything that lists or pages of them show."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any
from uuid import UUID, uuid4

from sonar.models import Endpoint, Probe, SizeClass
from sonar.results import store
from sonar.results.store import Result
from tests.matrix import world

MARKUP = "</script><script>alert(1)</script><b>bold</b>"
PLAIN = {"mode": "", "streams": 1, "ip_version": None, "origin": "test", "mesh": None}
MINUTE = timedelta(minutes=1)


def result(
    source: Endpoint, destination: Endpoint, at: datetime, size: str = "large", **fields: Any
) -> Result:
    """Make one that is done, or failed if it is given an error."""
    failed = {"state": "failed", "error_where": "destination"} if fields.get("error") else {}
    plain = Result(
        id=uuid4(),
        source_id=source.id,
        destination_id=destination.id,
        size_class_id=fields.get("size_class_id") or SizeClass.objects.get(name=size).id,
        profile_id=fields.get("profile_id") or world.profile(**PLAIN).id,
        state="done",
        started_at=at,
        seconds=10.0,
        bytes=world.SIZES[size],
    )
    return replace(plain, **(failed | fields))


def send(source: Endpoint, destination: Endpoint, at: datetime, **fields: Any) -> UUID:
    """Record one result and return its id."""
    one = result(source, destination, at, **fields)
    store.store([one])
    return one.id


def probe(
    source: Endpoint,
    destination: Endpoint,
    ago: timedelta = MINUTE,
    size: str = "small",
    **fields: Any,
) -> Probe:
    """Queue a test; given a worker or when it ``started_at``, it runs, for ten seconds or since."""
    size_class = SizeClass.objects.get(name=size)
    started = world.NOW - timedelta(seconds=10)
    running = {"state": "running", "started_at": started, "deadline": world.NOW + world.HOUR}
    usual = {
        "bytes": size_class.test_bytes,
        "mover": "http-tpc",
        "requested_at": world.NOW - ago,
        "sent_at": world.NOW - ago,
        **(running if {"worker", "started_at"} & set(fields) else {}),
    }
    return Probe.objects.create(
        source=source, destination=destination, size_class=size_class, **usual | fields
    )


def many(source: Endpoint, destination: Endpoint, count: int, before: datetime) -> None:
    """Record results a minute apart, every fifth of them failed, of all classes in turn."""
    sizes, profile = ("small", "medium", "large"), world.profile(**PLAIN).id
    classes = dict(SizeClass.objects.values_list("name", "id"))
    store.store(
        result(
            source,
            destination,
            before - number * MINUTE,
            size,
            size_class_id=classes[size],
            profile_id=profile,
            seconds=1 + number % 7,
            error=f"timeout after {number}.5 s" if number % 5 == 0 else "",
        )
        for number, size in zip(range(count), cycle(sizes), strict=False)
    )
