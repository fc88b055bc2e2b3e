"""Criteria sets: which one and which of its links is asked for, and what it asks, in words."""

from collections.abc import Iterable

from django import forms
from django.http import Http404, QueryDict

from matrix.query.attributes import ENDS
from matrix.query.filters import Filter
from matrix.query.forms import BadQueryError, FilterField, check_names, sentences_of, unregistered
from sonar.models import CriteriaSet
from sonar.models.member_filters import ENDS as MEMBERS
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.endpoint_filters import EndpointFilter, words
from sonar.notation.units import format_bytes, format_counted, three_digits

PARAMETERS = tuple(f"{end}_{name}" for end in ENDS for name in OF_ENDPOINTS)
# Filters of endpoints by `source` and `destination`.
Chosen = dict[str, EndpointFilter]


def set_of(name: str, *, lock: bool = False) -> CriteriaSet:
    """Return a set by its name, locked if asked; raise Http404 with a sentence if there is none."""
    rows = CriteriaSet.objects.select_related("size_class")
    rows = rows.select_for_update(of=("self",)) if lock else rows
    row = rows.filter(name=name).first()
    if row is None:
        raise Http404(f"No criteria set is named “{name}”.")
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


def ends_words(row: CriteriaSet) -> str:
    """Say which links: `from endpoints of tier 0 or 1 to every endpoint`."""
    if not (row.sources_filter or row.destinations_filter):
        return "for every link"
    sources, destinations = (
        f"endpoints {words(chosen)}" if (chosen := row.filter_of(end)) else "every endpoint"
        for end in MEMBERS
    )
    return f"from {sources} to {destinations}"


def asked_words(row: CriteriaSet) -> str:
    """Say what: `at least 20.0 MB/s over 24 hours, with large files and at least 6 tests`."""
    parts = []
    if row.least_mb_s:
        parts.append(f"{three_digits(row.least_mb_s)} MB/s")
    if row.least_success_percent:
        parts.append(f"a success rate of {row.least_success_percent:g} %")
    if row.least_bytes:
        parts.append(f"{format_bytes(row.least_bytes)} transferred")
    *others, last = parts
    least = f"{', '.join(others)} and {last}" if others else last
    days, rest = divmod(row.period_hours, 24)
    hours = f"{row.period_hours} hour{'' if row.period_hours == 1 else 's'}"
    period = hours if rest or days == 1 else f"{days} days"
    tests = format_counted(row.least_tests, "test")
    return f"at least {least} over {period}, with {row.size_class.name} files and at least {tests}"
