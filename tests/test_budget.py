"""A lane fails that outgrows its budget of processor seconds by more than a third."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import budget
from tests.budget import BUDGETS, QUICK, QUICK_BUDGETS, Lane

USUAL = BUDGETS["lab"]


@pytest.mark.parametrize(
    ("times_budget", "slowness", "within"),
    [
        (1.3, 1.0, True),
        (1.4, 1.0, False),
        (1.4, 1.5, True),  # so slow a machine has more
        (2.1, 1.5, False),
        (1.3, 0.5, True),  # a fast one has no less
    ],
)
def test_a_third_more_than_the_budget_is_too_much_on_a_machine_as_slow(
    times_budget: float, slowness: float, within: bool
) -> None:
    lane = Lane("lab", times_budget * USUAL, slowness)
    assert lane.is_within is within
    assert ("and a third" in lane.words()) is not within


def test_a_lane_without_its_long_tests_has_a_smaller_budget() -> None:
    assert QUICK_BUDGETS.keys() == BUDGETS.keys()
    makefile = Path(__file__).parents[1] / "Makefile"
    assert f"""CHOSEN='-m "{QUICK}"'""" in makefile.read_text()
    assert not Lane("lab", USUAL, 1.0, QUICK).is_within


@pytest.mark.parametrize(
    ("seconds", "status", "ends"), [(USUAL, 0, 0), (2 * USUAL, 0, 1), (2 * USUAL, 2, 2)]
)
def test_a_session_fails_for_its_lane_alone_unless_it_has_failed_already(
    seconds: float, status: int, ends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "processor_seconds", lambda: seconds)
    monkeypatch.setattr(budget.PACE, "slowness", lambda: 1.0)
    config = SimpleNamespace(getoption={"--lane": "lab", "markexpr": ""}.get, stash=pytest.Stash())
    session = SimpleNamespace(config=config, exitstatus=status)
    budget.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert session.exitstatus == ends
    assert f"took {seconds:.0f} s" in config.stash[budget.verdict_key]


def test_a_machine_is_as_slow_as_it_was_all_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is fast again when a lane ends has been slow for most of it."""
    clock, pieces = iter(range(0, 1_000, 10)), iter([3.0] * 30 + [1.0] * 10)
    monkeypatch.setattr(budget.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(budget, "piece_of_work", lambda: next(pieces) * budget.WORK_SECONDS)
    pace = budget.Pace()
    for _ in range(40):
        pace.look()
    assert pace.slowness() == pytest.approx(2.5)


def test_a_piece_of_work_is_done_every_few_seconds_only(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float] = []
    monkeypatch.setattr(budget.time, "monotonic", lambda: 7.0)
    monkeypatch.setattr(budget, "piece_of_work", lambda: done.append(1.0) or 1.0)
    pace = budget.Pace()
    pace.look()
    pace.look()
    assert len(done) == 1


def test_what_is_started_counts_while_it_runs_and_once_it_has_ended() -> None:
    work = "import sys; sum(range(10**7)); print(flush=True); sys.stdin.read()"
    before = budget.processor_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        running = budget.processor_seconds()
    ended = budget.processor_seconds()  # counted in ticks, of which one or two may be lost
    assert min(running, ended) > before + 0.05
