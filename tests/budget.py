"""What each lane of the tests may take of a processor, as a pytest plugin: `--lane=NAME`.

A lane that takes a third more than its budget fails in the end, with a sentence. Budgets are those
of one machine; another one's are so much larger as it is slower at a short piece of work, which is
done every few seconds as long as the lane goes on.
"""

import time
from dataclasses import dataclass
from os import times
from statistics import fmean

import psutil
import pytest

BUDGETS = {
    "storage": 148.0,
    "programs": 210.0,
    "sandbox": 210.0,
    "lab": 85.0,
    "engines": 82.0,
    "browser": 120.0,
    "browser-f": 120.0,
    "browser-n": 130.0,
    "matrix": 240.0,
    "matrix-m": 210.0,
    "asked": 110.0,
    "sonar": 140.0,
    "rest": 210.0,
}
"""Processor seconds of all tests of a lane, with its servers and whatever else it starts.

Of a browser, those of the processes that it waits for at their end, which are not all.
"""
QUICK_BUDGETS = {
    "storage": 60.0,
    "programs": 40.0,
    "sandbox": 18.0,
    "lab": 12.0,
    "engines": 38.0,
    "browser": 50.0,
    "browser-f": 50.0,
    "browser-n": 50.0,
    "matrix": 122.0,
    "matrix-m": 105.0,
    "asked": 105.0,
    "sonar": 85.0,
    "rest": 95.0,
}
"""Those without the long tests, which `make test` leaves out."""
QUICK = "not long"
MARGIN = 1 / 3
WORK = 20_000
WORK_SECONDS = 0.0055
"""What the piece of work takes on the machine of the budgets, with all lanes beside it."""
FEWEST_PIECES = 20
SECONDS_BETWEEN_PIECES = 2.0

verdict_key = pytest.StashKey[str]()


@dataclass(frozen=True)
class Lane:
    """What a lane has taken, in processor seconds, and how much slower than usual all is."""

    name: str
    seconds: float
    slowness: float
    chosen: str = ""
    """Which of its tests, as `-m` says it."""

    @property
    def budget(self) -> float:
        budgets = QUICK_BUDGETS if self.chosen == QUICK else BUDGETS
        return budgets[self.name] * max(self.slowness, 1.0)

    @property
    def is_within(self) -> bool:
        return self.seconds <= (1 + MARGIN) * self.budget

    def words(self) -> str:
        """Say what was taken, and what to do if that is too much."""
        words = f"The lane {self.name} took {self.seconds:.0f} s of a processor"
        if self.is_within:
            return f"{words}; its budget is {self.budget:.0f} s."
        return (
            f"{words}, more than its budget of {self.budget:.0f} s and a third: make its tests "
            "cheaper, mark those as long that the README calls so, or give it more in "
            "tests/budget.py and say why."
        )


class Pace:
    """How slow this machine has been at a piece of work all along, while the tests ran."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._next_at = 0.0

    def look(self) -> None:
        """Do a piece of work, if the last one was not just now."""
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + SECONDS_BETWEEN_PIECES
            self._seconds.append(piece_of_work())

    def slowness(self) -> float:
        """Return how many times longer than usual it took on average."""
        while len(self._seconds) < FEWEST_PIECES:
            self._seconds.append(piece_of_work())
        return fmean(self._seconds) / WORK_SECONDS


PACE = Pace()


def piece_of_work() -> float:
    """Return the processor seconds of one."""
    began = time.process_time()
    words = {str(number * 7919 % WORK): number for number in range(WORK)}
    sorted(words)
    return time.process_time() - began


def processor_seconds() -> float:
    """Return what this process, its children and theirs have taken, ended or not."""
    own = times()
    ended = own.children_user + own.children_system
    return own.user + own.system + ended + sum(map(seconds_of, psutil.Process().children(True)))


def seconds_of(process: psutil.Process) -> float:
    """Return what a process has taken, with those of its children that have ended."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lane", choices=BUDGETS, help="a lane of the Makefile, with its budget")


def pytest_runtest_teardown(item: pytest.Item) -> None:
    if item.config.getoption("--lane"):
        PACE.look()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a lane fail that has outgrown its budget, if nothing else has failed in it."""
    if name := session.config.getoption("--lane"):
        chosen = session.config.getoption("markexpr")
        lane = Lane(name, processor_seconds(), PACE.slowness(), chosen)
        session.config.stash[verdict_key] = lane.words()
        if not lane.is_within and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if words := config.stash.get(verdict_key, ""):
        terminalreporter.write_line(words)
