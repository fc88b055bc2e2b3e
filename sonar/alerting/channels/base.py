"""The data that channels send, and the error that they raise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

# A message lists at most this many links of an incident.
MOST_LINKS = 20


class ChannelError(Exception):
    """A message was not delivered; the sentence gives the reason and contains no secret."""


@dataclass(frozen=True)
class Matter:
    """An incident as it is sent, with the names of its link, endpoint or site.

    ``sentence`` gives object, state, start and figures; `lines` adds the first action and the link.
    """

    id: int
    title: str
    sentence: str
    type: str
    scope: str
    source: str
    destination: str
    site: str
    began_at: datetime
    closed_at: datetime | None
    factor: float | None
    links: int
    of_links: int
    url: str
    assignee: str
    advice: str
    members: tuple[str, ...] = ()
    more: int = 0
    # The bounds of its start, and the number of tests since then, of which `failed` have failed.
    since_low: datetime | None = None
    since_high: datetime | None = None
    tests: int | None = None
    failed: int | None = None
    # The newest error of its tests, and the side that reports it: source, destination or empty.
    error: str = ""
    error_where: str = ""

    @property
    def severity(self) -> str:
        return "warning" if self.type == "slow" else "critical"

    @property
    def first_action(self) -> str:
        """Return the first action as a line; an empty string for a closed incident."""
        is_open = self.closed_at is None
        return f"First action: {self.advice}" if self.advice and is_open else ""

    @property
    def lines(self) -> list[str]:
        """Return the lines of every message: object, state, start and figures; action; link."""
        return [line for line in (self.sentence, self.first_action, self.url) if line]


@dataclass(frozen=True)
class Occurrence:
    """An event of an incident that a message reports."""

    id: int
    type: str
    at: datetime
    incident: int


@dataclass(frozen=True)
class Message:
    """One message. ``id`` is the same for each attempt to send the same events.

    Its text and ``matters`` have the values of the moment ``at``.
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
    """The receiver: the settings of a subscription by name, including secrets.

    ``page`` is the address of the page of subscriptions, ``home`` that of this Sonar.
    """

    key: str
    name: str
    address: str
    page: str
    home: str
    settings: Mapping[str, str] = field(default_factory=dict)


class Channel(Protocol):
    """Sends messages; each process has one instance."""

    def send(self, message: Message, target: Target) -> str:
        """Send a message; return the answer of the receiver, or raise ChannelError."""


class Board(Protocol):
    """Shows the current state: it is sent all open incidents once a minute."""

    def tell(self, matters: Sequence[Matter], target: Target, now: datetime) -> str:
        """Send all open incidents and those just closed, or raise ChannelError."""
