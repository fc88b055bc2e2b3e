"""What a page or an API call asks for: URL <-> typed value <-> English sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.datastructures import MultiValueDict

from matrix.query import comparison
from matrix.query.catalogue import RATIO, RATIO_OF_MEANS, STATISTICS, Statistic
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
from matrix.query.filters import Filter, alternatives, by_parameter, words_of
from matrix.query.forms import (
    DEFAULT_SIZE,
    PARAMETERS,
    BadQueryError,
    FilterField,
    Moment,
    OneOf,
    QueryForm,
    check_count,
    check_once,
    sentences_of,
    unknown,
    unregistered,
)
from matrix.query.url_text import encoded
from sonar.notation import windows
from sonar.notation.windows import PRESET_WORDS, Window

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
        text, reverse = named[0] if named else "", REVERSE in texts
        if not text or text in WINDOWS:
            return Comparison(text, reverse=reverse)
        if BETWEEN not in text:
            raise ValidationError(f"compare “{text}” is not known: {ALLOWED}.")
        start, end = (Moment("compare").clean(part) for part in text.split(BETWEEN, 1))
        if not (start and end):
            raise ValidationError(f"compare “{text}” has one time: {ALLOWED}.")
        if start >= end:
            raise ValidationError(f"compare “{text}” must begin before it ends.")
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
            sentence = "brings its own window to compare: leave out the other."
            self.add_error(OF_AROUND, f"{OF_AROUND} {sentence}")
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
            sentence = "compare=reverse needs rows and columns of the same kind"
            raise BadQueryError({"compare": [f"{sentence}: these are by {kinds}."]})
        if bounds and not compared.is_possible(bounds):
            sentence = f"compare={compared.window} reaches back to before 1970."
            raise BadQueryError({"compare": [sentence]})
        narrowed = compared.narrowed(size, filters, bounds, groupings)
        named = [name for name in self.params if name != OF_OF]
        if narrowed is None and named:
            sentence = "is what the question has already: compare with something else"
            raise BadQueryError({named[0]: [f"{named[0]} {sentence}."]})
        if narrowed is None and compared.of != OF[0]:
            sentence = f"says what is divided: give compare, {OF_SIZE} or {PREFIX}<filter>, too"
            raise BadQueryError({OF_OF: [f"{OF_OF} {sentence}."]})
        return narrowed


NAMED = ("size", "window", "stat", "rows", "columns", "max_age")


@dataclass(frozen=True)
class MatrixQuery:
    """A question to the matrix: the state of a page and of its URL.

    ``window`` is a preset, or empty where ``start`` and ``end`` bound it. ``filters`` of one
    parameter are alternatives, those of different parameters must all hold, and every
    exclusion must hold. ``max_age`` is how old the last success of a cell may be, as it was
    written (`6h`, `21600`), or empty for any age. With something to ``compare`` it asks for the
    ratio of its rates to those of other().
    """

    size: str = DEFAULT_SIZE
    window: str = "7d"
    start: datetime | None = None
    end: datetime | None = None
    stat: str = "mean"
    rows: str = "endpoint"
    columns: str = "endpoint"
    max_age: str = ""
    filters: tuple[Filter, ...] = ()
    compare: Comparison | None = None

    @classmethod
    def from_params(
        cls, params: QueryDict | Mapping[str, Sequence[str]], also: Iterable[str] = ()
    ) -> MatrixQuery:
        """Read URL parameters; those named in ``also`` belong to the caller and are left out.

        Raises BadQueryError with sentences by parameter: for an unknown parameter, a value
        that is not allowed, or the name of something that is not registered.
        """
        lists = dict(params.lists()) if isinstance(params, QueryDict) else params
        own_params = {name: list(texts) for name, texts in lists.items() if name not in also}
        check_count(own_params)
        form = QueryForm(MultiValueDict(own_params))
        foreign = unknown(own_params, [*PARAMETERS, *also])
        compared = ComparisonForm(own_params, form.sizes)
        errors = sentences_of(form) | sentences_of(compared)
        if foreign or errors:
            raise BadQueryError(foreign | errors, foreign)
        values = form.cleaned_data
        named: dict[str, Any] = {"size": form.default_size()} | (
            {"window": ""} if values["from"] else {}
        )
        named |= {name: values[name] for name in NAMED if values[name]}
        query = cls(start=values["from"], end=values["to"], filters=form.filters(), **named)
        if compared.after:
            query = query.during(compared.after)
        groupings = query.rows, query.columns
        return query.replace(
            compare=compared.comparison(query.size, query.filters, query.bounds, groupings)
        )

    def to_params(self) -> dict[str, list[str]]:
        """Return the URL parameters, defaults left out: one view has one URL."""
        named = {name: getattr(self, name) for name in NAMED}
        params = {
            name: [text]
            for name, text in named.items()
            if text and text != getattr(MatrixQuery, name)
        }
        if self.start and self.end:
            params |= {
                "from": [windows.format_time(self.start)],
                "to": [windows.format_time(self.end)],
            }
        params |= by_parameter(self.filters)
        return params | self.compare.to_params() if self.compare else params

    def url(self, path: str, **also: str) -> str:
        text = encoded(self.to_params() | {name: [value] for name, value in also.items()})
        return f"{path}?{text}" if text else path

    def replace(
        self, **changes: str | datetime | tuple[Filter, ...] | Comparison | None
    ) -> MatrixQuery:
        """Return the same question with some fields changed; a preset replaces both bounds.

        What no longer differs on the other side is no longer compared.
        """
        if changes.get("window"):
            changes |= {"start": None, "end": None}
        query = dataclasses.replace(self, **changes)  # type: ignore[arg-type]
        if query.compare is None:
            return query
        compare = query.compare.narrowed(
            query.size, query.filters, query.bounds, (query.rows, query.columns)
        )
        return dataclasses.replace(query, compare=compare)

    def without(self, dropped: Filter) -> MatrixQuery:
        return self.replace(
            filters=tuple(condition for condition in self.filters if condition != dropped)
        )

    def during(self, window: Window) -> MatrixQuery:
        return self.replace(window="", start=window.start, end=window.end)

    def around(
        self, moment: datetime, now: datetime, before: timedelta | None = None
    ) -> MatrixQuery:
        """Compare the time since a moment with that before it; ValueError as moments.around."""
        after, other = around(moment, now, before)
        compare = Comparison(CUSTOM, other.start, other.end)
        return self.replace(compare=None).during(after).replace(compare=compare)

    @property
    def bounds(self) -> Window | None:
        """Return the window if no preset names it."""
        return Window(self.start, self.end) if self.start and self.end else None

    def window_at(self, now: datetime) -> Window:
        """Return the window in force: a preset ends with the minute of ``now``."""
        return self.bounds or windows.preset(self.window, now)

    def other(self, now: datetime) -> MatrixQuery:
        """Return the question that this one is compared with, its window between two bounds."""
        if self.compare is None:
            raise ValueError("the question is compared with nothing")
        window = self.compare.window_of(self.window_at(now))
        return self.replace(
            size=self.compare.size or self.size,
            window="",
            start=window.start,
            end=window.end,
            max_age="",
            filters=self.compare.filters_of(self.filters),
            compare=None,
        )

    @property
    def statistic(self) -> Statistic:
        """Return what is shown: a ratio while comparing, or else the statistic by its name."""
        if self.compare is None:
            return STATISTICS[self.stat]
        return RATIO if self.compare.of == OF[0] else RATIO_OF_MEANS

    def describe(self) -> str:
        """Say the question as one English sentence, without a full stop."""
        subject = self.statistic.sentence.format(files=f"{self.size}-file transfers")
        parts = [subject, self.window_words()]
        if (self.rows, self.columns) != (MatrixQuery.rows, MatrixQuery.columns):
            parts.append(f"from {self.rows} to {self.columns}")
        parts += [words_of(group) for group in alternatives(self.filters)]
        parts += [self.age_words()] if self.max_age else []
        parts += [f"compared with {self.other_words()}"] if self.compare else []
        return ", ".join(parts)

    def describe_in_unit(self) -> str:
        unit = self.statistic.unit.behind
        return f"{self.describe()}, in {unit}" if unit else self.describe()

    def other_words(self) -> str:
        return self.compare.words(self.window, self.bounds) if self.compare else ""

    def age_words(self) -> str:
        unit = " s" if self.max_age.isdigit() else ""
        return f"only with a success in the last {self.max_age}{unit}"

    def window_words(self) -> str:
        """Say the window: `the last 7 days`, or its two bounds."""
        return windows.format_window(self.bounds) if self.bounds else PRESET_WORDS[self.window]
