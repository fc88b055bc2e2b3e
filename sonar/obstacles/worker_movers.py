"""Which movers workers offer: each takes the tests of those whose tools its machine has.

A worker that is started for the queue ``transfers`` takes from the queue of each such mover, and
its sign of life (sonar.processes.heartbeats) says from which: that is its offer. Tests of the
network run at one of their ends: their queues are those of a mover and an endpoint,
``iperf3.RAL_NET``. A worker at a vantage takes from the queues of that vantage alone:
``transfers@cern``, ``transfers.http-tpc@cern``.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from sonar.credentials.rules import PASSIVE_AND_ACTIVE
from sonar.models import Endpoint, Mesh, Probe, Schedule, SignOfLife
from sonar.movers import catalogue
from sonar.movers.catalogue import MoverDescription
from sonar.notation.vantages import at, named, vantage_of
from sonar.processes import heartbeats

TRANSFERS, CLEANUP = "transfers", "cleanup"
AT_VANTAGES = (TRANSFERS, CLEANUP)
"""Queues of what asks storage, which each vantage has of its own."""
Offered = Mapping[str, Collection[str]]
"""Offers of workers, by the vantages where some take tests."""


def queue_of(offer: str) -> str:
    """Return the name of the queue with the tests that an offer is for."""
    return f"{TRANSFERS}.{offer}"


def offer_for(mover: MoverDescription, endpoint: str) -> str:
    """Return what a worker must offer for a mover; ``endpoint`` is that which does the work."""
    return f"{mover.name}.{endpoint}" if mover.of_network else mover.name


def queues_here() -> list[str]:
    """Return the queues of the movers that can run in this process."""
    here = settings.SONAR_NETWORK_ENDPOINT
    able = [mover for mover in catalogue.MOVERS if not mover.missing()]
    return [at(queue_of(offer_for(mover, here)), settings.SONAR_VANTAGE) for mover in able]


def lacking_here() -> set[str]:
    return {mover.name for mover in catalogue.MOVERS if mover.missing()}


def vantages_of(probe: Probe | Schedule) -> tuple[str, ...]:
    """Return the vantages that a test names; it runs at the first, without one at the default."""
    ends = probe.source.vantage, probe.destination.vantage
    return named([*ends, probe.mesh.vantage if probe.mesh else ""])


def elsewhere(vantages: Iterable[str]) -> str:
    """Say that this process is not where all of these vantages are; empty if it is."""
    here, others = settings.SONAR_VANTAGE, named(vantages)
    if set(others) <= {here}:
        return ""
    place = f"is at the vantage point {here}" if here else "has no vantage point"
    return (
        f"the endpoint can be reached only from the vantage point {' and '.join(others)}, but this "
        f"process {place} (SONAR_VANTAGE)."
    )


def living_queues(now: datetime) -> set[str]:
    """Return the queues that living workers take from. One SQL query."""
    signs = SignOfLife.objects.filter(kind=SignOfLife.Kind.WORKER)
    return {queue for sign in signs if not heartbeats.is_silent(sign, now) for queue in sign.queues}


def by_living(now: datetime) -> Offered:
    """Return what workers offer; empty while no worker takes tests. One SQL query.

    That nobody lives is another trouble, which passes when a worker is started again.
    """
    queues = living_queues(now)
    vantages = {vantage_of(queue) for queue in queues if queue.partition("@")[0] == TRANSFERS}
    offers = {}
    for vantage in vantages:
        own = [queue.partition("@")[0] for queue in queues if vantage_of(queue) == vantage]
        parts = (queue.split(".", 2) for queue in own if queue.startswith(f"{TRANSFERS}."))
        of_movers = [part[1:] for part in parts if part[1] in catalogue.names()]
        # The movers, and those of the network with their ends too.
        offers[vantage] = {part[0] for part in of_movers} | {".".join(part) for part in of_movers}
    return offers


def no_worker_at(vantage: str, offered: Offered) -> str:
    """Say that no worker lives at a vantage; empty if one does.

    At the default one only while workers live elsewhere: that nobody lives at all is told apart.
    """
    if vantage in offered or not (vantage or offered):
        return ""
    if vantage:
        return (
            f"No worker is running at the vantage point {vantage}: start one there with "
            f"SONAR_VANTAGE={vantage}."
        )
    return "No worker without a vantage point is running: start one without SONAR_VANTAGE."


def unsupported(mover: MoverDescription, offered: Collection[str], vantage: str = "") -> str:
    """Say in a sentence that nobody at a vantage can run a mover; empty if somebody can."""
    if mover.name in offered:
        return ""
    place = f" at the vantage point {vantage}" if vantage else ""
    labels = " and ".join(need.label for need in mover.needs)
    step = f"a worker needs {labels}" if labels else "start a worker of this version of Sonar"
    return f"No worker{place} can run the transfer tool {mover.name}: {step}."


def unsupported_at_end(probe: Probe, offered: Collection[str], vantage: str) -> str:
    """Say the same of a test, for which somebody may have to be at one of its ends."""
    end: Endpoint = getattr(probe, PASSIVE_AND_ACTIVE[probe.mode][1])
    if offer_for(probe.mover_description, end.name) in offered:
        return ""
    return unsupported(probe.mover_description, offered, vantage) or (
        f"In {probe.mode} mode, a worker at {end.name} runs this test, but no such worker is "
        f"running. Start a worker with {catalogue.HERE.name}={end.name}."
    )


def without_worker(meshes: Collection[Mesh], offered: Collection[str]) -> Q:
    """Match the schedules of meshes that test the network from an end where no worker is.

    One SQL query, none without such a mesh.
    """
    matched = Q(pk__in=[])
    of_network = [mesh for mesh in meshes if mesh.mover_description.of_network]
    if not of_network:
        return matched
    ids = dict(Endpoint.objects.order_by().values_list("name", "id"))
    for mesh in of_network:
        there = [ids[name] for name in ids if offer_for(mesh.mover_description, name) in offered]
        active = PASSIVE_AND_ACTIVE[mesh.mode][1]
        matched |= Q(mesh=mesh) & ~Q(**{f"{active}__in": there})
    return matched
