"""What a page says of its thing: when it was changed last, by whom, and what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

from django.contrib.auth.models import User

from matrix.answers import registry_history
from matrix.answers.registry_history import SEE, HistoryLine
from matrix.query.addresses import address
from sonar.models import Endpoint, HistoryEntry, Site
from sonar.people import roles
from sonar.people.roles import Anyone

KINDS = {
    Site: HistoryEntry.Kind.SITE,
    Endpoint: HistoryEntry.Kind.ENDPOINT,
    User: HistoryEntry.Kind.ACCOUNT,
}


@dataclass(frozen=True)
class LastChange:
    """The newest entry on a thing, and the page with all of them."""

    line: HistoryLine
    url: str

    @classmethod
    def of(
        cls, row: Site | Endpoint | User, reader: Anyone, sites: Sequence[int] = ()
    ) -> Self | None:
        """Return it for who may see it; costs nobody else a query."""
        if not roles.may(reader, SEE, sites):
            return None
        kind = KINDS[type(row)]
        line = registry_history.last_of(kind, row.pk, reader)
        query = urlencode({"kind": kind.value, "name": str(row)})
        return cls(line, f"{address('history')}?{query}") if line else None
