"""GET /api/v1/matrix/, the whole matrix in one call; /cells/ and /cells/codes/ of its page."""

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from pydantic import create_model
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix.answers import other_origins
from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import names_of, on_cards, read_judgement
from matrix.api import matrix_formats
from matrix.api.base import ApiView, unless_known
from matrix.api.cell_types import kind_of
from matrix.api.matrix_formats import COMPARED, DEFAULT_FIELDS, FIELDS, TARGET_FIELDS
from matrix.api.parameters import one_of, wrong
from matrix.api.rendering import as_figure, file_name, named
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import QUERY, Echo, choice, text
from matrix.api.schema.schemas import Answer, OtherOrigins, with_facts, word_of
from matrix.http import negotiation
from matrix.http.compression import ARRAYS, respond_once
from matrix.http.exceptions import refuse_hidden_filters
from matrix.http.questions import read_once
from matrix.plots import cells_file, codes_file, display
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from matrix.plots.matrix import figure_alone
from matrix.plots.standalone import FigureTitle
from matrix.query.catalogue import UNITS, VS_TARGET
from matrix.query.matrix_query import MatrixQuery
from matrix.store.data_version import of_one_server, snapshot
from sonar.notation.enumeration import not_allowed


class MatrixEcho(Echo):
    """The query parameters for a matrix, including default values.

    Each filter is a list of values, under the name of its parameter.
    """

    stat: str
    rows: str
    columns: str
    max_age: str | None


Group = with_facts(
    "Group",
    "A row or column of the matrix. An attribute is null if the endpoints have different values.",
    ("simulated",),
    shared=True,
)
CELL_FIELDS: dict[str, Any] = {name: (list[list[kind_of(name)]], []) for name in FIELDS}  # type: ignore[misc]


class Cells(create_model("CellFields", __base__=Answer, **CELL_FIELDS)):  # type: ignore[misc]
    """The cells of the matrix. Each field is an array of rows, and each row an array of values.

    Only the fields that the parameter `fields` selects are present. A number or time is null if it
    is not known. `target` and `against` require `stat=vs_target`. The fields `rate`, `other`,
    `ratio`, `low`, `high`, `p`, `other_ok` and `change` require `compare`. The significance of a
    change is adjusted for the number of compared cells.
    """


class OtherAnswer(Answer):
    """The other side of a comparison, and the number of cells that differ significantly.

    On average, at most one in thirty significant differences is due to chance.
    """

    description: str
    size: str
    start: datetime
    end: datetime
    simulated: bool
    filters: dict[str, list[str]]
    compared: int
    too_few: int
    slower: int
    faster: int


class Matrix(Answer):
    """The matrix of links, with sources as rows and destinations as columns."""

    query: MatrixEcho
    description: str
    unit: Annotated[str, word_of(UNITS)]
    version: str
    simulated: bool
    other_origins: OtherOrigins
    comparison: OtherAnswer | None = None
    sources: list[Group]  # type: ignore[valid-type]
    destinations: list[Group]  # type: ignore[valid-type]
    cells: Cells
    source_average: list[float | None]
    destination_average: list[float | None]
    average: float | None


FORMATS = (*negotiation.TABLE, *negotiation.FIGURE)
SHAPES = ("long", "wide")
FIELD_LIST = rf"^({'|'.join(FIELDS)})(,({'|'.join(FIELDS)}))*$"

MATRIX = described(
    "Get the matrix",
    answer=Matrix,
    parameters=[
        *QUERY,
        text(
            "fields",
            "Fields of the cells to return, separated by commas. "
            f"Default: {', '.join(DEFAULT_FIELDS)}; with `compare`, also the fields of the "
            "comparison.",
            "value,ok",
            pattern=FIELD_LIST,
        ),
        choice(
            "shape",
            SHAPES,
            "Shape of the CSV. `long`: one line per link. `wide`: one line per source and one "
            "column per destination, with means in the last line and column.",
            default=SHAPES[0],
        ),
    ],
    formats=FORMATS,
    tag="results",
)


class MatrixView(ApiView, one_snapshot=False):
    @MATRIX
    def get(self, request: Request) -> HttpResponseBase:
        """Returns all cells of the matrix in one response, as arrays by field.

        The CSV response has one line per link. The formats `plotly` and `html` contain the chart on
        the matrix page.
        """
        now = timezone.now()
        question, version = read_once(
            request, lambda: read(request), lambda question: grid.version(question[0], now)
        )
        query, fields, form, shape = question

        def make() -> HttpResponseBase:
            statistic, window = query.statistic, query.window_at(now)
            kind = "matrix-wide" if (form, shape) == ("csv", "wide") else "matrix"
            name = file_name(kind, statistic.name, query=query, window=window)
            if form in negotiation.FIGURE:
                # Not kept: of an HTML file, the library is nearly all.
                answered = grid.build(query, now, version)
                title = FigureTitle(
                    query.describe(), window, statistic.unit.behind, simulated=answered.simulated
                )
                return as_figure(figure_alone(arrange(answered, Display())), title, form, name)
            response = respond_once(
                request,
                ("matrix", version, *question),
                negotiation.CONTENT_TYPES[form],
                lambda: written(grid.build(query, now, version), fields, form, shape),
            )
            return response if form == "json" else named(response, form, name)

        shown = version if form == "json" else version.shown(f"{form}{shape}")
        return unless_known(request, shown, make)


def written(grid: Grid, fields: tuple[str, ...], form: str, shape: str) -> bytes:
    if form == "json":
        return matrix_formats.as_json(grid, fields, other_origins.of_grid(grid))
    if shape == "wide":
        return matrix_formats.as_wide_csv(grid)
    return matrix_formats.as_csv(grid, fields)


def read(request: Request) -> tuple[MatrixQuery, tuple[str, ...], str, str]:
    """Return the question, the fields that are answered, the format, and the shape of CSV."""
    params = request.query_params
    query = MatrixQuery.from_params(params, also=("format", "fields", "shape"))
    form, shape = negotiation.asked_format(request, FORMATS), one_of(params, "shape", SHAPES)
    if shape == "wide" and form != "csv":
        raise wrong("shape", f"shape=wide requires format=csv, but the format is {form}.")
    default: tuple[str, ...] = DEFAULT_FIELDS
    if query.compare:
        default = (*DEFAULT_FIELDS, *COMPARED)
    elif query.stat == VS_TARGET.name:
        default = (*DEFAULT_FIELDS, *TARGET_FIELDS)
    fields = fields_of(params, default)
    if form in negotiation.FIGURE and fields != default:
        raise wrong(
            "fields", "“fields” cannot be used with format=plotly or format=html: omit “fields”."
        )
    if shape == "wide" and fields not in (default, ("value",)):
        raise wrong(
            "fields",
            "With shape=wide, “fields” must be omitted or have the value “value”, because a wide "
            "table has one value per cell.",
        )
    return query, fields, form, shape or "long"


def fields_of(params: QueryDict, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields that are answered: `fields=value,ok`, or those by default."""
    texts = ",".join(params.getlist("fields")).split(",")
    names = {text.strip() for text in texts if text.strip()}
    for name in sorted(names - set(FIELDS)):
        raise wrong("fields", f"{not_allowed('fields', name, FIELDS)}.")
    for special, words in (
        (COMPARED, "“compare”"),
        (TARGET_FIELDS, f"stat={VS_TARGET.name} without “compare”"),
    ):
        for name in special:
            if name in names and name not in default:
                raise wrong("fields", f"The field “{name}” requires {words}.")
    return tuple(name for name in FIELDS if name in (names or default))


class CellsView(APIView):
    """The numbers of the cells of the matrix page, by its parameters; errors are in JSON."""

    content_negotiation_class = negotiation.ErrorsInJson
    is_of_codes = False

    @of_one_server()
    def get(self, request: Request) -> HttpResponseBase:
        refuse_hidden_filters(request)
        now = timezone.now()
        (query, drawn), version = read_once(
            request,
            lambda: display.read(request.query_params),
            lambda question: grid.version(question[0], now),
        )

        @snapshot()
        def encode() -> bytes:
            if self.is_of_codes:
                is_glanced = grid.is_glanced(query) and not drawn.only
                build = grid.glance if is_glanced else grid.build
                return codes_file.encode(arrange(build(query, now, version), drawn))
            answer = grid.build(query, now, version, whole=True)
            texts = on_cards(read_judgement(answer, now), names_of(answer))
            return cells_file.encode(arrange(answer, drawn), texts)

        shown = version.shown(drawn.fingerprint)
        response: HttpResponseBase | None = get_conditional_response(request, etag=shown.etag)
        if response is None and self.is_of_codes:
            response = respond_once(request, ("codes", shown), ARRAYS, encode)
        elif response is None:
            response = HttpResponse(encode(), content_type=ARRAYS)
        response["ETag"] = shown.etag
        response["Cache-Control"] = "private, no-cache"
        response["Vary"] = "Cookie"
        return response


class CodesView(CellsView):
    """The colours of the cells, of a window that is only dragged over: often back and forth."""

    is_of_codes = True
