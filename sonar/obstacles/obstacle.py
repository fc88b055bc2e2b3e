"""What an obstacle is: one thing that can stop a test, with all faces of its rule."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import Enum, auto
from typing import ClassVar, NamedTuple

from django.db.models import Q
from django.db.models.expressions import RawSQL

from sonar.models import Endpoint, Mesh, Probe, Schedule
from sonar.obstacles.run_conditions import RunConditions

NOTHING = Q(pk__in=[])
"""Matches no schedule."""


class Problem(NamedTuple):
    """Why a test cannot run, in a sentence for all readers, and what of the test it is about."""

    field: str
    sentence: str


class Start(NamedTuple):
    """A test that may start now; its ends and its mesh by their ids."""

    source: int
    destination: int
    mesh: int | None
    bytes: int


class Effect(Enum):
    """What an obstacle does to tests that people order."""

    REFUSES = auto()
    """They are refused; those that wait already wait on."""
    REFUSES_NEW = auto()
    """They are refused; those that wait already have what they need."""
    DELAYS = auto()
    """They wait until it has passed."""
    NONE = auto()
    """It holds back scheduled tests alone."""


class Obstacle(ABC):
    """One thing that can stop a test; `filter` and `blocks` are one rule in two forms."""

    name: ClassVar[str]
    """As schedules, the API and metrics have it: at most 12 characters."""
    words: ClassVar[str]
    """What operators read: `tests wait because ...`."""
    label: ClassVar[str] = ""
    """What readers of a site see of it, if it is not its name."""
    effect: ClassVar[Effect] = Effect.NONE
    is_of_room: ClassVar[bool] = False
    """Whether it passes as other tests end, and so while the planner goes through the schedule."""
    is_of_tests: ClassVar[bool] = False
    """Whether it is there only while other tests are queued or running."""

    @abstractmethod
    def filter(self, conditions: RunConditions) -> Q | RawSQL:
        """Match the schedules that it holds back."""

    @abstractmethod
    def blocks(self, conditions: RunConditions, probe: Probe) -> Iterator[Problem]:
        """Yield why it holds back this test; nothing if it does not."""

    def has_room(self, conditions: RunConditions, start: Start) -> bool:
        """Say whether a test has room beside those that have started in the same run."""
        return True

    def take(self, conditions: RunConditions, start: Start) -> None:  # noqa: B027 - most count nothing
        """Count a test that starts now."""

    def about(self, schedule: Schedule, now: datetime) -> str:
        """Name what holds back a scheduled test, and whose it is: `waits because of ...`.

        ``schedule`` has its mesh and the sites of its ends. Empty if it is over.
        """
        return self.name

    def advice(self, conditions: RunConditions, mesh: Mesh) -> str:
        """Say in a sentence what of a mesh it will hold back until somebody acts; empty for none.

        For those who save a mesh, or what it uses.
        """
        return ""


def ends_of(probe: Probe) -> Iterator[tuple[str, Endpoint]]:
    """Yield both ends of a test with the fields that have them."""
    yield "source", probe.source
    yield "destination", probe.destination


def either_end(endpoints: Iterable[int]) -> Q:
    """Match the schedules with one of these endpoints, by their ids."""
    ids = list(endpoints)
    return Q(source__in=ids) | Q(destination__in=ids)
