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
    """A test that is waiting, queued or running; its worker only for those who may see it.

    `share` is the part of its bytes that has arrived, from 0 to 1. `running_seconds` count from
    when a worker took it, so `rate_mb_s` so far is less than the rate that will be recorded.
    `place_in_queue` is 1 for the next one: of those that are queued or, while it waits, of those
    that wait to leave its source or to reach its destination. `waits_because` says for what.
    """

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
    """A test that has ended, as the transfer that it has become: see transfers/<id>/."""

    ended: Literal[True]


class EndedNetworkProbe(NetworkTest):
    """A test of the network that has ended, as network/ has it."""

    ended: Literal[True]


class ProbeAnswer(RootModel[OpenProbe | EndedProbe | EndedNetworkProbe]):
    """A test before or after its end: `ended` says which."""


class ProbesOrdered(Answer):
    probes: list[ProbeUnderWay]


COLUMNS = tuple(name for name in ProbeUnderWay.model_fields if name != "worker")
PROBES = described(
    "Tests that are waiting, queued or running, oldest first",
    answer=Listed("probes", ProbeUnderWay),
    parameters=[
        text("source", "The name of an endpoint.", "Glasgow_DATADISK"),
        text("destination", "The name of an endpoint.", "RAL_DATADISK"),
        text("site", "The name of a site at either end.", "Glasgow"),
        text("size", "Only tests of this size class.", SIZE),
        choice("state", Probe.State.values, "All if left out."),
        *paging(),
    ],
    formats=("json", "csv", "ndjson"),
    tag="operation",
)
ORDER = described(
    "Order tests of one link, all or none",
    answer=ProbesOrdered,
    status=202,
    body=OrderedTests,
    errors=(409,),
    tag="operation",
)
PROBE = described(
    "A test: its progress, or how it ended", answer=ProbeAnswer, errors=(404,), tag="operation"
)
CANCEL = described(
    "Cancel a test that has not ended", answer=None, status=204, errors=(404, 409), tag="operation"
)


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
        """CSV and NDJSON have all rows, whatever the page size."""
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
        """Operators may, and site admins with a site at one of the ends.

        A test that has no room now waits: for another test of its link, as there is never more
        than one, or for an end that has as many at once as its cap. `waits_because` says so, and
        `place_in_queue` how many go before. An end that is retired, in a declared downtime, or
        whose budget of the day does not bear all of them, is a 409 that says why, and nothing is
        ordered. `count` tests of each size class are made, one after the other; `mover`, `mode`
        and `streams` are left out mostly. The results are of no mesh. Ask for each test by its
        `url` until `ended` is true.
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
        """After its end the test has become the transfer, or network test, of the same id."""
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
        """Who may order it may cancel it. Nothing is kept of one that has not begun.

        One that runs ends within seconds: its file is deleted, and its result has the state `lost`
        and an error that says who cancelled it. One that a mesh has ordered comes again after its
        interval.
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
