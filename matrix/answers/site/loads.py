"""What is planned for the endpoints of a site: tests and bytes per day, and what waits and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from django.db import connection
from django.db.models import Q

from sonar.models import Probe
from sonar.notation.units import MB
from sonar.obstacles.catalogue import NAMED, why_waiting

DAY_SECONDS = 86_400
OUT, IN = "out", "in"
DIRECTIONS = {"source": OUT, "destination": IN}
# By the index on mesh, source and destination; the schedule of 1,000 endpoints has millions of
# rows, and those towards an endpoint are found by naming all that may send to it.
LOAD = """
    SELECT endpoint, way, mesh.name, size.name, size.test_bytes, skipped_because, count(*),
           sum(86400.0 / every_seconds)::float8, min(skipped_since), min(schedule)
    FROM (
        SELECT source_id AS endpoint, 'out' AS way, mesh_id, size_class_id, every_seconds,
               skipped_because, skipped_since, sonar_schedule.id AS schedule
        FROM sonar_mesh one JOIN sonar_schedule ON mesh_id = one.id
        WHERE source_id = ANY(%(own)s)
        UNION ALL
        SELECT destination_id, 'in', mesh_id, size_class_id, every_seconds, skipped_because,
               skipped_since, sonar_schedule.id
        FROM sonar_mesh one CROSS JOIN sonar_endpoint sender
        CROSS JOIN unnest(%(own)s::bigint[]) AS receiver (id)
        JOIN sonar_schedule
          ON mesh_id = one.id AND source_id = sender.id AND destination_id = receiver.id
    ) AS planned
    JOIN sonar_mesh mesh ON mesh.id = mesh_id
    JOIN sonar_sizeclass size ON size.id = size_class_id
    GROUP BY 1, 2, 3, 4, 5, 6, size.from_bytes
    ORDER BY mesh.name, size.from_bytes, way DESC, endpoint, skipped_because
"""


@dataclass(frozen=True)
class LoadPart:
    """The tests of one mesh and size class out of an endpoint, or into it.

    ``reason`` says why those that are due wait since ``since``, for those that do; ``example`` is
    the id of one of them.
    """

    endpoint: int
    direction: str
    mesh: str
    size: str
    test_bytes: int
    reason: str
    links: int
    tests_per_day: float
    since: datetime | None
    example: int

    @property
    def bytes_per_day(self) -> float:
        return self.tests_per_day * self.test_bytes


@dataclass(frozen=True)
class Load:
    links: int
    tests_per_day: float
    bytes_per_day: float

    @property
    def rate_mb_s(self) -> float:
        return self.bytes_per_day / DAY_SECONDS / MB


@dataclass(frozen=True)
class PlannedTests:
    """All parts of a site; ``open`` are the ends (ids) and states of its probes."""

    parts: tuple[LoadPart, ...]
    open: tuple[tuple[int, int, str], ...]

    def of(self, **own: object) -> Load:
        """Return what all parts with this `direction`, `endpoint` and so on have together."""
        parts = [part for part in self.parts if own.items() <= vars(part).items()]
        return Load(*(sum(getattr(part, field.name) for part in parts) for field in fields(Load)))

    def lines(self) -> list[tuple[str, str, Load, Load]]:
        """Return mesh, size class, what goes out and what comes in, in the order of the parts."""
        lines = []
        for mesh, size in dict.fromkeys((part.mesh, part.size) for part in self.parts):
            out, into = (self.of(mesh=mesh, size=size, direction=each) for each in (OUT, IN))
            lines.append((mesh, size, out, into))
        return lines

    def at_once(self, end: str, means_mb_s: Mapping[str, float]) -> float:
        """Estimate how many tests run at once on average; NaN if a planned class has no rate."""
        seconds = sum(
            part.bytes_per_day / (means_mb_s[part.size] * MB)
            for part in self.parts
            if part.direction == DIRECTIONS[end]
        )
        return seconds / DAY_SECONDS

    def waiting(self) -> list[tuple[str, int, datetime | None]]:
        """Return each reason why tests wait, how many do, and since when; most first."""
        count: Counter[str] = Counter()
        since: dict[str, datetime] = {}
        for part in self.parts:
            if part.reason:
                count[part.reason] += part.links
                if part.since:
                    since[part.reason] = min(since.get(part.reason, part.since), part.since)
        return [(reason, links, since.get(reason)) for reason, links in count.most_common()]

    def because(self, now: datetime) -> dict[str, list[str]]:
        """Return by reason what waiting tests lack. No SQL query where people need not act."""
        examples = [part.example for part in self.parts if part.reason in NAMED]
        return why_waiting(examples, now) if examples else {}

    def probes(self, state: str) -> int:
        return sum(probe[2] == state for probe in self.open)

    def running(self, endpoint: int, direction: str) -> int:
        at = 0 if direction == OUT else 1
        return sum(probe[at] == endpoint and probe[2] == "running" for probe in self.open)


def plan_for(endpoints: Sequence[int]) -> PlannedTests:
    """Read what is planned and under way for these endpoints. Two SQL queries."""
    with connection.cursor() as cursor:
        cursor.execute(LOAD, {"own": list(endpoints)})
        parts = tuple(LoadPart(*row) for row in cursor.fetchall())
    either = Q(source__in=endpoints) | Q(destination__in=endpoints)
    # Of all sites together there are never more than Sonar has under way at once.
    probes = Probe.objects.filter(either).values_list("source_id", "destination_id", "state")
    return PlannedTests(parts, tuple(probes))
