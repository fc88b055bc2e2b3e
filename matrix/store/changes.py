"""What the search has kept: jumps of level, outages, and what was written near them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, Self

import numpy as np
from django.db import connection
from django.db.models import DateTimeField, Exists, OuterRef, Q, QuerySet, Subquery

from matrix.query.filters import Filter, counted, on_links
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.store import keyset, notes
from matrix.store.keyset import Cursor
from matrix.store.profiles import made_so
from matrix.store.transfers import ends_condition
from sonar.database.cursors import planned_rows
from sonar.models import Annotation, Change, ChangeSearch, Downtime, Outage, Transfer
from sonar.notation.windows import Window
from sonar.people.roles import Anyone

# What began or ended so long before or after a change may have to do with it.
NEAR = timedelta(days=1)
ORDER = ("-at", "-id")
LEVELS = ("slower", "faster")
# What undoes a jump is its end; one that is older than this before a window is looked for no more.
BEFORE = timedelta(days=90)


@dataclass(frozen=True)
class ChangeSelection:
    """Which changes: those dated in a window, and what is said of them; empty means any.

    ``least`` is the smallest factor either way, from 1 on. ``unsure`` lists those, too, that many
    such searches would find by chance.
    """

    window: Window
    size: str = ""
    kinds: tuple[str, ...] = ()
    level: str = ""
    least: float = 1.0
    unsure: bool = False
    filters: tuple[Filter, ...] = ()

    def rows(self, endpoints: Sequence[EndpointInfo]) -> QuerySet[Change]:
        """Return them in no order; no SQL yet."""
        rows = Change.objects.filter(at__gte=self.window.start, at__lt=self.window.end)
        rows = rows.filter(of_links_passing(self.filters, endpoints))
        if self.size:
            rows = rows.filter(size_class__name=self.size)
        if self.kinds:
            rows = rows.filter(kind__in=self.kinds)
        if not self.unsure:
            rows = rows.filter(sure=True)
        return rows.filter(self._condition())

    def _condition(self) -> Q:
        slower = Q(factor__lte=1 / self.least)
        faster = Q(factor__gte=self.least)
        if self.level == "slower":
            return slower & Q(factor__lt=1)
        return faster & Q(factor__gt=1) if self.level == "faster" else slower | faster


def of_links_passing(filters: Sequence[Filter], endpoints: Sequence[EndpointInfo]) -> Q:
    """Return what holds for changes of links that pass, of endpoints that have one, and of all."""
    chosen = on_links(filters)
    if not chosen:
        return Q()
    links = LinkIndex(tuple(endpoints))
    ids = links.numbering.ids
    sources, destinations = (
        ids[np.flatnonzero(flags)].tolist() for flags in links.touched(links.matching(chosen))
    )
    return (
        Q(kind=Change.Kind.LINK) & ends_condition(chosen, endpoints)
        | Q(kind=Change.Kind.SOURCE, source__in=sources)
        | Q(kind=Change.Kind.DESTINATION, destination__in=destinations)
        | Q(kind=Change.Kind.GRID)
    )


def listing(
    rows: QuerySet[Change], count: int, after: Cursor | None = None
) -> tuple[list[Change], Cursor | None]:
    """Return a page, newest first, and where the next one begins. One SQL query."""
    return keyset.page_by_time(rows.select_related("size_class"), ORDER, count, after)


def searches() -> list[ChangeSearch]:
    """Return when each size class was last searched, by the size of its files. One SQL query."""
    rows = ChangeSearch.objects.select_related("size_class")
    return list(rows.order_by("size_class__from_bytes"))


class Timed(Protocol):
    """What came to pass between two times."""

    @property
    def earliest(self) -> datetime: ...
    @property
    def latest(self) -> datetime: ...


@dataclass(frozen=True)
class WrittenNear:
    """What people wrote or declared that began or ended around some changes."""

    annotations: list[Annotation]
    downtimes: list[Downtime]

    @classmethod
    def read(cls, happened: Sequence[Timed], reader: Anyone) -> Self:
        """Read what may concern any of what happened. At most two SQL queries beside rights."""
        if not happened:
            return cls([], [])
        start = min(each.earliest for each in happened) - NEAR
        end = max(each.latest for each in happened) + NEAR
        turns = Q(starts_at__range=(start, end)) | Q(ends_at__range=(start, end))
        visible = Annotation.objects.filter(turns, notes.visible_to(reader))
        annotations = visible.order_by("-starts_at", "-id")
        # Rows of one announcement keep its order, as on the page of a site.
        downtimes = Downtime.objects.filter(turns).order_by("-starts_at", "id")
        return cls(
            list(annotations.select_related("site", "source", "destination")),
            list(downtimes.select_related("site", "endpoint")),
        )


def turns_near(happened: Timed, moments: Sequence[datetime | None]) -> bool:
    """Say whether one of some moments is about when something came to pass."""
    start, end = happened.earliest - NEAR, happened.latest + NEAR
    return any(moment is not None and start <= moment <= end for moment in moments)


def searched() -> str:
    """Return what changes with each search. One SQL query."""
    ((newest,),) = planned_rows("SELECT max(searched_at) FROM sonar_changesearch")
    return newest.isoformat() if newest else ""


KEPT = """
    SELECT md5(concat(
        (SELECT string_agg(change::text, ',' ORDER BY id) FROM sonar_change AS change
         WHERE at >= %(from)s AND at < %(end)s),
        (SELECT string_agg(outage::text, ',' ORDER BY id) FROM sonar_outage AS outage
         WHERE began < %(end)s AND (ended IS NULL OR ended >= %(start)s))))
"""


def kept_version(window: Window) -> str:
    """Return what differs with what read_changes and read_outages return. One SQL query."""
    bounds = {"from": window.start - BEFORE, "start": window.start, "end": window.end}
    with connection.cursor() as cursor:
        cursor.execute(KEPT, bounds)
        return str(cursor.fetchone()[0])


def read_changes(window: Window, condition: Q) -> list[Change]:
    """Return the jumps from BEFORE a window up to its end. One SQL query."""
    rows = Change.objects.filter(condition, at__gte=window.start - BEFORE, at__lt=window.end)
    return list(rows.select_related("size_class").order_by("id"))


def read_outages(window: Window, condition: Q) -> list[Outage]:
    """Return the outages that lasted at some time of a window. One SQL query."""
    lasting = Q(ended__isnull=True) | Q(ended__gte=window.start)
    rows = Outage.objects.filter(condition, lasting, began__lt=window.end)
    return list(rows.select_related("size_class").order_by("id"))


def with_ends(outages: Iterable[Outage]) -> None:
    """Note the first success since the search of each link that had none then. One SQL query."""
    lasting = {row.pk: row for row in outages if row.ended is None and row.kind == "link"}
    if not lasting:
        return
    successes = made_so(
        Transfer.objects.filter(
            source_id=OuterRef("source_id"),
            destination_id=OuterRef("destination_id"),
            size_class_id=OuterRef("size_class_id"),
            state=Transfer.State.DONE,
            started_at__gt=OuterRef("newest"),
        ),
        counted(()),
    )
    first = successes.order_by("started_at").values("started_at")[:1]
    rows = Outage.objects.filter(Exists(successes), pk__in=list(lasting))
    ends = rows.annotate(success=Subquery(first, DateTimeField()))
    for pk, ended in ends.values_list("pk", "success"):
        lasting[pk].ended = ended
