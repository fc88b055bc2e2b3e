"""What operators do with criteria sets: each change is kept, put into the log, and told."""

from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone

from matrix.answers.commissioning.question import set_of
from matrix.http.page_rights import for_whom, holders
from matrix.pages.commissioning import pages
from matrix.pages.commissioning.pages import AddSetPage, ChangeSetPage, SetPage, SetsPage
from matrix.pages.commissioning.set_form import CriteriaSetForm
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.views import rendered, show
from sonar.models import CriteriaSet
from sonar.notation.units import format_span

MEANWHILE = "A criteria set with this name already exists. Choose another name."


@for_whom(GET=holders(pages.ADD), POST=holders(pages.ADD))
def add_criteria_set(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, AddSetPage, {})
    return kept(request, AddSetPage(), CriteriaSet())


@for_whom(GET=holders(pages.CHANGE), POST=holders(pages.CHANGE))
def change_criteria_set(request: HttpRequest, criteria: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, ChangeSetPage, {"criteria": criteria})
    page = ChangeSetPage.read(QueryDict(), criteria=criteria)
    with transaction.atomic():
        return kept(request, page, set_of(criteria, lock=True))


def kept(request: HttpRequest, page: AddSetPage | ChangeSetPage, row: CriteriaSet) -> HttpResponse:
    """Keep a criteria set as a form has it; an existing one is locked by the caller."""
    form, is_new = CriteriaSetForm(row, request.POST), row.pk is None
    if form.is_valid():
        try:
            with transaction.atomic():
                row.save()
                sentence = f"{'Added' if is_new else 'Changed'} criteria set {row.name}."
                keep_in_the_log(request, row, ADDITION if is_new else CHANGE, sentence)
        except IntegrityError:
            form.add_error("name" if is_new else None, MEANWHILE)
    if form.errors:
        return rendered(request, page, timezone.now(), None, status=400, form=form)
    soon = format_span(timedelta(seconds=settings.SONAR_COMMISSIONING_SECONDS))
    next_step = (
        f"Sonar evaluates the links of this set within {soon}, based on the results from the last "
        "90 days."
    )
    messages.success(request, f"{sentence} {next_step}")
    return HttpResponseRedirect(SetPage(row, {}).path())


@for_whom(POST=holders(pages.DELETE))
def delete_criteria_set(request: HttpRequest, criteria: str) -> HttpResponse:
    with transaction.atomic():
        row = set_of(criteria, lock=True)
        sentence = f"Deleted criteria set {row.name} and its records."
        keep_in_the_log(request, row, DELETION, sentence)
        row.delete()
    messages.success(request, sentence)
    return HttpResponseRedirect(SetsPage().path())
