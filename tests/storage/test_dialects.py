"""COPY between servers that speak as EOS, dCache and StoRM, each a process of its own.

All orders are carried out at once; the tests look at how they went, and at what servers noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count, permutations, product

import pytest
import urllib3

from sonar.movers import measure as measure_module
from sonar.movers.base import Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WebDav
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from tests.storage.conftest import LIMITS
from tests.storage.dialects import dcache
from tests.storage.dialects.served import BESIDE, DOORS, HOSTS, Dialects, lent_of, own_of
from tests.storage.xrootd import Authority

LARGE_BYTES, SMALL_BYTES = 2_000_000, 20_000
MORE_THAN_BUFFERS_BYTES = 10_000_000
"""Of what kernels keep for a server that does not read."""
AT_ONCE = 16
STORAGES = ("eos", "dcache", "storm")
MODES = ("pull", "push")
RATE_SECONDS = 0.6
"""A request, its answer, and a thread that waits for its turn on a busy machine."""
OWN_AND_LENT = ("own", "lent")
ACTIVE = ("eos-mgm", "eos-fst", "dcache-door", "storm")

pytestmark = pytest.mark.long
_numbers = count(1)


@dataclass(frozen=True)
class Case:
    """One order, and what it is to come to."""

    source: str
    destination: str
    mode: str
    spoilt: str = ""
    """What goes wrong: `get-503` at the source's file, `put-403` and `copy-...` at its server."""
    where: Where | None = None
    permanent: bool = False
    words: str = ""
    base: str = "guarded"
    undeclared: bool = False
    lends: bool = True

    @property
    def name(self) -> str:
        parts = (f"{self.source} to {self.destination}", self.mode, self.spoilt, self.base)
        more = ("undeclared" * self.undeclared, "nothing lent" * (not self.lends))
        return ", ".join(filter(None, (*parts, *more)))

    @property
    def spoilt_end(self) -> Where:
        """At which end the name of the file says what goes wrong."""
        if self.spoilt.startswith("copy"):
            return Where.DESTINATION if self.mode == "pull" else Where.SOURCE
        return Where.DESTINATION if self.spoilt.startswith("put") else Where.SOURCE

    @property
    def active(self) -> str:
        return self.destination if self.mode == "pull" else self.source


GOOD = [Case(*pair, mode) for pair, mode in product(permutations(STORAGES, 2), MODES)]
WITHOUT_TOKENS = [
    Case("eos", "storm", "pull", base="open"),
    Case("eos", "storm", "push", base="open"),
    Case("storm", "eos", "pull", base="open"),
    Case("dcache", "eos", "pull", base="open"),
    Case("storm", "dcache", "push", base="open"),
    # Its source tells no checksum, which dCache wants unless it is told that it need not.
    Case("storm", "dcache", "pull", spoilt="no-digest"),
    # Its door sends an upload on itself where its pools are not declared.
    Case("dcache", "storm", "pull", undeclared=True),
]
SOURCE, DESTINATION, BETWEEN = Where.SOURCE, Where.DESTINATION, Where.TRANSFER
REFUSED = [
    Case("eos", "storm", "pull", "", SOURCE, True, "data hosts", undeclared=True),
    Case("storm", "eos", "pull", "", DESTINATION, True, "data hosts", undeclared=True),
    # EOS: the other end by a status, itself by what an FST says of a capability.
    Case("storm", "eos", "pull", "get-403", SOURCE, True, "status code 403"),
    Case("storm", "eos", "pull", "get-503", SOURCE, False, "status code 503"),
    Case("storm", "eos", "pull", "get-breaks", BETWEEN, False, "HTTP library failure"),
    Case("storm", "eos", "pull", "", SOURCE, True, "status code 401", lends=False),
    Case("eos", "storm", "push", "put-403", DESTINATION, True, "status code 403"),
    Case("eos", "storm", "push", "put-503", DESTINATION, False, "status code 503"),
    Case("dcache", "eos", "pull", "copy-cap-expired", DESTINATION, True, "403 Forbidden: cap"),
    Case("dcache", "eos", "pull", "copy-cap-missing", DESTINATION, True, "403 Forbidden: cap"),
    Case("dcache", "eos", "pull", "copy-503", DESTINATION, False, "503 Service Unavailable"),
    # dCache: `rejected` and `connection failed` are the other end, the rest is itself.
    Case("storm", "dcache", "pull", "get-404", SOURCE, True, "rejected GET: 404"),
    Case("storm", "dcache", "pull", "get-503", SOURCE, False, "rejected GET: 503"),
    Case("storm", "dcache", "pull", "get-breaks", SOURCE, False, "connection failed for GET"),
    Case("eos", "dcache", "pull", "get-cap-expired", SOURCE, True, "rejected GET: 403"),
    Case("dcache", "storm", "push", "put-403", DESTINATION, True, "rejected PUT: 403"),
    Case("dcache", "storm", "push", "put-breaks", DESTINATION, False, "connection failed for PUT"),
    Case("storm", "dcache", "pull", "copy-not-accepted", DESTINATION, False, "not accepted"),
    Case("dcache", "storm", "push", "copy-restarted", SOURCE, False, "TransferManager restarted"),
    Case("storm", "dcache", "pull", "copy-unknown-host", SOURCE, False, "Unknown source hostname"),
    Case("storm", "dcache", "pull", "", DESTINATION, True, "401 Unauthorized", base="open"),
    # StoRM: a 412 is about the other end, unless the file exists.
    Case("eos", "storm", "pull", "get-403", SOURCE, True, "403 status code: 403"),
    Case("eos", "storm", "pull", "get-503", SOURCE, False, "503 status code: 503"),
    Case("dcache", "storm", "pull", "get-breaks", SOURCE, False, "Connection error"),
    Case("storm", "dcache", "push", "put-403", DESTINATION, True, "403 status code: 403"),
    Case("eos", "storm", "pull", "copy-exists", DESTINATION, True, "412 Precondition Failed"),
    Case("dcache", "storm", "pull", "copy-429", DESTINATION, False, "429 Too Many Requests"),
]


@dataclass
class World:
    """The servers, and what came of each order."""

    servers: Dialects
    orders: dict[str, Order] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def order(self, case: Case) -> Order:
        """Return an order between bases of its own, in which no directory is."""
        size = SMALL_BYTES if case.where else LARGE_BYTES
        number, base = next(_numbers), f"{case.base}/{next(_numbers)}"
        for storage in (case.source, case.destination):
            (self.servers.files(storage) / base).mkdir(parents=True, exist_ok=True)
        names = {Where.SOURCE: f"source/{size}", Where.DESTINATION: f"incoming/{number}"}
        if case.spoilt:
            names[case.spoilt_end] += f".{case.spoilt}"
        wishes = {"declared": ()} if case.undeclared else {}
        ends = {
            where: self.servers.end(where, storage, base, names[where], **wishes)
            for where, storage in ((SOURCE, case.source), (DESTINATION, case.destination))
        }
        if not case.lends:
            ends[SOURCE] = replace(ends[SOURCE], lent="")
        return Order(
            ends[SOURCE],
            ends[DESTINATION],
            bytes=size,
            adler32=adler32(size),
            mode=case.mode,
            ca_bundle=str(self.servers.authority.bundle),
            job=f"sonar-{number}",
            limits=LIMITS,
        )


@pytest.fixture(scope="module")
def servers(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dialects]:
    made = Dialects(tmp_path_factory.mktemp("dialects"), authority)
    try:
        for role in HOSTS:
            made.start(role)
        made.wait()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def world(servers: Dialects) -> World:
    made, mover = World(servers), HttpTpc()
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(AT_ONCE) as pool:
        patch.setattr(measure_module, "LOOK_AGAIN_SECONDS", (0.05,))
        running: dict[str, Future[Outcome]] = {}
        for case in (*GOOD, *WITHOUT_TOKENS, *REFUSED):
            order = made.orders[case.name] = made.order(case)
            running[case.name] = pool.submit(measure, mover, order, Watch())
        made.outcomes = {name: future.result() for name, future in running.items()}
    return made


def path_of(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2]


def by_name(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@by_name([*GOOD, *WITHOUT_TOKENS])
def test_a_file_is_copied_and_verified_and_gone(case: Case, world: World):
    outcome, order = world.outcomes[case.name], world.orders[case.name]
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    where = world.servers.files(case.destination)
    assert not [one for one in where.rglob("incoming/*") if one.name in order.destination.url]


@by_name(REFUSED)
def test_a_refusal_is_the_right_ends_and_lasts_or_not(case: Case, world: World):
    error = world.outcomes[case.name].error
    assert error is not None
    assert (error.where, error.permanent) == (case.where, case.permanent), error
    assert case.words in str(error)
    for secret in ("own-of", "lent-of", "cap.msg", "cap.sym", "dcache-http-uuid"):
        assert secret not in str(error)


@by_name([*GOOD, *WITHOUT_TOKENS])
def test_rates_are_of_the_time_in_which_bytes_moved_and_not_of_a_queue(case: Case, world: World):
    """Of what the active end took from COPY to verdict, without what it waited for its turn."""
    outcome, order = world.outcomes[case.name], world.orders[case.name]
    active = order.destination if case.mode == "pull" else order.source
    told = world.servers.copied(path_of(active.url))
    seconds, queued = outcome.receipt.seconds, outcome.seen.queue_seconds or 0.0
    assert told["moving"] <= seconds + dcache.MARKER_SECONDS
    assert seconds <= told["whole"] - told["queued"] + RATE_SECONDS
    assert (queued > 0) == (told["queued"] > 0) == (case.active == "dcache")


@by_name([*GOOD, *WITHOUT_TOKENS])
def test_the_owner_of_the_active_end_finds_the_test_in_own_logs(case: Case, world: World):
    """On the server that moves the bytes, too, and that one is kept with the result."""
    order, outcome = world.orders[case.name], world.outcomes[case.name]
    active = path_of((order.destination if case.mode == "pull" else order.source).url)
    roles = [DOORS[case.active]] + ["eos-fst"] * (case.active == "eos")
    for role in roles:
        said = [one["ClientInfo"] for one in world.servers.requests(role, active, "COPY")]
        assert set(said) == {f"job-id={order.job}"}
    if case.active == "eos":
        assert outcome.seen.data_server == world.servers.server("eos-fst")


def test_a_server_that_is_not_declared_is_named_to_operators(world: World):
    for case in REFUSED:
        if case.undeclared:
            error = world.outcomes[case.name].error
            behind = BESIDE[DOORS[case.source if error.where == SOURCE else case.destination]]
            assert error.refused_server == world.servers.server(behind)
            assert error.refused_server not in str(error)


def test_tokens_are_shown_to_front_doors_and_lent_in_a_copy_alone(world: World):
    """Disk servers are shown no token of their own storage, though one may go along to an FST."""
    shown = set()
    for role, storage in product(HOSTS, STORAGES):
        for said in world.servers.journal(role):
            headers = dict(said.get("headers", ()))
            lent = headers.pop("TransferHeaderAuthorization", "")
            rest = f"{said.get('target')} {headers}"
            shown |= {(role, storage, "lent on")} if lent_of(storage) in lent else set()
            shown |= {(role, storage, "own")} if own_of(storage) in rest else set()
            shown |= {(role, storage, "lent")} if lent_of(storage) in rest else set()
            assert own_of(storage) not in lent
            assert not lent or said["method"] == "COPY"
    of_doors = {
        (DOORS[storage], storage, kind) for storage, kind in product(STORAGES, OWN_AND_LENT)
    }
    lent_on = {(role, *rest) for role, *rest in product(ACTIVE, STORAGES, ["lent on"])}
    assert shown == of_doors | {one for one in lent_on if not one[0].startswith(one[1])}


def test_an_fst_is_asked_for_nothing_that_it_does_not_answer(world: World):
    said = [one for one in world.servers.journal("eos-fst") if "method" in one]
    assert {one["method"] for one in said} == {"COPY", "GET", "PUT"}


def test_a_pool_is_led_to_for_bytes_alone_and_nobody_asks_for_a_proxy(world: World):
    """Sonar is, with the files that it uploads, as it waits for `100 Continue`."""
    pool = [one for one in world.servers.journal("dcache-pool") if "method" in one]
    assert {one["method"] for one in pool} == {"GET", "PUT"}
    assert any("urllib3" in str(one["headers"]) for one in pool)
    assert not list(world.servers.requests("dcache-door", "asked-to-delegate"))


def test_an_upload_that_is_redirected_while_it_is_sent_arrives(world: World):
    """Over TLS, to who hangs up: the answer is read although the rest cannot be sent."""
    order = world.order(Case("eos", "storm", "push", base="late"))
    order = replace(order, bytes=MORE_THAN_BUFFERS_BYTES)
    file = world.servers.files("eos") / path_of(order.source.url).strip("/")
    file.parent.mkdir()
    WebDav().put(order, Watch())
    assert file.stat().st_size == MORE_THAN_BUFFERS_BYTES
    said = world.servers.requests("eos-mgm", path_of(order.source.url), "PUT")
    assert [one["Expect"] for one in said] == ["100-continue"]


def again(world: World, role: str, method: str, **headers: str) -> int:
    """Ask for what somebody was given, once more; return the status."""
    target = next(one[":target"] for one in world.servers.requests(role, "/guarded/", method))
    with urllib3.PoolManager(ca_certs=str(world.servers.authority.bundle)) as web:
        url = world.servers.url(role) + target
        return web.request(method, url, headers=headers, redirect=False, retries=False).status


def test_the_servers_are_as_strict_as_those_that_they_stand_for(world: World):
    """Else nothing here would say much."""
    own = {"Authorization": f"Bearer {own_of('dcache')}"}
    assert again(world, "dcache-pool", "GET") == 400  # its mover is gone
    assert again(world, "dcache-door", "COPY", **own) == 302  # to ask for a proxy
    assert again(world, "dcache-door", "HEAD") == 401
    assert again(world, "storm", "COPY", Authorization=f"Bearer {own_of('storm')}") == 400
    assert again(world, "eos-fst", "GET") in {200, 404}  # a capability is all that it looks at
