"""The pages of expectations, the form of one, and what is done with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Self

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.forms import BoundField
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone

from matrix.answers.incidents.expectation_counts import ClassRates, LinksNow, counted
from matrix.answers.incidents.expected_words import expects_words, links_words
from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.parts.pager import NumberedPage, pager, shown_words
from matrix.pages.parts.share import Share
from matrix.pages.site.work_forms import CHOICE, NEEDED, RowForm, line, not_reserved
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store.data_version import DataVersion
from sonar.models import Expectation, Mesh, Site, SizeClass
from sonar.models.member_filters import ENDS, filter_column
from sonar.notation.units import FASTEST
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry.written_fields import (
    EndpointFilterField,
    PartField,
    RateField,
    between,
    small_input,
)

NO_CHOICE = "There is none of this name: choose one of these."


def row_field(label: str, empty: str) -> forms.ModelChoiceField[Any]:
    return forms.ModelChoiceField(
        label=label,
        queryset=Site.objects.none(),
        to_field_name="name",
        required=False,
        empty_label=empty,
        widget=CHOICE,
        error_messages={"invalid_choice": NO_CHOICE},
    )


def filter_field(label: str) -> EndpointFilterField:
    return EndpointFilterField(
        label=label,
        required=False,
        help_text="As the matrix has it in its address: cloud=UK&label=DATADISK&tag=!tape.",
        widget=small_input(44),
    )


def number_field(label: str, least: int, most: int) -> forms.IntegerField:
    return forms.IntegerField(label=label, validators=between(least, most), widget=small_input(5))


# Fields as the page shows them.
GROUPS = {
    "of_links": ("name", "size_class", "mesh", "site", *map(filter_column, ENDS)),
    "of_rates": ("floor", "below", "above"),
    "of_others": ("failures", "silent_after"),
    "of_use": ("priority", "enabled"),
}


class ExpectationForm(RowForm):
    """What one expectation says; who looks after some sites alone chooses among these."""

    otherwise = "above"

    name = line("name", 80, 24, NEEDED.format("uk-to-cern"))
    size_class = row_field("size class", "every size class")
    mesh = row_field("only links that this mesh tests", "links of any mesh")
    site = row_field("only links from or to this site", "links of every site")
    sources_filter = filter_field("only from endpoints by filter (empty: all)")
    destinations_filter = filter_field("only to endpoints by filter (empty: all)")
    floor = RateField(
        label="at least, like 20 MB/s (empty: the usual rate of each link)",
        required=False,
        validators=between(1, FASTEST),
        widget=small_input(12),
    )
    below = PartField(label="slow below", validators=between(0.05, 1), widget=small_input(6))
    above = PartField(
        label="near its rate up to",
        help_text="For the statistic now / expected of the matrix alone: conditions do not use it.",
        validators=between(0.05, 2),
        widget=small_input(6),
    )
    failures = number_field("failing after so many failed tests in a row", 2, 100)
    silent_after = forms.FloatField(
        label="silent after so many intervals of its mesh without a result",
        validators=between(1.5, 1000),
        widget=small_input(6),
    )
    priority = number_field("priority (of several that match a link, the highest counts)", 0, 32767)
    enabled = forms.BooleanField(
        label="enabled: links are judged by it",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )

    def __init__(
        self, row: Expectation, reader: Anyone, permission: str, data: QueryDict | None = None
    ) -> None:
        self.row, self.is_new = row, row.pk is None
        initial = {name: getattr(row, name) for name in self.base_fields}
        super().__init__(data, auto_id="expectation-%s", initial=initial)
        sites, may_all = Site.objects.listed().order_by("name"), roles.may(reader, permission)
        for name, rows in (
            ("size_class", SizeClass.objects.order_by("from_bytes")),
            ("mesh", Mesh.objects.order_by("name")),
            ("site", sites if may_all else sites.filter(pk__in=roles.sites_of(reader))),
        ):
            self.fields[name].queryset = rows  # type: ignore[attr-defined]
        self.fields["site"].required = not may_all
        self.fields["site"].error_messages["required"] = "Choose the site that you look after."
        if not self.is_new:
            del self.fields["name"]

    def clean_name(self) -> str:
        return not_reserved("expectation", self.cleaned_data["name"])

    def filled(self, cleaned: Mapping[str, Any]) -> Model:
        for name, value in cleaned.items():
            # A part that was left as it was written keeps all its digits.
            if self.is_new or name in self.changed_data:
                setattr(self.row, name, value)
        return self.row

    def counts(self, now: datetime) -> LinksNow | None:
        """Return what it matches as it would be kept; None while it is not right."""
        if self.is_bound and not self.is_valid():
            return None
        return counted(self.row, ClassRates.read_all(now))

    @property
    def groups(self) -> dict[str, list[BoundField]]:
        return {
            group: [self[name] for name in names if name in self.fields]
            for group, names in GROUPS.items()
        }


MAY_ADD, MAY_CHANGE, MAY_DELETE = (
    f"sonar.{verb}_expectation" for verb in ("add", "change", "delete")
)
MOST_LISTED = 25
MEANWHILE = "Somebody has just added an expectation of this name: choose another."


def expectation_of(name: str, *, lock: bool = False) -> Expectation:
    """Return an expectation; raise Http404 with a sentence if there is none.

    With ``lock`` it is nobody else's until the transaction ends.
    """
    rows = Expectation.objects.select_related("size_class", "mesh", "site")
    rows = rows.select_for_update(of=("self",)) if lock else rows
    row = rows.filter(name=name).first()
    if row is None:
        raise Http404(f"There is no expectation “{name}”.")
    return row


def sites_of(expectation: str, **_: object) -> Iterable[int]:
    return own_sites(expectation_of(expectation))


def own_sites(row: Expectation) -> list[int]:
    return [row.site_id] if row.site_id else []


@dataclass(frozen=True)
class ExpectationsPage(NumberedPage):
    template: ClassVar[str] = "expectations/list.html"
    route: ClassVar[str] = "expectations"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Show a page of them, the one that counts first first; one beyond the last is the last."""
        listed = Expectation.objects.select_related("size_class", "mesh", "site")
        rows = Paginator(listed, MOST_LISTED).get_page(self.number)
        classes = ClassRates.read_all(now) if rows else []
        return {
            "lines": [
                {
                    "row": row,
                    "links": links_words(row),
                    "expects": expects_words(row),
                    "now": counted(row, classes),
                    "may_change": roles.may(reader, MAY_CHANGE, own_sites(row)),
                }
                for row in rows
            ],
            "shown": shown_words(rows, "expectation", "expectations"),
            "may_add": roles.may_somewhere(reader, MAY_ADD),
            "share": Share.of(address("api-expectations")),
            **pager(rows, lambda number: ExpectationsPage(number).url()),
        }


@dataclass(frozen=True)
class AddExpectationPage(Page):
    template: ClassVar[str] = "expectations/form.html"
    route: ClassVar[str] = "add-expectation"
    of_primary: ClassVar[bool] = True

    permission: ClassVar[str] = MAY_ADD

    form: ExpectationForm | None = None
    name: str = ""

    def row(self, *, lock: bool = False) -> Expectation:
        return expectation_of(self.name, lock=lock) if self.name else Expectation()

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        form = self.form or ExpectationForm(self.row(), reader, self.permission)
        counts, row = form.counts(now), form.row
        return {
            "heading": f"Change the expectation {self.name}" if self.name else "Add an expectation",
            "form": form,
            "expectation": row if row.pk else None,
            "counts": counts,
            "words": (links_words(row), expects_words(row)) if counts else None,
            "may_delete": bool(row.pk) and roles.may(reader, MAY_DELETE, own_sites(row)),
        }


@dataclass(frozen=True)
class ChangeExpectationPage(AddExpectationPage):
    route: ClassVar[str] = "change-expectation"
    permission: ClassVar[str] = MAY_CHANGE

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(name=expectation_of(path["expectation"]).name)

    def path(self) -> str:
        return address(self.route, self.name)


@for_whom(GET=holders(MAY_ADD), POST=holders(MAY_ADD))
def add_expectation(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, AddExpectationPage, {})
    return edited(request, AddExpectationPage())


@for_whom(GET=holders(MAY_CHANGE, sites_of), POST=holders(MAY_CHANGE, sites_of))
def change_expectation(request: HttpRequest, expectation: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, ChangeExpectationPage, {"expectation": expectation})
    return edited(request, ChangeExpectationPage(name=expectation))


def edited(request: HttpRequest, page: AddExpectationPage) -> HttpResponse:
    """Keep an expectation as a form has it; without `save` show only what it would match."""
    site = request.POST.get("site")
    if site and not roles.may(request.user, page.permission):
        own = Site.objects.filter(pk__in=roles.sites_of(request.user))
        if site not in own.values_list("name", flat=True):
            raise PermissionDenied
    is_kept, sentence = "save" in request.POST, ""
    with transaction.atomic():
        row = page.row(lock=is_kept)
        form = ExpectationForm(row, request.user, page.permission, request.POST)
        if is_kept and form.is_valid():
            sentence = kept(request, form, page.permission)
    if not sentence:
        again, status = replace(page, form=form), 400 if is_kept else 200
        return rendered(request, again, timezone.now(), None, status=status)
    messages.success(request, f"{sentence} Links are held against it within a minute.")
    return HttpResponseRedirect(ExpectationsPage().path())


def kept(request: HttpRequest, form: ExpectationForm, permission: str) -> str:
    """Keep a valid form in one transaction, and say so; nothing if its name was just taken.

    Who looks after some sites alone cannot leave the site out: the form wants it then.
    """
    row = form.row
    sentence = f"{'Added' if form.is_new else 'Changed'} the expectation {row.name}."
    try:
        with transaction.atomic():
            row.save()
            keep_in_the_log(request, row, ADDITION if form.is_new else CHANGE, sentence)
    except IntegrityError:
        form.add_error("name" if form.is_new else None, MEANWHILE)
        return ""
    return sentence


@for_whom(POST=holders(MAY_DELETE, sites_of))
def delete_expectation(request: HttpRequest, expectation: str) -> HttpResponse:
    with transaction.atomic():
        row = expectation_of(expectation, lock=True)
        sentence = f"Removed the expectation {row.name}."
        keep_in_the_log(request, row, DELETION, sentence)
        row.delete()
    effect = "Its links are held against the next one that matches them, or their usual rate."
    messages.success(request, f"{sentence} {effect}")
    return HttpResponseRedirect(ExpectationsPage().path())
