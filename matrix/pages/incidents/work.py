"""What people decide on the page of an incident: each is kept once, and told."""

from datetime import timedelta
from typing import cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone

from matrix.answers.incidents import deciding, words
from matrix.answers.incidents.deciding import KINDS
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.incidents.forms import FORMS, DecisionForm, forms_for
from matrix.pages.incidents.pages import IncidentPage, incident_of
from matrix.pages.views import rendered, show
from matrix.store import incidents
from sonar.alerting.decisions import RIGHT, DecisionError
from sonar.alerting.incidents import lock
from sonar.models import Incident
from sonar.notation.enumeration import either
from sonar.notation.windows import parse_time

# Times from now on that are sent twice differ by less.
TWICE = timedelta(minutes=1)


@for_whom(GET=readers, POST=holders(RIGHT, deciding.sites_of))
def incident(request: HttpRequest, id: int) -> HttpResponseBase:  # noqa: A002 - of the route
    """Show an incident, or decide something about it: what `decision` names."""
    if request.method != "POST":
        return show(request, IncidentPage, {"id": str(id)})
    name = request.POST.get("decision", "")
    if name not in FORMS:
        sentence = f"decision “{name}” is not known: use {either(list(FORMS))}."
        return render(request, "400.html", {"errors": {"decision": [sentence]}}, status=400)
    return decided(request, incident_of(id), FORMS[name](0, timezone.now(), request.POST))


def decided(request: HttpRequest, incident: Incident, form: DecisionForm) -> HttpResponse:
    """Keep a decision and lead back, or show the page again with what is wrong."""
    user, page = cast(User, request.user), IncidentPage(incident)
    try:
        if form.is_valid():
            messages.success(request, keep(incident, user, form))
            return HttpResponseRedirect(page.path())
    except DecisionError as error:
        form.add_error(error.parameter if error.parameter in form.fields else None, str(error))
    current = IncidentPage(incident_of(incident.pk))
    work = forms_for(current.incident, incidents.events_of(current.incident), user, form.now)
    work |= {form.decision: form}
    return rendered(request, current, form.now, None, status=400, work=work)


@transaction.atomic
def keep(incident: Incident, user: User, form: DecisionForm) -> str:
    """Decide what a valid form says, unless its sender just has, and say so."""
    lock()
    choice, last = form.choice(user), form.cleaned_data["last"] or 0
    # What the same person has decided since what their page showed.
    own = incident.events.filter(pk__gt=last, by=user, kind=KINDS[choice.name])
    for event in own.filter(text=choice.text.strip()):
        if choice.until:
            is_same = abs(parse_time(event.values["until"]) - choice.until) < TWICE
        else:
            is_same = event.values.get("assignee", choice.assignee) == choice.assignee
        if is_same:
            return "That was kept already: it was sent twice."
    return words.event_words(deciding.decide(incident, user, form.now, choice), user)
