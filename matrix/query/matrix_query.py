"""What a page or an API call asks for: URL <-> typed value <-> English sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from matrix.query.catalogue import STATISTICS
from matrix.query.filters import Filter, alternatives, by_parameter, words_of
from matrix.query.forms import (
    DEFAULT_SIZE,
    PARAMETERS,
    BadQueryError,
    QueryForm,
    unknown,
)
from sonar import windows
from sonar.windows import PRESET_WORDS, Window

NAMED = ("size", "window", "stat", "rows", "columns", "max_age")


@dataclass(frozen=True)
class MatrixQuery:
    """A question to the matrix: the state of a page and of its URL.

    ``window`` is a preset, or empty where ``start`` and ``end`` bound it. ``filters`` of one
    parameter are alternatives, those of different parameters must all hold, and every
    exclusion must hold. ``max_age`` is how old the last success of a cell may be, as it was
    written (`6h`, `21600`), or empty for any age.
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
        form = QueryForm(MultiValueDict(own_params))
        foreign = unknown(own_params, [*PARAMETERS, *also])
        errors = {name: list(map(str, sentences)) for name, sentences in form.errors.items()}
        if foreign or errors:
            raise BadQueryError(foreign | errors, foreign)
        values = form.cleaned_data
        return cls(
            size=values["size"] or form.default_size(),
            window=values["window"] or ("" if values["from"] else cls.window),
            start=values["from"],
            end=values["to"],
            stat=values["stat"] or cls.stat,
            rows=values["rows"] or cls.rows,
            columns=values["columns"] or cls.columns,
            max_age=values["max_age"],
            filters=form.filters(),
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
        return params | by_parameter(self.filters)

    def url(self, path: str, **also: str) -> str:
        """Return a path with these parameters and the caller's own behind it."""
        text = urlencode(
            self.to_params() | {name: [value] for name, value in also.items()}, True, ":!"
        )
        return f"{path}?{text}" if text else path

    def replace(self, **changes: str | datetime | tuple[Filter, ...] | None) -> MatrixQuery:
        """Return the same question with some fields changed; a preset replaces both bounds."""
        if changes.get("window"):
            changes |= {"start": None, "end": None}
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def without(self, dropped: Filter) -> MatrixQuery:
        return self.replace(
            filters=tuple(condition for condition in self.filters if condition != dropped)
        )

    def window_at(self, now: datetime) -> Window:
        """Return the window in force: a preset ends with the minute of ``now``."""
        if self.start and self.end:
            return Window(self.start, self.end)
        return windows.preset(self.window, now)

    def describe(self) -> str:
        """Say the question as one English sentence, without a full stop."""
        subject = STATISTICS[self.stat].sentence.format(files=f"{self.size}-file transfers")
        parts = [subject, self.window_words(), f"from {self.rows} to {self.columns}"]
        parts += [words_of(group) for group in alternatives(self.filters)]
        return ", ".join([*parts, self.age_words()] if self.max_age else parts)

    def age_words(self) -> str:
        """Say how old a last success may be."""
        unit = " s" if self.max_age.isdigit() else ""
        return f"only with a success in the last {self.max_age}{unit}"

    def window_words(self) -> str:
        """Say the window: `the last 7 days`, or its two bounds."""
        if not (self.start and self.end):
            return PRESET_WORDS[self.window]
        return f"{windows.format_bound(self.start)} to {windows.format_bound(self.end)} UTC"
