"""The form by which people order an experiment on a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from matrix.answers.experiments import request as experiment_request
from matrix.answers.experiments.request import ALLOWED, USUAL_REPEATS, form_values
from matrix.answers.probe_request import MOST_STREAMS, MOST_TESTS
from matrix.pages.probes.form import SMALL, Link, by_label, movers_of, select_field, whole_field
from matrix.query.forms import DEFAULT_SIZE, BadQueryError, OneOf, check_names
from sonar.models import Experiment, SizeClass
from sonar.models.mesh import Mode
from sonar.movers import catalogue
from sonar.ordering.experiments import Sweep

LONGEST_VALUES = 200
PRESET = ("variable", "size")


def read_preset(params: QueryDict) -> dict[str, str]:
    """Read what an address fills into the form; raise BadQueryError for what cannot be there."""
    check_names(params, PRESET)
    if not params:
        return {}
    form = forms.Form(params)
    sizes = list(SizeClass.objects.values_list("name", flat=True))
    form.fields |= {
        "variable": OneOf("variable", Experiment.Variable.values),
        "size": OneOf("size", sizes),
    }
    if not form.is_valid():
        raise BadQueryError({name: list(map(str, texts)) for name, texts in form.errors.items()})
    return {name: value for name in PRESET if (value := form.cleaned_data[name])}


class ExperimentForm(forms.Form):
    """A sweep over one variable of the tests of a link; once it is valid, ``sweep`` is it.

    What may be is said by ``answers.experiments.request``, as in the API.
    """

    variable = select_field("vary", initial=Experiment.Variable.STREAMS.value)
    values = forms.CharField(
        label="values",
        required=False,
        max_length=LONGEST_VALUES,
        widget=forms.TextInput(
            {"class": SMALL, "size": 18, "placeholder": "1, 2, 4, 8, 16", "autocapitalize": "none"}
        ),
        help_text="Empty: 1, 2, 4, 8 and 16 streams, all size classes, or pull and push.",
    )
    repeats = whole_field("tests of each", "repeats", MOST_TESTS, USUAL_REPEATS, ALLOWED)
    size = select_field("size class", required=False)
    streams = whole_field("streams", "streams", MOST_STREAMS, 1)
    mode = select_field("mode", required=False)
    mover = select_field("mover", required=False)

    def __init__(
        self, link: Link, data: QueryDict | None = None, preset: Mapping[str, str] | None = None
    ) -> None:
        initial = {"size": DEFAULT_SIZE, **(preset or {})}
        super().__init__(data, auto_id="experiment-%s", initial=initial)
        self.link = link
        self.sweep: Sweep | None = None
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        self.offer("variable", Experiment.Variable.choices)
        self.offer("size", [(size, size) for size in sizes])
        self.offer("mode", Mode.choices)
        movers = movers_of(link)
        self.offer("mover", [("", "whichever fits"), *((name, name) for name in movers)])
        if len(movers) < 2:
            self.fields["mover"].widget = forms.HiddenInput()

    def offer(self, name: str, choices: Sequence[tuple[str, str]]) -> None:
        self.fields[name].widget = forms.Select({"class": "form-select form-select-sm"}, choices)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                self.sweep = experiment_request.read(self.body(cleaned))
            except BadQueryError as error:
                self.refuse(error.errors)
        return cleaned

    def body(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a script would send; what is empty is left out."""
        source, destination = self.link
        movers = movers_of(self.link) or [catalogue.DEFAULT]
        fields = {
            "source": source.name,
            "destination": destination.name,
            "variable": cleaned["variable"],
            "values": form_values(cleaned["values"], cleaned["variable"]),
            "repeats": cleaned["repeats"],
            "size": cleaned["size"],
            "streams": cleaned["streams"],
            "mode": cleaned["mode"],
            "mover": cleaned["mover"] or movers[0],
        }
        return {name: value for name, value in fields.items() if value not in ("", None)}

    def refuse(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Say each sentence by its field, or above the form where there is none."""
        for field, texts in errors.items():
            shown = field in self.fields and not self.fields[field].widget.is_hidden
            label = str(self.fields[field].label) if field in self.fields else field
            for text in texts:
                self.add_error(field if shown else None, by_label(label, field, text))
