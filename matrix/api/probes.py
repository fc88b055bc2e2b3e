"""/api/v1/probes/: the tests that have not ended; POST orders some, all or none of them."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers import probe_request
from matrix.api import network
from matrix.api.base import ApiView
from matrix.api.pagination import PageRequest, following
from matrix.api.parameters import one_of
from matrix.api.parsers import body_of
from matrix.api.registry.parameters import named
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson, moment
from matrix.api.registry.views import refuse_parameters
from matrix.api.schema.probes import CANCEL, COLUMNS, ORDER, PROBE, PROBES
from matrix.api.transfers.detail import shown, why_not
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

PARAMETERS = ("source", "destination", "site", "size", "state", "cursor", "page_size", "format")
RETRY_SECONDS = 5
SEES_WORKERS = "sonar.view_probe"


class ProbesView(ApiView):
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
            page_records = [record(test, request) for test in listing.tests]
            next_page = following(request, str(listing.next)) if listing.next else None
            return as_json({"probes": page_records, "next": next_page})
        tests = probes.progress_of(list(rows.order_by(*probes.ORDER)), now)
        records = [record(test, request) for test in tests]
        if format_name == "ndjson":
            return as_ndjson(records)
        columns = [*COLUMNS, *(["worker"] if sees(request, SEES_WORKERS) else [])]
        return as_csv(records, columns, "probes")

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
        probe_requests = probe_request.read(cast("dict[str, Any]", body_of(request)))
        allow(request, probe_request.ORDER, probe_request.sites_of(probe_requests))
        try:
            # Nobody begins them before the commit: each has a place.
            with transaction.atomic():
                ordered = request_probes.order(probe_requests, timezone.now())
                tests = probes.progress_of(ordered, timezone.now())
        except request_probes.RefusedError as error:
            raise Conflict(error.errors) from error
        except request_probes.PlannerBusyError as error:
            raise NotNow(str(error), RETRY_SECONDS) from error
        return as_json({"probes": [record(test, request) for test in tests]}, status=202)


class ProbeView(ApiView):
    needs = {"DELETE": probe_request.ORDER}

    @PROBE
    def get(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """After its end the test has become the transfer, or network test, of the same id."""
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        if probe := probes.by_id(id, timezone.now()):
            return as_json(record(probe, request) | {"ended": False})
        if transfer := transfers.by_id(id):
            return as_json(shown(transfer, request) | {"ended": True})
        if result := network_results.by_id(id):
            return as_json(network.record(result) | {"ended": True})
        raise NotFound(why_not(id))

    @CANCEL
    def delete(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """Who may order it may cancel it, as long as no worker has it: nothing is measured.

        One that a mesh has ordered comes again after its interval.
        """
        test = probe_request.ordered_test(id)
        if test is None:
            raise NotFound(why_not(id))
        allow(request, probe_request.ORDER, probe_request.sites_of([test]))
        refuse_parameters(request)
        try:
            request_probes.cancel(id, timezone.now())
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


def record(test: ProbeProgress, request: Request) -> dict[str, Any]:
    """Return what the reader may see of a test: names of machines are internal."""
    probe = test.probe
    internal = {"worker": probe.worker or None} if sees(request, SEES_WORKERS) else {}
    return {
        "id": str(probe.id),
        "url": request.build_absolute_uri(address("api-probe", probe.id)),
        "source": probe.source.name,
        "destination": probe.destination.name,
        "size": probe.size_class.name,
        "bytes": probe.bytes,
        "state": probe.state,
        "mover": probe.mover,
        "mode": probe.mode,
        "streams": probe.streams,
        "mesh": probe.mesh.name if probe.mesh else None,
        "requested_at": moment(probe.requested_at),
        "started_at": moment(probe.started_at),
        "deadline": moment(probe.deadline),
        "progress_bytes": probe.progress_bytes,
        "share": test.share,
        "running_seconds": test.seconds,
        "rate_mb_s": test.rate_mb_s,
        "place_in_queue": test.place,
        "waits_because": probe.waits_because or None,
        **internal,
    }
