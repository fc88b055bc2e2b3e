"""Results that nobody measured: the past of a new sandbox, and how it is told from results.

Their profile says so: the mover that moves nothing, an origin that is no test of Sonar's, and an
activity that names their end. What is measured comes after that.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from sonar.models import Profile
from sonar.notation.windows import format_time, parse_time

ACTIVITY = "made up, until "
MADE_UP = Q(activity__startswith=ACTIVITY)


def profile_fields(end: datetime) -> dict[str, Any]:
    """Return the fields of the profile of results that are made up until ``end``."""
    return {
        "mover": "fake",
        "mode": "pull",
        "streams_used": 1,
        "ip_version": 4,
        "origin": Profile.Origin.EXTERNAL,
        "activity": f"{ACTIVITY}{format_time(end)}",
    }


def is_made_up(profile: Profile) -> bool:
    return profile.activity.startswith(ACTIVITY)


def until() -> datetime | None:
    """Return the end of the results that are made up, None if there are none. One SQL query."""
    activity = Profile.objects.filter(MADE_UP).values_list("activity", flat=True).first()
    return parse_time(activity.removeprefix(ACTIVITY)) if activity else None
