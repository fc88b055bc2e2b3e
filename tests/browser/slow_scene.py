"""A grid of which something became slow: all that comparing, attributing and trying out shows."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import permutations
from uuid import UUID

from matrix.answers.ordering import probe_requests
from sonar.models import Annotation, Endpoint, Mesh, Probe, Site, Sweep
from sonar.notation import windows
from sonar.ordering import request_probes
from sonar.results import store
from tests.matrix import changed, sent, world
from tests.matrix.changed import change
from tests.matrix.sent import MARKUP
from tests.matrix.world import HOUR, MB

DAY = timedelta(days=1)
# Rates of large files as a source, and as a destination, in parts of the others.
SPEEDS = {
    "UKI-NORTHGRID-MAN-HEP": (2.0, 1.0),
    "UKI-SCOTGRID-GLASGOW": (1.0, 1.2),
    "RAL-LCG2": (1.3, 0.8),
    "DESY-HH": (0.9, 1.0),
    "BNL-OSG2": (1.1, 0.3),
    "TAIWAN-LCG2": (0.35, 1.1),
}
LEVEL_MB_S = 60.0
# From the slow source to one whose link is slower still.
SOURCE, DESTINATION = "UKI-NORTHGRID-MAN-HEP_DATADISK", "RAL-LCG2_DATADISK"
LINK = f"/links/{SOURCE}/{DESTINATION}/"
SITE = "/sites/UKI-NORTHGRID-MAN-HEP/"
TESTS = 6
SPREAD = 0.08
# How long a test takes before the bytes flow, in seconds.
OVERHEAD = 1.5


@dataclass(frozen=True)
class SlowScene:
    """Sweeps of LINK: one that has ended, one that runs, and one that was cancelled.

    ``moment`` is when SOURCE became slow, as a URL has it.
    """

    finished: UUID
    running: UUID
    cancelled: UUID
    moment: str


def make() -> SlowScene:
    """Make it; world.NOW must be the time at which the pages are asked for.

    Since a day, the first of SPEEDS sends at a third of what it did, and BNL-OSG2 to RAL-LCG2 is
    four times as fast. No message may
    reach a worker.
    """
    endpoints = registered()
    measured(endpoints)
    changes(endpoints)
    source, destination = endpoints[SOURCE], endpoints[DESTINATION]
    inside(source, destination)
    return tried_out(source, destination)


def registered() -> dict[str, Endpoint]:
    sites = Site.objects.bulk_create(
        Site(name=name, cloud="UK" if name[:2] in ("UK", "RA") else name[:2], tier=2, country="GB")
        for name in SPEEDS
    )
    endpoints = world.endpoints((f"{site.name}_DATADISK", site) for site in sites)
    mesh = Mesh.objects.create(name="everything")
    world.schedule(mesh, *permutations(endpoints.values(), 2), every=14_400)
    return endpoints


def measured(endpoints: dict[str, Endpoint]) -> None:
    """Store two days of large files, and one of all others."""
    draws = random.Random(15)
    made = world.profile(mode="pull", mesh=Mesh.objects.get())
    with world.transfers() as some:
        for source, destination in permutations(endpoints.values(), 2):
            for size, days in (("large", 2), ("medium", 1), ("small", 1)):
                for number in range(TESTS * days):
                    ago = (number + 0.5) * DAY / TESTS
                    rate = level(source, destination, ago < DAY) * draws.lognormvariate(0, SPREAD)
                    size_mb = world.SIZES[size] / MB
                    rate = size_mb / (OVERHEAD + size_mb / rate)
                    some.add(source, destination, rate, ago=ago, size=size, made=made)


def level(source: Endpoint, destination: Endpoint, is_new: bool) -> float:
    name, other = source.site.name, destination.site.name
    rate = LEVEL_MB_S * SPEEDS[name][0] * SPEEDS[other][1]
    if is_new and source.name == SOURCE:
        rate /= 6 if destination.name == DESTINATION else 3
    return rate * (4 if is_new and (name, other) == ("BNL-OSG2", "RAL-LCG2") else 1)


def changes(endpoints: dict[str, Endpoint]) -> None:
    source, destination = endpoints[SOURCE], endpoints[DESTINATION]
    change(source, None, 0.33, DAY)
    change(source, destination, 0.17, DAY + HOUR)
    change(endpoints["BNL-OSG2_DATADISK"], destination, 4.1, 20 * HOUR)
    change(None, destination, 1.2, 9 * DAY, confirmed=False)
    change(None, None, 0.8, 40 * DAY, size="small", ended=39 * DAY)
    changed.assessed()
    Annotation.objects.create(
        site=source.site, text=f"TCP buffers {MARKUP}", starts_at=world.NOW - DAY, public=True
    )


def inside(source: Endpoint, destination: Endpoint) -> None:
    """Store transfers that run at a constant maximum rate, and some that stall."""
    profile = world.profile(mode="pull", mesh=Mesh.objects.get())
    for number in range(8):
        still = 6 if number % 4 == 0 else 0
        samples = [[5.0 * at, 6e7 * (at - min(max(at - 3, 0), still))] for at in range(1, 25)]
        moved = int(samples[-1][1])
        at = world.NOW - number * HOUR - timedelta(minutes=7)
        fields = {"seconds": 120.0, "moved_bytes": moved, "samples": samples}
        sent.send(source, destination, at, profile_id=profile.id, **fields)


def tried_out(source: Endpoint, destination: Endpoint) -> SlowScene:
    def order(**fields: object) -> UUID:
        ends = {"source": source.name, "destination": destination.name}
        sweep_request = probe_requests.read_sweep(
            ends | {"variable": "streams", "repeats": 2} | fields
        )
        return request_probes.order_sweep(sweep_request, None, world.NOW - HOUR).id

    finished = order(values=[1, 2, 4])
    end(lambda probe: 5.0 * probe.streams**0.9)
    cancelled = order(variable="mode")
    request_probes.cancel_sweep(Sweep.objects.get(id=cancelled), world.NOW)
    running = order(variable="size")
    end(lambda probe: 6.0, list(Probe.objects.order_by("id")[:2]))
    first = Probe.objects.order_by("id").first()
    Probe.objects.filter(id=first.id if first else None).update(
        state="running", started_at=world.NOW, deadline=world.NOW + HOUR, progress_bytes=10 * MB
    )
    return SlowScene(finished, running, cancelled, windows.format_time(world.NOW - DAY))


def end(rate: Callable[[Probe], float], probes: Sequence[Probe] = ()) -> None:
    """End tests that are ordered, all if these are not said, as a worker would: with MB/s."""
    profiles = store.Profiles()
    probes = probes or list(Probe.objects.order_by("id"))
    store.store(
        [
            store.Result(
                id=probe.id,
                source_id=probe.source_id,
                destination_id=probe.destination_id,
                size_class_id=probe.size_class_id,
                profile_id=profiles.id_of(
                    mover=probe.mover, mode=probe.mode, streams=probe.streams
                ),
                state="done",
                started_at=world.NOW - HOUR + timedelta(seconds=position),
                seconds=probe.bytes / rate(probe) / MB,
                bytes=probe.bytes,
            )
            for position, probe in enumerate(probes)
        ],
        ids_are_new=True,
    )
    Probe.objects.filter(id__in=[probe.id for probe in probes]).delete()
