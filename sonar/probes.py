"""One probe's life: claim, prepare, move, verify, clean up, record; and the sweep for the lost."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from sonar import movers, results
from sonar.models import Endpoint, Leftover, Probe
from sonar.movers.base import End, Limits, MoverError, Order, Stopped, Watch, Where, part_of
from sonar.movers.content import adler32
from sonar.movers.measure import Outcome, measure

log = logging.getLogger(__name__)

# Beyond twice its time limit (once to prepare, once to move) a probe's worker has died.
DEADLINE_MARGIN = timedelta(seconds=60)
PROGRESS_EVERY_SECONDS = 1.0
LEFTOVERS_PER_SWEEP = 20
LEFTOVER_FIRST_WAIT = timedelta(minutes=1)
LEFTOVER_LONGEST_WAIT = timedelta(hours=6)


class Running:
    """The transfers that run in this process, so that its end can stop them."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()
        self.stopping = False

    def add(self, watch: Watch) -> None:
        with self._lock:
            self._watches.add(watch)
            stopping = self.stopping
        if stopping:
            watch.stop()

    def remove(self, watch: Watch) -> None:
        with self._lock:
            self._watches.discard(watch)

    def stop_all(self) -> None:
        with self._lock:
            self.stopping = True
            watches = list(self._watches)
        for watch in watches:
            watch.stop()


running = Running()


def run(probe_id: UUID) -> None:
    """Run one queued probe to its end, if nobody else has it."""
    if running.stopping:
        return
    probe = claim(probe_id, timezone.now())
    if probe is None:
        return
    watch = Watch(_progress_writer(probe))
    running.add(watch)
    try:
        outcome = carry_out(probe, watch)
    finally:
        running.remove(watch)
    finish(probe, outcome)


def claim(probe_id: UUID, now: datetime) -> Probe | None:
    """Take a queued probe for this process, or return None if it is not there to take."""
    probe = (
        Probe.objects.select_related("source", "destination", "size_class")
        .filter(id=probe_id, state=Probe.State.QUEUED)
        .first()
    )
    if probe is None:
        return None
    limit = timedelta(seconds=probe.size_class.timeout_seconds)
    probe.state = Probe.State.RUNNING
    probe.started_at, probe.deadline = now, now + 2 * limit + DEADLINE_MARGIN
    probe.worker, probe.progress_bytes = socket.gethostname(), 0
    taken = Probe.objects.filter(id=probe_id, state=Probe.State.QUEUED).update(
        state=probe.state,
        started_at=probe.started_at,
        deadline=probe.deadline,
        worker=probe.worker,
        progress_bytes=0,
    )
    return probe if taken else None


def carry_out(probe: Probe, watch: Watch) -> Outcome:
    """Make the transfer that a claimed probe orders; no connection is held meanwhile."""
    release_connection()
    began = time.monotonic()
    try:
        order = order_for(probe)
    except MoverError as error:
        return Outcome(None, error, None, time.monotonic() - began)
    return measure(movers.get(probe.mover), order, watch)


def release_connection() -> None:
    """Give this thread's connection back, unless a transaction of the caller needs it."""
    if not connection.in_atomic_block:
        connection.close()


def finish(probe: Probe, outcome: Outcome) -> None:
    """Record how a probe ended; one that was stopped goes back to the queue instead."""
    if outcome.leftover:
        keep_leftover(probe.destination, incoming_path(probe), probe.mover, outcome.leftover)
    if isinstance(outcome.error, Stopped):
        hand_back(probe)
    elif not results.end_probe(probe, outcome):
        log.warning("probe %s was ended by somebody else while it ran", probe.id)


def hand_back(probe: Probe) -> None:
    """Put a probe that was stopped before its end back into the queue; the sweep sends it."""
    Probe.objects.filter(id=probe.id, state="running", started_at=probe.started_at).update(
        state=Probe.State.QUEUED, started_at=None, deadline=None, worker="", progress_bytes=0
    )


def drop(probe: Probe) -> None:
    """Forget a probe that its owner stopped: nothing was measured and nobody failed."""
    Probe.objects.filter(id=probe.id).delete()


def order_for(probe: Probe) -> Order:
    """Say to the mover what this probe wants; raises MoverError without a credential."""
    return Order(
        source=end_at(Where.SOURCE, probe.source, source_path(probe)),
        destination=end_at(Where.DESTINATION, probe.destination, incoming_path(probe)),
        bytes=probe.bytes,
        adler32=adler32(probe.bytes),
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        mode=probe.mode,
        ca_bundle=settings.SONAR_CA_BUNDLE,
        limits=Limits(total=probe.size_class.timeout_seconds),
    )


def source_path(probe: Probe) -> str:
    """Name the source file, which the tests of one size share."""
    return f"sonar/source/{probe.bytes}"


def incoming_path(probe: Probe) -> str:
    """Name the destination file of a probe: nobody else's, so it may always be deleted."""
    return f"sonar/incoming/{probe.id}"


def end_at(where: Where, endpoint: Endpoint, path: str) -> End:
    base_url = endpoint.base_url.rstrip("/")
    return End(where, f"{base_url}/{path}", base_url, token_of(endpoint))


def token_of(endpoint: Endpoint) -> str:
    """Read the bearer token of an endpoint, each time anew: tokens are renewed in place."""
    if not endpoint.credential:
        return ""
    path = settings.SONAR_CREDENTIALS_DIR / endpoint.credential
    try:
        return str(path.read_text().strip())
    except OSError as error:
        raise MoverError(
            Where.CONTROL,
            f"the credential {endpoint.credential!r} of {endpoint.name} cannot be read "
            f"from SONAR_CREDENTIALS_DIR: {error.strerror}",
            permanent=True,
        ) from error


def _progress_writer(probe: Probe) -> Callable[[int], None]:
    """Return what notes progress on the probe's row, now and then."""
    written = time.monotonic()

    def write(bytes_moved: int) -> None:
        nonlocal written
        if time.monotonic() - written < PROGRESS_EVERY_SECONDS:
            return
        written = time.monotonic()
        Probe.objects.filter(id=probe.id, started_at=probe.started_at).update(
            progress_bytes=bytes_moved
        )
        release_connection()

    return write


def sweep(now: datetime) -> list[UUID]:
    """End what died, clean up what stayed behind; return the queued probes to send again."""
    for probe in Probe.objects.select_related("destination", "source", "size_class").filter(
        state=Probe.State.RUNNING, deadline__lt=now
    ):
        clean_up_after(probe)
        results.lose_probe(probe, now)
        log.warning("probe %s is lost: nothing heard of it since %s", probe.id, probe.started_at)
    _sweep_leftovers(now)
    return _stale_queued(now)


def clean_up_after(probe: Probe) -> None:
    """Delete what the worker of a probe may have left: at the destination, and half uploaded."""
    incoming = incoming_path(probe)
    part = part_of(source_path(probe), incoming)
    for endpoint, path in ((probe.destination, incoming), (probe.source, part)):
        if why := delete(endpoint, path, probe.mover):
            keep_leftover(endpoint, path, probe.mover, why)


def delete(endpoint: Endpoint, path: str, mover: str) -> MoverError | None:
    """Delete a file of ours; return why not, if it could not be done."""
    release_connection()
    try:
        end = end_at(Where.DESTINATION, endpoint, path)
        order = Order(end, end, bytes=1, ca_bundle=settings.SONAR_CA_BUNDLE)
        movers.get(mover).files.delete(end, order)
    except MoverError as error:
        return error
    return None


def keep_leftover(endpoint: Endpoint, path: str, mover: str, why: MoverError) -> None:
    """Remember a file that could not be deleted, for the sweep."""
    now = timezone.now()
    facts = {"mover": mover, "next_try": now + LEFTOVER_FIRST_WAIT, "error": str(why)}
    Leftover.objects.update_or_create(
        endpoint=endpoint, path=path, defaults=facts, create_defaults=facts | {"since": now}
    )


def _sweep_leftovers(now: datetime) -> None:
    due = Leftover.objects.select_related("endpoint").filter(next_try__lte=now)
    for leftover in due.order_by("next_try")[:LEFTOVERS_PER_SWEEP]:
        why = delete(leftover.endpoint, leftover.path, leftover.mover)
        if why is None:
            leftover.delete()
            continue
        wait = min(LEFTOVER_FIRST_WAIT * 2**leftover.tries, LEFTOVER_LONGEST_WAIT)
        Leftover.objects.filter(pk=leftover.pk).update(
            tries=leftover.tries + 1, next_try=now + wait, error=str(why)
        )


def _stale_queued(now: datetime) -> list[UUID]:
    """Claim for sending again the probes whose message nobody has taken for a while."""
    stale = Probe.objects.filter(
        state=Probe.State.QUEUED, sent_at__lt=now - timedelta(seconds=settings.SONAR_RESEND_SECONDS)
    )
    return [
        probe_id
        for probe_id in stale.values_list("id", flat=True)
        if stale.filter(id=probe_id).update(sent_at=now)
    ]
