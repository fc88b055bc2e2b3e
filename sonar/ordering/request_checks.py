"""The door by which people and scripts order a check of an endpoint; a worker carries it out."""

from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction

from sonar.models import Endpoint, EndpointCheck
from sonar.scheduler.dispatch import send_check

EVERY = timedelta(minutes=1)
"""One endpoint is not checked more often."""
LONGEST = timedelta(minutes=10)
"""A check that has not ended by then never will: its worker is dead."""


class CheckRefusedError(Exception):
    """A check that is not made now; the sentence says why."""


def order(endpoint: Endpoint, user: User, now: datetime) -> EndpointCheck:
    """Keep that a check is wanted in place of the last one, and let a worker begin it.

    Raises CheckRefusedError.
    """
    check = begin(endpoint, user, now)
    transaction.on_commit(partial(send_check, check.run, endpoint.vantage))
    return check


@transaction.atomic
def begin(
    endpoint: Endpoint, user: User | None, now: datetime, *, here: bool = False
) -> EndpointCheck:
    """Make the row of a new check; with ``here`` this process has begun it. Three SQL queries."""
    rows = Endpoint.objects.select_for_update(of=("self",), no_key=True)
    row = rows.select_related("credential").get(pk=endpoint.pk)
    before = EndpointCheck.objects.filter(endpoint=row).first()
    if sentence := refusal(row, before, now):
        raise CheckRefusedError(sentence)
    check, _ = EndpointCheck.objects.update_or_create(
        endpoint=row,
        defaults={
            "run": uuid4(),
            "requested_at": now,
            "requested_by": user,
            "started_at": now if here else None,
            "ended_at": None,
            "steps": [],
            "checked": depends_on(row),
        },
    )
    return check


def depends_on(endpoint: Endpoint) -> dict[str, str]:
    """Return a digest of each thing that a check of an endpoint depends on, by its name on pages.

    No digest shows a host or a port to those who may see the check alone.
    """
    credential = endpoint.credential
    uploaded = credential.uploaded_at if credential else None
    values = {
        "base URL": endpoint.base_url,
        "credential": f"{credential.name} {uploaded or ''}".strip() if credential else "",
        "data hosts": " ".join(endpoint.data_hosts),
        "vantage": endpoint.vantage,
    }
    return {name: sha256(value.encode()).hexdigest() for name, value in values.items()}


def changed_since(check: EndpointCheck) -> list[str]:
    """Name what of its endpoint was changed since a check was ordered that it depends on."""
    return [
        name
        for name, value in depends_on(check.endpoint).items()
        if check.checked.get(name, value) != value
    ]


def refusal(endpoint: Endpoint, before: EndpointCheck | None, now: datetime) -> str:
    """Say why an endpoint is not checked now; empty if it may be."""
    if endpoint.retired_at:
        return f"{endpoint.name} is retired: it cannot be checked until it is in use again."
    if before is None:
        return ""
    if is_running(before, now):
        return f"A check of {endpoint.name} is running: wait until it has ended."
    left = (before.requested_at + EVERY - now).total_seconds()
    if left > 0:
        return (
            f"{endpoint.name} was checked less than a minute ago: it can be checked again in "
            f"{left:.0f} s."
        )
    return ""


def is_running(check: EndpointCheck, now: datetime) -> bool:
    """Say whether a worker is at it; not if it has been for longer than any check takes."""
    if check.started_at is None or check.ended_at:
        return False
    return now - check.started_at < LONGEST
