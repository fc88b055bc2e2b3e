"""A test of the network alone: one move between two ends, with no file before, at or after it."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from sonar.movers.base import MoverError, Order, Receipt
from sonar.movers.measure import Outcome
from sonar.movers.messages import host_and_path
from sonar.movers.watch import Seen, Watch, as_failures, within


@dataclass(frozen=True)
class PathFigures:
    """What the sockets of a test told of the way between its ends; None where they told nothing.

    Those of a sender (round trips and windows) are known where the sender is asked. The windows
    are the largest there were, of one stream.
    """

    rtt_min_ms: float | None = None
    rtt_mean_ms: float | None = None
    rtt_max_ms: float | None = None
    retransmits: int | None = None
    """Segments that were sent again, of all streams together."""
    sent_bytes: int | None = None
    max_cwnd_bytes: int | None = None
    max_receive_window_bytes: int | None = None
    """As the receiver offered it to the sender."""
    mss_bytes: int | None = None
    congestion_control: str = ""


@dataclass(slots=True)
class SeenOfNetwork(Seen):
    """What was seen of a test of the network."""

    path: PathFigures = field(default_factory=PathFigures)


class NetworkMover(Protocol):
    """What measures the network; the worker is the end that does the work by the order's mode."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Send or fetch ``order.bytes`` bytes or a little more, or raise MoverError."""


def measure(mover: NetworkMover, order: Order, watch: Watch) -> Outcome:
    """Carry out one order to its end; whatever goes wrong is in the outcome, and not raised."""
    watch.seen, began = SeenOfNetwork(), time.monotonic()
    receipt, failure = None, None
    try:
        watch.check()
        place = host_and_path(order.destination)
        with within(watch, order.limits.total), as_failures(place, watch):
            receipt = mover.move(order, watch)
    except MoverError as error:
        failure = error
    return Outcome(receipt, failure, None, time.monotonic() - began, 0.0, watch.seen)
