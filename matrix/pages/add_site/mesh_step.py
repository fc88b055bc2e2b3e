"""The last step of *Add site*: in which mesh an endpoint is tested, within which limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from matrix.answers import cost
from matrix.pages.parts.cost_words import CostInAll
from matrix.pages.site import work_forms
from sonar.models import Endpoint, Mesh
from sonar.models.member_filters import ENDS
from sonar.notation.addresses import scheme_of
from sonar.registry import mesh_members
from sonar.registry.cost.grid import Member
from sonar.registry.shown_forms import ShownForm

FIELDS = ("mesh", "budget", *work_forms.HOURS)


@dataclass(frozen=True)
class MeshChoice:
    """A mesh that can hold an endpoint; one that does not mean it yet is to be joined."""

    mesh: Mesh
    is_meant: bool

    @property
    def words(self) -> str:
        return self.mesh.name if self.is_meant else f"{self.mesh.name} (adds the endpoint)"


def choices_for(endpoint: Endpoint, *, joins: bool) -> list[MeshChoice]:
    """Return the enabled meshes that can test an endpoint, or it ``joins``; first what means it."""
    scheme, others = scheme_of(endpoint.base_url), mesh_members.read_endpoints()
    # A draft is not among those in use.
    own = Member.of(endpoint, timezone.now())
    endpoints = [*(each for each in others if each.id != own.id), own]
    rows = Mesh.objects.filter(enabled=True).prefetch_related(*ENDS, "intervals__size_class")
    choices = []
    for mesh in rows:
        if scheme in mesh.mover_description.schemes_in(mesh.mode):
            members = [mesh_members.at_end(mesh, end, endpoints) for end in ENDS]
            is_meant = any(each.id == own.id for at_end in members for each in at_end)
            if is_meant or (joins and any(getattr(mesh, end).all() for end in ENDS)):
                choices.append(MeshChoice(mesh, is_meant))
    return sorted(choices, key=lambda choice: not choice.is_meant)


class MeshForm(ShownForm, forms.Form):
    """The mesh, and limits of one's own: of the endpoint, and the quiet hours of its site."""

    row_attribute, columns = "endpoint", work_forms.EndpointLimitsForm.columns

    mesh = forms.ChoiceField(
        label="mesh",
        widget=work_forms.CHOICE,
        error_messages={
            "required": "Choose a mesh.",
            "invalid_choice": "Choose a listed mesh; no other mesh can test this endpoint.",
        },
    )
    budget = work_forms.EndpointLimitsForm.base_fields["budget"]
    quiet_from = work_forms.ClockField("quiet hours from (UTC)", "22:00")
    quiet_until = work_forms.ClockField("quiet hours to (UTC)", "06:00")

    def __init__(
        self, endpoint: Endpoint, choices: Sequence[MeshChoice], data: QueryDict | None = None
    ) -> None:
        site, limit = endpoint.site, endpoint.budget_bytes_per_day
        initial: dict[str, Any] = {name: getattr(site, name) for name in work_forms.HOURS}
        if limit:
            initial["budget"] = f"{Decimal(limit) / work_forms.GB:f}"
        super().__init__(data, auto_id="mesh-%s", initial=initial)
        self.endpoint, self.by_name = endpoint, {each.mesh.name: each for each in choices}
        choice = self.fields["mesh"]
        choice.required = bool(choices)
        choice.choices = [(name, each.words) for name, each in self.by_name.items()]  # type: ignore[attr-defined]
        self.fields["budget"].label = "daily budget in GB, inbound and outbound (empty: no limit)"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.keys() >= set(work_forms.HOURS):
            work_forms.refuse_one_end(self, cleaned)
        return cleaned

    def chosen(self) -> MeshChoice | None:
        """Return the mesh that was chosen; the first if none was yet."""
        name = self.cleaned_data.get("mesh", "") if self.is_bound and self.is_valid() else ""
        return self.by_name.get(name) or next(iter(self.by_name.values()), None)

    def fill(self) -> None:
        """Set the limits at the endpoint and its site, which are not kept by that."""
        if not self.is_bound or not self.is_valid():
            return
        budget = self.cleaned_data["budget"]
        self.endpoint.budget_bytes_per_day = None if budget is None else int(budget * work_forms.GB)
        for name in work_forms.HOURS:
            setattr(self.endpoint.site, name, self.cleaned_data[name])


def cost_of(form: MeshForm, now: datetime) -> CostInAll | None:
    """Return what joining costs with what a form says; None without a mesh. Six queries a mesh."""
    choice = form.chosen()
    if choice is None:
        return None
    form.fill()
    meant = [each.mesh for each in form.by_name.values() if each.is_meant]
    meshes = [choice.mesh, *(mesh for mesh in meant if mesh.pk != choice.mesh.pk)]
    answers = [cost.of_endpoint(form.endpoint, mesh, now) for mesh in meshes]
    return CostInAll(answers[0], answers[1:])
