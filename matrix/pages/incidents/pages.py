"""The list of incidents, and the page of one incident with its evidence and decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.text import capfirst

from matrix.answers.conditions import words as condition_words
from matrix.answers.diagnosis import site_diagnosis
from matrix.answers.diagnosis.site_diagnosis import DiagnosedLink
from matrix.answers.incidents import evidence, words
from matrix.answers.incidents.evidence import MOST_DRAWN, IncidentEvidence
from matrix.answers.incidents.questions import (
    OPEN_OR_NOT,
    OPEN_WORDS,
    IncidentCursor,
    IncidentsQuestion,
)
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.base import Page
from matrix.pages.events import QuestionPage
from matrix.pages.parts.controls import Choice, bounds_of, kept, window_choices
from matrix.pages.parts.incidents import IncidentLine, IncidentsNow, names_in_lists, with_marks
from matrix.pages.parts.share import Share
from matrix.pages.site.work_forms import SMALL, UtcField
from matrix.pages.views import rendered, show
from matrix.plots.sparkline import Sparkline, across, sparkline
from matrix.query.addresses import address, link_path, link_url, matrix_url
from matrix.query.filters import Filter
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.samples.quantiles import running_median
from matrix.store import incidents, keyset
from matrix.store.data_version import DataVersion
from matrix.store.incidents import Member
from sonar.alerting import decisions
from sonar.alerting.decisions import LONGEST_TEXT, RIGHT, DecisionError, DecisionRequest
from sonar.alerting.incidents import lock
from sonar.alerting.subjects import sites_of
from sonar.models import Incident, IncidentEvent, Mesh, SizeClass
from sonar.notation.enumeration import not_allowed
from sonar.notation.windows import parse_time, short_time, unix_ms
from sonar.people import roles
from sonar.people.roles import Anyone

PER_PAGE = 50
SCOPES = {
    "link": "links",
    "source": "sources",
    "destination": "destinations",
    "endpoint": "endpoints",
    "site": "sites",
    "grid": "Sonar itself",
}
TYPES = {"failing": "failing", "silent": "without results", "slow": "slow"}
PEOPLE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("all", {"mine": False, "unacknowledged": False}),
    ("mine", {"mine": True, "unacknowledged": False}),
    ("unacknowledged", {"mine": False, "unacknowledged": True}),
)


@dataclass(frozen=True)
class IncidentsPage(QuestionPage[IncidentsQuestion, IncidentCursor]):
    template: ClassVar[str] = "incidents/list.html"
    route = "incidents"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        lists = dict(params.lists())
        return cls.of(IncidentsQuestion.read(lists, ["before"]), lists, IncidentCursor.parse)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        question, after = self.question, self.before.values if self.before else None
        chosen = question.rows(now, reader)
        page_rows, further = keyset.page(chosen, incidents.ORDER, PER_PAGE, after)
        names = names_in_lists()
        lines = list(with_marks(page_rows, now, reader, names))
        parts = {
            "Open now": [line for line in lines if line.incident.is_open],
            "Closed": [line for line in lines if not line.incident.is_open],
        }
        first = replace(self, before=None).params()
        watched = Mesh.objects.filter(enabled=True).order_by("name").values_list("name", flat=True)
        return {
            "heading": question.describe(),
            "incidents_now": IncidentsNow.read(now, reader, names),
            "parts": [(title, part) for title, part in parts.items() if part],
            "unfiltered": type(self)(MatrixQuery(), IncidentsQuestion(MatrixQuery())).url(),
            "is_filtered": first.keys() - {"window", "from", "to"},
            "watched": [] if lines else list(watched),
            **self.other_pages(IncidentCursor.of(further) if further else None),
            **self.controls(now),
        }

    def controls(self, now: datetime) -> dict[str, Any]:
        sizes = SizeClass.objects.values_list("name", flat=True)
        scope, type_ = SCOPES.get(self.question.scope), TYPES.get(self.question.type)
        words = (scope or "anything", type_, self.question.size)
        return {
            "states": [self.choice(OPEN_WORDS[value], open=value) for value in ("", *OPEN_OR_NOT)],
            "people": [self.choice(text, **changed) for text, changed in PEOPLE],
            "scopes": self.choices("scope", {"": "anything"} | SCOPES),
            "types": self.choices("type", {"": "any condition"} | TYPES),
            "sizes": self.choices("size", {"": "all sizes"} | {size: size for size in sizes}),
            "of_words": ", ".join(filter(None, words)),
            "windows": window_choices(self),
            "bounds": bounds_of(self, self.query.window_at(now)),
            "chips": [
                Choice(each.words(), self.asking(self.query.without(each)).url(), True)
                for each in self.query.filters
            ],
            "kept": kept(self, ("before", "site")),
        }

    def choices(self, name: str, labels: Mapping[str, str]) -> list[Choice]:
        return [self.choice(label, **{name: value}) for value, label in labels.items()]


def incident_of(number: int) -> Incident:
    """Return the incident with this number; raise Http404 if none exists."""
    incident = incidents.by_id(number)
    if incident is None:
        raise Http404(f"Incident {number} does not exist.")
    return incident


# Times from now on that are sent twice differ by less.
TWICE = timedelta(minutes=1)
HOURS = {"1": "1 hour", "4": "4 hours", "24": "1 day", "72": "3 days", "168": "7 days"}
UNTIL, TYPED = "until", "until a time you enter"


class DecisionWords(NamedTuple):
    """``title`` opens a form, ``button`` sends it, ``hint`` explains the effect.

    ``label`` is the label of its text; ``required`` is the error if that is empty but must not be.
    """

    title: str
    button: str
    hint: str = ""
    label: str = "Note (optional)"
    required: str = ""


DECISIONS = {
    "acknowledge": DecisionWords("Acknowledge…", "Acknowledge incident"),
    "assign": DecisionWords("Assign…", "Assign to this account"),
    "mute": DecisionWords(
        "Mute…",
        "Mute incident",
        "Sonar sends no notifications until the selected time, unless the incident gets worse.",
    ),
    "unmute": DecisionWords("Unmute…", "Unmute incident"),
    "note": DecisionWords(
        "Add note…",
        "Add note",
        "The note is visible to everyone who can open this page. Do not include server addresses.",
        "Note",
        "The note is empty. Enter the text of the note.",
    ),
    "accept": DecisionWords(
        "Accept as new baseline…",
        "Accept as new baseline",
        "The current rates of the affected links become their baselines. "
        "Sonar then closes the incident.",
        "Reason",
        "The reason is empty. Explain why the current rate is the new baseline.",
    ),
}


class DecisionForm(forms.Form):
    """A decision; ``last`` is the newest event on the sender's page, to ignore a repeated form."""

    text = forms.CharField(
        max_length=LONGEST_TEXT, widget=forms.Textarea({"class": SMALL, "rows": 2, "cols": 60})
    )
    last = forms.IntegerField(widget=forms.HiddenInput, min_value=0, required=False)

    def __init__(
        self, decision: str, last: int, now: datetime, data: QueryDict | None = None
    ) -> None:
        super().__init__(data, auto_id=f"{decision}-%s", initial={"last": last})
        self.decision, self.now, self.words = decision, now, DECISIONS[decision]
        text = self.fields["text"]
        text.label, text.required = self.words.label, bool(self.words.required)
        text.error_messages["required"] = self.words.required

    def choice(self, user: Anyone) -> DecisionRequest:
        said, assignee = self.cleaned_data, self.cleaned_data.get("assignee", "")
        if "me" in self.data:
            assignee = user.get_username()
        elif "nobody" in self.data:
            assignee = ""
        return DecisionRequest(self.decision, said["text"], assignee, said.get("until"))


class AssigneeForm(DecisionForm):
    """The buttons `me` and `nobody` override the field."""

    assignee = forms.CharField(
        label="Account",
        max_length=150,
        required=False,
        widget=forms.TextInput({"class": SMALL, "size": 20}),
    )
    field_order = ("assignee", "text")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("assignee") and self.data.keys().isdisjoint({"me", "nobody"}):
            sentence = (
                "The account field is empty. Enter the name of an account, or press “Unassign "
                "incident”."
            )
            self.add_error("assignee", sentence)
        return cleaned


class MuteForm(DecisionForm):
    length = forms.ChoiceField(
        label="Duration",
        choices=[*HOURS.items(), (UNTIL, TYPED)],
        initial="4",
        error_messages={
            "invalid_choice": "“%(value)s” is not a listed duration. Choose one from the list."
        },
        widget=forms.Select({"class": "form-select form-select-sm"}),
    )
    until = UtcField("End time (UTC)", required=False)
    # A script chooses this length as soon as a time is typed.
    until.widget.attrs["data-chooses"] = f"length={UNTIL}"
    field_order = ("length", "until", "text")

    def clean(self) -> dict[str, Any]:
        """Set `until` from the length or from the time; both together are an error."""
        cleaned = super().clean() or {}
        length, typed = cleaned.get("length"), self.data.get("until", "").strip()
        if length in HOURS and typed:
            self.add_error(
                "until",
                f"“{HOURS[length]}” and “{typed[:40]}” are both set. Choose “{TYPED}”, or clear "
                "this field.",
            )
        elif length in HOURS:
            cleaned["until"] = self.now + timedelta(hours=int(length))
        elif not cleaned.get("until") and not self.has_error("until"):
            sentence = "The end time is empty. Enter a time, such as 2026-11-20 04:00."
            self.add_error("until", sentence)
        return cleaned


FORMS: dict[str, type[DecisionForm]] = {"assign": AssigneeForm, "mute": MuteForm}


def forms_for(
    incident: Incident, events: Sequence[IncidentEvent], now: datetime
) -> dict[str, DecisionForm]:
    """Return the forms of the decisions that are possible now, by their names."""
    last = max((event.pk for event in events), default=0)
    can = {"note": True} | dict.fromkeys(("assign", "mute"), incident.is_open)
    can["acknowledge"] = incident.is_open and incident.acknowledged_at is None
    can["unmute"] = incident.is_open and incident.is_muted(now)
    can["accept"] = incident.is_open and incident.type == Incident.Type.SLOW
    names = [name for name in DECISIONS if can[name]]
    return {name: FORMS.get(name, DecisionForm)(name, last, now) for name in names}


@dataclass(frozen=True)
class IncidentPage(Page):
    template: ClassVar[str] = "incidents/incident.html"
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
        events = incidents.events_of(incident)
        may = roles.may(reader, decisions.RIGHT, sites_of(incident))
        names = names_in_lists()
        notes, changes = evidence.what_changed(incident, reader)
        (line,) = with_marks([incident], now, reader, names)
        condition = words.condition_of(incident)
        figures = [condition_words.since(condition), *condition_words.evidence(condition)]
        beside, diagnoses = facts.beside, list[DiagnosedLink]()
        if beside:
            links = [row for row in facts.links if row.size_class.name == beside.links.query.size]
            ends = [(str(row.source), str(row.destination)) for row in links]
            diagnoses = site_diagnosis.of_pairs(ends, beside.links, now)
        start, end = short_time(facts.window.start), short_time(facts.window.end)
        return {
            "short": names,
            "line": line,
            "figures": f"{capfirst(', '.join(figures))}.",
            "subject": condition_words.subject(condition, names),
            "assessed": IncidentsNow.read(now, reader, names).as_of,
            "assignment": list(words.assignment(incident, now, reader)),
            "advice": words.advice(incident),
            "facts": facts,
            "links": [
                {
                    "row": row,
                    "url": link_url(
                        str(row.source),
                        str(row.destination),
                        MatrixQuery(size=row.size_class.name),
                    ),
                    "picture": picture(facts, row) if at < MOST_DRAWN else None,
                }
                for at, row in enumerate(facts.links)
            ],
            "has_rates": any(row.rate for row in facts.links),
            "window_words": f"{start} to {end} UTC",
            "matrix_url": in_matrix(incident),
            "diagnoses": [(each, link_path(each.source, each.destination)) for each in diagnoses],
            "failures": [
                (group, address("transfer", group.example.pk)) for group in facts.failures
            ],
            "then": {"notes": notes, "changes": changes},
            "events": [(event, words.event_words(event, reader)) for event in events],
            "parts": [
                IncidentLine.of(each, now, reader, names)
                for each in incidents.rows().filter(merged_into=incident).order_by("id")
            ],
            "work": forms_for(incident, events, now) if may else None,
            "elsewhere": beside.sentences() if beside else [],
            "ticket": evidence.Ticket.of(facts),
            "share": Share(address("api-incident", incident.pk)),
        }


def picture(facts: IncidentEvidence, row: Member) -> Sparkline | None:
    """Draw the tests of a link before and since; nothing without any."""
    tests = evidence.tests_of(row, facts.tests)
    if not len(tests):
        return None
    median = running_median(tests.started[tests.ok], tests.rates[tests.ok].astype(float))
    usual = float("nan") if row.baseline is None else row.baseline
    began = across(np.array([unix_ms(row.since)]), facts.window)
    line = sparkline(median, tests.started[~tests.ok], usual, facts.window)
    return replace(line, began=round(float(began[0]), 1))


def in_matrix(incident: Incident) -> str:
    filters = [
        Filter(name, str(value))
        for name, value in (
            ("source_endpoint", incident.source),
            ("destination_endpoint", incident.destination),
            ("site", incident.site),
        )
        if value
    ]
    if incident.scope == Incident.Scope.ENDPOINT:
        filters = [Filter("endpoint", str(incident.source))]
    sizes = list(incident.sizes) or [MatrixQuery.size]
    return matrix_url(MatrixQuery(size=sizes[-1], stat="vs_usual", filters=tuple(filters)))


@for_whom(GET=readers, POST=holders(RIGHT, decisions.sites_of_incident))
def incident(request: HttpRequest, id: int) -> HttpResponseBase:  # noqa: A002 - of the route
    """Show an incident, or take the decision that `decision` names."""
    if request.method != "POST":
        return show(request, IncidentPage, {"id": str(id)})
    name = request.POST.get("decision", "")
    if name not in DECISIONS:
        sentence = f"{not_allowed('decision', name, list(DECISIONS))}."
        return render(request, "400.html", {"errors": {"decision": [sentence]}}, status=400)
    form = FORMS.get(name, DecisionForm)(name, 0, timezone.now(), request.POST)
    return decided(request, incident_of(id), form)


def decided(request: HttpRequest, incident: Incident, form: DecisionForm) -> HttpResponse:
    """Save a decision and redirect to the page, or show the page again with the errors."""
    user, page = cast(User, request.user), IncidentPage(incident)
    try:
        if form.is_valid():
            messages.success(request, keep(incident, user, form))
            return HttpResponseRedirect(page.path())
    except DecisionError as error:
        form.add_error(error.parameter if error.parameter in form.fields else None, str(error))
    current = IncidentPage(incident_of(incident.pk))
    work = forms_for(current.incident, incidents.events_of(current.incident), form.now)
    work |= {form.decision: form}
    return rendered(request, current, form.now, None, status=400, work=work)


@transaction.atomic
def keep(incident: Incident, user: User, form: DecisionForm) -> str:
    """Save the decision of a valid form once; return the confirmation."""
    lock()
    choice, last = form.choice(user), form.cleaned_data["last"] or 0
    # What the same person has decided since what their page showed.
    own = incident.events.filter(pk__gt=last, by=user, type=decisions.EVENT_TYPES[choice.name])
    for event in own.filter(text=choice.text.strip()):
        if choice.until:
            is_same = abs(parse_time(event.values["until"]) - choice.until) < TWICE
        else:
            is_same = event.values.get("assignee", choice.assignee) == choice.assignee
        if is_same:
            return "This decision was already saved. The form was sent twice."
    return words.event_words(decisions.decide(incident, user, form.now, choice), user)
