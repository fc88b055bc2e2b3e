"""psql with the COPY behind a stream of results: what PostgreSQL alone takes for it."""

import subprocess
from pathlib import Path

from matrix.store.transfers import TransferSelection
from sonar.notation.result_columns import listed
from sonar.notation.windows import Window
from sonar.records.exporting import copy_of
from sonar.sandbox import embedded

# As streams have it.
SETTINGS = "SET jit = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0"


def copy(url: str, window: Window, target: Path = Path("/dev/null")) -> None:
    """Write the results of a window as lines of JSON into a file."""
    statement = copy_of(TransferSelection(window).rows([]), listed(internal=False), "ndjson")
    command = [embedded.postgres_binary("psql"), url, "--quiet", "-c", SETTINGS, "-c", statement]
    with target.open("wb") as output:
        subprocess.run(command, check=True, stdout=output)
