"""The parameters of a report: its week or month, and its scope."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from urllib.parse import urlencode

from matrix.query.addresses import address
from matrix.query.comparison import CUSTOM, Comparison
from matrix.query.filters import Filter
from matrix.query.forms import BadQueryError, Texts, check_names, text_of
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import registry
from sonar.notation.enumeration import not_registered
from sonar.notation.windows import Window, format_day

WEEK, MONTH = KINDS = ("week", "month")
EXAMPLES = {WEEK: "2026-W47", MONTH: "2026-10"}
SCOPES = ("cloud", "site")
A_DAY, A_WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True)
class ReportPeriod:
    """A week from Monday to Monday, or a calendar month, from 00:00 UTC of its ``first`` day."""

    kind: str
    first: date

    @classmethod
    def parse(cls, name: str) -> Self:
        """Read `2026-W47` or `2026-10`; raise ValueError with a sentence."""
        match = re.fullmatch(r"(20\d\d)-(W?)(\d\d)", name, re.ASCII)
        year, week, number = match.groups() if match else ("0", "", "0")
        try:
            if week:
                return cls(WEEK, date.fromisocalendar(int(year), int(number), 1))
            return cls(MONTH, date(int(year), int(number), 1))
        except ValueError:
            examples = f"{EXAMPLES[WEEK]} nor a month like {EXAMPLES[MONTH]}"
            raise ValueError(f"“{name}” is neither a week like {examples}") from None

    @classmethod
    def newest(cls, kind: str, now: datetime) -> Self:
        """Return the newest one that is over."""
        today = now.astimezone(UTC).date()
        first = today - today.weekday() * A_DAY if kind == WEEK else today.replace(day=1)
        return cls(kind, first).before

    @property
    def before(self) -> Self:
        back = self.first - (A_WEEK if self.kind == WEEK else A_DAY)
        return type(self)(self.kind, back if self.kind == WEEK else back.replace(day=1))

    @property
    def after(self) -> Self:
        on = self.first + A_WEEK
        month = (self.first + 32 * A_DAY).replace(day=1)
        return type(self)(self.kind, on if self.kind == WEEK else month)

    @property
    def window(self) -> Window:
        start, end = (datetime.combine(day, time(), UTC) for day in (self.first, self.after.first))
        return Window(start, end)

    @property
    def name(self) -> str:
        if self.kind == MONTH:
            return f"{self.first:%Y-%m}"
        year, week, _ = self.first.isocalendar()
        return f"{year}-W{week:02}"

    @property
    def words(self) -> str:
        """Say it in a heading: `week 47, 16 Nov to 22 Nov 2026`, `October 2026`."""
        if self.kind == MONTH:
            return f"{self.first:%B %Y}"
        start, last = self.window.start, self.window.end - A_DAY
        days = f"{format_day(start, last.year)} to {format_day(last, 0)}"
        return f"week {self.first.isocalendar().week}, {days}"


@dataclass(frozen=True)
class ReportQuestion:
    """A period, and of what: a ``cloud``, a ``site``, or, without either, the whole grid."""

    period: ReportPeriod
    cloud: str = ""
    site: str = ""

    @classmethod
    def read(cls, name: str, params: Texts, now: datetime, *also: str) -> Self:
        """Read an address; raise BadQueryError if the report does not exist.

        Parameters that are named in ``also`` belong to the caller.
        """
        try:
            period = ReportPeriod.parse(name)
        except ValueError as error:
            raise BadQueryError({"period": [f"period {error}."]}) from None
        if period.window.end > now:
            newest = ReportPeriod.newest(period.kind, now).name
            sentence = f"The latest complete {period.kind} is {newest}."
            raise BadQueryError({"period": [f"The period {name} has not ended. {sentence}"]})
        return cls(period, **read_scope(params, *also))

    @property
    def scope(self) -> dict[str, str]:
        """Return the parameters of an address that say of what it is."""
        values = {"cloud": self.cloud, "site": self.site}
        return {name: value for name, value in values.items() if value}

    @property
    def subject(self) -> str:
        if self.cloud:
            return f"cloud {self.cloud}"
        return f"site {self.site}" if self.site else "the whole grid"

    @property
    def title(self) -> str:
        return f"Report on {self.subject}, {self.period.words}"

    @property
    def filters(self) -> tuple[Filter, ...]:
        return tuple(Filter(name, value) for name, value in self.scope.items())

    @property
    def path(self) -> str:
        return address("report", self.period.name)

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.scope)}" if self.scope else self.path

    def query(self, size: str, *, compared: bool = False) -> MatrixQuery:
        """Return the question to the matrix of a size class, ``compared`` with the period before.

        Of both as they were when they ended.
        """
        query = MatrixQuery(size=size, filters=self.filters).during(self.period.window)
        other = self.period.before.window
        return query.replace(
            compare=Comparison(CUSTOM, other.start, other.end) if compared else None
        )


def read_scope(params: Texts, *also: str) -> dict[str, str]:
    """Return the cloud or site of a report; raise BadQueryError for unknown ones."""
    check_names(params, (*SCOPES, *also))
    scope = {name: text_of(params, name) for name in SCOPES}
    if all(scope.values()):
        sentence = "Use either “cloud” or “site”, not both."
        raise BadQueryError({name: [sentence] for name in SCOPES})
    places = registry.read_places(registry.read_versions())
    for name, value in scope.items():
        if value and value not in names_of(places, name):
            sentence = f"{not_registered(name, value, name)} that has endpoints."
            raise BadQueryError({name: [sentence]})
    return scope


def names_of(places: Sequence[EndpointInfo], attribute: str) -> list[str]:
    """Return the clouds, or the sites, that have endpoints, by name."""
    return sorted({text for place in places for text in place.texts(attribute) if text})
