"""/api/v1/endpoints/<name>/check/: the newest check of an endpoint; POST orders another one."""

from typing import Annotated, Literal, cast

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers import endpoint_check
from matrix.api.base import ApiView, body_of
from matrix.api.parameters import wrong
from matrix.api.registry.sites import ENDPOINTS
from matrix.api.registry.views import refuse_parameters, visible
from matrix.api.rendering import as_json
from matrix.api.schema.describe import described
from matrix.api.schema.records import At, Json, Moment, MomentOrNull, Name, Text, record
from matrix.api.schema.schemas import Answer
from matrix.http.exceptions import Conflict
from matrix.http.negotiation import asked_format
from matrix.http.permissions import allow, reader_of, sees
from matrix.query.addresses import address
from matrix.query.forms import check_names
from sonar.models import Endpoint
from sonar.ordering import request_checks

SEE, ORDER = "sonar.view_endpoint", "sonar.change_endpoint"


class StepOfCheck(Answer):
    """A step of an endpoint check, with its observation and the recommended action."""

    name: str
    label: str
    state: Literal["fine", "warning", "failed", "not tried", "not checked"]
    seen: str
    advice: Text


class EndpointCheckAnswer(Answer):
    """A check of an endpoint.

    Hosts and addresses are shown only to readers with the right to see them.
    """

    endpoint: Annotated[Name, At("check.endpoint")]
    url: str
    state: Literal["waiting", "running", "done", "lost"]
    sentence: str
    wrong: int
    changed: list[str]
    requested_at: Annotated[Moment, At("check.requested_at")]
    started_at: Annotated[MomentOrNull, At("check.started_at")]
    ended_at: Annotated[MomentOrNull, At("check.ended_at")]
    steps: list[StepOfCheck]


SHOW = described(
    "Get the latest check of an endpoint",
    answer=EndpointCheckAnswer,
    errors=(404,),
    tag="operation",
)
CHECK = described(
    "Check an endpoint", answer=EndpointCheckAnswer, status=202, errors=(404, 409), tag="operation"
)


class EndpointCheckView(ApiView, of_primary=True):
    needs = {"POST": ORDER}

    @SHOW
    def get(self, request: Request, name: str) -> HttpResponse:
        """Returns the steps of the latest check.

        Poll until `state` is `done` or `lost`. A check usually takes a few seconds.
        """
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        endpoint = visible(ENDPOINTS, ENDPOINTS.rows(), name, reader_of(request))
        return as_json(of_endpoint(endpoint, request))

    @CHECK
    def post(self, request: Request, name: str) -> HttpResponse:
        """Starts a check and returns it. Operators and admins of the site may check an endpoint.

        A worker checks the host name, port, certificate, credential and clock of the endpoint. The
        worker also writes, reads and deletes a 100 kB file, and checks whether the server supports
        third-party copies (COPY). The status is 409 if the endpoint is retired, a check is running,
        or the last check was less than a minute ago.
        """
        endpoint = visible(ENDPOINTS, ENDPOINTS.rows(), name, request.user)
        allow(request, ORDER, [endpoint.site_id])
        refuse_parameters(request)
        for field in body_of(request):
            raise wrong(str(field), f"“{field}” is not a field of a check: send an empty object.")
        try:
            request_checks.order(endpoint, cast(User, request.user), timezone.now())
        except request_checks.CheckRefusedError as error:
            raise Conflict({"endpoint": [str(error)]}) from error
        return as_json(of_endpoint(endpoint, request), status=202)


def of_endpoint(endpoint: Endpoint, request: Request) -> Json:
    """Return the newest check as the reader may see it; raise NotFound if there is none."""
    internal = sees(request, SEE, [endpoint.site_id])
    report = endpoint_check.of_endpoint(endpoint, timezone.now(), internal=internal)
    if report is None:
        raise NotFound(f"{endpoint.name} has not been checked yet: send a POST to check it.")
    url = request.build_absolute_uri(address("api-endpoint-check", endpoint.name))
    steps = [record(StepOfCheck, step) for step in report.steps]
    return record(EndpointCheckAnswer, report, url=url, steps=steps)
