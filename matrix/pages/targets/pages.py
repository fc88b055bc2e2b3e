"""The list of targets, the form of one target, and adding, changing and removing it."""

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

from matrix.answers.incidents.target_counts import ClassRates, LinksNow, counted
from matrix.answers.incidents.target_words import links_words, target_sentence
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
from sonar.models import Mesh, Site, SizeClass, Target
from sonar.models.incidents import SLOWEST_MB_S
from sonar.models.member_filters import ENDS, filter_column
from sonar.notation.units import FASTEST, MB
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry.written_fields import (
    EndpointFilterField,
    PartField,
    RateField,
    between,
    small_input,
)

NO_CHOICE = "This name is not registered: choose one from the list."


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
        help_text="A filter as in matrix URLs: cloud=UK&label=DATADISK&tag=!tape. Empty: all "
        "endpoints.",
        widget=small_input(44),
    )


def number_field(label: str, least: int, most: int, sentence: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label, validators=between(least, most), widget=small_input(5), help_text=sentence
    )


# The fields of each section of the form.
GROUPS = {
    "of_links": ("name", "size_class", "mesh", "site", *map(filter_column, ENDS)),
    "of_rates": ("floor_mb_s", "below", "above"),
    "of_others": ("failures", "silent_after"),
    "of_use": ("priority", "enabled"),
}


class TargetForm(RowForm):
    """The fields of a target; an account that is an admin of some sites chooses among these."""

    otherwise = "above"

    name = line("name", 80, 24, NEEDED.format("uk-to-cern"))
    size_class = row_field("size class", "all size classes")
    mesh = row_field("tested by mesh", "any mesh")
    site = row_field("source or destination site", "all sites")
    sources_filter = filter_field("sources")
    destinations_filter = filter_field("destinations")
    floor_mb_s = RateField(
        label="minimum rate",
        help_text="For example 20 MB/s. Empty: the baseline of each link.",
        required=False,
        validators=between(SLOWEST_MB_S, FASTEST / MB),
        widget=small_input(12),
    )
    below = PartField(label="slow below", validators=between(0.05, 1), widget=small_input(6))
    above = PartField(
        label="upper limit of “near target”",
        help_text="Used only for the statistic “rate / target”. Incidents do not depend on this "
        "value.",
        validators=between(0.05, 2),
        widget=small_input(6),
    )
    failures = number_field(
        "failed tests", 2, 100, "Number of consecutive failures after which a link is failing."
    )
    silent_after = forms.FloatField(
        label="intervals without a result",
        help_text="Number of test intervals after which a link without a result is silent.",
        validators=between(1.5, 1000),
        widget=small_input(6),
    )
    priority = number_field(
        "priority",
        0,
        32767,
        "If several targets match a link, the one with the highest priority applies.",
    )
    enabled = forms.BooleanField(
        label="enabled",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )

    def __init__(
        self, row: Target, reader: Anyone, permission: str, data: QueryDict | None = None
    ) -> None:
        self.row, self.is_new = row, row.pk is None
        initial = {name: getattr(row, name) for name in self.base_fields}
        super().__init__(data, auto_id="target-%s", initial=initial)
        sites, may_all = Site.objects.listed().order_by("name"), roles.may(reader, permission)
        for name, rows in (
            ("size_class", SizeClass.objects.order_by("from_bytes")),
            ("mesh", Mesh.objects.order_by("name")),
            ("site", sites if may_all else sites.filter(pk__in=roles.sites_of(reader))),
        ):
            self.fields[name].queryset = rows  # type: ignore[attr-defined]
        self.fields["site"].required = not may_all
        self.fields["site"].error_messages["required"] = "Choose a site that you are an admin of."
        if not self.is_new:
            del self.fields["name"]

    def clean_name(self) -> str:
        return not_reserved("target", self.cleaned_data["name"])

    def filled(self, cleaned: Mapping[str, Any]) -> Model:
        for name, value in cleaned.items():
            # A percentage that was not edited keeps all its digits.
            if self.is_new or name in self.changed_data:
                setattr(self.row, name, value)
        return self.row

    def counts(self, now: datetime) -> LinksNow | None:
        """Count the links that the target would match; None if a field is wrong."""
        if self.is_bound and not self.is_valid():
            return None
        return counted(self.row, ClassRates.read_all(now))

    @property
    def groups(self) -> dict[str, list[BoundField]]:
        return {
            group: [self[name] for name in names if name in self.fields]
            for group, names in GROUPS.items()
        }


MAY_ADD, MAY_CHANGE, MAY_DELETE = (f"sonar.{verb}_target" for verb in ("add", "change", "delete"))
MOST_LISTED = 25
MEANWHILE = "A target with this name has just been added: choose another name."


def target_of(name: str, *, lock: bool = False) -> Target:
    """Return a target; raise Http404 if there is none. ``lock`` locks its row."""
    rows = Target.objects.select_related("size_class", "mesh", "site")
    rows = rows.select_for_update(of=("self",)) if lock else rows
    row = rows.filter(name=name).first()
    if row is None:
        raise Http404(f"The target “{name}” does not exist.")
    return row


def sites_of(target: str, **_: object) -> Iterable[int]:
    return own_sites(target_of(target))


def own_sites(row: Target) -> list[int]:
    return [row.site_id] if row.site_id else []


@dataclass(frozen=True)
class TargetsPage(NumberedPage):
    template: ClassVar[str] = "targets/list.html"
    route: ClassVar[str] = "targets"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        """Return a page of targets, the highest priority first; the last page if it is too high."""
        listed = Target.objects.select_related("size_class", "mesh", "site")
        rows = Paginator(listed, MOST_LISTED).get_page(self.number)
        classes = ClassRates.read_all(now) if rows else []
        return {
            "lines": [
                {
                    "row": row,
                    "links": links_words(row),
                    "requirement": target_sentence(row),
                    "now": counted(row, classes),
                    "may_change": roles.may(reader, MAY_CHANGE, own_sites(row)),
                }
                for row in rows
            ],
            "shown": shown_words(rows, "target", "targets"),
            "may_add": roles.may_somewhere(reader, MAY_ADD),
            "share": Share.of(address("api-targets")),
            **pager(rows, lambda number: TargetsPage(number).url()),
        }


@dataclass(frozen=True)
class AddTargetPage(Page):
    template: ClassVar[str] = "targets/form.html"
    route: ClassVar[str] = "add-target"
    of_primary: ClassVar[bool] = True

    permission: ClassVar[str] = MAY_ADD

    form: TargetForm | None = None
    name: str = ""

    def row(self, *, lock: bool = False) -> Target:
        return target_of(self.name, lock=lock) if self.name else Target()

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        form = self.form or TargetForm(self.row(), reader, self.permission)
        counts, row = form.counts(now), form.row
        return {
            "heading": f"Edit target {self.name}" if self.name else "Add target",
            "form": form,
            "target": row if row.pk else None,
            "counts": counts,
            "words": (links_words(row), target_sentence(row)) if counts else None,
            "may_delete": bool(row.pk) and roles.may(reader, MAY_DELETE, own_sites(row)),
        }


@dataclass(frozen=True)
class ChangeTargetPage(AddTargetPage):
    route: ClassVar[str] = "change-target"
    permission: ClassVar[str] = MAY_CHANGE

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(name=target_of(path["target"]).name)

    def path(self) -> str:
        return address(self.route, self.name)


@for_whom(GET=holders(MAY_ADD), POST=holders(MAY_ADD))
def add_target(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, AddTargetPage, {})
    return edited(request, AddTargetPage())


@for_whom(GET=holders(MAY_CHANGE, sites_of), POST=holders(MAY_CHANGE, sites_of))
def change_target(request: HttpRequest, target: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, ChangeTargetPage, {"target": target})
    return edited(request, ChangeTargetPage(name=target))


def edited(request: HttpRequest, page: AddTargetPage) -> HttpResponse:
    """Save a target as in the form; without `save` show only the links that it would match."""
    site = request.POST.get("site")
    if site and not roles.may(request.user, page.permission):
        own = Site.objects.filter(pk__in=roles.sites_of(request.user))
        if site not in own.values_list("name", flat=True):
            raise PermissionDenied
    is_kept, sentence = "save" in request.POST, ""
    with transaction.atomic():
        row = page.row(lock=is_kept)
        form = TargetForm(row, request.user, page.permission, request.POST)
        if is_kept and form.is_valid():
            sentence = kept(request, form, page.permission)
    if not sentence:
        again, status = replace(page, form=form), 400 if is_kept else 200
        return rendered(request, again, timezone.now(), None, status=status)
    messages.success(request, f"{sentence} It takes effect within a minute.")
    return HttpResponseRedirect(TargetsPage().path())


def kept(request: HttpRequest, form: TargetForm, permission: str) -> str:
    """Save a valid form; return the confirmation, or nothing if its name was just taken.

    The form requires a site from admins of some sites.
    """
    row = form.row
    sentence = f"The target {row.name} was {'added' if form.is_new else 'changed'}."
    try:
        with transaction.atomic():
            row.save()
            keep_in_the_log(request, row, ADDITION if form.is_new else CHANGE, sentence)
    except IntegrityError:
        form.add_error("name" if form.is_new else None, MEANWHILE)
        return ""
    return sentence


@for_whom(POST=holders(MAY_DELETE, sites_of))
def delete_target(request: HttpRequest, target: str) -> HttpResponse:
    with transaction.atomic():
        row = target_of(target, lock=True)
        sentence = f"The target {row.name} was deleted."
        keep_in_the_log(request, row, DELETION, sentence)
        row.delete()
    effect = (
        "The next matching target now applies to the links of this target. Links without another "
        "matching target are compared with their baselines."
    )
    messages.success(request, f"{sentence} {effect}")
    return HttpResponseRedirect(TargetsPage().path())
