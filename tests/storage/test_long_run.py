"""Some of `python -m tests.storage.long_run`: nobody waits for a hostile endpoint."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.storage.grid import Grid
from tests.storage.long_run import LATEST_SECONDS, WATCHED, Phase, grid_of, start_planning, watch
from tests.waiting import wait_for

pytestmark = pytest.mark.long

SECONDS = 36.0
MORE_SECONDS, LONGEST_SECONDS = 5.0, 180.0
FIRST_DONE, LATE_DONE = 20, 10
WAYS = ["never-answers", "never-reads", "drips-a-header", "delete-hangs", "put-is-never-read"]
# As often as what waits for storage would be seen: each planning of the grid costs a processor.
SETTINGS = {
    "SONAR_PLAN_SECONDS": "3",
    "SONAR_RECOVERY_SECONDS": "3",
    "SONAR_COMPACTION_SECONDS": "3",
}
SETTINGS |= {"SONAR_IN_FLIGHT": "40"}
SILENT = "endpoint.name IN ('never-answers', 'never-reads', 'delete-hangs')"

# Deleted one after the other, at 10 s each and more, they would hold somebody for many minutes.
LEFT_BEHIND = f"""
INSERT INTO sonar_leftover (endpoint_id, path, mover, since, next_try, tries, error)
SELECT endpoint.id, 'sonar/incoming/' || gen_random_uuid(), 'http-tpc', now(), now(), 1, 'a test'
FROM sonar_endpoint endpoint, generate_series(1, 20) WHERE {SILENT}
"""
LOST = f"""
INSERT INTO sonar_probe (id, source_id, destination_id, size_class_id, bytes, mover, mode, streams,
    state, requested_at, sent_at, started_at, deadline, worker, progress_bytes, waits_because, runs)
SELECT gen_random_uuid(), good.id, endpoint.id, size.id, size.test_bytes, 'http-tpc', 'pull', 1,
    'running', now(), now(), now(), now(), 'dead', 0, '', 1
FROM sonar_endpoint endpoint
JOIN LATERAL (SELECT id FROM sonar_endpoint WHERE simulated ORDER BY id LIMIT 3) good ON true
JOIN sonar_sizeclass size ON size.name = 'small' WHERE {SILENT}
"""


@dataclass(frozen=True)
class Seen:
    """What more than half a minute showed."""

    grid: Grid
    phase: Phase
    late: Phase
    """The last third of it."""


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    with grid_of(len(WAYS), SETTINGS, WAYS) as grid:
        tasks = "kind = 'task' AND name IN ('planner', 'compaction')"
        assert wait_for(lambda: grid.count("sonar_signoflife", tasks) == 2, 180)
        grid.ask(LEFT_BEHIND)
        grid.ask(LOST)  # first: a link has one open test, and the planner's own are not lost
        start_planning(grid, hostile=True)
        first = watch_until(grid, SECONDS * 2 / 3, FIRST_DONE)
        yield Seen(grid, first, watch_until(grid, SECONDS / 3, LATE_DONE))


def watch_until(grid: Grid, seconds: float, done: int) -> Phase:
    """Watch for so long, and longer where a busy machine needs longer for so many good tests."""
    phase = watch(grid, seconds)
    while phase.ended["done"] <= done and phase.seconds < LONGEST_SECONDS:
        more = watch(grid, MORE_SECONDS)
        phase.note(more.oldest)
        phase.ended += more.ended
        phase.seconds += more.seconds
    return phase


@pytest.mark.parametrize("task", WATCHED)
def test_neither_planner_nor_compaction_waits_for_storage_that_does_not_answer(
    task: str, seen: Seen
):
    assert max(seen.phase.oldest[task], seen.late.oldest[task]) < LATEST_SECONDS


def test_good_links_go_on(seen: Seen):
    assert seen.phase.ended["done"] > FIRST_DONE
    assert seen.late.ended["done"] > LATE_DONE


def test_what_was_lost_is_recorded_before_anybody_cleans_up_behind_it(seen: Seen):
    assert wait_for(lambda: seen.grid.count("sonar_transfer", "state = 'lost'") >= 9, 120)


def test_all_processes_live(seen: Seen):
    ended = [name for name, process in seen.grid.running.items() if process.poll() is not None]
    assert ended == []
