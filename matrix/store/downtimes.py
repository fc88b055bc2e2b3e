"""Downtimes as readers know them: one, however many endpoints of a site it has rows for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from sonar.database.cursors import planned_rows
from sonar.models import Downtime, Site, Transfer
from sonar.notation.units import format_count

DAY = timedelta(days=1)
MOST_NAMED = 5
MOST_OF_A_TRANSFER = 20


@dataclass(frozen=True)
class DeclaredDowntime:
    """Rows of one downtime: all have the same times, reason and severity."""

    rows: tuple[Downtime, ...]

    @property
    def subject(self) -> str:
        """Name the sites and endpoints that it is of, not more than anybody reads."""
        names = [row.subject for row in self.rows]
        if len(names) > MOST_NAMED:
            rest = format_count(len(names) - MOST_NAMED)
            return f"{', '.join(names[:MOST_NAMED])} and {rest} more"
        *others, last = names
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def site(self) -> Site | None:
        """Return the site that all of it is of; None for endpoints."""
        return self.rows[0].site if len(self.rows) == 1 else None

    @property
    def site_name(self) -> str:
        """Return the site of the first of what it is of."""
        first = self.rows[0]
        return str(first.site or (first.endpoint and first.endpoint.site))

    @property
    def starts_at(self) -> datetime:
        return self.rows[0].starts_at

    @property
    def ends_at(self) -> datetime:
        return self.rows[0].ends_at

    @property
    def reason(self) -> str:
        return self.rows[0].reason

    @property
    def stops_tests(self) -> bool:
        return self.rows[0].stops_tests

    @property
    def until_words(self) -> str:
        return self.rows[0].until_words

    @property
    def times_words(self) -> str:
        return self.rows[0].times_words

    @property
    def source(self) -> str:
        """Name where it was declared; empty if that was here."""
        return self.rows[0].source

    @property
    def reason_words(self) -> str:
        """Say why and, where no link can, who says so: `new switch (GOCDB)`."""
        return f"{self.reason} ({self.source})" if self.source else self.reason

    @property
    def url(self) -> str:
        return self.rows[0].url


def declared(rows: Iterable[Downtime]) -> list[DeclaredDowntime]:
    """Return the downtimes that some rows are of, in the order of their first rows."""
    by_group: dict[tuple[object, ...], list[Downtime]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    return [DeclaredDowntime(tuple(group)) for group in by_group.values()]


# By hand: mostly there is none, and Django takes longer to write it than PostgreSQL to answer.
SOON = """
    SELECT id FROM sonar_downtime WHERE starts_at < %(until)s AND ends_at > %(moment)s
"""


def read_soon(moment: datetime) -> list[Downtime]:
    """Return the rows that are in force at a moment, or begin within a day of it.

    One SQL query, and one more if there are any.
    """
    times = {"moment": moment, "until": moment + DAY}
    ids = [row[0] for row in planned_rows(SOON, times)]
    in_use = Q(endpoint=None) | Q(endpoint__retired_at=None)
    return list(_rows(in_use & Q(id__in=ids))) if ids else []


def within(start: datetime, end: datetime) -> list[Downtime]:
    """Return the rows that are in force at any moment from start to before end. One SQL query."""
    return list(_rows(Q(starts_at__lt=end, ends_at__gt=start)))


def of_transfer(transfer: Transfer) -> list[DeclaredDowntime]:
    """Return the downtimes of either end that were in force while it ran. One SQL query."""
    started_at, ended_at = transfer.times()
    ends = transfer.source, transfer.destination
    of_ends = Q(endpoint__in=ends) | Q(site__in=[end.site_id for end in ends])
    then = Q(starts_at__lte=ended_at, ends_at__gt=started_at)
    return declared(_rows(of_ends & then)[:MOST_OF_A_TRANSFER])


def _rows(chosen: Q) -> QuerySet[Downtime]:
    """Return rows with what they are of, the first to start first."""
    rows = Downtime.objects.filter(chosen).select_related("site", "endpoint__site")
    return rows.order_by("starts_at", "id")
