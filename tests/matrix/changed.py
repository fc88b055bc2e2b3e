"""Changes of level of the small world, as a search would have kept them."""

from datetime import timedelta
from typing import Any

from sonar.models import Change, ChangeSearch, Endpoint, Outage, SizeClass
from tests.matrix import world

HOUR = timedelta(hours=1)


def change(
    source: Endpoint | None,
    destination: Endpoint | None,
    factor: float = 0.5,
    ago: timedelta = timedelta(days=3),
    size: str = "large",
    **values: Any,
) -> Change:
    """Store a change that came to pass so long ago; of a link 40 MB/s before it."""
    kind = {(True, True): "link", (True, False): "source", (False, True): "destination"}.get(
        (source is not None, destination is not None), "grid"
    )
    rates = {"before": 40e6, "after": 40e6 * factor} if kind == "link" else {}
    fields = {
        "at": world.NOW - ago,
        "earliest": world.NOW - ago - HOUR,
        "latest": world.NOW - ago,
        "low": factor * 0.8,
        "high": factor * 1.25,
        "ok_before": 56,
        "ok_after": 58,
        "links": 1 if kind == "link" else 3,
        "chance": 0.0001,
        "sure": True,
        "found_at": world.NOW - ago + timedelta(days=1),
    }
    return Change.objects.create(
        kind=kind,
        source=source,
        destination=destination,
        size_class=SizeClass.objects.get(name=size),
        factor=factor,
        **{**fields, **rates, **values},
    )


def outage(
    source: Endpoint | None,
    destination: Endpoint | None,
    ago: timedelta = timedelta(days=1),
    ended: timedelta | None = None,
    size: str = "large",
    **values: Any,
) -> Outage:
    """Store an outage that began so long ago, and lasts or ``ended`` so long ago."""
    kind = "link" if source and destination else "source" if source else "destination"
    began = world.NOW - ago
    fields = {
        "last_ok": began - HOUR,
        "newest": began + HOUR / 2,
        "ended": world.NOW - ended if ended is not None else None,
        "tests": 5,
        "links": 1 if kind == "link" else 3,
        "found_at": began + HOUR,
    }
    return Outage.objects.create(
        kind=kind,
        source=source,
        destination=destination,
        size_class=SizeClass.objects.get(name=size),
        began=began,
        **{**fields, **values},
    )


def searched(ago: timedelta = timedelta(minutes=20), sequences: int = 43) -> None:
    """Note that each size class was searched so long ago."""
    ChangeSearch.objects.bulk_create(
        ChangeSearch(
            size_class=size_class,
            searched_at=world.NOW - ago,
            start=world.NOW - timedelta(days=90),
            end=world.NOW - ago,
            sequences=sequences,
            method=1,
        )
        for size_class in SizeClass.objects.all()
    )
