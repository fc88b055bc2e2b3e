"""/api/v1/probes/: the tests that have not ended; POST orders some, all or none of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from pydantic import RootModel
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers.ordering import probe_requests as probe_request
from matrix.answers.ordering.probe_requests import OrderedTests
from matrix.api import network
from matrix.api.base import ApiView, body_of
from matrix.api.network import NetworkTest
from matrix.api.parameters import PageRequest, following, named, one_of
from matrix.api.registry.views import refuse_parameters
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import SIZE, choice, paging, text
from matrix.api.schema.records import At, Json, Moment, MomentOrNull, Name, NameOrNull, Text, record
from matrix.api.schema.schemas import Answer, Listed
from matrix.api.transfers.views import WholeResult, shown, why_not
from matrix.http.exceptions import Conflict, NotNow
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import allow, sees
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.store import network as network_results
from matrix.store import probes, transfers
from matrix.store.keyset import Cursor
from matrix.store.probes import ProbeProgress
from sonar.models import Endpoint, Probe, Site, SizeClass
from sonar.ordering import request_probes


class ProbeUnderWay(Answer):
    """A test that is waiting, queued or running."""

    id: Annotated[UUID, At("probe.id")]
    url: str
    source: Annotated[Name, At("probe.source")]
    destination: Annotated[Name, At("probe.destination")]
    size: Annotated[Name, At("probe.size_class")]
    bytes: Annotated[int, At("probe.bytes")]
    state: Annotated[Literal["waiting", "queued", "running"], At("probe.state")]
    mover: Annotated[str, At("probe.mover")]
    mode: Annotated[Literal["pull", "push"], At("probe.mode")]
    streams: Annotated[int, At("probe.streams")]
    mesh: Annotated[NameOrNull, At("probe.mesh")]
    requested_at: Annotated[Moment, At("probe.requested_at")]
    started_at: Annotated[MomentOrNull, At("probe.started_at")]
    deadline: Annotated[MomentOrNull, At("probe.deadline")]
    progress_bytes: Annotated[int, At("probe.progress_bytes")]
    share: float
    running_seconds: Annotated[float | None, At("seconds")]
    rate_mb_s: float | None
    place_in_queue: Annotated[int | None, At("place")]
    waits_because: Annotated[Text, At("probe.waits_because")]
    worker: str | None = None


class OpenProbe(ProbeUnderWay):
    """A test that has not ended."""

    ended: Literal[False]


class EndedProbe(WholeResult):  # type: ignore[misc, valid-type]  # made of the columns
    """A test that has ended, in the form in which `transfers/{id}/` returns it."""

    ended: Literal[True]


class EndedNetworkProbe(NetworkTest):
    """A network test that has ended, in the form in which `network/` returns it."""

    ended: Literal[True]


class ProbeAnswer(RootModel[OpenProbe | EndedProbe | EndedNetworkProbe]):
    """A test, whether or not it has ended. The field `ended` shows whether the test has ended."""


class ProbesOrdered(Answer):
    """The requested tests."""

    probes: list[ProbeUnderWay]


COLUMNS = tuple(name for name in ProbeUnderWay.model_fields if name != "worker")
PROBES = described(
    "List open tests",
    answer=Listed("probes", ProbeUnderWay),
    parameters=[
        text("source", "Only tests from this source endpoint.", "Glasgow_DATADISK"),
        text("destination", "Only tests to this destination endpoint.", "RAL_DATADISK"),
        text("site", "Only tests from or to this site.", "Glasgow"),
        text("size", "Only tests of this size class. Default: all size classes.", SIZE),
        choice("state", Probe.State.values, "Only tests in this state. Default: all states."),
        *paging(),
    ],
    formats=("json", "csv", "ndjson"),
    tag="operation",
)
ORDER = described(
    "Request tests of a link",
    answer=ProbesOrdered,
    status=202,
    body=OrderedTests,
    errors=(409,),
    tag="operation",
)
PROBE = described("Get a test", answer=ProbeAnswer, errors=(404,), tag="operation")
CANCEL = described("Cancel a test", answer=None, status=204, errors=(404, 409), tag="operation")


PARAMETERS = ("source", "destination", "site", "size", "state", "cursor", "page_size", "format")
RETRY_SECONDS = 5
SEES_WORKERS = "sonar.view_probe"


@contextmanager
def refusals_told() -> Iterator[None]:
    """Say why nothing was ordered: Conflict, or NotNow while the planner is busy."""
    try:
        yield
    except request_probes.RefusedError as error:
        raise Conflict(error.errors) from error
    except request_probes.PlannerBusyError as error:
        raise NotNow(str(error), RETRY_SECONDS) from error


class ProbesView(ApiView, of_primary=True):
    needs = {"POST": probe_request.ORDER}

    @PROBES
    def get(self, request: Request) -> HttpResponse:
        """Returns the tests that are waiting, queued or running, the oldest first."""
        params = request.query_params
        check_names(params, PARAMETERS)
        format_name, rows, now = asked_format(request, LIST), filtered(params), timezone.now()
        page = PageRequest.read(request, format_name, Cursor.parse)
        if format_name == "json":
            listing = probes.listing(rows, now, page.size, page.after)
            page_records = [of_test(test, request) for test in listing.tests]
            next_page = following(request, listing.next)
            return as_json({"probes": page_records, "next": next_page})
        tests = probes.progress_of(list(rows.order_by(*probes.ORDER)), now)
        records = [of_test(test, request) for test in tests]
        columns = [*COLUMNS, *(["worker"] if sees(request, SEES_WORKERS) else [])]
        return as_rows(records, format_name, columns, file_name("probes"))

    @ORDER
    def post(self, request: Request) -> HttpResponse:
        """Requests on-demand tests of one link and returns them; poll the `url` of each test.

        Operators, and admins of the source or destination site, may request tests. The tests run
        one after another, and their results do not belong to a mesh. `mover`, `mode` and `streams`
        are usually omitted.

        A test waits while another test of its link is open, or while an endpoint has reached its
        cap on concurrent tests.

        Either all tests are requested or none. The status is 409 if an endpoint is retired or in a
        declared downtime, or if its remaining daily budget is too small for all tests.
        """
        probe_requests = probe_request.read_tests(cast("dict[str, Any]", body_of(request)))
        allow(request, probe_request.ORDER, probe_request.sites_of(probe_requests))
        # Nobody begins them before the commit: each has a place.
        with refusals_told(), transaction.atomic():
            ordered = request_probes.order(probe_requests, timezone.now())
            tests = probes.progress_of(ordered, timezone.now())
        return as_json({"probes": [of_test(test, request) for test in tests]}, status=202)


class ProbeView(ApiView, of_primary=True):
    needs = {"DELETE": probe_request.ORDER}

    @PROBE
    def get(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """Returns the progress of a test or, after the end of the test, its result."""
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        if probe := probes.by_id(id, timezone.now()):
            return as_json(of_test(probe, request) | {"ended": False})
        if transfer := transfers.by_id(id):
            return as_json(shown(transfer, request) | {"ended": True})
        if result := network_results.by_id(id):
            return as_json(network.of_result(result) | {"ended": True})
        raise NotFound(why_not(id))

    @CANCEL
    def delete(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """Cancels a test. Anyone who may request tests of the link may cancel its tests.

        A test that has not started is removed without a result. A running test ends within seconds:
        its file is deleted, and its result has the state `lost`. A scheduled test runs again after
        its interval.
        """
        test = probe_request.ordered_test(id)
        if test is None:
            raise NotFound(why_not(id))
        allow(request, probe_request.ORDER, probe_request.sites_of([test]))
        refuse_parameters(request)
        try:
            request_probes.cancel(id, timezone.now(), probe_request.canceller(request.user))
        except request_probes.NotCancelledError as error:
            raise Conflict({"id": [str(error)]}) from error
        return HttpResponse(status=204)


def filtered(params: QueryDict) -> QuerySet[Probe]:
    """Read the filters; one SQL query for each that names something."""
    filters = Q()
    for field, model in (("source", Endpoint), ("destination", Endpoint)):
        if row := named(params, field, model):
            filters &= Q(**{field: row})
    if site := named(params, "site", Site):
        filters &= Q(source__site=site) | Q(destination__site=site)
    if size := named(params, "size", SizeClass):
        filters &= Q(size_class=size)
    if state := one_of(params, "state", Probe.State.values):
        filters &= Q(state=state)
    return probes.rows().filter(filters)


def of_test(test: ProbeProgress, request: Request) -> Json:
    """Return what the reader may see of a test: names of machines are internal."""
    probe = test.probe
    internal = {"worker": probe.worker or None} if sees(request, SEES_WORKERS) else {}
    url = request.build_absolute_uri(address("api-probe", probe.id))
    return record(ProbeUnderWay, test, url=url, **internal)
