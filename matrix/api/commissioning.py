"""GET /api/v1/commissioning/: which links have passed sets of criteria, and how others stand."""

from typing import Annotated, Any

from django.http import Http404
from django.http.response import HttpResponseBase
from pydantic import Field
from rest_framework.request import Request

from matrix.answers.commissioning import question, standing
from matrix.answers.commissioning.question import PARAMETERS, asked_words, ends_words, set_of
from matrix.answers.commissioning.records import LinkRecords
from matrix.answers.commissioning.standing import STATES
from matrix.api.base import ApiView
from matrix.api.parameters import OF_LINKS, PAGING, PageRequest, following, some_of
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import filter_of, paging, several
from matrix.api.schema.records import As, At, Json, MomentOrNull, Name, moment, record, to_digits
from matrix.api.schema.schemas import Answer, Listed, word_of
from matrix.http.negotiation import LIST, asked_format
from matrix.query.forms import check_names
from matrix.store import registry
from sonar.models import CommissioningSearch, CriteriaSet

Digits = Annotated[float | None, As(to_digits)]
State = Annotated[str, word_of(STATES)]


class CommissioningSet(Answer):
    """A criteria set, and its number of links by state at the last evaluation."""

    name: str
    description: str
    judged_up_to: MomentOrNull
    passed: int
    below_now: int
    nearly: int
    on_the_way: int
    lost: int
    no_data: int


class CommissioningLink(Answer):
    """A link in a criteria set. Measured values are from the period before the last evaluation."""

    source: Name
    source_site: Annotated[str, At("source.site")]
    destination: Name
    destination_site: Annotated[str, At("destination.site")]
    state: State
    words: str
    percent: int
    tests: Annotated[int, At("measured.tests")]
    ok: Annotated[int, At("measured.ok")]
    success_percent: Annotated[Digits, At("measured.success_percent")]
    mb_s: Annotated[Digits, At("measured.mb_s")]
    bytes: Annotated[int, At("measured.bytes")]
    passed_at: Annotated[MomentOrNull, At("record.passed_at")]
    lost_at: Annotated[MomentOrNull, At("record.lost_at")]


class CommissioningCriterion(Answer):
    """A criterion with its required minimum and the measured value."""

    name: Annotated[str, word_of(("tests", "mb_s", "percent", "bytes"))]
    needed: Digits
    value: Digits
    holds: bool
    percent: int


class CommissioningPass(Answer):
    """A record of a link that passed a criteria set, with the criteria at that time."""

    passed_at: Annotated[MomentOrNull, At("row.passed_at")]
    lost_at: Annotated[MomentOrNull, At("row.lost_at")]
    size: str
    period_hours: int
    tests: Annotated[int, At("row.tests")]
    ok: Annotated[int, At("row.ok")]
    criteria: list[CommissioningCriterion]


class CommissioningRecords(Answer):
    """The present state of a link in a criteria set, and its records."""

    criteria_set: Annotated[str, At("row.name")]
    description: str
    source: Annotated[Name, At("now.source")]
    destination: Annotated[Name, At("now.destination")]
    judged_up_to: Annotated[MomentOrNull, At("search.end")]
    state: Annotated[State, At("now.state")]
    percent: Annotated[int, At("now.percent")]
    criteria: Annotated[list[CommissioningCriterion], At("now.criteria")]
    records: Annotated[
        list[CommissioningPass], Field(description="Records of the link, newest first.")
    ]


SETS = tuple(CommissioningSet.model_fields)
LINKS = tuple(CommissioningLink.model_fields)


def of_set(row: CriteriaSet, search: CommissioningSearch | None) -> Json:
    counts = search.counts if search else {}
    return {
        "name": row.name,
        "description": f"{asked_words(row)}, {ends_words(row)}",
        "judged_up_to": moment(search.end) if search else None,
        **{name.replace(" ", "_"): counts.get(name, 0) for name in STATES},
    }


class CommissioningView(ApiView):
    @described(
        "List criteria sets with their results",
        answer=Listed("commissioning", CommissioningSet),
        formats=LIST,
        tag="results",
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Returns each criteria set with its number of links by state.

        Links are checked against the criteria after each full hour, as soon as the results of that
        hour have arrived.
        """
        check_names(request.query_params, ("format",))
        form = asked_format(request, LIST)
        rows = CriteriaSet.objects.select_related("size_class", "search")
        records = [of_set(row, getattr(row, "search", None)) for row in rows]
        if form != "json":
            return as_rows(records, form, SETS, file_name("commissioning"))
        return as_json({"commissioning": records, "next": None})


OF_A_SET: dict[str, Any] = {
    "criteria_set": {"type": "string", "description": "Name of the criteria set."},
    "description": {
        "type": "string",
        "description": "The criteria and endpoints of the set, in words.",
    },
    "judged_up_to": {
        "type": ["string", "null"],
        "format": "date-time",
        "description": "Time up to which results have been evaluated, UTC. Null before the first "
        "evaluation.",
    },
}


class CommissioningSetView(ApiView):
    @described(
        "List links of a criteria set",
        answer=Listed("links", CommissioningLink, also=OF_A_SET),
        parameters=[
            *map(filter_of, PARAMETERS),
            several("state", "Only links in one of these states. Default: all.", enum=list(STATES)),
            *paging(OF_LINKS),
        ],
        formats=LIST,
        errors=(404,),
        tag="results",
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """Returns the links of a criteria set with their states, by source and destination."""
        params = request.query_params
        chosen = question.read(params, ("state", *PAGING, "format"))
        states, form = some_of(params, "state", STATES), asked_format(request, LIST)
        page = PageRequest.read(request, form, int, OF_LINKS)
        row = set_of(name)
        of_row = standing.read(row, chosen)
        links = [link for link in of_row.links if not states or link.state in states]
        if form != "json":
            lines = [record(CommissioningLink, link) for link in links]
            return as_rows(lines, form, LINKS, file_name("commissioning", row.name))
        first = max(0, page.after or 0)
        past = first + page.size
        summary = of_set(row, of_row.search)
        return as_json(
            {
                "criteria_set": row.name,
                **{key: summary[key] for key in ("description", "judged_up_to")},
                "links": [record(CommissioningLink, link) for link in links[first:past]],
                "next": following(request, past if past < len(links) else None),
            }
        )


class CommissioningRecordView(ApiView):
    @described(
        "Get the commissioning records of a link",
        answer=CommissioningRecords,
        errors=(404,),
        tag="results",
    )
    def get(self, request: Request, name: str, source: str, destination: str) -> HttpResponseBase:
        """Returns the present state of a link in a criteria set, and its records.

        Records are kept even after the results that they are based on have been deleted.
        """
        check_names(request.query_params, ("format",))
        asked_format(request, ("json",))
        row = set_of(name)
        places = {place.name: place for place in registry.read_places(registry.read_versions())}
        for end in (source, destination):
            if end not in places:
                raise Http404(f"No endpoint is registered with the name “{end}”.")
        link = LinkRecords.read(row, places[source], places[destination])
        if link is None:
            raise Http404(f"The criteria set {row.name} does not apply to this link.")
        words = f"{asked_words(row)}, {ends_words(row)}"
        return as_json(record(CommissioningRecords, link, description=words))
