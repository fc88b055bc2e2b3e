"""The seven links of the lab: in each one thing makes files slow, and in the last nothing does."""

from dataclasses import dataclass

MB = 10**6
SIZES = {"small": 1 * MB, "medium": 4 * MB, "large": 2 * 16 * 1024**2}
"""Bytes of the test files by size class: few, as the slowest link takes 50 s for the largest, but
XRootD moves a file over two connections from two blocks of 16 MiB on."""
STREAMS = (1, 2)
REPEATS = 3


@dataclass(frozen=True)
class Way:
    """What is between two servers, as far as it is nobody's own; a healthy one, unless it says."""

    rtt_ms: float = 10.0
    rate_mbit: float = 200.0
    queue_kb: float = 4000.0
    loss: float = 0.0
    """Share of packets, in each direction."""
    hold_seconds: float = 0.0
    """How long it keeps each new connection waiting; XRootD 5.5.3 opens two for a pull."""
    congestion: str = "cubic"
    mtu: int = 1500
    """Bytes of its largest packets."""


# As many sites of the grid have them: to carry six times as many packets would be most of what the
# lab takes of a processor. Where packets decide how slow a way is, they are of the usual size.
JUMBO = 9000
HEALTHY = Way(mtu=JUMBO)


@dataclass(frozen=True)
class Scenario:
    """A link from one storage server to another, and what makes it slow."""

    name: str
    cause: str
    """What a person would say who knew everything."""
    way: Way = HEALTHY
    window_bytes: int | None = None
    """The most that the destination lets any source have on its way; None: what fits."""
    source_disk: float | None = None
    """Bytes per second; None: as fast as this machine."""
    destination_disk: float | None = None
    sweep: int = 2
    """How often large files are tested with each number of STREAMS; 0: never with several."""

    @property
    def source(self) -> str:
        return f"{self.name}_SOURCE"

    @property
    def destination(self) -> str:
        return f"{self.name}_DESTINATION"


WINDOW = Scenario("WINDOW", "the destination's receive window", Way(rtt_ms=90), 64 * 1024 - 1)
# Their rates are left to chance.
LOSS = Scenario("LOSS", "lost packets", Way(loss=0.01, congestion="reno"), sweep=4)
SOURCE_DISK = Scenario("SOURCE-DISK", "the source's disk", source_disk=2 * MB)
DESTINATION_DISK = Scenario("DESTINATION-DISK", "the destination's disk", destination_disk=2 * MB)
NARROW = Scenario("NARROW", "the capacity of the way", Way(rate_mbit=8, queue_kb=100))
# More connections would only wait longer until they stand.
SET_UP = Scenario(
    "SET-UP", "the time until a connection stands", Way(hold_seconds=5, mtu=JUMBO), sweep=0
)
NOTHING = Scenario("NOTHING", "nothing", sweep=4)

SCENARIOS = (WINDOW, LOSS, SOURCE_DISK, DESTINATION_DISK, NARROW, SET_UP, NOTHING)
