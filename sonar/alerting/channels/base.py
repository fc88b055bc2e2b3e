"""What channels are given, and what they say where it does not arrive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

# Of an incident, so many links stand in a message.
MOST_LINKS = 20


class ChannelError(Exception):
    """What was sent did not arrive; the sentence says why, and holds no secret."""


@dataclass(frozen=True)
class Matter:
    """An incident as it is told, with the names of what it is of."""

    id: int
    title: str
    sentence: str
    condition: str
    level: str
    source: str
    destination: str
    site: str
    began_at: datetime
    closed_at: datetime | None
    factor: float | None
    links: int
    of_links: int
    url: str
    who: str
    check: str
    members: tuple[str, ...] = ()
    more: int = 0
    # It began between these; and how many tests its subject had since, of which so many failed.
    since_low: datetime | None = None
    since_high: datetime | None = None
    tests: int | None = None
    failed: int | None = None
    # The newest error of its tests, and the end that errors name: source, destination or neither.
    error: str = ""
    error_where: str = ""

    @property
    def severity(self) -> str:
        return "warning" if self.condition == "slow" else "critical"


@dataclass(frozen=True)
class Occurrence:
    """An event of an incident: what it says for the first time, unless it says so of itself."""

    id: int
    kind: str
    at: datetime
    incident: int


@dataclass(frozen=True)
class Message:
    """What is sent at once. ``id`` stays the same as long as it tells of the same events.

    However often it is sent: its words and ``matters`` are those of the moment, ``at``.
    """

    id: str
    at: datetime
    kind: str
    subject: str
    text: str
    html: str = ""
    matters: Sequence[Matter] = ()
    events: Sequence[Occurrence] = ()


@dataclass(frozen=True)
class Target:
    """Whom a channel reaches: the settings of the subscription by name, secret ones among them.

    ``page`` is where people subscribe and no more; ``home`` the address of this Sonar.
    """

    key: str
    name: str
    address: str
    page: str
    home: str
    settings: Mapping[str, str] = field(default_factory=dict)


class Channel(Protocol):
    """Sends messages; one is made for each process."""

    def send(self, message: Message, target: Target) -> str:
        """Send it; return what the other side said, or raise ChannelError."""


class Board(Protocol):
    """Shows what is so: it is told everything again and again, once a minute."""

    def tell(self, matters: Sequence[Matter], target: Target, now: datetime) -> str:
        """Tell all incidents that are open, and those just closed, or raise ChannelError."""
