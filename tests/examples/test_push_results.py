"""push_results.py: every result arrives once, whatever happens between the runs."""

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import push_results
import pytest

from sonar.models import Transfer
from tests.examples.conftest import Run, Said, Say
from tests.examples.road import Road

SCRIPT = "push_results.py"
HEADER = "source,destination,started_at,seconds,bytes,state,error,error_where,mover\n"
Push = Callable[..., Said]


def line(second: int, **fields: object) -> str:
    one: dict[str, object] = {
        "source": "RAL_DATADISK",
        "destination": "DESY_DATADISK",
        "started_at": f"2026-11-20T03:{second // 60:02}:{second % 60:02}Z",
        "seconds": 12.5,
        "bytes": 2_000_000_000,
        "state": "done",
        "error": "",
        "error_where": "",
        "mover": "fts",
    }
    return ",".join(str(value) for value in (one | fields).values()) + "\n"


def came_of(stored: int, refused: int = 0, name: str = "results.csv") -> str:
    return f"{name}: {stored} stored, {refused} rejected\n"


def stored() -> int:
    return Transfer.objects.filter(profile__mover="fts").count()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    place = tmp_path / "spool"
    place.mkdir()
    return place


@pytest.fixture
def log(spool: Path) -> Path:
    return spool / "results.csv"


@pytest.fixture
def push(act: Say, token_file: Path, monkeypatch: pytest.MonkeyPatch) -> Push:
    monkeypatch.setattr("sonar_client.TRIES_AGAIN", 1)
    monkeypatch.setattr("time.sleep", lambda _: None)

    def push_it(place: Path, *words: str) -> Said:
        return act(push_results, place, "--token-file", token_file, *words)

    return push_it


def refused(place: Path) -> list[dict[str, Any]]:
    return [json.loads(one) for one in place.with_name(f"{place.name}.refused").open()]


@pytest.mark.long
def test_new_results_of_a_directory_are_stored_once(
    run: Run, push: Push, token_file: Path, spool: Path
) -> None:
    (spool / "a.csv").write_text(HEADER + line(1) + line(2))
    three = {"source": "DESY_DATADISK", "destination": "RAL_DATADISK", "seconds": 9}
    three |= {"started_at": "2026-11-20T03:00:00Z", "bytes": 10**9, "state": "done", "mover": "fts"}
    (spool / "b.ndjson").write_text(json.dumps(three) + "\n")
    (spool / "c.csv.part").write_text("is being written")
    first = run(SCRIPT, spool, "--token-file", token_file)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == came_of(2, 0, "a.csv") + came_of(1, 0, "b.ndjson")
    assert push(spool) == Said(0, "", "")
    assert stored() == 3


def test_a_file_that_grows_is_read_from_where_it_was_or_from_its_start_if_begun_anew(
    push: Push, log: Path
) -> None:
    log.write_text(HEADER + line(1) + line(2)[:20])
    assert push(log).stdout == came_of(1)
    with log.open("a") as file:
        file.write(line(2)[20:] + line(3))
    assert push(log).stdout == came_of(2)
    assert push(log).stdout == ""
    log.write_text(HEADER + line(4))
    assert push(log).stdout == came_of(1)
    log.rename(log.with_suffix(".old"))
    log.write_text(HEADER + line(5) + line(6) + line(7))
    assert push(log).stdout == came_of(3)
    assert stored() == 7


def test_a_large_file_is_sent_in_parts(
    push: Push, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_results, "READ_BYTES", 400)
    log.write_text(HEADER + "".join(line(second) for second in range(20)))
    assert push(log).stdout == came_of(20)


def test_an_error_over_several_lines_is_one_result(push: Push, log: Path) -> None:
    failed = line(1, state="failed", error='"first\nsecond\n"', error_where="source")
    log.write_text(HEADER + line(0) + failed[: failed.index("second")])
    assert push(log).stdout == came_of(1)
    log.write_text(HEADER + line(0) + failed)
    assert push(log).stdout == came_of(1)
    assert Transfer.objects.get(state="failed", profile__mover="fts").error == "first\nsecond\n"


def test_other_line_breaks_and_a_byte_order_mark_change_nothing(push: Push, spool: Path) -> None:
    (spool / "a.csv").write_text(HEADER + line(1), encoding="utf-8-sig")
    odd = dict(zip(HEADER.strip().split(","), line(2).strip().split(","), strict=True))
    odd |= {"seconds": 9, "bytes": 10**9, "state": "failed", "error": "a\u2028b\x85c"}
    odd |= {"error_where": "source"}
    (spool / "b.ndjson").write_text(json.dumps(odd, ensure_ascii=False) + "\n\n")
    assert push(spool).stdout == came_of(1, 0, "a.csv") + came_of(1, 0, "b.ndjson")
    assert stored() == 2


def test_wrong_results_are_set_aside_and_the_others_stored(
    push: Push, spool: Path, log: Path
) -> None:
    wrong = [line(second, source="NOWHERE") for second in range(45)]
    log.write_text(HEADER + line(50) + "".join(wrong) + line(51))
    done = push(log)
    assert (done.returncode, done.stdout) == (1, came_of(2, 45))
    aside = refused(log)
    assert len(aside) == 45
    assert aside[0]["why"].startswith("source 'NOWHERE' is not registered: ")
    assert push(log) == Said(0, "", "")
    none = spool / "a.ndjson"
    none.write_text('{"half":\n[1]\n7\n')
    assert push(none).stdout == came_of(0, 3, "a.ndjson")
    assert [one["not a result"] for one in refused(none)] == ['{"half":', "[1]", "7"]


def test_where_nearly_all_is_wrong_nothing_moves_on(
    push: Push, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_results, "MOST_CALLS", 2)
    log.write_text(HEADER + "".join(line(second, source="NOWHERE") for second in range(50)))
    done = push(log)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "push_results: More than 40 of 50 results are invalid.\n"
    assert push(log).returncode == 1


def test_while_sonar_is_away_or_a_token_bad_results_wait(act: Say, push: Push, log: Path) -> None:
    log.write_text(HEADER + line(1))
    done = push(log, "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "is not responding" in done.stderr
    for environment in ({}, {"SONAR_TOKEN": "sonar_" + "0" * 64}):
        done = act(push_results, log, **environment)
        assert done.returncode == 1
        assert "sonar_0" not in done.stderr
    assert push(log).stdout == came_of(1)


@pytest.mark.parametrize("event", ["lost", "cut", "429 1", "503 1", "html"])
def test_a_call_that_goes_wrong_is_made_up_for(
    push: Push, road: Road, log: Path, event: str
) -> None:
    log.write_text(HEADER + line(1) + line(2))
    road.events.extend([event] * 2)  # the second try as well
    done = push(log, "--url", road.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert push(log).returncode == 0
    assert stored() == 2


def test_a_run_that_is_cut_in_the_middle_goes_on_there(
    push: Push, road: Road, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sonar_client.MOST_RESULTS", 2)
    (spool / "a.csv").write_text(HEADER + line(1))
    (spool / "b.csv").write_text(HEADER + "".join(line(second) for second in range(2, 7)))
    road.events.extend(["", "", "lost", "lost"])
    assert push(spool, "--url", road.url).stdout == came_of(1, 0, "a.csv")
    assert stored() == 5
    assert push(spool).stdout == came_of(1, 0, "b.csv")
    assert stored() == 6


def test_two_runs_at_once_are_one_and_a_place_that_is_not_there_is_said(
    push: Push, log: Path
) -> None:
    log.write_text(HEADER + line(1))
    with log.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = push(log)
    assert done.returncode == 1
    assert done.stderr.startswith("push_results: Another run is already processing ")
    assert push(log).returncode == 0
    done = push(log.with_name("nowhere"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert push(log, "--help").returncode == 0
