"""Calls of the registry in tests: who calls, and a valid body for each kind."""

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from sonar.models import Site
from sonar.people import roles
from sonar.people.roles import Role
from tests.matrix import responses

JSON = "application/json"
START, END = "2026-11-20T08:00:00Z", "2026-11-20T14:00:00Z"

# Of the small world: what makes a row, and what changes it.
BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sites": (
        {"name": "Lancaster", "cloud": "UK", "wan_gbit_s": 10},
        {"quiet_hours": "23:00-05:30"},
    ),
    "endpoints": (
        {"name": "RAL_TAPE", "site": "RAL", "base_url": "davs://tape.example.org/data"},
        {"inbound_cap": 4, "label": "TAPE"},
    ),
    "size-classes": (
        {"name": "huge", "from_bytes": 10**10, "test_bytes": 2 * 10**10},
        {"timeout_seconds": 60},
    ),
    "meshes": (
        {"name": "uk", "sources": ["RAL_DATADISK"], "every": {"small": "1h", "large": 86400}},
        {"every": {"large": "6h"}, "quiet_hours": "23:00-05:30"},
    ),
    "criteria-sets": (
        {"name": "weekly", "size": "large", "period_hours": 168, "least_tests": 28}
        | {"least_mb_s": 125, "sources": {"cloud": ["UK"]}},
        {"least_success_percent": 90.5, "least_bytes": 10**13},
    ),
    "targets": (
        {"name": "uk-fast", "site": "RAL", "sources": {"cloud": ["UK"]}, "floor_mb_s": 20.0},
        {"floor_mb_s": 15.5, "below": 0.5, "failures": 4},
    ),
    "downtimes": (
        {"site": "RAL", "starts_at": START, "ends_at": END, "reason": "new switch"},
        {"ends_at": "2026-11-20T15:00:00Z"},
    ),
    "aliases": (
        {"kind": "rse", "name": "RAL-ECHO_DATADISK", "endpoint": "RAL_DATADISK"},
        {"name": "RAL-ECHO_SCRATCHDISK"},
    ),
    "subscriptions": (
        {
            "name": "night shift",
            "channel": "webhook",
            "settings": {"url": "https://hooks.example.org/x", "key": "k" * 16},
        },
        {"incident_types": ["failing"], "quiet_hours": "22:00-06:00"},
    ),
    "annotations": (
        {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "text": "over the backup"},
        {"public": True},
    ),
}
PLURALS = list(BODIES)


def caller(role: Role, *sites: str, name: str = "") -> Client:
    """Return a client that is logged in as an account of this role."""
    user = User.objects.create_user(name or f"{role}-{'-'.join(sites)}")
    roles.give(user, role, Site.objects.filter(name__in=sites))
    client = Client()
    client.force_login(user)
    return client


def get(client: Client, path: str) -> dict[str, Any]:
    return responses.answer(client, f"/api/v1/{path}")


def post(client: Client, path: str, body: object) -> HttpResponse:
    return client.post(f"/api/v1/{path}", body, content_type=JSON)


def patch(client: Client, path: str, body: object) -> HttpResponse:
    return client.patch(f"/api/v1/{path}", body, content_type=JSON)


def made(client: Client, plural: str, **changed: object) -> dict[str, Any]:
    """Make a row and return its record."""
    response = post(client, f"{plural}/", BODIES[plural][0] | changed)
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return found


def address(plural: str, record: dict[str, Any]) -> str:
    return f"{plural}/{record.get('id') or record['name']}/"
