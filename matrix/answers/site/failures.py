"""Why tests of the links of a site failed: their errors, by cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import Q

from matrix.answers.site.reports import Report, ReportCell, cells_of
from matrix.query.filters import Filter, counted, on_profiles
from matrix.store.profiles import RESULT_FIELDS, condition, passing
from matrix.store.transfers import cause_sql
from matrix.store.window_buckets import NOT_COUNTED
from sonar.database import pg_copy
from sonar.models import Transfer
from sonar.notation.windows import Window

MOST_GROUPS = 10
# By the index on the link, so that it costs what these links have, not what the window has.
GROUPS = """
    SELECT error_where, {cause},
           count(*), count(DISTINCT (source_id, destination_id)), min(started_at),
           max(started_at), (array_agg(id ORDER BY started_at DESC, id))[1],
           (array_agg(error ORDER BY started_at DESC, id))[1], sum(count(*)) OVER ()
    FROM unnest(%(sources)s::bigint[], %(destinations)s::bigint[]) AS link (source, destination)
    JOIN sonar_transfer ON source_id = link.source AND destination_id = link.destination
    WHERE started_at >= %(start)s AND started_at < %(end)s AND state = 'failed'
      AND size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
      AND CASE WHEN %(profiles)s::int[] IS NULL THEN profile_id NOT IN
                   ({not_counted})
               ELSE profile_id = ANY(%(profiles)s) END
      {own}
    GROUP BY 1, 2 ORDER BY 3 DESC, 6 DESC, 1, 2 LIMIT %(most)s
"""


@dataclass(frozen=True)
class Failures:
    """Failed tests of one cause, as far as errors tell; ``error`` is that of the newest."""

    where: str
    cause: str
    count: int
    links: int
    first: datetime
    last: datetime
    newest: UUID
    error: str


def grouped(
    links: Sequence[tuple[int, int]], size: str, window: Window, filters: Sequence[Filter]
) -> tuple[list[Failures], int]:
    """Return the largest groups, and how many failures all have; ``links`` are ids of ends."""
    if not links:
        return [], 0
    allowed = passing(counted(filters) if on_profiles(filters) else ())
    sources, destinations = zip(*links, strict=True)
    parameters: dict[str, Any] = {
        "sources": list(sources),
        "destinations": list(destinations),
        "start": window.start,
        "end": window.end,
        "size": size,
        "profiles": None if allowed is None else np.flatnonzero(allowed).tolist(),
        "most": MOST_GROUPS,
    }
    # Filters on what no profile has, as SQL.
    own = ""
    if on_results := condition(filters, RESULT_FIELDS):
        started = Q(started_at__gte=window.start, started_at__lt=window.end)
        ids = Transfer.objects.filter(on_results, started).values_list("id")
        own = f"AND id IN ({pg_copy.sql_of(ids)})".replace("%", "%%")
    statement = GROUPS.format(cause=cause_sql(), own=own, not_counted=NOT_COUNTED)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows = cursor.fetchall()
    return [Failures(*row[:-1]) for row in rows], int(rows[0][-1]) if rows else 0


def errors_of(report: Report) -> dict[str, Any]:
    """Return the groups of errors of the links with failed tests, and how many tests they are."""
    failed = report.links.cells.failed > 0
    ids = {endpoint.name: endpoint.id for endpoint in report.all_endpoints}
    cells = cells_of(ReportCell, report.links, failed)
    links = [(ids[cell.source], ids[cell.destination]) for cell in cells]
    groups, total = grouped(links, report.query.size, report.window, report.query.filters)
    return {
        "errors": groups,
        "errors_total": total,
        "errors_left": total - sum(group.count for group in groups),
    }
