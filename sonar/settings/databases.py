"""PostgreSQL and Redis, what `make run` starts, and what a process may hold in memory."""

import json
import os
from collections.abc import Mapping
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

from sonar.settings.environment import SONAR_HOME, envbool, envint, envsecret


def running_services() -> dict[str, str]:
    """Return the addresses that a running `make run` noted for commands in other terminals."""
    path = SONAR_HOME / "services.json"
    noted: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
    return noted


# For a host that is gone without a word, as one without power is, the kernel would wait for a
# quarter of an hour. What the address itself says counts more.
SILENT_SECONDS = 40
WHILE_SILENT = {
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": SILENT_SECONDS * 1000,
}
# What a replica does not give soon, the primary does.
REPLICA_WHILE_SILENT = {
    "connect_timeout": 2,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}

# What Django calls the parts of an address, and what libpq does.
NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
ADDRESS = "a URL such as postgresql://user:password@host:5432/name"


def parsed(name: str, url: str, while_silent: Mapping[str, int]) -> dict[str, Any]:
    """Return an address of PostgreSQL as Django wants it; several hosts, each with a port, too."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise ImproperlyConfigured(f"{name} is not a PostgreSQL URL. Use {ADDRESS}.")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # libpq repeats the address, and with it the password.
        raise ImproperlyConfigured(
            f"{name} is not {ADDRESS}. libpq parameters can be added, such as ?sslmode=require."
        ) from None
    named = {django: str(parts.pop(libpq, "")) for django, libpq in NAMES.items()}
    return {"ENGINE": "sonar.database", **named, "OPTIONS": {**while_silent, **parts}}


def database(
    name: str,
    url: str,
    pool_size: int,
    limits: Mapping[str, int],
    *,
    transaction_pool: bool,
    while_silent: Mapping[str, int] = WHILE_SILENT,
) -> dict[str, Any]:
    """Return what Django needs to know of a database; 0 is no pool, and no limit.

    ``limits`` are seconds by the names of PostgreSQL's settings, for each statement or transaction.
    """
    found = parsed(name, url, while_silent)
    options = found["OPTIONS"]
    limits = {name: seconds for name, seconds in limits.items() if seconds}
    if transaction_pool:
        # The next transaction may get another session: nothing may be left in one.
        found |= {"LIMITS_AT_BEGIN": limits, "DISABLE_SERVER_SIDE_CURSORS": True}
    else:
        # Said as the connection opens: it costs no round trip.
        said = (f"-c {name}={seconds}s" for name, seconds in limits.items())
        if text := " ".join(filter(None, (options.get("options"), *said))):
            options["options"] = text
        # Of planned cursors alone: Django's own send values within the statement.
        options["prepare_threshold"] = 0
    if pool_size:
        # After a restart of PostgreSQL the pool must go on trying for longer than a client waits.
        pool = {"min_size": 0, "max_size": pool_size, "timeout": 5, "reconnect_timeout": 10}
        options["pool"] = pool
    return found | {"CONN_HEALTH_CHECKS": True}


def replica(url: str, pool_size: int, limits: Mapping[str, int], *, transaction_pool: bool) -> Any:  # noqa: ANN401 - as Django wants it
    """Return what Django needs to know of the replica that readers are answered by."""
    found = database(
        "DATABASE_READ_URL",
        url,
        pool_size,
        limits,
        transaction_pool=transaction_pool,
        while_silent=REPLICA_WHILE_SILENT,
    )
    if pool_size:
        found["OPTIONS"]["pool"] |= {"timeout": 1, "reconnect_timeout": 2}
    return found | {"TEST": {"MIRROR": "default"}}


_noted = running_services()
DATABASE_URL = os.environ.get("DATABASE_URL") or _noted.get("database_url", "postgresql:///sonar")
REDIS_URL = os.environ.get("REDIS_URL") or _noted.get("redis_url", "redis://localhost:6379/0")

# What `make run` is to do: where to listen, and which registry to load instead of the sandbox.
SONAR_PORT = envint("SONAR_PORT", 8000)
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

# Whether DATABASE_URL, or the one below, names a pooler that gives out its sessions for one
# transaction at a time.
SONAR_DATABASE_TRANSACTION_POOL = envbool("SONAR_DATABASE_TRANSACTION_POOL", default=False)
# Processes with many threads share this many connections: sonar/celery.py says it for workers,
# sonar/wsgi.py for the web. 0 is no pool, which suits commands that run once.
SONAR_DATABASE_POOL = envint("SONAR_DATABASE_POOL", 0, minimum=0)
LIMITS = {
    "statement_timeout": SONAR_STATEMENT_SECONDS,
    "idle_in_transaction_session_timeout": envint("SONAR_IDLE_SECONDS", 0, minimum=0),
}
DATABASES = {
    "default": database(
        "DATABASE_URL",
        DATABASE_URL,
        SONAR_DATABASE_POOL,
        LIMITS,
        transaction_pool=SONAR_DATABASE_TRANSACTION_POOL,
    )
}
# A streaming replica that readers are answered by while its data is not older than this.
DATABASE_READ_URL = envsecret("DATABASE_READ_URL")
SONAR_REPLICA_SECONDS = envint("SONAR_REPLICA_SECONDS", 30)
if DATABASE_READ_URL:
    DATABASES["reader"] = replica(
        DATABASE_READ_URL,
        SONAR_DATABASE_POOL,
        LIMITS,
        transaction_pool=SONAR_DATABASE_TRANSACTION_POOL,
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# Columns of segments that each web process keeps in memory.
SONAR_SEGMENT_CACHE_MB = envint("SONAR_SEGMENT_CACHE_MB", 256, minimum=0)
# Matrices, link tables and written answers that each web process keeps besides.
SONAR_RESPONSE_CACHE_MB = envint("SONAR_RESPONSE_CACHE_MB", 384, minimum=0)
# What is usual for each link, and how it stands, that each web process keeps besides.
SONAR_BASELINE_CACHE_MB = envint("SONAR_BASELINE_CACHE_MB", 256, minimum=0)
