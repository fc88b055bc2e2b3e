"""Which token reaches which host: a real XRootD at one end, a server that records at the other.

The table of docs/security.md is what is measured here. `WRITE_TOKEN_ROADS=1 python -m pytest
tests/storage/test_token_roads.py` writes it; otherwise the test says where the two differ.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest
import urllib3

from sonar.movers import measure as measure_module
from sonar.movers.base import End, MoverError, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import measure, remove
from sonar.movers.watch import Watch
from sonar.notation.data_hosts import data_host
from tests.storage.conftest import LIMITS
from tests.storage.recorder import Diary, Heard, Recorder, Trick, between, recording
from tests.storage.xrootd import Authority, Server, make_room

SIZE_BYTES = 70_000
DOCS = Path(__file__).resolve().parents[2] / "docs" / "security.md"
BEGIN = "<!-- written by tests/storage/test_token_roads.py -->\n"
END = "<!-- end of what it writes -->\n"
WRITING = {"COPY", "PUT", "MKCOL", "MOVE", "DELETE"}
METHODS = ["HEAD", "GET", "MKCOL", "PUT", "MOVE", "COPY", "DELETE"]
CLEANING = "cleaning"


@dataclass(frozen=True)
class Road:
    """One test between the two ends, or a deletion later on, and what B does to it."""

    deed: str
    source: str
    mode: str
    trick: str = ""
    """Which requests are spoilt: methods with spaces between; empty for none."""
    to: str = ""
    """Where those are redirected to; empty to refuse them."""
    works: bool = True
    along: bool = False
    """Whether B's credential says that it goes to its data hosts, too."""
    query: str = ""
    """What the redirect adds to the URL."""

    @property
    def name(self) -> str:
        words = f"{self.deed} to {self.to}" if self.to else self.deed
        if self.to == DATA_SERVER:
            words += ", where its credential may go" if self.along else ""
            words += ", by a URL that lets in" if self.query else ""
        return words


STRANGER, OTHER_PORT, DATA_SERVER = "a stranger", "another port of B", "its data server"
CAPABILITY = "?cap.sym=of-minutes&cap.msg=for-this-file"
ROADS = [
    Road("pull, A active", "B", "pull"),
    Road("push, A active", "A", "push"),
    Road("pull, B active", "A", "pull"),
    Road("push, B active", "B", "push"),
    Road("pull, A active; B refuses GET", "B", "pull", "GET", works=False),
    Road("push, A active; B refuses PUT", "A", "push", "PUT", works=False),
    Road("pull, B active; B refuses COPY", "A", "pull", "COPY", works=False),
    Road("push, A active; B refuses DELETE", "A", "push", "DELETE"),
    Road("a file left at B is deleted later", "A", CLEANING),
    Road("pull, B active; B redirects COPY", "A", "pull", "COPY", STRANGER, works=False),
    Road("push, B active; B redirects COPY", "B", "push", "COPY", STRANGER, works=False),
    Road("push, A active; B redirects DELETE", "A", "push", "DELETE", STRANGER),
    Road("a file left at B; B redirects DELETE", "A", CLEANING, "DELETE", STRANGER, works=False),
    Road("push, A active; B redirects HEAD", "A", "push", "HEAD", STRANGER, works=False),
    Road("pull, A active; B redirects MOVE", "B", "pull", "MOVE", STRANGER, works=False),
    Road("pull, A active; B redirects GET", "B", "pull", "GET", STRANGER),
    Road("push, A active; B redirects PUT", "A", "push", "PUT", STRANGER),
    Road("pull, B active; B redirects COPY", "A", "pull", "COPY", OTHER_PORT, works=False),
    Road("push, A active; B redirects DELETE", "A", "push", "DELETE", OTHER_PORT),
    Road("push, A active; B redirects HEAD", "A", "push", "HEAD", OTHER_PORT),
    Road("pull, A active; B redirects GET", "B", "pull", "GET", OTHER_PORT),
    Road("push, A active; B redirects PUT", "A", "push", "PUT", OTHER_PORT),
    *(
        Road(deed, source, "pull", methods, DATA_SERVER, along=along, query=query)
        for deed, source, methods in (
            ("pull, B active; B redirects all", "A", "COPY HEAD DELETE"),
            ("pull, A active; B redirects all", "B", "HEAD PUT MOVE GET"),
        )
        for along, query in ((False, ""), (True, ""), (True, CAPABILITY))
    ),
]


@dataclass
class World:
    """The two ends, the strangers, and who heard what on each road."""

    xrootd: Server
    recorder: Recorder
    others: dict[str, Recorder]
    diary: Diary
    macaroons: dict[str, str]
    heard: dict[str, list[Heard]] = field(default_factory=dict)
    errors: dict[str, MoverError | None] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def end(self, site: str, where: Where, name: str, *, along: bool) -> End:
        url = self.xrootd.url if site == "A" else self.recorder.url
        lent = f"delegated by {site}" + (f" to {where}" if site == "A" else "")
        return End(
            where,
            f"{url}/base/{name}",
            f"{url}/base",
            self.macaroons[f"own of {site}"],
            lent=self.macaroons[lent],
            data_hosts=(data_host("127.0.0.3"),) if site == "B" else (),
            token_goes_along=along and site == "B",
        )

    def order(self, road: Road) -> Order:
        destination = "B" if road.source == "A" else "A"
        return Order(
            self.end(road.source, Where.SOURCE, f"source/{next(self.numbers)}", along=road.along),
            self.end(
                destination, Where.DESTINATION, f"incoming/{next(self.numbers)}", along=road.along
            ),
            bytes=SIZE_BYTES,
            adler32=adler32(SIZE_BYTES),
            mode=road.mode,
            ca_bundle=str(self.xrootd.authority.bundle),
            limits=LIMITS,
        )

    def trick(self, road: Road) -> Trick:
        methods, to = set(road.trick.split()), self.others.get(road.to)

        def spoil(method: str, path: str) -> tuple[int, dict[str, str]] | None:
            if method not in methods:
                return None
            return (307, {"Location": f"{to.url}{path}{road.query}"}) if to else (403, {})

        return spoil

    def travel(self, road: Road) -> None:
        """Make one test and note who heard what."""
        for recorder in (self.recorder, *self.others.values()):
            recorder.reset()
        self.recorder.trick = self.trick(road)
        for other in self.others.values():
            other.files = self.recorder.files
        self.diary.entries = self.heard[road.name] = []
        order = self.order(road)
        if road.mode == CLEANING:
            order = replace(order, source=order.destination)
            self.errors[road.name] = remove(HttpTpc().files, order)
        else:
            self.errors[road.name] = measure(HttpTpc(), order, Watch()).error


@pytest.fixture(scope="module")
def world(authority: Authority) -> Iterator[World]:
    """Travel all roads."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.05,))
        server = Server(make_room(), authority, guarded=True)
        stack.callback(server.close)
        server.start()
        server.make_directory("base/incoming")
        server.make_directory("base/source")
        tokens = {
            "own of A": server.macaroon(),
            "delegated by A to source": server.macaroon("DOWNLOAD"),
            "delegated by A to destination": server.macaroon("UPLOAD"),
            "own of B": "b-keeps-this-to-itself",
            "delegated by B": "b-gives-this-away",
        }
        names = {token: name.partition(" to ")[0] for name, token in tokens.items()}
        diary = Diary(names)
        recorders = {
            name: stack.enter_context(recording(name, diary, authority, host))
            for name, host in (
                ("B", "127.0.0.1"),
                (STRANGER, "127.0.0.2"),
                (OTHER_PORT, "127.0.0.1"),
                (DATA_SERVER, "127.0.0.3"),
            )
        }
        note_what_sonar_sends(patch, diary, server.port)
        made = World(server, recorders.pop("B"), recorders, diary, tokens)
        for road in ROADS:
            made.travel(road)
        yield made


def note_what_sonar_sends(patch: pytest.MonkeyPatch, diary: Diary, port: int) -> None:
    """Note what goes to XRootD as it leaves: it cannot be asked afterwards what it heard."""
    real: Callable[..., urllib3.BaseHTTPResponse] = urllib3.HTTPSConnectionPool.urlopen

    def urlopen(
        pool: urllib3.HTTPSConnectionPool, method: str, url: str, **more: object
    ) -> urllib3.BaseHTTPResponse:
        if pool.port == port and more.get("redirect") is False and "timeout" in more:
            diary.note("Sonar", "A", method, f"{url} {more['headers']}")
        return real(pool, method, url, **more)

    patch.setattr(urllib3.HTTPSConnectionPool, "urlopen", urlopen)


Rows = dict[tuple[str, str, frozenset[str]], set[str]]


def rows_of(heard: list[Heard]) -> Rows:
    """Return which methods came from whom to whom with which tokens."""
    rows: Rows = {}
    for one in heard:
        rows.setdefault((one.sender, one.receiver, one.tokens), set()).add(one.method)
    return rows


def table(world: World) -> str:
    """Return what was measured, as it stands in the docs."""
    lines = ["", "| test | from | to | requests | tokens |", "| --- | --- | --- | --- | --- |"]
    for road in ROADS:
        heard, name = world.heard[road.name], road.name
        for (sender, receiver, tokens), methods in sorted(rows_of(heard).items(), key=place_of_row):
            asked = ", ".join(sorted(methods, key=METHODS.index))
            lines.append(
                f"| {name} | {sender} | {receiver} | {asked} | {', '.join(sorted(tokens)) or '-'} |"
            )
            name = ""
        if road.to and not any(one.receiver == road.to for one in heard):
            lines.append(f"| | nobody | {road.to} | - | - |")
    return "\n".join([*lines, "", ""])


def place_of_row(
    row: tuple[tuple[str, str, frozenset[str]], set[str]],
) -> tuple[bool, str, str, list[str]]:
    """Put Sonar's own requests first."""
    sender, receiver, tokens = row[0]
    return sender != "Sonar", sender, receiver, sorted(tokens)


by_road = pytest.mark.parametrize("road", ROADS, ids=lambda road: road.name)


@by_road
def test_a_test_ends_as_its_table_row_supposes(road: Road, world: World):
    error = world.errors[road.name]
    assert (error is None) == road.works, error
    assert "b-keeps" not in str(error)


@by_road
def test_what_is_an_ends_own_is_sent_to_its_own_host_by_sonar_alone(road: Road, world: World):
    """And to the data hosts that it declares, if its credential says so."""
    for one in world.heard[road.name]:
        for token in one.tokens:
            if token.startswith("own"):
                declared = {DATA_SERVER} if token == "own of B" and road.along else set()
                assert one.sender == "Sonar"
                assert one.receiver in {token[-1], *declared}


def test_a_credential_goes_along_where_it_may_and_no_other_is_in_the_url(world: World):
    for road in ROADS:
        if road.to == DATA_SERVER:
            shown = {
                "own of B" in one.tokens
                for one in world.heard[road.name]
                if (one.sender, one.receiver) == ("Sonar", DATA_SERVER)
            }
            assert shown == {road.along and not road.query}, road.name


@by_road
def test_what_is_lent_is_known_to_the_two_ends_alone(road: Road, world: World):
    for one in world.heard[road.name]:
        if any(token.startswith("delegated") for token in one.tokens):
            assert {one.sender, one.receiver} <= {"Sonar", "A", "B", DATA_SERVER}
            assert one.method == "COPY" or one.sender != "Sonar"


@by_road
def test_sonar_itself_asks_no_stranger(road: Road, world: World):
    for one in world.heard[road.name]:
        if one.sender == "Sonar":
            assert one.receiver in {"A", "B", OTHER_PORT, DATA_SERVER}
            assert one.receiver != OTHER_PORT or not one.tokens


def test_every_redirect_was_tried(world: World):
    for road in ROADS:
        asked = {one.method for one in world.heard[road.name] if one.receiver == "B"}
        assert set(road.trick.split()) <= asked


def test_the_docs_say_what_was_measured(world: World):
    text = DOCS.read_text(encoding="utf-8")
    before, written, after = between(text, BEGIN, END)
    if os.environ.get("WRITE_TOKEN_ROADS"):
        DOCS.write_text(before + table(world) + after, encoding="utf-8")
        return
    assert written == table(world), "WRITE_TOKEN_ROADS=1 with this test writes it anew"
