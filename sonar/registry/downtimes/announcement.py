"""A downtime as a site has announced it elsewhere, whatever the notation it was read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sonar.models import Downtime
from sonar.models.aliases import AliasKind
from sonar.notation.addresses import name_of
from sonar.notation.windows import EARLIEST, LATEST
from sonar.registry.downtimes.document import BadAnswer, Part

LONGEST = {"key": 100, "reason": 200, "url": 500, "host": 253, "kind": 100, "owner": 200}
"""Characters. A reason is cut; what is longer of the others is refused."""
NO_REASON = "no reason is given"


@dataclass(frozen=True)
class AffectedService:
    """A service that a downtime is of: at which host, what it is, and whose.

    ``host`` is as `name_of` writes it; ``owner`` is the site in GOCDB, or the resource of OSG,
    empty if nobody says it. ``url`` is that of the endpoint which the downtime names, if any.
    """

    host: str
    kind: str
    owner: str
    owner_kind: AliasKind
    url: str = ""
    is_tape: bool = False


@dataclass(frozen=True)
class Announcement:
    """A downtime of some services; ``key`` is its primary key there, ``url`` its page, if any."""

    key: str
    starts_at: datetime
    ends_at: datetime
    severity: Downtime.Severity
    reason: str
    url: str
    services: tuple[AffectedService, ...]

    @property
    def is_ever_in_force(self) -> bool:
        """Say whether it has a length: one that was withdrawn as it began may have none."""
        return self.starts_at < self.ends_at


@dataclass(frozen=True)
class LeftOut:
    """An element that cannot be read, and why; ``key`` is that of its downtime, empty if unread."""

    key: str
    sentence: str


@dataclass(frozen=True)
class Answer:
    """What was read of one source; ``next_page`` is the address of the rest, if there is any.

    Of a downtime with an element in ``left_out``, the services of its other elements are there.
    """

    announcements: tuple[Announcement, ...]
    left_out: tuple[LeftOut, ...] = ()
    next_page: str = ""


def host_name(part: Part, name: str) -> str:
    text = bounded(part, name, "host")
    host = name_of(text)
    if not host or any(character.isspace() or character in "/@?#" for character in host):
        raise BadAnswer(part.place(name), f"{text!r} is not a host name")
    return host


def bounded(part: Part, name: str, column: str, *, is_needed: bool = True) -> str:
    """Return the text of an element, which has no more than the characters of a column."""
    text = part.text(name) if is_needed else part.text_if_any(name)
    most = LONGEST[column]
    if len(text) > most:
        raise BadAnswer(
            part.place(name), f"{len(text):,} characters, but at most {most} are allowed"
        )
    return text


def reason_of(text: str) -> str:
    """Return a description on one line, cut where it is longer than a column."""
    words = "".join(character if character.isprintable() else " " for character in text)
    line, most = " ".join(words.split()), LONGEST["reason"]
    return (line if len(line) <= most else f"{line[: most - 1].rstrip()}…") or NO_REASON


def period_of(
    part: Part, names: tuple[str, str], read: Callable[[Part, str], datetime]
) -> tuple[datetime, datetime]:
    """Return the times that two elements say, of which the second is not before the first."""
    starts_at, ends_at = (read(part, name) for name in names)
    if ends_at < starts_at:
        raise BadAnswer(part.place(names[1]), "the downtime ends before it starts")
    return starts_at, ends_at


def moment_of(part: Part, name: str, seconds: float) -> datetime:
    """Return the time of so many seconds since 1970, in the years that Sonar knows."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:
        moment = LATEST + timedelta(1)
    return in_range(part, name, moment)


def in_range(part: Part, name: str, moment: datetime) -> datetime:
    if not EARLIEST <= moment <= LATEST:
        raise BadAnswer(part.place(name), "the time is outside the years 1970 to 2999")
    return moment
