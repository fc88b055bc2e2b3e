"""/readyz with real parts, taken away one by one: it says who is missing within seconds."""

from __future__ import annotations

import signal
import time

import pytest

from tests.storage.live import COMMANDS, Sonar, answers

pytestmark = pytest.mark.long


def test_each_part_that_goes_is_missed_within_seconds_and_again_there_when_it_is_back(
    new_sonar: Sonar,
) -> None:
    sonar = new_sonar
    assert sonar.running.pop("web").wait(120) != 0
    assert "The database lacks migrations of this Sonar" in (sonar.place / "web.log").read_text()
    sonar.migrate()
    sonar.run_web()
    sonar.wait_for(lambda: answers(sonar), 120)
    assert set(sonar.missing()) == {"workers", "beat"}
    for name in COMMANDS:
        sonar.run(name)
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
    sonar.wait_until({"workers", "beat"})
    control.send_signal(signal.SIGCONT)
    sonar.wait_until(set())

    sonar.end("cleaning")
    assert "“cleaning”" in sonar.missing()["workers"]
    sonar.run("cleaning")
    sonar.wait_until(set())

    sonar.end("beat")
    assert sonar.missing()["beat"].startswith("The beat sends nothing")
    sonar.run("beat")
    sonar.wait_until(set())

    sonar.stop_service("redis")
    assert "Redis does not answer" in sonar.missing()["redis"]
    assert sonar.metric('sonar_up{part="redis"}') == 0
    sonar.wait_until({"redis", "workers", "beat"})  # nobody is heard of without it
    sonar.start_redis()
    sonar.wait_until(set(), 120)

    sonar.stop_service("database")
    began = time.monotonic()
    assert set(sonar.missing()) == {"database", "workers", "beat"}
    assert sonar.metric('sonar_up{part="database"}') == 0
    assert sonar.get("/healthz").status == 200
    assert time.monotonic() - began < 20
    sonar.start_database()
    sonar.wait_until(set(), 120)
    assert all(process.poll() is None for process in sonar.running.values()), sonar.words()
