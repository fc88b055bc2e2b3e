"""The grid of the benchmarks: endpoints of sites in clouds, and one mesh over all their links."""

from datetime import datetime

import numpy as np

from sonar import scheduler
from sonar.models import Endpoint, Mesh, MeshInterval, Profile, Site, SizeClass
from tests.benchmarks.copy_rows import Ids
from tests.benchmarks.data import PROFILES
from tests.benchmarks.scale import END

CLOUDS = ("CA", "CERN", "DE", "ES", "FR", "IT", "ND", "NL", "UK", "US")
COUNTRIES = ("CA", "CH", "DE", "ES", "FR", "IT", "SE", "NL", "GB", "US")
SITES_PER_TIER_1 = 16
# Four sites have five endpoints.
SITES_PER_SECOND_ENDPOINT = 4
EVERY_SECONDS = 86_400


def register(endpoints: int, size: str = "", now: datetime = END) -> Ids:
    """Make the registry and its schedule in an empty database.

    With a size class, tests are of that alone and made alike, so that no cell is a mixture.
    """
    sizes = SizeClass.objects.filter(name=size) if size else SizeClass.objects.all()
    sites = make_sites(endpoints)
    Endpoint.objects.bulk_create(
        Endpoint(
            name=f"{site.name}_{label}",
            site=site,
            label=label,
            base_url=url(site, label),
            is_draft=False,  # which a trigger sees to, but not in ticks.schedule
        )
        for site, label in homes(sites, endpoints)
    )
    mesh = Mesh.objects.create(name="all-links", mover="http-tpc")
    MeshInterval.objects.bulk_create(
        MeshInterval(mesh=mesh, size_class=size_class, every_seconds=EVERY_SECONDS)
        for size_class in sizes
    )
    Profile.objects.bulk_create(
        Profile(mover="http-tpc", mode="pull", mesh=mesh, **kind)
        for kind in (
            {"activity": f"part {number}"} if size else {"streams": 2**number}
            for number in range(PROFILES)
        )
    )
    scheduler.follow_registry(now)
    return known_ids()


def make_sites(endpoints: int) -> list[Site]:
    return Site.objects.bulk_create(
        Site(
            name=f"SITE{number:04d}",
            cloud=CLOUDS[number % len(CLOUDS)],
            country=COUNTRIES[number % len(COUNTRIES)],
            tier=1 if number % SITES_PER_TIER_1 == 0 else 2,
        )
        for number in range(endpoints * 4 // 5)
    )


def homes(sites: list[Site], endpoints: int) -> list[tuple[Site, str]]:
    """Return the site and label of each endpoint."""
    found = []
    for number, site in enumerate(sites):
        found.append((site, "DATADISK"))
        if number % SITES_PER_SECOND_ENDPOINT == 0:
            found.append((site, "SCRATCHDISK"))
    return found[:endpoints]


def url(site: Site, label: str) -> str:
    return f"https://{site.name.lower()}.example.org/{label.lower()}"


def known_ids() -> Ids:
    """Read the ids of a registry that was made before."""
    return Ids(
        np.array(Endpoint.objects.order_by("id").values_list("id", flat=True)),
        np.array(SizeClass.objects.order_by("from_bytes").values_list("id", flat=True)),
        np.array(Profile.objects.order_by("id").values_list("id", flat=True)),
    )
