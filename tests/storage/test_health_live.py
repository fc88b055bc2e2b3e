"""A whole Sonar with real parts, taken away one by one: /readyz says within seconds who is missing,
what waits for a Redis that is away or takes nothing says so in a line, and all goes on after.
"""

import signal
import time

import pytest

from tests import refusing
from tests.storage.live import COMMANDS, Sonar, answers

pytestmark = pytest.mark.long

WORKERS = ("transfers", "control")
# What the beat says until it is over: that it began, that it goes on (once a minute), the end.
MOST_LINES = 4


def said(sonar: Sonar, name: str) -> list[str]:
    log = sonar.place / f"{name}.log"
    return log.read_text().splitlines() if log.is_file() else []


def errors(lines: list[str]) -> list[str]:
    return [line for line in lines if " ERROR " in line]


def of_the_queue(lines: list[str]) -> list[str]:
    return [line for line in lines if "The queue " in line]


def is_over(beat: list[str]) -> bool:
    return any("The queue accepts tasks again" in line for line in beat)


def lengths(sonar: Sonar) -> dict[str, int]:
    return {name: len(said(sonar, name)) for name in COMMANDS}


def test_each_part_that_goes_is_missed_within_seconds_and_again_there_when_it_is_back(sonar: Sonar):
    """And what waits for Redis says so in lines."""
    sonar.wait_for(lambda: answers(sonar), 120)
    assert set(sonar.missing()) == {"workers", "scheduler"}
    sonar.start_senders()
    sonar.wait_until(set(), 120)
    assert sonar.metric('sonar_workers{queue="transfers"}') == 1
    assert time.time() - (sonar.metric("sonar_last_plan_timestamp_seconds") or 0) < 30

    # A worker that ends by itself is gone at once, one that is killed after three signs.
    sonar.end("transfers")
    assert "“transfers”" in sonar.missing()["workers"]
    assert sonar.metric('sonar_workers{queue="transfers"}') == 0
    sonar.run("transfers")
    sonar.wait_until(set())
    sonar.end("transfers", signal.SIGKILL)
    sonar.wait_until({"workers"})
    sonar.run("transfers")
    sonar.wait_until(set())

    # A worker that hangs gives no sign, though its process is there.
    control = sonar.running["control"]
    control.send_signal(signal.SIGSTOP)
    sonar.wait_for(lambda: "“control”" in sonar.missing().get("workers", ""))
    sonar.wait_until({"workers", "scheduler"})
    control.send_signal(signal.SIGCONT)
    sonar.wait_until(set())

    sonar.end("cleanup")
    assert "“cleanup”" in sonar.missing()["workers"]
    sonar.run("cleanup")
    sonar.wait_until(set())

    sonar.end("beat")
    assert sonar.missing()["scheduler"].startswith("The scheduler has not sent a task")
    sonar.run("beat")
    sonar.wait_until(set())

    begun = lengths(sonar)
    sonar.redis.stop()
    assert "Redis is not responding" in sonar.missing()["redis"]
    assert sonar.metric('sonar_up{part="redis"}') == 0
    sonar.wait_until({"redis", "workers", "scheduler"})  # nobody is heard of without it
    sonar.wait_for(lambda: bool(of_the_queue(said(sonar, "beat")[begun["beat"] :])), 120)
    sonar.redis.start()
    sonar.wait_for(lambda: is_over(said(sonar, "beat")[begun["beat"] :]), 120)
    sonar.wait_until(set(), 180)
    # Each line begins with its time: no traceback, whatever starts a worker.
    lines = {name: said(sonar, name)[begun[name] :] for name in COMMANDS}
    assert len(of_the_queue(lines["beat"])) <= MOST_LINES
    for name in COMMANDS:
        assert [line for line in lines[name] if line[:2] != "20"] == [], name

    sonar.database.stop()
    began = time.monotonic()
    assert set(sonar.missing()) == {"database", "workers", "scheduler"}
    assert sonar.metric('sonar_up{part="database"}') == 0
    assert sonar.get("/healthz").status == 200
    assert time.monotonic() - began < 60
    sonar.database.start()
    sonar.wait_until(set(), 120)
    assert all(process.poll() is None for process in sonar.running.values()), sonar.words()


# One that cannot save refuses all that a replica does, and Celery takes longer to come back.
@pytest.mark.parametrize("way", ["full", "a replica"])
def test_a_sonar_whose_redis_takes_nothing_waits_says_so_in_a_line_and_goes_on(
    sonar: Sonar, way: str
):
    refuse, why = refusing.WAYS[way]
    url = sonar.env["REDIS_URL"]
    sonar.wait_for(lambda: answers(sonar), 120)

    # Who starts now waits until it is over.
    sonar.end_senders()
    ended = lengths(sonar)
    with refuse(url):
        sonar.start_senders()
        sonar.wait_for(
            lambda: all(errors(said(sonar, name)[ended[name] :]) for name in COMMANDS), 120
        )
        # The beat's last sign may be younger than those who started took to say so.
        told = sonar.wait_until({"redis", "workers", "scheduler"}, 120)
        assert why in told["redis"]
        # Who waits listens to its end all the same.
        waiting = sonar.running["transfers"]
        sonar.end("transfers")
        assert waiting.returncode == 0
        sonar.run("transfers")
    sonar.wait_until(set(), 180)

    # Who runs goes on by itself, too.
    begun = lengths(sonar)
    with refuse(url):
        assert "redis" in sonar.wait_until({"redis", "scheduler"} | silenced(way), 120)
        assert sonar.metric('sonar_up{part="redis"}') == 0
    sonar.wait_until(set(), 180)
    assert all(process.poll() is None for process in sonar.running.values()), sonar.words()

    beat = said(sonar, "beat")[begun["beat"] :]
    spoken = of_the_queue(beat)
    assert len(spoken) <= MOST_LINES
    assert "The queue does not accept the task" in spoken[0]
    assert "The queue accepts tasks again" in spoken[-1]
    assert int(spoken[-1].split("; ")[1].split()[0]) >= 3
    rest = [line for line in beat if line not in spoken]
    assert all("Sent the task" in line for line in rest), "\n".join(rest)
    everything = [line for name in COMMANDS for line in said(sonar, name)[ended[name] :]]
    assert not [line for line in everything if "Traceback" in line]
    for name in WORKERS:
        assert all(line[:2] == "20" for line in said(sonar, name)[begun[name] :])


def silenced(way: str) -> set[str]:
    """Return who else is not heard of: one that is full still gives out what it has."""
    return set() if way == "full" else {"workers"}
