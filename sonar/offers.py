"""Which movers workers offer: each takes the tests of those whose tools its machine has.

A worker that is started for the queue ``transfers`` takes from the queue of each such mover, and
its sign of life (sonar.heartbeats) says from which: that is its offer.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sonar import heartbeats, mover_catalogue
from sonar.models import Mesh, SignOfLife

TRANSFERS = "transfers"


def queue_of(mover: str) -> str:
    """Return the name of the queue with the tests of a mover."""
    return f"{TRANSFERS}.{mover}"


def queues_here() -> list[str]:
    """Return the queues of the movers that can run in this process."""
    lacking = lacking_here()
    return [queue_of(name) for name in mover_catalogue.names() if name not in lacking]


def lacking_here() -> set[str]:
    """Return the movers that cannot run in this process."""
    return {mover.name for mover in mover_catalogue.MOVERS if mover.missing()}


def movers_of(queues: Collection[str]) -> set[str]:
    """Return the movers whose queues are among these."""
    return {name for name in mover_catalogue.names() if queue_of(name) in queues}


def by_living(now: datetime) -> set[str] | None:
    """Return the movers that workers offer; None while no worker takes tests. One SQL query.

    That nobody lives is another trouble, which passes when a worker is started again.
    """
    signs = SignOfLife.objects.filter(kind=SignOfLife.Kind.WORKER)
    living = [sign for sign in signs if not heartbeats.is_silent(sign, now)]
    queues = {queue for sign in living for queue in sign.queues}
    return movers_of(queues) if TRANSFERS in queues else None


def unoffered(now: datetime) -> dict[str, str]:
    """Say of each mover of enabled meshes that no worker can run which tests wait, and for what.

    Two SQL queries.
    """
    offered = by_living(now)
    meshes: dict[str, list[str]] = {}
    for name, mover in Mesh.objects.filter(enabled=True).values_list("name", "mover"):
        if hindrance(mover, offered):
            meshes.setdefault(mover, []).append(name)
    return {
        mover: f"the tests of {_named(names)} wait. To run it, {what_it_needs(mover)}"
        for mover, names in sorted(meshes.items())
    }


def _named(meshes: list[str]) -> str:
    return f"the mesh {meshes[0]}" if len(meshes) == 1 else f"the meshes {', '.join(meshes)}"


def notice(now: datetime) -> str:
    """Say the same in one line for who saves meshes; empty if every mover is offered."""
    sentences = unoffered(now).items()
    return " ".join(f"No worker can run the mover {name}: {why}" for name, why in sentences)


def hindrance(mover: str, offered: Collection[str] | None) -> str:
    """Say in a sentence that nobody can run a mover; empty if somebody can, or nobody lives."""
    if offered is None or mover in offered:
        return ""
    return f"No worker can run the mover {mover}: to run it, {what_it_needs(mover)}"


def what_it_needs(mover: str) -> str:
    """Say what a worker needs for a mover, as the end of a sentence and with its full stop."""
    labels = [need.label for need in mover_catalogue.describe(mover).needs]
    if not labels:
        return "start a worker of this version."
    return f"a worker needs {' and '.join(labels)}."
