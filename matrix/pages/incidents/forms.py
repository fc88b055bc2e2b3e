"""Forms by which people decide about an incident; each says in its field what cannot be."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from matrix.pages.site.work_forms import SMALL, UtcField
from sonar.alerting.decisions import LONGEST_TEXT, DecisionRequest
from sonar.models import Incident, IncidentEvent
from sonar.people.roles import Anyone

HOURS = {"1": "1 hour", "4": "4 hours", "24": "1 day", "72": "3 days", "168": "7 days"}
UNTIL, WRITTEN = "until", "until the time I write"


def text_field(label: str, sentence: str = "") -> forms.CharField:
    """Return the field of what somebody writes; with a sentence it must not be empty."""
    return forms.CharField(
        label=label,
        max_length=LONGEST_TEXT,
        required=bool(sentence),
        error_messages={"required": sentence},
        widget=forms.Textarea({"class": SMALL, "rows": 2, "cols": 60}),
    )


class DecisionForm(forms.Form):
    """``last`` is the newest event that its sender has seen: who sends it twice decides once.

    ``title`` opens it, ``button`` sends it, ``hint`` says what that means.
    """

    decision: ClassVar[str]
    title: ClassVar[str]
    button: ClassVar[str]
    hint: ClassVar[str] = ""

    text = text_field("Note (optional)")
    last = forms.IntegerField(widget=forms.HiddenInput, min_value=0, required=False)

    def __init__(self, last: int, now: datetime, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id=f"{self.decision}-%s", initial={"last": last})
        self.now = now

    def choice(self, user: Anyone) -> DecisionRequest:
        return DecisionRequest(self.decision, self.cleaned_data["text"], **self.more(user))

    def more(self, user: Anyone) -> dict[str, Any]:
        return {}


class AcknowledgeForm(DecisionForm):
    decision = "acknowledge"
    title = "I have seen it…"
    button = "I have seen it"


class GiveForm(DecisionForm):
    """With `me` or `nobody` it is to be theirs, whatever stands in the field."""

    decision = "assign"
    title = "Give it to…"
    button = "Give it to this account"

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
            self.add_error("assignee", "Write the name of an account, or give it to nobody.")
        return cleaned

    def more(self, user: Anyone) -> dict[str, Any]:
        if "me" in self.data:
            return {"assignee": user.get_username()}
        return {"assignee": "" if "nobody" in self.data else self.cleaned_data["assignee"]}


class MuteForm(DecisionForm):
    decision = "mute"
    title = "Mute…"
    button = "Mute"
    hint = "Nobody is called for it until then, unless it becomes worse."

    length = forms.ChoiceField(
        label="For",
        choices=[*HOURS.items(), (UNTIL, WRITTEN)],
        initial="4",
        error_messages={"invalid_choice": "Choose one of the times."},
        widget=forms.Select({"class": "form-select form-select-sm"}),
    )
    until = UtcField("Until (UTC)", required=False)
    # A script chooses this length as soon as a time is typed.
    until.widget.attrs["data-chooses"] = f"length={UNTIL}"
    field_order = ("length", "until", "text")

    def clean(self) -> dict[str, Any]:
        """Return `until` in any case; a length and a time that were both given are an error."""
        cleaned = super().clean() or {}
        length, typed = cleaned.get("length"), self.data.get("until", "").strip()
        if length in HOURS and typed:
            self.add_error(
                "until",
                f"You chose {HOURS[length]} and wrote {typed[:40]}: choose “{WRITTEN}”, or leave "
                "this field empty.",
            )
        elif length in HOURS:
            cleaned["until"] = self.now + timedelta(hours=int(length))
        elif not cleaned.get("until") and not self.has_error("until"):
            self.add_error("until", "Say until when, like 2026-11-20 04:00 or tomorrow 08:00.")
        return cleaned

    def more(self, user: Anyone) -> dict[str, Any]:
        return {"until": self.cleaned_data["until"]}


class UnmuteForm(DecisionForm):
    decision = "unmute"
    title = "End the mute…"
    button = "End the mute"


class IncidentNoteForm(DecisionForm):
    decision = "note"
    title = "Add a note…"
    button = "Add the note"
    hint = "All who may read this page see it: write no addresses of servers."

    text = text_field("Note", "Write what others should know.")


class AcceptForm(DecisionForm):
    decision = "accept"
    title = "This is the new normal…"
    button = "Take it for normal"
    hint = "From now on its links are expected to keep the rates that they have, and it is closed."

    text = text_field("Why", "Say why this is the new normal.")


FORMS = {
    form.decision: form
    for form in (AcknowledgeForm, GiveForm, MuteForm, UnmuteForm, IncidentNoteForm, AcceptForm)
}


def forms_for(
    incident: Incident, events: Sequence[IncidentEvent], reader: Anyone, now: datetime
) -> dict[str, DecisionForm]:
    last = max((event.pk for event in events), default=0)
    can = {"note": True} | dict.fromkeys(("assign", "mute"), incident.is_open)
    can["acknowledge"] = incident.is_open and incident.acknowledged_at is None
    can["unmute"] = incident.is_open and incident.is_muted(now)
    can["accept"] = incident.is_open and incident.condition == Incident.Condition.SLOW
    return {name: form(last, now) for name, form in FORMS.items() if can[name]}
