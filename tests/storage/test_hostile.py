"""Measurements with a hostile storage server at one end: each ends in time, and tells one truth.

All of them run at once, each in a thread as in a worker; the tests look at how they went.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from sonar.movers import measure as measure_module
from sonar.movers.base import End, Limits, MoverError, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from tests.storage.hostile.served import Hostile
from tests.storage.hostile.ways import ROLES, WAYS
from tests.storage.nodes import Nodes
from tests.waiting import wait_for

# A node of the sandbox sends a marker each half second: a stall must be longer than some of them.
# And the good end, which is asked by forty at once, is not to be blamed.
LIMITS = {"total": 12.0}
OTHER_LIMIT = 5.0  # of whatever else a mover may wait for
# Where a file is to arrive, none of these may end the measurement.
MORE_TIME = 5
SLACK_SECONDS = 60.0  # of a busy machine
AT_ONCE = 40
MB = 1_000_000
MEMORY_BYTES = 200 * MB
SERVER_MEMORY_BYTES = 400 * MB
SIZES = {role: 300_000 + number for number, role in enumerate(ROLES)}
LOOKS = (0.05,)


@dataclass(frozen=True)
class Met:
    """How one measurement with a hostile end went."""

    outcome: Outcome | None
    raised: BaseException | None
    seconds: float


@dataclass(frozen=True)
class World:
    """What came of all measurements, by way and role, and what it cost."""

    met: dict[tuple[str, str], Met]
    memory_bytes: int
    server_memory_bytes: int
    nodes: Nodes
    hostile: Hostile


def limits(*, spoilt: bool) -> Limits:
    """Return limits of every kind that there is: small ones, where one may end the measurement."""
    times = 1 if spoilt else MORE_TIME
    return Limits(**{one.name: times * LIMITS.get(one.name, OTHER_LIMIT) for one in fields(Limits)})


def order_of(way: str, role: str, hostile: str, good: str) -> Order:
    """Return an order between two base URLs."""
    size, incoming = SIZES[role], f"sonar/incoming/{way}-{role.replace(' ', '-')}"
    source, destination = hostile, good
    if role.startswith("destination"):
        source, destination = good, hostile
    return Order(
        End(Where.SOURCE, f"{source}/sonar/source/{size}", source, "own", lent="lent"),
        End(Where.DESTINATION, f"{destination}/{incoming}", destination, "own", lent="lent"),
        bytes=size,
        adler32=adler32(size),
        mode=role.rpartition(" ")[2],
        limits=limits(spoilt=way in WAYS and WAYS[way].spoils(role)),
    )


def meet(mover: HttpTpc, order: Order) -> Met:
    began, outcome, raised = time.monotonic(), None, None
    try:
        outcome = measure(mover, order, Watch())
    except BaseException as error:  # noqa: BLE001 - that none comes is what is tested
        raised = error
    return Met(outcome, raised, time.monotonic() - began)


class Memory:
    """The most memory that this process used while it was looked at, beyond what it had."""

    def __init__(self) -> None:
        self._before = self._most = resident_bytes()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self._most = max(self._most, resident_bytes())

    @property
    def grown_bytes(self) -> int:
        return self._most - self._before


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Meet every way in every role."""
    place = tmp_path_factory.mktemp("hostile")
    # One for each role: what one role does to a connection is not to spoil another one's.
    movers = {role: HttpTpc() for role in ROLES}
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(measure_module, "LOOK_AGAIN_SECONDS", LOOKS)
        nodes = Nodes(place / "nodes").start()
        stack.callback(nodes.close)
        hostile = Hostile(place / "hostile").start()
        stack.callback(hostile.close)
        good = next(iter(nodes.base_urls.values()))
        orders = {
            (end.name, role): order_of(end.name, role, end.base_url, good)
            for end in hostile.ends
            for role in ROLES
        }
        # Test files lie at the good end first: nobody's small limits are spent on them.
        for role, mover in movers.items():
            assert meet(mover, order_of("none", role, good, good)).outcome.error is None
        with Memory() as memory, ThreadPoolExecutor(AT_ONCE) as pool:
            met = pool.map(lambda one: meet(movers[one[0][1]], one[1]), orders.items())
            found = dict(zip(orders, met, strict=True))
        yield World(found, memory.grown_bytes, hostile.memory_bytes, nodes, hostile)


def error_of(met: Met) -> MoverError:
    assert met.outcome.error
    return met.outcome.error


each_way = pytest.mark.parametrize("way", WAYS)
each_role = pytest.mark.parametrize("role", ROLES)


def test_there_are_enough_ways():
    assert len(WAYS) >= 50
    assert len({way.sentence for way in WAYS.values()}) == len(WAYS)
    assert all(way.sentence.endswith(".") for way in WAYS.values())


@each_role
@each_way
def test_a_measurement_ends_in_time_with_one_clear_error_or_a_file_that_arrived(
    way: str, role: str, world: World
):
    met, spoilt = world.met[way, role], WAYS[way].spoils(role)
    assert met.raised is None
    assert met.seconds < limits(spoilt=spoilt).longest + SLACK_SECONDS
    assert (met.outcome.receipt is None) == (met.outcome.error is not None)
    assert (met.outcome.error is not None) == spoilt, met.outcome.error
    if spoilt:
        is_clear(error_of(met))
        is_blamed_rightly(error_of(met), role)


@each_role
@pytest.mark.parametrize("way", [way.name for way in WAYS.values() if way.harmless])
def test_what_is_odd_and_allowed_costs_neither_the_rate_nor_the_verification(
    way: str, role: str, world: World
):
    outcome = world.met[way, role].outcome
    assert (outcome.error, outcome.verified, outcome.leftover) == (None, True, None)


@pytest.mark.parametrize("role", ["destination of a pull", "source of a push"])
def test_a_copy_that_is_never_confirmed_is_told_from_one_that_does_not_move(role, world: World):
    error = error_of(world.met["verifies-for-ever", role])
    words = f"all {SIZES[role]} bytes were reported as moved, but the copy was not confirmed within"
    assert words in str(error)
    assert error.where == Where.TRANSFER


def is_clear(error: MoverError) -> None:
    text = str(error)
    assert 10 < len(text) <= 300
    assert text.isprintable()
    assert text == " ".join(text.split())


def is_blamed_rightly(error: MoverError, role: str) -> None:
    """Only the hostile end, or what is between the two, may be blamed."""
    assert error.where in {Where.TRANSFER, Where(role.split(maxsplit=1)[0])}, error


@pytest.mark.parametrize("role", [role for role in ROLES if role != "source of a pull"])
@pytest.mark.parametrize("way", ["never-answers", "never-reads", "knows-nobody", "closes-at-once"])
def test_an_end_that_sonar_asks_itself_is_blamed_for_its_silence(way: str, role: str, world: World):
    assert error_of(world.met[way, role]).where == role.split(maxsplit=1)[0]


@pytest.mark.parametrize("role", [role for role in ROLES if role.startswith("destination")])
@pytest.mark.parametrize("way", ["delete-hangs", "delete-fails", "redirects-deletes"])
def test_a_file_that_a_hostile_end_does_not_delete_is_remembered(way: str, role: str, world: World):
    outcome = world.met[way, role].outcome
    assert outcome.receipt
    assert outcome.leftover.where == Where.DESTINATION
    is_clear(outcome.leftover)


def test_no_request_is_led_to_a_stranger_and_no_word_of_his_is_told(world: World):
    assert [way.name for way in WAYS.values() if way.stranger]
    assert world.hostile.led_to_strangers == []
    for met in world.met.values():
        assert met.outcome
        for error in (met.outcome.error, met.outcome.leftover, met.outcome.left_aside):
            assert "stranger-words" not in str(error)
            assert "127.0.0.2" not in str(error)


def test_no_file_is_left_that_nobody_remembers(world: World):
    """At the good end none at all; at the others only where the deletion failed, too."""
    remembered = {
        f"{way}-{role.replace(' ', '-')}"
        for (way, role), met in world.met.items()
        if met.outcome and met.outcome.leftover
    }
    assert {path.name for path in world.hostile.files_left()} <= remembered
    # A node notes late that nobody waits for it any more.
    assert wait_for(lambda: not world.nodes.files_left(), 120), world.nodes.files_left()


def test_the_memory_that_all_of_them_take_is_bounded(world: World):
    assert world.memory_bytes < MEMORY_BYTES
    assert world.server_memory_bytes < SERVER_MEMORY_BYTES
