"""Redirects that lead astray, over real processes: an EOS head node, and a bystander.

The head node answers every method so; the bystander listens to each Location on a port of its own,
on all addresses of loopback, and notes every connection and all that it is told.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product

import pytest

from sonar.movers.base import End, MoverError, Order, Where
from sonar.movers.http.exchange import Request
from sonar.movers.http.tpc import HttpTpc, copy_headers
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import Outcome, measure
from sonar.movers.uploads import WatchedFile
from sonar.movers.watch import Watch
from sonar.notation.data_hosts import data_hosts
from tests.storage.conftest import LIMITS
from tests.storage.dialects.served import BYSTANDER, Dialects
from tests.storage.xrootd import Authority

SIZE_BYTES = 200_000
METHODS = ("COPY", "PUT", "GET", "HEAD", "DELETE", "MKCOL", "MOVE")
DOOR = "door.grid.example"
OTHER = "ral.evil.example"
"""Another endpoint's host: that of the other end."""
DECLARED = ("st-*.grid.example",)
NOT_DECLARED = "redirects to a host that is not one of its declared data hosts"
OTHER_PATH = "redirects to another path"
AT_ONCE = 12

# Host, port and path of what is asked for: a declared data server, but that nobody is to be asked.
DISK = "https://st-1.grid.example:{port}"
ATTACKS: dict[str, tuple[str, list[list[str]]]] = {
    "another endpoint": (NOT_DECLARED, [[f"https://{OTHER}:{{port}}{{path}}"]]),
    "a sibling domain": (NOT_DECLARED, [["https://st-1.evil.example:{port}{path}"]]),
    "a domain below it": (NOT_DECLARED, [["https://st-1.x.grid.example:{port}{path}"]]),
    "its name as the first part": (
        NOT_DECLARED,
        [["https://st-1.grid.example.evil.example:{port}{path}"]],
    ),
    "loopback by address": (NOT_DECLARED, [["https://127.0.0.1:{port}{path}"]]),
    "loopback by name": (NOT_DECLARED, [["https://localhost:{port}{path}"]]),
    "user information": (
        NOT_DECLARED,
        [["https://st-1.grid.example:443@mirror.evil.example:{port}{path}"]],
    ),
    "a backslash": (
        NOT_DECLARED,
        [["https://mirror.evil.example:{port}\\@st-1.grid.example{path}"]],
    ),
    "no scheme": (NOT_DECLARED, [["//mirror.evil.example:{port}{path}"]]),
    "IDN": (NOT_DECLARED, [["https://st-1.gr\u00efd.example:{port}{path}"]]),
    "IDN as ASCII": (NOT_DECLARED, [["https://st-1.xn--grd-4ia.example:{port}{path}"]]),
    "a trailing dot": (NOT_DECLARED, [["https://mirror.evil.example.:{port}{path}"]]),
    "mixed case": (NOT_DECLARED, [["HTTPS://Mirror.EVIL.Example:{port}{path}"]]),
    "octal": (NOT_DECLARED, [["https://0177.0.0.013:{port}{path}"]]),
    "hexadecimal": (NOT_DECLARED, [["https://0x7f00000b:{port}{path}"]]),
    "IPv4 in IPv6": (NOT_DECLARED, [["https://[::ffff:127.0.0.11]:{port}{path}"]]),
    "http": ("redirects from https to http", [["http://st-1.grid.example:{port}{path}"]]),
    "another port than declared": (NOT_DECLARED, [[f"{DISK}{{path}}"]]),
    "another file": (OTHER_PATH, [[f"{DISK}{{path}}-other"]]),
    "two dots": (OTHER_PATH, [[f"{DISK}{{path}}/../other"]]),
    "two dots, escaped": (OTHER_PATH, [[f"{DISK}/%2e%2e{{path}}"]]),
    "two dots, escaped twice": (OTHER_PATH, [[f"{DISK}/%252e%252e{{path}}"]]),
    "six redirects": (
        "more than 5 redirects",
        [*[["{path}?hop={hop}"]] * 5, [f"{DISK}{{path}}"]],
    ),
    "a loop": ("more than 5 redirects", [["{path}?hop={hop}"]]),
    "no Location": ("redirects without a URL", [[]]),
    "two Locations": (
        "redirects to several URLs",
        [[f"{DISK}{{path}}", "https://mirror.evil.example:{port}{path}"]],
    ),
}
NARROW = {"another port than declared": ("st-*.grid.example:1094",)}
# What is followed, so that the bystander is seen to hear of it.
FOLLOWED: dict[str, list[list[str]]] = {
    "a declared server": [[f"{DISK}{{path}}"]],
    "a declared server in another spelling": [["HTTPS://ST-1.Grid.Example.:{port}{path}"]],
    "a capability": [[f"{DISK}{{path}}?cap.sym=a&cap.msg=b"]],
    "another port of its host": [[f"https://{DOOR}:{{port}}{{path}}"]],
}
COPY_ONLY = "only the COPY"
NAMES = (*ATTACKS, *FOLLOWED, COPY_ONLY)


@dataclass
class World:
    """The servers, and what came of what was asked of the head node."""

    servers: Dialects
    ports: dict[str, int]
    errors: dict[tuple[str, str], MoverError | None] = field(default_factory=dict)
    measured: dict[str, Outcome] = field(default_factory=dict)

    def order(self, name: str, mode: str = "pull") -> Order:
        port = self.servers.url("eos-mgm").rpartition(":")[2]
        url = f"https://{DOOR}:{port}/open"
        file = f"{url}/incoming/{name.replace(' ', '-').replace(',', '')}"
        led = End(
            Where.DESTINATION if mode == "pull" else Where.SOURCE,
            f"{file}-{mode}" if name == COPY_ONLY else file,
            url,
            "own-token-of-the-door",
            lent="lent-token-of-the-door",
            data_hosts=data_hosts(NARROW.get(name, DECLARED)),
            token_goes_along=True,
        )
        other = f"https://{OTHER}:{self.servers.url('storm').rpartition(':')[2]}/open"
        where = Where.SOURCE if mode == "pull" else Where.DESTINATION
        end = End(
            where, f"{other}/incoming/{mode}", other, "own-token-of-ral", lent="lent-token-of-ral"
        )
        ends = {led.where: led, end.where: end}
        return Order(
            ends[Where.SOURCE],
            ends[Where.DESTINATION],
            bytes=SIZE_BYTES,
            mode=mode,
            ca_bundle=str(self.servers.authority.bundle),
            limits=LIMITS,
        )

    def met(self, name: str) -> list[dict[str, str]]:
        """Return the connections to the bystander for a row, and what was said."""
        port = self.ports[name]
        told = self.servers.journal("bystander")
        return [one for one in told if port in (one.get("connected"), one.get("port"))]

    def heard(self, name: str) -> dict[str, str]:
        """Return the requests that the bystander got, by method."""
        said = [one["heard"] for one in self.met(name) if "heard" in one]
        return {head.partition(" ")[0]: head for head in said}


def ask(files: WebDav, order: Order, method: str) -> MoverError | None:
    """Ask the door as a measurement does; return the error."""
    end, headers, body = order.destination, copy_headers(order), None
    if method == "PUT":
        body = WatchedFile(SIZE_BYTES, Watch())
        headers |= {"Content-Length": str(SIZE_BYTES), "Expect": "100-continue"}
    if method == "MOVE":
        headers |= {"Destination": f"{end.url}.moved"}
    try:
        files.web.ask(Request(method, end, headers, body), order)
    except MoverError as error:
        return error
    return None


def known_names(patch: pytest.MonkeyPatch) -> None:
    """Let the names of this module lead to loopback, so that the bystander hears who follows."""
    real = socket.getaddrinfo

    def look_up(host: str, *rest: object) -> object:
        name = str(host).rstrip(".").lower()
        if name == DOOR:
            host = "127.0.0.1"
        elif name.endswith(".example"):
            host = "127.0.0.5" if name == OTHER else BYSTANDER
        return real(host, *rest)  # type: ignore[arg-type]

    patch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture(scope="module")
def servers(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dialects]:
    made = Dialects(tmp_path_factory.mktemp("astray"), authority)
    try:
        made.start("bystander", ports=len(NAMES))
        made.start("storm")
        made.wait()
        ports = dict(zip(NAMES, made.told("bystander")["ports"], strict=True))
        made.start("eos-mgm", leads=leads(ports))
        made.wait()
        for storage in ("eos", "storm"):
            (made.files(storage) / "open/incoming").mkdir(parents=True)
        (made.files("eos") / "open/incoming/only-the-COPY-push").write_bytes(bytes(SIZE_BYTES))
        yield made
    finally:
        made.close()


def leads(ports: dict[str, int]) -> dict[str, list[list[str]]]:
    """Return how the head node leads clients on, by the names of files."""
    of_rows = {name: steps for name, (_, steps) in ATTACKS.items()} | FOLLOWED
    made = {
        name.replace(" ", "-").replace(",", ""): [
            [one.replace("{port}", str(ports[name])) for one in locations] for locations in steps
        ]
        for name, steps in of_rows.items()
    }
    stranger = [[f"https://mirror.evil.example:{ports[COPY_ONLY]}{{path}}"]]
    return made | {f"COPY only-the-COPY-{mode}": stranger for mode in ("pull", "push")}


@pytest.fixture(scope="module")
def world(servers: Dialects) -> World:
    made = World(servers, dict(zip(NAMES, servers.told("bystander")["ports"], strict=True)))
    files = WebDav()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(AT_ONCE) as pool:
        known_names(patch)
        asked = {
            (name, method): pool.submit(ask, files, made.order(name), method)
            for name, method in product((*ATTACKS, *FOLLOWED), METHODS)
        }
        running = {
            mode: pool.submit(measure, HttpTpc(), made.order(COPY_ONLY, mode), Watch())
            for mode in ("pull", "push")
        }
        made.errors = {key: future.result() for key, future in asked.items()}
        made.measured = {mode: future.result() for mode, future in running.items()}
    return made


@pytest.mark.parametrize("name", ATTACKS)
def test_nobody_is_met_to_whom_a_redirect_must_not_lead(name: str, world: World):
    """No connection, so no byte and no token; and the error repeats nothing of it."""
    why, _ = ATTACKS[name]
    assert world.met(name) == []
    for method in METHODS:
        error = world.errors[name, method]
        assert error is not None, method
        assert error.where == Where.DESTINATION
        assert why in str(error)
        for secret in ("evil", "st-1", "token-of", str(world.ports[name])):
            assert secret not in str(error)


@pytest.mark.parametrize("method", METHODS)
def test_a_redirect_that_is_followed_is_heard_of(method: str, world: World):
    """Else the rows before would say nothing. The lent token is for a COPY at declared hosts."""
    own, lent = "own-token-of-the-door", "lent-token-of-ral"
    shown = {name: world.heard(name)[method] for name in FOLLOWED}
    assert [own in head for head in shown.values()] == [True, True, False, False]
    is_copy = method == "COPY"
    assert [lent in head for head in shown.values()] == [is_copy, is_copy, is_copy, False]
    assert all("lent-token-of-the-door" not in head for head in shown.values())


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_measurement_whose_copy_is_led_astray_fails_and_leaves_nothing(mode: str, world: World):
    outcome = world.measured[mode]
    assert (outcome.error.permanent, outcome.leftover) == (True, None)
    assert NOT_DECLARED in str(outcome.error)
    assert outcome.error.refused_server == f"mirror.evil.example:{world.ports[COPY_ONLY]}"
    assert world.met(COPY_ONLY) == []


def test_a_loop_is_asked_six_times_and_no_more(world: World):
    for name, method in product(("a-loop", "six-redirects"), METHODS):
        assert len(list(world.servers.requests("eos-mgm", name, method))) == 6
