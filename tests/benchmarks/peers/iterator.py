"""A stream of results as Django's documentation would have one write it: iterator(), json.dumps."""

import json
from collections.abc import Iterator

from matrix.api.transfers.views import record
from sonar.models import Transfer
from sonar.notation.windows import Window

CHUNK = 2_000


def lines(window: Window, count: int) -> Iterator[bytes]:
    """Yield the newest results of a window as lines of JSON, from a cursor in the database."""
    rows = Transfer.objects.filter(
        started_at__gte=window.start, started_at__lt=window.end, state__in=["done", "failed"]
    ).select_related("source", "destination", "profile", "size_class")
    for one in rows.order_by("-started_at", "-id")[:count].iterator(chunk_size=CHUNK):
        names = {one.source_id: one.source.name, one.destination_id: one.destination.name}
        yield json.dumps(record(one, names, internal=False)).encode() + b"\n"
