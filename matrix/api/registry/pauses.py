"""The pause of a site, or of one endpoint, as REST has it."""

from datetime import datetime
from typing import Annotated

from rest_framework.request import Request

from matrix.api.registry.values import Moment, Values, flag, line, time
from matrix.api.schema.records import Json, moment
from matrix.query.forms import BadQueryError
from sonar.models import Endpoint, Site
from sonar.models.fields import Pause
from sonar.notation.windows import format_typed
from sonar.people.roles import PAUSE_FIELDS

Paused = Annotated[
    bool,
    flag(
        "Whether tests are paused. While `paused` is true, no tests start on links from or to the "
        "site or endpoint."
    ),
]
PausedUntil = Annotated[
    Moment | None,
    time(
        "Time in the future at which the pause ends, in UTC. Null if the pause has no set end, or "
        "if tests are not paused.",
        or_null=True,
    ),
]
PauseReason = Annotated[
    str,
    line(
        200,
        "Reason for the pause. It is shown to everyone, and required while `paused` is true. "
        "Empty if tests are not paused.",
    ),
]


def pause_columns(row: Pause, values: Values, now: datetime) -> Values:
    """Return the columns of its pause as these values make it; raise BadQueryError."""
    if values.keys().isdisjoint(PAUSE_FIELDS):
        return {}
    lasts = row.is_paused(now)
    before = (row.paused_until, row.pause_reason) if lasts else (None, "")
    until, reason = values.get("paused_until", before[0]), values.get("pause_reason", before[1])
    if not values.get("paused", lasts):
        if values.get("paused_until") or values.get("pause_reason"):
            field = "paused_until" if values.get("paused_until") else "pause_reason"
            raise BadQueryError({field: [f"“{field}” requires “paused”: true."]})
        return {"paused_since": None, "paused_until": None, "pause_reason": ""}
    if not reason.strip():
        raise BadQueryError(
            {"pause_reason": ["“pause_reason” is missing: give the reason for the pause."]}
        )
    if until and until <= now:
        sentence = (
            f"“paused_until” has the value {format_typed(until)}, which is in the past: use a time "
            "in the future."
        )
        raise BadQueryError({"paused_until": [sentence]})
    since = row.paused_since if lasts else now
    return {"paused_since": since, "paused_until": until, "pause_reason": reason.strip()}


def paused_by(row: Site | Endpoint, columns: Values, request: Request) -> Values:
    """Return the column that says who began its pause, if this begins or ends one."""
    since = columns.get("paused_since", row.paused_since)
    return {} if since == row.paused_since else {"paused_by": request.user if since else None}


def of_pause(row: Pause, now: datetime) -> Json:
    """Return its pause as long as that lasts."""
    lasts = row.is_paused(now)
    return {
        "paused": lasts,
        "paused_until": moment(row.paused_until) if lasts else None,
        "pause_reason": row.pause_reason if lasts else "",
        "paused_since": moment(row.paused_since) if lasts else None,
    }
