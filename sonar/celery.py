"""The Celery application: `python -m sonar worker`, `python -m sonar beat`."""

import ctypes
import os
import sys
from pathlib import Path

from celery import Celery

ARENA_MAX = -8
"""M_ARENA_MAX of malloc.h."""


def share_one_arena() -> bool:
    """Let all threads to come take memory from one place; False where the C library has no such.

    glibc gives threads up to eight arenas for each core, and what is free in one is of no use to
    another: with 500 transfers in flight 17 MB. As Python runs one thread at a time, hardly any
    waits for another.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(ARENA_MAX, 1))


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
# Django's checks would load every page into each worker, and pandas with them (70 MB); the
# tests and `make run` check instead.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
# The threads of a worker share connections: each note of progress would open one of its own.
# The web has the same default (sonar/wsgi.py); commands run once and need no pool.
CELERY_PROGRAMS = {"celery", "__main__.py"}  # `celery`, `python -m celery` and `python -m sonar`
if Path(sys.argv[0]).name in CELERY_PROGRAMS and "worker" in sys.argv:
    os.environ.setdefault("SONAR_DATABASE_POOL", "8")
    # One that hangs within a transaction (a stopped machine) must not hold its locks for long.
    os.environ.setdefault("SONAR_IDLE_SECONDS", "60")
    share_one_arena()

app = Celery("sonar")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["sonar", "matrix"])
