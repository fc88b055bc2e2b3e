"""Faults of a machine and its services, each a function with a sentence, in one table."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

import psycopg

from tests.storage.clock import Clock
from tests.storage.grid import Grid
from tests.waiting import wait_for

AWAY = 0.5, 3.0
"""Seconds that something stays away."""
SWEPT_SECONDS = 30.0
FROZEN = 4.0, 10.0
"""Seconds that something stands still: longer than three signs of life."""
REDIS_FULL_BYTES = 1000
HOUR = 3600
DISK_MB = 1500
"""Of the disk that PostgreSQL has for itself: enough for some 50,000 probes."""
STORAGE_MB = 600
"""Of the disk of the good storage nodes."""


@dataclass
class Faults:
    """What may happen to a grid, drawn from a seed."""

    grid: Grid
    random: random.Random
    disk: Path | None = None
    """A file system of PostgreSQL's own, which may be filled; None if there is none."""
    storage: Path | None = None
    """And one of the good storage nodes."""
    clock: Clock | None = None
    """That of all processes, which may jump; None if there is none."""
    counts: dict[str, int] = field(default_factory=dict)
    standstills: list[tuple[float, str]] = field(default_factory=list)
    """Seconds until work went on after a fault, and which it was."""
    frozen_lost: int = 0
    """Probes that were lost because their worker stood still."""

    def happen(self, name: str) -> None:
        """Let one fault come over the grid, and see that it is over."""
        FAULTS[name](self)
        self.counts[name] = self.counts.get(name, 0) + 1
        self.grid.database.revive()
        self.grid.bury()

    def pause(self) -> None:
        time.sleep(self.random.uniform(*AWAY))

    def one_of(self, kind: str) -> str:
        return self.random.choice(self.grid.named(kind))


FAULTS: dict[str, Callable[[Faults], None]] = {}


def fault(act: Callable[[Faults], None]) -> Callable[[Faults], None]:
    FAULTS[act.__name__.replace("_", " ")] = act
    return act


def kill_one(faults: Faults, kind: str) -> None:
    """SIGKILL of a process of this kind, if there is any."""
    if faults.grid.named(kind):
        faults.grid.kill(faults.one_of(kind))


FAULTS |= {
    "worker killed": partial(kill_one, kind="worker"),
    "control killed": partial(kill_one, kind="control"),
    "beat killed": partial(kill_one, kind="beat"),
    "cleaner killed": partial(kill_one, kind="cleanup"),
}


@fault
def worker_frozen(faults: Faults) -> None:
    """SIGSTOP of a worker, until its probes are past their deadlines and were taken from it."""
    grid, name = faults.grid, faults.one_of("worker")
    grid.running[name].send_signal(signal.SIGSTOP)
    held = "EXISTS (SELECT FROM run WHERE run.id = sonar_probe.id AND process = %(process)s)"
    mine = {"process": grid.names[name]}
    # A row that it was about to end stays locked until it goes on: that one is not ours to touch.
    free = f"SELECT id FROM sonar_probe WHERE state = 'running' AND {held} FOR UPDATE SKIP LOCKED"
    past = f"UPDATE sonar_probe SET deadline = now() WHERE id IN ({free}) RETURNING 1"
    faults.frozen_lost += len(grid.ask(past, **mine))
    running = f"SELECT 1 FROM sonar_probe WHERE state = 'running' AND {held}"
    wait_for(lambda: not grid.ask(running, **mine), SWEPT_SECONDS)
    grid.running[name].send_signal(signal.SIGCONT)


def stand_still(process: subprocess.Popen[bytes], seconds: float) -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def freeze_one(faults: Faults, kind: str) -> None:
    """SIGSTOP of a process of this kind for some seconds."""
    stand_still(faults.grid.running[faults.one_of(kind)], faults.random.uniform(*FROZEN))


FAULTS |= {
    "control frozen": partial(freeze_one, kind="control"),
    "beat frozen": partial(freeze_one, kind="beat"),
    "cleaner frozen": partial(freeze_one, kind="cleanup"),
}


@fault
def storage_frozen(faults: Faults) -> None:
    """All good storage hangs in the middle of whatever it does."""
    assert faults.grid.nodes.process
    stand_still(faults.grid.nodes.process, faults.random.uniform(*FROZEN))


@fault
def storage_killed(faults: Faults) -> None:
    """All good storage breaks off its connections, refuses new ones, and is started again."""
    faults.grid.nodes.kill()
    faults.pause()
    faults.grid.nodes.start()


@fault
def storage_full(faults: Faults) -> None:
    """The disk of all good storage is full to the last block, for some seconds."""
    if faults.storage:
        fill_up(faults.storage, faults.random.uniform(*AWAY) + 3)


@fault
def queue_emptied(faults: Faults) -> None:
    """FLUSHALL."""
    faults.grid.queue.empty()


@fault
def queue_killed(faults: Faults) -> None:
    """SIGKILL of Redis; it starts again from what it had written."""
    faults.grid.queue.kill()
    faults.pause()
    faults.grid.queue.start()


@fault
def queue_full(faults: Faults) -> None:
    """Redis at its limit of memory: it reads, and refuses to write."""
    faults.grid.queue.limit(REDIS_FULL_BYTES)
    faults.pause()
    faults.grid.queue.limit(0)


def stop_database(faults: Faults, how: signal.Signals) -> None:
    faults.grid.database.stop(how)
    faults.pause()
    faults.grid.database.start()


@fault
def queue_restarted(faults: Faults) -> None:
    """Redis ends in good order, and starts again."""
    faults.grid.queue.stop()
    faults.pause()
    faults.grid.queue.start()


FAULTS |= {
    # It ends without writing anything more, and starts again from its log.
    "database crashed": partial(stop_database, how=signal.SIGQUIT),
    # It restarts in good order, all sessions broken off.
    "database restarted": partial(stop_database, how=signal.SIGINT),
}


@fault
def session_killed(faults: Faults) -> None:
    """SIGKILL of one process of PostgreSQL: it ends all others and recovers by itself."""
    grid = faults.grid
    sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
    sessions = grid.ask(f"{sql} AND pid <> pg_backend_pid()")
    if sessions:
        os.kill(faults.random.choice(sessions)[0], signal.SIGKILL)
    wait_for(lambda: answers(grid), SWEPT_SECONDS)


def answers(grid: Grid) -> bool:
    try:
        return grid.ask("SELECT 1") == [(1,)]
    except psycopg.OperationalError:
        return False


@fault
def connections_exhausted(faults: Faults) -> None:
    """Idle clients take every connection that PostgreSQL has, for some seconds."""
    with ExitStack() as stack:
        taken = 0
        until = time.monotonic() + faults.random.uniform(*AWAY) + 2
        while time.monotonic() < until:
            try:
                stack.enter_context(psycopg.connect(faults.grid.database.url, connect_timeout=2))
                taken += 1
            except psycopg.OperationalError:
                time.sleep(0.05)  # others give theirs back now and then: those, too
        assert taken


def step_clock(faults: Faults, seconds: int) -> None:
    """The time of day jumps to this far ahead of what it really is, and stays there."""
    if faults.clock is None:
        return
    faults.clock.step_to(seconds)
    ((now,),) = faults.grid.ask("SELECT extract(epoch FROM clock_timestamp())")
    assert abs(float(now) - time.time() - seconds) < 2, "the clock of PostgreSQL did not jump"


@fault
def clock_ahead_for_a_moment(faults: Faults) -> None:
    """It jumps forward by an hour, and soon back to where it was."""
    before = faults.clock.ahead if faults.clock else 0
    step_clock(faults, before + HOUR)
    faults.pause()
    step_clock(faults, before)


FAULTS |= {
    "clock an hour ahead": partial(step_clock, seconds=HOUR),
    "clock an hour behind": partial(step_clock, seconds=-HOUR),
    "clock 90 s ahead": partial(step_clock, seconds=90),
    "clock right again": partial(step_clock, seconds=0),
}


@fault
def disk_full(faults: Faults) -> None:
    """The disk of PostgreSQL is full to the last block, for some seconds."""
    if faults.disk is None:
        return
    fill_up(faults.disk, faults.random.uniform(*AWAY) + 3)
    wait_for(lambda: answers(faults.grid), 5)


def fill_up(disk: Path, seconds: float) -> None:
    """Let a disk have no block left for so many seconds."""
    ballast, until = disk / "ballast", time.monotonic() + seconds
    with ballast.open("ab", buffering=0) as file:
        while time.monotonic() < until:
            fill(file)  # again: what is given back meanwhile is to be taken, too
            time.sleep(0.1)
    ballast.unlink()


def fill(file: BinaryIO) -> None:
    """Write until there is no block left."""
    for size in (1 << 22, 1 << 12):
        with suppress(OSError):
            while True:
                file.write(bytes(size))


def own_disk(place: Path, size_mb: int) -> str:
    """Give a directory a small file system of its own; return why not, empty if it has one."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=755", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "there is no mount here"
    return done.stderr.strip() if done.returncode else ""


def give_back_disk(place: Path) -> None:
    subprocess.run(["umount", str(place)], check=True)
