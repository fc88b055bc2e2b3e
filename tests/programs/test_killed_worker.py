"""A worker that is killed in the middle of copies by programs: they end with it, and are swept."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import psutil
import pytest
from django.utils import timezone

from sonar import tasks
from sonar.models import Endpoint, Leftover, Probe, Transfer
from sonar.movers.base import Order
from sonar.obstacles.worker_movers import queue_of
from sonar.registry import file
from sonar.work import cleanup, transfer_request
from sonar.work.probes import recover
from tests.programs.conftest import Farm
from tests.programs.ways import WAYS, Ends, Way, write_source
from tests.sonar.world import queued
from tests.storage.meanwhile import Meanwhile
from tests.storage.workers import Processes
from tests.waiting import wait_for

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("real_commits")]

LARGE_BYTES = 60_000_000
TRIES = 5
SOON_SECONDS = 120.0
WORKER = ["worker", "--pool=threads", "--loglevel=INFO"]
# Each mover once.
CHOSEN = list({way.mover: way for way in WAYS}.values())
REGISTRY = """
size_classes: [{{name: small, from_bytes: 0, test_bytes: {bytes}}}]
sites: [{{name: A}}, {{name: B}}]
endpoints:
{endpoints}
"""


@dataclass
class Link:
    """Two servers for one mover, and the test that runs between them."""

    way: Way
    ends: Ends
    order: Order
    """Only says where the bases of both are."""
    probe: Probe | None = None
    moving: Event = field(default_factory=Event)

    def entry(self) -> str:
        """Return the lines of a registry for both ends, whose names are those of the mover."""
        bases = {"A": self.order.source.base_url, "B": self.order.destination.base_url}
        return "\n".join(
            f'  - {{name: {site}_{self.way.mover}, site: {site}, base_url: "{url}"}}'
            for site, url in bases.items()
        )

    @property
    def base(self) -> str:
        return self.order.destination.base_url.rpartition("/")[2]

    @property
    def files(self) -> list[Path]:
        """Return what is on both disks beside the source file."""
        servers = (self.ends.source, self.ends.destination)
        found = [path for one in servers for path in (one.data / self.base).rglob("sonar/*/*")]
        return [path for path in found if path.name != str(LARGE_BYTES)]

    @property
    def programs(self) -> list[str]:
        """Return the commands that copy this file; a server's own has another URL."""
        url = f"{self.order.destination.url.partition('/base-')[0]}/"
        lines = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
        return [line for line in lines if url in line and "sonar/incoming" in line]

    def begin(self) -> Probe:
        """Queue a test, whose source freezes as soon as the file is on its way."""
        ends = (Endpoint.objects.get(name=f"{site}_{self.way.mover}") for site in "AB")
        self.probe = queued(*ends, mover=self.way.mover, mode=self.way.mode)
        tasks.transfer.apply_async((str(self.probe.id),), queue=queue_of(self.way.mover))
        return self.probe

    def watched(self) -> Meanwhile:
        assert self.probe
        path = transfer_request.incoming_path(self.probe)
        return Meanwhile((self.ends.destination.data / self.base / path,), LARGE_BYTES, self.freeze)

    def freeze(self) -> None:
        self.ends.source.freeze()
        self.moving.set()

    def is_over(self) -> bool:
        """Say whether it is under way, or was too fast."""
        assert self.probe
        return self.moving.is_set() or Transfer.objects.filter(id=self.probe.id).exists()


@pytest.fixture
def links(farm: Farm) -> list[Link]:
    made = []
    for way in CHOSEN:
        ends = Ends(farm.start(way.kind), farm.start(way.kind))
        made.append(Link(way, ends, ends.order(way, 1)))
        write_source(ends.source, f"{made[-1].base}/sonar", LARGE_BYTES)
        ends.destination.make_directory(f"{made[-1].base}/sonar/incoming")
    endpoints = "\n".join(link.entry() for link in made)
    file.load(REGISTRY.format(bytes=LARGE_BYTES, endpoints=endpoints))
    return made


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path, {"SONAR_DATABASE_POOL": "4"})
    yield started
    started.close()


def put_under_way(link: Link, processes: Processes) -> None:
    """Begin tests of a link until one is caught in the middle."""
    for _ in range(TRIES):
        link.begin()
        with link.watched():
            processes.wait_for(link.is_over)
        if link.moving.is_set():
            return
    raise AssertionError(f"{link.way.name} was too fast {TRIES} times")


def test_a_killed_worker_leaves_no_program_and_recovery_and_cleanup_no_file(
    links: list[Link], processes: Processes
):
    worker = processes.start(*WORKER, "-Q", "transfers", "-c", str(len(links)))
    with ExitStack() as stack:
        for link in links:
            stack.callback(link.ends.source.thaw)
            put_under_way(link, processes)
        assert all(link.programs for link in links)
        worker.kill()
        worker.wait()
        assert wait_for(lambda: not any(link.programs for link in links), SOON_SECONDS)
    running = {link.probe.id for link in links if link.probe}
    assert Probe.objects.filter(state="running", deadline__gt=timezone.now()).count() == len(links)
    Probe.objects.filter(id__in=running).update(deadline="2000-01-01T00:00:00Z")
    recover(timezone.now())
    lost = Transfer.objects.filter(id__in=running)
    assert {(one.state, one.error_where) for one in lost} == {("lost", "control")}
    assert lost.count() == len(links)
    assert Leftover.objects.count() == 2 * len(links)
    assert wait_for(lambda: is_clean(links), SOON_SECONDS, pause=1), Leftover.objects.values()


def is_clean(links: list[Link]) -> bool:
    """Delete what is left, without the pauses; say whether nothing is."""
    Leftover.objects.update(next_try=timezone.now(), tries=0)
    cleanup.clean(seconds=SOON_SECONDS)
    return not Leftover.objects.exists() and not any(link.files for link in links)
