"""The form of a mesh: which endpoints, how often, and how; it can say what that costs."""

import copy
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.http import QueryDict

from matrix.answers import cost
from matrix.pages.parts.cost_words import CostInAll
from matrix.pages.site import work_forms
from sonar.models import Credential, Endpoint, Mesh, SizeClass
from sonar.models.member_filters import ENDS, filter_column
from sonar.models.mesh import LIMITS, Mode, mover_choices
from sonar.models.registry import MOST_DAILY_BYTES
from sonar.notation import vantages
from sonar.registry import written_fields
from sonar.registry.compatibility import mesh_problem
from sonar.registry.file.sections import LONGEST_INTERVAL_SECONDS, set_intervals, set_members

BOTH = "Use either an endpoint filter or endpoint names, not both."
NO_SIZE = "Enter an interval for at least one size class."
MOST_NAMED = 5
# A field for each size class is called so, and then as the class.
EVERY = "every-"


class NamesField(forms.CharField):
    def __init__(self, label: str) -> None:
        widget = forms.Textarea({"class": work_forms.SMALL, "rows": 4, "cols": 34})
        super().__init__(label=label, required=False, widget=widget)

    def prepare_value(self, value: Any) -> Any:  # noqa: ANN401 - Django's own
        is_text = isinstance(value, str)
        return value if is_text or value is None else "\n".join(sorted(map(str, value)))

    def clean(self, value: object) -> list[Endpoint]:
        names = dict.fromkeys(str(super().clean(value)).split())
        rows = {row.name: row for row in Endpoint.objects.filter(name__in=names)}
        if unknown := [name for name in names if name not in rows]:
            more = len(unknown) - MOST_NAMED
            others = f" and {more} more" if more > 0 else ""
            listed = ", ".join(f"“{name[:80]}”" for name in unknown[:MOST_NAMED])
            raise ValidationError(f"Unknown endpoint names: {listed}{others}. Use registered ones.")
        return [rows[name] for name in names]


def filter_field(label: str) -> written_fields.EndpointFilterField:
    return written_fields.EndpointFilterField(
        label=label,
        required=False,
        help_text="Use the same syntax as in the URL of the matrix, for example, "
        "cloud=UK&label=DATADISK&tag=!tape.",
        widget=written_fields.small_input(44),
    )


class MeshRowForm(work_forms.RowForm):
    """A mesh that is not kept by it before `save`; endpoints and intervals are beside its row."""

    otherwise, row_attribute = "quiet_until", "mesh"

    name = work_forms.line("name", 80, 24, work_forms.NEEDED.format("uk-disks"))
    sources_filter = filter_field("endpoint filter")
    sources = NamesField("or endpoint names, one per line (both empty: all endpoints)")
    alike = forms.BooleanField(
        label="test each endpoint with every other one, in both directions",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
    )
    destinations_filter = filter_field("destination filter")
    destinations = NamesField("or endpoint names, one per line (both empty: all endpoints)")
    mover = forms.ChoiceField(
        label="transfer tool",
        choices=mover_choices,
        widget=work_forms.CHOICE,
        error_messages={
            "invalid_choice": "“%(value)s” is not a transfer tool. Choose a listed tool."
        },
    )
    mode = forms.ChoiceField(label="mode", choices=Mode.choices, widget=work_forms.CHOICE)
    streams = forms.IntegerField(
        label="streams",
        validators=written_fields.between(1, 9999),
        widget=written_fields.small_input(4),
    )
    priority = forms.IntegerField(
        label="priority (higher runs first)",
        validators=written_fields.between(0, 9999),
        widget=written_fields.small_input(4),
    )
    vantage = work_forms.line(
        "vantage point of the workers (empty: any vantage point that reaches both endpoints)",
        vantages.LONGEST,
        14,
    )
    bytes_per_hour = written_fields.BytesField(
        label="volume limit per hour (for example, 10 TB; empty: no limit)",
        required=False,
        validators=written_fields.between(1, MOST_DAILY_BYTES),
        widget=written_fields.small_input(10),
    )
    quiet_from = work_forms.ClockField("quiet hours from (UTC)", "22:00")
    quiet_until = work_forms.ClockField("quiet hours to (UTC)", "06:00")
    tcp_buffer_bytes = written_fields.BytesField(
        label="TCP buffer (for example, 8 MB; empty: chosen by the servers)",
        required=False,
        validators=written_fields.between(1, 2**31 - 1),
        widget=written_fields.small_input(10),
    )
    scitag = written_fields.ScitagField(
        label="flow label as experiment/activity (for example, 2/11; empty: none)",
        required=False,
        widget=written_fields.small_input(8),
    )
    service = work_forms.line("URL of the transfer service", 400, 44)
    service_credential = forms.ModelChoiceField(
        label="service credential",
        queryset=Credential.objects.none(),
        to_field_name="name",
        required=False,
        empty_label="none",
        widget=work_forms.CHOICE,
    )

    SPECIAL = ("tcp_buffer_bytes", "scitag", "service", "service_credential")
    TESTS = ("mover", "mode", "streams", "priority", "vantage", *LIMITS)
    COLUMNS = (*TESTS, *SPECIAL, *work_forms.HOURS)
    PARTS = {
        "ends": ("sources_filter", "sources", "alike"),
        "destinations": ("destinations_filter", "destinations"),
        "tests": (*TESTS, *work_forms.HOURS),
        "special": SPECIAL,
    }

    def __init__(self, mesh: Mesh, data: QueryDict | None = None) -> None:
        self.mesh, self.is_new = mesh, mesh.pk is None
        self.sizes = list(SizeClass.objects.all())
        initial: dict[str, Any] = {"alike": True}
        initial |= {name: getattr(mesh, name) for name in self.COLUMNS}
        if not self.is_new:
            filters = [mesh.filter_of(end) for end in ENDS]
            members = [list(getattr(mesh, end).all()) for end in ENDS]
            ids = [{row.pk for row in rows} for rows in members]
            initial |= dict(zip(map(filter_column, ENDS), filters, strict=True))
            initial |= dict(zip(ENDS, members, strict=True))
            initial["alike"] = filters[0] == filters[1] and ids[0] == ids[1]
            for step in mesh.intervals.select_related("size_class"):
                initial[f"{EVERY}{step.size_class.name}"] = step.every_seconds
        super().__init__(data, auto_id="mesh-%s", initial=initial)
        intervals = {f"{EVERY}{size.name}": f"intervals.{size.name}" for size in self.sizes}
        self.columns = {"alike": "destinations", **intervals}
        self.fields["service_credential"].queryset = Credential.objects.all()  # type: ignore[attr-defined]
        for size in self.sizes:
            self.fields[f"{EVERY}{size.name}"] = written_fields.SecondsField(
                label=f"interval per link for {size.name} files",
                required=False,
                validators=written_fields.between(1, LONGEST_INTERVAL_SECONDS),
                widget=written_fields.small_input(8),
            )
        if not self.is_new:  # what was measured goes by the name
            del self.fields["name"]

    def clean_name(self) -> str:
        return work_forms.not_reserved("mesh", self.cleaned_data["name"])

    def filled(self, cleaned: Mapping[str, Any]) -> Mesh | None:
        """Set the columns of the mesh; ``ends`` and ``every`` are what is kept beside them."""
        self.ends = {end: cleaned["sources" if cleaned["alike"] else end] for end in ENDS}
        every = {size: cleaned[f"{EVERY}{size.name}"] for size in self.sizes}
        self.every = {size: seconds for size, seconds in every.items() if seconds}
        for end in ENDS:
            chosen = cleaned[filter_column(ENDS[0] if cleaned["alike"] else end)]
            setattr(self.mesh, filter_column(end), chosen)
        for name in (*self.COLUMNS, *({"name"} & self.fields.keys())):
            setattr(self.mesh, name, cleaned[name])
        # What of several fields does not fit each other, at the field where it is mended. An error
        # takes the value of its field away.
        sent = dict(cleaned)
        for end in ENDS:
            if sent[end] and sent[filter_column(end)]:
                self.add_error(filter_column(end), BOTH)
        if not self.every:
            self.add_error(f"{EVERY}{self.sizes[-1].name}", NO_SIZE)
        work_forms.refuse_one_end(self, sent)
        mover, mode, ends = sent["mover"], sent["mode"], [*self.ends.values()]
        if sentence := mesh_problem(self.mesh.name, mover, mode, ends):
            self.add_error("mover", sentence)
        return None if self.errors else self.mesh

    def save(self, *, enabled: bool) -> Mesh:
        """Keep the mesh; within a transaction."""
        self.mesh.enabled = enabled
        self.mesh.save()
        for end in ENDS:
            set_members(self.mesh, end, self.ends[end])
        set_intervals(self.mesh, self.every)
        return self.mesh

    def cost(self, now: datetime) -> CostInAll | None:
        """Return what it costs as it was sent, or is kept; None while it is not right."""
        if not self.is_bound:
            return None if self.is_new else CostInAll(cost.of_mesh(self.mesh, now))
        if not self.is_valid():
            return None
        as_enabled = copy.copy(self.mesh)
        as_enabled.enabled = True
        ends = {end: [row.pk for row in rows] for end, rows in self.ends.items()}
        every = {size.name: seconds for size, seconds in self.every.items()}
        return CostInAll(cost.of_mesh(as_enabled, now, ends=ends, every=every))

    @property
    def parts(self) -> dict[str, list[BoundField]]:
        """Return the fields but the name, by the part of the page where they are."""
        intervals = [f"{EVERY}{size.name}" for size in self.sizes]
        named = {**self.PARTS, "intervals": intervals}
        return {part: [self[name] for name in names] for part, names in named.items()}

    @property
    def has_destinations(self) -> bool:
        fields = self.parts["destinations"]
        return not self["alike"].value() or any(field.errors for field in fields)

    @property
    def has_special(self) -> bool:
        return any(field.errors or field.value() for field in self.parts["special"])
