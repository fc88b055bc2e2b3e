"""docs/systemd: systemd understands the units, they are closed to the outside, and they work."""

import re
import socket
from pathlib import Path

import pytest
import urllib3
from celery.beat import Scheduler

from sonar.processes import service_manager
from sonar.processes.broker import PatientScheduler
from sonar.sandbox import embedded
from tests.clusters import Cluster
from tests.needs import needs
from tests.ports import free_port
from tests.units import UNITS, Service, on_this_machine, systemd_analyze, values
from tests.waiting import wait_for

SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
LASTING = [name for name in SERVICES if "Restart=always" in (UNITS / name).read_text()]
# systemd's figure for what a service could do if it were taken over, of 10: the network is open.
MOST_EXPOSURE = 1.5


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units, with the paths of this machine."""
    for path in UNITS.rglob("*.*"):
        if path.is_file():
            copy = tmp_path / "units" / path.relative_to(UNITS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(on_this_machine(path.read_text(), tmp_path))
    return tmp_path / "units"


def test_systemd_finds_nothing_wrong_and_little_that_they_could_do(installed: Path) -> None:
    needs("systemd-analyze")
    names = [
        path.name
        for path in installed.iterdir()
        if path.suffix in (".service", ".target", ".timer")
    ]
    paths = [str(installed / name) for name in names]
    checked = systemd_analyze("verify", "--man=no", *paths, units=installed)
    assert (checked.returncode, checked.stderr) == (0, "")
    for name in SERVICES:
        told = systemd_analyze("security", "--offline=true", str(installed / name), units=installed)
        exposure = re.search(r"exposure level for \S+: ([\d.]+)", told.stdout)
        assert exposure, told.stderr
        assert float(exposure[1]) <= MOST_EXPOSURE, name


def test_each_that_lasts_is_started_again_has_a_limit_and_those_with_a_loop_a_watchdog() -> None:
    assert len(LASTING) == 5
    for name in LASTING:
        text = (UNITS / name).read_text()
        assert values(text, "MemoryMax"), name
        assert values(text, "Type") == ["notify"], name
        assert values(text, "WatchdogSec") == ([] if name == "sonar-web.service" else ["120"])
        assert values(text, "WantedBy") == ["sonar.target"], name


@pytest.mark.long
def test_each_service_starts_with_the_file_of_settings_says_that_it_lives_and_stops_in_time(
    databases: Cluster, tmp_path: Path
) -> None:
    with embedded.socket_directory() as place:
        started = place / "s"
        with embedded.redis_server(tmp_path / "redis", place, tmp_path / "redis.log") as queue:
            settle(started, databases.address("test_postgres"), queue)
            services = {
                name: Service(name, started, "1" if "@" in name else "") for name in LASTING
            }
            try:
                run(services)
            finally:
                for service in services.values():
                    service.close()


def settle(place: Path, database: str, queue: str) -> None:
    """Write the file of settings, as docs/systemd has it, and the key beside it."""
    for name in ("etc/sonar/credentials", "home", "metrics"):
        (place / name).mkdir(parents=True)
    text = (UNITS / "sonar.env").read_text()
    for name, url in (("DATABASE_URL", database), ("REDIS_URL", queue)):
        text, count = re.subn(rf'^{name}=".*"$', f'{name}="{url}"', text, flags=re.MULTILINE)
        assert count == 1
    (place / "etc/sonar/sonar.env").write_text(text)
    (place / "etc/sonar/secret-key").write_text("k" * 50)


def run(services: dict[str, Service]) -> None:
    port = free_port()
    for service in services.values():
        service.start(SONAR_PORT=str(port), SONAR_HEARTBEAT_SECONDS="5", SONAR_PLAN_SECONDS="1")
    for name, service in services.items():
        assert service.says("READY=1"), (name, service.log.read_text())
        # By its main loop, and not for a queue that it waits for.
        goes_round = name == "sonar-web.service" or service.says("WATCHDOG=1", after="READY=1")
        assert goes_round, name

    told = [b""]

    def ready() -> bool:
        for service in services.values():
            service.hear()  # who is not listened to waits once a dozen words are on their way
        headers = {"Host": "sonar.example.org"}
        url = f"http://127.0.0.1:{port}/readyz"
        answer = urllib3.request("GET", url, headers=headers, timeout=120, retries=False)
        told.append(answer.data)
        return answer.status == 200

    assert wait_for(ready, 180), told[-1]
    for name, service in services.items():
        assert service.stop() == 0, (name, service.log.read_text())


def test_who_waits_for_the_queue_says_so_and_is_no_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(120)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setattr(service_manager, "SPEAK_SECONDS", 0.01)
        with service_manager.waiting("Waiting for its queue."):
            heard = [listening.recv(100).decode() for _ in range(3)]
    assert heard == ["WATCHDOG=1", *["WATCHDOG=1\nSTATUS=Waiting for its queue."] * 2]


def test_the_beat_lives_whether_or_not_its_queue_takes_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(service_manager, "sd_notify", lambda state, log: said.append(state))
    monkeypatch.setattr(Scheduler, "tick", lambda self: 5.0)
    monkeypatch.setattr(PatientScheduler, "_put_right", lambda self: None)
    assert PatientScheduler.tick(object.__new__(PatientScheduler)) == 5.0
    assert said == ["WATCHDOG=1"]
