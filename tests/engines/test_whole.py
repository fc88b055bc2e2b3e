"""A whole Sonar on RabbitMQ and, for all its processes, PgBouncer in transaction mode. Both are
away as it starts, and are killed under load: every probe becomes one transfer, and no file is left.

SONAR_TEST_PROBES says how many probes at least.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sonar.sandbox import embedded
from tests.engines.pgbouncer import Pooler
from tests.engines.rabbitmq import Broker
from tests.storage.grid import Grid
from tests.storage.ledger import MADE, NOT_ONE_TRANSFER, STATES
from tests.waiting import wait_for

pytestmark = pytest.mark.long

PROBES = int(os.environ.get("SONAR_TEST_PROBES") or 200)
# How many probes come between one trouble and the next.
EACH = max(40, PROBES // 25)
TROUBLES = ["broker", "pooler", "worker", "pooler", "control"]
SITES = (
    "UKI-NORTHGRID-LANCS-HEP",
    "UKI-SOUTHGRID-CAM-HEP",
    "UKI-NORTHGRID-SHEF-HEP",
    "TAIWAN-LCG2",
    "RAL-LCG2",
)
PATIENCE_SECONDS = 120.0
SETTINGS = {
    "SONAR_CLEANUP_SECONDS": "1",
    "SONAR_PLAN_SECONDS": "1",
    "SONAR_RECOVERY_SECONDS": "1",
    "SONAR_RESEND_SECONDS": "2",
    "SONAR_IN_FLIGHT": "24",
    "SONAR_COMPACTION_SECONDS": "2",
    "SONAR_DATABASE_TRANSACTION_POOL": "true",
}
# As what nobody needs who sends and takes messages by a RabbitMQ.
NO_REDIS = "redis://127.0.0.1:1/0"


class Sonar(Grid):
    """All processes of one Sonar, none of which has a Redis or asks PostgreSQL itself."""

    def __init__(self, place: Path, sockets: Path) -> None:
        super().__init__(place, sockets, place)
        self.random = Random(2011)
        (place / "rabbitmq").mkdir()
        self.broker = Broker(place / "rabbitmq")

    def start(self) -> None:
        """Start all but what the processes need: they wait for it."""
        self.start_services(SETTINGS)
        self.pooler = Pooler(self.place, self.database.url, sessions=6)
        self.load(registry_of(self.nodes.start().base_urls))
        self.env |= {"DATABASE_URL": self.pooler.url, "BROKER_URL": self.broker.url}
        self.env |= {"REDIS_URL": NO_REDIS}
        self.start_workers({"worker": 2}, {"worker -c": "8"})
        self.wait_for(lambda: "Connection refused" in self.logs("beat"))
        self.broker.start()
        self.pooler.start()

    def suffer(self, trouble: str) -> None:
        if trouble in ("worker", "control"):
            self.kill(trouble)
            return
        engine = self.broker if trouble == "broker" else self.pooler
        engine.kill()
        time.sleep(self.random.uniform(0.5, 1.5))
        engine.start()

    def ended(self) -> int:
        return self.count("sonar_transfer")

    def come_to_rest(self) -> None:
        """Plan no more and let all probes end; those of whom nobody speaks as lost."""
        self.ask("UPDATE sonar_mesh SET enabled = false")
        self.wait_for(lambda: not self.count("sonar_probe", "state <> 'running'"))
        self.bury()
        self.wait_for(lambda: not self.count("sonar_probe"))
        self.leave_alone_no_more()
        self.ask("UPDATE sonar_leftover SET next_try = now(), tries = 0")
        self.wait_for(lambda: not self.count("sonar_leftover"))

    def wait_for(self, done: Callable[[], bool]) -> None:
        kinds = ("control", "worker", "beat")
        assert wait_for(done, PATIENCE_SECONDS), self.logs(*kinds)[-4000:]

    def close(self) -> None:
        super().close()
        self.pooler.stop()
        self.broker.close()


def registry_of(base_urls: dict[str, str]) -> dict[str, Any]:
    names = {site: f"{site}_DATADISK" for site in SITES}
    caps = {"inbound_cap": 8, "outbound_cap": 8}
    small = {"name": "small", "from_bytes": 0, "test_bytes": 50_000, "timeout_seconds": 60}
    return {
        "size_classes": [small],
        "sites": [{"name": site} for site in SITES],
        "endpoints": [
            {"name": name, "site": site, "base_url": base_urls[name], **caps}
            for site, name in names.items()
        ],
        "meshes": [{"name": "all", "every": {"small": "1s"}}],
    }


@pytest.fixture(scope="module")
def sonar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sonar]:
    """Return a Sonar that has been through all troubles and has come to rest."""
    with ExitStack() as stack:
        sockets = stack.enter_context(embedded.socket_directory())
        place = tmp_path_factory.mktemp("whole")
        place.chmod(0o755)
        one = Sonar(place, sockets)
        stack.callback(one.close)
        one.start()
        for number, sent in enumerate(range(EACH, PROBES + 1, EACH)):
            one.wait_for(lambda sent=sent: one.ended() >= sent)  # type: ignore[misc]
            one.suffer(TROUBLES[number % len(TROUBLES)])
        one.wait_for(lambda: one.ended() > PROBES + 24)
        one.come_to_rest()
        yield one


def test_every_probe_became_one_transfer_and_no_file_is_left(sonar: Sonar) -> None:
    assert sonar.ask(NOT_ONE_TRANSFER) == []
    assert int(sonar.ask(MADE)[0][0]) == sonar.ended() > PROBES
    assert sonar.nodes.files_left() == []
    states = dict(sonar.ask(STATES))
    assert states["done"] > PROBES / 2, states


def test_what_was_not_killed_has_lived_through_it_and_said_so_in_lines(sonar: Sonar) -> None:
    assert [name for name, process in sonar.running.items() if process.poll() is not None] == []
    assert "Traceback" not in sonar.logs("control", "cleanup", "worker", "beat")
