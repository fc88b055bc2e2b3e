"""What people wrote or declared about when something happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, Self

from django.db.models import Q

from matrix.store import notes
from sonar.models import Annotation, Downtime
from sonar.people.roles import Anyone

# What began or ended this long before or after a beginning may have to do with it.
NEAR = timedelta(days=1)


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
