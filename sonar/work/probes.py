"""One probe's life: claim, prepare, move, verify, clean up, record; and recovery of lost ones."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import connection, connections, transaction
from django.utils import timezone

from sonar.credentials.redacted import without_tokens
from sonar.database.cursors import planned_cursor
from sonar.database.retry import DATABASE_AWAY, one_line, patiently, release_connection
from sonar.models import Probe, Schedule
from sonar.movers import loading, network
from sonar.movers.base import MoverError, Stopped, Where
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch, as_failures, within
from sonar.obstacles import credential_states, worker_movers
from sonar.obstacles.catalogue import CredentialFails
from sonar.registry import shared_rows
from sonar.registry.cache import VERSION
from sonar.results import concurrency, endings
from sonar.work import cleanup, refused_redirects, transfer_request
from sonar.work.running import running
from sonar.work.transfer_request import CredentialWait

log = logging.getLogger(__name__)

PROGRESS_EVERY_SECONDS = 1.0
# For the tokens of a test, up to three of which may have to be asked for.
TOKENS_SECONDS = 120.0
# As the ORM would write them, which takes ten times as long to do so as PostgreSQL to answer.
FIELDS = Probe._meta.concrete_fields
QUEUED = f"""
    SELECT {", ".join(str(field.column) for field in FIELDS)}, ({VERSION})
    FROM sonar_probe WHERE id = %(id)s AND state = 'queued' AND cancelled_by = ''
      AND NOT EXISTS (SELECT FROM sonar_alltests WHERE paused_since IS NOT NULL
                      AND (paused_until IS NULL OR paused_until > %(now)s))
"""  # noqa: S608 - of the model's columns
TAKE = """
    UPDATE sonar_probe SET state = 'running', runs = %s, started_at = %s, deadline = %s,
           worker = %s, progress_bytes = 0
    WHERE id = %s AND state = 'queued' AND runs = %s
"""
# Why a run may have left files behind.
OVERRUN = "the worker was stopped, and the test did not end in time"
UNREPORTED = "the worker did not report the end of the test"


def run(probe_id: UUID) -> None:
    """Run one queued probe to its end, if nobody else has it."""
    if running.stopping:
        return
    try:
        connection.ensure_connection()  # a test does not begin while it waits for one
        probe = claim(probe_id, timezone.now())
    except DATABASE_AWAY as error:  # it stays queued, and recovery sends it again
        reason = one_line(error)
        log.warning("test %s not started, as the database is unavailable: %s", probe_id, reason)
        release_connection()
        return
    if probe is None:
        return
    watch = Watch(_progress_writer(probe))
    with running.added(watch, probe):
        finish(probe, carry_out(probe, watch))


def claim(probe_id: UUID, now: datetime) -> Probe | None:
    """Take a queued probe for this process, or return None if it is not there to take.

    Nor is one that is of another vantage by now: recovery sends it there. While all tests are
    stopped none is taken.
    """
    with planned_cursor() as cursor:
        cursor.execute(QUEUED, {"id": probe_id, "now": now})
        row = cursor.fetchone()
    if row is None:
        return None
    *values, version = row
    probe = Probe.from_db(connection.alias, [field.attname for field in FIELDS], values)
    if not shared_rows.attach(probe, str(version)):
        return None
    if worker_movers.elsewhere(worker_movers.vantages_of(probe)[:1]):
        return None
    probe.state = Probe.State.RUNNING
    probe.started_at, probe.deadline = now, now + endings.longest_run(probe.size_class)
    probe.worker, probe.progress_bytes = socket.gethostname(), 0
    probe.runs += 1
    try:
        return probe if _take(probe) else None
    except DATABASE_AWAY:
        # It may be taken all the same: the commit was done and only the word of it was lost.
        patiently(partial(hand_back, probe), probe.deadline, f"test {probe.id}")
        raise


def _take(probe: Probe) -> bool:
    """Claim a probe, unless somebody else has; this run's files must have names of their own."""
    values = (probe.runs, probe.started_at, probe.deadline, probe.worker, probe.id, probe.runs - 1)
    with planned_cursor() as cursor:
        cursor.execute(TAKE, values)
        return bool(cursor.rowcount == 1)


def carry_out(probe: Probe, watch: Watch) -> Outcome:
    """Make the transfer that a claimed probe orders; no connection is held meanwhile."""
    began, of_network = time.monotonic(), probe.mover_description.of_network
    try:
        with within(watch, TOKENS_SECONDS), as_failures(f"test {probe.id}", watch):
            order = transfer_request.order_for(probe)
            mover = loading.load(probe.mover_description)
    except MoverError as error:
        return Outcome(None, error, None, time.monotonic() - began)
    finally:
        release_connection()
    return (network.measure if of_network else measure)(mover, order, watch)


def finish(probe: Probe, outcome: Outcome) -> None:
    """Record how a probe ended, as soon as the database takes it.

    A result that it can never take (a number without end, say) is recorded as a failure.
    """
    name = f"test {probe.id}"
    try:
        with as_failures(name):
            is_recorded = patiently(partial(record, probe, outcome), probe.deadline, name)
    except MoverError as error:
        left = outcome.leftover and error, outcome.left_aside and error
        outcome = Outcome(None, error, left[0], 0.0, left_aside=left[1])
        is_recorded = patiently(partial(record, probe, outcome), probe.deadline, name)
    if not is_recorded:
        how = without_tokens(str(outcome.error or "done"))
        log.error(
            "%s: no result recorded, as the database was unavailable; the result was: %s", name, how
        )


def record(probe: Probe, outcome: Outcome) -> None:
    """Record how a probe ended; one that was stopped goes back to the queue instead.

    Unless it was cancelled: then it ends.
    One whose credential does not work goes back to where it came from, and waits there.
    May be called again: the filtered delete of the probe's row decides who counts.
    """
    keep_leftovers(probe, outcome)
    error = outcome.error
    if error and error.refused_server and error.where in {Where.SOURCE, Where.DESTINATION}:
        led_on = probe.source if error.where is Where.SOURCE else probe.destination
        refused_redirects.note(led_on, error.refused_server, timezone.now())
    if isinstance(outcome.error, Stopped):
        if not endings.end_cancelled(probe, outcome):
            hand_back(probe)
    elif wait := transfer_request.awaited(probe, outcome.error):
        put_off(probe, wait)
    elif not endings.end_probe(probe, outcome):
        log.warning(
            "test %s is already recorded, by recovery or by an earlier attempt that received no "
            "response",
            probe.id,
        )


def keep_leftovers(probe: Probe, outcome: Outcome) -> None:
    """Remember what could not be deleted at the end of a run; `clean_up` tries later."""
    soon = timezone.now() + cleanup.FIRST_PAUSE
    reasons = outcome.leftover, outcome.left_aside
    jobs = outcome.seen.remote_id, ""
    cleanup.keep(
        cleanup.left_behind(place, probe.mover, str(why), soon, job)
        for place, why, job in zip(cleanup.places_of(probe), reasons, jobs, strict=False)
        if why
    )


@transaction.atomic
def hand_back(*stopped: Probe) -> list[Probe]:
    """Put probes that were stopped before their end back into the queue; recovery sends them.

    Returns those whose run had not ended, and was not taken back before. Three statements for any
    number of probes.
    """
    held = Probe.objects.select_for_update(no_key=True).order_by("id")
    held = held.filter(id__in=[probe.id for probe in stopped], state=Probe.State.RUNNING)
    began = dict(held.values_list("id", "started_at"))
    mine = [probe for probe in stopped if began.get(probe.id, "ended") == probe.started_at]
    Probe.objects.filter(id__in=[probe.id for probe in mine]).update(
        state=Probe.State.QUEUED, started_at=None, deadline=None, worker="", progress_bytes=0
    )
    concurrency.note(mine, timezone.now())
    return mine


@transaction.atomic
def put_off(probe: Probe, error: CredentialWait) -> None:
    """Let a probe wait until its credential works: nothing was measured, and nobody failed.

    What a mesh wants is due again, since when it was; what somebody ordered waits with the reason.
    """
    now = timezone.now()
    credential_states.record_failure(error.use, error.trouble, now)
    mine = Probe.objects.filter(id=probe.id, state="running", started_at=probe.started_at)
    if probe.schedule_id is None:
        mine.update(
            state=Probe.State.WAITING,
            waits_because=str(error),
            queued_at=None,
            started_at=None,
            deadline=None,
            worker="",
        )
    elif mine.delete()[0]:
        reason = {"skipped_because": CredentialFails.name, "skipped_since": now}
        Schedule.objects.filter(pk=probe.schedule_id).update(next_due=probe.requested_at, **reason)


@transaction.atomic
def abandon(jobs: Mapping[Probe, str], why: str) -> list[Probe]:
    """Hand back probes whose runs do not end, and remember what they may leave behind.

    ``jobs`` has the id of the job of a service that may write a probe's file, if there is one.
    Returns those that were handed back: their late ends count nothing. Their files are deleted
    later: a server notes a broken connection only after some seconds, and may create a file until
    then.
    """
    soon, handed = timezone.now() + cleanup.FIRST_PAUSE, hand_back(*jobs)
    cleanup.keep(
        cleanup.left_behind(place, probe.mover, why, soon, jobs[probe])
        for probe in handed
        for place in cleanup.places_of(probe)
    )
    return handed


def drop(probe: Probe) -> None:
    """Forget a probe that its owner stopped: nothing was measured and nobody failed."""
    Probe.objects.filter(id=probe.id).delete()


def _progress_writer(probe: Probe) -> Callable[[int], None]:
    """Return what notes progress on the probe's row, now and then, and never waits for it.

    The transfer's clock runs meanwhile: a slow database must not make a link look slow.
    """
    began, note = time.monotonic(), threading.Thread()

    def write(bytes_moved: int) -> None:
        nonlocal began, note
        if time.monotonic() - began < PROGRESS_EVERY_SECONDS or note.is_alive():
            return
        began = time.monotonic()
        note = threading.Thread(target=note_progress, args=(probe, bytes_moved), daemon=True)
        note.start()

    return write


def note_progress(probe: Probe, bytes_moved: int) -> None:
    """Write on a probe's row how far it is; if that fails only a progress bar stands still."""
    try:
        Probe.objects.filter(id=probe.id, started_at=probe.started_at).update(
            progress_bytes=bytes_moved
        )
    except DATABASE_AWAY as error:
        log.info("test %s: progress not recorded: %s", probe.id, one_line(error))
    finally:
        release_connection()


class Cancellations:
    """Ends tests that are cancelled while they run in this process: one query every few seconds."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._follow, name="cancellations", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _follow(self) -> None:
        while not running.stopping:
            time.sleep(settings.CANCEL_SECONDS)
            stop_cancelled()


def stop_cancelled() -> None:
    """Stop the tests of this process that were cancelled; each then deletes its file."""
    watches = {probe.id: watch for watch, probe in running.probes()}
    if not watches:
        return
    try:
        cancelled = Probe.objects.filter(id__in=list(watches)).exclude(cancelled_by="")
        for probe_id in cancelled.values_list("id", flat=True):
            log.info("test %s was cancelled and is being stopped", probe_id)
            watches[probe_id].stop()
    except DATABASE_AWAY as error:
        log.info("cancelled tests could not be looked up: %s", one_line(error))
    finally:
        release_connection()


class LastResort:
    """Ends a process that was told to stop and waits for what does not end."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=self._end, name="last resort", daemon=True)
        self._seconds = 0.0

    def begin(self, seconds: float) -> None:
        """Let this process end by itself for so many seconds. Only the first call counts."""
        if self._thread.ident is None:
            self._seconds = seconds
            self._thread.start()

    def _end(self) -> None:
        time.sleep(self._seconds)
        last_words = threading.Thread(target=self._hand_back_all, daemon=True)
        last_words.start()
        last_words.join(settings.LAST_WORDS_SECONDS)
        log.warning(
            "the worker exits with tests still running, %g s after it was asked to stop",
            self._seconds,
        )
        # Threads that wait for storage would keep the process for as long as storage likes.
        os._exit(0)

    def _hand_back_all(self) -> None:
        # Hundreds of tests that end may wait for the connections of the pool.
        own = connection.copy()
        own.settings_dict["OPTIONS"].pop("pool", None)
        connections[own.alias] = own
        hand_back_all()


def hand_back_all() -> None:
    """Hand back every probe that still runs in this process; clean-up deletes its files."""
    jobs = {probe: watch.seen.remote_id for watch, probe in running.probes()}
    try:
        handed = abandon(jobs, OVERRUN)
        log.warning("%d tests did not stop in time and were queued again", len(handed))
    except DATABASE_AWAY as error:
        log.warning("tests that did not stop in time were not queued again: %s", one_line(error))
    finally:
        release_connection()


def recover(now: datetime) -> list[UUID]:
    """End what died; return the queued probes to send again. Several processes may do so at once.

    No server is asked.
    """
    for probe in Probe.objects.select_related("destination", "source", "size_class").filter(
        state=Probe.State.RUNNING, deadline__lt=now
    ):
        if lose(probe, now):
            log.warning("test %s is lost: no report since %s", probe.id, probe.started_at)
    # Handed back by a worker that was told to stop before it could end them.
    Probe.objects.exclude(cancelled_by="").exclude(state=Probe.State.RUNNING).delete()
    # The message of these has been taken by nobody for a while: claim them for sending again.
    stale = Probe.objects.filter(
        state=Probe.State.QUEUED, sent_at__lt=now - timedelta(seconds=settings.SONAR_RESEND_SECONDS)
    )
    return [
        probe_id
        for probe_id in stale.values_list("id", flat=True)
        if stale.filter(id=probe_id).update(sent_at=now)
    ]


@transaction.atomic
def lose(probe: Probe, now: datetime) -> bool:
    """End a probe as lost and remember what it may have left; False if it ended meanwhile."""
    # A worker that hangs while it records holds the row: that must not hold up recovery.
    free = Probe.objects.select_for_update(skip_locked=True).filter(id=probe.id)
    if not list(free) or not endings.lose_probe(probe, now):
        return False
    places = cleanup.places_of(probe)
    cleanup.keep(cleanup.left_behind(place, probe.mover, UNREPORTED, now) for place in places)
    return True
