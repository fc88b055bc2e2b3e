"""Whether PostgreSQL had no room lately, as processes that met it note in Redis.

A sign of life may still fit into an old page of a full disk, so signs do not show it. Import this
where it is needed: it loads redis-py, which is 6 MB more for a worker that only waits.
"""

import time
from contextlib import suppress

from django.conf import settings
from redis.exceptions import RedisError

from sonar.processes.redis_client import quick_client

# A database whose disk was full within this time is not ready; each process notes it this often.
FULL_SECONDS, NOTED_EVERY_SECONDS = 120, 10
FULL = "sonar:database-full"
ANSWER_SECONDS = 0.25
_noted_at = [float("-inf")]


def note() -> None:
    now = time.monotonic()
    if now - _noted_at[0] >= NOTED_EVERY_SECONDS:
        _noted_at[0] = now
        with suppress(RedisError):
            quick_client(settings.REDIS_URL, ANSWER_SECONDS).set(FULL, 1, ex=FULL_SECONDS)


def is_noted() -> bool:
    """Say whether PostgreSQL had no room in the last two minutes, as far as Redis knows."""
    try:
        return bool(quick_client(settings.REDIS_URL, ANSWER_SECONDS).exists(FULL))
    except RedisError:
        return False
