"""An event: a condition as what happened to a link, an endpoint, a site or the whole grid."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import Judgement
from matrix.answers.words.names import NO_NAMES
from matrix.query.comparison import LONGEST_AROUND
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Condition
from sonar.notation.units import format_factor

SLOWER, FASTER, FAILING, SILENT, RECOVERED = TYPES = (
    "slower", "faster", "failing", "silent", "recovered",
)  # fmt: skip
SCOPES = tuple(Condition.Scope.values)


@dataclass(frozen=True)
class Event:
    """A condition as one of TYPES: a failure that ended is a recovery.

    It is listed by the time ``at``: of a recovery the end of the failure. ``tests`` are those since
    it began, of a failure those that failed. ``factor`` is the rate since over the one before and
    its interval of 95 %.
    """

    condition: Condition
    type: str
    at: datetime
    lasts: bool
    id: int
    scope: str
    since: datetime
    earliest: datetime
    latest: datetime
    until: datetime | None
    is_significant: bool
    sizes: list[str]
    tests: int
    factor: tuple[float, float | None, float | None] | None
    source_id: int | None
    destination_id: int | None

    @classmethod
    def of(cls, condition: Condition, moment: datetime) -> Self:
        """Return it in a time range that ends at ``moment``: what ended later still lasts then."""
        type_, until, value = KIND_OF[condition.type], condition.ended_at, condition.factor
        lasts = until is None or until > moment
        is_over = type_ == FAILING and not lasts
        return cls(
            condition,
            RECOVERED if is_over else type_,
            until if is_over and until else condition.since,
            lasts,
            condition.pk,
            condition.scope,
            condition.since,
            condition.since_low,
            condition.since_high,
            until,
            condition.confirmed_at is not None,
            condition.size_classes,
            vars(condition)["failed" if type_ == FAILING else "tests"],
            None if value is None else (value, condition.factor_low, condition.factor_high),
            condition.source_id,
            condition.destination_id,
        )

    def changed_by(self, factor: float) -> bool:
        """Say whether the rate changed by at least this factor, in either direction."""
        return self.factor is not None and not 1 / factor < self.factor[0] < factor

    @property
    def factor_words(self) -> str:
        return format_factor(*self.factor) if self.factor else ""

    @property
    def sites(self) -> list[str]:
        return words.site_names(self.condition)

    def where(self, short: Mapping[str, str] = NO_NAMES) -> str:
        """Name what it is of; endpoints by their ``short`` names where they have some."""
        return words.name(self.condition, short)

    @property
    def role(self) -> str:
        return words.role(self.condition)

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
    events = [Event.of(condition, judgement.moment) for condition in judgement.conditions]
    return sorted(events, key=lambda event: (event.at, event.id), reverse=True)
