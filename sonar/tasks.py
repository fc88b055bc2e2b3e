"""Celery entry points: ids in, nothing out."""

import gc
import logging
import socket
import sys
from functools import partial
from typing import Any, cast
from uuid import UUID

from celery.signals import (
    after_task_publish,
    beat_init,
    celeryd_after_setup,
    celeryd_init,
    heartbeat_sent,
    task_success,
    worker_ready,
    worker_shutting_down,
)
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueAway

from sonar import scheduler
from sonar.alerting import outbox
from sonar.celery import app
from sonar.credentials import cache
from sonar.database import retry, tables
from sonar.models import Probe, SignOfLife
from sonar.movers import catalogue
from sonar.notation.vantages import at
from sonar.obstacles import worker_movers
from sonar.people import accounts
from sonar.processes import heartbeats, service_manager
from sonar.processes.clock_steps import ClockSteps
from sonar.records.fireflies import flows
from sonar.registry import history
from sonar.registry.downtimes import state
from sonar.results import concurrency, endings, store
from sonar.scheduler.dispatch import send, send_to_vantages
from sonar.work import cleanup, credential_checks, probes
from sonar.work.running import running

log = logging.getLogger(__name__)

# While the database or the queue restarts a task is a line in the log: the next one does its work.
task = app.task(throws=(*retry.DATABASE_AWAY, QueueAway))


@task
def plan() -> None:
    """Queue the tests that are due; `recover` sends those again whose message was lost."""
    send(scheduler.claim_due(timezone.now()))


steps = ClockSteps()


@task
def recover() -> None:
    """End lost tests, and send queued ones again that no worker took."""
    with steps.followed() as (step, now):
        if step:
            endings.give_time_again(Probe.objects.filter(state="running"), now)
    heartbeats.forget(now)
    concurrency.forget(now)
    send(probes.recover(now))


@task
def clean_up() -> None:
    """Delete what runs left behind, by a worker that does nothing else.

    It begins no file in the second half of the time until the next message. Two at once do not
    work on the same endpoint.
    """
    cleanup.clean(settings.SONAR_CLEANUP_SECONDS / 2, partial(send_to_vantages, clean_up.name))


@task
def check_credentials() -> None:
    """See which credentials work again or expire soon, by a worker that has their files."""
    seconds = settings.SONAR_CREDENTIALS_SECONDS / 2
    pass_on = partial(send_to_vantages, check_credentials.name)
    credential_checks.check(timezone.now(), seconds, pass_on)


@task
def check_endpoint(run: str) -> None:
    """Check an endpoint, by a worker that has the credentials and programs for it."""
    # Loaded when used, by one worker of many: it takes 8 MB.
    from sonar.work import endpoint_checks

    endpoint_checks.carry_out(UUID(run))


@task
def import_downtimes() -> None:
    """Ask where sites announce downtimes, if that is set anywhere."""
    if state.addresses():
        from sonar.registry.downtimes import importing

        importing.import_all(timezone.now())


@task
def propose_topology() -> None:
    """Read what sources say of sites and endpoints, for operators to look at."""
    if settings.SONAR_TOPOLOGY:
        # Loaded when used: it takes 10 MB.
        from sonar.registry.topology import proposals

        proposals.read_all(timezone.now())


@task
def compact() -> None:
    """Seal for less than the time until the next message, so that it never runs twice at once."""
    # Loaded when used, and numpy with it: 9 MB.
    from sonar.results import sealing

    sealing.seal(timezone.now(), seconds=settings.SONAR_COMPACTION_SECONDS / 2)


@task
def apply_retention() -> None:
    """Make the partitions of the months to come, and drop what is too old; sessions, too."""
    now = timezone.now()
    store.make_months_ahead(now)
    store.drop_expired(now, settings.SONAR_KEEP_DAYS)
    flows.drop_expired(now, settings.SONAR_KEEP_DAYS)
    endings.drop_expired_of_network(now, settings.SONAR_KEEP_DAYS)
    history.drop_expired(now, settings.SONAR_HISTORY_DAYS)
    outbox.drop_expired(now, settings.NOTIFICATION_DAYS)
    accounts.forget_sessions(now)


@task
def transfer(probe_id: str) -> None:
    probes.run(UUID(probe_id))
    send(scheduler.start_waiting(timezone.now()))


# Celery's signals: who this process is, and that it lives (sonar.processes.heartbeats). Their
# arguments are Celery's; those that are not used are in ``_``.

pulse, last_resort = heartbeats.Pulse(), probes.LastResort()
cancellations = probes.Cancellations()
EVERY: dict[str, tuple[str, int]] = {
    str(entry["task"]): (name, cast(int, entry["schedule"]))
    for name, entry in settings.CELERY_BEAT_SCHEDULE.items()
}


@celeryd_init.connect
@beat_init.connect
def tables_fit(**_: Any) -> None:  # noqa: ANN401
    """End this process with a sentence where the tables are not those of this code."""
    if sentence := tables.problem_at_start():
        sys.exit(sentence)


@celeryd_after_setup.connect
def take_what_can_run(instance: Any, **_: Any) -> None:  # noqa: ANN401
    """Let a worker for transfers take the tests of those movers that can run in this process.

    One at a vantage takes from the queues of that vantage in the place of the default ones.
    """
    queues, here = instance.app.amqp.queues, settings.SONAR_VANTAGE
    taken = [name for name in worker_movers.AT_VANTAGES if name in queues.consume_from]
    others = worker_movers.queues_here() if worker_movers.TRANSFERS in taken else []
    queues.deselect(taken)
    for name in [*(at(name, here) for name in taken), *others]:
        queues.select_add(queues.new_missing(name))


@worker_ready.connect
def worker_lives(sender: Any, **_: Any) -> None:  # noqa: ANN401
    """A worker may take messages from now on, of the queues that it was started for."""
    # What is loaded by now stays: to look through it for garbage takes a quarter of a plan.
    gc.collect()
    gc.freeze()
    queues = sender.app.amqp.queues.consume_from
    pulse.start(SignOfLife.Kind.WORKER, sender.hostname, settings.SONAR_HEARTBEAT_SECONDS, queues)
    if {at(name, settings.SONAR_VANTAGE) for name in worker_movers.AT_VANTAGES} & set(queues):
        say_what_can_run()
        cancellations.start()
        cache.forget(settings.SONAR_TOKEN_CACHE_DIR)


def say_what_can_run() -> None:
    """Write into the log which movers can run in this process, and what is missing for others."""
    for mover in catalogue.MOVERS:
        if missing := mover.missing():
            log.warning(
                "this worker cannot run the transfer tool %s: %s", mover.name, ", ".join(missing)
            )
        else:
            log.info("this worker can run the transfer tool %s", mover.name)


@heartbeat_sent.connect
def heart_beats(**_: Any) -> None:  # noqa: ANN401
    """The main loop of a worker goes round: every two seconds, while its queue answers."""
    pulse.beat()
    service_manager.alive()


@beat_init.connect
def beat_lives(**_: Any) -> None:  # noqa: ANN401
    """The scheduler is alive while it sends tasks; between two of them it can give no sign."""
    after_task_publish.connect(heart_beats)
    every = max(settings.SONAR_HEARTBEAT_SECONDS, min(seconds for _, seconds in EVERY.values()))
    service_manager.ready("Sending the tasks that are due.")
    pulse.start(SignOfLife.Kind.BEAT, f"beat@{socket.gethostname()}", every)


@task_success.connect
def task_ended_well(sender: Any, **_: Any) -> None:  # noqa: ANN401
    if sender.name in EVERY:
        heartbeats.ended_well(*EVERY[sender.name])


@worker_shutting_down.connect
def stop_work(**_: Any) -> None:  # noqa: ANN401
    """End what runs, and this process within SONAR_STOP_SECONDS, however often it is told."""
    pulse.stop()
    running.stop_all()
    last_resort.begin(settings.SONAR_STOP_SECONDS)
