"""An event: a condition as what happened to a link, an endpoint, a site or the whole grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import Judgement
from matrix.answers.words.names import NO_NAMES
from matrix.query.comparison import LONGEST_AROUND
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Condition
from sonar.notation.units import format_factor

TYPES = Condition.Type
SLOWER, FASTER, FAILING, SILENT, RECOVERED = KINDS = (
    "slower", "faster", "failing", "silent", "recovered",
)  # fmt: skip
LEVELS = tuple(Condition.Scope.values)


@dataclass(frozen=True)
class Event:
    """``moment`` is the end of the time range that lists it: what ended later still lasts then."""

    condition: Condition
    moment: datetime

    @property
    def lasts(self) -> bool:
        return self.until is None or self.until > self.moment

    @property
    def kind(self) -> str:
        """Return one of KINDS; a failure that ended is a recovery."""
        kind = KIND_OF[self.condition.type]
        return RECOVERED if kind == FAILING and not self.lasts else kind

    @property
    def at(self) -> datetime:
        """Return the time that it is listed by: of a recovery the end of the failure."""
        return self.until if self.kind == RECOVERED and self.until else self.since

    @property
    def id(self) -> int:
        return self.condition.pk

    @property
    def level(self) -> str:
        return self.condition.scope

    @property
    def since(self) -> datetime:
        return self.condition.since

    @property
    def earliest(self) -> datetime:
        return self.condition.since_low

    @property
    def latest(self) -> datetime:
        return self.condition.since_high

    @property
    def until(self) -> datetime | None:
        return self.condition.ended_at

    @property
    def is_certain(self) -> bool:
        return self.condition.confirmed_at is not None

    @property
    def sizes(self) -> list[str]:
        return self.condition.size_classes

    @property
    def tests(self) -> int:
        """Return the number of tests since it began; of a failure those that failed."""
        counts = vars(self.condition)
        return int(counts["failed" if self.condition.type == TYPES.FAILING else "tests"])

    @property
    def factor(self) -> tuple[float, float | None, float | None] | None:
        """Return the rate since over the one before and its interval of 95 %, if it has one."""
        value = self.condition.factor
        low, high = self.condition.factor_low, self.condition.factor_high
        return None if value is None else (value, low, high)

    @property
    def factor_words(self) -> str:
        return format_factor(*self.factor) if self.factor else ""

    @property
    def source_id(self) -> int | None:
        return self.condition.source_id

    @property
    def destination_id(self) -> int | None:
        return self.condition.destination_id

    @property
    def sites(self) -> list[str]:
        return words.site_names(self.condition)

    def where(self, short: Mapping[str, str] = NO_NAMES) -> str:
        """Name what it is of; endpoints by their ``short`` names where they have some."""
        return words.name(self.condition, short)

    @property
    def role(self) -> str:
        """Say as what an endpoint or a site is concerned: `as source`; nothing of others."""
        return words.ROLES.get(words.SCOPES(self.level), "")

    def words(self, short: Mapping[str, str] = NO_NAMES) -> str:
        """Say it in a few words; what has ended in the past tense."""
        return words.title(self.condition, short)

    def url(self, now: datetime) -> str:
        """Return the page that shows it, with some time before and after."""
        return words.url(self.condition, now)

    def comparison_url(self, now: datetime) -> str:
        """Return the page that compares up to 7 days since it began with the 7 days before."""
        query = MatrixQuery(size=self.sizes[-1]).around(min(self.since, now), now, LONGEST_AROUND)
        return query.url(words.path(self.condition))


def events_of(judgement: Judgement) -> list[Event]:
    """Return the events of a judgement, newest first."""
    events = [Event(condition, judgement.moment) for condition in judgement.conditions]
    return sorted(events, key=lambda event: (event.at, event.id), reverse=True)
