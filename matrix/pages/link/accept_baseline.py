"""The decision that accepts the current rate of a link as its new baseline."""

import math
from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils import timezone

from matrix.answers.incidents.link_targets import LinkTargets
from matrix.answers.link import report
from matrix.answers.link.report import Question
from matrix.http.page_rights import for_whom, holders
from matrix.pages.link.page import LinkPage
from matrix.store import notes
from sonar.alerting import decisions
from sonar.alerting.decisions import DecisionError


@for_whom(POST=holders(decisions.RIGHT, notes.sites_of))
def accept_baseline(request: HttpRequest, source: str, destination: str) -> HttpResponse:
    """Accept the current rate of a link with a size class as its baseline."""
    page, now = LinkPage.read(QueryDict(), source=source, destination=destination), timezone.now()
    question = Question(page.source, page.destination, page.query)
    directions = [part.there for part in report.answer(question, now).classes]
    targets = LinkTargets.read(directions, now)
    size = request.POST.get("size", "")
    classes = {each.size_class.name: each for each in targets.classes}
    errors = {}
    if size not in classes:
        errors["size"] = [f"size “{size[:80]}” is not known: use {', '.join(classes)}."]
    elif math.isnan(classes[size].now):
        sentence = f"The link has no current rate for {size} files. Choose another size class."
        errors["size"] = [sentence]
    else:
        chosen, user = classes[size], cast(User, request.user)
        whose = page.source.id, page.destination.id, chosen.size_class.id
        try:
            decisions.accept_link(whose, chosen.now, user, now, request.POST.get("note", ""))
        except DecisionError as error:
            errors[error.parameter] = [str(error)]
    if errors:
        return render(request, "400.html", {"errors": errors}, status=400)
    return HttpResponseRedirect(f"{page.path()}#target")
