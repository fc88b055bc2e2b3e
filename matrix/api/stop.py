"""/api/v1/stop/: whether all tests are stopped; PATCH stops them, or lets them start again."""

from typing import Annotated, cast

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.registry.pauses import PausedUntil, PauseReason, of_pause, pause_columns
from matrix.api.registry.values import flag, values_of
from matrix.api.registry.views import refuse_parameters
from matrix.api.rendering import as_json
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer, Body
from matrix.http.negotiation import asked_format
from matrix.http.permissions import reader_of
from matrix.query.forms import check_names
from matrix.store import registry
from sonar.models import AllTests
from sonar.ordering import request_probes
from sonar.people.roles import STOP_ALL


class StopAnswer(Answer):
    """Whether all tests are stopped, until when and why."""

    paused: bool
    paused_until: str | None
    pause_reason: str
    paused_since: str | None
    paused_by: str | None = None
    cancelled: int | None = None


class StopBody(Body):
    """Stops or resumes all tests."""

    paused: Annotated[
        bool,
        flag(
            "Whether all tests are stopped. While `paused` is true, no tests start, not even "
            "on-demand tests."
        ),
    ]
    paused_until: PausedUntil = None
    pause_reason: PauseReason = ""
    cancel_running: Annotated[
        bool, flag("Whether running tests are cancelled, too. Used only if `paused` is true.")
    ] = False


SHOW = described("Check whether all tests are stopped", answer=StopAnswer, tag="operation")
STOP = described("Stop or resume all tests", answer=StopAnswer, body=StopBody, tag="operation")


class StopView(ApiView, of_primary=True):
    needs = {"PATCH": STOP_ALL}

    @SHOW
    def get(self, request: Request) -> HttpResponse:
        """Returns whether all tests are stopped, until when and why.

        While all tests are stopped, no scheduled or on-demand tests start. Due tests wait until
        testing is resumed.
        """
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        return as_json(answer(request))

    @STOP
    def patch(self, request: Request) -> HttpResponse:
        """Stops or resumes all tests, and returns the new state.

        Operators may stop and resume all tests. If `paused` is true, `pause_reason` is required.
        Without `paused_until`, the stop lasts until `paused` is set to false.
        """
        refuse_parameters(request)
        values, now = values_of(StopBody, request), timezone.now()
        cancelled = 0
        columns = pause_columns(AllTests.read(), values, now)
        if columns["paused_since"] is None:
            request_probes.resume_all(now)
        else:
            cancelled = request_probes.stop_all(
                columns["pause_reason"],
                columns["paused_until"],
                cast(User, request.user),
                now,
                running=values.get("cancel_running", False),
            )
        registry.forget_stopped()
        return as_json(answer(request) | {"cancelled": cancelled})


def answer(request: Request) -> dict[str, object]:
    row, now = AllTests.read(), timezone.now()
    who = {}
    if reader_of(request).is_authenticated:
        who = {"paused_by": row.paused_by and row.paused_by.get_username()}
    return {**of_pause(row, now), **who}
