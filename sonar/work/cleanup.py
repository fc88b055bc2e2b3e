"""Files of ours at endpoints that nobody deleted: remembered, and deleted by the task `clean_up`.

An endpoint is worked on by one cleaner at a time. After a failure everything that lies there
waits; then one file is tried, and the others follow only if that one goes.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min, Q, QuerySet
from django.utils import timezone

from sonar.database.retry import release_connection
from sonar.models import Endpoint, Leftover, Probe
from sonar.movers import loading
from sonar.movers.base import CLEANING_LIMITS, MoverError, Order, Service, Where, part_of
from sonar.movers.catalogue import MoverDescription, kept
from sonar.movers.mover import AsksService
from sonar.movers.watch import Watch, as_failures, within
from sonar.obstacles import worker_movers
from sonar.registry import mesh_services, redacted
from sonar.work.running import running
from sonar.work.transfer_request import end_at, incoming_path, service_of, source_path

# A pause begins with the claim of a file, so that it is the lease as well: it must be longer
# than a deletion may take.
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)
# Endpoints that one run works on at once: those that do not answer cost 10 s each.
CLEANERS = 8
# What services were asked for ends by itself by then: one that has gone for good holds up no more.
LONGEST_JOB = timedelta(days=1)
# Then it is the turn of the next endpoint.
FILES_IN_TURN = 50

Place = tuple[Endpoint, str]
PassOn = Callable[[Iterable[str]], None]


def places_of(probe: Probe) -> list[Place]:
    """Return where this run may leave a file: at the destination, and half uploaded; or none."""
    if probe.mover_description.of_network:
        return []
    part = part_of(source_path(probe), incoming_path(probe))
    return [(probe.destination, incoming_path(probe)), (probe.source, part)]


def left_behind(
    place: Place, mover: str, why: str, next_try: datetime, remote_id: str = ""
) -> Leftover:
    """Return the row by which `clean_up` knows a file, for `keep`.

    ``remote_id`` is the job of a service that may write it.
    """
    endpoint, path = place
    facts = {"error": why, "since": timezone.now(), "next_try": next_try, "tries": 0}
    return Leftover(endpoint=endpoint, path=path, mover=mover, remote_id=remote_id, **facts)


def keep(rows: Iterable[Leftover]) -> None:
    """Remember files for `clean_up`; those that are known already stay as they are but for a job.

    No server is asked. Two statements for any number of files.
    """
    with_job, without = list[Leftover](), list[Leftover]()
    for_operators = cache(redacted.for_operators)  # it asks the registry, and reasons repeat
    for row in rows:
        # Operators alone read it: it may say where servers are.
        row.error = for_operators(row.error)
        (with_job if row.remote_id else without).append(row)
    Leftover.objects.bulk_create(without, ignore_conflicts=True)
    place = ["endpoint", "path"]
    Leftover.objects.bulk_create(
        with_job, update_conflicts=True, unique_fields=place, update_fields=["remote_id"]
    )


def clean(seconds: float, pass_on: PassOn = lambda vantages: None) -> None:
    """Delete what is due at every endpoint; no file is begun after so many seconds.

    What is due at other vantages is for their workers: ``pass_on`` is told which these are.
    """
    until = time.monotonic() + seconds
    due = due_by_vantage(timezone.now())
    pass_on(due)
    endpoints = due.get(settings.SONAR_VANTAGE, [])
    release_connection()
    with ThreadPoolExecutor(CLEANERS, thread_name_prefix="cleaner") as cleaners:
        list(cleaners.map(partial(clean_endpoint, until=until), endpoints))


def due_by_vantage(now: datetime) -> dict[str, list[int]]:
    """Return where a file is due and no pause holds, by vantage, those that answer first."""
    due = (
        cleanable()
        .order_by()
        .values("endpoint_id", "endpoint__vantage")
        .annotate(
            failures=Max("tries"), due=Min("next_try"), pause=Max("next_try", filter=Q(tries__gt=0))
        )
        .filter(Q(pause__isnull=True) | Q(pause__lte=now), due__lte=now)
    )
    by_vantage: dict[str, list[int]] = {}
    for row in due.order_by("failures", "due", "endpoint_id"):
        by_vantage.setdefault(row["endpoint__vantage"], []).append(row["endpoint_id"])
    return by_vantage


def cleanable() -> QuerySet[Leftover]:
    """Return the files of movers that can run here: others are left to who has their tools.

    And those of other vantages, whose workers know what they have.
    """
    here = {"endpoint__vantage": settings.SONAR_VANTAGE}
    return Leftover.objects.exclude(mover__in=worker_movers.lacking_here(), **here)


def clean_endpoint(endpoint_id: int, until: float) -> None:
    """Delete file after file of one endpoint until one fails or it is the next one's turn."""
    try:
        for _ in range(FILES_IN_TURN):
            if running.stopping or time.monotonic() >= until:
                return
            leftover = claim(endpoint_id, timezone.now())
            if leftover is None:
                return
            if why := delete(leftover):
                error = redacted.for_operators(str(why))
                changes: dict[str, object] = {"error": error, "remote_id": leftover.remote_id}
                if why.where == Where.CONTROL:  # no server was asked: to try soon bothers nobody
                    changes["next_try"] = timezone.now() + FIRST_PAUSE
                Leftover.objects.filter(pk=leftover.pk).update(**changes)
                return
            Leftover.objects.filter(pk=leftover.pk).delete()
            if leftover.tries > 1:
                Leftover.objects.filter(endpoint_id=leftover.endpoint_id).update(tries=0)
    finally:
        release_connection()


@transaction.atomic
def claim(endpoint_id: int, now: datetime) -> Leftover | None:
    """Take the file of an endpoint that has been due for longest, if nobody works there.

    It counts as failed from now on, and everything at its endpoint waits: for as long as
    somebody works on it, and if he dies.
    """
    row = Endpoint.objects.select_for_update(skip_locked=True, no_key=True).filter(id=endpoint_id)
    if not list(row):
        return None  # somebody else is about to claim
    rows = Leftover.objects.filter(endpoint_id=endpoint_id)
    if rows.filter(tries__gt=0, next_try__gt=now).exists():
        return None
    due = cleanable().filter(endpoint_id=endpoint_id, next_try__lte=now).order_by("next_try", "id")
    leftover = due.select_related("endpoint__credential", "endpoint__credential_lent").first()
    if leftover is None:
        return None
    failures = rows.aggregate(most=Max("tries"))["most"] + 1
    leftover.tries, leftover.next_try = failures, now + pause_after(failures)
    # Whoever had claimed it before may have deleted it this moment, later than its pause.
    mine = rows.filter(pk=leftover.pk).update(tries=failures, next_try=leftover.next_try)
    return leftover if mine else None


def pause_after(failures: int) -> timedelta:
    """Return how long an endpoint is left alone after so many failures in a row."""
    doublings = min(failures - 1, 10)
    return min(FIRST_PAUSE * (1 << doublings), LONGEST_PAUSE)


def delete(leftover: Leftover) -> MoverError | None:
    """Delete a file of ours; return why not, if it could not be done within CLEANING_LIMITS.

    Not done either is what was left less than LONGEST_JOB ago and may come again.
    """
    endpoint, path, mover = leftover.endpoint, leftover.path, kept(leftover.mover)
    release_connection()
    try:
        # Of the endpoint, as far as is known: its pauses grow, and others are cleaned meanwhile.
        with as_failures(f"deleting {path} at {endpoint}", where=Where.DESTINATION):
            end = end_at(Where.DESTINATION, endpoint, path, mover)
            bundle, limits = settings.SONAR_CA_BUNDLE, CLEANING_LIMITS
            order = Order(end, end, bytes=1, ca_bundle=bundle, limits=limits)
            may_return = withdraw(order, mover, leftover)
            loading.load(mover).files.delete(end, order)
    except MoverError as error:
        return error
    return None if timezone.now() - leftover.since > LONGEST_JOB else may_return


def withdraw(order: Order, mover: MoverDescription, leftover: Leftover) -> MoverError | None:
    """Cancel what services of a mover were asked for a file, or they would write it again.

    All that meshes name are asked, each whatever became of the others: the test that asked is gone.
    Returns why the file may come again; a job that goes on although it is cancelled is noted.
    """
    carrier = loading.load(mover)
    if not isinstance(carrier, AsksService):
        return None
    registered, failure = list[Service](), None
    for mesh in mesh_services.naming(mover.name):
        try:
            registered.append(service_of(mesh, mover))
        except MoverError as error:
            failure = error
    release_connection()
    until = time.monotonic() + order.limits.total
    for place, service in enumerate(registered):
        share = (until - time.monotonic()) / (len(registered) - place)
        try:
            with within(Watch(), share):
                going_on = carrier.withdraw(replace(order, service=service), leftover.remote_id)
        except MoverError as error:
            failure = failure or error
            continue
        if going_on:
            leftover.remote_id = going_on
            message = f"job {going_on} was cancelled, but its service may still write the file"
            failure = MoverError(Where.CONTROL, message)
    return failure
