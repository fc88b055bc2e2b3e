"""Celery: its broker, its queues, and when beat sends which task."""

from django.core.exceptions import ImproperlyConfigured

from sonar.settings.databases import REDIS_URL
from sonar.settings.sources import SONAR_DOWNTIMES_SECONDS, SONAR_TOPOLOGY_SECONDS
from sonar.settings.storage import SONAR_CREDENTIALS_SECONDS
from sonar.settings.work import (
    KEEP_MONTHS_SECONDS,
    SONAR_CHANGES_SECONDS,
    SONAR_CLEAN_SECONDS,
    SONAR_PLAN_SECONDS,
    SONAR_SEAL_SECONDS,
    SONAR_SWEEP_SECONDS,
)


def celery_broker(url: str) -> str:
    """Return the address as Celery spells it: unix:// is redis+socket:// there."""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ImproperlyConfigured("REDIS_URL must begin with redis://, rediss:// or unix://.")
    return url.replace("unix://", "redis+socket://", 1)


CELERY_BROKER_URL = celery_broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A Redis that is full, or cannot save, is waited for as one that is away (sonar.processes.broker).
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_WORKER_CONSUMER = "sonar.processes.broker:PatientConsumer"
# The beat looks at least so often: its watchdog waits for less than Celery's five minutes.
CELERY_BEAT_MAX_LOOP_INTERVAL = 30
CELERY_BEAT_SCHEDULER = "sonar.processes.broker:PatientScheduler"
# Of tasks that are acknowledged late, of which there are none; unsaid, Celery warns each time.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
# Rows are the truth and the sweep sends ids again: nothing is gained by messages that wait for
# their acknowledgement, and a restart of Redis ends a worker that holds some (kombu 5.7.0).
CELERY_BROKER_TRANSPORT_OPTIONS = {"ack_emulation": False}
# What may wait for storage has workers of its own: plans and seals are never late for it, and
# cleaning gets its turn while every thread waits for a transfer.
CELERY_TASK_ROUTES = {
    "sonar.tasks.transfer": {"queue": "transfers"},
    "sonar.tasks.clean": {"queue": "cleaning"},
    # Issuers may not answer either.
    "sonar.tasks.check_credentials": {"queue": "cleaning"},
    "sonar.tasks.check_endpoint": {"queue": "cleaning"},
    # Seconds of computing, which plans and seals must not wait for either.
    "matrix.tasks.find_changes": {"queue": "cleaning"},
    # Nor for services of others.
    "sonar.tasks.import_downtimes": {"queue": "cleaning"},
    "sonar.tasks.propose_topology": {"queue": "cleaning"},
}
CELERY_TASK_DEFAULT_QUEUE = "control"
# How often each task is sent, and after how long one that nobody has taken is of no use.
CELERY_BEAT_SCHEDULE = {
    task.rpartition(".")[2]: {"task": task, "schedule": seconds, "options": {"expires": expires}}
    for task, seconds, expires in (
        ("sonar.tasks.plan", SONAR_PLAN_SECONDS, SONAR_PLAN_SECONDS * 2),
        ("sonar.tasks.sweep", SONAR_SWEEP_SECONDS, SONAR_SWEEP_SECONDS * 2),
        ("sonar.tasks.clean", SONAR_CLEAN_SECONDS, SONAR_CLEAN_SECONDS),
        ("sonar.tasks.check_credentials", SONAR_CREDENTIALS_SECONDS, SONAR_CREDENTIALS_SECONDS),
        ("sonar.tasks.import_downtimes", SONAR_DOWNTIMES_SECONDS, SONAR_DOWNTIMES_SECONDS),
        ("sonar.tasks.propose_topology", SONAR_TOPOLOGY_SECONDS, SONAR_TOPOLOGY_SECONDS),
        ("sonar.tasks.seal", SONAR_SEAL_SECONDS, SONAR_SEAL_SECONDS),
        ("sonar.tasks.keep_months", KEEP_MONTHS_SECONDS, KEEP_MONTHS_SECONDS),
        ("matrix.tasks.find_changes", SONAR_CHANGES_SECONDS, SONAR_CHANGES_SECONDS),
    )
}
