"""A lab is there at once, and nothing of it stays, however it ends."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
import yaml

from sonar.models import Mesh
from sonar.movers import loading
from sonar.movers.catalogue import kept
from sonar.movers.measure import measure
from sonar.movers.watch import Watch
from sonar.registry import file as registry_file
from tests.lab.disks import PREFIX, Group
from tests.lab.enclosure import RefusedError
from tests.lab.link import Lab
from tests.lab.scenarios import MB, NOTHING, SOURCE_DISK, Scenario
from tests.storage.conftest import Pair
from tests.waiting import SOON, wait_for

SIZE = 4 * MB

# Builds a lab, says what it is made of, and waits to be killed.
VICTIM = """
import json, os, sys, time
from tests.lab.link import Lab
from tests.lab.scenarios import SOURCE_DISK
lab = Lab([SOURCE_DISK])
source = lab.links["SOURCE-DISK"].source
device = os.stat(source.disk.inside).st_dev
traces = {
    "address": source.host,
    "group": source.disk.group.name,
    "image": f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/loop",
    "processes": [lab.enclosure.pid],
}
print(json.dumps(traces), flush=True)
time.sleep(600)
"""


@pytest.fixture
def rooms() -> Iterator[Path]:
    """Return a directory for the files of a lab that cannot take them away itself."""
    with tempfile.TemporaryDirectory(prefix="sonar-lab-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def inhabitants(pid: int) -> list[int]:
    """Return the processes inside, those that others had started too."""
    space = Path(f"/proc/{pid}/ns/pid").readlink()
    alike = []
    for process in psutil.pids():
        try:
            if Path(f"/proc/{process}/ns/pid").readlink() == space:
                alike.append(process)
        except OSError:
            continue
    return alike


def groups(lab_of: Callable[[Scenario], Lab]) -> list[str]:
    """Return the control groups there are, as another lab sees them."""
    disk = lab_of(SOURCE_DISK).links["SOURCE-DISK"].source.disk
    assert disk
    return disk.group.names


def test_a_file_moves_over_a_link_and_is_gone_afterwards(lab_of):
    link = lab_of(NOTHING).links["NOTHING"]
    pair = Pair(link.source, link.destination)
    outcome = measure(loading.load(kept("http-tpc")), pair.order(bytes=SIZE), Watch())
    assert outcome.receipt, outcome.error
    assert outcome.verified
    assert outcome.leftover is None
    assert pair.left_behind() == []


def test_nothing_of_a_lab_stays_when_it_is_closed(lab_of):
    lab = lab_of(SOURCE_DISK)
    source, inside = lab.links["SOURCE-DISK"].source, inhabitants(lab.enclosure.pid)
    assert len(inside) > 3
    name = source.disk.group.name
    lab.close()
    assert not any(map(psutil.pid_exists, inside))
    assert not source.room.exists()
    assert name not in groups(lab_of)


def test_nothing_of_a_lab_stays_when_its_program_is_killed(lab_of, rooms):
    lab_of()  # says so if this machine allows no lab at all
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(rooms)},
    ) as victim:
        assert victim.stdout
        traces = json.loads(victim.stdout.readline())
        processes = inhabitants(traces["processes"][0])
        assert len(processes) > 3
        victim.kill()
    assert wait_for(lambda: not any(map(psutil.pid_exists, processes)), SOON)
    net = traces["address"].rpartition(".")[0]
    assert wait_for(lambda: net not in Path("/proc/net/fib_trie").read_text(), SOON)
    assert wait_for(lambda: not Path(traces["image"]).exists(), SOON)
    # An empty group limits nobody; the next lab removes it.
    assert traces["group"] not in groups(lab_of)


def test_two_labs_stand_side_by_side_in_nets_of_their_own(lab_of):
    hosts = {lab_of(NOTHING).links["NOTHING"].source.host for _ in range(2)}
    assert len({host.rpartition(".")[0] for host in hosts}) == 2


def test_a_control_group_stays_while_its_lab_stands_though_nobody_is_in_it_yet(lab_of):
    group = Group(lab_of().enclosure, f"{PREFIX}{uuid4().hex}")
    assert group.name in groups(lab_of)
    group.close()
    assert group.name not in groups(lab_of)


def test_what_a_machine_refuses_is_told_with_its_own_words(lab_of):
    lab = lab_of()
    with pytest.raises(RefusedError, match=r"^ip link add x type nonsense: .*Unknown"):
        lab.enclosure.run("ip", "link", "add", "x", "type", "nonsense")


def test_the_lab_by_hand_writes_a_registry_and_stands_until_ctrl_c(lab_of, tmp_path, db):
    lab_of()  # says so if this machine allows no lab at all
    file = tmp_path / "lab.yaml"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.lab", str(file), "NOTHING"], stdout=subprocess.PIPE, text=True
    ) as by_hand:
        assert by_hand.stdout
        link, registered = by_hand.stdout.readline(), by_hand.stdout.readline()
        by_hand.send_signal(signal.SIGINT)
    assert by_hand.returncode == 0
    assert link.startswith("NOTHING  ")
    assert str(file) in registered
    registry_file.load(file.read_text())
    # The whole lab may be registered beside it.
    assert [mesh["name"] for mesh in yaml.safe_load(file.read_text())["meshes"]] == ["NOTHING"]
    mesh = Mesh.objects.get(name="NOTHING")
    urls = [end.get().base_url for end in (mesh.sources, mesh.destinations)]
    assert link.split()[1::2] == [url.removesuffix("/base") for url in urls]
