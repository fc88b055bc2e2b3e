"""The Aliases page: operators assign an unknown alias to a site or an endpoint, or dismiss it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone

from matrix.answers.aliases import assignable_places, read_aliases
from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.parts.share import Share
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from matrix.store.data_version import DataVersion
from sonar.models import Alias, Endpoint, Site, UnknownAlias
from sonar.models.aliases import LONGEST_NAME, LONGEST_SOURCE, AliasKind
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry import aliases
from sonar.registry.aliases import Target

SEE = "sonar.view_unknownalias"
ASSIGN = "sonar.add_alias"


class AliasForm(forms.Form):
    kind = forms.ChoiceField(choices=AliasKind.choices)
    name = forms.CharField(max_length=LONGEST_NAME, strip=False)


class AssignForm(AliasForm):
    place = forms.CharField(
        max_length=80, error_messages={"required": "Enter a site or an endpoint."}
    )

    def clean_place(self) -> Target:
        """Find it. Where a site and an endpoint share a name, RSEs are endpoints, others sites."""
        name, kind = self.cleaned_data["place"], self.cleaned_data.get("kind")
        models: list[type[Site] | type[Endpoint]] = [Site, Endpoint]
        for model in reversed(models) if kind == AliasKind.RSE else models:
            if row := model._default_manager.filter(name=name).first():
                return row
        raise ValidationError(f"No site or endpoint is named “{name}”.")


class DismissForm(AliasForm):
    source = forms.CharField(max_length=LONGEST_SOURCE)
    dismissed = forms.BooleanField(required=False)


@dataclass(frozen=True)
class AliasesPage(Page):
    template: ClassVar[str] = "aliases.html"
    route: ClassVar[str] = "aliases"
    of_primary: ClassVar[bool] = True

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        may_assign = roles.may(reader, ASSIGN)
        return {
            "aliases": read_aliases(),
            "places": assignable_places() if may_assign else (),
            "may_assign": may_assign,
            "form": None,
            "share": Share.of(address("api-aliases")),
        }


@for_whom(GET=holders(SEE), POST=holders(ASSIGN))
def list_aliases(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return cast(HttpResponse, show(request, AliasesPage, {}))
    form = AssignForm(request.POST)
    if not form.is_valid():
        return refused(request, form)
    kind, name, target = (form.cleaned_data[field] for field in ("kind", "name", "place"))
    try:
        with transaction.atomic():
            alias = aliases.assign(kind, name, target)
            word = target._meta.verbose_name
            sentence = f"{name} is now an alias of the {word} {target.name}."
            keep_in_the_log(request, alias, ADDITION, sentence)
    except ValidationError as error:
        form.add_error(None, error.messages[0])
        return refused(request, form)
    return back(request, sentence)


@for_whom(POST=holders(ASSIGN))
def dismiss_alias(request: HttpRequest) -> HttpResponse:
    """Take an alias off the list of unknown ones, or put it back."""
    form = DismissForm(request.POST)
    if not form.is_valid():
        return refused(request, form)
    chosen = {field: form.cleaned_data[field] for field in ("kind", "name", "source")}
    with transaction.atomic():
        row = UnknownAlias.objects.select_for_update().filter(**chosen).first()
        if row is None:
            gone = "This alias was already assigned or dismissed. Reload the list."
            raise Http404(gone)
        row.dismissed = form.cleaned_data["dismissed"]
        row.save(update_fields=["dismissed"])
        sentence = (
            f"Dismissed {row.name}. It will not be listed again."
            if row.dismissed
            else f"{row.name} is listed as unknown again."
        )
        keep_in_the_log(request, row, CHANGE, sentence)
    return back(request, sentence)


@for_whom(POST=holders("sonar.delete_alias"))
def remove_alias(request: HttpRequest) -> HttpResponse:
    form = AliasForm(request.POST)
    if not form.is_valid():
        return refused(request, form)
    row = Alias.objects.filter(**form.cleaned_data).first()
    if row is None:
        raise Http404("This alias has already been removed.")
    sentence = f"Removed the alias {row.name} of {row.target}."
    with transaction.atomic():
        keep_in_the_log(request, row, DELETION, sentence)
        row.delete()
    return back(request, sentence)


def refused(request: HttpRequest, form: AliasForm) -> HttpResponse:
    return rendered(request, AliasesPage(), timezone.now(), None, status=400, form=form)


def back(request: HttpRequest, sentence: str) -> HttpResponse:
    messages.success(request, sentence)
    return HttpResponseRedirect(AliasesPage().path())
