"""slow_pairs.py: slow, failing and not measured are three things, and downtimes are none."""

import re
from datetime import timedelta

import pytest
import slow_pairs

from sonar.models import Downtime
from tests.examples.conftest import Run, Said, Say
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, World, transfer

SCRIPT = "slow_pairs.py"


def pairs(done: Said) -> dict[str, list[str]]:
    """Return the links under each heading, as `Glasgow>RAL`."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"\n\n", done.stdout.strip()):
        head, *lines = part.splitlines()
        name, _, count = head.partition(": ")
        links = [line.split()[:2] for line in lines[1:]]
        short = [[end.removesuffix("_DATADISK") for end in link] for link in links]
        found[name] = sorted(">".join(link) for link in short)
        assert len(found[name]) == int(count)
    return found


@pytest.mark.long
def test_slow_failing_and_not_measured_are_told_apart(run: Run, act: Say) -> None:
    done = run(SCRIPT)
    found = pairs(done)
    assert done.returncode == 1
    assert found["slow"] == ["DESY>RAL"]
    assert found["failing"] == ["Glasgow>DESY"]
    assert len(found["not measured"]) == 9
    assert "DESY_SCRATCHDISK>RAL" in found["not measured"]  # five hours ago, for a mesh of 1 h
    found = pairs(act(slow_pairs, "--source-cloud", "UK", "--destination-cloud", "DE"))
    assert found["slow"] == []
    assert found["failing"] == ["Glasgow>DESY"]
    assert len(found["not measured"]) == 3


def test_what_is_fast_enough_not_measured_or_measured_too_little_is_no_alarm(act: Say) -> None:
    fast = act(slow_pairs, "--source-site", "DESY", "--under", "2")
    assert fast.returncode == 0
    assert pairs(fast)["slow"] == pairs(fast)["failing"] == []
    for words, count in ((["--source-site", "RAL"], 3), (["--min-tests", "4"], 12)):
        done = act(slow_pairs, *words)
        assert done.returncode == 0, words
        assert len(pairs(done)["not measured"]) == count, words


def test_tests_of_long_ago_say_nothing_of_now_and_what_fails_and_is_slow_is_told_once(
    act: Say, known_world: World
) -> None:
    for minutes in range(3):
        ago = 5 * HOUR + timedelta(minutes=minutes)
        transfer(known_world.ral, known_world.glasgow, 1.0, ago=ago)
    for minutes, rate in enumerate((1.0, None, None), start=1):
        transfer(known_world.ral, known_world.desy, rate, ago=timedelta(minutes=minutes))
    found = pairs(act(slow_pairs))
    assert "RAL>Glasgow" in found["not measured"]
    assert "RAL>Glasgow" not in found["slow"]
    assert "RAL>DESY" in found["failing"]
    assert "RAL>DESY" not in found["slow"]


def test_a_link_that_fails_now_and_then_is_not_failing(act: Say, known_world: World) -> None:
    for minutes in (1, 2):
        ago = timedelta(minutes=minutes)
        transfer(known_world.glasgow, known_world.ral, None, ago=ago)
    assert "Glasgow>RAL" not in pairs(act(slow_pairs))["failing"]
    assert "Glasgow>RAL" in pairs(act(slow_pairs, "--max-failed", "0.3"))["failing"]


def test_a_link_in_downtime_or_outside_every_mesh_is_left_out(act: Say, known_world: World) -> None:
    Downtime.objects.create(
        endpoint=known_world.desy, starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="disks"
    )
    found = pairs(act(slow_pairs))
    assert found["slow"] == found["failing"] == []
    assert not any(re.search(r"\bDESY\b", link) for some in found.values() for link in some)
    assert act(slow_pairs).returncode == 0
    world.endpoint("Outside_DATADISK", known_world.ral.site)
    assert "Outside" not in act(slow_pairs).stdout


def test_not_knowing_is_neither_fine_nor_an_alarm(
    act: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonar_client.TRIES_AGAIN", 0)
    for words, code, sentence in (
        (["--url", "http://127.0.0.1:9"], 3, "is not responding"),
        (["--site", "NOWHERE"], 3, "site “NOWHERE” is not known"),
        (["--under", "little"], 2, "invalid float value: 'little'"),
        (["--help"], 0, ""),
    ):
        done = act(slow_pairs, *words)
        assert done.returncode == code, words
        assert sentence in done.stderr, words
