"""What people decide about the rate of one link: this is the new normal."""

import math
from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils import timezone

from matrix.answers.incidents.link_expectations import ClassExpectation, LinkExpectations
from matrix.answers.link import report
from matrix.answers.link.report import Question
from matrix.http.page_rights import for_whom, holders
from matrix.pages.link.page import LinkPage
from matrix.store import notes
from sonar.alerting import decisions
from sonar.alerting.decisions import DecisionError


@for_whom(POST=holders(decisions.RIGHT, notes.sites_of))
def accept_rate(request: HttpRequest, source: str, destination: str) -> HttpResponse:
    """Take the rate that a link has now with a size class for what is usual of it."""
    page, now = LinkPage.read(QueryDict(), source=source, destination=destination), timezone.now()
    question = Question(page.source, page.destination, page.query)
    directions = [part.there for part in report.answer(question, now).classes]
    expected = LinkExpectations.read(directions, now)
    try:
        chosen = acceptable(expected, request.POST.get("size", ""))
        whose = page.source.id, page.destination.id, chosen.size_class.id
        user, note = cast(User, request.user), request.POST.get("note", "")
        decisions.accept_link(whose, chosen.now, user, now, note)
    except DecisionError as error:
        errors = {"errors": {error.parameter: [str(error)]}}
        return render(request, "400.html", errors, status=400)
    return HttpResponseRedirect(f"{page.path()}#expected")


def acceptable(expected: LinkExpectations, size: str) -> ClassExpectation:
    """Return what is expected with a size class; raise DecisionError if it has no rate now."""
    classes = {each.size_class.name: each for each in expected.classes}
    if size not in classes:
        sentence = f"size “{size[:80]}” is not known: use {', '.join(classes)}."
        raise DecisionError("size", sentence)
    if math.isnan(classes[size].now):
        sentence = f"The link has no rate now with {size} files, so there is none to accept."
        raise DecisionError("size", sentence)
    return classes[size]
