"""A small named world: three sites in two clouds, four endpoints, one mesh over all links."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from uuid import uuid4

from sonar import results
from sonar.models import Endpoint, Mesh, Probe, Profile, Schedule, Site, SizeClass, Transfer

NOW = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
MB = 10**6
PUBLISHED = Path(__file__).parents[2] / "sonar" / "sandbox" / "data" / "large_t2_to_t1.csv"
SIZES = {"small": 20 * MB, "medium": 200 * MB, "large": 2000 * MB}


@dataclass(frozen=True)
class World:
    """RAL (UK, Tier 1), Glasgow (UK, Tier 2) and DESY (DE, Tier 2, with two endpoints)."""

    ral: Endpoint
    glasgow: Endpoint
    desy: Endpoint
    scratch: Endpoint
    mesh: Mesh

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return self.ral, self.glasgow, self.desy, self.scratch


def make() -> World:
    ral = endpoint(
        "RAL_DATADISK", Site.objects.create(name="RAL", cloud="UK", tier=1, country="GB")
    )
    glasgow = Site.objects.create(name="Glasgow", cloud="UK", tier=2, country="GB")
    desy = Site.objects.create(name="DESY", cloud="DE", tier=2, country="DE")
    world = World(
        ral=ral,
        glasgow=endpoint("Glasgow_DATADISK", glasgow),
        desy=endpoint("DESY_DATADISK", desy),
        scratch=endpoint("DESY_SCRATCHDISK", desy, label="SCRATCHDISK"),
        mesh=Mesh.objects.create(name="everything"),
    )
    schedule(world.mesh, *permutations(world.endpoints, 2))
    return world


def endpoint(
    name: str, site: Site, label: str = "DATADISK", *, simulated: bool = False
) -> Endpoint:
    return Endpoint.objects.create(
        name=name,
        site=site,
        label=label,
        base_url=f"https://{name.lower().replace('_', '-')}.example.org/data",
        simulated=simulated,
    )


def free_link() -> tuple[Endpoint, Endpoint]:
    """Return a link that no test is queued or running on: there is never more than one."""
    busy = set(Probe.objects.exclude(state="waiting").values_list("source_id", "destination_id"))
    links = permutations(Endpoint.objects.order_by("name"), 2)
    return next(link for link in links if (link[0].id, link[1].id) not in busy)


def schedule(mesh: Mesh, *links: tuple[Endpoint, Endpoint], every: int = 3600) -> None:
    large = SizeClass.objects.get(name="large")
    Schedule.objects.bulk_create(
        Schedule(
            mesh=mesh,
            source=source,
            destination=destination,
            size_class=large,
            every_seconds=every,
            next_due=NOW,
        )
        for source, destination in links
    )


def profile(**fields: object) -> Profile:
    return Profile.objects.get_or_create(mover="http-tpc", **fields)[0]


def transfer(
    source: Endpoint,
    destination: Endpoint,
    rate_mb_s: float | None,
    *,
    ago: timedelta = timedelta(minutes=30),
    size: str = "large",
    state: str = "",
    made: Profile | None = None,
) -> Transfer:
    """Record one transfer; a rate of None is a failed one."""
    state = state or ("failed" if rate_mb_s is None else "done")
    nbytes = SIZES[size]
    result = results.Result(
        id=uuid4(),
        source_id=source.id,
        destination_id=destination.id,
        size_class_id=SizeClass.objects.get(name=size).id,
        profile_id=(made or profile()).id,
        state=state,
        started_at=NOW - ago,
        seconds=nbytes / (rate_mb_s * MB) if rate_mb_s else 10.0,
        bytes=nbytes,
        error="" if state == "done" else "503 Service Unavailable",
        error_where="" if state == "done" else "destination",
    )
    results.store([result])
    return Transfer.objects.get(id=result.id)


@dataclass(frozen=True)
class Published:
    """The matrix of February 2011 and the averages printed beside it."""

    sources: list[str]
    destinations: list[str]
    rates: list[list[float | None]]
    source_average: list[float]
    destination_average: list[float]
    average: float


def published() -> Published:
    head, *rows, last = csv.reader(PUBLISHED.read_text().splitlines())
    numbers = [[float(text) if text else None for text in row[1:]] for row in rows]
    return Published(
        sources=[row[0] for row in rows],
        destinations=head[1:-1],
        rates=[row[:-1] for row in numbers],
        source_average=[row[-1] or 0.0 for row in numbers],
        destination_average=[float(text) for text in last[1:-1]],
        average=float(last[-1]),
    )


def make_published(table: Published | None = None) -> Published:
    """Register the endpoints of the published matrix and record a transfer for each cell."""
    table = table or published()
    places = {
        name: endpoint(name, Site.objects.create(name=name.removesuffix("_DATADISK")))
        for name in (*table.sources, *table.destinations)
    }
    for source, rates in zip(table.sources, table.rates, strict=True):
        for destination, rate in zip(table.destinations, rates, strict=True):
            if rate is not None:
                transfer(places[source], places[destination], rate)
    return table
