"""The small named world of these tests: three sites, one endpoint each, one mesh."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Thread

from django.db import connection
from django.utils import timezone

from sonar import scheduler
from sonar.models import Endpoint, Mesh, MeshInterval, Probe, Schedule, Site, SizeClass
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.results import endings
from sonar.scheduler import ProbeRequest
from sonar.work import probes

NOW = datetime(2026, 11, 20, 4, 0, tzinfo=UTC)


def endpoint(name: str, **values: object) -> Endpoint:
    site, _ = Site.objects.get_or_create(name=name, defaults={"cloud": "UK", "tier": 2})
    values = {"base_url": f"fake://{name.lower()}/data"} | values
    return Endpoint.objects.create(name=f"{name}_DATADISK", site=site, **values)


def three_endpoints() -> tuple[Endpoint, Endpoint, Endpoint]:
    return endpoint("GLASGOW"), endpoint("LANCS"), endpoint("RAL")


def mesh(name: str = "uk", every_seconds: int = 3600, **values: object) -> Mesh:
    """A mesh of every endpoint, tested with every size class."""
    made = Mesh.objects.create(name=name, **({"mover": "fake"} | values))
    for size_class in SizeClass.objects.all():
        MeshInterval.objects.create(mesh=made, size_class=size_class, every_seconds=every_seconds)
    return made


def roomy(*names: str, **values: object) -> tuple[Endpoint, Endpoint, Endpoint]:
    """Return three endpoints whose caps hold nothing back, and meshes of these names of them."""
    ends = three_endpoints()
    for name in names or ("uk",):
        mesh(name, **values)
    Endpoint.objects.update(inbound_cap=99, outbound_cap=99)
    return ends


def request(
    source: Endpoint, destination: Endpoint, mover: str = "fake", mode: str = "pull"
) -> ProbeRequest:
    """Ask for the smallest test."""
    return ProbeRequest(source, destination, SizeClass.objects.get(name="small"), mover, mode)


def ordered(source: Endpoint, destination: Endpoint, *more: str) -> Probe:
    """Order the smallest test, of a mover in a mode."""
    return scheduler.order_all([request(source, destination, *more)], NOW).probes[0]


def queued(source: Endpoint, destination: Endpoint, **values: object) -> Probe:
    """Queue the smallest test past its door, or one as it is described."""
    size_class, now = (
        values.get("size_class") or SizeClass.objects.get(name="small"),
        timezone.now(),
    )
    facts = {"size_class": size_class, "bytes": size_class.test_bytes, "mover": "fake"}
    facts |= {"requested_at": now, "sent_at": now} | values
    return Probe.objects.create(source=source, destination=destination, **facts)


def claimed(probe: Probe, now: datetime = NOW) -> Probe:
    running = probes.claim(probe.id, now)
    assert running is not None
    return running


def held_links(reason: str = "credential") -> set[tuple[str, str]]:
    """Return the links, by their sites, of scheduled tests that wait for this reason."""
    rows = Schedule.objects.filter(skipped_because=reason)
    return set(rows.values_list("source__site__name", "destination__site__name"))


def in_threads(count: int, step: Callable[[], object]) -> None:
    """Do the same in so many threads at once, and wait until all have done it."""

    def one() -> None:
        try:
            step()
        finally:
            connection.close()

    threads = [Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
        assert not thread.is_alive()


def reasons() -> dict[str, int]:
    """Count the scheduled tests that wait by their reason."""
    held = Schedule.objects.exclude(skipped_because="")
    return dict(Counter(held.values_list("skipped_because", flat=True)))


def finish(probe: Probe, now: datetime = NOW) -> None:
    """Let a queued test run and end."""
    running = claimed(probe, now)
    assert endings.end_probe(running, Outcome(Receipt(running.bytes, 4.0), None, None, 5.0))
