"""GET /api/v1/links/: a row for each link, searched, narrowed and ordered as on the table page."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

import numpy as np
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel, TypeAdapter, create_model
from rest_framework.request import Request

from matrix.answers import other_origins
from matrix.answers.table import column_filters, link_table, table_query
from matrix.answers.table.column_filters import LONGEST_TEXT
from matrix.answers.table.link_table import CHANGE, COLUMNS, LinkTable
from matrix.answers.table.link_table import COMPARED as COMPARED_FIELDS
from matrix.answers.table.table_query import SHORT, TableQuery, orderings
from matrix.api import link_rows
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_types import kind_of
from matrix.api.encoding import dumps
from matrix.api.parameters import OF_LINKS, PageRequest, TableCursor, echo, following
from matrix.api.rendering import file_name
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer, Listed, OtherOrigins, with_facts
from matrix.api.streaming import stream
from matrix.http.compression import respond_once
from matrix.http.negotiation import DOCUMENT, LIST, TYPES, asked_format
from matrix.http.questions import read_once
from matrix.query.attributes import BY_KEY, GROUPINGS
from matrix.query.catalogue import STATS, TABLE_QUANTILES
from matrix.query.filters import by_parameter
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.statistics.cells.states import LOOKS
from matrix.statistics.compare.two_samples import CHANGE_KINDS, CHANGES
from matrix.statistics.transfers.overhead import FITS
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.notation.windows import format_time

WHILE_COMPARING = " Only with compare, in the size class that is asked for."
DESCRIPTIONS = {
    "has": "Only rows with this text in the column.",
    "is": "Only rows with this value in the column.",
    "min": "Only rows with at least this in the column.",
    "max": "Only rows with at most this in the column.",
}
LOOKING = "Only links in this state in the size class; separate several with commas."
SOME_LOOKS = rf"^({'|'.join(LOOKS)})(,({'|'.join(LOOKS)}))*$"
SIZES = {"size_mean_bytes": "200MB", "size_std_bytes": "1MB", "half_size_bytes": "76MB"}
AGES = {
    "min": "Only links whose last success is at least this old.",
    "max": "Only links whose last success is at most this old.",
}


End = with_facts("End", "An endpoint at one end of a link.", ("simulated", "retired"))


ADDED = (*(quantile.field for quantile in TABLE_QUANTILES.values()), *COMPARED_FIELDS)
CLASS_COLUMNS: dict[str, Any] = {name: (kind_of(name), ...) for name in COLUMNS}
CLASS_COLUMNS |= {name: (kind_of(name), None) for name in (*ADDED, "other_ok", CHANGE)}


class OfClass(create_model("Columns", __base__=Answer, **CLASS_COLUMNS)):  # type: ignore[misc]
    """What is known about a link in one size class in the window.

    `last` is the start of its newest result, `last_ok` and `last_failed` of the newest success and
    the newest failure. `state` is as in the matrix, as are `level`, `since`, `streak`, `condition`
    and `unconfirmed`, which conditions say. `ratio` is now divided by usual, with an interval of
    95 % from `ratio_low` to `ratio_high`. Quantiles are there on request.

    While comparing the size class that is asked for has `this_mb_s` and `other_mb_s`, the medians
    (or means) of both sides, `compared_ratio` with its interval of 95 % from `compared_low` to
    `compared_high`, `compared_p` of chance, `other_ok`, the successes of the other side, and
    `change`: slower or faster beyond what chance makes of so many links, or nothing.
    """


class Link(BaseModel, extra="allow"):
    """A row: its ends, the highest priority of its meshes, and each size class by its name.

    With `overhead=1`, also the line seconds = overhead + size / bandwidth through the median times
    of all size classes, with 95 % intervals: null unless `line` is `line`. It is `few` without
    3 successes of two sizes, one 4 times the other, and `bent` where a class is off the line.
    A `bandwidth_high_mb_s` of null has no upper bound; of files of `half_size_bytes`, half of the
    time is overhead.
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


ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query: size, window, ordering, search, conditions and filters.",
    "properties": {
        **{name: {"type": "string"} for name in ("size", "start", "end", "ordering", "search")},
        "window": {"type": ["string", "null"]},
    },
    "required": ["size", "window", "start", "end", "ordering", "search"],
    "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}},
}


COMPARISON: dict[str, Any] = {
    "type": "object",
    "description": "While comparing: the other side, and how many links differ beyond chance.",
    "properties": {
        **{name: {"type": "string"} for name in ("description", "size", "start", "end")},
        "filters": {"type": "object"},
        **{name: {"type": "integer"} for name in ("compared", "slower", "faster")},
    },
}


def condition(name: str, column: str = "") -> OpenApiParameter:
    """A condition on a column of a size class or an end, or by a short name of the class asked for.

    Sizes may have a unit.
    """
    path, _, how = (column or name).rpartition(".")
    column = path.rpartition(".")[2]
    if column == "state":
        return schema.text(name, LOOKING, "failing,slower", pattern=SOME_LOOKS)
    if column == "age":
        return schema.text(name, AGES[how], "6h")
    if how == "is":
        return schema.choice(name, BY_KEY[column].allowed, DESCRIPTIONS[how])
    if how == "has":
        return schema.text(name, DESCRIPTIONS[how], "RAL", maxLength=LONGEST_TEXT)
    compared = WHILE_COMPARING if column in column_filters.COMPARED_NUMBERS else ""
    description = f"{DESCRIPTIONS[how]}{compared}"
    if column in SIZES:
        return schema.text(name, description, SIZES[column])
    return schema.number(name, description, minimum=0)


FORMATS = (*LIST, *DOCUMENT)
OF_THE_MATRIX = {"stat": STATS, "rows": GROUPINGS, "columns": GROUPINGS}
IGNORED = "A parameter of the matrix: the address of a page may have it; it has no effect here."
# A column of a size class has its name in front.
OF_ANY_CLASS = [
    column.replace(re.escape(schema.SIZE), ".+")
    for column in map(re.escape, orderings([schema.SIZE], schema.SIZE))
]
ORDERING = rf"^-?({'|'.join(OF_ANY_CLASS)})$"

LINKS = described(
    "The table of links",
    answer=Listed(
        "links",
        Link,
        also={
            "query": ECHO,
            "other_origins": TypeAdapter(OtherOrigins).json_schema(),
            "total": {"type": "integer"},
            "found": {"type": "integer"},
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
            "The column to sort by, as in CSV; - for descending order. What is compared is there "
            "only with compare. By now_mb_s and ratio a link that fails is the least. -trouble: "
            "failing links first, by how long, then slower ones, then those with too few failed "
            "tests to be failing, in the size class asked for.",
            f"-{schema.SIZE}.mean_mb_s",
            default="source",
            pattern=ORDERING,
        ),
        schema.text(
            "search",
            "Only links where each word is in an attribute of one end.",
            "RAL",
            maxLength=LONGEST_TEXT,
        ),
        schema.text(
            "quantiles",
            "Quantiles of rates that each size class has beside the rest, as p95_mb_s; those that "
            "rows are ordered or chosen by are there anyway.",
            ",".join(TABLE_QUANTILES),
            pattern=rf"^({'|'.join(TABLE_QUANTILES)})(,({'|'.join(TABLE_QUANTILES)}))*$",
        ),
        schema.choice("overhead", ("1",), "With the columns of overhead and bandwidth."),
        *map(condition, SHORT, SHORT.values()),
        *map(condition, column_filters.names([schema.SIZE], schema.SIZE)),
        *schema.paging(OF_LINKS),
    ],
    formats=FORMATS,
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
    def read(cls, request: Request, now: datetime) -> Self:
        params = request.query_params
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        query, chosen = table_query.read(params, sizes, also=OWN)
        form = asked_format(request, FORMATS)
        for name, sentence in NOT_HERE.items():
            if params.get(name):
                raise BadQueryError({name: [sentence]})
        page = PageRequest.read(request, form, TableCursor.parse, OF_LINKS)
        return cls(query, chosen, page.after, page.size, form)


NOT_HERE = {
    "page": "page is only for the page: in JSON, follow `next`.",
    "per_page": "per_page is only for the page: use page_size.",
    "constant": "constant is only for the page: the API always has all columns.",
}


class LinksView(ApiView, one_snapshot=False):
    @LINKS
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        call, version = read_once(
            request,
            lambda: LinksRequest.read(request, now),
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
            pieces = link_rows.pieces(table, rows, call.query, call.format)
            window = call.query.window_at(cursor.moment)
            name = file_name("links", query=call.query, window=window)
            return stream(request, pieces, call.format, name)

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
    asked = echo(query, table.window, **own) | (query.compare.to_params() if query.compare else {})
    answer: dict[str, Any] = {
        "query": asked,
        **({"comparison": compared(query, table, cursor.moment)} if query.compare else {}),
        "other_origins": other_origins.of_table(table, query, version).counts,
        "total": len(table),
        "found": len(rows),
        "links": link_rows.records(table.taken(page)),
        "next": None,
    }
    if cursor.rows + len(page) < len(rows):
        answer["next"] = following(request, cursor.after(len(page)))
    return dumps(answer)


def compared(query: MatrixQuery, table: LinkTable, now: datetime) -> dict[str, Any]:
    """Say what the links are compared with, and how many of them differ beyond chance."""
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
