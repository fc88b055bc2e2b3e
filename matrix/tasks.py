"""Celery entry points of what reads much and keeps what it found. Beat knows them by name."""

import logging
from threading import Lock

from celery import shared_task
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from sonar.database import retry
from sonar.models import Subscription
from sonar.results import commissioning, conditions

log = logging.getLogger(__name__)
# A long past is judged in parts of this share of the interval: this process has other work, too.
SHARE_OF_INTERVAL = 0.75


@shared_task(throws=retry.DATABASE_AWAY)
def assess() -> None:
    """Judge new results, store the conditions that they show, and let incidents follow them.

    While another worker does so, do nothing.
    """
    from matrix.answers.incidents import words
    from matrix.assessment import assessing
    from sonar.alerting import incidents

    now = timezone.now()
    seconds = settings.SONAR_INCIDENTS_SECONDS * SHARE_OF_INTERVAL
    assessed = assessing.assess(now, wait=False, seconds=seconds)
    if assessed.days:
        conditions.forget(now, settings.SONAR_KEEP_DAYS)
    if assessed.days and not assessed.is_finished:
        log.info("assessed %d days; the next run continues with the rest", assessed.days)
    if assessed.recorded and any(assessed.recorded):
        log.info("conditions: %d new, %d changed, %d gone", *assessed.recorded)
    if assessed.is_finished:
        for event in incidents.follow(now):
            title = words.title(event.incident)
            log.info("incident %s %s: %s", event.incident_id, event.type, title)


@shared_task(throws=retry.DATABASE_AWAY)
def judge_links() -> None:
    """Judge the links of criteria sets by the hours and the results that are new."""
    from matrix.answers.commissioning.search import search_all as judge_all

    for outcome in judge_all(timezone.now()):
        if outcome.stored and outcome.stored != commissioning.NOTHING:
            log.info(
                "criteria set %s: %d records new, %d changed, %d gone",
                outcome.name,
                *outcome.stored,
            )


# One of each in a process: who does not answer holds up no plan, whose threads these are.
sending_now, reporting_now = Lock(), Lock()


def begins(lock: Lock, rows: QuerySet[Subscription]) -> bool:
    """Say whether there are subscriptions, and nobody here sends to them: the lock is held then."""
    return rows.exists() and lock.acquire(blocking=False)


@shared_task(throws=retry.DATABASE_AWAY)
def notify() -> None:
    """Send what waits in the outbox; while that goes on here, another message does nothing."""
    # Where nobody subscribes, nothing is loaded.
    if not begins(sending_now, Subscription.objects.filter(report="")):
        return
    try:
        # Loaded when used: it takes HTTP along.
        from matrix.answers.incidents.messages import IncidentWords
        from sonar.alerting import sending

        sending.send_due(IncidentWords(), timezone.now, settings.SONAR_NOTIFY_SECONDS / 2)
    finally:
        sending_now.release()


@shared_task(throws=retry.DATABASE_AWAY)
def send_reports() -> None:
    """Send the reports that are due; while that goes on here, another message does nothing."""
    # Where nobody has ordered any, nothing is loaded.
    if not begins(reporting_now, Subscription.objects.exclude(report="")):
        return
    try:
        # Loaded when used, and numpy with it.
        from matrix.answers.report import schedule
        from matrix.answers.report.messages import ReportWords
        from matrix.plots.report.mail import ReportMail
        from sonar.alerting import sending

        now = timezone.now()
        schedule.queue_newest(now)
        words, seconds = ReportWords(ReportMail.of), settings.SONAR_NOTIFY_SECONDS / 2
        sending.send_due(words, timezone.now, seconds, at_once=1, among=sending.REPORTS)
    finally:
        reporting_now.release()
