"""How a matrix is drawn, beside what is asked: order, focus, colours. Also in the URL."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from matrix.plots.palettes import DEFAULT_PALETTE, PALETTES
from matrix.query import forms as query_forms
from matrix.query.catalogue import STATISTICS, VS_TARGET, VS_USUAL
from matrix.query.forms import BadQueryError, OneOf
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.cell_targets import TARGET_LOOKS
from matrix.statistics.cells.standing import FASTER, LEVELS, SLOWER
from matrix.statistics.cells.states import LOOKS
from sonar.notation.enumeration import not_allowed

ORDERS = ("name", "cloud", "tier", "average", "-average")
# Colours run from the 5th to the 95th percentile of the values, or over all of them.
SCALES = ("middle", "whole")
BOUNDS = ("above", "below", "low", "high")
FLAGS = ("transpose", "wall")
LARGEST = 1e12


@dataclass(frozen=True)
class Display:
    """How a matrix is drawn.

    Cells that have a look (looks_of) of ``only`` (any, if empty) and whose value lies from
    ``above`` to ``below`` are in focus. Colours run from ``low`` to ``high``. These four are in the
    unit of the statistic; None where the data decide, of which ``scale`` says how. A ``palette``
    that nobody asked for is empty: what the reader chose last is in its place then.
    """

    order: str = "name"
    transpose: bool = False
    only: tuple[str, ...] = ()
    above: float | None = None
    below: float | None = None
    palette: str = ""
    scale: str = "middle"
    low: float | None = None
    high: float | None = None
    wall: bool = False

    @classmethod
    def from_params(cls, params: Mapping[str, Sequence[str]], stat: str) -> Display:
        """Read the parameters named in PARAMETERS; raise BadQueryError with sentences.

        A form that may change the statistic says in `unit` what its numbers are in: those of
        another unit are dropped.
        """
        own_params = {name: list(params[name]) for name in PARAMETERS if name in params}
        if any(unit not in ("", STATISTICS[stat].unit.name) for unit in own_params.pop("unit", [])):
            own_params = {name: texts for name, texts in own_params.items() if name not in BOUNDS}
        form = DisplayForm(MultiValueDict(own_params), stat)
        if form.errors:
            raise BadQueryError(query_forms.sentences_of(form))
        values = {name: value for name, value in form.cleaned_data.items() if value != ""}
        return cls(**values | {name: True for name in FLAGS if name in values})

    def to_params(self) -> dict[str, list[str]]:
        """Return the URL parameters, defaults left out."""
        if self == Display():  # as most links of a page, which has a hundred
            return {}
        own = {name: value for name, value in vars(self).items() if value != getattr(Display, name)}
        texts: dict[str, list[str]] = {
            **{name: [value] for name, value in own.items() if isinstance(value, str)},
            **{name: ["1"] for name in FLAGS},
            **{name: [number_text(own.get(name))] for name in BOUNDS},
            "only": list(self.only),
        }
        return {name: texts[name] for name in own}

    @property
    def focuses(self) -> bool:
        return bool(self.only) or self.above is not None or self.below is not None

    @property
    def follows_values(self) -> bool:
        """Say whether the values decide which rows and columns are drawn, or in which order."""
        return self.focuses or self.order.endswith("average")

    @property
    def shows_levels(self) -> bool:
        """Say whether cells are in focus that are not as usual: their colours are to tell it."""
        return not {LEVELS[SLOWER], LEVELS[FASTER]}.isdisjoint(self.only)

    @property
    def palette_name(self) -> str:
        return self.palette or DEFAULT_PALETTE

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]

    def for_statistic(self, stat: str) -> Display:
        """Return it without the looks that cells have not which show a statistic."""
        return self.replace(only=tuple(look for look in self.only if look in looks_of(stat)))

    def unfocused(self) -> Display:
        return self.replace(only=(), above=None, below=None)

    def replace(self, **changes: Any) -> Display:  # noqa: ANN401 - fields of several types
        return dataclasses.replace(self, **changes)


PARAMETERS = (*(field.name for field in dataclasses.fields(Display)), "unit")


def number_text(value: float | None) -> str:
    """Write a number so that it is read as the same: 12, 0.5."""
    return "" if value is None else repr(value).removesuffix(".0")


class Number(query_forms.ParameterField):
    """A number that a statistic can have; a logarithm needs one above 0."""

    def __init__(self, parameter: str, *, positive: bool) -> None:
        super().__init__(parameter)
        self.positive = positive

    def to_python(self, value: str | None) -> float | None:
        if not (value or "").strip():
            return None
        try:
            number = float(value or "") + 0.0  # -0 is 0
        except ValueError:
            number = np.nan
        # No comparison holds for what is no number.
        if not 0 <= number <= LARGEST or (self.positive and number < 1e-9):
            start = "above 0" if self.positive else "from 0"
            raise ValidationError(
                f"{self.parameter} “{value}” is not a number {start} up to 10¹²: "
                "enter a number, for example, 0.5 or 120."
            )
        return number


def looks_of(stat: str) -> tuple[str, ...]:
    return (*LOOKS, *TARGET_LOOKS) if stat == VS_TARGET.name else LOOKS


class States(forms.Field):
    widget = forms.MultipleHiddenInput

    def __init__(self, stat: str) -> None:
        super().__init__(required=False)
        self.looks = looks_of(stat)

    def clean(self, value: list[str] | None) -> tuple[str, ...]:
        states = [text for text in value or () if text]
        for text in states:
            if text in TARGET_LOOKS and text not in self.looks:
                raise ValidationError(
                    f"The value “{text}” of “only” requires stat={VS_TARGET.name}."
                )
            if text not in self.looks:
                raise ValidationError(f"{not_allowed('only', text, self.looks)}.")
        return tuple(look for look in self.looks if look in states)


class DisplayForm(forms.Form):
    """The parameters of a Display, checked."""

    def __init__(self, data: MultiValueDict[str, str], stat: str) -> None:
        super().__init__(data)
        self.params = data
        self.fields |= {
            "order": OneOf("order", ORDERS),
            "transpose": OneOf("transpose", ("1",)),
            "only": States(stat),
            "above": Number("above", positive=False),
            "below": Number("below", positive=False),
            "palette": OneOf("palette", tuple(PALETTES)),
            "scale": OneOf("scale", SCALES),
            "low": Number("low", positive=STATISTICS[stat].scale != "linear"),
            "high": Number("high", positive=True),
            "wall": OneOf("wall", ("1",)),
        }

    def clean(self) -> dict[str, Any]:
        once = [name for name in self.fields if name != "only"]
        query_forms.check_once(self, dict(self.params.lists()), once)
        above, below, low, high = (self.cleaned_data.get(name) for name in BOUNDS)
        if above is not None and below is not None and above > below:
            self.add_error("above", "“above” must not be greater than “below”.")
        if low is not None and high is not None and low >= high:
            self.add_error("low", "“low” must be less than “high”.")
        return self.cleaned_data


def read(params: QueryDict) -> tuple[MatrixQuery, Display]:
    """Read the URL of the matrix page, or of the numbers behind it; raise BadQueryError.

    Where it names no statistic, what is slower or faster than usual is shown as such.
    """
    lists = query_forms.with_filter_form(params)
    query = MatrixQuery.from_params(lists, also=(*PARAMETERS, *query_forms.FILTER_FORM))
    display = Display.from_params(lists, query.stat)
    if not any(lists.get("stat", ())) and tells_levels(query, display):
        query = query.replace(stat=VS_USUAL.name)
    return query, display


def write(query: MatrixQuery, display: Display) -> dict[str, list[str]]:
    params = query.to_params() | display.to_params()
    if query.stat == MatrixQuery.stat and tells_levels(query, display):
        return {"stat": [query.stat]} | params
    return params


def tells_levels(query: MatrixQuery, display: Display) -> bool:
    """Say whether cells tell how far from usual they are: not if compared or bounded."""
    has_bounds = any(getattr(display, name) is not None for name in BOUNDS)
    return display.shows_levels and query.compare is None and not has_bounds
