"""Rows of the registry that all tests of a process share, read again when its version has moved.

Hundreds of tests in flight are between the same few endpoints: a row for each of them would be
read, and kept, as often as there are tests. Whoever has one only reads it.
"""

from typing import Any

from django.db.models import Model, QuerySet

from sonar.credentials.rules import CREDENTIALS
from sonar.models import Endpoint, Mesh, Probe, SizeClass

ROWS: dict[type[Model], QuerySet[Any]] = {
    Endpoint: Endpoint.objects.select_related(*CREDENTIALS),
    Mesh: Mesh.objects.select_related("service_credential"),
    SizeClass: SizeClass.objects.all(),
}


class SharedRows:
    """Those of one version: none is older than it."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._rows: dict[tuple[type[Model], int], Any] = {}

    def read(self, model: type[Model], *keys: int) -> list[Any]:
        """Return the rows with these keys, None for one that there is not.

        One SQL query for those that nobody has read yet.
        """
        if missing := {key for key in keys if (model, key) not in self._rows}:
            self._rows |= {(model, key): row for key, row in ROWS[model].in_bulk(missing).items()}
        return [self._rows.get((model, key)) for key in keys]


_latest = [SharedRows("")]


def attach(probe: Probe, version: str) -> bool:
    """Give a probe its ends with their credentials, its size class, and its mesh with its own.

    Returns False if one of them is gone. ``version`` is that of the registry, read no later than
    the probe. No SQL query while the registry stays and another test had the same rows.
    """
    rows = _latest[0]
    if rows.version != version:
        rows = _latest[0] = SharedRows(version)
    source, destination = rows.read(Endpoint, probe.source_id, probe.destination_id)
    (size_class,) = rows.read(SizeClass, probe.size_class_id)
    if source is None or destination is None or size_class is None:
        return False
    probe.source, probe.destination, probe.size_class = source, destination, size_class
    if probe.mesh_id is not None:
        (probe.mesh,) = rows.read(Mesh, probe.mesh_id)
    return True
