"""Celery: its broker, its queues, and how often the scheduler (beat) sends which task."""

import os
import re
import socket
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from sonar.settings.databases import REDIS_URL, SILENT_SECONDS
from sonar.settings.environment import envtext
from sonar.settings.notifications import SONAR_NOTIFY_SECONDS
from sonar.settings.sources import SONAR_DOWNTIMES_SECONDS, SONAR_TOPOLOGY_SECONDS
from sonar.settings.storage import SONAR_CREDENTIALS_SECONDS
from sonar.settings.work import (
    RETENTION_SECONDS,
    SONAR_CLEANUP_SECONDS,
    SONAR_COMMISSIONING_SECONDS,
    SONAR_COMPACTION_SECONDS,
    SONAR_INCIDENTS_SECONDS,
    SONAR_PLAN_SECONDS,
    SONAR_RECOVERY_SECONDS,
)

# As PostgreSQL (sonar.settings.databases): to wait for a message is to hear nothing for long.
QUEUE_WHILE_SILENT = {
    "socket_keepalive": True,
    "socket_keepalive_options": {
        socket.TCP_KEEPIDLE: 20,
        socket.TCP_KEEPINTVL: 5,
        socket.TCP_KEEPCNT: 4,
        socket.TCP_USER_TIMEOUT: SILENT_SECONDS * 1000,
    },
}
OF_REDIS, OF_RABBITMQ = ("redis://", "rediss://", "unix://"), ("amqp://", "amqps://")
OF_SENTINELS = "sentinel://"
SENTINEL_ADDRESS = re.compile(r"sentinel://([^@/\s]*@)?([\w.-]+|\[[0-9a-fA-F:]+\])(:\d+)?(/\d*)?")


def celery_broker(url: str) -> str:
    """Return the address as Celery spells it: unix:// is redis+socket:// there."""
    if not is_redis(REDIS_URL):
        raise ImproperlyConfigured(
            "REDIS_URL must begin with redis://, rediss://, unix:// or sentinel://. Separate "
            "multiple Sentinels with semicolons."
        )
    if not (is_redis(url) or all(node.startswith(OF_RABBITMQ) for node in url.split(";"))):
        raise ImproperlyConfigured(
            "BROKER_URL must begin with redis://, rediss://, unix://, sentinel://, amqp:// or "
            "amqps://. Separate multiple RabbitMQ nodes with semicolons."
        )
    return url.replace("unix://", "redis+socket://", 1)


def is_redis(url: str) -> bool:
    nodes = url.split(";")
    if url.startswith(OF_SENTINELS):
        return all(SENTINEL_ADDRESS.fullmatch(node) for node in nodes)
    return url.startswith(OF_REDIS) and len(nodes) == 1


def transport_options(url: str) -> dict[str, Any]:
    """Return what kombu is told of each kind of broker."""
    if url.startswith(OF_RABBITMQ):
        # It tells who sends that it has kept the message.
        return {"confirm_publish": True}
    # Rows are the truth and recovery sends ids again: nothing is gained by messages that wait for
    # their acknowledgement, and a restart of Redis ends a worker that holds some (kombu 5.7.0).
    options: dict[str, Any] = {"ack_emulation": False, **QUEUE_WHILE_SILENT}
    # No message goes before another: a worker names each queue once where it asks for the next
    # message, and not once for each of four priorities.
    options["priority_steps"] = [0]
    if url.startswith(OF_SENTINELS):
        seconds = {"socket_timeout": SENTINEL_SECONDS, "socket_connect_timeout": SENTINEL_SECONDS}
        options |= {"master_name": SONAR_REDIS_MASTER, "sentinel_kwargs": seconds}
    return options


# What Sentinels call the Redis that they watch, and how long each is waited for.
SONAR_REDIS_MASTER = envtext("SONAR_REDIS_MASTER", "mymaster")
SENTINEL_SECONDS = 2
BROKER_URL = os.environ.get("BROKER_URL") or REDIS_URL
CELERY_BROKER_URL = celery_broker(BROKER_URL)
# As people know it. What requests are counted in is Redis, whatever carries messages.
WITH_RABBITMQ = BROKER_URL.startswith(OF_RABBITMQ)
BROKER_NAME = "RabbitMQ" if WITH_RABBITMQ else "Redis"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A Redis that is full, or cannot save, is waited for as one that is away (sonar.processes.broker).
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_WORKER_CONSUMER = "sonar.processes.broker:PatientConsumer"
# The scheduler looks at least this often: its watchdog waits less than Celery's five minutes.
CELERY_BEAT_MAX_LOOP_INTERVAL = 30
CELERY_BEAT_SCHEDULER = "sonar.processes.broker:PatientScheduler"
# Of tasks that are acknowledged late, of which there are none; unsaid, Celery warns each time.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(BROKER_URL)
# What may wait for storage has workers of its own: planner and compaction are never late for it,
# and clean-up gets its turn while every thread waits for a transfer.
CELERY_TASK_ROUTES = {
    "sonar.tasks.transfer": {"queue": "transfers"},
    "sonar.tasks.clean_up": {"queue": "cleanup"},
    # Issuers may not answer either.
    "sonar.tasks.check_credentials": {"queue": "cleanup"},
    "sonar.tasks.check_endpoint": {"queue": "cleanup"},
    # Seconds of computing, which planner and compaction must not wait for either.
    "matrix.tasks.assess": {"queue": "cleanup"},
    "matrix.tasks.judge_links": {"queue": "cleanup"},
    # Nor for services of others.
    "sonar.tasks.import_downtimes": {"queue": "cleanup"},
    "sonar.tasks.propose_topology": {"queue": "cleanup"},
}
CELERY_TASK_DEFAULT_QUEUE = "control"
# A queue that the majority of RabbitMQ's nodes has survives the loss of the others.
CELERY_TASK_DEFAULT_QUEUE_TYPE = "quorum" if WITH_RABBITMQ else "classic"
CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = CELERY_TASK_DEFAULT_QUEUE_TYPE
# A connection to it that was cut off without a word is missed after twice as many seconds.
CELERY_BROKER_HEARTBEAT = 10
# Python's own check of certificates and names, which amqp leaves out by itself.
CELERY_BROKER_USE_SSL: dict[str, Any] | bool = BROKER_URL.startswith("amqps://") and {
    "context": {"check_hostname": True},
    "server_hostname": None,
}
# How long who sends waits for a RabbitMQ to say that it has kept the message.
CONFIRM_SECONDS = 5


def sent_with(expires: int) -> dict[str, Any]:
    return {"expires": expires, "confirm_timeout": CONFIRM_SECONDS}


# By the name that status/, /metrics and the Health page show: each task, how often it is sent, and
# after how many intervals a message that nobody has taken is of no use.
CELERY_BEAT_SCHEDULE = {
    name: {"task": task, "schedule": seconds, "options": sent_with(seconds * intervals)}
    for name, task, seconds, intervals in (
        ("planner", "sonar.tasks.plan", SONAR_PLAN_SECONDS, 2),
        ("recovery", "sonar.tasks.recover", SONAR_RECOVERY_SECONDS, 2),
        ("cleanup", "sonar.tasks.clean_up", SONAR_CLEANUP_SECONDS, 1),
        ("check_credentials", "sonar.tasks.check_credentials", SONAR_CREDENTIALS_SECONDS, 1),
        ("import_downtimes", "sonar.tasks.import_downtimes", SONAR_DOWNTIMES_SECONDS, 1),
        ("propose_topology", "sonar.tasks.propose_topology", SONAR_TOPOLOGY_SECONDS, 1),
        ("compaction", "sonar.tasks.compact", SONAR_COMPACTION_SECONDS, 1),
        ("retention", "sonar.tasks.apply_retention", RETENTION_SECONDS, 1),
        ("assess", "matrix.tasks.assess", SONAR_INCIDENTS_SECONDS, 1),
        ("judge_links", "matrix.tasks.judge_links", SONAR_COMMISSIONING_SECONDS, 1),
        ("notify", "matrix.tasks.notify", SONAR_NOTIFY_SECONDS, 1),
        ("send_reports", "matrix.tasks.send_reports", SONAR_NOTIFY_SECONDS, 1),
    )
}
