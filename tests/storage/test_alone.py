"""Tests of one link do not measure each other: ordered or planned together, they run one by one.

Two real XRootD servers behind one road each, which all connections share: whatever runs beside a
test takes of its rate.
"""

import os
import signal
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from sonar.models import Endpoint, Probe, SizeClass, Transfer
from sonar.ordering import request_probes
from sonar.registry import file
from sonar.sandbox import processes
from tests.storage.conftest import Pair
from tests.storage.grid import Commands
from tests.storage.ledger import JOURNAL, RUNS
from tests.storage.throttle import Throttle
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("real_commits")]

PACE = 4e6  # bytes per second: slow enough that two busy cores do not matter
LARGE_BYTES = 16_000_000
SEVERAL = 3
WITHIN = 0.05
TRIES = 12
"""A machine that is at something else meanwhile measures that, too: then all of it once more."""
ENDS_SECONDS = 180.0

REGISTRY = """
size_classes:
  - {{name: small, from_bytes: 0, test_bytes: 200000}}
  - {{name: medium, from_bytes: 1000000, test_bytes: 2000000}}
  - {{name: large, from_bytes: 10000000, test_bytes: {large}}}
sites: [{{name: A, tier: 1}}, {{name: B, tier: 2}}]
endpoints:
  - {{name: A_DATADISK, site: A, base_url: "{a}/base", inbound_cap: 10, outbound_cap: 10}}
  - {{name: B_DATADISK, site: B, base_url: "{b}/base", inbound_cap: 10, outbound_cap: 10}}
meshes:
  - {{name: planned, enabled: false, sources: [A_DATADISK], destinations: [B_DATADISK],
      every: {{small: 1d, medium: 1d, large: 1d}}}}
"""


@pytest.fixture
def link(mortal: Pair) -> Iterator[Pair]:
    """Register two servers behind roads that are as slow for all together as for one."""
    roads = [Throttle(one.port, PACE, shared=True) for one in (mortal.source, mortal.destination)]
    file.load(REGISTRY.format(a=roads[0].url, b=roads[1].url, large=LARGE_BYTES))
    yield mortal
    for road in roads:
        road.close()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[None]:
    """Start what `make run` starts, on the database of this test; the journal notes what runs."""
    name = connection.settings_dict["NAME"]
    address = os.environ["DATABASE_URL"].rpartition("/")[0]
    env = os.environ | {"DATABASE_URL": f"{address}/{name}", "SONAR_DATABASE_POOL": "4"}
    env |= {"SONAR_PLAN_SECONDS": "1", "SONAR_RECOVERY_SECONDS": "1", "SONAR_RESEND_SECONDS": "5"}
    with connection.cursor() as cursor:
        cursor.execute(JOURNAL)
    running = [
        processes.start(command, tmp_path / f"{kind}.log", env)
        for kind, command in Commands(tmp_path).of.items()
        if kind != "cleanup"
    ]
    yield
    for process in reversed(running):
        processes.stop(process, signal.SIGKILL)
    with connection.cursor() as cursor:
        cursor.execute("DROP VIEW run")
        cursor.execute("DROP TRIGGER journal ON sonar_probe")
        cursor.execute("DROP FUNCTION note_probe")
        cursor.execute("DROP TABLE journal")


def order(count: int, size: str = "large") -> None:
    source, destination = (Endpoint.objects.get(name=f"{one}_DATADISK") for one in "AB")
    wish = request_probes.ProbeRequest(source, destination, SizeClass.objects.get(name=size))
    with transaction.atomic():
        request_probes.order([wish] * count, timezone.now())


def ended(known: set[object]) -> list[Transfer]:
    return list(Transfer.objects.exclude(id__in=known).select_related("size_class"))


def rates_of_large(count: int, known: set[object]) -> list[float]:
    """Wait for so many transfers; return the rates of the large ones in MB/s, and know them."""
    assert wait_for(lambda: len(ended(known)) >= count, ENDS_SECONDS), list(
        Probe.objects.values_list("state", "waits_because")
    )
    transfers = ended(known)
    assert [one.error for one in transfers] == [""] * count
    known |= {one.id for one in transfers}
    return [one.bytes / one.seconds / 1e6 for one in transfers if one.size_class.name == "large"]


def alone(known: set[object]) -> float:
    order(1)
    return rates_of_large(1, known)[0]


def runs() -> list[tuple[object, datetime, datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(RUNS)
        return cursor.fetchall()


def overlaps() -> int:
    """Return how many runs began before the one that had begun before them ended."""
    spans = [(began, over) for _, began, over in runs()]
    return sum(later < over for (_, over), (later, _) in pairwise(spans))


def like_alone(several: Callable[[], list[float]], known: set[object]) -> None:
    """Hold that large tests among others have the rate of one alone, before and after them."""
    for _ in range(TRIES):
        before, together, after = alone(known), several(), alone(known)
        assert overlaps() == 0
        expected = pytest.approx([(before + after) / 2] * len(together), rel=WITHIN)
        if together == expected:
            break
    assert together == expected


def test_those_ordered_or_due_at_once_have_the_rate_of_one_alone(link: Pair, workers: None):
    known: set[object] = set()
    alone(known)  # puts the source file and opens the connections

    def several() -> list[float]:
        order(SEVERAL)
        return rates_of_large(SEVERAL, known)

    like_alone(several, known)
    like_alone(lambda: make_all_due(known), known)


def make_all_due(known: set[object]) -> list[float]:
    """Let the planner find small, medium and large due in one tick; return the large one's rate."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sonar_schedule SET next_due = now()")
        cursor.execute("UPDATE sonar_mesh SET enabled = true WHERE name = 'planned'")
    return rates_of_large(3, known)
