"""The parameters that say what a question is compared with, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.datastructures import MultiValueDict

from matrix.query.comparison import (
    BETWEEN,
    CUSTOM,
    OF,
    OF_AROUND,
    OF_FILTERS,
    OF_OF,
    OF_SIZE,
    PARAMETERS,
    PREFIX,
    REVERSE,
    WINDOWS,
    Comparison,
    around,
)
from matrix.query.filters import Filter
from matrix.query.forms import BadQueryError, FilterField, Moment, OneOf, unregistered
from sonar.notation.windows import EARLIEST, Window

ALLOWED = (
    f"use {', '.join(WINDOWS)}, {REVERSE}, or two times with {BETWEEN} between them, "
    f"like 2026-11-01{BETWEEN}2026-11-08"
)


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
            raise ValidationError(f"compare names {len(named)} windows, {names}: give one of them.")
        compared = self._of_window(named[0]) if named else Comparison()
        return replace(compared, reverse=REVERSE in texts)

    def _of_window(self, text: str) -> Comparison:
        if text in WINDOWS:
            return Comparison(text)
        if BETWEEN not in text:
            raise ValidationError(f"compare “{text}” is not known: {ALLOWED}.")
        start, end = (Moment("compare").clean(part) for part in text.split(BETWEEN, 1))
        if not (start and end):
            raise ValidationError(f"compare “{text}” has one time: {ALLOWED}.")
        if start >= end:
            raise ValidationError(f"compare “{text}” must begin before it ends.")
        return Comparison(CUSTOM, start, end)


class ComparisonForm(forms.Form):
    """What is given of PARAMETERS, and the sizes there are."""

    def __init__(self, params: Mapping[str, Sequence[str]], sizes: Sequence[str]) -> None:
        self.params = {name: list(params[name]) for name in PARAMETERS if any(params.get(name, ()))}
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
        for name in (OF_SIZE, OF_OF, OF_AROUND):
            if len(texts := self.params.get(name, ())) > 1:
                self.add_error(name, f"{name} is given {len(texts)} times: give it once.")
        self._clean_around()
        for parameter, sentence in unregistered(self._filters()):
            self.add_error(f"{PREFIX}{parameter}", f"{PREFIX}{sentence}")
        return self.cleaned_data

    def _clean_around(self) -> None:
        """Take the two windows around a moment: ``after`` is that of the question."""
        moment: datetime | None = self.cleaned_data.get(OF_AROUND)
        compared: Comparison | None = self.cleaned_data.get("compare")
        if moment is None or compared is None:
            return
        if compared.window:
            self.add_error(
                OF_AROUND, f"{OF_AROUND} brings its own window to compare: leave out the other."
            )
            return
        try:
            self.after, before = around(moment, timezone.now())
        except ValueError as error:
            self.add_error(OF_AROUND, f"{OF_AROUND}: {error}.")
            return
        self.cleaned_data["compare"] = replace(
            compared, window=CUSTOM, start=before.start, end=before.end
        )

    def _filters(self) -> tuple[Filter, ...]:
        return tuple(
            condition for name in OF_FILTERS for condition in self.cleaned_data.get(name) or ()
        )

    @property
    def sentences(self) -> dict[str, list[str]]:
        """Return what is wrong, by parameter."""
        return {name: list(map(str, sentences)) for name, sentences in self.errors.items()}

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
        narrowed = compared.narrowed(size, filters, bounds, groupings)
        sentences = self._not_possible(compared, bounds, groupings)
        if not sentences and narrowed is None:
            sentences = self._nothing_else(compared.of)
        if sentences:
            raise BadQueryError({name: [sentence] for name, sentence in sentences.items()})
        return narrowed

    def _not_possible(
        self, compared: Comparison, bounds: Window | None, groupings: tuple[str, str]
    ) -> dict[str, str]:
        """Return a sentence by parameter for what cannot be compared."""
        if compared.reverse and groupings[0] != groupings[1]:
            kinds = " and ".join(groupings)
            sentence = "compare=reverse needs rows and columns of the same kind"
            return {"compare": f"{sentence}: these are by {kinds}."}
        if bounds and not is_possible(compared, bounds):
            return {"compare": f"compare={compared.window} reaches back to before 1970."}
        return {}

    def _nothing_else(self, of: str) -> dict[str, str]:
        """Return a sentence by parameter if what is given leaves nothing to compare with."""
        for name in self.params:
            if name != OF_OF:
                sentence = "is what the question has already: compare with something else"
                return {name: f"{name} {sentence}."}
        if of == OF[0]:
            return {}
        sentence = f"says what is divided: give compare, {OF_SIZE} or {PREFIX}<filter>, too"
        return {OF_OF: f"{OF_OF} {sentence}."}


def is_possible(compared: Comparison, bounds: Window) -> bool:
    """Say whether the other side of a window lies in a time that can be asked for."""
    try:
        return compared.window_of(bounds).start >= EARLIEST
    except OverflowError:
        return False
