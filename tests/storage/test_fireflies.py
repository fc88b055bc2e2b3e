"""Fireflies of real XRootD servers: sent for what Sonar's tests carry, collected and matched."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from django.db import connection
from django.utils import timezone

from matrix.answers.connections import reported
from sonar.models import Endpoint, Flow, Transfer
from sonar.movers.base import End, Order, Where
from sonar.movers.content import adler32
from sonar.movers.programs.xrootd import Xrootd
from sonar.movers.watch import Watch
from tests.matrix.sent import send
from tests.needs import find
from tests.sonar.fireflies import HOSTILE, PLACES, firefly, replaced
from tests.sonar.world import endpoint
from tests.storage.conftest import LIMITS, Pair
from tests.storage.xrootd import Authority, Server, give_to_server, make_room
from tests.waiting import SOON, wait_for

pytestmark = pytest.mark.usefixtures("real_commits")

SCITAG = 139
SIZE = 20_000_000
# As the public registry of experiments and activities names them.
DEFINITIONS = {
    "version": 1,
    "modified": "2024-02-01",
    "experiments": [
        {
            "expName": "atlas",
            "expId": 2,
            "activities": [
                {"activityName": "default", "activityId": 1},
                {"activityName": "Functional Test", "activityId": 11},
            ],
        }
    ],
}
MARKING = """
xrootd.pmark use firefly scitag
xrootd.pmark domain any
xrootd.pmark ffdest 127.0.0.1:{port}
xrootd.pmark defsfile {definitions}
xrootd.pmark map2exp default atlas
xrootd.pmark map2act atlas default default
"""


@pytest.fixture
def ends(real_commits: None) -> tuple[Endpoint, Endpoint]:
    """The second address is that from which every connection within this machine comes."""
    return tuple(
        endpoint(name, base_url=f"root://{host}/base")
        for name, host in (("FAR", "127.0.0.2"), ("NEAR", "127.0.0.1"))
    )


@contextmanager
def collecting(log: Path, *program: str) -> Iterator[int]:
    """Run the command on the database of this test; give its port, and wait for its good end."""
    name, base = connection.settings_dict["NAME"], os.environ["DATABASE_URL"].rpartition("/")[0]
    command = [sys.executable, *program, "collect_fireflies", "--listen", "127.0.0.1:0"]
    env = os.environ | {"DATABASE_URL": f"{base}/{name}"}
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        greeting = process.stdout.readline().decode()
        match = re.search(r"Listening on 127.0.0.1:([0-9]+) \(UDP\) for packets from 127", greeting)
        assert match, greeting + log.read_text()
        try:
            yield int(match[1])
        finally:
            process.terminate()
        assert process.wait(SOON) == 0, log.read_text()


@pytest.fixture
def collector(ends: tuple[Endpoint, Endpoint], tmp_path: Path) -> Iterator[int]:
    with collecting(tmp_path / "log", "manage.py") as port:
        yield port


def marking_server(authority: Authority, host: str, port: int) -> Server:
    server = Server(make_room(), authority, host=host)
    definitions = server.room / "definitions.json"
    definitions.write_text(json.dumps(DEFINITIONS))
    give_to_server(definitions)
    file = server.room / "server.cfg"
    file.write_text(file.read_text() + MARKING.format(port=port, definitions=definitions))
    server.start()
    server.make_directory("base")
    return server


@pytest.fixture
def marking(authority: Authority, collector: int) -> Iterator[Pair]:
    """Two servers at two addresses that send their fireflies to the collector."""
    servers = [marking_server(authority, host, collector) for host in ("127.0.0.2", "127.0.0.1")]
    yield Pair(*servers)
    for server in servers:
        server.close()


def end_of(server: Server, where: Where, name: str) -> End:
    base = f"root://{server.host}:{server.port}/base"
    return End(where, f"{base}/{name}", base)


def put_file(server: Server, name: str) -> Path:
    path = server.data / "base" / name
    path.write_bytes(bytes(SIZE))
    give_to_server(path)
    return path


def ended(scitag: int, count: int) -> bool:
    assert wait_for(
        lambda: Flow.objects.filter(scitag=scitag, ended_at__isnull=False).count() >= count, SOON
    ), list(Flow.objects.values())
    return True


def test_both_servers_mark_what_the_mover_copies_with_its_flow_label(marking: Pair):
    put_file(marking.source, "file")
    order = Order(
        source=end_of(marking.source, Where.SOURCE, "file"),
        destination=end_of(marking.destination, Where.DESTINATION, "incoming/copy"),
        bytes=SIZE,
        adler32=adler32(SIZE),
        limits=LIMITS,
    )
    watch = Watch()
    Xrootd().move(replace(order, scitag=SCITAG), watch)
    assert watch.seen.scitag == SCITAG
    assert ended(SCITAG, 2)
    served = Flow.objects.filter(scitag=SCITAG).values_list("source_address", flat=True)
    assert set(served) == {"127.0.0.2", "127.0.0.1"}


def test_a_connection_with_the_label_of_a_test_stands_with_it(
    marking: Pair, ends: tuple[Endpoint, Endpoint], tmp_path
):
    put_file(marking.source, "file")
    own = send(*ends, timezone.now(), scitag=SCITAG)
    # Who fetches is at the address of the destination.
    url = f"root://127.0.0.2:{marking.source.port}//base/file?scitag.flow={SCITAG}"
    subprocess.run([find("xrdcp"), "--nopbar", url, str(tmp_path / "copy")], check=True)
    assert ended(SCITAG, 1)
    (connection_,) = reported(Transfer.objects.get(id=own))
    assert connection_.bytes
    assert SIZE <= connection_.bytes < 1.01 * SIZE
    assert connection_.rtt_ms is not None
    assert (connection_.application, connection_.reporter) == ("xrdcp", "127.0.0.1")
    assert (connection_.source_address, connection_.other_tests) == ("127.0.0.2", 0)


MANY = 10_000
# As many a second as it can: else most are dropped unread.
UNHURRIED = """
import os
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "sonar.settings"
django.setup()
from sonar.records.fireflies import collector
collector.MOST_A_SECOND = 10**9
from manage import main
main()
"""
FULL_BYTES = 50_000


def waiting_and_lost(port: int) -> tuple[int, int]:
    """Return how many bytes wait in the socket of a collector, and how many packets it lost.

    While other sockets come and go, a read of the table may have a row twice, or not at all.
    """
    local = f"0100007F:{port:04X}"
    for _ in range(100):
        rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()]
        if row := next((row for row in rows if row[1] == local), None):
            return int(row[4].partition(":")[2], 16), int(row[-1])
    raise AssertionError(f"no socket at port {port}")


def hostile(chance: Random) -> bytes:
    """Return a packet of these ends, in which one value or some bytes may be wrong."""
    now = timezone.now().isoformat()
    right = [(("flow-lifecycle", f"{name}-time"), now) for name in ("start", "current", "end")]
    right += [(("flow-id", "src-ip"), "127.0.0.2"), (("flow-id", "dst-ip"), "127.0.0.1")]
    right += [(("flow-id", "src-port"), chance.randrange(65_536))]
    wrong = [(chance.choice(PLACES), chance.choice(HOSTILE))] if chance.randrange(4) else []
    datagram = bytearray(replaced([*right, *wrong]))
    for _ in range(chance.choice((0, 0, 0, 1, 50))):
        datagram[chance.randrange(len(datagram))] = chance.randrange(256)
    return bytes(datagram)


@pytest.mark.long
@pytest.mark.usefixtures("ends")
def test_a_collector_takes_thousands_of_hostile_packets_and_goes_on(tmp_path):
    chance = Random(30)
    log = tmp_path / "log"
    with (
        collecting(log, "-c", UNHURRIED) as port,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        for number in range(MANY):
            if number % 20 == 0:
                assert wait_for(lambda: waiting_and_lost(port)[0] < FULL_BYTES, SOON, pause=0.001)
            sender.sendto(hostile(chance), ("127.0.0.1", port))
        assert wait_for(lambda: waiting_and_lost(port)[0] == 0, SOON)
        assert waiting_and_lost(port)[1] == 0
        with connection.cursor() as cursor:  # as if the database was restarted
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        sender.sendto(firefly(flow_id={"src-ip": "127.0.0.2"}), ("127.0.0.1", port))
    said = log.read_text()
    assert f"{MANY + 1} received" in said
    stored, dropped = re.findall(r"([0-9]+) stored,.* dropped: (.*)", said)[-1]
    assert "database" not in dropped
    assert int(stored) + sum(map(int, re.findall("[0-9]+", dropped))) == MANY + 1
    assert MANY / 5 < int(stored) < MANY
    assert len(list(Flow.objects.values())) > MANY / 10
