"""How a link table is searched, narrowed, ordered and turned page by page.

The parameters are `search` (every word must be in some attribute of one of the ends), `ordering`
(a column, or `trouble`, with `-` in front for the greatest first), `quantiles` (columns that are
there for who asks: `median,p95`), `overhead` (`1` for those of overhead and bandwidth), `constant`
(`1` for columns with one value in all rows, too), `page`, `per_page`, and those of
matrix/answers/table/column_filters.py.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Self

from django.http import QueryDict

from matrix.answers.table import column_filters
from matrix.answers.table.column_filters import Condition
from matrix.answers.table.link_table import COLUMNS, COMPARED, LINE_COLUMNS, TROUBLE, LinkTable
from matrix.query.attributes import ENDS, FACTS
from matrix.query.catalogue import TABLE_QUANTILES, Statistic
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from sonar.notation.enumeration import either

PER_PAGE = (25, 50, 100, 250, 1000)
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
    """Which rows of a table are shown, and in what order; ``usual`` is the one that is not said."""

    ordering: str = "source"
    usual: str = "source"
    search: str = ""
    quantiles: tuple[str, ...] = ()
    overhead: bool = False
    constant: bool = False
    conditions: tuple[Condition, ...] = ()
    page: int = 1
    per_page: int = 50

    def params(self) -> Params:
        """Return the URL parameters, defaults left out."""
        turning = {"page": self.page, "per_page": self.per_page, "constant": int(self.constant)}
        return self.choosing() | {
            name: [str(at)] for name, at in turning.items() if at != getattr(TableQuery, name)
        }

    def choosing(self) -> Params:
        changed = {"search": self.search} if self.search else {}
        changed |= {"ordering": self.ordering} if self.ordering != self.usual else {}
        changed |= {"quantiles": ",".join(self.quantiles)} if self.quantiles else {}
        changed |= {"overhead": "1"} if self.overhead else {}
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
        fields = {column.rpartition(".")[2] for column in self._used()}
        return tuple(
            quantile
            for name, quantile in TABLE_QUANTILES.items()
            if name in self.quantiles or quantile.field in fields
        )

    @property
    def lines(self) -> bool:
        return self.overhead or not self._used().isdisjoint(LINE_COLUMNS)

    def _used(self) -> set[str]:
        return {self.column, *(condition.column for condition in self.conditions)}

    def without_lines(self) -> Self:
        """Return the listing without overhead and bandwidth, neither ordered nor filtered by it."""
        return self.without_fields(LINE_COLUMNS).replace(overhead=False)

    def without_column(self, dropped: Statistic) -> Self:
        """Return the listing without a quantile, and so neither ordered nor filtered by it."""
        names = tuple(name for name in self.quantiles if name != dropped.name)
        return self.without_fields({dropped.field}).replace(quantiles=names)

    def without_fields(self, fields: Collection[str]) -> Self:
        kept = [own for own in self.conditions if own.column.rpartition(".")[2] not in fields]
        is_dropped = self.column.rpartition(".")[2] in fields
        ordering = self.usual if is_dropped else self.ordering
        return self.replace(ordering=ordering, conditions=tuple(kept))

    @property
    def column(self) -> str:
        return self.ordering.removeprefix("-")

    @property
    def descending(self) -> bool:
        return self.ordering.startswith("-")

    def rows(self, table: LinkTable, now: datetime) -> Integers:
        shown = table.searched(self.search)
        for condition in self.conditions:
            shown &= condition.holds(table, now)
        return table.order(self.column, descending=self.descending, among=shown)


def read(
    params: QueryDict,
    sizes: Sequence[str],
    also: Iterable[str] = (),
    usual: str = TableQuery.ordering,
) -> tuple[MatrixQuery, TableQuery]:
    """Read what a URL asks for: which results, and which links of the table.

    ``sizes`` are the names of all size classes; parameters named in ``also`` belong to the
    caller; ``usual`` is the order where the URL says none. Raises BadQueryError with sentences by
    parameter.
    """
    query = MatrixQuery.from_params(params, also=(*parameters(sizes, *sizes), *also))
    compared = [query.size] if query.compare else []
    own = parameters(sizes, *compared)
    column_filters.check_compared(params, own, sizes)
    own_params = {name: texts for name, texts in params.lists() if name in own and any(texts)}
    shorts = {f"{query.size}.{name}": short for short, name in SHORT.items() if short in own_params}
    if "only" in own_params:
        # As the matrix has it: several times.
        own_params["only"] = [",".join(own_params["only"])]
    for name, short in shorts.items():
        own_params.setdefault(name, []).extend(own_params.pop(short))
    try:
        values = read_values(own_params, sizes, compared)
    except BadQueryError as error:
        # Each parameter is called as it was given.
        raise BadQueryError(
            {
                short: [sentence.replace(name, short) for sentence in sentences]
                for name, sentences in error.errors.items()
                for short in [shorts.get(name, name)]
            }
        ) from None
    return query, TableQuery(
        ordering=values["ordering"] or usual,
        usual=usual,
        overhead=bool(values["overhead"]),
        constant=bool(values["constant"]),
        conditions=tuple(own for own in values.values() if isinstance(own, Condition)),
        per_page=int(values["per_page"] or TableQuery.per_page),
        **{name: values[name] for name in ("search", "quantiles", "page")},
    )


def heading(query: MatrixQuery) -> str:
    parts = ["Rates of links by size class", query.window_words()]
    parts += [condition.words() for condition in query.filters]
    parts += [f"{query.size} files compared with {query.other_words()}"] if query.compare else []
    return ", ".join(parts)


def parameters(sizes: Sequence[str], *compared: str) -> tuple[str, ...]:
    """Name all parameters of a listing, in which these size classes are ``compared``."""
    turning = ("search", "ordering", "quantiles", "overhead", "constant", "page", "per_page")
    return (*turning, *SHORT, *column_filters.names(sizes, *compared))


def orderings(sizes: Iterable[str], *compared: str) -> list[str]:
    places = [f"{end}.{key}" for end in ENDS for key in FACTS]
    fields = (*COLUMNS, *(quantile.field for quantile in TABLE_QUANTILES.values()))
    named = ((sizes, fields), (compared, COMPARED))
    of_sizes = [f"{size}.{name}" for of, names in named for size in of for name in names]
    return [*ENDS, *places, "priority", TROUBLE, *LINE_COLUMNS, *of_sizes]


def read_values(
    params: Mapping[str, Sequence[str]], sizes: Sequence[str], compared: Sequence[str]
) -> dict[str, Any]:
    """Read the parameters of a listing, each of which is given once; raise BadQueryError."""
    conditions = [name for name in column_filters.names(sizes, *compared) if name in params]
    readers: dict[str, Callable[[str, str], Any]] = {
        "search": column_filters.read_text,
        "ordering": partial(read_ordering, orderings(sizes, *compared)),
        "quantiles": partial(column_filters.read_some, tuple(TABLE_QUANTILES)),
        "overhead": partial(read_choice, ("1",)),
        "constant": partial(read_choice, ("1",)),
        "page": column_filters.read_page,
        "per_page": partial(read_choice, [str(number) for number in PER_PAGE]),
        **dict.fromkeys(conditions, column_filters.read_condition),
    }
    values: dict[str, Any] = {}
    errors: dict[str, list[str]] = {}
    for name, reader in readers.items():
        try:
            values[name] = reader(name, params.get(name, [""])[-1])
        except ValueError as error:
            errors[name] = [str(error)]
    for name, texts in params.items():
        if len(texts) > 1:
            sentence = f"“{name}” is given {len(texts)} times: give it only once."
            errors.setdefault(name, []).append(sentence)
    if errors:
        raise BadQueryError(errors)
    return values


def read_choice(allowed: Sequence[str], parameter: str, value: str) -> str:
    if value and value not in allowed:
        raise column_filters.wrong(parameter, value, f"known: use {either(allowed)}")
    return value


def read_ordering(columns: Sequence[str], parameter: str, value: str) -> str:
    if value and value.removeprefix("-") not in columns:
        refusal = column_filters.wrong(parameter, value, f"known: use {either(columns)}")
        raise ValueError(f"{refusal} A leading “-” gives descending order.")
    return value
