"""The peer that monitors: Prometheus with the same samples, asked over HTTP on loopback."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import urllib3
from numpy.typing import NDArray

from sonar.notation.windows import Window
from sonar.sandbox.processes import start, stop, wait_until
from tests.ports import free_port

METRIC = "sonar_rate"
# Statistic of Sonar -> the function over the samples of a window. Its standard deviation is
# that of a population, not of a sample.
FUNCTIONS = {
    "mean": "avg_over_time({series})",
    "median": "quantile_over_time(0.5, {series})",
    "p95": "quantile_over_time(0.95, {series})",
    "std": "stddev_over_time({series})",
    "count": "count_over_time({series})",
}


def installed() -> bool:
    return bool(shutil.which("prometheus") and shutil.which("promtool"))


def version() -> str:
    said = subprocess.run(["prometheus", "--version"], capture_output=True, text=True, check=True)
    return (said.stdout or said.stderr).split(" (")[0].replace(", version", "")


def write_openmetrics(rows: NDArray[np.void], path: Path) -> None:
    """Write the rows (data.ROW), series by series, in bytes per second."""
    order = np.lexsort((rows["started_us"], rows["destination"], rows["source"]))
    rates = rows["bytes"] / rows["seconds"]
    with path.open("w") as file:
        file.write(f"# TYPE {METRIC} gauge\n")
        columns = (rows["source"], rows["destination"], rates, rows["started_us"] // 10**6)
        for source, destination, rate, time in zip(
            *(column[order].tolist() for column in columns), strict=True
        ):
            file.write(f'{METRIC}{{s="{source}",d="{destination}"}} {rate!r} {time}\n')
        file.write("# EOF\n")


@contextlib.contextmanager
def running(home: Path, rows: NDArray[np.void]) -> Iterator[Prometheus]:
    """Run a server on these rows, below a directory that is emptied first."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    write_openmetrics(rows, home / "samples")
    blocks = [
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(home / "samples"),
        str(home / "data"),
    ]
    subprocess.run(["promtool", *blocks], check=True, capture_output=True)
    (home / "empty.yml").touch()
    port = free_port()
    process = start(command(home, port), home / "log")
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        wait_until(server.answers, process, "Prometheus", home / "log")
        yield server
    finally:
        stop(process)


def command(home: Path, port: int) -> list[str]:
    return [
        "prometheus",
        f"--config.file={home / 'empty.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]


class Prometheus:
    """A server that runs, over one kept connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pool = urllib3.PoolManager(retries=False, timeout=60)

    def answers(self) -> bool:
        try:
            return self.pool.request("GET", f"{self.url}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def ask(self, stat: str, window: Window) -> bytes:
        """Ask for a statistic of every series; return the JSON as it comes."""
        length = round((window.end - window.start).total_seconds())
        query = FUNCTIONS[stat].format(series=f"{METRIC}[{length}s]")
        fields = {"query": query, "time": str(window.end.timestamp())}
        response = self.pool.request("GET", f"{self.url}/api/v1/query", fields=fields)
        if response.status != 200:
            raise RuntimeError(f"Prometheus answered {response.status}: {response.data[:200]!r}")
        return response.data

    def values(self, stat: str, window: Window) -> dict[tuple[int, int], float]:
        """Return a statistic by link, to compare; not timed."""
        result = json.loads(self.ask(stat, window))["data"]["result"]
        return {
            (int(one["metric"]["s"]), int(one["metric"]["d"])): float(one["value"][1])
            for one in result
        }
