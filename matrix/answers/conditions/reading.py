"""Which conditions hold at the end of a time range, and which overlap it.

The state of a time range is that of its end: the conditions that are open then. A range that ends
about now has the state of now, so that nothing changes when a range is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from matrix.query.filters import Filter, on_links
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import conditions as stored
from matrix.store.transfers import ends_condition
from sonar.models import Condition, ConditionLink, ConditionPart
from sonar.notation.windows import Window

# A range that ended at most this many assessments ago ends now.
STILL_NOW = 2
# With the endpoints and sites that it is of.
BYTES_OF_ONE = 8192
SCOPES = Condition.Scope
WORST_LAST = Condition.Type.values
# Parts of conditions are chosen.
OF_GRID = Q(condition__scope=SCOPES.GRID)


@dataclass(frozen=True)
class Judgement:
    """Conditions, those that began last first, and when the results were last assessed.

    ``as_of`` is that of the size class that was assessed longest ago, None before the first
    assessment. ``moment`` is the end of the time range, or now.
    """

    conditions: list[Condition]
    as_of: datetime | None
    is_late: bool
    moment: datetime

    @property
    def nbytes(self) -> int:
        """Return about how much memory it takes where it is kept."""
        return BYTES_OF_ONE * (1 + len(self.conditions))

    @property
    def open(self) -> list[Condition]:
        """Return those that are open at the moment, in any size class and with a chosen link."""
        return [
            each
            for each in self.conditions
            if (not each.ended_at or each.ended_at > self.moment) and open_sizes(each)
        ]

    def of_size(self, size: str) -> Judgement:
        """Return the same of what is open in a size class, and of the whole grid."""
        chosen = [each for each in self.open if size in open_sizes(each) or each.scope == "grid"]
        return replace(self, conditions=chosen)

    @property
    def confirmed(self) -> list[Condition]:
        return [each for each in self.conditions if each.confirmed_at]

    @property
    def unconfirmed(self) -> list[Condition]:
        return [each for each in self.conditions if not each.confirmed_at]

    def listed(self, conditions: Iterable[Condition]) -> list[Condition]:
        """Leave out those of the whole grid, and what began while one of them makes doubtful.

        What began then may come of the same cause, and is not listed on its own.
        """
        doubtful = self.doubtful
        return [
            each
            for each in conditions
            if each.scope != SCOPES.GRID and not (doubtful and each.since >= doubtful.since)
        ]

    @property
    def doubtful(self) -> Condition | None:
        """Return the confirmed condition of the whole grid that makes results doubtful."""
        of_grid = [each for each in self.open if each.scope == SCOPES.GRID and each.confirmed_at]
        return max(of_grid, key=lambda each: WORST_LAST.index(each.type), default=None)


def is_now(window: Window, now: datetime) -> bool:
    """Say whether a time range ends now: within two assessments, or later."""
    return window.end >= now - STILL_NOW * timedelta(seconds=settings.SONAR_INCIDENTS_SECONDS)


def state_moment(window: Window, now: datetime) -> datetime:
    """Return the moment of which a time range has the state: its end, now for one that is now."""
    return now if is_now(window, now) else window.end


def open_sizes(condition: Condition) -> list[str]:
    """Return the size classes in which it is open at the moment that it was read for.

    Each class begins and ends in its own time. What was not read here is open in all of them.
    """
    sizes: list[str] = vars(condition).get("open_sizes", condition.size_classes)
    return sizes


def read_open(moment: datetime, chosen: Q | None = None) -> Judgement:
    """Return the conditions that are open at a moment. One SQL statement, two if chosen.

    ``chosen`` selects parts of conditions, by `members_q` and the like; those of the whole grid
    are always there.
    """
    return _judgement(moment, moment, moment, chosen, only_open=True)


def read_window(window: Window, chosen: Q | None = None) -> Judgement:
    """Return the conditions that overlap a time range, up to now if it ends now. As `read_open`."""
    moment = state_moment(window, timezone.now())
    last = max(moment, window.end) - timedelta.resolution
    return _judgement(window.start, last, moment, chosen)


def members_q(filters: Iterable[Filter], places: Sequence[EndpointInfo]) -> Q:
    """Choose conditions with a member among the links that pass filters on sites, clouds and so on.

    ``places`` are the registered endpoints. Conditions of the whole grid pass any filter.
    """
    links = on_links(filters)
    return _with_member(ends_condition(links, places)) if links else Q()


def of_pairs(pairs: Iterable[tuple[int, int]]) -> Q:
    """Choose conditions with one of these links (ids of source and destination) as a member."""
    chosen = Q(pk__in=[])
    for source, destination in pairs:
        chosen |= Q(source=source, destination=destination)
    return _with_member(chosen)


def _with_member(links: Q) -> Q:
    return OF_GRID | Q(Exists(ConditionLink.objects.filter(links, part=OuterRef("pk"))))


def _judgement(
    first: datetime, last: datetime, moment: datetime, chosen: Q | None, *, only_open: bool = False
) -> Judgement:
    """Read the conditions between two moments that have a chosen part, open or not."""
    parts = None
    if chosen:
        ended = Q(condition__ended_at=None) | Q(condition__ended_at__gt=first)
        own = ConditionPart.objects.filter(chosen | OF_GRID, ended, condition__since__lte=last)
        parts = list(own.values_list("pk", flat=True))
    conditions, as_of = stored.read_overlapping(first, last, moment, parts, only_open=only_open)
    return Judgement(conditions, as_of, stored.is_late(as_of, timezone.now()), moment)
