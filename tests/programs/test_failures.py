"""Each failure that a real server can be made to show: who has to look at it, and if it will last.

Whatever fails leaves nothing on the destination's disk.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from sonar.movers.base import End, Order, Receipt
from sonar.movers.measure import Outcome, measure
from sonar.movers.mover import Files, Mover
from sonar.movers.watch import Watch
from tests.needs import lacks, needs_mounts
from tests.ports import free_port
from tests.programs.conftest import Farm
from tests.programs.small_disk import DISK_BYTES
from tests.programs.ways import WAYS, Ends, Way, files_below, on_disk
from tests.storage.xrootd import give_to_server

# Of ftp, the end whose connection breaks may speak first.
HEAR_NOTHING = [way for way in WAYS if way.scheme == "root" or way.mode == "push"]
NOBODY = "no-such-host.invalid"


class Spoilt:
    """A mover before whose transfer, once all is prepared, something happens."""

    def __init__(self, mover: Mover, happens: Callable[[], object]) -> None:
        self._mover, self._happens = mover, happens

    @property
    def files(self) -> Files:
        return self._mover.files

    def move(self, order: Order, watch: Watch) -> Receipt:
        self._happens()
        return self._mover.move(order, watch)


def at(end: End, address: str) -> End:
    """Return an end at another host and port."""
    host = end.url.partition("://")[2].partition("/")[0]
    url, base = (one.replace(host, address, 1) for one in (end.url, end.base_url))
    return replace(end, url=url, base_url=base)


def nowhere() -> str:
    return NOBODY


def closed() -> str:
    return f"127.0.0.1:{free_port()}"


@dataclass(frozen=True)
class Place:
    """Where the files of an order lie on disk."""

    source: Path
    destination: Path

    @property
    def base(self) -> Path:
        return self.destination.parents[1]

    def lock_source(self) -> None:
        self.source.chmod(0)

    def lock_base(self) -> None:
        os.chown(self.base, 0, 0)

    def occupy(self) -> None:
        self.destination.parent.mkdir()
        give_to_server(self.destination.parent)
        self.destination.write_text("of somebody else")
        give_to_server(self.destination)


@dataclass(frozen=True)
class Trouble:
    """Something that is wrong with one end, and what must be said of it."""

    where: str
    happens: Callable[[Place], object] = field(default=lambda _: None)
    """On disk, once the source file is prepared."""
    address: Callable[[], str] | None = None
    """Where this end is said to be instead: it cannot be reached, and that need not last."""
    words: str = ""

    def order(self, order: Order) -> Order:
        if self.address is None:
            return order
        return replace(order, **{self.where: at(getattr(order, self.where), self.address())})


TROUBLES = {
    "unknown source": Trouble("source", address=nowhere),
    "unknown destination": Trouble("destination", address=nowhere),
    "source refuses": Trouble("source", address=closed),
    "destination refuses": Trouble("destination", address=closed),
    "no source file": Trouble("source", lambda place: place.source.unlink()),
    "no right to read": Trouble("source", Place.lock_source),
    "no right to write": Trouble("destination", Place.lock_base),
    "no base": Trouble("destination", lambda place: place.base.rmdir(), words="base directory"),
    "file exists": Trouble("destination", Place.occupy),
}


def suffer(trouble: Trouble, way: Way, ends: Ends) -> tuple[Outcome, Order]:
    order = ends.order(way)
    place = Place(
        *(
            on_disk(server, end)
            for server, end in ((ends.source, order.source), (ends.destination, order.destination))
        )
    )
    order = trouble.order(order)
    mover = Spoilt(way.load(), lambda: trouble.happens(place))
    return measure(mover, order, Watch()), order


@pytest.mark.parametrize("name", TROUBLES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_failure_names_its_end_and_if_it_lasts(name: str, way: Way, grid: dict[str, Ends]):
    if os.getuid() != 0 and name in {"no right to read", "no right to write"}:
        lacks("needs root, whose files the servers may not touch")
    trouble, ends = TROUBLES[name], grid[way.kind]
    outcome, order = suffer(trouble, way, ends)
    error = outcome.error
    assert (error.where, error.permanent) == (trouble.where, trouble.address is None), str(error)
    assert trouble.words in str(error)
    assert files_below(ends.destination, order.destination) == []
    # Who cannot be reached cannot be asked to delete anything.
    assert bool(outcome.leftover) == (
        trouble.address is not None and trouble.where == "destination"
    )


@pytest.fixture(scope="module")
def crowded(farm: Farm, grid: dict[str, Ends]) -> dict[str, Ends]:
    """Return ends whose destination has room for half a file."""
    if os.getuid() != 0:
        lacks("needs root, to mount a small disk")
    needs_mounts()
    return {kind: Ends(ends.source, farm.start(kind, small=True)) for kind, ends in grid.items()}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_full_disk_need_not_last_and_is_the_destinations_if_it_says_so(
    way: Way, crowded: dict[str, Ends]
):
    ends = crowded[way.kind]
    order = ends.order(way, 2 * DISK_BYTES)
    outcome = measure(way.load(), order, Watch())
    assert outcome.error
    # XRootD calls half a file a whole one over root://, and whose connection it closes is not told.
    told = "no space left" in str(outcome.error).lower()
    where = "destination" if told else "transfer"
    assert (outcome.error.where, outcome.error.permanent) == (where, False), str(outcome.error)
    assert told or way in HEAR_NOTHING
    if way.scheme == "root":
        assert f"{DISK_BYTES} of {order.bytes} bytes arrived" in str(outcome.error)
    assert outcome.leftover is None
    assert files_below(ends.destination, order.destination) == []
