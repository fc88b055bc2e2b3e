"""One packet: a line of syslog, or none, and JSON; 8 kB at most.

docs/scitags.md lists the forms that are sent, by whom, and in which units. What identifies a
connection must be right. Any other value that cannot be read is left out, and named in ``unread``.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from sonar.notation import scitags
from sonar.notation.windows import Window

MOST_BYTES = 8192
"""flowd and flowd-go send up to 2.5 kB if they are set to report all that they know."""


class TcpNumber(NamedTuple):
    """A number of TCP as it is kept, and as others send it; Linux has times in microseconds.

    ``divisor`` is for the names of Linux, ``camel_divisor`` for those of flowd-go.
    """

    name: str
    camel_name: str
    divisor: int = 1
    camel_divisor: int = 1


# Those that say why a connection is slow. Times are kept in milliseconds, but for how long it was
# busy or held up: those are microseconds. flowd, XRootD and flowd-go in its compatible mode use the
# names of Linux, and send milliseconds except of min_rtt.
TCP_NUMBERS = (
    TcpNumber("rtt", "rtt", camel_divisor=1000),
    TcpNumber("min_rtt", "minRtt", divisor=1000, camel_divisor=1000),
    TcpNumber("rttvar", "rttVar", camel_divisor=1000),
    TcpNumber("retrans", "retrans"),
    TcpNumber("total_retrans", "totalRetrans"),
    TcpNumber("snd_cwnd", "sndCwnd"),
    TcpNumber("snd_mss", "sndMss"),
    TcpNumber("pmtu", "pMtu"),
    TcpNumber("busy_time", "busyTime"),
    TcpNumber("rwnd_limited", "rwndLimited"),
    TcpNumber("sndbuf_limited", "sndBufLimited"),
)
PRINTABLE = re.compile(r"[^\x20-\x7e]")

Bytes = Annotated[int, Field(ge=0, lt=2**63)]
Port = Annotated[int, Field(ge=0, le=65_535)]
BYTES = TypeAdapter[Any](Bytes)
AMOUNT = TypeAdapter[Any](Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)])
# flowd sends null for a time that it does not know, flowd-go an empty text.
Moment = Annotated[
    AwareDatetime | None, BeforeValidator(lambda value: None if value == "" else value)
]


class Part(BaseModel):
    """A part of a packet, whose names have dashes; what else is there is not read."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))


class Lifecycle(Part):
    """``end_time`` is None unless it is over: flowd sends one of another connection at a start."""

    state: Literal["start", "ongoing", "end"]
    start_time: Moment = None
    current_time: Moment = None
    end_time: Moment = None

    @model_validator(mode="before")
    @classmethod
    def _without_end(cls, raw: Any) -> Any:  # noqa: ANN401 - decoded JSON
        is_over = not isinstance(raw, dict) or raw.get("state") == "end"
        return raw if is_over else raw | {"end-time": None}


class FlowId(Part):
    src_ip: IPv4Address | IPv6Address
    dst_ip: IPv4Address | IPv6Address
    src_port: Port
    dst_port: Port
    protocol: Annotated[
        Literal["tcp", "udp"],
        BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value),
    ]


class Usage(Part):
    received: Bytes | None = None
    sent: Bytes | None = None


class Context(Part):
    """flowd sends the activity 0 for a transfer without one; null is read as 0."""

    experiment_id: Annotated[int, Field(ge=1)]
    activity_id: Annotated[
        int, Field(ge=0, lt=64), BeforeValidator(lambda value: 0 if value is None else value)
    ]
    application: Annotated[
        str, BeforeValidator(lambda value: value if isinstance(value, str) else "")
    ] = ""


class Firefly(Part):
    """What a packet says of a connection: who told it is not in it.

    ``netlink`` has the numbers of TCP by the names of Linux, in the units of ``TCP_NUMBERS``.
    """

    flow_lifecycle: Lifecycle
    flow_id: FlowId
    context: Context
    usage: Usage = Usage()
    netlink: dict[str, float] = Field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _read_numbers(cls, raw: Any) -> Any:  # noqa: ANN401 - decoded JSON
        if not isinstance(raw, dict):
            return raw
        unread: list[str] = []
        usage = _object("usage", raw.get("usage"), unread)
        moved = {
            name: _number(BYTES, usage.get(name), f"usage.{name}", unread)
            for name in ("received", "sent")
        }
        tcp = _tcp_numbers("skOps", raw.get("skOps"), unread)
        tcp |= _tcp_numbers("netlink", raw.get("netlink"), unread)
        return raw | {"usage": moved, "netlink": tcp, "unread": unread}

    @property
    def scitag(self) -> int:
        return scitags.Scitag(self.context.experiment_id, self.context.activity_id).number

    @property
    def application(self) -> str:
        return PRINTABLE.sub("?", self.context.application)[:100]

    def is_of(self, window: Window) -> bool:
        """Say whether all of its times lie in a window, whatever year their zones put them in."""
        life = self.flow_lifecycle
        moments = filter(None, (life.start_time, life.current_time, life.end_time))
        return all(window.start <= each < window.end for each in moments)

    def seen_at(self, now: datetime) -> datetime:
        """Return when it was sent, by its own clock; for one that does not say, now."""
        return self.flow_lifecycle.current_time or self.flow_lifecycle.end_time or now

    def began_at(self, now: datetime) -> datetime | None:
        """Return when the connection began; None if it began earlier, and nobody says when."""
        life = self.flow_lifecycle
        is_new = life.start_time is None and life.state == "start"
        return self.seen_at(now) if is_new else life.start_time

    def ended_at(self, now: datetime) -> datetime | None:
        life = self.flow_lifecycle
        return (life.end_time or self.seen_at(now)) if life.state == "end" else None


def _object(place: str, value: object, unread: list[str]) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, dict):
        unread.append(place)
    return value if isinstance(value, dict) else {}


def _number(kind: TypeAdapter[Any], value: object, place: str, unread: list[str]) -> Any:  # noqa: ANN401 - of this kind
    """Return a number, or None with its place in ``unread``; null is one that is not known."""
    if value is None:
        return None
    try:
        return kind.validate_python(value)
    except ValidationError:
        unread.append(place)
        return None


def _tcp_numbers(place: str, report: object, unread: list[str]) -> dict[str, float]:
    """Return what is known of ``TCP_NUMBERS``, in whichever form it is reported."""
    if isinstance(report, list) and len(report) == 2:  # flowd: the state of TCP, and all else
        report = report[1]
    outer = _object(place, report, unread)
    is_camel = "tcpInfo" in outer
    is_nested = is_camel or "tcp_info" in outer
    inner = outer.get("tcpInfo" if is_camel else "tcp_info") if is_nested else outer
    sent = _object(place, inner, unread)
    names = {row: row.camel_name if is_camel else row.name for row in TCP_NUMBERS}
    if sent and sent.keys().isdisjoint(names.values()):
        unread.append(place)
    numbers: dict[str, float] = {}
    for row, name in names.items():
        number = _number(AMOUNT, sent.get(name), f"{place}.{name}", unread)
        if number is not None:
            numbers[row.name] = number / (row.camel_divisor if is_camel else row.divisor)
    return numbers


def parsed(datagram: bytes) -> Firefly:
    """Read a packet; raise ValueError for anything else, without its words.

    Its numbers and texts fit where they are kept; its times may be of any year.
    """
    if len(datagram) > MOST_BYTES:
        raise ValueError(f"longer than {MOST_BYTES} bytes")
    start = datagram.find(b"{")
    if start < 0:
        raise ValueError("not a JSON object")
    try:
        firefly = Firefly.model_validate_json(datagram[start:])
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise ValueError(f"wrong {place or 'JSON'}") from None
    if firefly.scitag > scitags.MOST:
        raise ValueError("wrong context.experiment-id")
    life = firefly.flow_lifecycle
    if life.start_time and life.end_time and life.end_time < life.start_time:
        raise ValueError("wrong flow-lifecycle.end-time")
    return firefly
