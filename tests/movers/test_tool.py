"""Programs that move files: read while they run, stopped at once, and nothing of them left."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sonar.movers.base import End, Late, Limits, MoverError, Order, Stopped, Where
from sonar.movers.content import TestFile, adler32
from sonar.movers.programs import gfal2, tool
from sonar.movers.programs.tool import Command
from sonar.movers.watch import Watch, within
from tests.waiting import wait_for

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = End(Where.SOURCE, "root://a.example/base/f", "root://a.example/base")
ORDER = Order(SOURCE, SOURCE, 1000, limits=Limits(stall=30, total=60))
IMPATIENT = replace(ORDER, limits=Limits(stall=0.5, total=60))
SOON = 60.0


def shell(script: str, **more: object) -> Command:
    return Command(("sh", "-c", script), **more)  # type: ignore[arg-type]


def move(command: Command, order: Order = ORDER, watch: Watch | None = None) -> tool.Ended:
    return tool.move(command, order, watch or Watch(), number)


def number(line: str) -> int | None:
    return int(line) if line.isdigit() else None


def test_lines_come_while_it_runs_and_become_samples(tmp_path: Path):
    """The program goes on only after somebody has seen its first line."""
    os.mkfifo(seen := tmp_path / "seen")

    def go_on(moved: int) -> None:
        if moved == 10:
            seen.write_text("\n")

    watch, began = Watch(go_on), time.monotonic()
    ended = move(shell(f"echo 10; read _ < {seen}; printf '20\\r30\\rlast'; exit 3"), watch=watch)
    assert [sample.bytes for sample in watch.seen.samples] == [10, 20, 30]
    first, second, _ = (sample.seconds for sample in watch.seen.samples)
    assert 0 < first < second < ended.seconds < time.monotonic() - began
    assert (ended.code, ended.text) == (3, "10\n20\r30\rlast")


def test_escape_codes_for_terminals_are_in_no_line_and_not_in_its_text():
    watch = Watch()
    script = r"printf '\033[1;32m10\033[0m\r\n\033]0;title\007\357\273\27720\033[K\n'"
    ended = move(shell(script), watch=watch)
    assert [sample.bytes for sample in watch.seen.samples] == [10, 20]
    assert ended.text.split() == ["10", "20"]


def test_a_token_with_escape_codes_inside_is_not_told():
    script = r"printf 'a sec\033[0mret b\n'"
    shown = shell(script, variables={tool.TOKEN: "secret"})
    lines: list[str] = []
    ended = tool._run(shown, Watch(), tool.Deadline(SOURCE, 30), lines.append)
    assert (lines, ended.text) == (["a *** b"], "a *** b\n")


@pytest.mark.parametrize("on_terminal", [False, True])
def test_its_last_words_are_read_however_late_we_look(monkeypatch, on_terminal: bool):
    looks_at_once = tool._has_ended

    def looks_late(process: subprocess.Popen[bytes]) -> bool:
        time.sleep(0.5)
        return looks_at_once(process)

    monkeypatch.setattr(tool, "_has_ended", looks_late)
    ended = move(shell("sleep 0.3; echo 10; echo last", on_terminal=on_terminal))
    assert ended.text.split() == ["10", "last"]


def test_it_sees_a_terminal_only_where_it_is_given_one():
    asks = "test -t 1 && echo yes || echo no"
    assert move(shell(asks)).text.strip() == "no"
    assert move(shell(asks, on_terminal=True)).text.strip() == "yes"


def test_nothing_of_ours_is_in_its_environment_and_no_file_of_ours_is_open(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://sonar:secret@db/sonar")
    with open("/etc/hostname") as _:  # noqa: PTH123 - a descriptor that is open meanwhile
        told = move(shell("env; ls /proc/self/fd", variables={"XRD_LOGLEVEL": "Error"})).text
    names = {line.partition("=")[0] for line in told.splitlines() if "=" in line}
    assert names == {"PATH", "LC_ALL", "TZ", "HOME", "XRD_LOGLEVEL", "PWD"}
    assert {line for line in told.splitlines() if line.isdigit()} == {"0", "1", "2", "3"}


def test_a_test_file_is_written_to_its_input():
    script = "import sys, zlib; print(f'{zlib.adler32(sys.stdin.buffer.read()):08x}')"
    command = Command((sys.executable, "-c", script), content=TestFile(3_000_000))
    assert tool.ask(command, SOURCE, ORDER).text.strip() == adler32(3_000_000)


def test_who_does_not_read_its_input_ends_as_it_likes():
    assert tool.ask(shell("exit 4", content=TestFile(3_000_000)), SOURCE, ORDER).code == 4


def pids_of(marker: str) -> list[int]:
    """Return the processes with this word in their command line, zombies not counted."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline", "status"])
        if marker in " ".join(process.info["cmdline"] or [])
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and process.pid != os.getpid()
    ]


def wait_until_none(marker: str) -> None:
    assert wait_for(lambda: not pids_of(marker), 120, 0.02), pids_of(marker)


# It starts another one, and neither wants to end.
STUBBORN = "trap '' TERM; (trap '' TERM; sleep {seconds}) & echo 5; sleep {seconds}"


@pytest.mark.parametrize("script", ["echo 5; sleep {seconds}", STUBBORN], ids=["plain", "stubborn"])
def test_a_stop_ends_it_and_whatever_it_has_started(script: str, tmp_path):
    seconds, watch = 6000 + os.getpid() % 1000, Watch()
    watch_progress = Watch(lambda moved: threading.Timer(0.1, watch_progress.stop).start() or None)
    began = time.monotonic()
    with pytest.raises(Stopped):
        move(shell(script.format(seconds=seconds)), watch=watch_progress)
    assert time.monotonic() - began < SOON
    wait_until_none(f"sleep {seconds}")
    assert not watch.stopped


def test_a_stop_before_it_begins_begins_nothing():
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped):
        move(shell("sleep 600"), watch=watch)


def test_who_shows_no_progress_any_more_is_ended():
    with pytest.raises(
        MoverError, match=r"sh: no bytes moved for 0.5 s, at 7 of 1000 bytes"
    ) as told:
        move(shell("echo 7; sleep 6100"), IMPATIENT)
    assert told.value.where == "transfer"
    wait_until_none("sleep 6100")


REPORT = "for i in $(seq 20); do echo {moved}; sleep 0.2; done"


def test_a_program_that_goes_on_reporting_all_bytes_is_not_stuck():
    """The server verifies the file meanwhile: 4 s here, a second more than a stall may take."""
    order = replace(ORDER, limits=Limits(stall=3, total=60))
    assert move(shell(REPORT.format(moved=1000)), order).code == 0


def test_a_program_that_reports_the_same_part_again_and_again_is_stuck():
    with pytest.raises(MoverError, match=r"no bytes moved for 0.5 s, at 999 of 1000 bytes"):
        move(shell(REPORT.format(moved=999)), IMPATIENT)


def test_a_program_that_is_silent_after_all_bytes_is_ended_and_the_message_says_when():
    with pytest.raises(
        MoverError,
        match=r"sh: all 1000 bytes had moved, then nothing happened "
        r"for 0.5 s",
    ):
        move(shell("echo 1000; sleep 6110"), IMPATIENT)
    wait_until_none("sleep 6110")


def test_a_meter_is_no_report_of_the_program():
    with pytest.raises(
        MoverError,
        match=r"all 1000 bytes had moved, then nothing happened for "
        r"0.5 s",
    ):
        tool.move(shell("sleep 6120"), IMPATIENT, Watch(), number, meter=lambda _: 1000)
    wait_until_none("sleep 6120")


def test_a_copy_that_is_verified_for_too_long_says_so():
    order = replace(ORDER, limits=Limits(stall=30, total=0.5))
    words = r"all 1000 bytes were reported as moved, but the copy was not confirmed within 0.5 s"
    with pytest.raises(MoverError, match=words):
        tool.move(shell("sleep 6130"), order, Watch(), number, meter=lambda _: 1000)


def test_who_takes_too_long_is_ended():
    order = Order(SOURCE, SOURCE, 1000, limits=Limits(total=0.5))
    with pytest.raises(MoverError, match=r"sh: not finished within 0.5 s$"):
        move(shell("sleep 6200"), order)


def test_a_question_has_its_seconds_and_no_more_than_its_step():
    with pytest.raises(Late, match=r"sh a.example:1094/base/f: no answer within 0.3 s"):
        tool.ask(shell("sleep 6300"), SOURCE, ORDER, seconds=0.3)
    with within(Watch(), 0.3), pytest.raises(Late, match=r"within 0(\.\d+)? s"):
        tool.ask(shell("sleep 6300"), SOURCE, ORDER)
    wait_until_none("sleep 6300")


def test_a_progress_that_is_refused_ends_it_at_once():
    def refuse(line: str) -> int | None:
        raise MoverError(Where.CONTROL, f"not so: {line}")

    with pytest.raises(MoverError, match="not so: streamed"):
        tool.move(shell("echo streamed; sleep 6400"), ORDER, Watch(), refuse)
    wait_until_none("sleep 6400")


def test_what_is_not_there_cannot_be_started(monkeypatch):
    ended = move(Command(("no-such-program",)))
    assert ended.code == 127
    assert "no-such-program" in ended.text
    monkeypatch.setattr(tool, "WITH_US", ("/no/such/setpriv",))
    with pytest.raises(MoverError, match="sh cannot be started: No such file or directory"):
        move(shell("true"))


def test_it_does_not_outlive_a_killed_worker(tmp_path):
    script = """
from tests.movers.test_tool import ORDER, move, shell
move(shell("echo 5; exec sleep 65" + "00"), ORDER)
"""
    worker = subprocess.Popen([sys.executable, "-c", script], cwd=PROJECT)
    assert wait_for(lambda: pids_of("sleep 6500"), 120, 0.05)
    assert worker.poll() is None
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    wait_until_none("sleep 6500")


def test_endless_output_is_read_in_bounded_memory():
    script = "head -c 40000000 /dev/zero | tr '\\0' 'x'; echo; echo 9"
    watch = Watch()
    ended = move(shell(script), watch=watch)
    assert len(ended.text) <= tool.KEPT_CHARACTERS
    assert [sample.bytes for sample in watch.seen.samples] == [9]


def test_a_command_is_as_it_is_given():
    odd = "a b; $(c) 'd'"
    told = move(Command(("printf", "%s", odd))).text
    assert told == odd


@pytest.fixture(autouse=True)
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gfal2, "TURNS", threading.BoundedSemaphore(1))


def test_the_next_one_begins_when_one_has_ended():
    began = threading.Event()

    def follow() -> None:
        with gfal2.turn(ORDER, Watch()):
            began.set()

    with gfal2.turn(ORDER, Watch()):
        thread = threading.Thread(target=follow)
        thread.start()
        assert not began.wait(0.5)
    assert began.wait(60)
    thread.join()


def test_who_waits_is_stopped_at_once():
    watch = Watch()
    with gfal2.turn(ORDER, Watch()):
        threading.Timer(0.3, watch.stop).start()
        with pytest.raises(Stopped), gfal2.turn(ORDER, watch):
            pass


def test_who_has_waited_as_long_as_a_copy_may_take_is_told():
    brief = replace(ORDER, limits=Limits(total=0.1))
    with gfal2.turn(ORDER, Watch()):
        with pytest.raises(MoverError, match="busy with 20 other gfal-copy transfers") as late:
            gfal2.turn(brief, Watch()).__enter__()
        assert late.value.where == Where.CONTROL


def test_a_turn_is_given_back_by_who_failed():
    with pytest.raises(ZeroDivisionError), gfal2.turn(ORDER, Watch()):
        raise ZeroDivisionError
    with gfal2.turn(replace(ORDER, limits=Limits(total=0.1)), Watch()):
        pass
