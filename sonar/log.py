"""How log lines look: one line each, times in UTC with the zone shown."""

from __future__ import annotations

import logging
import time


class UtcFormatter(logging.Formatter):
    """Write times as 2026-11-20T04:00:00Z."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%SZ"
    default_msec_format = ""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Write a message that has line breaks, as some of Celery's have, on one line."""
        lines = super().formatMessage(record).splitlines()
        return " ".join(stripped for line in lines if (stripped := line.strip()))
