"""The pages of incidents: all of them, and one with what speaks for it and who is on it."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

import numpy as np
from django.http import Http404, QueryDict
from django.utils.text import capfirst

from matrix.answers.conditions import words as condition_words
from matrix.answers.diagnosis import site_diagnosis
from matrix.answers.diagnosis.site_diagnosis import DiagnosedLink
from matrix.answers.incidents import evidence, ticket, words
from matrix.answers.incidents.evidence import MOST_DRAWN, IncidentEvidence
from matrix.answers.incidents.questions import (
    OPEN_OR_NOT,
    OPEN_WORDS,
    IncidentCursor,
    IncidentsQuestion,
)
from matrix.pages.base import Page, Params, QueryPage
from matrix.pages.incidents.forms import forms_for
from matrix.pages.parts.controls import Choice, bounds_of, kept, window_choices
from matrix.pages.parts.incidents import (
    IncidentLine,
    IncidentsNow,
    names_in_lists,
    with_marks,
)
from matrix.pages.parts.share import Share
from matrix.plots.sparkline import Sparkline, across, sparkline
from matrix.query.addresses import address, link_path, link_url, matrix_url
from matrix.query.filters import Filter
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.samples.quantiles import running_median
from matrix.store import incidents, keyset
from matrix.store.data_version import DataVersion
from matrix.store.incidents import Member
from sonar.alerting import decisions
from sonar.models import Incident, Mesh, SizeClass
from sonar.notation.windows import short_time, unix_ms
from sonar.people.roles import Anyone

PER_PAGE = 50
LEVELS = {
    "link": "links",
    "source": "sources",
    "destination": "destinations",
    "endpoint": "endpoints",
    "site": "sites",
    "grid": "Sonar itself",
}
CONDITIONS = {"failing": "failing", "silent": "without results", "slow": "slow"}
PEOPLE = (
    ("anybody’s", {"mine": False, "unacknowledged": False}),
    ("mine", {"mine": True, "unacknowledged": False}),
    ("nobody’s yet", {"mine": False, "unacknowledged": True}),
)


@dataclass(frozen=True)
class IncidentsPage(QueryPage):
    """``question`` has the query of the page, with what this page alone asks for."""

    template: ClassVar[str] = "incidents/list.html"
    nav = route = "incidents"

    question: IncidentsQuestion
    before: IncidentCursor | None = None

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = dict(params.lists())
        question = IncidentsQuestion.read(lists, ["before"])
        return cls(question.query, question, cursor_of(lists))

    def params(self) -> Params:
        before = {"before": [str(self.before)]} if self.before else {}
        return self.question.replace(query=self.query).to_params() | before

    def asking(self, query: MatrixQuery) -> Self:
        return self.questioning(query=query)

    def questioning(self, **changed: object) -> Self:
        """Return the first page of another question."""
        question = self.question.replace(**changed)
        return dataclasses.replace(self, query=question.query, question=question, before=None)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        question, order = self.question, incidents.ORDER
        after = self.before.values if self.before else None
        page_rows, further = keyset.page(question.rows(now, reader), order, PER_PAGE, after)
        names = names_in_lists()
        lines = list(with_marks(page_rows, now, reader, names))
        first = dataclasses.replace(self, before=None)
        api = address("api-incidents")
        return {
            "heading": question.describe(),
            "incidents_now": IncidentsNow.read(now, reader, names),
            "parts": [
                (title, part)
                for title, part in (
                    ("Open now", [line for line in lines if line.incident.is_open]),
                    ("Closed", [line for line in lines if not line.incident.is_open]),
                )
                if part
            ],
            "further": dataclasses.replace(self, before=IncidentCursor.of(further)).url()
            if further
            else "",
            "first": first.url() if self.before else "",
            "unfiltered": type(self)(MatrixQuery(), IncidentsQuestion(MatrixQuery())).url(),
            "is_filtered": first.params().keys() - {"window", "from", "to"},
            "watched": [] if lines else watched(),
            "share": Share.of(first.url().replace(self.path(), api, 1)),
            **self.controls(now),
        }

    def controls(self, now: datetime) -> dict[str, Any]:
        """Return what can be changed about the question."""
        sizes = SizeClass.objects.values_list("name", flat=True)
        sites = [
            Choice(each.words(), self.asking(self.query.without(each)).url(), True)
            for each in self.query.filters
        ]
        return {
            "states": [self.choice(OPEN_WORDS[value], open=value) for value in ("", *OPEN_OR_NOT)],
            "people": [self.choice(text, **changed) for text, changed in PEOPLE],
            "levels": list(self.choices("level", "anything", LEVELS)),
            "conditions": list(self.choices("condition", "any trouble", CONDITIONS)),
            "sizes": list(self.choices("size", "all sizes", {size: size for size in sizes})),
            "of_words": ", ".join(
                filter(
                    None,
                    (
                        LEVELS.get(self.question.level, "anything"),
                        CONDITIONS.get(self.question.condition),
                        self.question.size,
                    ),
                )
            ),
            "windows": window_choices(self),
            "bounds": bounds_of(self, self.query.window_at(now)),
            "chips": sites,
            "kept": kept(self, ("before", "site")),
        }

    def choices(self, name: str, any_words: str, labels: Mapping[str, str]) -> Iterator[Choice]:
        yield self.choice(any_words, **{name: ""})
        for value, label in labels.items():
            yield self.choice(label, **{name: value})

    def choice(self, label: str, **changed: object) -> Choice:
        """Return a position of a switch; it is chosen if the question is so already."""
        chosen = all(getattr(self.question, name) == value for name, value in changed.items())
        return Choice(label, self.questioning(**changed).url(), chosen)


def cursor_of(params: Mapping[str, Sequence[str]]) -> IncidentCursor | None:
    text = next(iter(params.get("before", ())), "")
    try:
        return IncidentCursor.parse(text) if text else None
    except (ValueError, OverflowError):
        sentence = "before is not a place in the list of incidents: follow a link to it."
        raise BadQueryError({"before": [sentence]}) from None


def watched() -> list[str]:
    """Say which meshes are watched: those that are enabled. One SQL query."""
    return list(Mesh.objects.filter(enabled=True).order_by("name").values_list("name", flat=True))


def incident_of(number: int) -> Incident:
    """Return an incident; raise Http404 with a sentence if there is none."""
    incident = incidents.by_id(number)
    if incident is None:
        raise Http404(f"No incident has the number {number}.")
    return incident


@dataclass(frozen=True)
class IncidentPage(Page):
    template: ClassVar[str] = "incidents/incident.html"
    nav: ClassVar[str] = "incidents"
    # What somebody has just decided is there.
    of_primary: ClassVar[bool] = True

    incident: Incident

    @classmethod
    def read(cls, params: QueryDict, **path: Any) -> Self:  # noqa: ANN401 - a number
        check_names(params)
        return cls(incident_of(path["id"]))

    def path(self) -> str:
        return words.path(self.incident)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        incident = self.incident
        facts = evidence.read(incident, now)
        elsewhere = facts.beside.sentences() if facts.beside else []
        events = incidents.events_of(incident)
        may = decisions.may_decide(reader, incident)
        names = names_in_lists()
        (line,) = with_marks([incident], now, reader, names)
        assessed = IncidentsNow.read(now, reader, names).as_of
        return {
            "short": names,
            "line": line,
            "figures": f"{capfirst(', '.join(words.figures(incident)))}.",
            "subject": condition_words.subject(words.condition_of(incident), names),
            "assessed": assessed,
            "at_it": list(words.at_it(incident, now, reader)),
            "advice": words.advice(incident),
            "facts": facts,
            "links": [link_line(facts, at) for at in range(len(facts.links))],
            "has_rates": any(row.rate for row in facts.links),
            "window_words": window_words(facts),
            "matrix_url": in_matrix(incident),
            "diagnoses": [
                (each, link_path(each.source, each.destination))
                for each in diagnoses_of(facts, now)
            ],
            "failures": [
                (group, address("transfer", group.example.pk)) for group in facts.failures
            ],
            "then": evidence.what_changed(incident, reader),
            "events": [(event, words.event_words(event, reader)) for event in events],
            "parts": [
                IncidentLine.of(each, now, reader, names)
                for each in incidents.rows().filter(merged_into=incident).order_by("id")
            ],
            "work": forms_for(incident, events, reader, now) if may else None,
            "elsewhere": elsewhere,
            "ticket": ticket.text(facts, url=""),
            "share": Share(address("api-incident", incident.pk)),
        }


def diagnoses_of(facts: IncidentEvidence, now: datetime) -> list[DiagnosedLink]:
    """Return what the rules say of the worst links of an open incident."""
    if facts.beside is None:
        return []
    links = facts.beside.links
    pairs = [
        (str(row.source), str(row.destination))
        for row in facts.links
        if row.size_class.name == links.query.size
    ]
    return site_diagnosis.of_pairs(pairs, links, now)


def link_line(facts: IncidentEvidence, at: int) -> dict[str, Any]:
    """Return a link as its row has it, with the picture of its tests if it is one of the worst."""
    row = facts.links[at]
    query = MatrixQuery(size=row.size_class.name)
    return {
        "row": row,
        "url": link_url(str(row.source), str(row.destination), query),
        "picture": picture(facts, row) if at < MOST_DRAWN else None,
    }


def picture(facts: IncidentEvidence, row: Member) -> Sparkline | None:
    """Draw the tests of a link before and since; nothing without any."""
    tests = facts.tests_of(row)
    if not len(tests):
        return None
    median = running_median(tests.started[tests.ok], tests.rates[tests.ok].astype(float))
    usual = float("nan") if row.expected is None else row.expected
    began = across(np.array([unix_ms(row.since)]), facts.window)
    line = sparkline(median, tests.started[~tests.ok], usual, facts.window)
    return dataclasses.replace(line, began=round(float(began[0]), 1))


def window_words(facts: IncidentEvidence) -> str:
    """Say between which times tests are drawn."""
    start, end = short_time(facts.window.start), short_time(facts.window.end)
    return f"{start} to {end} UTC"


def in_matrix(incident: Incident) -> str:
    """Return the matrix of its links, against what is usual."""
    filters = [
        Filter(name, str(value))
        for name, value in (
            ("source_endpoint", incident.source),
            ("destination_endpoint", incident.destination),
            ("site", incident.site),
        )
        if value
    ]
    if incident.level == Incident.Level.ENDPOINT:
        filters = [Filter("endpoint", str(incident.source))]
    sizes = list(incident.sizes) or [MatrixQuery.size]
    return matrix_url(MatrixQuery(size=sizes[-1], stat="vs_usual", filters=tuple(filters)))
