"""The Celery application: `celery -A sonar.celery worker`, `celery -A sonar.celery beat`."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
# Django's checks would load every page into each worker, and pandas with them (70 MB); the
# tests and `make run` check instead.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("sonar")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["sonar"])
