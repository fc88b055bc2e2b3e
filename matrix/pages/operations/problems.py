"""What is wrong with Sonar itself, most serious first, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from matrix.answers.status.figures import PLAN, QUEUES, TASKS, WITH_CLEANING, Life, Status
from matrix.answers.status.health import look_at_redis
from matrix.pages.notices import Notice, tests_are
from sonar.models import SignOfLife
from sonar.notation.units import format_age, format_count, format_span
from sonar.obstacles.catalogue import all_advice

# Tests wait for a worker for some seconds; an hour is sealed within minutes of its end.
LONG_QUEUED, LONG_UNSEALED = timedelta(minutes=5), timedelta(minutes=15)


def problems(status: Status) -> list[Notice]:
    """Look at everything; what follows from something else that is wrong is left out."""
    life = status.life
    silent = list(of_silence(life))
    if silent:  # asked only then: a Redis that hangs costs the page two seconds
        # It makes the beat silent, and the workers where it is away altogether.
        redis = look_at_redis()
        if not redis.ok:
            silent = [Notice("no-redis", "The queue does not work:", redis.detail)]
    stuck = [] if silent else of_tasks(life)
    return [
        *silent,
        *stuck,
        *of_work(status),
    ]


def of_silence(life: Life) -> Iterator[Notice]:
    """Look which queues have no worker, and whether the beat lives."""
    does = {
        "transfers": "nothing is measured",
        "control": "tests are not planned, lost ones are not ended, results are not packed",
        "cleaning": "files left behind at endpoints are not deleted",
    }
    for queue in QUEUES:
        if not life.workers(queue):
            yield Notice(
                f"no-worker-{queue}",
                f"No worker takes from the queue “{queue}”:",
                f"{does[queue]}. Start one, or check its log. If all are silent, check whether "
                "Redis answers.",
            )
    if life.is_late(life.beat):
        yield Notice(
            "no-beat",
            "The beat sends nothing:",
            f"{age_of(life, life.beat)}. No tests are planned without it. Start it, once only.",
        )


def of_work(status: Status) -> Iterator[Notice]:
    """Look at what waits: for another credential, for a worker, for being sealed."""
    for advice in all_advice(status.moment):
        title = f"Not all tests of {advice.subject} can run:"
        yield Notice(f"obstacle-{advice.obstacle}", title, advice.sentence)
    yield from of_queue(status)
    yield from of_sealing(status)


def of_tasks(life: Life) -> Iterator[Notice]:
    """Look at who does not end though everybody lives."""
    for task in TASKS:
        sign = life.task(task)
        if life.is_stuck(task) or (task == PLAN and sign is None):
            yield Notice(
                f"late-{task}",
                f"The task “{task}” does not finish:",
                f"{age_of(life, sign)}. Check the log of the worker for the queue "
                f"“{'cleaning' if task in WITH_CLEANING else 'control'}”.",
            )


def of_queue(status: Status) -> Iterator[Notice]:
    oldest = status.probes.oldest_queued
    if oldest and status.moment - oldest > LONG_QUEUED:
        yield Notice(
            "long-queue",
            f"{tests_are(status.probes.queued)} queued,",
            f"the oldest for {format_span(status.moment - oldest)}. There are too few workers "
            "for “transfers”, or they are busy with slow tests.",
        )


def of_sealing(status: Status) -> Iterator[Notice]:
    if status.dirty_seconds > LONG_UNSEALED.total_seconds():
        yield Notice(
            "late-sealing",
            "Results are packed late (sealing):",
            f"{unsealed(status.work.unsealed)}. Pages read their results one by one and get "
            "slower. Check whether the worker for “control” keeps up.",
        )


def age_of(life: Life, sign: SignOfLife | None) -> str:
    """Say when somebody was last heard of."""
    if sign is None:
        return "it has never been seen"
    return f"last seen {format_age(life.moment - sign.seen_at)}"


def unsealed(count: int) -> str:
    if count == 1:
        return "1 finished hour or day is not packed"
    return f"{format_count(count)} finished hours and days are not packed"
