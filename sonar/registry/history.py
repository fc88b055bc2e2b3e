"""For how long the history is kept; triggers write it (migration 0042)."""

from datetime import datetime, timedelta

from sonar.models import HistoryEntry


def drop_expired(now: datetime, days: int) -> None:
    """Delete what was changed longer ago."""
    HistoryEntry.objects.filter(at__lt=now - timedelta(days=days)).delete()
