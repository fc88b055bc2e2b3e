"""The parameters by which the page and the API choose incidents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.db.models import Q, QuerySet

from matrix.answers.incidents.words import SCOPE_WORDS
from matrix.query.filters import Filter
from matrix.query.forms import check_names, one_of
from matrix.query.matrix_query import MatrixQuery
from matrix.store import incidents
from matrix.store.incidents import OF_GRID, OPEN
from matrix.store.keyset import Cursor
from sonar.models import Incident, SizeClass
from sonar.people.roles import Anyone

Texts = Mapping[str, Sequence[str]]
SITE = "site"
OWN = ("open", "scope", "type", "size", "mine", "unacknowledged")
NAMES = (*OWN, SITE, "window", "from", "to")
YES, OPEN_OR_NOT = ("1",), ("yes", "no")
OPEN_WORDS = {"": "open and closed", "yes": "only open", "no": "only closed"}


@dataclass(frozen=True)
class IncidentCursor:
    """The last incident of a page in the order of `incidents.ORDER`; the next page follows it."""

    rank: int
    place: Cursor

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` has written; raise ValueError for anything else."""
        rank, _, place = text.partition("_")
        if rank not in map(str, range(incidents.CLOSED_RANK + 1)):
            raise ValueError(text)
        return cls(int(rank), Cursor.parse_numbered(place))

    @classmethod
    def of(cls, place: Sequence[Any]) -> Self:
        rank, at, number = place
        return cls(rank, Cursor(at, number))

    @property
    def values(self) -> tuple[int, datetime, int | Any]:
        return self.rank, self.place.moment, self.place.id

    def __str__(self) -> str:
        return f"{self.rank}_{self.place}"


@dataclass(frozen=True)
class IncidentsQuestion:
    """The chosen incidents, which were open at some time of the window; empty values mean any.

    ``query`` has only the window and the sites.
    """

    query: MatrixQuery
    open: str = ""
    scope: str = ""
    type: str = ""
    size: str = ""
    mine: bool = False
    unacknowledged: bool = False

    @classmethod
    def read(cls, params: Texts, also: Sequence[str] = ()) -> Self:
        """Read URL parameters; raise BadQueryError. Those in ``also`` belong to the caller."""
        check_names(params, (*NAMES, *also))
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        return cls(
            MatrixQuery.from_params(params, also=(*OWN, *also)).replace(size=MatrixQuery.size),
            open=one_of(params, "open", OPEN_OR_NOT),
            scope=one_of(params, "scope", Incident.Scope.values),
            type=one_of(params, "type", Incident.Type.values),
            size=one_of(params, "size", sizes),
            mine=bool(one_of(params, "mine", YES)),
            unacknowledged=bool(one_of(params, "unacknowledged", YES)),
        )

    def to_params(self) -> dict[str, list[str]]:
        own = {name: getattr(self, name) for name in OWN}
        written = {name: YES[0] if value is True else value for name, value in own.items()}
        return self.query.to_params() | {name: [text] for name, text in written.items() if text}

    def rows(self, now: datetime, reader: Anyone) -> QuerySet[Incident]:
        window = self.query.window_at(now)
        chosen = Q(opened_at__lt=window.end) & (OPEN | Q(closed_at__gte=window.start))
        for name in ("scope", "type"):
            if value := getattr(self, name):
                chosen &= Q((name, value))
        if self.open:
            chosen &= OPEN if self.open == OPEN_OR_NOT[0] else ~OPEN
        if self.size:
            chosen &= Q(sizes__contains=[self.size])
        if self.mine:
            own = Q(assignee=reader.pk) | Q(acknowledged_by=reader.pk)
            chosen &= own if reader.is_authenticated else Q(pk=None)
        if self.unacknowledged:
            chosen &= Q(acknowledged_at=None, assignee=None)
        return incidents.rows().filter(chosen, of_sites(self.query.filters))

    def describe(self) -> str:
        """Describe the chosen incidents as a sentence without a full stop."""
        type_words = {"": "", "silent": "without new results"}.get(self.type, self.type)
        parts = [
            f"Incidents of {SCOPE_WORDS[Incident.Scope(self.scope)]}"
            if self.scope
            else "Incidents",
            self.query.window_words(),
            type_words,
            f"with {self.size} files" if self.size else "",
            OPEN_WORDS[self.open] if self.open else "",
            "mine" if self.mine else "",
            "unacknowledged" if self.unacknowledged else "",
            *(each.words() for each in self.query.filters),
        ]
        return ", ".join(filter(None, parts))


def of_sites(filters: Sequence[Filter]) -> Q:
    """Return the condition that an incident is of a chosen site or the grid, not of others."""
    present = [each.value for each in filters if not each.exclude]
    absent = [each.value for each in filters if each.exclude]
    chosen = incidents.of_sites(present) | OF_GRID if present else Q()
    return chosen & ~incidents.of_sites(absent) if absent else chosen
