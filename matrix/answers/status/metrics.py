"""Health of Sonar itself, and the rates of a bounded number of links, as Prometheus gauges."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import redis
from django.conf import settings
from django.db import Error as DatabaseTrouble
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

import sonar
from matrix.answers.conditions.reading import Judgement
from matrix.answers.status import figures, health, rabbitmq
from matrix.answers.status.figures import PLANNER, QUEUES, TASKS, Coverage, Life, Status
from sonar.database.retry import one_line
from sonar.models import Condition, CredentialState, Incident, Probe
from sonar.movers import catalogue
from sonar.notation.units import MB
from sonar.notation.vantages import at, vantage_of
from sonar.obstacles import worker_movers

log = logging.getLogger(__name__)


class Figures(Collector):
    """Current health of Sonar; figures that cannot be read are omitted, as `sonar_up` shows."""

    def collect(self) -> Iterator[Metric]:
        now = timezone.now()
        status: Status | None = None
        if health.look_at_database(now)[0].ok:
            try:
                status = figures.read(now)
            except DatabaseTrouble as error:
                log.warning("The status cannot be read: %s", str(error).partition("\n")[0])
        waiting = read_queues(status.life.queues, status.life.offered) if status else read_queues()
        takes = health.look_at_redis().ok and (waiting is not None or health.is_apart())
        up = {"database": status is not None, "redis": takes}
        if health.is_apart():
            up["broker"] = waiting is not None and health.look_at_broker().ok
        if state := status.replica if status else None:
            up["replica"] = not state.problem
            age = {} if state.age is None else {"": state.age}
            yield gauge(
                "replica_age_seconds", "Age of the data on the database replica, in seconds.", age
            )
        yield gauge(
            "up", "Whether a part of Sonar responds and accepts writes: 1 or 0.", up, "part"
        )
        yield gauge("info", "The version of Sonar.", {sonar.__version__: 1}, "version")
        yield gauge(
            "in_flight_limit",
            "Maximum number of tests queued or running.",
            {"": settings.SONAR_IN_FLIGHT},
        )
        if waiting is not None:
            yield gauge("queue_messages", "Messages waiting in a queue.", waiting, "queue")
        if status is not None:
            yield from of_life(status.life)
            yield from of_work(status)
            yield from of_conditions(status.judgement)
            yield from of_rates(status.coverage)
            yield from of_credentials(status.work.credentials)


def read_queues(
    names: Collection[str] = QUEUES, offered: Collection[str] = ()
) -> dict[str, int] | None:
    """Count the messages in each queue, ``offered`` ones too; nothing if no broker answers."""
    # Tests lie in the queue of their mover.
    tests = {name for name in offered if name.startswith(f"{worker_movers.TRANSFERS}.")}
    tests.update(map(worker_movers.queue_of, catalogue.names()))
    lists = {name: {name} for name in names}
    for test in tests:
        lists[at(worker_movers.TRANSFERS, vantage_of(test))].add(test)
    try:
        every = set().union(*lists.values())
        if health.is_apart():
            counts = rabbitmq.lengths(every)
        else:
            with health.queue() as client:
                counts = {each: int(client.llen(each)) for each in every}
    except (redis.RedisError, *rabbitmq.AWAY) as error:
        log.warning("The messages in the queues cannot be counted: %s", one_line(error))
        return None
    return {name: sum(counts[each] for each in parts) for name, parts in lists.items()}


def of_life(life: Life) -> Iterator[Metric]:
    """Give the time of the last report of each process and task; none yet gives no sample."""
    last = {name: sign.seen_at.timestamp() for name in TASKS if (sign := life.task(name))}
    plan = {"": last[PLANNER]} if PLANNER in last else {}
    scheduler = {"": life.scheduler.seen_at.timestamp()} if life.scheduler else {}
    workers = {queue: len(life.workers(queue)) for queue in life.queues}
    yield gauge("last_plan_timestamp_seconds", "Unix time when a planner run last finished.", plan)
    yield gauge(
        "task_last_timestamp_seconds", "Unix time when a task last succeeded.", last, "task"
    )
    words = "Unix time when the scheduler (Celery beat) last sent a task."
    yield gauge("scheduler_last_timestamp_seconds", words, scheduler)
    yield gauge("workers", "Number of workers running for a queue.", workers, "queue")
    wrong = {"": life.wrong_clocks[0].clock_ahead_seconds if life.wrong_clocks else 0.0}
    words = (
        "Seconds by which the worst clock is ahead of the database clock; negative if it is slow."
    )
    yield gauge("clock_ahead_seconds", words, wrong)


def of_work(status: Status) -> Iterator[Metric]:
    probes = {state: getattr(status.probes, state) for state in Probe.State.values}
    waiting = {tests.reason: tests.tests for tests in status.work.waiting}
    results = status.work.results
    uncompacted = {"": status.work.uncompacted}
    oldest = {"": status.uncompacted_seconds}
    circuits = {"": len(status.work.circuits)}
    yield gauge("probes", "Number of tests that have not finished.", probes, "state")
    yield gauge("open_circuits", "Number of endpoints with an open circuit breaker.", circuits)
    yield gauge("scheduled_waiting", "Scheduled tests that are due and waiting.", waiting, "reason")
    yield gauge("results_last_hour", "Number of results in the last hour.", results, "state")
    words = "Number of completed hours and days whose results have not been compacted yet."
    yield gauge("uncompacted_buckets", words, uncompacted)
    words = "Seconds since the oldest uncompacted hour or day ended; 0 if all are compacted."
    yield gauge("uncompacted_seconds", words, oldest)
    words = "Number of links by state in the last 24 hours."
    states = {
        (each.size, state): links
        for each in status.coverage
        for state, links in each.states.items()
    }
    yield gauge("coverage_links", words, states, "size", "state")
    calls = status.work.calls
    counts = {"waiting": calls.waiting, "failed": calls.failed}
    words = "Number of waiting notifications, and of notifications that failed in the last day."
    yield gauge("notifications", words, counts, "state")
    failing = {"": calls.failing}
    yield gauge(
        "subscriptions_failing", "Number of subscriptions whose channel is failing.", failing
    )
    late = {"": (status.moment - calls.due_since).total_seconds() if calls.due_since else 0.0}
    words = "Seconds that the oldest due notification has been waiting; 0 if none is due."
    yield gauge("notifications_oldest_due_seconds", words, late)
    incidents = {name: calls.incidents.get(name, 0) for name in Incident.Type.values}
    yield gauge("incidents_open", "Number of open incidents.", incidents, "type")
    answered = {
        each.source: each.answered_at.timestamp() for each in status.sources if each.answered_at
    }
    words = "Unix time when a source of downtimes was last read successfully."
    yield gauge("downtimes_last_good_timestamp_seconds", words, answered, "source")


def of_conditions(judgement: Judgement) -> Iterator[Metric]:
    """Count open conditions by type, scope and confirmation; counts of 0 have samples, too."""
    counts = Counter(
        (each.type, each.scope, written(each.confirmed_at is not None)) for each in judgement.open
    )
    kinds = product(Condition.Type.values, Condition.Scope.values, ("true", "false"))
    numbers = {kind: counts[kind] for kind in kinds}
    yield gauge(
        "conditions_open", "Number of open conditions.", numbers, "type", "scope", "confirmed"
    )
    words = "Whether a confirmed condition of the whole grid makes results doubtful: 1 or 0."
    doubtful = {"": float(judgement.doubtful is not None)}
    yield gauge("measurements_doubtful", words, doubtful)
    assessed = {"": judgement.as_of.timestamp()} if judgement.as_of else {}
    words = "Unix time when the results of all size classes were last assessed."
    yield gauge("incidents_evaluated_timestamp_seconds", words, assessed)


def of_rates(coverage: Sequence[Coverage]) -> Iterator[Metric]:
    """Rates of the matrix of the last 24 hours, in bytes per second, the base unit of rates here.

    The number of samples is bounded: links by SONAR_METRICS_LINKS for each size class, endpoints
    by two for each of them and each size class.
    """
    links, endpoints = (
        {
            (*names, written(simulated), each.size): rate * MB
            for each in coverage
            for (*names, simulated), rate in getattr(each, kind).items()
        }
        for kind in ("rates", "averages")
    )
    words = "Mean rate of the successful tests of a link in the last 24 hours."
    labels = ("source", "destination", "simulated", "size")
    yield gauge("link_rate_bytes_per_second", words, links, *labels)
    words = "Mean rate of the links from an endpoint, or to it, in the last 24 hours."
    labels = ("endpoint", "end", "simulated", "size")
    yield gauge("endpoint_rate_bytes_per_second", words, endpoints, *labels)
    words = (
        "Number of links without a rate sample, because their size class has more than "
        "SONAR_METRICS_LINKS links."
    )
    yield gauge("link_rates_omitted", words, {each.size: each.omitted for each in coverage}, "size")


def of_credentials(states: Iterable[CredentialState]) -> Iterator[Metric]:
    """Describe failing and expiring credentials by where they are used, without their names."""
    since, ends = {}, {}
    for row in states:
        where = str(row.endpoint or ""), str(row.mesh or "")
        place = (*where, row.role, "wait" if row.holds else "run")
        since[place] = row.since.timestamp()
        if row.expires_at:
            ends[place] = row.expires_at.timestamp()
    labels = ("endpoint", "mesh", "role", "tests")
    words = "Unix time when a credential started to fail or came close to its expiry."
    yield gauge("credential_trouble_since_timestamp_seconds", words, since, *labels)
    words = "Unix time when a failing or expiring credential expires, if known."
    yield gauge("credential_expires_timestamp_seconds", words, ends, *labels)


def written(flag: bool) -> str:
    return str(flag).lower()


def gauge(name: str, words: str, values: Mapping[Any, float], *labels: str) -> Metric:
    """Return a gauge; keys of ``values`` are a label value, a tuple of several, or ``""``."""
    family = GaugeMetricFamily(f"sonar_{name}", words, labels=labels)
    for key, value in values.items():
        texts = key if isinstance(key, tuple) else (key,)
        family.add_metric(texts if labels else (), value)
    return family
