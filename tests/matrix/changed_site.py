"""Glasgow and ten others over five weeks: what a change, failures and a note make of a site."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

import numpy as np

from sonar.models import Annotation, Downtime, Endpoint, Mesh, Site, SizeClass
from sonar.results import store
from tests.conditions import assessed_at, stored_condition
from tests.matrix import world
from tests.matrix.world import NOW

# A Thursday.
CHANGED = NOW.replace(day=19, hour=20, minute=15, second=0)
FAILING = NOW - timedelta(hours=30)
NOTED = NOW.replace(day=16, hour=9, minute=30, second=0)
SLOWED = ("INFN-T1", "PIC", "RAL-LCG2", "SARA-MATRIX")
PARTNERS = (*SLOWED, "BNL-OSG2", "DESY-HH", "FZK-LCG2", "IN2P3-CC", "NDGF-T1", "UKI-LT2-QMUL")
EVERY = timedelta(hours=4)
DAYS = 35


@dataclass(frozen=True)
class ChangedSite:
    glasgow: Endpoint
    partners: dict[str, Endpoint]


def make() -> ChangedSite:
    """Make it; world.NOW must be the time at which the pages are asked for.

    From SLOWED it receives at 0.3 of what it did since CHANGED. The link to DESY-HH fails since
    FAILING, and that to NDGF-T1 is twice as fast since NOTED, when there is a note. Each is a
    condition of its link.
    """
    names = ("UKI-SCOTGRID-GLASGOW", *PARTNERS)
    sites = Site.objects.bulk_create(
        Site(name=name, cloud="UK", tier=2 if name.startswith("UKI") else 1, country="GB")
        for name in names
    )
    sites[0].wan_gbit_s = 6
    sites[0].save()
    places = world.endpoints((f"{site.name}_DATADISK", site) for site in sites)
    glasgow, *others = places.values()
    partners = dict(zip(PARTNERS, others, strict=True))
    rows = [
        result
        for number, (name, partner) in enumerate(partners.items())
        for result in (
            *history(partner, glasgow, number, slowed=name in SLOWED),
            *history(glasgow, partner, number + 20, doubled=name == "NDGF-T1", name=name),
        )
    ]
    store.store(rows)
    mesh = Mesh.objects.create(name="everything")
    links = [pair for other in others for pair in ((glasgow, other), (other, glasgow))]
    world.schedule(mesh, *links, every=14_400)
    Annotation.objects.create(
        site=sites[0], text="new firmware of the switch", starts_at=NOTED, public=True
    )
    Downtime.objects.create(
        site=sites[0],
        starts_at=NOTED + timedelta(days=1),
        ends_at=NOTED + timedelta(days=1, hours=6),
        reason="air conditioning",
    )
    for name in SLOWED:
        link = {"source": partners[name], "destination": glasgow}
        stored_condition("slow", **link, since=NOW - CHANGED, baseline=None)
    sent = {name: {"source": glasgow, "destination": partners[name]} for name in PARTNERS}
    stored_condition("failing", **sent["DESY-HH"], since=NOW - FAILING, baseline=None)
    stored_condition("fast", **sent["NDGF-T1"], since=NOW - NOTED, baseline=None)
    assessed_at()
    return ChangedSite(glasgow, partners)


def history(
    source: Endpoint,
    destination: Endpoint,
    number: int,
    *,
    slowed: bool = False,
    doubled: bool = False,
    name: str = "",
) -> list[store.Result]:
    rng = np.random.default_rng(number)
    size = SizeClass.objects.get(name="large")
    profile = world.profile().id
    started = NOW - timedelta(minutes=int(rng.integers(1, 230)))
    made = []
    for at in (started - EVERY * count for count in range(int(timedelta(days=DAYS) / EVERY))):
        rate = (1 + number % 7) * 1.7 * float(rng.lognormal(0, 0.08))
        rate *= 0.3 if slowed and at >= CHANGED else 2 if doubled and at >= NOTED else 1
        failed = (name == "DESY-HH" and at >= FAILING) or rng.random() < 0.01
        made.append(one(source, destination, size, profile, at, rate, failed=failed))
    return made


def one(
    source: Endpoint,
    destination: Endpoint,
    size: SizeClass,
    profile: int,
    at: datetime,
    rate_mb_s: float,
    *,
    failed: bool,
) -> store.Result:
    return store.Result(
        id=uuid4(),
        source_id=source.id,
        destination_id=destination.id,
        size_class_id=size.id,
        profile_id=profile,
        state="failed" if failed else "done",
        started_at=at,
        seconds=size.test_bytes / (rate_mb_s * 1e6),
        bytes=size.test_bytes,
        error="503 Service Unavailable" if failed else "",
        error_where="destination" if failed else "",
    )
