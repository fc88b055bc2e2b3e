"""What is to be tested between two endpoints, and what is queued or running there now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from matrix.query.filters import Filter, alternatives
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.store.registry import MESH_FIELDS, asks_for_tests
from sonar.models import Mesh, Probe, Schedule


def schedules(ends: Sequence[EndpointInfo]) -> list[Schedule]:
    """Return the tests that are scheduled between two endpoints, both ways. Two SQL queries.

    All meshes are named, as the index begins with them: without, millions of rows are read.
    """
    ids = [endpoint.id for endpoint in ends]
    between = Schedule.objects.filter(
        mesh__in=list(Mesh.objects.values_list("id", flat=True)),
        source__in=ids,
        destination__in=ids,
    )
    ordered = between.order_by("size_class__from_bytes", "mesh__name", "id")
    return list(ordered.select_related("mesh", "size_class", "source__site", "destination__site"))


def promises(
    planned: Iterable[Schedule], size_class: int, links: LinkIndex, filters: Sequence[Filter]
) -> Floats:
    """Return what registry.read_promises does, of the schedules that were read already.

    Shape (endpoints, endpoints), seconds; infinity for no promise.
    """
    promise = np.full(links.shape, np.inf)
    if not asks_for_tests(filters):
        return promise
    numbers = {endpoint.id: number for number, endpoint in enumerate(links.places)}
    for schedule in planned:
        if schedule.size_class_id == size_class and passes(schedule.mesh, filters):
            link = numbers[schedule.source_id], numbers[schedule.destination_id]
            promise[link] = min(promise[link], schedule.every_seconds)
    retired = links.ends(endpoint.retired for endpoint in links.places).reshape(links.shape)
    promise[retired] = np.inf
    return promise


def passes(mesh: Mesh, filters: Iterable[Filter]) -> bool:
    """Say whether the filters on how a result was made let the tests of a mesh pass.

    Those of the network alone become no transfers, so that they never do.
    """
    if mesh.mover_description.of_network:
        return False
    of_mesh = (condition for condition in filters if condition.parameter in MESH_FIELDS)
    return all(
        (
            str(getattr(mesh, MESH_FIELDS[group[0].parameter]))
            in {condition.value for condition in group}
        )
        != group[0].exclude
        for group in alternatives(of_mesh)
    )


def open_probes(ends: Sequence[EndpointInfo]) -> list[Probe]:
    """Return the tests that are queued or running between two endpoints, both ways."""
    ids = [endpoint.id for endpoint in ends]
    between = Probe.objects.filter(source__in=ids, destination__in=ids)
    return list(between.select_related("size_class", "mesh").order_by("requested_at", "id"))
