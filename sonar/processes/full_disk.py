"""Whether PostgreSQL had no room lately, as processes that met it note in Redis.

A sign of life may still fit into an old page of a full disk, so signs do not show it. Import this
where it is needed: it loads redis-py, which is 6 MB more for a worker that only waits.
"""

import time
from contextlib import suppress
from typing import Any

from django.conf import settings
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from sonar.processes.redis_client import client_of

# A database whose disk was full within this time is not ready; each process notes it this often.
FULL_SECONDS, NOTED_EVERY_SECONDS = 120, 10
FULL = "sonar:database-full"
QUICKLY: dict[str, Any] = {
    "socket_timeout": 0.25,
    "socket_connect_timeout": 0.25,
    "retry": Retry(NoBackoff(), 0),
}
_noted_at = [float("-inf")]


def note() -> None:
    """Note that PostgreSQL had no room."""
    now = time.monotonic()
    if now - _noted_at[0] >= NOTED_EVERY_SECONDS:
        _noted_at[0] = now
        with suppress(RedisError):
            client_of(settings.REDIS_URL, **QUICKLY).set(FULL, 1, ex=FULL_SECONDS)


def is_noted() -> bool:
    """Say whether PostgreSQL had no room in the last two minutes, as far as Redis knows."""
    try:
        return bool(client_of(settings.REDIS_URL, **QUICKLY).exists(FULL))
    except RedisError:
        return False
