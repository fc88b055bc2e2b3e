"""Goal 7: five statistics of hourly samples over HTTP, against Prometheus."""

import json
from itertools import count

import numpy as np

from sonar.notation.units import MB
from sonar.notation.windows import Window
from tests.benchmarks import data, loopback, scale, server
from tests.benchmarks.answer import DisagreementError
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.databases import another
from tests.benchmarks.loopback import Web
from tests.benchmarks.measured import Goal, of_the_fastest, ratio
from tests.benchmarks.peers import prometheus
from tests.benchmarks.peers.prometheus import Prometheus

HOURS = 24
# Sonar rounds rates to the byte per second, or to seven digits.
TOLERANCE = 1e-5
TEXT = "five statistics of hourly samples over HTTP against Prometheus"
LIMIT = 30
ROUNDS = 5
WEEK_SECONDS = 7 * 86_400
SONAR, PROMETHEUS = "Sonar, five GETs", "Prometheus, five queries"


def goal_7(bench: Bench) -> list[Goal]:
    if not prometheus.installed():
        return [Goal(7, TEXT, LIMIT, None, note="prometheus and promtool are not on the PATH")]
    endpoints = min(bench.scale.endpoints, scale.SCALES["default"].endpoints)
    rows = data.hourly(endpoints).rows
    with (
        another(bench, "hourly", endpoints) as url,
        loopback.sonar(bench.home, server.environment(bench.home, url)) as web,
        prometheus.running(bench.home / "prometheus", rows) as peer,
    ):
        return measure(bench, web, peer, len(rows))


def measure(bench: Bench, web: Web, peer: Prometheus, samples: int) -> list[Goal]:
    window = scale.aligned(1)
    for stat in prometheus.FUNCTIONS:
        agree(stat, web, peer, window)
    ages = count(WEEK_SECONDS)

    def sonar() -> None:
        """Ask what nobody asked before, as answers are kept: all cells are younger than that."""
        age = {"max_age": f"{next(ages)}"}
        for stat in prometheus.FUNCTIONS:
            web.matrix(question(stat, window) | age)

    def its_peer() -> None:
        for stat in prometheus.FUNCTIONS:
            peer.ask(stat, window)

    title = f"five statistics of {samples:,} hourly samples, HTTP and JSON"
    seconds = bench.contest(title, {SONAR: sonar, PROMETHEUS: its_peer}, bench.scale.times(ROUNDS))
    spread = ratio(seconds[PROMETHEUS], seconds[SONAR])
    fastest = of_the_fastest(seconds[PROMETHEUS], seconds[SONAR])
    note = f"{fastest}; {prometheus.version()}; neither side parses the JSON"
    return [Goal.from_spread(7, TEXT, LIMIT, spread, note=note)]


def question(stat: str, window: Window) -> dict[str, str]:
    return {"size": SIZE, "stat": stat, "fields": "value"} | scale.bounds(window)


def agree(stat: str, web: Web, peer: Prometheus, window: Window) -> None:
    """Raise DisagreementError unless both give the same value for every link."""
    matrix = json.loads(web.matrix(question(stat, window)))["cells"]["value"]
    theirs = peer.values(stat, window)
    ours = np.array([matrix[source][destination] for source, destination in theirs], dtype=float)
    expected = np.array(list(theirs.values()))
    if stat == "std":  # of a population there, of a sample here
        expected = expected * np.sqrt(HOURS / (HOURS - 1))
    if stat != "count":
        expected = expected / MB
    if not np.allclose(ours, expected, rtol=TOLERANCE, atol=1e-6):
        raise DisagreementError(f"Prometheus: {stat} differs")
