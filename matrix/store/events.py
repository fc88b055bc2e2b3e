"""What the search has kept of a time: jumps of level, and outages, with what ended them since."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import DateTimeField, Exists, Max, OuterRef, Q, QuerySet, Subquery

from sonar.models import Change, ChangeSearch, Outage, Transfer
from sonar.notation.windows import Window

# What undoes a jump is its end; one that is older than this before a window is looked for no more.
BEFORE = timedelta(days=90)


def searched() -> str:
    """Return what changes with each search. One SQL query."""
    newest = ChangeSearch.objects.aggregate(newest=Max("searched_at"))["newest"]
    return newest.isoformat() if newest else ""


def read_changes(window: Window, condition: Q) -> list[Change]:
    """Return the jumps from BEFORE a window up to its end. One SQL query."""
    rows = Change.objects.filter(condition, at__gte=window.start - BEFORE, at__lt=window.end)
    return list(rows.select_related("size_class"))


def read_outages(window: Window, condition: Q) -> list[Outage]:
    """Return the outages that lasted at some time of a window. One SQL query."""
    lasting = Q(ended__isnull=True) | Q(ended__gte=window.start)
    rows = Outage.objects.filter(condition, lasting, began__lt=window.end)
    return list(rows.select_related("size_class"))


def with_ends(outages: Iterable[Outage]) -> None:
    """Note the first success since the search of each link that had none then. One SQL query."""
    lasting = {row.pk: row for row in outages if row.ended is None and row.kind == "link"}
    if not lasting:
        return
    for pk, ended in _ended(lasting):
        lasting[pk].ended = ended


def _ended(keys: Iterable[int]) -> QuerySet[Outage, tuple[int, datetime]]:
    successes = Transfer.objects.filter(
        source_id=OuterRef("source_id"),
        destination_id=OuterRef("destination_id"),
        size_class_id=OuterRef("size_class_id"),
        state=Transfer.State.DONE,
        started_at__gt=OuterRef("newest"),
    )
    first = successes.order_by("started_at").values("started_at")[:1]
    rows = Outage.objects.filter(Exists(successes), pk__in=list(keys))
    return rows.annotate(success=Subquery(first, DateTimeField())).values_list("pk", "success")
