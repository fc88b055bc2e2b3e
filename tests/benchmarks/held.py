"""Transfers by programs that their servers hold midway, all in one worker, and its memory then."""

import contextlib
import fcntl
import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice, product
from pathlib import Path

import psutil
from django.utils import timezone

from sonar.models import Endpoint, Probe, Site, SizeClass, Transfer
from sonar.movers.programs import gfal2
from sonar.ordering import request_probes
from sonar.scheduler import ProbeRequest
from tests.benchmarks.memory import own_mb
from tests.programs.gridftp import GridFtpServer
from tests.storage.xrootd import Authority, Server, give_to_server, make_room
from tests.waiting import wait_for

MB = 10**6
# A copy by GridFTP is caught while its server reads the file: a small one is through before.
SIZE_CLASSES = {
    "small": {"test_bytes": MB},
    "medium": {"from_bytes": 10 * MB, "test_bytes": 20 * MB},
}
SIZES = {"xrootd": "small", "gfal2": "small", "gridftp": "medium"}
# What each leaves on a command line while it copies from server to server, and at no other time.
COPIES = {"xrootd": "--tpc", "gfal2": "--just-copy", "gridftp": "globus-url-copy"}
PUSHED = ("gridftp",)
AT_ONCE = {"gfal2": gfal2.AT_ONCE}
CATCH_SECONDS = 0.002
SETTLE_SECONDS = 2.0
PATIENCE_SECONDS = 300.0
USUAL_COPY = "ofs.tpc pgm /usr/bin/xrdcp --server"
HELD_COPY = """#!/bin/sh
exec flock --shared {gate} /usr/bin/xrdcp --server "$@"
"""


class RootServers:
    """Two XRootD servers; the second one copies nothing while its gate is shut."""

    def __init__(self, stack: ExitStack, room: Path) -> None:
        authority = Authority(room)
        self.servers = [Server(make_room(), authority) for _ in range(2)]
        gate, program = room / "gate", room / "held-copy"
        gate.touch()
        program.write_text(HELD_COPY.format(gate=gate))
        program.chmod(0o755)
        # Who waits longer than usual is not turned away, and all may wait at once.
        held = f"ofs.tpc ttl 600 600 xfr 100 pgm {program}"
        for server in self.servers:
            configuration = server.room / "server.cfg"
            configuration.write_text(configuration.read_text().replace(USUAL_COPY, held))
            stack.callback(server.close)
            server.start()
        self._gate = stack.enter_context(gate.open())

    def base_urls(self, name: str) -> tuple[str, ...]:
        """Make a directory of this name on both; return where they are."""
        for server in self.servers:
            server.make_directory(name)
        return tuple(f"root://127.0.0.1:{server.port}/{name}" for server in self.servers)

    def hold(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)

    def release(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_UN)


class FtpServers:
    """Two GridFTP servers; their processes that send or receive a test file are stopped."""

    def __init__(self, stack: ExitStack) -> None:
        self.servers = [GridFtpServer().start() for _ in range(2)]
        for server in self.servers:
            stack.callback(server.close)
        self._free = threading.Event()
        self._catching: threading.Thread | None = None
        self.stopped: set[int] = set()
        stack.callback(self.release)

    def base_urls(self, name: str) -> tuple[str, ...]:
        """Make a directory of this name on both; return where they are."""
        for server in self.servers:
            server.make_directory(name)
        return tuple(f"{server.url}/{name}" for server in self.servers)

    def hold(self) -> None:
        self._free.clear()
        self._catching = threading.Thread(target=self._catch, daemon=True)
        self._catching.start()

    def _catch(self) -> None:
        source, destination = (server.process for server in self.servers)
        assert source
        assert destination
        while not self._free.wait(CATCH_SECONDS):
            self._stop(source.pid, "/sonar/source/", to_write=False)
            self._stop(destination.pid, "/sonar/incoming/", to_write=True)

    def _stop(self, server: int, part: str, *, to_write: bool) -> None:
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for pid in set(map(int, children)) - self.stopped:
            if has_open(pid, part, to_write=to_write):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    self.stopped.add(pid)

    def release(self) -> None:
        self._free.set()
        if self._catching:
            self._catching.join()
        for pid in self.stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()


def has_open(pid: int, part: str, *, to_write: bool) -> bool:
    """Say whether a process has a file open whose path has this part, to write or only to read."""
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if part in str(descriptor.readlink()) and writes(descriptor) == to_write:
                    return True
    return False


def writes(descriptor: Path) -> bool:
    """Say whether a file descriptor of a process was opened to write."""
    flags = (descriptor.parents[1] / "fdinfo" / descriptor.name).read_text()
    return bool(int(flags.partition("flags:")[2].split()[0], 8) & os.O_ACCMODE)


class Grid:
    """Servers that hold what is copied, as endpoints with as many links as are to be held."""

    def __init__(self, stack: ExitStack) -> None:
        room = make_room()
        stack.callback(shutil.rmtree, room, ignore_errors=True)
        give_to_server(room)
        self.root, self.ftp = RootServers(stack, room), FtpServers(stack)
        self._site, _ = Site.objects.get_or_create(name="HELD", defaults={"tier": 2})
        for name, values in SIZE_CLASSES.items():
            SizeClass.objects.filter(name=name).update(**values)

    def links(self, mover: str, count: int) -> Iterator[tuple[Endpoint, Endpoint]]:
        """Return so many links of a mover, each of its own."""
        servers = self.ftp if mover == "gridftp" else self.root
        side = 1
        while side * side < count:
            side += 1
        urls = [servers.base_urls(f"{mover}-{number}") for number in range(side)]
        sources, destinations = (
            [self._endpoint(f"{mover.upper()}_{end}{n}", url) for n, url in enumerate(some)]
            for end, some in zip("AB", zip(*urls, strict=True), strict=True)
        )
        return islice(product(sources, destinations), count)

    def _endpoint(self, name: str, base_url: str) -> Endpoint:
        caps = {"inbound_cap": 1000, "outbound_cap": 1000}
        values = {"site": self._site, "base_url": base_url} | caps
        return Endpoint.objects.update_or_create(name=name, defaults=values)[0]

    def order(self, counts: Mapping[str, int]) -> None:
        """Order one transfer of each of so many links."""
        classes = {size.name: size for size in SizeClass.objects.all()}
        requests = [
            ProbeRequest(
                source=source,
                destination=destination,
                size_class=classes[SIZES[mover]],
                mover=mover,
                mode="push" if mover in PUSHED else "pull",
            )
            for mover, count in counts.items()
            for source, destination in self.links(mover, count)
        ]
        request_probes.order(requests, timezone.now())

    def hold(self) -> None:
        self.root.hold()
        self.ftp.hold()

    def release(self) -> None:
        self.root.release()
        self.ftp.release()


@contextmanager
def grid() -> Iterator[Grid]:
    """Start the servers; nothing is left of them."""
    with contextlib.ExitStack() as stack:
        yield Grid(stack)


def in_flight(worker: int) -> Counter[str]:
    """Count the programs of a worker that copy from server to server, by their movers."""
    found: Counter[str] = Counter()
    for child in psutil.Process(worker).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            words = child.cmdline()
            found.update(mover for mover, word in COPIES.items() if word in words)
    return found


def memory_mb(pids: Iterable[int]) -> float:
    """Return the memory of processes together; what they share is counted once."""
    total = 0.0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            total += own_mb(pid)
    return total


def family_mb(worker: int) -> float:
    """Return the memory of a worker with its children."""
    children = psutil.Process(worker).children(recursive=True)
    return memory_mb([worker, *(child.pid for child in children)])


def measure(held: Grid, worker: int, counts: Mapping[str, int]) -> tuple[float, float]:
    """Return the memory of a worker with these transfers in flight, in MB: in all, and alone.

    Those beyond ``AT_ONCE`` have been taken by the worker and wait there for their turn.
    Raises RuntimeError unless all are held at once, and all come to a good end afterwards.
    """
    Transfer.objects.all().delete()
    wanted = Counter({mover: count for mover, count in counts.items() if count})
    copying = Counter(
        {mover: min(count, AT_ONCE.get(mover, count)) for mover, count in wanted.items()}
    )
    held.hold()
    try:
        held.order(wanted)
        wait_for(lambda: is_full(worker, wanted, copying) or failures(), PATIENCE_SECONDS)
        threading.Event().wait(SETTLE_SECONDS)
        if not is_full(worker, wanted, copying):
            raise RuntimeError(f"not held: {in_flight(worker)} of {copying}; {failures()}")
        memory = family_mb(worker), memory_mb([worker])
    finally:
        held.release()
    wait_for(lambda: not Probe.objects.exists(), PATIENCE_SECONDS)
    if Transfer.objects.filter(state="done").count() != wanted.total():
        raise RuntimeError(failures())
    return memory


def is_full(worker: int, wanted: Counter[str], copying: Counter[str]) -> bool:
    """Say whether a worker has taken all, and as many programs copy as may at once."""
    taken = Probe.objects.filter(state=Probe.State.RUNNING).count()
    return taken == wanted.total() and in_flight(worker) == copying


def failures() -> str:
    return "; ".join(Transfer.objects.exclude(state="done").values_list("error", flat=True)[:5])
