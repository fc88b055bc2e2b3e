"""The page of topology: what sources propose for the registry, for operators to apply."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page
from matrix.pages.views import rendered, show
from matrix.store.data_version import DataVersion
from sonar.models import Proposal
from sonar.people.roles import Anyone
from sonar.registry.topology import proposals
from sonar.registry.topology.describing import sections, summary
from sonar.registry.topology.proposals import OutdatedError

REGISTER = "sonar.add_endpoint"


class ApplyForm(forms.Form):
    """Which proposal is meant, as somebody looked at it."""

    source = forms.CharField(max_length=40)
    digest = forms.RegexField("^[0-9a-f]{64}$")
    join = forms.BooleanField(required=False)
    retire = forms.BooleanField(required=False)


@dataclass(frozen=True)
class TopologyPage(Page):
    template: ClassVar[str] = "topology.html"
    route: ClassVar[str] = "topology"
    nav: ClassVar[str] = "operations"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        compared = [proposals.compared(row) for row in Proposal.objects.all()]
        return {
            "compared": [
                {
                    "proposal": row.proposal,
                    "places": row.proposal.places.splitlines(),
                    "digest": row.digest,
                    "changes": row.changes,
                    "summary": summary(row.changes),
                    "sections": sections(row.changes),
                }
                for row in compared
            ],
            "refusal": "",
        }


@for_whom(GET=holders(REGISTER), POST=holders(REGISTER))
def topology(request: HttpRequest) -> HttpResponse:
    """Show the proposals, or apply one."""
    if request.method != "POST":
        return cast(HttpResponse, show(request, TopologyPage, {}))
    form = ApplyForm(request.POST)
    if not form.is_valid():
        return refused(request, "The form is not complete: look at the page again.", status=400)
    chosen = form.cleaned_data
    try:
        changes = proposals.accept(
            chosen["source"], chosen["digest"], joins=chosen["join"], retires=chosen["retire"]
        )
    except OutdatedError:
        sentence = "The registry or the proposal has changed meanwhile: look at it again."
        return refused(request, sentence, status=409)
    sentence = f"Applied. {summary(changes)}."
    row = Proposal.objects.get(source=chosen["source"])
    user = cast(User, request.user)
    LogEntry.objects.log_actions(user.pk, [row], CHANGE, sentence, single_object=True)
    messages.success(request, sentence)
    return HttpResponseRedirect(TopologyPage().path())


def refused(request: HttpRequest, sentence: str, status: int) -> HttpResponse:
    page, now = TopologyPage(), timezone.now()
    return rendered(request, page, now, None, status=status, refusal=sentence)
