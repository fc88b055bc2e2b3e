"""Places in the queue: how many tests come before one that has not begun."""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from django.db.models.functions import Coalesce

from sonar.models import Probe


def places() -> Mapping[UUID, int]:
    """Number what is queued, and what waits for the same ends, in its order. One SQL query."""
    open_probes = Probe.objects.exclude(state=Probe.State.RUNNING)
    rows = open_probes.order_by(Coalesce("queued_at", "requested_at"), "id").values_list(
        "id", "state", "source_id", "destination_id"
    )
    numbers: dict[UUID, int] = {}
    sources, destinations, links = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
    queued = 0
    for probe, state, source, destination in rows:
        if state == Probe.State.QUEUED:
            numbers[probe] = queued = queued + 1
            continue
        # Those of its link wait for both ends, and are counted once.
        before = sources[source] + destinations[destination] - links[source, destination]
        numbers[probe] = before + 1
        sources[source] += 1
        destinations[destination] += 1
        links[source, destination] += 1
    return numbers
