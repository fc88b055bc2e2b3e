"""The small named world of these tests: three sites, one endpoint each, one mesh."""

from collections import Counter
from datetime import UTC, datetime

from sonar.models import Endpoint, Mesh, MeshInterval, Probe, Schedule, Site, SizeClass
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.results import endings
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


def reasons() -> dict[str, int]:
    """Count the scheduled tests that wait by their reason."""
    held = Schedule.objects.exclude(skipped_because="")
    return dict(Counter(held.values_list("skipped_because", flat=True)))


def finish(probe: Probe, now: datetime = NOW) -> None:
    """Let a queued test run and end."""
    running = probes.claim(probe.id, now)
    assert running is not None
    assert endings.end_probe(running, Outcome(Receipt(running.bytes, 4.0), None, None, 5.0))
