"""best_sources.py: the best N sources for a destination, young and fast enough."""

from datetime import timedelta

import best_sources
import pytest

from tests.examples.conftest import Run, Say
from tests.matrix.world import NOW, World, transfer

SCRIPT = "best_sources.py"


@pytest.mark.long
def test_the_fastest_young_sources_are_csv(run: Run) -> None:
    done = run(SCRIPT, "RAL_DATADISK")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "source,median_mb_s,ok,failed,last_ok\n"
        "Glasgow_DATADISK,50,3,0,2026-11-20T11:40:30Z\n"
        "DESY_DATADISK,2.5,3,0,2026-11-20T11:40:30Z\n"
    )


def test_age_rate_and_number_choose(act: Say) -> None:
    for words, sources in (
        (["--max-age", "6"], ["Glasgow_DATADISK", "DESY_SCRATCHDISK", "DESY_DATADISK"]),
        (["--max-age", "6", "-n", "2"], ["Glasgow_DATADISK", "DESY_SCRATCHDISK"]),
        (["--min-mb-s", "10"], ["Glasgow_DATADISK"]),
        (["--min-mb-s", "51", "--by", "mean"], ["Glasgow_DATADISK"]),
        (["--min-mb-s", "51"], []),
        (["--size", "medium"], []),
        (["--window", "1h", "--max-age", "0.2"], []),
    ):
        done = act(best_sources, "RAL_DATADISK", *words)
        assert [line.split(",")[0] for line in done.stdout.splitlines()[1:]] == sources, words
        assert done.returncode == int(not sources), words


def test_a_source_that_mostly_fails_or_is_retired_is_none(act: Say, known_world: World) -> None:
    for minutes in range(1, 6):
        ago = timedelta(minutes=minutes)
        transfer(known_world.glasgow, known_world.ral, None, ago=ago)
    done = act(best_sources, "RAL_DATADISK")
    assert [line.split(",")[0] for line in done.stdout.splitlines()[1:]] == ["DESY_DATADISK"]
    words = ("RAL_DATADISK", "--min-success", "0.1")
    assert "Glasgow" in act(best_sources, *words).stdout
    known_world.glasgow.retired_at = NOW
    known_world.glasgow.save()
    assert "Glasgow" not in act(best_sources, *words).stdout


def test_a_dead_source_is_not_young_because_a_test_of_it_failed_just_now(
    act: Say, known_world: World
) -> None:
    for hours in (20, 21):
        transfer(known_world.scratch, known_world.ral, 90.0, ago=timedelta(hours=hours))
    transfer(known_world.scratch, known_world.ral, None, ago=timedelta(minutes=1))
    words = ["RAL_DATADISK", "--max-age", "3"]
    assert "SCRATCHDISK" not in act(best_sources, *words).stdout
    assert "SCRATCHDISK" in act(best_sources, *words[:2], "21").stdout


def test_none_is_an_answer_with_the_reason(act: Say) -> None:
    done = act(best_sources, "RAL_DATADISK", "--min-mb-s", "100")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "No suitable source for RAL_DATADISK: 3 succeeded in 24h, 2 of them in the last 3 h, "
        "the fastest of them 50 MB/s.\n"
    )
    assert ": 0 succeeded" in act(best_sources, "DESY_SCRATCHDISK").stderr


def test_what_it_cannot_say_has_another_exit_code(
    act: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonar_client.TRIES_AGAIN", 0)
    for words, code, sentence in (
        (["NOWHERE"], 3, "destination_endpoint “NOWHERE” is not known"),
        (["RAL_DATADISK", "--url", "http://127.0.0.1:9"], 3, "is not responding"),
        (["RAL_DATADISK", "--token-file", "nowhere"], 3, "No such file"),
        (["RAL_DATADISK", "--by", "max"], 2, "invalid choice: 'max'"),
        ([], 2, "DESTINATION"),
        (["--help"], 0, ""),
    ):
        done = act(best_sources, *words)
        assert done.returncode == code, words
        assert sentence in done.stderr, words
