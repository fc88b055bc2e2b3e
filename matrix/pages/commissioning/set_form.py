"""The form of a criteria set, and the sets that the field knows, to begin with."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import QueryDict

from matrix.pages.site.work_forms import CHOICE, NEEDED, RowForm, line
from sonar.models import CriteriaSet, SizeClass
from sonar.models.commissioning import (
    LONGEST_PERIOD,
    MOST_MB_S,
    MOST_TESTS,
    MOST_VOLUME,
    NO_CRITERION,
)
from sonar.notation.units import exact_duration, parse_seconds
from sonar.registry.written_fields import (
    BytesField,
    EndpointFilterField,
    WrittenField,
    between,
    small_input,
)

HOUR = 3600
LEAST = 0.001
# By what they are called in the field: numbers as they were published, and tests enough to judge.
PRESETS: dict[str, dict[str, Any]] = {
    "DDT": {
        "sources_filter": {"tier": ["0", "1"]},
        "period_hours": 24,
        "least_tests": 6,
        "least_mb_s": 20.0,
    },
    "DDT-from-T2": {
        "sources_filter": {"tier": ["2"]},
        "period_hours": 24,
        "least_tests": 6,
        "least_mb_s": 5.0,
    },
    "TPC": {
        "period_hours": 7 * 24,
        "least_tests": 28,
        "least_mb_s": 125.0,
        "least_success_percent": 90.0,
        "least_bytes": 10**13,
    },
}


class HoursField(WrittenField):
    """Hours as `24h`."""

    write = staticmethod(lambda hours: exact_duration(hours * HOUR))

    @staticmethod
    def read(text: str) -> int:
        hours, rest = divmod(parse_seconds(text), HOUR)
        if rest:
            raise ValueError(
                f"{text!r} is not a whole number of hours. Use a duration, for example, 24h or 7d"
            )
        return hours


class NumberField(forms.FloatField):
    """A number that may be left out; `125`, not `125.0`."""

    def __init__(self, label: str, most: float) -> None:
        limits = [MinValueValidator(LEAST), MaxValueValidator(most)]
        widget = small_input(8)
        super().__init__(label=label, required=False, validators=limits, widget=widget)

    def prepare_value(self, value: object) -> object:
        return f"{value:g}" if isinstance(value, float) else value


def end(label: str) -> EndpointFilterField:
    return EndpointFilterField(
        label=f"{label} filter (empty: all endpoints)",
        required=False,
        help_text="Use the same syntax as in the URL of the matrix, for example, "
        "cloud=UK&label=DATADISK&tag=!tape.",
        widget=small_input(44),
    )


class CriteriaSetForm(RowForm):
    """A criteria set; ``row`` has what was sent once that is valid."""

    otherwise = "least_mb_s"

    name = line("name", 80, 24, NEEDED.format("DDT"))
    size_class = forms.ModelChoiceField(
        label="size class",
        queryset=SizeClass.objects.none(),
        to_field_name="name",
        empty_label=None,
        widget=CHOICE,
        error_messages={
            "invalid_choice": "“%(value)s” is not a size class. Choose a listed size class."
        },
    )
    sources_filter = end("source")
    destinations_filter = end("destination")
    period_hours = HoursField(
        label="period (for example, 24h or 7d)",
        validators=between(1, LONGEST_PERIOD),
        widget=small_input(6),
    )
    least_tests = forms.IntegerField(
        label="minimum number of tests", validators=between(1, MOST_TESTS), widget=small_input(6)
    )
    least_mb_s = NumberField("minimum rate in MB/s (125 MB/s = 1 Gbit/s; empty: any)", MOST_MB_S)
    least_success_percent = NumberField("minimum success rate in % (empty: any)", 100)
    least_bytes = BytesField(
        label="minimum volume required to pass (for example, 10 TB; empty: any)",
        required=False,
        validators=between(1, MOST_VOLUME),
        widget=small_input(10),
    )

    def __init__(self, row: CriteriaSet, data: QueryDict | None = None, preset: str = "") -> None:
        self.row = row
        initial = {name: getattr(row, name) for name in self.base_fields if name != "size_class"}
        if preset:
            initial |= {"name": preset, **PRESETS[preset]}
        super().__init__(data, auto_id="set-%s", initial=initial)
        self.fields["size_class"].queryset = SizeClass.objects.all()  # type: ignore[attr-defined]
        self.initial["size_class"] = row.size_class.name if row.size_class_id else "large"
        if row.pk:  # addresses go by the name
            del self.fields["name"]

    def filled(self, cleaned: Mapping[str, Any]) -> CriteriaSet | None:
        for name, value in cleaned.items():
            setattr(self.row, name, value)
        if cleaned["least_mb_s"] is None and cleaned["least_success_percent"] is None:
            self.add_error("least_mb_s", NO_CRITERION)
            return None
        return self.row
