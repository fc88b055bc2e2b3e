"""What the matrix reads from the database: one SQL statement each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from matrix import raw
from matrix.filters import Filter, alternatives
from matrix.places import Links, Place
from matrix.query import MatrixQuery
from matrix.statistics import Floats
from sonar.models import Endpoint, Mesh, Profile, Schedule, SizeClass, Transfer, Version
from sonar.windows import Window

# How a transfer was made, by URL parameter; a mesh promises transfers of origin test.
PROFILE_FIELDS = {
    "mover": "mover",
    "streams": "streams",
    "ip_version": "ip_version",
    "origin": "origin",
    "mesh": "mesh__name",
}
MESH_FIELDS = {"mover": "mover", "streams": "streams", "mesh": "name"}


def read_versions() -> str:
    """Return what changes with every result, registry entry and schedule."""
    counters = dict(Version.objects.values_list("name", "value"))
    return "-".join(str(counters.get(name, 0)) for name in ("results", "registry", "schedule"))


def read_places() -> tuple[Place, ...]:
    """Read every endpoint, in the order of ids that Links needs."""
    site = ("site__name", "site__cloud", "site__tier", "site__country")
    rows = Endpoint.objects.order_by("id").annotate(retired=Q(retired_at__isnull=False))
    return tuple(
        Place(*row)
        for row in rows.values_list("id", "name", *site, "label", "simulated", "retired")
    )


def read_results(query: MatrixQuery, window: Window) -> NDArray[np.void]:
    """Read the transfers of the size class that started in the window, and were not lost.

    A lost transfer (its worker died) says nothing about the link: neither ok nor failed.
    """
    transfers = Transfer.objects.filter(
        size_class=SizeClass.objects.filter(name=query.size).values("id")[:1],
        started_at__gte=window.start,
        started_at__lt=window.end,
        state__in=[Transfer.State.DONE, Transfer.State.FAILED],
    )
    if made := condition(query.filters, PROFILE_FIELDS):
        transfers = transfers.filter(profile__in=Profile.objects.filter(made).values("id"))
    fields = {
        "source_id": raw.INTEGER,
        "destination_id": raw.INTEGER,
        "started_at": raw.TIME,
        "bytes": raw.INTEGER,
        "seconds": raw.FLOAT,
        "ok": raw.FLAG,
    }
    return raw.columns(transfers.annotate(ok=Q(state=Transfer.State.DONE)), fields)


def read_promises(query: MatrixQuery, links: Links) -> Floats:
    """Return the shortest interval in seconds at which a mesh tests each link, else infinity.

    Only meshes that pass the filters promise anything: where the question is for results
    made otherwise, a link without any is not called untested.
    """
    promise = np.full(len(links.places) ** 2, np.inf)
    if not asks_for_tests(query.filters):
        return promise
    schedules = Schedule.objects.filter(size_class__name=query.size)
    if made := condition(query.filters, MESH_FIELDS):
        schedules = schedules.filter(mesh__in=Mesh.objects.filter(made).values("id"))
    fields = {
        "source_id": raw.INTEGER,
        "destination_id": raw.INTEGER,
        "every_seconds": raw.SHORT,
    }
    rows = raw.columns(schedules, fields)
    np.minimum.at(promise, links.numbers(rows), rows["every_seconds"])
    promise[links.ends(place.retired for place in links.places)] = np.inf
    return promise


def condition(filters: Iterable[Filter], fields: Mapping[str, str]) -> Q:
    """Turn the filters on these fields into a condition; NULL is never an excluded value."""
    whole = Q()
    for some in alternatives(one for one in filters if one.parameter in fields):
        field = fields[some[0].parameter]
        one_of = Q(**{f"{field}__in": [one.value for one in some]})
        whole &= ~one_of if some[0].exclude else one_of
    return whole


def asks_for_tests(filters: Iterable[Filter]) -> bool:
    """Say whether the filters on the origin let tests pass."""
    of_origin = alternatives(one for one in filters if one.parameter == "origin")
    return all(("test" in {one.value for one in some}) != some[0].exclude for some in of_origin)
