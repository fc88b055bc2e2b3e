"""What a page or an API call asks for: URL <-> typed value <-> English sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from matrix.query import forms
from matrix.query.catalogue import RATIO, RATIO_OF_MEANS, STATISTICS, Statistic
from matrix.query.comparison import CUSTOM, OF, Comparison, around
from matrix.query.filters import Filter, alternatives, by_parameter, words_of
from matrix.query.url_text import encoded
from sonar.notation import windows
from sonar.notation.windows import PRESET_WORDS, Window

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

    size: str = forms.DEFAULT_SIZE
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
        forms.check_count(own_params)
        form = forms.QueryForm(MultiValueDict(own_params))
        allowed = [*forms.PARAMETERS, *also]
        foreign = forms.unknown(own_params, allowed)
        compared = forms.ComparisonForm(own_params, form.sizes)
        errors = forms.sentences_of(form) | forms.sentences_of(compared)
        if foreign or errors:
            raise forms.BadQueryError(foreign | errors, forms.not_renamed(foreign, allowed))
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
            bounds = windows.format_time(self.start), windows.format_time(self.end)
            params |= {"from": [bounds[0]], "to": [bounds[1]]}
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
            raise ValueError("the query has no comparison")
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
        return f"only links with a successful test in the last {self.max_age}{unit}"

    def window_words(self) -> str:
        """Say the window: `the last 7 days`, or its two bounds."""
        return windows.format_window(self.bounds) if self.bounds else PRESET_WORDS[self.window]
