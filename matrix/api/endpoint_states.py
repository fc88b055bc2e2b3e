"""GET /api/v1/endpoints/state/: which endpoints can be used, for brokers and Rucio."""

from typing import Annotated

from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.conditions import words as condition_words
from matrix.answers.incidents import endpoint_state, words
from matrix.answers.incidents.endpoint_state import STATES
from matrix.api.base import ApiView
from matrix.api.parameters import event_id, text_of, wrong
from matrix.api.rendering import as_csv, as_json, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import text
from matrix.api.schema.records import At, Json, MomentOrNull, Name, record
from matrix.api.schema.schemas import Answer, word_of
from matrix.http.negotiation import TABLE, asked_format
from matrix.query.forms import check_names
from matrix.store import incidents
from sonar.models import Condition, Incident, IncidentEvent
from sonar.notation.windows import parse_time

State = Annotated[str, word_of(STATES)]


class StateEvidence(Answer):
    """A confirmed condition that determines the state of an endpoint.

    It has no incident if its rate was accepted as the new baseline, or if it began while results
    were doubtful.
    """

    condition: Annotated[int, At("pk")]
    incident: int | None
    url: str


class StateOfEndpoint(Answer):
    """Whether an endpoint can be used, as a source and as a destination.

    - `down`: the endpoint is in a declared downtime that stops tests.
    - `unknown`: the endpoint is not tested, or its results are doubtful or were not assessed
      recently.
    - Each link counts once, even if several size classes are tested.
    """

    endpoint: Name
    site: Annotated[Name, At("endpoint.site")]
    as_source: State
    as_destination: State
    since: MomentOrNull
    evidence: list[StateEvidence]
    links_bad: int
    links_all: int


class StatesOfEndpoints(Answer):
    """The states of endpoints, and the value of `since` for the next request."""

    endpoints: list[StateOfEndpoint]
    next_since: int


class EndpointStatesView(ApiView, of_primary=True):
    @described(
        "List the states of endpoints",
        answer=StatesOfEndpoints,
        parameters=[
            text(
                "since",
                "Only endpoints whose state may have changed since this time (ISO 8601), or since "
                "the response with this `next_since`. Default: all endpoints in use.",
                "4711",
            )
        ],
        formats=TABLE,
        tag="results",
    )
    def get(self, request: Request) -> HttpResponse:
        """Returns whether each endpoint can be used, as a source and as a destination.

        States follow from confirmed conditions, so a single test does not change them. To get only
        changes, send the `next_since` of the last response as `since`.
        """
        check_names(request.query_params, ["since", "format"])
        form, now = asked_format(request, TABLE), timezone.now()
        since, chosen = text_of(request.query_params, "since"), Q()
        if since.isdigit() or not since:
            number = event_id("since", since, incidents.last_event())
            event = IncidentEvent.objects.filter(pk__lte=number).order_by("-pk").first()
            if event:
                chosen = endpoint_state.changed_since(number, event.at, now)
        else:
            try:
                at = parse_time(since)
            except ValueError:
                sentence = (
                    f"“since” has the value “{since}”, which is neither an id from “next_since” "
                    "nor a time (for example, 2026-11-20T04:00:00Z)."
                )
                raise wrong("since", sentence) from None
            if at > now:
                sentence = (
                    f"“since” has the value “{since}”, which is in the future: use a past time."
                )
                raise wrong("since", sentence)
            chosen = endpoint_state.changed_since(None, at, now)
        states = endpoint_state.states(now, chosen)
        causes = {each.pk for state in states for each in state.evidence}
        rows = Incident.objects.filter(closed_at=None, cause__in=causes)
        of_condition = {row.cause_id: row for row in rows if row.cause_id}

        def evidence(condition: Condition) -> Json:
            incident = of_condition.get(condition.pk)
            path = words.path(incident) if incident else condition_words.path(condition)
            url = request.build_absolute_uri(path)
            return record(StateEvidence, condition, incident=incident and incident.pk, url=url)

        records = [
            record(StateOfEndpoint, each, evidence=list(map(evidence, each.evidence)))
            for each in states
        ]
        if form == "csv":
            flat = [
                each | {"evidence": [line["url"] for line in each["evidence"]]} for each in records
            ]
            return as_csv(flat, tuple(StateOfEndpoint.model_fields), file_name("endpoint-states"))
        return as_json({"endpoints": records, "next_since": incidents.last_event()})
