"""GET /api/v1/links/: a row for each link, searched, narrowed and ordered as on the table page."""

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

import numpy as np
import orjson
import pandas as pd
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from numpy.typing import NDArray
from pydantic import BaseModel, TypeAdapter, create_model
from rest_framework.request import Request

from matrix.answers import other_origins
from matrix.answers.table import column_filters, link_table, table_query
from matrix.answers.table.column_filters import LONGEST_TEXT, column_name
from matrix.answers.table.link_table import CHANGE, COLUMNS, SURE, Arrays, LinkTable
from matrix.answers.table.link_table import COMPARED as COMPARED_FIELDS
from matrix.answers.table.table_query import SHORT, TableQuery, orderings
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_types import kind_of
from matrix.api.encoding import csv_of, dumps
from matrix.api.matrix_formats import CHANCES, COUNTS, TIMES, WORDS, csv_column, unix_time
from matrix.api.parameters import OF_LINKS, PageRequest, TableCursor, echo, following
from matrix.api.rendering import file_name
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import (
    Answer,
    Listed,
    OtherOrigins,
    field_descriptions,
    with_facts,
)
from matrix.api.streaming import Pieces, stream
from matrix.http.compression import respond_once
from matrix.http.negotiation import LIST, TYPES, asked_format
from matrix.http.questions import read_once
from matrix.query.attributes import BY_KEY, ENDS, GROUPINGS
from matrix.query.catalogue import STATISTICS, STATS, TABLE_QUANTILES
from matrix.query.filters import by_parameter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, Integers, rounded, significant
from matrix.statistics.cells.states import LOOKS
from matrix.statistics.compare.two_samples import CHANGE_KINDS, CHANGES
from matrix.statistics.transfers.overhead import FITS
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.notation import csv_text
from sonar.notation.windows import format_time

# So many rows are some 10 MB in memory while they are written, and a few of text.
BLOCK = 10_000
# What an end is, besides what a table can be ordered by.
FLAGS = ("simulated", "retired")
Records = list[dict[str, Any]]
WHILE_COMPARING = f" Requires `compare`, and works only if `size` is `{schema.SIZE}`."
DESCRIPTIONS = {
    "has": "contains this text (case-insensitive)",
    "is": "has this value",
    "min": "is at least this value",
    "max": "is at most this value",
}
# What columns are, after "Only links for which the".
OF_CLASSES = {
    **{
        each.field: f"{each.label} of the rates (MB/s)"
        for each in STATISTICS.values()
        if each.field in COLUMNS or each.name in TABLE_QUANTILES
    },
    "size_mean_bytes": "mean file size",
    "size_std_bytes": "standard deviation of file sizes",
    "usual_mb_s": "baseline (MB/s)",
    "now_mb_s": "current rate (MB/s)",
    "ratio": "current rate divided by the baseline",
    "streak": "number of consecutive failed tests",
    "ok": "number of successful tests",
    "failed": "number of failed tests",
    "this_mb_s": "rate (MB/s) on this side of the comparison",
    "other_mb_s": "rate (MB/s) on the other side of the comparison",
    "compared_ratio": "ratio of this side to the other side of the comparison",
    "compared_p": "p-value of the comparison",
    "other_ok": "number of successful tests on the other side of the comparison",
}
OF_LINKS_THEMSELVES = {
    "priority": "priority",
    "overhead_s": "overhead (seconds)",
    "bandwidth_mb_s": "bandwidth (MB/s)",
    "half_size_bytes": "file size at which half the transfer time is overhead",
}
LOOKING = "Only links in one of these states{of_class}. Separate multiple states with commas."
SOME_LOOKS = rf"^({'|'.join(LOOKS)})(,({'|'.join(LOOKS)}))*$"
SIZES = {"size_mean_bytes": "200MB", "size_std_bytes": "1MB", "half_size_bytes": "76MB"}
AGES = {
    "min": "Only links whose last successful test{of_class} is at least this old. The age is a "
    "number of seconds, or a duration, for example, 6h.",
    "max": "Only links whose last successful test{of_class} is at most this old. The age is a "
    "number of seconds, or a duration, for example, 6h.",
}
End = with_facts("End", "The source or destination endpoint of a link.", FLAGS)
ADDED = (*(quantile.field for quantile in TABLE_QUANTILES.values()), *COMPARED_FIELDS)
CLASS_COLUMNS: dict[str, Any] = {name: (kind_of(name), ...) for name in COLUMNS}
CLASS_COLUMNS |= {name: (kind_of(name), None) for name in (*ADDED, CHANGE)}


class OfClass(create_model("Columns", __base__=Answer, **CLASS_COLUMNS)):  # type: ignore[misc]
    """The results of a link in one size class, within the time range.

    The quantiles `median_mb_s`, `p05_mb_s`, `p95_mb_s` and `p99_mb_s` are returned on request. The
    fields from `this_mb_s` to `change` are returned with `compare`, for the size class of the
    query. The significance of a change is adjusted for the number of compared links.
    """


class Link(BaseModel, extra="allow"):
    """A link with its endpoints and its results, keyed by the name of the size class.

    With `overhead=1`, a straight line is fitted to the median transfer times of the size classes:
    seconds = overhead + size / bandwidth. The fields of the fit are null unless the field `line`
    has the value `line`. The fit needs three successful tests in each of two sizes that differ by a
    factor of at least 4.
    """

    __pydantic_extra__: dict[str, OfClass]

    source: End  # type: ignore[valid-type]
    destination: End  # type: ignore[valid-type]
    priority: int | None
    overhead_s: float | None = None
    overhead_low_s: float | None = None
    overhead_high_s: float | None = None
    bandwidth_mb_s: float | None = None
    bandwidth_low_mb_s: float | None = None
    bandwidth_high_mb_s: float | None = None
    half_size_bytes: float | None = None
    line: Literal[FITS] = FITS[0]  # type: ignore[valid-type]


QUERIES, OTHER_SIDE = (field_descriptions()[name] for name in ("Queries", "OtherLinks"))
ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query parameters, including default values: time range, ordering, search, "
    "conditions and filters.",
    "properties": {
        **{
            name: {"type": "string", "description": QUERIES[name]}
            for name in ("size", "start", "end", "ordering", "search")
        },
        "window": {"type": ["string", "null"], "description": QUERIES["window"]},
    },
    "required": ["size", "window", "start", "end", "ordering", "search"],
    "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}},
}
COMPARISON: dict[str, Any] = {
    "type": "object",
    "description": "The other side of the comparison, and how many links differ. Present only with "
    "`compare`.",
    "properties": {
        name: {"type": kind, "description": OTHER_SIDE[name]}
        for kind, names in (
            ("string", ("description", "size", "start", "end")),
            ("object", ("filters",)),
            ("integer", ("compared", "slower", "faster")),
        )
        for name in names
    },
}


def noun(path: str) -> str:
    """Name a column of an end or of the link itself: `the cloud of the source`."""
    end, _, key = path.partition(".")
    if end not in ENDS:
        return f"the {OF_LINKS_THEMSELVES[path]}"
    return f"a tag of the {end}" if key == "tags" else f"the {key or 'name'} of the {end}"


def condition(name: str, column: str = "") -> OpenApiParameter:
    """A condition on a column of a size class or an end, or by a short name of the class asked for.

    Sizes may have a unit.
    """
    path, _, how = (column or name).rpartition(".")
    size, _, column = path.rpartition(".")
    named = f"`{size}`" if size == schema.SIZE else "given by `size`"
    of_class = f" in the size class {named}"
    if column == "state":
        words = LOOKING.format(of_class=of_class)
        return schema.text(name, words, "failing,slower", pattern=SOME_LOOKS)
    if column == "age":
        return schema.text(name, AGES[how].format(of_class=of_class), "6h")
    phrase = f"the {OF_CLASSES[column]}{of_class}" if column in OF_CLASSES else noun(path)
    description = f"Only links for which {phrase} {DESCRIPTIONS[how]}."
    if how == "is":
        return schema.choice(name, BY_KEY[column].allowed, description)
    if how == "has":
        return schema.text(name, description, "RAL", maxLength=LONGEST_TEXT)
    description += WHILE_COMPARING if column in column_filters.COMPARED_NUMBERS else ""
    if column in SIZES:
        return schema.text(
            name,
            f"{description} The size is a number of bytes, or a number with a unit.",
            SIZES[column],
        )
    return schema.number(name, description, minimum=0)


OF_THE_MATRIX = {"stat": STATS, "rows": GROUPINGS, "columns": GROUPINGS}
IGNORED = "Parameter of the matrix page. It is accepted, but has no effect here."
# A column of a size class has its name in front.
OF_ANY_CLASS = [
    column.replace(re.escape(schema.SIZE), ".+")
    for column in map(re.escape, orderings([schema.SIZE], schema.SIZE))
]
ORDERING = rf"^-?({'|'.join(OF_ANY_CLASS)})$"

LINKS = described(
    "List links",
    answer=Listed(
        "links",
        Link,
        also={
            "query": ECHO,
            "other_origins": TypeAdapter(OtherOrigins).json_schema(),
            "total": {
                "type": "integer",
                "description": "Number of links that match the filters, before the search "
                "and the conditions on columns are applied.",
            },
            "found": {"type": "integer", "description": "Number of links on all pages."},
        },
        optional={"comparison": COMPARISON},
    ),
    parameters=[
        schema.SIZE_CLASS,
        *schema.WINDOW,
        *schema.LINKS_FILTERED,
        *schema.METHOD_FILTERED,
        *schema.COMPARED,
        *(schema.choice(name, OF_THE_MATRIX[name], IGNORED) for name in OF_THE_MATRIX),
        schema.text(
            "ordering",
            "Column to sort by, named as in the CSV output. A leading `-` gives descending order. "
            "Columns of a comparison require `compare`. In `now_mb_s` and `ratio`, failing links "
            "count as the lowest. `-trouble` lists links with problems first, based on the size "
            "class given by `size`. The order is: failing (longest first), slower, silent, "
            "unconfirmed, failed (too few tests to count as failing), partly failing, faster.",
            f"-{schema.SIZE}.mean_mb_s",
            default="source",
            pattern=ORDERING,
        ),
        schema.text(
            "search",
            "Only links for which each word of this text occurs in an attribute of the source or "
            "destination. Attributes include the name and the site.",
            "RAL",
            maxLength=LONGEST_TEXT,
        ),
        schema.text(
            "quantiles",
            "Quantiles of rates to return for each size class, separated by commas. Default: none. "
            "Quantiles used for sorting or filtering are always returned.",
            ",".join(TABLE_QUANTILES),
            pattern=rf"^({'|'.join(TABLE_QUANTILES)})(,({'|'.join(TABLE_QUANTILES)}))*$",
        ),
        schema.choice(
            "overhead", ("1",), "`1`: also return the overhead and bandwidth of each link."
        ),
        *map(condition, SHORT, SHORT.values()),
        *map(condition, column_filters.names([schema.SIZE], schema.SIZE)),
        *schema.paging(OF_LINKS),
    ],
    formats=LIST,
    tag="results",
)
OWN = ("format", "cursor", "page_size")


@dataclass(frozen=True)
class LinksRequest:
    """What a call asks for; without a cursor it begins with the first row as of now."""

    query: MatrixQuery
    chosen: TableQuery
    cursor: TableCursor | None
    page_size: int
    format: str

    @classmethod
    def read(cls, request: Request) -> Self:
        params = request.query_params
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        query, chosen = table_query.read(params, sizes, also=OWN)
        form = asked_format(request, LIST)
        for name, sentence in NOT_HERE.items():
            if params.get(name):
                raise BadQueryError({name: [sentence]})
        page = PageRequest.read(request, form, TableCursor.parse, OF_LINKS)
        return cls(query, chosen, page.after, page.size, form)


NOT_HERE = {
    "page": "“page” works only on the table page. In the API, follow the “next” URL.",
    "per_page": "“per_page” works only on the table page. In the API, use “page_size”.",
    "constant": "“constant” works only on the table page. The API always returns all columns.",
}


class LinksView(ApiView, one_snapshot=False):
    @LINKS
    def get(self, request: Request) -> HttpResponseBase:
        """Returns one row per link with its results in each size class.

        Links can be filtered, searched and sorted as on the table page.
        """
        now = timezone.now()
        call, version = read_once(
            request,
            lambda: LinksRequest.read(request),
            lambda call: link_table.version(call.query, call.cursor.moment if call.cursor else now),
        )
        cursor = call.cursor or TableCursor(now)

        def make() -> HttpResponseBase:
            if call.format == "json":
                # The address of the next page names the host that was asked.
                key = ("links", version, call, request.build_absolute_uri())
                return respond_once(
                    request, key, TYPES["json"], lambda: as_json(request, call, cursor, version)
                )
            table, rows = chosen_rows(call, cursor, version)
            window = call.query.window_at(cursor.moment)
            name = file_name("links", query=call.query, window=window)
            return stream(request, pieces(table, rows, call.format), call.format, name)

        # The table is the same for many calls, their rows are not.
        return unless_known(request, version.of_question((version.question, call)), make)


def chosen_rows(
    call: LinksRequest, cursor: TableCursor, version: DataVersion
) -> tuple[LinkTable, Integers]:
    """Return the table, with the quantiles that it takes, and the rows that are asked for."""
    quantiles = [quantile.name for quantile in call.chosen.columns]
    table = link_table.build(call.query, cursor.moment, version, quantiles, lines=call.chosen.lines)
    return table, call.chosen.rows(table, cursor.moment)


def as_json(
    request: Request, call: LinksRequest, cursor: TableCursor, version: DataVersion
) -> bytes:
    table, rows = chosen_rows(call, cursor, version)
    page = rows[cursor.rows : cursor.rows + call.page_size]
    query, chosen = call.query, call.chosen
    # What was asked, defaults included; the window as the two times it stands for.
    own: dict[str, Any] = {"ordering": chosen.ordering, "search": chosen.search}
    own |= {"quantiles": chosen.quantiles} if chosen.quantiles else {}
    own |= {"overhead": "1"} if chosen.overhead else {}
    own |= {condition.name: condition.text for condition in chosen.conditions}
    compare = query.compare.to_params() if query.compare else {}
    answer: dict[str, Any] = {
        "query": echo(query, table.window, **own) | compare,
        **({"comparison": compared(query, table, cursor.moment)} if query.compare else {}),
        "other_origins": other_origins.of_table(table, query, version).counts,
        "total": len(table),
        "found": len(rows),
        "links": records(table.taken(page)),
        "next": None,
    }
    if cursor.rows + len(page) < len(rows):
        answer["next"] = following(request, cursor.after(len(page)))
    return dumps(answer)


def compared(query: MatrixQuery, table: LinkTable, now: datetime) -> dict[str, Any]:
    other = query.other(now)
    window, size = other.window_at(now), query.size
    changes = table.column(f"{size}.{CHANGE}")
    return {
        "description": query.other_words(),
        "size": other.size,
        "start": format_time(window.start),
        "end": format_time(window.end),
        "filters": by_parameter(other.filters),
        "compared": int(np.count_nonzero(~np.isnan(table.column(f"{size}.compared_ratio")))),
        **{kind: int(np.count_nonzero(changes == CHANGE_KINDS.index(kind))) for kind in CHANGES},
    }


def records(table: LinkTable) -> Records:
    """Return a record for each row; a NaN in it is written as null."""
    places = [orjson.Fragment(dumps(place.record)) for place in table.places]
    classes: dict[str, Records] = {}
    for size in table.sizes:
        columns = {name: json_column(name, of) for name, of in columns_of(table, size).items()}
        rows = zip(*columns.values(), strict=True)
        classes[size] = [dict(zip(columns, row, strict=True)) for row in rows]
    lines = {name: json_column(name, values) for name, values in table.lines.items()}
    numbers = zip(table.source.tolist(), table.destination.tolist(), strict=True)
    return [
        {
            "source": places[source],
            "destination": places[destination],
            "priority": priority,
            **{name: values[at] for name, values in lines.items()},
            **{size: of_size[at] for size, of_size in classes.items()},
        }
        for at, ((source, destination), priority) in enumerate(
            zip(numbers, whole(table.priority), strict=True)
        )
    ]


def columns_of(table: LinkTable, size: str) -> Arrays:
    """Return the columns of a size class; `change` says which links differ significantly."""
    return {name: values for name, values in table.of_class(size).items() if name != SURE}


def json_column(name: str, values: NDArray[Any]) -> list[Any]:
    if name in COUNTS:
        return list(values.tolist())
    if name in WORDS:
        return list(WORDS[name].take(values).tolist())
    if name in CHANCES:
        return list(significant(values).tolist())
    if name not in TIMES:
        return list(rounded(values).tolist())
    texts = np.datetime_as_string(unix_time(values)).tolist()
    return [None if text == "NaT" else f"{text}Z" for text in texts]


def whole(values: Floats) -> list[int | None]:
    return [None if math.isnan(value) else int(value) for value in values.tolist()]


def pieces(table: LinkTable, rows: Integers, form: str) -> Pieces:
    """Yield rows block by block as `ndjson`, or as `csv` with a header."""
    for start in range(0, max(len(rows), 1), BLOCK):
        block = table.taken(rows[start : start + BLOCK])
        if form == "ndjson":
            yield b"".join(dumps(record) + b"\n" for record in records(block))
        else:
            yield csv_of(pd.DataFrame(csv_columns(block)), header=start == 0)


def csv_columns(table: LinkTable) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for end, at in zip(ENDS, (table.source, table.destination), strict=True):
        names = [column_name(end, key) for key in BY_KEY]
        columns |= {name: texts(table.column(name)) for name in names}
        for name in FLAGS:
            words = [str(getattr(place, name)).lower() for place in table.places]
            columns[f"{end}.{name}"] = np.array(words, dtype=object)[at]
    columns["priority"] = pd.array(whole(table.priority), dtype="Int64")
    columns |= {name: csv_column(name, values) for name, values in table.lines.items()}
    for size in table.sizes:
        for name, values in columns_of(table, size).items():
            columns[f"{size}.{name}"] = csv_column(name, values)
    return columns


def texts(values: NDArray[Any]) -> NDArray[Any]:
    """Quote what an end is called or has written about it; a tier is a number."""
    written = {
        value: csv_text.quoted(value) for value in set(values.tolist()) if isinstance(value, str)
    }
    return np.array([written.get(value, value) for value in values.tolist()], dtype=object)
