"""What pages and calls about a criteria set are asked: which set, and which of its links."""

from collections.abc import Iterable

from django import forms
from django.http import Http404, QueryDict

from matrix.query.attributes import ENDS
from matrix.query.filters import Filter
from matrix.query.forms import (
    BadQueryError,
    FilterField,
    check_names,
    sentences_of,
    unregistered,
)
from sonar.models import CriteriaSet
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.endpoint_filters import EndpointFilter

PARAMETERS = tuple(f"{end}_{name}" for end in ENDS for name in OF_ENDPOINTS)
# Filters of endpoints by `source` and `destination`.
Chosen = dict[str, EndpointFilter]


def set_of(name: str, *, lock: bool = False) -> CriteriaSet:
    """Return a set by its name, locked if asked; raise Http404 with a sentence if there is none."""
    rows = CriteriaSet.objects.select_related("size_class")
    rows = rows.select_for_update(of=("self",)) if lock else rows
    row = rows.filter(name=name).first()
    if row is None:
        raise Http404(f"There is no criteria set “{name}”.")
    return row


class ChosenForm(forms.Form):
    def __init__(self, params: QueryDict) -> None:
        super().__init__(params)
        self.fields |= {name: FilterField(name) for name in PARAMETERS if name in params}

    def filters(self) -> list[Filter]:
        return [option for name in self.fields for option in self.cleaned_data.get(name, ())]


def read(params: QueryDict, others: Iterable[str] = ()) -> Chosen:
    """Return which links are asked for; raise BadQueryError. At most two SQL queries."""
    check_names(params, (*PARAMETERS, *others))
    form = ChosenForm(params)
    if not form.is_valid():
        raise BadQueryError(sentences_of(form))
    if errors := {name: [sentence] for name, sentence in unregistered(form.filters())}:
        raise BadQueryError(errors)
    chosen: dict[str, dict[str, list[str]]] = {end: {} for end in ENDS}
    for option in form.filters():
        chosen[option.end].setdefault(option.attribute, []).append(option.text)
    return dict(chosen)


def to_params(chosen: Chosen) -> dict[str, list[str]]:
    return {
        f"{end}_{attribute}": list(values)
        for end in ENDS
        for attribute, values in chosen.get(end, {}).items()
    }
