"""/api/v1/sweeps/: sweeps over one variable of the tests of a link, and what they show."""

from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers.ordering import probe_requests
from matrix.answers.ordering import sweeps as report
from matrix.answers.ordering.probe_requests import OrderedSweep, Variable
from matrix.answers.ordering.sweeps import SweepReport, conclusion, title
from matrix.api.base import ApiView, body_of
from matrix.api.parameters import PageRequest, following, named
from matrix.api.probes import refusals_told
from matrix.api.registry.views import refuse_parameters
from matrix.api.rendering import as_csv, as_json, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging, text
from matrix.api.schema.records import (
    As,
    At,
    Exact,
    Json,
    Moment,
    MomentOrNull,
    Name,
    NameOrNull,
    present,
    record,
)
from matrix.api.schema.schemas import Answer, Listed
from matrix.http.exceptions import Conflict
from matrix.http.negotiation import TABLE, asked_format
from matrix.http.permissions import allow
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store import keyset
from matrix.store.keyset import Cursor
from sonar.models import Endpoint
from sonar.ordering import request_probes

Trend = Literal["flat", "proportional", "rising", "falling", "unclear", "failed", "gone"]
StepState = Literal["waiting", "queued", "running", "done", "failed", "lost", "gone"]


class SweepSlope(Answer):
    """A power law that was fitted to the rates: rate = constant * variable ^ `exponent`."""

    exponent: float
    exponent_low: Annotated[float, At("low")]
    exponent_high: Annotated[float, At("high")]
    factor: float
    factor_low: Annotated[float, At("interval.0")]
    factor_high: Annotated[float, At("interval.1")]
    n: int


class SweepValue(Answer):
    """The results for one value of the variable."""

    value: str
    median_mb_s: Annotated[Exact, At("median")]
    done: int
    failed: int
    open: int


class SweepTest(Answer):
    """One test of a parameter sweep."""

    id: Annotated[UUID, At("step.test_id")]
    value: Annotated[str, At("step.value")]
    state: StepState
    started_at: Annotated[MomentOrNull, At("transfer.started_at")]
    rate_mb_s: Annotated[Exact, At("rate")]


class SweepSummary(Answer):
    """A parameter sweep: tests of one link that differ in one variable, and the conclusion."""

    id: Annotated[UUID, At("sweep.id")]
    url: str
    source: Annotated[Name, At("sweep.source")]
    destination: Annotated[Name, At("sweep.destination")]
    variable: Annotated[Variable, At("sweep.variable")]
    title: str
    size: Annotated[NameOrNull, At("sweep.size_class")]
    streams: Annotated[int | None, At("sweep.streams")]
    mode: Annotated[Literal["pull", "push"] | None, At("sweep.mode"), As(present)]
    mover: Annotated[str, At("sweep.mover")]
    requested_at: Annotated[Moment, At("sweep.requested_at")]
    ended: bool
    tests: Annotated[int, At("steps"), As(len)]
    open: int
    done: int
    failed: int
    trend: Trend | None
    finding: str
    slope: SweepSlope | None
    values: list[SweepValue]


class WholeSweep(SweepSummary):
    """A parameter sweep with its tests."""

    steps: list[SweepTest]


COLUMNS = tuple(SweepTest.model_fields)
SWEEPS = described(
    "List parameter sweeps",
    answer=Listed("sweeps", SweepSummary),
    parameters=[
        text("source", "Only sweeps from this source endpoint.", "Glasgow_DATADISK"),
        text("destination", "Only sweeps to this destination endpoint.", "RAL_DATADISK"),
        *paging(),
    ],
    tag="operation",
)
ORDER = described(
    "Request a parameter sweep",
    answer=WholeSweep,
    status=202,
    body=OrderedSweep,
    errors=(409,),
    tag="operation",
)
SWEEP = described(
    "Get a parameter sweep",
    answer=WholeSweep,
    errors=(404,),
    formats=TABLE,
    tag="operation",
)
CANCEL = described(
    "Cancel a parameter sweep",
    answer=None,
    status=204,
    errors=(404, 409),
    tag="operation",
)


PARAMETERS = ("source", "destination", "cursor", "page_size", "format")


class SweepsView(ApiView, of_primary=True):
    needs = {"POST": probe_requests.ORDER}

    @SWEEPS
    def get(self, request: Request) -> HttpResponse:
        """Returns parameter sweeps with their conclusions, newest first.

        The tests of a sweep are returned by `sweeps/{id}/`.
        """
        params, now = request.query_params, timezone.now()
        check_names(params, PARAMETERS)
        form = asked_format(request, ("json",))
        page = PageRequest.read(request, form, Cursor.parse)
        ends = {end: named(params, end, Endpoint) for end in ("source", "destination")}
        rows = report.rows().filter(**{end: row for end, row in ends.items() if row})
        page_rows, last = keyset.page_by_time(rows, ("-requested_at", "-id"), page.size, page.after)
        records = [
            sweep_record(SweepSummary, each, request) for each in report.reports(page_rows, now)
        ]
        next_page = following(request, last)
        return as_json({"sweeps": records, "next": next_page})

    @ORDER
    def post(self, request: Request) -> HttpResponse:
        """Requests the tests of a parameter sweep and returns the sweep; poll its `url`.

        Everyone who may request tests of a link may request a parameter sweep of that link. The
        limits for on-demand tests apply. The tests run one after another, forwards and then
        backwards through the values. Either all tests are requested or none.
        """
        sweep_request = probe_requests.read_sweep(cast("dict[str, Any]", body_of(request)))
        allow(request, probe_requests.ORDER, probe_requests.sites_of(sweep_request.probe_requests))
        with refusals_told():
            ordered = request_probes.order_sweep(
                sweep_request, cast(User, request.user), timezone.now()
            )
        return as_json(sweep_record(WholeSweep, report_of(ordered.id), request), status=202)


class SweepView(ApiView, of_primary=True):
    needs = {"DELETE": probe_requests.ORDER}

    @SWEEP
    def get(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """Returns a parameter sweep with its tests and conclusion.

        The CSV response has one line per test.
        """
        check_names(request.query_params, ["format"])
        form, current = asked_format(request, TABLE), report_of(id)
        if form == "csv":
            rows = [record(SweepTest, step) for step in current.steps]
            return as_csv(rows, COLUMNS, file_name("sweep", str(id)))
        return as_json(sweep_record(WholeSweep, current, request))

    @CANCEL
    def delete(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """Cancels the tests of a parameter sweep that have not started.

        Running tests continue, and results are kept.
        """
        current = report_of(id)
        allow(request, probe_requests.ORDER, probe_requests.sites_of([current.sweep]))
        refuse_parameters(request)
        if not request_probes.cancel_sweep(current.sweep, timezone.now()):
            sentence = (
                "No test of this parameter sweep is waiting or queued: none can be cancelled."
            )
            raise Conflict({"id": [sentence]})
        return HttpResponse(status=204)


def report_of(sweep: UUID) -> SweepReport:
    current = report.report_of(sweep, timezone.now())
    if current is None:
        raise NotFound(f"No parameter sweep has the id {sweep}.")
    return current


def sweep_record(answer: type[Answer], current: SweepReport, request: Request) -> Json:
    sweep, said = current.sweep, conclusion(current)
    return record(
        answer,
        current,
        url=request.build_absolute_uri(address("api-sweep", sweep.id)),
        title=title(current),
        trend=said.trend or None,
        finding=said.words,
    )
