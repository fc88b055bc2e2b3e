"""How a link table is searched, narrowed, ordered and turned page by page.

The parameters are `search` (every word must be in some attribute of one of the ends), `ordering`
(a column, with `-` in front for the greatest first), `quantiles` (columns that are there for who
asks: `median,p95`), `page`, `per_page`, and those of matrix/answers/column_filters.py.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict

from matrix.answers import column_filters
from matrix.answers.column_filters import READERS, Condition
from matrix.answers.link_columns import COLUMNS
from matrix.answers.link_table import LinkTable
from matrix.query.attributes import BY_KEY, ENDS, FACTS
from matrix.query.catalogue import TABLE_QUANTILES, Statistic
from matrix.query.filters import either
from matrix.query.forms import BadQueryError, OneOf, read_number
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.statistics.states import LOOKS

PER_PAGE = (25, 50, 100, 250, 1000)
LONGEST_TEXT = 200
# Of the size class that the query asks for.
SHORT = {
    "min_mb_s": "mean_mb_s.min",
    "max_mb_s": "mean_mb_s.max",
    "max_age": "age.max",
    "only": "state.is",
}

Params = dict[str, list[str]]


@dataclass(frozen=True)
class TableQuery:
    """Which rows of a table are shown, and in what order."""

    ordering: str = "source"
    search: str = ""
    quantiles: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    page: int = 1
    per_page: int = 50

    def params(self) -> Params:
        """Return the URL parameters, defaults left out."""
        turning = {"page": self.page, "per_page": self.per_page}
        changed = {name: at for name, at in turning.items() if at != getattr(TableQuery, name)}
        return self.choosing() | {name: [str(value)] for name, value in changed.items()}

    def choosing(self) -> Params:
        """Return the parameters that say which links are shown, and in what order."""
        named = {"search": self.search, "ordering": self.ordering}
        changed = {name: text for name, text in named.items() if text != getattr(TableQuery, name)}
        changed |= {"quantiles": ",".join(self.quantiles)} if self.quantiles else {}
        changed |= {condition.name: condition.text for condition in self.conditions}
        return {name: [text] for name, text in changed.items()}

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401 - any of the fields
        """Return the same listing with something changed, from its first page on."""
        return dataclasses.replace(self, **{"page": 1, **changes})

    def without(self, dropped: Condition) -> Self:
        return self.replace(
            conditions=tuple(condition for condition in self.conditions if condition != dropped)
        )

    @property
    def columns(self) -> tuple[Statistic, ...]:
        """Return the quantiles that a table needs: those to show, to order or to filter by."""
        used = {self.column, *(condition.column for condition in self.conditions)}
        fields = {column.rpartition(".")[2] for column in used}
        return tuple(
            quantile
            for name, quantile in TABLE_QUANTILES.items()
            if name in self.quantiles or quantile.field in fields
        )

    def without_column(self, dropped: Statistic) -> Self:
        """Return the listing without a quantile, and so neither ordered nor filtered by it."""
        is_ordered = self.column.endswith(f".{dropped.field}")
        return self.replace(
            ordering=TableQuery.ordering if is_ordered else self.ordering,
            quantiles=tuple(name for name in self.quantiles if name != dropped.name),
            conditions=tuple(
                condition
                for condition in self.conditions
                if not condition.column.endswith(f".{dropped.field}")
            ),
        )

    def text(self, parameter: str) -> str:
        """Return what a condition was given as, or nothing."""
        return next(
            (condition.text for condition in self.conditions if condition.name == parameter), ""
        )

    @property
    def column(self) -> str:
        return self.ordering.removeprefix("-")

    @property
    def descending(self) -> bool:
        return self.ordering.startswith("-")

    def rows(self, table: LinkTable, now: datetime) -> Integers:
        """Return the rows of the table that are shown, in their order."""
        shown = table.searched(self.search)
        for condition in self.conditions:
            shown &= condition.holds(table, now)
        return table.order(self.column, descending=self.descending, among=shown)


def read(
    params: QueryDict, sizes: Sequence[str], also: Iterable[str] = ()
) -> tuple[MatrixQuery, TableQuery]:
    """Read what a URL asks for: which results, and which links of the table.

    ``sizes`` are the names of all size classes; parameters named in ``also`` belong to the
    caller. Raises BadQueryError with sentences by parameter.
    """
    own = parameters(sizes)
    query = MatrixQuery.from_params(params, also=(*own, *also))
    own_params = {name: texts for name, texts in params.lists() if name in own and any(texts)}
    shorts = {f"{query.size}.{name}": short for short, name in SHORT.items() if short in own_params}
    if "only" in own_params:
        # As the matrix has it: several times.
        own_params["only"] = [",".join(own_params["only"])]
    for name, short in shorts.items():
        own_params.setdefault(name, []).extend(own_params.pop(short))
    form = ListingForm(own_params, sizes)
    if form.errors:
        # Each parameter is called as it was given.
        errors = {
            short: [str(sentence).replace(name, short) for sentence in sentences]
            for name, sentences in form.errors.items()
            for short in [shorts.get(name, name)]
        }
        raise BadQueryError(errors)
    values = form.cleaned_data
    return query, TableQuery(
        ordering=values["ordering"] or TableQuery.ordering,
        search=values["search"],
        quantiles=values["quantiles"],
        conditions=tuple(value for value in values.values() if isinstance(value, Condition)),
        page=values["page"],
        per_page=int(values["per_page"] or TableQuery.per_page),
    )


def parameters(sizes: Sequence[str]) -> tuple[str, ...]:
    """Name all parameters of a listing."""
    turning = ("search", "ordering", "quantiles", "page", "per_page")
    return (*turning, *SHORT, *column_filters.names(sizes))


def orderings(sizes: Iterable[str]) -> list[str]:
    """Name the columns that a table can be ordered by."""
    places = [f"{end}.{key}" for end in ENDS for key in FACTS]
    fields = (*COLUMNS, *(quantile.field for quantile in TABLE_QUANTILES.values()))
    return [*ENDS, *places, "priority", *(f"{size}.{name}" for size in sizes for name in fields)]


class ListingForm(forms.Form):
    """The parameters of a listing, checked; each is given once."""

    def __init__(self, params: Mapping[str, Sequence[str]], sizes: Sequence[str]) -> None:
        super().__init__({name: texts[-1] for name, texts in params.items()})
        self.params = params
        self.fields |= {
            "search": Text("search"),
            "ordering": Ordering("ordering", orderings(sizes)),
            "quantiles": Quantiles("quantiles"),
            "page": PageNumber("page"),
            "per_page": OneOf("per_page", [str(number) for number in PER_PAGE]),
            **{
                name: FIELDS.get(name.rpartition(".")[2], Bound)(name)
                for name in column_filters.names(sizes)
                if name in params
            },
        }

    def clean(self) -> dict[str, Any]:
        for name, texts in self.params.items():
            if len(texts) > 1:
                self.add_error(name, f"{name} is given {len(texts)} times: give it once.")
        return self.cleaned_data


class Named(forms.Field):
    """A field that says its parameter's name in its sentences."""

    def __init__(self, parameter: str) -> None:
        super().__init__(required=False)
        self.parameter = parameter

    def wrong(self, text: str, allowed: str) -> ValidationError:
        return ValidationError(f"{self.parameter} “{text}” is not {allowed}.")


class Text(Named):
    def to_python(self, value: str | None) -> Any:  # noqa: ANN401 - text here, more in Has
        text = " ".join((value or "").split())
        if len(text) > LONGEST_TEXT or not text.isprintable():
            raise self.wrong(text[:20], f"at most {LONGEST_TEXT} printable characters")
        return text


class Quantiles(Named):
    def to_python(self, value: str | None) -> tuple[str, ...]:
        names = [name.strip() for name in (value or "").split(",") if name.strip()]
        for name in names:
            if name not in TABLE_QUANTILES:
                allowed = either(tuple(TABLE_QUANTILES))
                raise ValidationError(f"{self.parameter} “{name}” is not known: use {allowed}.")
        return tuple(name for name in TABLE_QUANTILES if name in names)


class Ordering(OneOf):
    def __init__(self, parameter: str, columns: Sequence[str]) -> None:
        super().__init__(parameter, columns)
        self.choices = [(f"{sign}{name}", name) for name in columns for sign in ("", "-")]
        self.error_messages["invalid_choice"] += " Put - in front for the greatest first."


class PageNumber(Named):
    def to_python(self, value: str | None) -> int:
        text = value or "1"
        # Python reads no number of thousands of digits, not even of zeros.
        if not re.fullmatch(r"0{0,9}[1-9][0-9]{0,8}", text):
            raise self.wrong(text, "a whole number from 1 on")
        return int(text)


class Has(Text):
    def to_python(self, value: str | None) -> Condition | None:
        column, _, how = self.parameter.rpartition(".")
        text = super().to_python(value)
        return Condition(column, how, text) if text else None


class Is(Named):
    def to_python(self, value: str | None) -> Condition | None:
        column, _, how = self.parameter.rpartition(".")
        key = column.rpartition(".")[2]
        if key == "state":
            return self.of_state(column, value or "")
        attribute = BY_KEY[key]
        if value and value not in attribute.allowed:
            raise self.wrong(value, f"a {attribute.title}: use {either(attribute.allowed)}")
        return Condition(column, how, value) if value else None

    def of_state(self, column: str, value: str) -> Condition | None:
        """Read some of LOOKS, as `failing,slower`."""
        looks = [text.strip() for text in value.split(",") if text.strip()]
        for look in looks:
            if look not in LOOKS:
                raise self.wrong(look, f"a state: use {either(LOOKS)}")
        chosen = [look for look in LOOKS if look in looks]
        return Condition(column, "is", ",".join(chosen)) if chosen else None


class Bound(Named):
    def to_python(self, value: str | None) -> Condition | None:
        column, _, how = self.parameter.rpartition(".")
        text = (value or "").strip()
        try:
            number = READERS.get(column.rpartition(".")[2], read_number)(text) if text else 0
        except ValueError as error:
            raise self.wrong(text, str(error)) from None
        return Condition(column, how, text, number) if text else None


FIELDS: dict[str, type[Named]] = {"has": Has, "is": Is}
