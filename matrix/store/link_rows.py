"""The single results of some links as raw rows, which the index on the link finds."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from matrix.query.filters import Filter, counted
from matrix.store.profiles import made_so
from sonar.database import pg_copy
from sonar.models import SizeClass, Transfer
from sonar.notation.windows import Window
from sonar.results import segments

# What is read of each: segments.ROW_FIELDS, and of results of all size classes which one, and who.
OF_CLASS = segments.ROW_FIELDS
OF_ALL = OF_CLASS | {"size_class_id": pg_copy.INTEGER, "id": "V16"}
Ends = tuple[int, int]


def read(
    links: Sequence[Ends],
    window: Window,
    filters: Sequence[Filter],
    size: str = "",
    *,
    experiments: bool = False,
) -> NDArray[np.void]:
    """Read what says something about these links, in the order of time. One SQL statement.

    ``links`` are the ids of their ends. With the name of a size class, rows have OF_CLASS and are
    of that class, else they have OF_ALL. Lost results are left out, and experiments unless they are
    asked for, here or by a filter. Segments would have those of all links of the grid, and no
    index.
    """
    transfers = Transfer.objects.filter(
        between(links),
        started_at__gte=window.start,
        started_at__lt=window.end,
        state__in=[Transfer.State.DONE, Transfer.State.FAILED],
    )
    if size:
        transfers = transfers.filter(
            size_class=SizeClass.objects.filter(name=size).values("id")[:1]
        )
    passing = made_so(transfers, filters if experiments else counted(filters))
    judged = passing.annotate(ok=Q(state=Transfer.State.DONE))
    rows = pg_copy.columns(judged, OF_CLASS if size else OF_ALL)
    return rows[np.argsort(rows["started_at"], kind="stable")]


def between(links: Sequence[Ends]) -> Q:
    """Return a condition that the index on the link answers: no link is looked for singly.

    Those of a site share an end: what they share is named once, with all that is opposite.
    """
    opposite: dict[frozenset[int], list[int]] = {}
    targets: dict[int, set[int]] = {}
    for source, destination in links:
        targets.setdefault(source, set()).add(destination)
    for source, of_source in targets.items():
        opposite.setdefault(frozenset(of_source), []).append(source)
    groups = [
        Q(source__in=sources, destination__in=list(destinations))
        for destinations, sources in opposite.items()
    ]
    return reduce(or_, groups, Q(pk__in=[]))
