"""How log lines look: one line each, times in UTC with the zone shown, and no secret in a crash."""

import logging
import time
from typing import Any

from sonar.credentials.redacted import without_tokens
from sonar.movers.messages import beginning, without_secrets

# Of a traceback: those of an endless recursion are thousands.
FIRST_LINES, LAST_LINES = 20, 100
REFUSED = {"DisallowedHost": "A request named a host that is not in SONAR_ALLOWED_HOSTS"}

# How kombu and Celery begin to say that the broker went away, and how Sonar says it.
BROKER_GONE = {
    "Couldn't ack ": "a message was not acknowledged and will be delivered again",
    "Error cleaning up after event loop": "the connection to the broker was lost, so Celery "
    "is restarting its loop",
}


class UtcFormatter(logging.Formatter):
    """Write times as 2026-11-20T04:00:00Z."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%SZ"
    default_msec_format = ""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record; errors of libraries may quote headers, of which some are secret."""
        text = super().format(record)
        return without_tokens(shortened(text)) if record.exc_info else text

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Write a message that has line breaks, as some of Celery's have, on one line."""
        lines = super().formatMessage(record).splitlines()
        return " ".join(stripped for line in lines if (stripped := line.strip()))


def shortened(text: str) -> str:
    """Return an error with its traceback, of which only so much is looked through for secrets."""
    lines = text.splitlines()
    if len(lines) > FIRST_LINES + LAST_LINES:
        lines = [*lines[:FIRST_LINES], "...", *lines[-LAST_LINES:]]
    return "\n".join(without_secrets(beginning(line)) for line in lines)


class RefusedInOneLine(logging.Filter):
    """Tells of a request that Django would not read once: why and where, no traceback.

    Django tells of it twice, with what was sent; a token stood there, perhaps.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        if request is None:
            return True
        if record.name.startswith("django.security.") and record.exc_info:
            why = record.name.rpartition(".")[2]
            record.msg, record.args = "%s at %a", (REFUSED.get(why, why), request.path)
            record.exc_info = record.exc_text = None
            request.is_told = True
            return True
        return not (record.name == "django.request" and getattr(request, "is_told", False))


class BrokerGoneInOneLine(logging.Filter):
    """Warns in one line, with no traceback, that the broker went away.

    It sends again each message that was not acknowledged, and its test is not started twice.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        for words, sentence in BROKER_GONE.items():
            if record.exc_info and str(record.msg).startswith(words):
                record.levelno, record.levelname = logging.WARNING, "WARNING"
                record.msg = f"{sentence}: {record.exc_info[1]}"
                record.args = record.exc_info = record.exc_text = None
        return True


class NowAndThen(logging.Filter):
    """Lets a library warn of the same once in so many seconds, with its error, no traceback.

    For what is repeated each second as long as something outside of Sonar does not work. What is
    worse than a warning passes as it is.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._said_at: dict[Any, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        now = time.monotonic()
        if now - self._said_at.get(record.msg, float("-inf")) < self._seconds:
            return False
        self._said_at[record.msg] = now
        if record.exc_info:
            record.msg, record.args = f"{record.getMessage()}: {record.exc_info[1]}", None
            record.exc_info = record.exc_text = None
        return True
