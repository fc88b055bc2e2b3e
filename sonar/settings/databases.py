"""PostgreSQL and Redis, what `make run` starts, and what a process may hold in memory."""

import json
import os
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from sonar.settings.environment import SONAR_HOME, envbool, envint


def running_services() -> dict[str, str]:
    """Return the addresses that a running `make run` noted for commands in other terminals."""
    path = SONAR_HOME / "services.json"
    noted: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
    return noted


def database(
    url: str, pool_size: int, statement_seconds: int, idle_seconds: int = 0
) -> dict[str, Any]:
    """Return what Django needs to know of the database; 0 is no pool, and no timeout."""
    try:
        parsed: dict[str, Any] = dict(dj_database_url.parse(url))
    except dj_database_url.ParseError as error:
        raise ImproperlyConfigured(
            "DATABASE_URL is not an address like postgresql://user:password@host:5432/name."
        ) from error
    if parsed["ENGINE"] != "django.db.backends.postgresql":
        raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL: postgresql://...")
    parsed["ENGINE"] = "sonar.database"
    options = parsed.setdefault("OPTIONS", {})
    for name, seconds in (
        ("statement_timeout", statement_seconds),
        ("idle_in_transaction_session_timeout", idle_seconds),
    ):
        if seconds:
            # Said as the connection opens: it costs no round trip.
            options["options"] = f"{options.get('options', '')} -c {name}={seconds}s".strip()
    # Of planned cursors alone: Django's own send values within the statement.
    options["prepare_threshold"] = 0
    if pool_size:
        # After a restart of PostgreSQL the pool must go on trying for longer than a client waits.
        pool = {"min_size": 0, "max_size": pool_size, "timeout": 5, "reconnect_timeout": 10}
        options["pool"] = pool
    parsed["CONN_HEALTH_CHECKS"] = True
    return parsed


_noted = running_services()
DATABASE_URL = os.environ.get("DATABASE_URL") or _noted.get("database_url", "postgresql:///sonar")
REDIS_URL = os.environ.get("REDIS_URL") or _noted.get("redis_url", "redis://localhost:6379/0")

# What `make run` is to do: where to listen, and which registry to load instead of the sandbox.
PORT = envint("PORT", 8000)
SONAR_REGISTRY = os.environ.get("SONAR_REGISTRY", "")
SONAR_PAST = envbool("SONAR_PAST", default=True)
OWN_DATABASE = not os.environ.get("DATABASE_URL")
OWN_REDIS = not os.environ.get("REDIS_URL")

# Read by numpy as it is loaded, which is after this. Requests are worked on in threads already
# (matrix/statistics/arrays.py): those of its linear algebra only wait for each other. On two
# busy cores a two-way model of 200 x 200 took 46 ms with one of them, 410 ms with two.
os.environ["OPENBLAS_NUM_THREADS"] = str(envint("OPENBLAS_NUM_THREADS", 1))

# How long a statement may take: sonar/wsgi.py says it for the web; commands and workers take
# their time. A stream of results has a time of its own.
SONAR_STATEMENT_SECONDS = envint("SONAR_STATEMENT_SECONDS", 0, minimum=0)
SONAR_STREAM_SECONDS = envint("SONAR_STREAM_SECONDS", 3600, minimum=0)
# Streams of each web process at once, so that slow readers leave threads and connections.
SONAR_STREAMS = envint("SONAR_STREAMS", 4)

# Processes with many threads share this many connections: sonar/celery.py says it for workers,
# sonar/wsgi.py for the web. 0 is no pool, which suits commands that run once.
DATABASES = {
    "default": database(
        DATABASE_URL,
        envint("SONAR_DATABASE_POOL", 0, minimum=0),
        SONAR_STATEMENT_SECONDS,
        envint("SONAR_IDLE_SECONDS", 0, minimum=0),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Columns of segments that each web process keeps in memory.
SONAR_CACHE_MB = envint("SONAR_CACHE_MB", 256, minimum=0)
# Matrices, link tables and written answers that each web process keeps besides.
SONAR_ANSWERS_MB = envint("SONAR_ANSWERS_MB", 384, minimum=0)
# What is usual for each link, and how it stands, that each web process keeps besides.
SONAR_STANDINGS_MB = envint("SONAR_STANDINGS_MB", 256, minimum=0)
