"""When results were last assessed, for the version of the front page."""

from matrix.store import conditions


def searched() -> str:
    """Return what changes with each assessment. One SQL query."""
    moment = conditions.assessed_at()
    return moment.isoformat() if moment else ""
