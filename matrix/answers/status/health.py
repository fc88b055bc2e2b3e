"""Whether everything answers that measuring needs.

A look at what is ready has a connection of its own and gives up after two seconds for each
part: it neither waits for the pool of the pages nor hangs when a server does.
"""

from dataclasses import dataclass
from datetime import datetime

import psycopg
import redis
from django.conf import settings

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import Judgement
from matrix.answers.status import rabbitmq
from matrix.answers.status.figures import PLAN, Life
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
FOR_ITSELF = "each web process counts requests and passwords for itself."
UNTIL_THEN = f"Until then nothing is sent to workers, and {FOR_ITSELF}"
# The parts without which all is ready.
REPLICA, MEASUREMENTS = "replica", "measurements"
NO_ROOM = (
    "The disk of the database was full within the last two minutes. Make room there: until then "
    "nothing new is kept, and workers keep their results waiting."
)
UNKNOWN = "Not known while the database does not answer as it should."


@dataclass(frozen=True)
class Part:
    """Whether one of the things that Sonar is made of works, in a sentence without names."""

    ok: bool
    detail: str


def look(now: datetime) -> dict[str, Part]:
    """Ask all parts, the database once for everything that it knows of the others."""
    database, life, judgement = look_at_database(now)
    if database.ok and full_disk.is_noted():
        database = Part(False, NO_ROOM)
    parts = {"database": database, "redis": look_at_redis()}
    if is_apart():
        parts["broker"] = look_at_broker()
    unknown = dict.fromkeys(("workers", "beat"), Part(False, UNKNOWN))
    parts |= look_at_life(life) if life else unknown
    if judgement:  # without good results Sonar runs all the same
        parts[MEASUREMENTS] = Part(not judgement.is_late, f"Results: {words.as_of(judgement)}.")
        if doubtful := judgement.doubtful:
            parts[MEASUREMENTS] = Part(False, words.doubtful(doubtful))
    if replica.is_configured():
        # Where no replica may answer readers, the database does, and that is no harm.
        state = replica.state() if database.ok else None
        if state is None:
            parts[REPLICA] = Part(False, UNKNOWN)
        elif state.problem:
            parts[REPLICA] = Part(False, f"{state.problem} Readers are answered by the primary.")
        else:
            detail = f"The replica answers readers; its data is {state.age:.0f} s old."
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
        return Part(False, "The database does not answer."), None, None
    judgement = Judgement(doubts, as_of, is_late(as_of, now), now)
    return Part(True, "The database answers and is up to date."), life, judgement


def look_at_redis() -> Part:
    """Ask whether it takes what is written: one that is full reads and answers as ever."""
    try:
        with queue() as client:
            client.set(TRIAL, 1, ex=1)
    except (redis.ConnectionError, redis.TimeoutError):
        means = FOR_ITSELF if is_apart() else "nothing is sent to workers."
        return Part(False, f"Redis does not answer: {means}")
    except redis.RedisError as error:
        until_then = f"Until then {FOR_ITSELF}" if is_apart() else UNTIL_THEN
        return Part(False, f"Redis answers and refuses writes: {refusal(error)} {until_then}")
    return Part(True, "Redis answers and takes what is written.")


def is_apart() -> bool:
    return bool(settings.BROKER_NAME != "Redis")


def look_at_broker() -> Part:
    if not is_apart():
        return look_at_redis()
    try:
        rabbitmq.try_a_message()
    except TimeoutError:
        return Part(False, "RabbitMQ answers and takes nothing: look at its alarms and its log.")
    except rabbitmq.AWAY:
        return Part(False, "RabbitMQ does not answer: nothing is sent to workers.")
    return Part(True, "RabbitMQ answers and takes messages.")


def refusal(error: redis.RedisError) -> str:
    """Say why Redis takes nothing and what to do; of its own words only the code is repeated."""
    if isinstance(error, redis.OutOfMemoryError):
        return "its memory is full. Raise its maxmemory, or take away what is not Sonar's."
    if isinstance(error, redis.ReadOnlyError):
        return "it is a replica. Let REDIS_URL name the primary, or make this one the primary."
    code = str(error).partition(" ")[0]
    if code == "MISCONF":
        return "it cannot save to its disk. Make room there, or look at its log."
    named = f" ({code})" if code.isalpha() and code.isupper() else ""
    return f"look at its log{named}."


def queue() -> redis.Redis:
    return quick_client(settings.REDIS_URL, LONGEST_SECONDS)


def look_at_life(life: Life) -> dict[str, Part]:
    """Say who works: the beat must send, and the planner must come to its end."""
    numbers = (f"{len(life.workers(queue))} from {queue}" for queue in life.queues)
    clocks = f" {wrong}." if (wrong := clock_words(life)) else ""
    workers = Part(True, f"Workers take tests and tasks: {', '.join(numbers)}.{clocks}")
    if without := life.deserted:
        queues = " nor from ".join(f"“{queue}”" for queue in without)
        workers = Part(False, f"No worker takes from the queue {queues}: start one.")
    beat, plan = Part(True, "The beat sends, and the planner plans."), life.task(PLAN)
    if life.is_late(life.beat):
        beat = Part(False, f"The beat sends nothing: {since(life, life.beat)}. Start it.")
    elif life.is_late(plan):
        ends = f"no tick of the planner ends: {since(life, plan)}"
        beat = Part(False, f"The beat sends, but {ends}.")
    tests = Part(True, f"{life.stopped or 'Tests may start'}.")
    return {"workers": workers, "beat": beat, "tests": tests}


def clock_words(life: Life) -> str:
    """Say whose clock is wrong, and by how much at most; empty if none is."""
    wrong = life.wrong_clocks
    if not wrong:
        return ""
    ahead = wrong[0].clock_ahead_seconds
    side = "ahead of" if ahead > 0 else "behind"
    whose = "The clock of one worker or beat" if len(wrong) == 1 else f"{len(wrong)} clocks"
    most = "is" if len(wrong) == 1 else "are wrong, one"
    return f"{whose} {most} {abs(ahead):.0f} s {side} that of the database"


def since(life: Life, sign: SignOfLife | None) -> str:
    age = life.age(sign)
    return "it has never been seen" if age is None else f"the last was {age:.0f} s ago"
