"""Servers that freeze or die in the middle of a copy, and copies that are stopped there."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import psutil
import pytest

from sonar.movers.base import Limits, Order, Stopped
from sonar.movers.measure import Outcome, measure, remove
from sonar.movers.programs import copying
from sonar.movers.watch import Watch
from tests.programs.conftest import Farm
from tests.programs.ways import WAYS, Ends, Way, files_below, on_disk
from tests.storage.conftest import LIMITS
from tests.storage.meanwhile import Meanwhile
from tests.waiting import wait_for

pytestmark = pytest.mark.long

LONG_BYTES = 30_000_000
BRIEF = replace(LIMITS, stall=10, total=20, cleaning=5)
BLAME_SECONDS = 20.0
"""Half of it for who lives, and may be slow."""
TRIES = 5
STOP_SECONDS = LIMITS.stall / 2
# A busy machine takes half a minute to start an XRootD again.
GONE_SECONDS = 120.0


@dataclass(frozen=True)
class Disaster:
    """What comes over a copy whose source is frozen, and who is to blame for it."""

    victim: str
    """The end whose server suffers."""
    strikes: Callable[[Ends, Watch], None]
    where: str
    limits: Limits = BRIEF


def kill_destination(ends: Ends, _: Watch) -> None:
    ends.destination.kill()
    ends.source.thaw()


def freeze_destination(ends: Ends, _: Watch) -> None:
    ends.destination.freeze()
    ends.source.thaw()


DISASTERS = {
    "source freezes": Disaster("source", lambda *_: None, "source"),
    "source dies": Disaster("source", lambda ends, _: ends.source.kill(), "source"),
    "destination freezes": Disaster("destination", freeze_destination, "destination"),
    "destination dies": Disaster("destination", kill_destination, "destination"),
    "stopped": Disaster("source", lambda _, watch: watch.stop(), "control", LIMITS),
}


@dataclass(frozen=True)
class Story:
    """How a copy ended, and how many seconds after what came over it; None: nothing came."""

    ends: Ends
    order: Order
    outcome: Outcome
    seconds: float | None


def suffer(way: Way, disaster: Disaster, farm: Farm) -> Story:
    """Copy until something comes over it, with new servers for each try.

    The rest of a file may be under way already as it comes: then it arrives whole and verified. And
    an XRootD of Debian 5.5.3 may stop answering before anything comes, on a busy machine.
    """
    for _ in range(TRIES):
        story = suffer_once(way, disaster, Ends(farm.start(way.kind), farm.start(way.kind)))
        if story.seconds is not None and story.outcome.error:
            return story
    raise AssertionError(f"no copy of {TRIES} was caught midway: {story.outcome}")


def suffer_once(way: Way, disaster: Disaster, ends: Ends) -> Story:
    watch, struck = Watch(), list[float]()

    def strike() -> None:
        ends.source.freeze()
        struck.append(time.monotonic())
        disaster.strikes(ends, watch)

    for attempt in range(TRIES):
        # A file that was whole before anybody could look was too short for this machine.
        order = ends.order(way, LONG_BYTES << attempt, limits=disaster.limits)
        path = on_disk(ends.destination, order.destination)
        with Meanwhile((path,), order.bytes, strike):
            outcome = measure(way.load(), order, watch)
        if struck or outcome.error:
            break
    return Story(ends, order, outcome, time.monotonic() - struck[0] if struck else None)


@pytest.fixture(scope="module")
def stories(farm: Farm) -> Iterator[dict[tuple[Way, str], Future[Story]]]:
    """Let all happen side by side: they wait for nearly all of their time."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(WAYS) * 3) as pool:
        patch.setattr(copying, "BLAME_SECONDS", BLAME_SECONDS)
        yield {
            (way, name): pool.submit(suffer, way, disaster, farm)
            for way in WAYS
            for name, disaster in DISASTERS.items()
        }


Stories = dict[tuple[Way, str], Future[Story]]
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)


@each_way
@pytest.mark.parametrize("name", DISASTERS)
def test_it_ends_in_time_with_the_right_error_and_leaves_nothing(
    name: str, way: Way, stories: Stories
):
    disaster, story = DISASTERS[name], stories[way, name].result()
    error, order = story.outcome.error, story.order
    assert error
    assert story.seconds is not None
    assert (error.where, error.permanent) == (disaster.where, False), str(error)
    assert isinstance(error, Stopped) == (name == "stopped")
    assert story.seconds < (STOP_SECONDS if name == "stopped" else order.limits.longest)
    assert wait_for(lambda: not programs_for(order), GONE_SECONDS), programs_for(order)
    if disaster.victim == "destination":
        assert story.outcome.leftover
    bring_back(name, story)
    gone = partial(is_gone, way, story)
    assert wait_for(gone, GONE_SECONDS), files_below(story.ends.destination, order.destination)


def programs_for(order: Order) -> list[str]:
    """Return the commands that still run for an order; a server's own has no such URL."""
    marker = order.destination.url.rpartition("/base-")[2]
    address = order.destination.url.partition("://")[2].partition("/")[0]
    lines = [" ".join(one.info["cmdline"] or []) for one in psutil.process_iter(["cmdline"])]
    return [line for line in lines if marker in line and address in line]


def bring_back(name: str, story: Story) -> None:
    if name.endswith("dies"):
        server = story.ends.source if name.startswith("source") else story.ends.destination
        server.start()
    story.ends.source.thaw()
    story.ends.destination.thaw()


def is_gone(way: Way, story: Story) -> bool:
    """Delete the file once more, as `clean` does; say whether nothing is there."""
    error = remove(way.load().files, replace(story.order, limits=Limits()))
    return error is None and not files_below(story.ends.destination, story.order.destination)
