"""GET /api/v1/changes/: changes of level, newest first."""

from typing import Annotated, Any, Literal

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.changes.lines import lines_of, notes_near
from matrix.answers.events.questions import MOST_FACTOR, SURE, WINDOW, ChangesQuestion
from matrix.api.base import ApiView
from matrix.api.parameters import OF_TRANSFERS, PAGING, PageRequest, echo, following
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import LINKS_FILTERED, SIZE, choice, number, paging, text
from matrix.api.schema.parameters import WINDOW as BOUNDS
from matrix.api.schema.records import As, At, Moment, NameOrNull, record, to_number
from matrix.api.schema.schemas import Answer, Listed, echo_shape
from matrix.http.negotiation import LIST, asked_format
from matrix.store import changes, registry
from matrix.store.changes import LEVELS, WrittenNear
from matrix.store.keyset import Cursor
from sonar.models import Change
from sonar.notation.units import MB
from sonar.notation.windows import PRESETS, format_time


def in_mb(rate: float | None) -> float | None:
    return None if rate is None else to_number(rate / MB)


class ChangeOfLevel(Answer):
    """A jump of a rate to another level.

    Of a link it has both ends, of an endpoint as source or destination one, of all links together
    none. `factor` is the new level divided by the one before, `low` and `high` its interval of
    95 %. It came to pass between `earliest` and `latest` (95 %); `at` is the start of the first
    test of the new level. Rates are those of a link, geometric means. `chance` is how often noise
    alone gives so many tests a change as clear, `sure` whether that is beyond what so many
    searches find by chance: of those, one in twenty at most.
    """

    id: Annotated[int, At("change.id")]
    kind: Annotated[Literal["link", "source", "destination", "grid"], At("change.kind")]
    source: NameOrNull
    destination: NameOrNull
    size: str
    at: Annotated[Moment, At("change.at")]
    earliest: Annotated[Moment, At("change.earliest")]
    latest: Annotated[Moment, At("change.latest")]
    factor: Annotated[float, At("change.factor"), As(to_number)]
    low: Annotated[float, At("change.low"), As(to_number)]
    high: Annotated[float, At("change.high"), As(to_number)]
    before_mb_s: Annotated[float | None, At("change.before"), As(in_mb)]
    after_mb_s: Annotated[float | None, At("change.after"), As(in_mb)]
    ok_before: Annotated[int, At("change.ok_before")]
    ok_after: Annotated[int, At("change.ok_after")]
    links: Annotated[int, At("change.links")]
    chance: Annotated[float, At("change.chance"), As(to_number)]
    sure: Annotated[bool, At("change.sure")]
    found_at: Annotated[Moment, At("change.found_at")]
    sentence: str
    near: list[str]
    comparison_url: str


ECHO = echo_shape(",", ("size", "window", "kind", "level", "factor"), ("sure",))
SEARCHED: dict[str, Any] = {
    "type": "object",
    "description": "When the results of each size class were last searched.",
    "additionalProperties": {"type": "string", "format": "date-time"},
}
COLUMNS = tuple(ChangeOfLevel.model_fields)

CHANGES = described(
    "Changes in rate, newest first: when a link or an endpoint became faster or slower",
    answer=Listed(
        "changes",
        ChangeOfLevel,
        also={"query": ECHO, "description": {"type": "string"}, "searched": SEARCHED},
    ),
    parameters=[
        text("size", "Only with files of this size class; by default of all.", SIZE),
        choice("window", PRESETS, "When it changed: up to now; not with from and to.", WINDOW),
        *BOUNDS[1:],
        *LINKS_FILTERED,
        choice("kind", Change.Kind.values, "What changed; by default anything."),
        choice("level", LEVELS, "To which level it changed; by default either."),
        number(
            "factor", "Only by at least this factor, either way.", minimum=1, maximum=MOST_FACTOR
        ),
        choice("sure", SURE, "With any, those that chance may explain, too.", SURE[0]),
        *paging(OF_TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    tag="results",
)


# All of a Sonar's changes, in one CSV: more than this many nobody has, nor reads.
MOST_ROWS = 100_000


class ChangesView(ApiView):
    @CHANGES
    def get(self, request: Request) -> HttpResponseBase:
        """A jump that is common to the links of an endpoint is one change, of the endpoint."""
        now = timezone.now()
        params = dict(request.query_params.lists())
        question = ChangesQuestion.read(params, (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, Cursor.parse_numbered, OF_TRANSFERS)
        endpoints = registry.read_places(registry.read_versions())
        size = page.size if form == "json" else MOST_ROWS
        rows = question.selection(now).rows(endpoints)
        listed, further = changes.listing(rows, size, page.after)
        near, at = WrittenNear.read(listed, request.user), timezone.now()
        records = [
            record(
                ChangeOfLevel,
                line,
                near=[note.words for note in notes_near(line.change, line.sites, near)],
                comparison_url=request.build_absolute_uri(line.comparison_url(at)),
            )
            for line in lines_of(listed, endpoints)
        ]
        window = question.query.window_at(now)
        if form != "json":
            name = file_name("changes", query=question.query, window=window)
            return as_rows(records, form, COLUMNS, name)
        own = {
            name: getattr(question, name) or None for name in ("size", "kind", "level", "factor")
        }
        own["sure"] = "any" if question.unsure else "yes"
        return as_json(
            {
                "query": echo(question.query, window, **own),
                "description": question.describe(),
                "searched": searched(),
                "changes": records,
                "next": following(request, further, window),
            }
        )


def searched() -> dict[str, str]:
    """Return when the results of each size class were last searched. One SQL query."""
    return {
        search.size_class.name: format_time(search.searched_at) for search in changes.searches()
    }
