"""The page of topology: operators upload what sources say, look at it, and apply it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from matrix.http.page_rights import accepting, for_whom, holders
from matrix.pages.base import Page
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.views import rendered, show
from matrix.store.data_version import DataVersion
from sonar.models import Endpoint, Mesh, Proposal
from sonar.notation.enumeration import first_twice
from sonar.people.roles import Anyone
from sonar.registry.topology import catalogue, proposals
from sonar.registry.topology.describing import sections, summary
from sonar.registry.topology.model import Topology
from sonar.registry.topology.proposals import OutdatedError
from sonar.registry.topology.reading import TopologyError

REGISTER = "sonar.add_endpoint"
# As much as the API takes, and a proxy lets pass (docs/security.md).
MOST_UPLOADED_BYTES = 8_000_000


class ApplyForm(forms.Form):
    """Which proposal is meant, as somebody looked at it."""

    source = forms.CharField(max_length=40)
    digest = forms.RegexField("^[0-9a-f]{64}$")
    join = forms.BooleanField(required=False)
    retire = forms.BooleanField(required=False)


class FilesInput(forms.FileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or several files of different names."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> "list[UploadedFile[bytes]]":  # noqa: ANN401 - Django's
        files = [super(FilesField, self).clean(each, initial) for each in data or [None]]
        if twice := first_twice(str(file.name) for file in files):
            raise ValidationError(f"Two documents are named {twice}. Rename one of them.")
        return files


class DocumentsForm(forms.Form):
    """What a source says, as files; `topology` is that once the form is valid."""

    source = forms.ChoiceField(
        label="Source",
        choices=[(name, name) for name in catalogue.SOURCES],
        widget=forms.Select({"class": "form-select form-select-sm"}),
    )
    documents = FilesField(
        label="Documents (JSON)",
        widget=FilesInput({"class": "form-control form-control-sm", "accept": ".json"}),
        error_messages={
            "required": "Choose the files that contain the responses of the topology source."
        },
    )
    topology: Topology

    def clean(self) -> dict[str, Any]:
        chosen = super().clean() or {}
        if not self.errors:
            contents = {file.name: file.read() for file in chosen["documents"]}
            try:
                self.topology = catalogue.read_contents(chosen["source"], contents)
            except TopologyError as error:
                self.add_error("documents", error.problems)
        return chosen


@dataclass(frozen=True)
class TopologyPage(Page):
    template: ClassVar[str] = "topology.html"
    route: ClassVar[str] = "topology"
    of_primary: ClassVar[bool] = True

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        compared = [proposals.compared(row) for row in Proposal.objects.all()]
        # Whether endpoints are in use and none is tested.
        has_mesh = Mesh.objects.filter(enabled=True).exists()
        lacks_mesh = not has_mesh and Endpoint.objects.in_use().exists()
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
            "form": DocumentsForm(),
            "answers": catalogue.ANSWERS,
            "lacks_mesh": lacks_mesh,
        }


@for_whom(GET=holders(REGISTER), POST=holders(REGISTER))
def topology(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return cast(HttpResponse, show(request, TopologyPage, {}))
    form = ApplyForm(request.POST)
    if not form.is_valid():
        return refused(request, "The form is incomplete. Reload the page.", status=400)
    chosen = form.cleaned_data
    try:
        changes = proposals.accept(
            chosen["source"], chosen["digest"], joins=chosen["join"], retires=chosen["retire"]
        )
    except OutdatedError:
        sentence = "The registry or the proposal has changed. Review the changes again."
        return refused(request, sentence, status=409)
    sentence = f"Applied. {summary(changes)}."
    row = Proposal.objects.get(source=chosen["source"])
    keep_in_the_log(request, row, CHANGE, sentence)
    messages.success(request, sentence)
    return HttpResponseRedirect(TopologyPage().path())


@accepting(MOST_UPLOADED_BYTES)
@for_whom(POST=holders(REGISTER))
def propose_topology(request: HttpRequest) -> HttpResponse:
    """Keep what somebody uploads as the proposal of its source; nothing is applied."""
    form, page, now = DocumentsForm(request.POST, request.FILES), TopologyPage(), timezone.now()
    if not form.is_valid():
        return rendered(request, page, now, None, status=400, form=form)
    names = [file.name for file in form.cleaned_data["documents"]]
    proposals.keep(form.topology, names, now)
    return HttpResponseRedirect(f"{page.path()}#of-{form.topology.source}")


def refused(request: HttpRequest, sentence: str, status: int) -> HttpResponse:
    page, now = TopologyPage(), timezone.now()
    return rendered(request, page, now, None, status=status, refusal=sentence)
