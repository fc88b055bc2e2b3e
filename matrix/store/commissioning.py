"""What the search for commissioned links reads beside results: downtimes, by day and by hour."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np
from django.db.models import Q

from matrix.statistics.arrays import Flags
from matrix.statistics.levels.criteria import HOUR_MS
from matrix.store import data_version
from matrix.store.downtimes import within
from matrix.store.read_plan import Span, moment
from sonar.models import CommissioningRecord, CriteriaSet, Downtime, Endpoint
from sonar.notation.windows import Window, format_time, unix_ms


def versions(size: str, window: Window) -> dict[str, str]:
    """Return by day what changes with its results and downtimes. Two SQL statements."""
    days = [Window(moment(day.start), moment(day.end)) for day in Span.of(window).by_day()]
    results = data_version.read_results(size, days)
    outages, by_day = _outages(window), {}
    for day, version in zip(days, results, strict=True):
        of_day = sorted(
            (
                *(row.site_id or 0, row.endpoint_id or 0),
                *(max(row.starts_at, day.start), min(row.ends_at, day.end)),
            )
            for row in outages
            if row.starts_at < day.end and row.ends_at > day.start
        )
        digest = sha256(repr(of_day).encode()).hexdigest()[:12] if of_day else ""
        by_day[format_time(day.start)] = f"{version}/{digest}"
    return by_day


def _outages(window: Window) -> list[Downtime]:
    return [row for row in within(window.start, window.end) if row.stops_tests]


def hours_down(window: Window, ids: Sequence[int]) -> Flags:
    """Say in which hours of a window a declared downtime touches each endpoint.

    Shape (endpoints, hours). Two SQL queries.
    """
    span = Span.of(window)
    down = np.zeros((len(ids), (span.end - span.start) // HOUR_MS), dtype=bool)
    places = {endpoint: place for place, endpoint in enumerate(ids)}
    of_site: Mapping[int, list[int]] = defaultdict(list)
    for endpoint, site in Endpoint.objects.filter(pk__in=ids).values_list("id", "site_id"):
        of_site[site].append(places[endpoint])
    for row in _outages(window):
        first = max(0, (unix_ms(row.starts_at) - span.start) // HOUR_MS)
        past = -((span.start - unix_ms(row.ends_at)) // HOUR_MS)
        rows = of_site[row.site_id] if row.site_id else []
        if row.endpoint_id in places:
            rows = [places[row.endpoint_id]]
        down[rows, first : max(first, past)] = True
    return down


def records(row: CriteriaSet) -> list[CommissioningRecord]:
    """Return the newest record of each link of a set. One SQL query."""
    rows = CommissioningRecord.objects.filter(criteria_set=row)
    ordered = rows.order_by("source_id", "destination_id", "-passed_at", "id")
    return list(ordered.distinct("source_id", "destination_id"))


def of_link(row: CriteriaSet, ends: Q) -> list[CommissioningRecord]:
    """Return the records of a link in a set, the newest first. One SQL query."""
    rows = CommissioningRecord.objects.filter(ends, criteria_set=row)
    return list(rows.order_by("-passed_at", "id"))


def newest_of_link(ends: Q) -> dict[int, CommissioningRecord]:
    """Return the newest record of a link by the id of its set. One SQL query."""
    rows = CommissioningRecord.objects.filter(ends).order_by("criteria_set_id", "-passed_at", "id")
    return {row.criteria_set_id: row for row in rows.distinct("criteria_set_id")}
