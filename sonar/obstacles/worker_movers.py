"""Which movers workers offer: each takes the tests of those whose tools its machine has.

A worker that is started for the queue ``transfers`` takes from the queue of each such mover, and
its sign of life (sonar.processes.heartbeats) says from which: that is its offer. Tests of the
network run at one of their ends: their queues are those of a mover and an endpoint,
``iperf3.RAL_NET``.
"""

from collections.abc import Collection
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from sonar.credentials.rules import PASSIVE_AND_ACTIVE
from sonar.models import Endpoint, Mesh, Probe, SignOfLife
from sonar.movers import catalogue
from sonar.movers.catalogue import MoverDescription
from sonar.processes import heartbeats

TRANSFERS = "transfers"


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
    return [queue_of(offer_for(mover, here)) for mover in able]


def lacking_here() -> set[str]:
    """Return the movers that cannot run in this process."""
    return {mover.name for mover in catalogue.MOVERS if mover.missing()}


def offers_of(queues: Collection[str]) -> set[str]:
    """Return the movers whose queues are among these; those of the network with their ends too."""
    parts = (queue.split(".", 2) for queue in queues if queue.startswith(f"{TRANSFERS}."))
    offered = [part[1:] for part in parts if part[1] in catalogue.names()]
    return {part[0] for part in offered} | {".".join(part) for part in offered}


def by_living(now: datetime) -> set[str] | None:
    """Return what workers offer; None while no worker takes tests. One SQL query.

    That nobody lives is another trouble, which passes when a worker is started again.
    """
    signs = SignOfLife.objects.filter(kind=SignOfLife.Kind.WORKER)
    living = [sign for sign in signs if not heartbeats.is_silent(sign, now)]
    queues = {queue for sign in living for queue in sign.queues}
    return offers_of(queues) if TRANSFERS in queues else None


def unsupported(mover: MoverDescription, offered: Collection[str] | None) -> str:
    """Say in a sentence that nobody can run a mover; empty if somebody can, or nobody lives."""
    if offered is None or mover.name in offered:
        return ""
    return f"No worker can run the mover {mover.name}: to run it, {what_it_needs(mover)}"


def unsupported_at_end(probe: Probe, offered: Collection[str] | None) -> str:
    """Say the same of a test, for which somebody may have to be at one of its ends."""
    end: Endpoint = getattr(probe, PASSIVE_AND_ACTIVE[probe.mode][1])
    if offered is None or offer_for(probe.mover_description, end.name) in offered:
        return ""
    return unsupported(probe.mover_description, offered) or (
        f"With mode {probe.mode} a worker at {end.name} runs it, and none says that it is there. "
        f"Its setting {catalogue.HERE.name} must be {end.name}."
    )


def without_worker(meshes: Collection[Mesh], offered: Collection[str] | None) -> Q:
    """Match the schedules of meshes that test the network from an end where no worker is.

    One SQL query, none without such a mesh.
    """
    matched, of_network = (
        Q(pk__in=[]),
        [mesh for mesh in meshes if mesh.mover_description.of_network],
    )
    if offered is None or not of_network:
        return matched
    ids = dict(Endpoint.objects.order_by().values_list("name", "id"))
    for mesh in of_network:
        there = [ids[name] for name in ids if offer_for(mesh.mover_description, name) in offered]
        active = PASSIVE_AND_ACTIVE[mesh.mode][1]
        matched |= Q(mesh=mesh) & ~Q(**{f"{active}__in": there})
    return matched


def what_it_needs(mover: MoverDescription) -> str:
    """Say what a worker needs for a mover, as the end of a sentence and with its full stop."""
    labels = [need.label for need in mover.needs]
    if not labels:
        return "start a worker of this version."
    return f"a worker needs {' and '.join(labels)}."
