"""GET /api/v1/matrix/: the whole matrix in one call."""

from __future__ import annotations

from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers import grid
from matrix.answers.grid import Grid
from matrix.api import figures, matrix_formats, wide_matrix
from matrix.api.base import ApiView, unless_known
from matrix.api.documents import DOCUMENTS
from matrix.api.matrix_formats import COMPARED, DEFAULT_FIELDS, FIELDS
from matrix.api.parameters import one_of, wrong
from matrix.api.schema.matrix import FORMATS, MATRIX, SHAPES
from matrix.http.compression import respond_once
from matrix.http.negotiation import CONTENT_TYPES, ENDINGS, FIGURE, asked_format
from matrix.http.questions import read_once
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from matrix.plots.matrix import figure_alone
from matrix.plots.standalone import FigureTitle
from matrix.query.filters import either
from matrix.query.matrix_query import MatrixQuery


class MatrixView(ApiView, one_snapshot=False):
    @MATRIX
    def get(self, request: Request) -> HttpResponseBase:
        now = timezone.now()
        question, version = read_once(
            request, lambda: read(request), lambda question: grid.version(question[0], now)
        )
        query, fields, form, shape = question

        def make() -> HttpResponseBase:
            if form in FIGURE:
                # Not kept: of an HTML file, the library is nearly all.
                return as_figure(grid.build(query, now, version), form)
            response = respond_once(
                request,
                ("matrix", version, *question),
                CONTENT_TYPES[form],
                lambda: written(grid.build(query, now, version), fields, form, shape),
            )
            if form != "json":
                name = f"{file_name(query)}.{ENDINGS[form]}"
                response["Content-Disposition"] = f'inline; filename="{name}"'
            return response

        shown = version if form == "json" else version.shown(f"{form}{shape}")
        return unless_known(request, shown, make)


def written(grid: Grid, fields: tuple[str, ...], form: str, shape: str) -> bytes:
    if form in DOCUMENTS:
        return wide_matrix.as_document(grid, form)
    if form == "json":
        return matrix_formats.as_json(grid, fields)
    return matrix_formats.as_csv(grid, fields) if shape == "long" else wide_matrix.as_csv(grid)


def file_name(query: MatrixQuery) -> str:
    return f"sonar-{query.size}-{query.statistic.name}"


def as_figure(grid: Grid, form: str) -> HttpResponse:
    query = grid.query
    title = FigureTitle(
        query.describe(), grid.window, query.statistic.unit.behind, simulated=grid.simulated
    )
    figure = figure_alone(arrange(grid, Display()))
    return figures.answer(figure, title, form, file_name(query))


def read(request: Request) -> tuple[MatrixQuery, tuple[str, ...], str, str]:
    """Return the question, the fields that are answered, the format, and the shape of CSV."""
    params = request.query_params
    query = MatrixQuery.from_params(params, also=("format", "fields", "shape"))
    form, shape = asked_format(request, FORMATS), one_of(params, "shape", SHAPES)
    if shape == "wide" and form != "csv":
        raise wrong("shape", f"shape=wide is for CSV: use format=csv, or leave it out for {form}.")
    fields = fields_of(params, default=default_fields(query))
    only_value = default_fields(query), ("value",)
    if form in FIGURE and fields != default_fields(query):
        raise wrong("fields", "fields must be left out: a figure has no fields.")
    if (shape == "wide" or form in DOCUMENTS) and fields not in only_value:
        raise wrong("fields", "fields must be value, or left out: a wide table has only one.")
    return query, fields, form, shape or "long"


def default_fields(query: MatrixQuery) -> tuple[str, ...]:
    return (*DEFAULT_FIELDS, *COMPARED) if query.compare else DEFAULT_FIELDS


def fields_of(params: QueryDict, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields that are answered: `fields=value,ok`, or those by default."""
    texts = ",".join(params.getlist("fields")).split(",")
    names = {text.strip() for text in texts if text.strip()}
    for name in sorted(names - set(FIELDS)):
        raise wrong("fields", f"fields “{name}” is not known: use {either(FIELDS)}.")
    for name in COMPARED:
        if name in names and name not in default:
            sentence = f"fields “{name}” is of a comparison: say with what by compare, too."
            raise wrong("fields", sentence)
    return tuple(name for name in FIELDS if name in (names or default))
