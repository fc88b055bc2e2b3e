"""The page of all declared downtimes: now, coming and past, of all sites and sources."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import QueryDict

from matrix.answers.table.table_query import read_choice
from matrix.pages.base import Page, Params
from matrix.pages.parts.controls import Choice
from matrix.pages.parts.pager import page_number, pager, shown_words
from matrix.pages.parts.share import Share
from matrix.query.addresses import address
from matrix.query.forms import BadQueryError, check_names
from matrix.store.data_version import DataVersion
from sonar.models import Downtime
from sonar.models.downtimes import Origin
from sonar.notation.units import format_count
from sonar.people.roles import Anyone

MOST_LISTED = 100
# What is next comes first, and what is over last.
ORDERS = {"now": ("ends_at", "id"), "coming": ("starts_at", "id"), "past": ("-ends_at", "-id")}
SOURCES = {"": "all sources", **dict(Origin.choices)}


@dataclass(frozen=True)
class DowntimesPage(Page):
    template: ClassVar[str] = "downtimes.html"
    route: ClassVar[str] = "downtimes"

    when: str = "now"
    source: str = ""
    number: int = 1

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params, ["when", "source", "page"])
        values = {"when": params.get("when") or cls.when, "source": params.get("source", "")}
        for name, allowed in (("when", ORDERS), ("source", SOURCES)):
            try:
                read_choice([*filter(None, allowed)], name, values[name])
            except ValueError as error:
                raise BadQueryError({name: [str(error)]}) from error
        return cls(values["when"], values["source"], page_number(params))

    def params(self) -> Params:
        values = {"when": self.when, "source": self.source, "page": str(self.number)}
        usual = {"when": "now", "source": "", "page": "1"}
        return {name: [value] for name, value in values.items() if value != usual[name]}

    def changed(self, **changes: Any) -> str:  # noqa: ANN401 - of any field
        """Return the address of the same page with something changed, from its first page on."""
        return dataclasses.replace(self, **{"number": 1, **changes}).url()

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Show a page of them; one beyond the last is the last. Three SQL queries."""
        rows = Downtime.objects.filter(**({"origin": self.source} if self.source else {}))
        within = {
            "now": Q(starts_at__lte=now, ends_at__gt=now),
            "coming": Q(starts_at__gt=now),
            "past": Q(ends_at__lte=now),
        }
        counts = rows.aggregate(**{name: Count("id", filter=within[name]) for name in ORDERS})
        listed = rows.filter(within[self.when]).order_by(*ORDERS[self.when])
        at = Paginator(listed.select_related("site", "endpoint__site"), MOST_LISTED)
        shown = at.get_page(self.number)
        return {
            "downtimes": [(row, row.site or (row.endpoint and row.endpoint.site)) for row in shown],
            "periods": [
                Choice(f"{name} {format_count(counts[name])}", self.changed(when=name), chosen)
                for name in ORDERS
                for chosen in [name == self.when]
            ],
            "sources": [
                Choice(words, self.changed(source=name), name == self.source)
                for name, words in SOURCES.items()
            ],
            "shown": shown_words(shown, "row", "rows"),
            "share": Share.of(address("api-downtimes")),
            **pager(shown, lambda number: self.changed(number=number)),
        }
