"""The form of an expectation: of which links, and what is expected of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Model
from django.forms import BoundField
from django.http import QueryDict

from matrix.answers.incidents.expectation_counts import ClassRates, LinksNow, counted
from matrix.pages.site.work_forms import CHOICE, NEEDED, RowForm, line, not_reserved
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

    def named(self, *names: str) -> Sequence[BoundField]:
        return [self[name] for name in names if name in self.fields]

    @property
    def of_links(self) -> Sequence[BoundField]:
        ends = (filter_column(end) for end in ENDS)
        return self.named("name", "size_class", "mesh", "site", *ends)

    @property
    def of_rates(self) -> Sequence[BoundField]:
        return self.named("floor", "below", "above")

    @property
    def of_others(self) -> Sequence[BoundField]:
        return self.named("failures", "silent_after")

    @property
    def of_use(self) -> Sequence[BoundField]:
        return self.named("priority", "enabled")
