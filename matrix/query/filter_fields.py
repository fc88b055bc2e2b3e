"""The values of filters as they come in a URL, checked by what their attribute allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models

from matrix.query.attributes import BY_NAME, OF_ENDPOINTS, Attribute
from matrix.query.filters import Filter, either
from sonar.models import Endpoint, Profile

LONGEST_VALUE = 80


def column_of(attribute: Attribute) -> Any:  # noqa: ANN401 - a field of a model
    """Return the column of the database that an attribute is in, the first if of several."""
    model: Any = Endpoint if attribute.name in OF_ENDPOINTS else Profile
    *relations, column = attribute.columns[0].split("__")
    for relation in relations:
        model = model._meta.get_field(relation).related_model
    return model._meta.get_field(column)


COLUMNS = {name: column_of(attribute) for name, attribute in BY_NAME.items()}
# The values that a filter can have, where that is known beforehand.
ALLOWED: dict[str, tuple[str, ...]] = {
    name: attribute.allowed or tuple(value for value, _ in COLUMNS[name].choices or ())
    for name, attribute in BY_NAME.items()
    if attribute.allowed or COLUMNS[name].choices
}
REGISTERED: dict[str, type[models.Model]] = {
    name: COLUMNS[name].model for name, attribute in BY_NAME.items() if attribute.registered
}


class FilterField(forms.Field):
    """The filters of one parameter; what stands before its name in the URL is its ``prefix``."""

    widget = forms.MultipleHiddenInput

    def __init__(self, parameter: str, prefix: str = "") -> None:
        super().__init__(required=False)
        self.parameter, self.prefix = parameter, prefix

    def clean(self, value: list[str] | None) -> tuple[Filter, ...]:
        filters = [
            Filter(self.parameter, text.removeprefix("!"), text.startswith("!"))
            for text in value or ()
            if text
        ]
        for sentence in filter(None, map(problem, filters)):
            raise ValidationError(f"{self.prefix}{sentence}")
        return tuple(sorted(set(filters), key=lambda option: (option.exclude, option.value)))


def problem(option: Filter) -> str:
    """Say what is wrong with the value of a filter; empty if nothing is."""
    parameter, value, attribute = option.parameter, option.value, BY_NAME[option.attribute]
    allowed = ALLOWED.get(attribute.name)
    if allowed and value not in allowed:
        return f"{parameter} “{value}” is not known: use {either(allowed)}."
    if attribute.pattern and not re.fullmatch(attribute.pattern, value):
        return f"{parameter} “{value}” is not {attribute.rule}."
    if not value or len(value) > LONGEST_VALUE or not value.isprintable():
        return f"{parameter} must be 1 to {LONGEST_VALUE} printable characters, after ! to exclude."
    return ""


def unregistered(filters: Iterable[Filter]) -> Iterator[tuple[str, str]]:
    """Yield parameter and sentence of each filter by the name of something that is not registered.

    One SQL query for each kind of thing that is named.
    """
    named = list(filters)
    for kind, model in REGISTERED.items():
        options = [option for option in named if option.attribute == kind]
        if not options:
            continue
        rows = model._default_manager.filter(name__in={option.value for option in options})
        registered = set(rows.values_list("name", flat=True))
        for option in options:
            if option.value not in registered:
                sentence = f"{option.parameter} “{option.value}” is not known: "
                yield option.parameter, f"{sentence}use the name of a registered {kind}."
