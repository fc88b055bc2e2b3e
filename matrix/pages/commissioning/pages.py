"""What the pages of commissioning show."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from django.http import Http404, QueryDict

from matrix.answers.commissioning import overview, question, standing
from matrix.answers.commissioning.overview import Cell, Overview
from matrix.answers.commissioning.question import Chosen, asked_words, ends_words, set_of
from matrix.answers.commissioning.records import LinkRecords
from matrix.answers.commissioning.standing import STATES, label
from matrix.answers.words.names import short_names_of
from matrix.pages.base import Page, Params
from matrix.pages.commissioning.set_form import PRESETS, CriteriaSetForm
from matrix.pages.parts.links import ends_among, registered
from matrix.pages.parts.share import Share
from matrix.query.addresses import address, link_path, link_url
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.data_version import DataVersion
from sonar.models import CommissioningRecord, CriteriaSet
from sonar.notation.enumeration import either
from sonar.notation.units import format_count
from sonar.people import roles
from sonar.people.roles import Anyone

ADD, CHANGE, DELETE = (f"sonar.{verb}_criteriaset" for verb in ("add", "change", "delete"))


@dataclass(frozen=True)
class SetsPage(Page):
    template: ClassVar[str] = "commissioning/list.html"
    route: ClassVar[str] = "commissioning"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """List all sets. One SQL query, beside rights."""
        sets = []
        for row in CriteriaSet.objects.select_related("size_class", "search"):
            # Up to when its links were judged, and how many are in each state.
            judged = None
            if search := getattr(row, "search", None):
                counts = [(label(name), search.counts.get(name, 0)) for name in STATES]
                judged = {"end": search.end, "counts": counts}
            sets.append((row, ends_words(row), asked_words(row), judged))
        return {
            "sets": sets,
            "states": [label(name) for name in STATES],
            "may_add": roles.may(reader, ADD),
            "share": Share.of(address("api-commissioning")),
        }


@dataclass(frozen=True)
class SetPage(Page):
    """A set with its links, or those of them that are ``chosen``."""

    template: ClassVar[str] = "commissioning/set.html"
    route: ClassVar[str] = "criteria-set"

    row: CriteriaSet
    chosen: Chosen

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(set_of(path["criteria"]), question.read(params))

    def path(self) -> str:
        return address(self.route, self.row.name)

    def params(self) -> Params:
        return question.to_params(self.chosen)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        now_standing = standing.read(self.row, self.chosen)
        table = overview.of(now_standing)
        places = [*now_standing.sources, *now_standing.destinations]
        counts = now_standing.counts
        api_path = address("api-commissioning-set", self.row.name)
        return {
            "row": self.row,
            "ends": ends_words(self.row),
            "asked": asked_words(self.row),
            "search": now_standing.search,
            "counts": [f"{format_count(number)} {label(name)}" for name, number in counts.items()],
            "count": sum(counts.values()),
            "table": table,
            "short": short_names_of(places) if table.by == "endpoint" else {},
            "rows": [
                (
                    name,
                    [
                        (column, cell, self.cell_url(table, cell))
                        for column, cell in zip(table.columns, cells, strict=True)
                    ],
                )
                for name, cells in table.rows
            ],
            "whole_url": SetPage(self.row, {}).url() if self.params() else "",
            "may_change": roles.may(reader, CHANGE),
            "may_delete": roles.may(reader, DELETE),
            "records": self.row.records.count() if roles.may(reader, DELETE) else 0,
            "share": Share.of(self.url().replace(self.path(), api_path)),
        }

    def cell_url(self, table: Overview, cell: Cell | None) -> str:
        """Return where a cell leads: to the record of its link, or to the links that it has."""
        if cell is None:
            return ""
        link = cell.links[0]
        if table.by == "endpoint":
            return RecordPage(self.row, link.source, link.destination).url()
        ends = {"source": link.source, "destination": link.destination}
        values = {end: str(place.value(table.by)) for end, place in ends.items()}
        if not all(values.values()):
            return ""
        return SetPage(self.row, {end: {table.by: [name]} for end, name in values.items()}).url()


@dataclass(frozen=True)
class RecordPage(Page):
    """What a link had to reach in a set and what it did, to be shown to others."""

    template: ClassVar[str] = "commissioning/record.html"
    route: ClassVar[str] = "commissioning-record"

    row: CriteriaSet
    source: EndpointInfo
    destination: EndpointInfo

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        ends = ends_among(registered(), path["source"], path["destination"])
        return cls(set_of(path["criteria"]), *ends)

    def path(self) -> str:
        return address(self.route, self.row.name, self.source.name, self.destination.name)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        link = LinkRecords.read(self.row, self.source, self.destination)
        if link is None:
            raise Http404(f"This link is not part of the criteria set {self.row.name}.")
        return {
            "link": link,
            "row": self.row,
            "link_url": link_path(self.source.name, self.destination.name),
            "records": [(record, self.results_url(record.row)) for record in link.records],
            "simulated": self.source.simulated or self.destination.simulated,
            "share": Share(
                address(
                    "api-commissioning-record",
                    *(self.row.name, self.source.name, self.destination.name),
                )
            ),
        }

    def results_url(self, record: CommissioningRecord) -> str:
        """Return the page of the link with the results of the period before it passed."""
        start = record.passed_at - timedelta(hours=record.required["period_hours"])
        size = record.required["size"]
        query = MatrixQuery(size=size, window="", start=start, end=record.passed_at)
        return link_url(self.source.name, self.destination.name, query)


@dataclass(frozen=True)
class AddSetPage(Page):
    """The form of a new set, filled with one that the field knows if that is wanted."""

    template: ClassVar[str] = "commissioning/form.html"
    route: ClassVar[str] = "add-criteria-set"
    of_primary: ClassVar[bool] = True

    preset: str = ""

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params, ["preset"])
        preset = params.get("preset", "")
        if preset and preset not in PRESETS:
            sentence = f"preset “{preset[:80]}” is not known. Use {either([*PRESETS])}."
            raise BadQueryError({"preset": [sentence]})
        return cls(preset)

    def params(self) -> Params:
        return {"preset": [self.preset]} if self.preset else {}

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            "heading": "Add criteria set",
            "form": CriteriaSetForm(CriteriaSet(), preset=self.preset),
            "presets": [(name, AddSetPage(name).url(), name == self.preset) for name in PRESETS],
        }


@dataclass(frozen=True)
class ChangeSetPage(Page):
    template: ClassVar[str] = "commissioning/form.html"
    route: ClassVar[str] = "change-criteria-set"
    of_primary: ClassVar[bool] = True

    row: CriteriaSet

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(set_of(path["criteria"]))

    def path(self) -> str:
        return address(self.route, self.row.name)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        heading = f"Edit criteria set {self.row.name}"
        return {"heading": heading, "row": self.row, "form": CriteriaSetForm(self.row)}
