"""On what a run was measured."""

import os
import platform
from importlib.metadata import version

from django.db import connection

LIBRARIES = ("django", "djangorestframework", "psycopg", "numpy", "orjson", "duckdb", "gunicorn")
SETTINGS: tuple[str, ...] = ("shared_buffers", "work_mem", "jit", "max_parallel_workers_per_gather")
SETTINGS += ("fsync", "synchronous_commit", "autovacuum")


def facts() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f} when the run began",
        "Python": platform.python_version(),
        "PostgreSQL": postgres(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    }


def postgres() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        found = [str(cursor.fetchone()[0])]
        for name in SETTINGS:
            cursor.execute(f"SHOW {name}")
            found.append(f"{name} {cursor.fetchone()[0]}")
    return ", ".join(found)
