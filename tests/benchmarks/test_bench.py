"""The benchmarks run from end to end, and every contestant gives the same answers."""

import json
import subprocess
import sys
from functools import partial
from os import environ
from pathlib import Path

import pytest

from tests.benchmarks import growth
from tests.benchmarks.measured import Goal, ratio, timed
from tests.needs import needs

PROJECT = Path(__file__).resolve().parents[2]
# Those that take seconds. Who disagrees is an error.
GOALS = {1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 16, 18}


@pytest.mark.long
def test_every_contestant_answers_the_same_on_small_data(tmp_path: Path) -> None:
    needs("chromium")
    report = tmp_path / "report.json"
    only = ",".join(map(str, GOALS))
    command = [sys.executable, "-m", "tests.benchmarks", "--scale=small", f"--only={only}"]
    variables = {name: value for name, value in environ.items() if name not in ("BENCH_HOME",)}
    done = subprocess.run(
        [*command, f"--json={report}"],
        cwd=PROJECT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    goals = json.loads(report.read_text())["goals"]
    assert {goal["number"] for goal in goals} == GOALS
    # Small streams may leave the memory of a web process as it was.
    assert [goal for goal in goals if goal["value"] <= 0 and "grew" not in goal["text"]] == []
    assert all(goal["value"] >= 0 for goal in goals)


def test_contestants_take_turns_and_each_round_begins_with_another_one() -> None:
    calls: list[str] = []
    seconds = timed(2, {name: partial(calls.append, name) for name in "abc"})
    assert "".join(calls) == "abcbca"
    assert {name: len(some) for name, some in seconds.items()} == {"a": 2, "b": 2, "c": 2}


def test_a_ratio_is_that_of_the_medians_with_the_extremes_of_the_rounds() -> None:
    spread = ratio([10.0, 20.0, 90.0], [1.0, 4.0, 3.0])
    assert (spread.median, spread.minimum, spread.maximum) == (20 / 3, 5.0, 30.0)


def test_a_goal_is_met_at_its_limit_and_unknown_without_a_value() -> None:
    assert Goal(1, "fast", 30, 30.0).met is True
    assert Goal(4, "even", 1.2, 1.21, at_least=False).met is False
    assert Goal(3, "large", 25, None).met is None


def test_growth_is_the_power_of_the_number_of_results_whatever_titles_count() -> None:
    small, large = (
        {
            "scale": {"name": name, "rows": rows},
            "contests": [{"title": title, "milliseconds": {"Sonar": {"minimum": fastest}}}],
            "facts": [{"name": "disk", "unit": "MB", "value": 60.0}],
        }
        for name, rows, title, fastest in (
            ("default", 100, "1 d: 1,000 results of 1,234 links", 2.0),
            ("tenfold", 1_000, "1 d: 10,000 results of 12,345 links", 20.0),
        )
    )
    table = growth.table([small, large])
    rows = zip(*(column.cells for column in table.columns[2:]), strict=True)
    assert [*rows] == [("2", "20", "1.00"), ("60", "60", "0.00")]
