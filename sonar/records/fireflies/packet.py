"""One packet: a line of syslog, or none, and JSON; 2 kB at most.

As XRootD 5.5 and flowd-go of 2026 send them: times in UTC, round trips in milliseconds.
"""

import re
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sonar.notation import scitags
from sonar.notation.windows import Window

MOST_BYTES = 2048
# Of TCP's own numbers those that say why a connection is slow. Times are milliseconds, but for how
# long it was busy or held up: those are microseconds, as the kernel counts them.
TCP_NUMBERS = frozenset(
    {
        *("rtt", "min_rtt", "rttvar", "retrans", "total_retrans", "snd_cwnd", "snd_mss", "pmtu"),
        *("busy_time", "rwnd_limited", "sndbuf_limited"),
    }
)
PRINTABLE = re.compile(r"[^\x20-\x7e]")

Bytes = Annotated[int, Field(ge=0, lt=2**63)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]


def numbers(netlink: object) -> object:
    """Keep those of TCP's numbers that are of use."""
    if not isinstance(netlink, dict):
        return netlink
    return {name: netlink[name] for name in sorted(TCP_NUMBERS & netlink.keys())}


class Part(BaseModel):
    """A part of a packet, whose names have dashes; what else is there is not read."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))


class Lifecycle(Part):
    state: Literal["start", "ongoing", "end"]
    start_time: AwareDatetime
    current_time: AwareDatetime | None = None
    end_time: AwareDatetime | None = None

    @property
    def moments(self) -> list[datetime]:
        times = (self.start_time, self.current_time, self.end_time)
        return [moment for moment in times if moment is not None]


class FlowId(Part):
    src_ip: IPv4Address | IPv6Address
    dst_ip: IPv4Address | IPv6Address
    src_port: Port
    dst_port: Port
    protocol: Literal["tcp", "udp"]


class Usage(Part):
    received: Bytes | None = None
    sent: Bytes | None = None


class Context(Part):
    experiment_id: Annotated[int, Field(ge=1)]
    activity_id: Annotated[int, Field(ge=1, lt=64)]
    application: str = ""


class Firefly(Part):
    """What a packet says of a connection: who told it is not in it."""

    flow_lifecycle: Lifecycle
    flow_id: FlowId
    context: Context
    usage: Usage = Usage()
    netlink: Annotated[dict[str, Amount], BeforeValidator(numbers)] = Field(default_factory=dict)

    @property
    def scitag(self) -> int:
        return scitags.Scitag(self.context.experiment_id, self.context.activity_id).number

    @property
    def application(self) -> str:
        return PRINTABLE.sub("?", self.context.application)[:100]

    def is_of(self, window: Window) -> bool:
        """Say whether all of its times lie in a window, whatever year their zones put them in."""
        return all(window.start <= each < window.end for each in self.flow_lifecycle.moments)

    def seen_at(self, now: datetime) -> datetime:
        """Return when it was sent, by its own clock; for one that does not say, now."""
        return self.flow_lifecycle.current_time or self.flow_lifecycle.end_time or now


def parsed(datagram: bytes) -> Firefly:
    """Read a packet; raise ValueError for anything else, without its words.

    Its numbers and texts fit where they are kept; its times may be of any year.
    """
    if len(datagram) > MOST_BYTES:
        raise ValueError(f"longer than {MOST_BYTES} bytes")
    start = datagram.find(b"{")
    if start < 0:
        raise ValueError("no JSON")
    try:
        firefly = Firefly.model_validate_json(datagram[start:])
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise ValueError(f"wrong {place or 'JSON'}") from None
    if firefly.scitag > scitags.MOST:
        raise ValueError("wrong context.experiment-id")
    life = firefly.flow_lifecycle
    if life.end_time and life.end_time < life.start_time:
        raise ValueError("wrong flow-lifecycle.end-time")
    return firefly
