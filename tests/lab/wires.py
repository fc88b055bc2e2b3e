"""The networks of the lab: a bridge that everyone reaches, and slow wires between servers."""

import subprocess
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.lab.enclosure import COMMAND_SECONDS, Enclosure, RefusedError, run
from tests.lab.scenarios import Way

SOURCE = Path(__file__).with_name("delaylink.c")
# RFC 2544 keeps 198.18.0.0/15 for the benchmarks of networks: nobody has real hosts there.
NET = "198.18.{number}"
NUMBERS = range(18, 250)
OURS = 254
# Packets for an address of one device may come in by another.
ANY_WAY = "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$file; done"


@dataclass(frozen=True)
class Host:
    """A network space, and its address on the bridge."""

    space: str
    address: str


class Bridge:
    """A network of one bridge, with this machine and every server of a lab on it.

    Sonar's own requests go this way. Which net it is the first free name of a device decides, so
    that labs may run side by side.
    """

    def __init__(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure
        self._number, self._places = self._claim(), count(1)
        for command in (
            "link add bridge type bridge",
            "link set bridge up",
            "link set up0 master bridge up",
        ):
            enclosure.run("ip", *command.split())
        device = f"sonar-lab{self._number}"
        run(["ip", "address", "add", f"{self.address(OURS)}/24", "dev", device])
        run(["ip", "link", "set", device, "up"])

    def address(self, place: int) -> str:
        return f"{NET.format(number=self._number)}.{place}"

    def _claim(self) -> int:
        refused = RefusedError("no net is free")
        for number in NUMBERS:
            device = f"sonar-lab{number}"
            peer = f"peer name up0 netns {self._enclosure.pid}".split()
            try:
                run(["ip", "link", "add", device, "type", "veth", *peer])
            except RefusedError as error:
                refused = error
                if "exists" not in str(error):
                    break
            else:
                return number
        raise refused

    def join(self, space: str) -> Host:
        """Make a network space with a device on the bridge."""
        run_inside, place = self._enclosure.run, next(self._places)
        port, address = f"port{place}", self.address(place)
        run_inside("ip", "netns", "add", space)
        peer = f"type veth peer name eth0 netns {space}".split()
        run_inside("ip", "link", "add", port, *peer)
        run_inside("ip", "link", "set", port, "master", "bridge", "up")
        for command in (
            "link set lo up",
            "link set eth0 up",
            f"address add {address}/24 dev eth0",
        ):
            run_inside("ip", *command.split(), space=space)
        return Host(space, address)


class Wires:
    """The slow ways between servers; all that two of them send each other takes theirs."""

    def __init__(self, enclosure: Enclosure, directory: Path) -> None:
        """Compile them into a directory; raise RefusedError if that fails."""
        self._enclosure, self._program = enclosure, directory / "delaylink"
        flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
        run(["gcc", *flags, "-o", str(self._program), str(SOURCE)])
        self._processes: list[subprocess.Popen[str]] = []

    def lay(self, way: Way, source: Host, destination: Host, window: int | None = None) -> None:
        """Join two hosts; the destination takes a window of so many bytes, None: what fits."""
        device = f"wan{len(self._processes)}"
        self._start(device, way, source.space, destination.space)
        for host in source, destination:
            self._set_up(device, host, way.mtu)
        route = f"congctl {way.congestion}"
        self._lead(device, source, destination, route)
        if window:
            route += f" window {window}"
        self._lead(device, destination, source, route)

    def _start(self, device: str, way: Way, *spaces: str) -> None:
        figures = [
            way.rtt_ms / 2,
            way.rate_mbit,
            way.queue_kb,
            round(way.loss * 1e6),
            way.hold_seconds * 1e3,
        ]
        command = [str(self._program), device, *spaces, *map(str, figures)]
        process = subprocess.Popen(
            self._enclosure.inside(*command),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        assert process.stdout
        assert process.stderr
        if process.stdout.readline().strip() != "ready":
            process.wait(COMMAND_SECONDS)
            raise RefusedError(f"a wire: {process.stderr.read().strip()}")

    def _set_up(self, device: str, host: Host, mtu: int) -> None:
        """Let packets come from the wire to an end of it."""
        self._enclosure.run("sh", "-c", ANY_WAY, space=host.space)
        command = f"link set {device} mtu {mtu} txqueuelen 4000 up"
        self._enclosure.run("ip", *command.split(), space=host.space)

    def _lead(self, device: str, own: Host, other: Host, route: str) -> None:
        """Let packets to the other end go over the wire."""
        command = f"route add {other.address}/32 dev {device} src {own.address} {route}"
        self._enclosure.run("ip", *command.split(), space=own.space)

    def close(self) -> None:
        """Wait for their end, which comes with that of the enclosure."""
        for process in self._processes:
            with process:
                process.wait(COMMAND_SECONDS)
