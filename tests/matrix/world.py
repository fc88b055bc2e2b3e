"""A small named world: three sites in two clouds, four endpoints, one mesh over all links."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from matrix.assessment import assessing
from sonar.models import (
    Credential,
    CredentialState,
    Downtime,
    Endpoint,
    Mesh,
    Probe,
    Profile,
    Schedule,
    Site,
    SizeClass,
    Transfer,
)
from sonar.results import store

NOW = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
MB = 10**6
PUBLISHED = Path(__file__).parents[2] / "sonar" / "sandbox" / "data" / "large_t2_to_t1.csv"
SIZES = {"small": 20 * MB, "medium": 200 * MB, "large": 2000 * MB}
# From which queues workers take that were started for one.
QUEUES = {
    "transfers": ["transfers", "transfers.fake", "transfers.http-tpc"],
    "control": ["control"],
    "cleanup": ["cleanup"],
}


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
    ral, glasgow, desy = Site.objects.bulk_create(
        Site(name=name, cloud=cloud, tier=tier, country=country)
        for name, cloud, tier, country in (
            ("RAL", "UK", 1, "GB"),
            ("Glasgow", "UK", 2, "GB"),
            ("DESY", "DE", 2, "DE"),
        )
    )
    made = endpoints(
        [("RAL_DATADISK", ral), ("Glasgow_DATADISK", glasgow), ("DESY_DATADISK", desy)]
    )
    world = World(
        *made.values(),
        scratch=endpoint("DESY_SCRATCHDISK", desy, label="SCRATCHDISK"),
        mesh=Mesh.objects.create(name="everything"),
    )
    schedule(world.mesh, *permutations(world.endpoints, 2))
    return world


def of_service(credential: Credential, mesh: str, *, enabled: bool = True) -> CredentialState:
    """Say that the service of a mesh of this name does not take a credential."""
    fields = {"mover": "fts3", "service": "https://fts.example", "service_credential": credential}
    return CredentialState.objects.create(
        credential=credential,
        mesh=Mesh.objects.create(name=mesh, enabled=enabled, **fields),
        role="service",
        since=NOW,
        holds=True,
        sentence="the secret is empty",
        checked_at=NOW,
    )


def endpoint(
    name: str, site: Site, label: str = "DATADISK", *, simulated: bool = False
) -> Endpoint:
    return endpoints([(name, site)], label, simulated=simulated)[name]


def endpoints(
    named: Iterable[tuple[str, Site]], label: str = "DATADISK", *, simulated: bool = False
) -> dict[str, Endpoint]:
    """Register endpoints of these names at these sites, in one INSERT; return them by name."""
    made = Endpoint.objects.bulk_create(
        Endpoint(
            name=name,
            site=site,
            label=label,
            base_url=f"https://{name.lower().replace('_', '-')}.example.org/data",
            simulated=simulated,
        )
        for name, site in named
    )
    return {one.name: one for one in made}


def free_link() -> tuple[Endpoint, Endpoint]:
    """Return a link that no test is queued or running on: there is never more than one."""
    busy = set(Probe.objects.exclude(state="waiting").values_list("source_id", "destination_id"))
    links = permutations(Endpoint.objects.order_by("name"), 2)
    return next(link for link in links if (link[0].id, link[1].id) not in busy)


def schedule(
    mesh: Mesh, *links: tuple[Endpoint, Endpoint], every: int = 3600, size: str = "large"
) -> None:
    size_class = SizeClass.objects.get(name=size)
    Schedule.objects.bulk_create(
        Schedule(
            mesh=mesh,
            source=source,
            destination=destination,
            size_class=size_class,
            every_seconds=every,
            next_due=NOW,
        )
        for source, destination in links
    )


def downtime(
    starts: timedelta = -HOUR, ends: timedelta = HOUR, *, reason: str = "disks", **of: object
) -> Downtime:
    """Declare a downtime from and to so long from NOW, ``of`` a site or an endpoint."""
    return Downtime.objects.create(starts_at=NOW + starts, ends_at=NOW + ends, reason=reason, **of)


def profile(**fields: object) -> Profile:
    return Profile.objects.get_or_create(**{"mover": "http-tpc", "purpose": ""} | fields)[0]


class Transfers:
    """Transfers that are stored together; classes and profiles are looked up once for all."""

    def __init__(self) -> None:
        self._sizes = dict(SizeClass.objects.values_list("name", "id"))
        self._profiles = store.Profiles()
        self._new: list[store.Result] = []

    def add(
        self,
        source: Endpoint,
        destination: Endpoint,
        rate_mb_s: float | None,
        *,
        ago: timedelta = timedelta(minutes=30),
        size: str = "large",
        state: str = "",
        made: Profile | None = None,
        nbytes: int = 0,
        worker: str = "",
    ) -> UUID:
        """Add one; a rate of None is a failed one, without a ``worker`` it is an import."""
        state = state or ("failed" if rate_mb_s is None else "done")
        result = store.Result(
            id=uuid4(),
            source_id=source.id,
            destination_id=destination.id,
            size_class_id=self._sizes[size],
            profile_id=made.id if made else self._profiles.id_of(mover="http-tpc", purpose=""),
            state=state,
            started_at=NOW - ago,
            seconds=SIZES[size] / (rate_mb_s * MB) if rate_mb_s else 10.0,
            bytes=nbytes or SIZES[size],
            worker=worker,
            error="" if state == "done" else "503 Service Unavailable",
            error_where="" if state == "done" else "destination",
        )
        self._new.append(result)
        return result.id

    def store(self) -> None:
        store.store(self._new, ids_are_new=True)


@contextmanager
def transfers() -> Iterator[Transfers]:
    """Store what is added in the block as it ends, in one COPY."""
    some = Transfers()
    yield some
    some.store()


def assessed(now: datetime = NOW) -> None:
    """Let the judge find the conditions that the results show up to now."""
    assessing.assess(now)


def transfer(
    source: Endpoint, destination: Endpoint, rate_mb_s: float | None, **more: Any
) -> Transfer:
    """Record one transfer, as ``Transfers.add`` takes it; a rate of None is a failed one."""
    with transfers() as some:
        added = some.add(source, destination, rate_mb_s, **more)
    return Transfer.objects.get(id=added)


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
    names = [*table.sources, *table.destinations]
    sites = Site.objects.bulk_create(Site(name=name.removesuffix("_DATADISK")) for name in names)
    places = endpoints(zip(names, sites, strict=True))
    with transfers() as some:
        for source, rates in zip(table.sources, table.rates, strict=True):
            for destination, rate in zip(table.destinations, rates, strict=True):
                if rate is not None:
                    some.add(places[source], places[destination], rate)
    return table
