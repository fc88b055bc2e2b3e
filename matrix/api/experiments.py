"""/api/v1/experiments/: sweeps over one variable of the tests of a link, and what they show."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

import numpy as np
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers import probe_request
from matrix.answers.experiments import report
from matrix.answers.experiments import request as experiment_request
from matrix.answers.experiments.report import ExperimentReport, Step, ValueResults
from matrix.answers.experiments.words import conclusion, title
from matrix.api.base import ApiView
from matrix.api.pagination import PageRequest, following
from matrix.api.parsers import body_of
from matrix.api.registry.parameters import named
from matrix.api.registry.rendering import as_csv, as_json, moment
from matrix.api.registry.views import refuse_parameters
from matrix.api.schema.experiments import (
    CANCEL,
    COLUMNS,
    EXPERIMENT,
    EXPERIMENTS,
    ORDER,
)
from matrix.http.exceptions import Conflict, NotNow
from matrix.http.negotiation import TABLE, asked_format
from matrix.http.permissions import allow
from matrix.query.addresses import address
from matrix.query.forms import check_names
from matrix.statistics.transfers.evidence import Slope
from matrix.store import keyset
from matrix.store.keyset import Cursor
from sonar.models import Endpoint, Experiment
from sonar.ordering import experiments, request_probes

PARAMETERS = ("source", "destination", "cursor", "page_size", "format")
RETRY_SECONDS = 5


class ExperimentsView(ApiView):
    needs = {"POST": probe_request.ORDER}

    @EXPERIMENTS
    def get(self, request: Request) -> HttpResponse:
        """Without their single tests, which are in experiments/<id>/."""
        params, now = request.query_params, timezone.now()
        check_names(params, PARAMETERS)
        form = asked_format(request, ("json",))
        page = PageRequest.read(request, form, Cursor.parse)
        order = ("-requested_at", "-id")
        rows, last = keyset.page_by_time(filtered(params), order, page.size, page.after)
        records = [summary(each, request) for each in report.reports(rows, now)]
        next_page = following(request, str(last)) if last else None
        return as_json({"experiments": records, "next": next_page})

    @ORDER
    def post(self, request: Request) -> HttpResponse:
        """Who may order tests of the link may order an experiment; all limits hold.

        Its tests run one after the other, there and back through the values. Ask for it by its
        `url` until `ended` is true.
        """
        sweep = experiment_request.read(cast("dict[str, Any]", body_of(request)))
        allow(request, probe_request.ORDER, probe_request.sites_of(sweep.probe_requests))
        try:
            ordered = experiments.order(sweep, cast(User, request.user), timezone.now())
        except request_probes.RefusedError as error:
            raise Conflict(error.errors) from error
        except request_probes.PlannerBusyError as error:
            raise NotNow(str(error), RETRY_SECONDS) from error
        return as_json(whole(report_of(ordered.id), request), status=202)


class ExperimentView(ApiView):
    needs = {"DELETE": probe_request.ORDER}

    @EXPERIMENT
    def get(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """As CSV a line for each of its tests."""
        check_names(request.query_params, ["format"])
        form, current = asked_format(request, TABLE), report_of(id)
        if form == "csv":
            rows = [step_record(step) for step in current.steps]
            return as_csv(rows, COLUMNS, "experiment")
        return as_json(whole(current, request))

    @CANCEL
    def delete(self, request: Request, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
        """What has ended stays, and what runs goes on: what it shows is kept."""
        current = report_of(id)
        allow(request, probe_request.ORDER, probe_request.sites_of([current.experiment]))
        refuse_parameters(request)
        if not experiments.cancel(current.experiment, timezone.now()):
            raise Conflict({"id": ["None of its tests is waiting: there is nothing to cancel."]})
        return HttpResponse(status=204)


def report_of(experiment: UUID) -> ExperimentReport:
    current = report.report_of(experiment, timezone.now())
    if current is None:
        raise NotFound(f"No experiment has the id {experiment}.")
    return current


def filtered(params: QueryDict) -> QuerySet[Experiment]:
    """Read the filters; one SQL query for each that names an endpoint."""
    filters = Q()
    for field in ("source", "destination"):
        if row := named(params, field, Endpoint):
            filters &= Q(**{field: row})
    return report.rows().filter(filters)


def summary(current: ExperimentReport, request: Request) -> dict[str, Any]:
    experiment, said = current.experiment, conclusion(current)
    return {
        "id": str(experiment.id),
        "url": request.build_absolute_uri(address("api-experiment", experiment.id)),
        "source": experiment.source.name,
        "destination": experiment.destination.name,
        "variable": experiment.variable,
        "title": title(current),
        "size": experiment.size_class.name if experiment.size_class else None,
        "streams": experiment.streams,
        "mode": experiment.mode or None,
        "mover": experiment.mover,
        "requested_at": moment(experiment.requested_at),
        "ended": current.ended,
        "tests": len(current.steps),
        "open": current.open,
        "done": current.done,
        "failed": current.failed,
        "trend": said.trend or None,
        "finding": said.words,
        "slope": slope_record(current.slope),
        "values": [value_record(value) for value in current.values],
    }


def whole(current: ExperimentReport, request: Request) -> dict[str, Any]:
    return summary(current, request) | {"steps": [step_record(step) for step in current.steps]}


def slope_record(slope: Slope | None) -> dict[str, Any] | None:
    if slope is None:
        return None
    low, high = slope.interval
    return {
        "exponent": slope.exponent,
        "exponent_low": slope.low,
        "exponent_high": slope.high,
        "factor": slope.factor,
        "factor_low": low,
        "factor_high": high,
        "n": slope.n,
    }


def value_record(value: ValueResults) -> dict[str, Any]:
    return {
        "value": value.value,
        "median_mb_s": number(value.median),
        "done": value.rates.size,
        "failed": value.failed,
        "open": value.open,
    }


def step_record(step: Step) -> dict[str, Any]:
    """Return a test; its id leads to probes/<id>/, before its end and after."""
    return {
        "id": str(step.step.test_id),
        "value": step.step.value,
        "state": step.state,
        "started_at": moment(step.transfer.started_at if step.transfer else None),
        "rate_mb_s": number(step.rate),
    }


def number(value: float) -> float | None:
    """Return a number for JSON, which has no NaN."""
    return None if np.isnan(value) else value
