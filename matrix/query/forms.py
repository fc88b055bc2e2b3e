"""The parameters of a query as they come in a URL, checked by a Django form."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.http import QueryDict
from django.utils import timezone
from django.utils.datastructures import MultiValueDict

from matrix.query import comparison
from matrix.query.attributes import BY_NAME, ENDS, GROUPINGS, OF_RESULTS, OFFERED
from matrix.query.catalogue import STATS
from matrix.query.comparison import (
    BETWEEN,
    CUSTOM,
    OF,
    OF_AROUND,
    OF_FILTERS,
    OF_OF,
    OF_SIZE,
    PREFIX,
    REVERSE,
    WINDOWS,
    Comparison,
    around,
)
from matrix.query.filters import FILTERS, Filter
from sonar.models import Endpoint, Profile, SizeClass, Transfer
from sonar.notation import endpoint_attributes, windows
from sonar.notation.endpoint_attributes import ENDPOINT_ATTRIBUTES, OF_ENDPOINTS, Attribute
from sonar.notation.endpoint_filters import MOST_FILTERS
from sonar.notation.enumeration import either, not_allowed
from sonar.notation.renamed import new_name
from sonar.notation.units import parse_duration
from sonar.notation.windows import EARLIEST, PRESETS, Window

DEFAULT_SIZE = "large"
Texts = Mapping[str, Sequence[str]]
ALL_FILTERS = frozenset((*FILTERS, *OF_FILTERS))
PARAMETERS = (
    *("size", "window", "from", "to", "stat", "rows", "columns", "max_age"),
    *FILTERS,
    *comparison.PARAMETERS,
)
FILTER_FORM = ("filter_end", "filter_on", "filter_not", "filter_value")
FILTER_FORM_ALLOWED = {"filter_end": ("either", *ENDS), "filter_on": OFFERED, "filter_not": ("1",)}
COMPARED_ALLOWED = (
    f"use {', '.join(WINDOWS)}, {REVERSE}, or two times with {BETWEEN} between them, "
    f"for example, 2026-11-01{BETWEEN}2026-11-08"
)


def column_of(attribute: Attribute) -> Any:  # noqa: ANN401 - a field of a model
    """Return the column of the database that an attribute is in, the first if of several."""
    model: Any = Profile
    if attribute.name in OF_ENDPOINTS:
        model = Endpoint
    elif attribute.name in OF_RESULTS:
        model = Transfer
    *relations, column = attribute.columns[0].split("__")
    for relation in relations:
        model = model._meta.get_field(relation).related_model
    return model._meta.get_field(column)


COLUMNS = {name: column_of(attribute) for name, attribute in BY_NAME.items()}
# The values that a filter can have, where that is known beforehand.
ALLOWED_VALUES: dict[str, tuple[str, ...]] = {
    name: attribute.allowed or tuple(value for value, _ in COLUMNS[name].choices or ())
    for name, attribute in BY_NAME.items()
    if attribute.allowed or COLUMNS[name].choices
}
REGISTERED: dict[str, type[models.Model]] = {
    name: COLUMNS[name].model for name, attribute in BY_NAME.items() if attribute.registered
}


class ParameterField(forms.Field):
    """A field that may be left out, and names its parameter in its sentences."""

    def __init__(self, parameter: str) -> None:
        super().__init__(required=False)
        self.parameter = parameter


class FilterField(ParameterField):
    """The filters of one parameter; what stands before its name in the URL is its ``prefix``."""

    widget = forms.MultipleHiddenInput

    def __init__(self, parameter: str, prefix: str = "") -> None:
        super().__init__(parameter)
        self.prefix = prefix

    def clean(self, value: list[str] | None) -> tuple[Filter, ...]:
        filters = [
            Filter(self.parameter, text.removeprefix("!"), text.startswith("!"))
            for text in value or ()
            if text
        ]
        for option in filters:
            attribute, text = BY_NAME[option.attribute], option.value
            allowed = ALLOWED_VALUES.get(attribute.name, ())
            sentence = endpoint_attributes.value_problem(self.parameter, attribute, text, allowed)
            if option.exclude and text and text == getattr(attribute, "every", ""):
                sentence = (
                    f"{self.parameter} “!{text}” excludes everything: exclude individual values "
                    "instead."
                )
            if sentence:
                raise ValidationError(f"{self.prefix}{sentence}")
        return tuple(sorted(set(filters), key=lambda option: (option.exclude, option.value)))


def unregistered(filters: Iterable[Filter]) -> Iterator[tuple[str, str]]:
    """Yield parameter and sentence of each filter by an unregistered name. One SQL query a kind."""
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


class BadQueryError(ValueError):
    """The query cannot be answered; ``errors`` has sentences by parameter.

    ``unknown`` names those that are no parameters here: a page leaves them out and goes on.
    """

    def __init__(self, errors: Mapping[str, Sequence[str]], unknown: Iterable[str] = ()) -> None:
        self.unknown = tuple(unknown)
        self.errors = {name: list(sentences) for name, sentences in errors.items()}
        super().__init__(
            " ".join(sentence for sentences in self.errors.values() for sentence in sentences)
        )


def unknown(names: Iterable[str], allowed: Sequence[str]) -> dict[str, list[str]]:
    """Return a sentence for each name that is not allowed; the first says what is.

    There may be a hundred names that are, and hundreds of others in an address.
    """
    # As many again as there are filters are said in one.
    others = OF_FILTERS if set(OF_FILTERS) <= set(allowed) else ()
    short = dict.fromkeys(others, f"{PREFIX}<filter>")
    advised = sorted({short.get(name, name) for name in allowed})
    advice = f"use {either(advised)}" if allowed else "no parameters are allowed here"
    sentences = {name: f"There is no parameter “{name}”" for name in names if name not in allowed}
    for first in list(sentences)[:1]:
        sentences[first] += f": {advice}"
    for name in sentences:
        if now := new_name(name, allowed):
            sentences[name] = f"The parameter “{name}” is now called {now}"
    return {name: [f"{sentence}."] for name, sentence in sentences.items()}


def check_names(params: Iterable[str], allowed: Sequence[str] = ()) -> None:
    if errors := unknown(params, allowed):
        raise BadQueryError(errors, not_renamed(errors, allowed))


def not_renamed(names: Iterable[str], allowed: Sequence[str]) -> list[str]:
    """Return the names that a page may leave out: a renamed parameter is always an error."""
    return [name for name in names if not new_name(name, allowed)]


def check_count(params: Mapping[str, Sequence[str]]) -> None:
    """Raise BadQueryError for more filters than a question may have, on both of its sides.

    Each is a link of a page, whose address has all others in it: 260 made pages of 1.7 MB.
    """
    counts = {name: len(set(params[name]) - {""}) for name in ALL_FILTERS & params.keys()}
    if (count := sum(counts.values())) <= MOST_FILTERS:
        return
    name = max(sorted(counts), key=counts.__getitem__)
    sentence = (
        f"“{name}” has {counts[name]} values, which makes {count} filters: a query can have at "
        f"most {MOST_FILTERS}. Use fewer values, or filter by a tag, cloud or tier that the values "
        "share."
    )
    raise BadQueryError({name: [sentence]})


class OneOf(forms.ChoiceField):
    def __init__(self, parameter: str, allowed: Sequence[str]) -> None:
        self.parameter, self.allowed = parameter, allowed
        super().__init__(
            required=False,
            choices=[(option, option) for option in allowed],
        )

    def validate(self, value: str) -> None:
        if value and value not in self.allowed:
            sentence = not_allowed(self.parameter, value, self.allowed or ["none"])
            raise ValidationError(f"{sentence}.")


class Moment(ParameterField):
    def to_python(self, value: str | None) -> datetime | None:
        if not value:
            return None
        try:
            moment = windows.parse_time(value)
        except ValueError:
            moment = None
        if moment is None or moment < EARLIEST or moment.microsecond:
            raise ValidationError(
                f"{self.parameter} “{value}” is not a valid time. Use the format 2026-11-20 04:00 "
                "(UTC), from 1970 on, without fractions of a second."
            )
        return moment


class Age(ParameterField):
    """An age, kept as it was written."""

    def to_python(self, value: str | None) -> str:
        text = (value or "").strip()
        try:
            if text:
                read_age(text)
        except ValueError as error:
            raise ValidationError(f"{self.parameter} “{text}” is not {error}.") from None
        return text


def read_number(text: str) -> float:
    if not re.fullmatch(r"\d{1,15}(\.\d{0,9})?", text, re.ASCII):
        raise ValueError("a number of 0 or more, for example, 12.5")
    return float(text)


def read_age(text: str) -> float:
    """Read seconds, or a duration like `6h`; ValueError says what it should have been."""
    try:
        return read_number(text) if text.isdigit() else parse_duration(text).total_seconds()
    except ValueError:
        raise ValueError(
            "an age: enter a number of seconds, or a number with s, m, h or d, for example, 6h"
        ) from None


def check_once(form: forms.Form, params: Mapping[str, Sequence[str]], names: Iterable[str]) -> None:
    """Let a form say of each of these parameters that is given more than once that it is."""
    for name in names:
        if len(texts := params.get(name, ())) > 1:
            form.add_error(name, f"“{name}” is given {len(texts)} times: give it only once.")


def sentences_of(form: forms.Form) -> dict[str, list[str]]:
    return {name: list(map(str, sentences)) for name, sentences in form.errors.items()}


class QueryForm(forms.Form):
    """The parameters that pages and API share, checked."""

    def __init__(self, data: MultiValueDict[str, str]) -> None:
        super().__init__(data)
        self.params = data
        self.sizes = list(SizeClass.test_sizes())
        self.fields |= {
            "size": OneOf("size", self.sizes),
            "window": OneOf("window", PRESETS),
            "from": Moment("from"),
            "to": Moment("to"),
            "stat": OneOf("stat", STATS),
            "rows": OneOf("rows", GROUPINGS),
            "columns": OneOf("columns", GROUPINGS),
            "max_age": Age("max_age"),
            # Of more than twenty only those that are given: this is done for every request.
            **{name: FilterField(name) for name in FILTERS if name in data},
        }

    def clean(self) -> dict[str, Any]:
        once = [name for name in self.fields if name not in FILTERS]
        check_once(self, dict(self.params.lists()), once)
        start, end = self.cleaned_data.get("from"), self.cleaned_data.get("to")
        if (start or end) and not self.errors.keys() & {"from", "to"}:
            self.check_bounds(start, end)
        for parameter, sentence in unregistered(self.filters()):
            self.add_error(parameter, sentence)
        return self.cleaned_data

    def check_bounds(self, start: datetime | None, end: datetime | None) -> None:
        if self.cleaned_data.get("window"):
            self.add_error(
                "window",
                "“window” cannot be combined with “from” and “to”: use either “window”, or “from” "
                "and “to”.",
            )
        elif not (start and end):
            missing = "to" if start else "from"
            sentence = f"“{missing}” is missing: “from” and “to” must be given together."
            self.add_error(missing, sentence)
        elif start >= end:
            self.add_error("from", "“from” must be before “to”.")

    def filters(self) -> tuple[Filter, ...]:
        return tuple(
            condition for name in FILTERS for condition in self.cleaned_data.get(name) or ()
        )

    def default_size(self) -> str:
        return DEFAULT_SIZE if DEFAULT_SIZE in self.sizes else (self.sizes or [DEFAULT_SIZE])[-1]


class Compared(forms.Field):
    """A window, and whether links are compared with those of the opposite direction."""

    widget = forms.MultipleHiddenInput

    def __init__(self) -> None:
        super().__init__(required=False)

    def clean(self, value: list[str] | None) -> Comparison:
        texts = sorted({text.strip() for text in value or ()} - {""})
        named = [text for text in texts if text != REVERSE]
        if len(named) > 1:
            names = " and ".join(named)
            raise ValidationError(
                f"“compare” has {len(named)} time ranges, {names}: give only one time range."
            )
        text, reverse = named[0] if named else "", REVERSE in texts
        if not text or text in WINDOWS:
            return Comparison(text, reverse=reverse)
        if BETWEEN not in text:
            raise ValidationError(f"compare “{text}” is not known: {COMPARED_ALLOWED}.")
        start, end = (Moment("compare").clean(part) for part in text.split(BETWEEN, 1))
        if not (start and end):
            raise ValidationError(
                f"The time range “{text}” in “compare” has only one time: {COMPARED_ALLOWED}."
            )
        if start >= end:
            raise ValidationError(
                f"The time range “{text}” in “compare” must begin before it ends."
            )
        return Comparison(CUSTOM, start, end, reverse)


class ComparisonForm(forms.Form):
    """What is given of PARAMETERS, and the sizes there are."""

    def __init__(self, params: Mapping[str, Sequence[str]], sizes: Sequence[str]) -> None:
        self.params = {
            name: list(params[name]) for name in comparison.PARAMETERS if any(params.get(name, ()))
        }
        self.empty = [name for name in OF_FILTERS if name in params and name not in self.params]
        self.after: Window | None = None
        super().__init__(MultiValueDict(self.params))
        self.fields |= {
            "compare": Compared(),
            OF_SIZE: OneOf(OF_SIZE, sizes),
            OF_OF: OneOf(OF_OF, OF),
            OF_AROUND: Moment(OF_AROUND),
            **{
                name: FilterField(name.removeprefix(PREFIX), PREFIX)
                for name in OF_FILTERS
                if name in self.params
            },
        }

    def clean(self) -> dict[str, Any]:
        check_once(self, self.params, (OF_SIZE, OF_OF, OF_AROUND))
        moment: datetime | None = self.cleaned_data.get(OF_AROUND)
        compared: Comparison | None = self.cleaned_data.get("compare")
        if moment and compared and compared.window:
            sentence = "sets the time range to compare with: remove the time range in “compare”."
            self.add_error(OF_AROUND, f"“{OF_AROUND}” {sentence}")
        elif moment and compared:
            # The two windows around a moment: ``after`` is that of the question.
            try:
                self.after, before = around(moment, timezone.now())
            except ValueError as error:
                self.add_error(OF_AROUND, f"{OF_AROUND}: {error}.")
            else:
                self.cleaned_data["compare"] = replace(
                    compared, window=CUSTOM, start=before.start, end=before.end
                )
        for parameter, sentence in unregistered(self._filters()):
            self.add_error(f"{PREFIX}{parameter}", f"{PREFIX}{sentence}")
        return self.cleaned_data

    def _filters(self) -> tuple[Filter, ...]:
        return tuple(
            condition for name in OF_FILTERS for condition in self.cleaned_data.get(name) or ()
        )

    def comparison(
        self,
        size: str,
        filters: tuple[Filter, ...],
        bounds: Window | None,
        groupings: tuple[str, str],
    ) -> Comparison | None:
        """Return what a question of this size and so on is compared with, None for nothing.

        ``bounds`` are those of its window, if it names no preset. Raises BadQueryError for what
        cannot be compared with it, or is the question itself.
        """
        compared: Comparison = self.cleaned_data["compare"]
        compared = replace(
            compared,
            size=self.cleaned_data[OF_SIZE],
            filters=self._filters(),
            dropped=tuple(name.removeprefix(PREFIX) for name in self.empty),
            of=self.cleaned_data[OF_OF] or OF[0],
        )
        if compared.reverse and groupings[0] != groupings[1]:
            kinds = " and ".join(groupings)
            sentence = "compare=reverse requires rows and columns with the same grouping"
            raise BadQueryError({"compare": [f"{sentence}, but they are grouped by {kinds}."]})
        if bounds and not compared.is_possible(bounds):
            sentence = f"compare={compared.window} reaches back before 1970, the earliest year."
            raise BadQueryError({"compare": [sentence]})
        narrowed = compared.narrowed(size, filters, bounds, groupings)
        named = [name for name in self.params if name != OF_OF]
        if narrowed is None and named:
            sentence = "is already part of the query: compare with something else"
            raise BadQueryError({named[0]: [f"{named[0]} {sentence}."]})
        if narrowed is None and compared.of != OF[0]:
            sentence = f"“{OF_OF}” requires “compare”, “{OF_SIZE}” or “{PREFIX}<filter>”."
            raise BadQueryError({OF_OF: [sentence]})
        return narrowed


def with_filter_form(params: QueryDict) -> dict[str, list[str]]:
    """Turn the fields into the parameter of their filter; one without a value is none.

    Raises BadQueryError for a field that is none of the form's choices. The value is for the
    filter to check.
    """
    whole = {name: list(texts) for name, texts in params.lists()}
    fields = {name: next(iter(whole.pop(name, ())), "") for name in FILTER_FORM}
    errors = {
        name: [f"{not_allowed(name, fields[name], allowed)}."]
        for name, allowed in FILTER_FORM_ALLOWED.items()
        if fields[name] and fields[name] not in allowed
    }
    if errors:
        raise BadQueryError(errors)
    if value := fields["filter_value"].strip():
        text = f"!{value}" if fields["filter_not"] else value
        end, attribute = fields["filter_end"], fields["filter_on"] or ENDPOINT_ATTRIBUTES[0].name
        of_one_end = attribute in OF_ENDPOINTS and end in ENDS
        parameter = f"{end}_{attribute}" if of_one_end else attribute
        whole.setdefault(parameter, []).append(text)
    return whole


def one_of(params: Texts, name: str, allowed: Sequence[str]) -> str:
    """Return one of some words, or nothing; raise BadQueryError."""
    value = text_of(params, name)
    if value and value not in allowed:
        raise BadQueryError({name: [f"{not_allowed(name, value, allowed)}."]})
    return value


def text_of(params: Texts, name: str) -> str:
    values = params.get(name, ())
    if len(values) > 1:
        sentence = f"“{name}” is given {len(values)} times: give it only once."
        raise BadQueryError({name: [sentence]})
    return values[0] if values else ""
