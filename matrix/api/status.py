"""GET /api/v1/status/: whether Sonar itself is well. No secrets, and no names of machines."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

import sonar
from matrix.answers.status import figures
from matrix.answers.status.figures import PLAN, QUEUES, TASKS, Life, Status, Work
from matrix.api.base import ApiView
from matrix.api.registry.rendering import as_json, moment
from matrix.api.schema.status import STATUS
from matrix.http.negotiation import asked_format
from matrix.http.permissions import sees
from matrix.query.forms import check_names
from sonar.models import Circuit, CredentialState, SignOfLife


class StatusView(ApiView):
    @STATUS
    def get(self, request: Request) -> HttpResponse:
        """What waits, fails and is sealed, and the results of the hour, are up to 10 seconds old,
        coverage 30.

        `data_version` changes with every change of the registry, the schedule and the results.
        """
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        status = figures.read(timezone.now())
        credentials = [of_credential(row, request) for row in status.work.credentials]
        answer = of_status(status, with_names=sees(request, "sonar.view_probe"))
        return as_json(answer | {"credentials": credentials})


def of_status(status: Status, *, with_names: bool) -> dict[str, Any]:
    life = status.life
    others = [name for name in TASKS if name != PLAN]
    workers = {queue: [sign.name for sign in life.workers(queue)] for queue in QUEUES}
    return {
        "sonar_version": sonar.__version__,
        "data_version": status.data_version.text,
        "time": moment(status.moment),
        "planner": of_sign(life, life.task(PLAN), life.is_late(life.task(PLAN))),
        "beat": of_sign(life, life.beat, life.is_late(life.beat)),
        "tasks": {name: of_sign(life, life.task(name), life.is_stuck(name)) for name in others},
        "workers": {
            queue: {"count": len(names)} | ({"names": names} if with_names else {})
            for queue, names in workers.items()
        },
        "probes": {
            "waiting": status.probes.waiting,
            "queued": status.probes.queued,
            "running": status.probes.running,
            "oldest_queued": moment(status.probes.oldest_queued),
            "in_flight_limit": settings.SONAR_IN_FLIGHT,
        },
        **of_work(status.work, status),
        "coverage": [
            {"size": row.size, "links": row.links, **row.states, "as_of": moment(row.as_of)}
            for row in status.coverage
        ],
    }


def of_sign(life: Life, sign: SignOfLife | None, late: bool) -> dict[str, Any]:
    return {
        "last": moment(sign.seen_at) if sign else None,
        "age_seconds": life.age(sign),
        "every_seconds": sign.every_seconds if sign else None,
        "late": late,
    }


def of_work(work: Work, status: Status) -> dict[str, Any]:
    return {
        "waiting": [
            {"reason": row.reason, "tests": row.tests, "since": moment(row.since)}
            for row in work.waiting
        ],
        "results_last_hour": work.results,
        "sealing": {
            "unsealed": work.unsealed,
            "dirty_since": moment(work.dirty_since),
            "dirty_seconds": status.dirty_seconds,
        },
        "circuits": [of_circuit(row) for row in work.circuits],
    }


def of_credential(row: CredentialState, request: Request) -> dict[str, Any]:
    """Tell since when one is in trouble; its name and why to who may see what uses it."""
    if row.endpoint:
        seen = sees(request, "sonar.view_endpoint", [row.endpoint.site_id])
    else:
        seen = sees(request, "sonar.view_mesh", [])
    named = {
        "credential": row.credential.name,
        "kind": row.credential.kind,
        "detail": row.sentence,
    }
    return {
        "endpoint": row.endpoint.name if row.endpoint else None,
        "site": row.endpoint.site.name if row.endpoint else None,
        "mesh": row.mesh.name if row.mesh else None,
        "role": row.role,
        "since": moment(row.since),
        "tests_wait": row.holds,
        "expires_at": moment(row.expires_at),
        **(named if seen else {}),
    }


def of_circuit(row: Circuit) -> dict[str, Any]:
    return {
        "endpoint": row.endpoint.name,
        "site": row.endpoint.site.name,
        "failures": row.failures,
        "since": moment(row.since),
        "last_at": moment(row.last_at),
        "next_test_at": moment(row.next_test_at),
        "error": row.error,
    }
