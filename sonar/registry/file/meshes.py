"""What hangs on a mesh, and quiet hours, as registry files write them; the API does alike."""

import re
from collections.abc import Collection, Mapping
from datetime import time

from sonar.models import Endpoint, Mesh, MeshInterval, SizeClass
from sonar.movers.catalogue import names
from sonar.notation.units import parse_duration

# Thirty years; PostgreSQL's integer ends at 68.
LONGEST_INTERVAL_SECONDS = 10**9


def interval(value: object) -> int:
    """Read `10m` or `6h` as seconds; raise ValueError with a sentence."""
    seconds = int(parse_duration(str(value)).total_seconds())
    if seconds > LONGEST_INTERVAL_SECONDS:
        raise ValueError(
            f"{value!r} is too long: an interval is at most {LONGEST_INTERVAL_SECONDS} s"
        )
    return seconds


def known_mover(name: str) -> str:
    """Return the name of a mover that there is; raise ValueError with a sentence."""
    if name not in names():
        raise ValueError(f"there is no mover {name!r}: use {' or '.join(names())}")
    return name


def quiet_times(value: object) -> tuple[time, time]:
    """Read `01:00-05:30`; raise ValueError with a sentence."""
    match = re.fullmatch(r"(\d\d:\d\d)-(\d\d:\d\d)", str(value))
    if match is None:
        raise ValueError('write quiet hours in UTC as "01:00-05:30"')
    return time.fromisoformat(match[1]), time.fromisoformat(match[2])


def quiet_columns(values: Mapping[str, object]) -> dict[str, time | None]:
    """Return the columns of a mesh or a site that its quiet hours, if given, stand for."""
    if "quiet_hours" not in values:
        return {}
    text = values["quiet_hours"]
    start, end = quiet_times(text) if text else (None, None)
    return {"quiet_from": start, "quiet_until": end}


def set_members(mesh: Mesh, end: str, endpoints: Collection[Endpoint]) -> bool:
    """Set the `sources` or `destinations` of a mesh, none for all; say if that changed it."""
    relation = getattr(mesh, end)
    if set(relation.all()) == set(endpoints):
        return False
    relation.set(endpoints)
    return True


def set_intervals(mesh: Mesh, every: Mapping[SizeClass, int]) -> bool:
    """Set how often a mesh tests with each size class; say if that changed it.

    Classes that are not named are not tested.
    """
    if {row.size_class: row.every_seconds for row in mesh.intervals.all()} == every:
        return False
    mesh.intervals.all().delete()
    MeshInterval.objects.bulk_create(
        MeshInterval(mesh=mesh, size_class=size_class, every_seconds=seconds)
        for size_class, seconds in every.items()
    )
    return True
