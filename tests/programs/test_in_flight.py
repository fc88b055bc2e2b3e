"""Transfers of all movers that are programs, held midway by their servers in one real worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks import held
from tests.needs import needs
from tests.storage import workers

EACH = 2
COUNTS = dict.fromkeys(held.COPIES, EACH)
LIMIT_MB = 400


@pytest.fixture
def worker(real_commits: None, tmp_path: Path) -> Iterator[int]:
    needs("xrootd", "gfal-copy", "globus-url-copy", "globus-gridftp-server", "flock")
    processes = workers.Processes(tmp_path, {})
    options = ["--pool=threads", "-c", "50"]
    yield processes.start("worker", *options, "-Q", "transfers").pid
    processes.close()


@pytest.mark.long
def test_what_is_held_midway_is_in_the_memory_of_one_worker_and_ends_well(worker: int):
    with held.grid() as grid:
        together, alone = held.measure(grid, worker, COUNTS)
    assert 0 < alone < together < LIMIT_MB
