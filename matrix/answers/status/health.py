"""Readiness: whether every part that testing needs responds.

Each check has a connection of its own and gives up after two seconds per part. It neither waits
for the connection pool of the pages nor hangs with a server that hangs.
"""

from dataclasses import dataclass
from datetime import datetime

import psycopg
import redis
from django.conf import settings

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import Judgement
from matrix.answers.status import rabbitmq
from matrix.answers.status.figures import PLANNER, Life
from matrix.store.conditions import is_late
from sonar.database import replica, tables
from sonar.database.tables import LONGEST_SECONDS, asked_quickly
from sonar.models import AllTests, Condition, SignOfLife
from sonar.processes import full_disk
from sonar.processes.redis_client import quick_client

PAUSE_FIELDS = ("paused_since", "paused_until", "pause_reason")
FIELDS = ("name", "kind", "seen_at", "every_seconds", "queues", "clock_ahead_seconds")
STOPPED = f"SELECT {', '.join(PAUSE_FIELDS)} FROM sonar_alltests"  # noqa: S608 - constants
DOUBT_FIELDS = (
    "type", "scope", "since", "since_low", "since_high", "confirmed_at", "size_classes",
)  # fmt: skip
DOUBTS = f"""
    SELECT {", ".join(DOUBT_FIELDS)} FROM sonar_condition
    WHERE scope = 'grid' AND confirmed_at IS NOT NULL AND ended_at IS NULL
"""  # noqa: S608 - constants
ASSESSED = "SELECT min(assessed_at) FROM sonar_assessment"
SIGNS = f"SELECT {', '.join(FIELDS)} FROM sonar_signoflife"  # noqa: S608 - a constant
# Gone after a second: what tries whether Redis takes writes must not fill it.
TRIAL = "sonar:trial"
FOR_ITSELF = "each web process counts requests and password attempts separately."
# The parts without which all is ready.
REPLICA, MEASUREMENTS = "replica", "measurements"
NO_ROOM = (
    "The database ran out of disk space within the last two minutes. Free up disk space. Until "
    "enough space is available, new data is not stored, and workers hold back their results."
)
UNKNOWN = "The state is unknown while the database is not available."


@dataclass(frozen=True)
class Part:
    """State of one part of Sonar; ``detail`` is a sentence without names of machines."""

    ok: bool
    detail: str


def look(now: datetime) -> dict[str, Part]:
    """Check all parts; the database is asked once for all that it records about the others."""
    database, life, judgement = look_at_database(now)
    if database.ok and full_disk.is_noted():
        database = Part(False, NO_ROOM)
    parts = {"database": database, "redis": look_at_redis()}
    if is_apart():
        parts["broker"] = look_at_broker()
    unknown = dict.fromkeys(("workers", "scheduler"), Part(False, UNKNOWN))
    parts |= look_at_life(life) if life else unknown
    if judgement:  # without good results Sonar runs all the same
        parts[MEASUREMENTS] = Part(not judgement.is_late, f"Results are {words.as_of(judgement)}.")
        if doubtful := judgement.doubtful:
            parts[MEASUREMENTS] = Part(False, words.doubtful(doubtful))
    if replica.is_configured():
        # Where no replica may answer readers, the database does, and that is no harm.
        state = replica.state() if database.ok else None
        if state is None:
            parts[REPLICA] = Part(False, UNKNOWN)
        elif state.problem:
            parts[REPLICA] = Part(False, f"{state.problem} The primary serves read requests.")
        else:
            detail = f"The replica serves read requests; its data is {state.age:.0f} s old."
            parts[REPLICA] = Part(True, detail)
    return parts


def look_at_database(now: datetime) -> tuple[Part, Life | None, Judgement | None]:
    """Ask if it answers and is up to date; return who lives, and what makes results doubtful."""
    try:
        with asked_quickly() as session:
            if sentence := tables.problem(session):
                return Part(False, sentence), None, None
            rows = (dict(zip(FIELDS, row, strict=True)) for row in session.execute(SIGNS))
            signs = tuple(SignOfLife(**values) for values in rows)
            rows = (dict(zip(PAUSE_FIELDS, row, strict=True)) for row in session.execute(STOPPED))
            stopped = "".join(AllTests(**values).sentence(now) for values in rows)
            life = Life(now, signs, stopped)
            rows = (dict(zip(DOUBT_FIELDS, row, strict=True)) for row in session.execute(DOUBTS))
            doubts = [Condition(**values) for values in rows]
            ((as_of,),) = session.execute(ASSESSED).fetchall()
    except psycopg.Error:
        return Part(False, "The database is not responding."), None, None
    judgement = Judgement(doubts, as_of, is_late(as_of, now), now)
    return Part(True, "The database responds and is up to date."), life, judgement


def look_at_redis() -> Part:
    """Check that Redis accepts a write: a full Redis still answers reads."""
    try:
        with queue() as client:
            client.set(TRIAL, 1, ex=1)
    except (redis.ConnectionError, redis.TimeoutError):
        means = FOR_ITSELF if is_apart() else "no tasks are being sent to workers."
        return Part(False, f"Redis is not responding: {means}")
    except redis.RedisError as error:
        effects = (
            FOR_ITSELF if is_apart() else f"no tasks are being sent to workers, and {FOR_ITSELF}"
        )
        sentence = f"Redis responds but refuses writes: {refusal(error)}"
        return Part(False, f"{sentence} Until this problem is solved, {effects}")
    return Part(True, "Redis responds and accepts writes.")


def is_apart() -> bool:
    return bool(settings.BROKER_NAME != "Redis")


def look_at_broker() -> Part:
    if not is_apart():
        return look_at_redis()
    try:
        rabbitmq.try_a_message()
    except TimeoutError:
        return Part(
            False,
            "RabbitMQ responds but accepts no messages. Check the alarms and the log of RabbitMQ.",
        )
    except rabbitmq.AWAY:
        return Part(False, "RabbitMQ is not responding: no tasks are being sent to workers.")
    return Part(True, "RabbitMQ responds and accepts messages.")


def refusal(error: redis.RedisError) -> str:
    """Say why Redis refuses writes and what to do; of its own message only the code is shown."""
    if isinstance(error, redis.OutOfMemoryError):
        return "its memory is full. Raise maxmemory, or remove the data of other applications."
    if isinstance(error, redis.ReadOnlyError):
        return "it is a replica. Set REDIS_URL to the primary, or promote this server."
    code = str(error).partition(" ")[0]
    if code == "MISCONF":
        return "it cannot save to disk. Free up disk space, or check the Redis log."
    named = f" ({code})" if code.isalpha() and code.isupper() else ""
    return f"check the Redis log{named}."


def queue() -> redis.Redis:
    return quick_client(settings.REDIS_URL, LONGEST_SECONDS)


def look_at_life(life: Life) -> dict[str, Part]:
    """Check workers, the scheduler, which must send tasks, and the planner, which must finish."""
    numbers = (f"{len(life.workers(queue))} for {queue}" for queue in life.queues)
    clocks = f" {wrong}." if (wrong := clock_words(life)) else ""
    workers = Part(True, f"Workers are running: {', '.join(numbers)}.{clocks}")
    if without := life.deserted:
        queues = " or ".join(f"“{queue}”" for queue in without)
        workers = Part(False, f"No worker is running for the queue {queues}. Start a worker.")
    scheduler, plan = Part(True, "The scheduler and the planner are running."), life.task(PLANNER)
    if life.is_late(life.scheduler):
        sent = f"has not sent a task {how_long(life, life.scheduler)}"
        scheduler = Part(False, f"The scheduler {sent}. Start the scheduler.")
    elif life.is_late(plan):
        ended = f"no planner run has finished {how_long(life, plan)}"
        scheduler = Part(False, f"The scheduler is running, but {ended}.")
    tests = Part(True, f"{life.stopped or 'Tests may start'}.")
    return {"workers": workers, "scheduler": scheduler, "tests": tests}


def clock_words(life: Life) -> str:
    """Say which clock is wrong, and by how much at most; empty if none is."""
    wrong = life.wrong_clocks
    if not wrong:
        return ""
    ahead = wrong[0].clock_ahead_seconds
    side = "ahead of" if ahead > 0 else "behind"
    single = "The clock of a worker or of the scheduler is"
    subject = single if len(wrong) == 1 else f"{len(wrong)} clocks are wrong; the worst is"
    return f"{subject} {abs(ahead):.0f} s {side} the database clock"


def how_long(life: Life, sign: SignOfLife | None) -> str:
    """Return for how long nothing has happened, or that it never has: `for 75 s` or `yet`."""
    age = life.age(sign)
    return "yet" if age is None else f"for {age:.0f} s"
