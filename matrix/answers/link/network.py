"""What tests of the network alone say of a link: between its sites, without their storage."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import network
from sonar.models import NetworkResult, Transfer
from sonar.notation.units import MB
from sonar.notation.windows import Window


@dataclass(frozen=True)
class NetworkTests:
    """The newest of a window, newest first, in both directions: ``there`` is that of the page."""

    there: tuple[NetworkResult, ...]
    back: tuple[NetworkResult, ...]

    @property
    def done(self) -> list[NetworkResult]:
        return [test for test in self.there if test.state == Transfer.State.DONE]

    @property
    def rate(self) -> float | None:
        """Return the median rate in MB/s of those that succeeded in this direction."""
        return _median(rate_of(test) for test in self.done)

    @property
    def rtt_ms(self) -> float | None:
        """Return the median of the shortest round trips of each test: the same both ways."""
        both = (*self.there, *self.back)
        return _median(test.rtt_min_ms for test in both if test.state == Transfer.State.DONE)

    @property
    def loss(self) -> float | None:
        """Return the share of segments that were sent again in this direction."""
        counted = [
            (test.retransmits, test.sent_bytes / test.mss_bytes)
            for test in self.done
            if test.retransmits is not None and test.sent_bytes and test.mss_bytes
        ]
        segments = sum(segments for _, segments in counted)
        return sum(again for again, _ in counted) / segments if segments else None

    @property
    def sockets(self) -> tuple[int, int] | None:
        """Return the largest windows of sender and receiver in bytes, in this direction."""
        sender = max((test.max_cwnd_bytes or 0 for test in self.done), default=0)
        receiver = max((test.max_receive_window_bytes or 0 for test in self.done), default=0)
        return (sender, receiver) if sender and receiver else None


def read(ends: tuple[EndpointInfo, EndpointInfo], window: Window) -> NetworkTests:
    """Read those between the sites of two endpoints. One SQL query."""
    source = ends[0]
    there: list[NetworkResult] = []
    back: list[NetworkResult] = []
    for test in network.of_link(ends, window):
        is_there = (
            test.source.site.name == source.site
            if source.has_files
            else test.source_id == source.id
        )
        (there if is_there else back).append(test)
    return NetworkTests(tuple(there), tuple(back))


def rate_of(test: NetworkResult) -> float | None:
    """Return the rate in MB/s; None for one that is not done."""
    return test.bytes / test.seconds / MB if test.state == Transfer.State.DONE else None


def loss_of(test: NetworkResult) -> float | None:
    return NetworkTests((test,), ()).loss


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None
