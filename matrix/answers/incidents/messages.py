"""What a message says of incidents, for somebody who has just been woken; plain text and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import uuid5

from django.db.models import Q, QuerySet
from django.template.loader import render_to_string

from matrix.answers.incidents import words
from matrix.answers.incidents.evidence import failures_of
from matrix.answers.words.phrases import WHERE, counted, shortened
from matrix.query.addresses import outside
from matrix.store import incidents
from matrix.store.transfers import SimilarFailures
from sonar.alerting import subscriptions
from sonar.alerting.channels.base import MOST_LINKS, Matter, Message, Occurrence
from sonar.alerting.outbox import ENDS
from sonar.alerting.subjects import sites_of
from sonar.alerting.subscriptions import Subscribed
from sonar.models import Incident, IncidentEvent, Notification, Subscription
from sonar.notation.windows import format_typed

Kind = IncidentEvent.Kind
MOST_IN_DIGEST = 50
# Links of an incident, of which those with the first names are listed.
MOST_READ = 1000


class IncidentWords:
    """Finds the words of what is sent (`sonar.alerting.sending.Words`)."""

    def message(
        self, row: Subscription, delivered: Sequence[Notification], now: datetime
    ) -> Message:
        first = delivered[0]
        if first.kind == Notification.Kind.TEST:
            return plain(row, first, now, "This is a test", *test_lines(row))
        if first.kind == Notification.Kind.CONFIRMATION:
            return confirmation(row, first, now)
        return about_incidents(row, delivered, now)

    def matters(self, subscribed: Subscribed, since: datetime, now: datetime) -> list[Matter]:
        """Return the open incidents that concern a subscription, and those closed since then."""
        rows = of_incidents(Q(closed_at=None) | Q(closed_at__gt=since))
        mine = [row for row in rows if subscribed.concerns(row, sites_of(row))]
        worse_since = still_called(row for row in mine if row.is_muted(now))
        return [matter(row) for row in mine if not row.is_muted(now) or row.pk in worse_since]


def of_incidents(condition: Q) -> QuerySet[Incident]:
    return incidents.rows().filter(condition).order_by("-opened_at", "-id")


def still_called(muted: Iterable[Incident]) -> set[int]:
    """Return those of the muted incidents that have got worse since they were muted."""
    last: dict[int, str] = {}
    kinds = (Kind.MUTED, Kind.WORSE)
    rows = IncidentEvent.objects.filter(incident__in=list(muted), kind__in=kinds).order_by("id")
    for incident, kind in rows.values_list("incident_id", "kind"):
        last[incident] = kind
    return {incident for incident, kind in last.items() if kind == Kind.WORSE}


def matter(
    row: Incident, members: Sequence[str] = (), failures: Sequence[SimilarFailures] = ()
) -> Matter:
    """Return an incident as it is told, with the links and the errors that are named."""
    condition = words.condition_of(row)
    newest = max(failures, key=lambda group: group.last, default=None)
    return Matter(
        id=row.pk,
        title=words.title(row),
        sentence=words.sentence(row),
        condition=row.condition,
        level=row.level,
        source=str(row.source or ""),
        destination=str(row.destination or ""),
        site=site_name(row),
        began_at=row.began_at,
        since_low=condition.since_low,
        since_high=condition.since_high,
        closed_at=row.closed_at,
        factor=row.factor,
        links=row.links,
        of_links=row.of_links,
        tests=vars(row).get("tests"),
        failed=vars(row).get("failed"),
        url=outside("incident", row.pk),
        who=who(row),
        check=words.advice(row),
        members=tuple(members),
        more=max(row.links - len(members), 0) if members else 0,
        error=error_words(newest) if newest else "",
        error_where=newest.where if newest and newest.where in ("source", "destination") else "",
    )


def site_name(row: Incident) -> str:
    """Name the site of whatever it is of; a link has two, and the grid has none."""
    end = row.source or row.destination
    if row.level == Incident.Level.LINK or not (row.site or end):
        return ""
    return str(row.site or end.site)


def who(row: Incident) -> str:
    """Say who is on it."""
    if row.assignee:
        return f"{row.assignee.get_username()} works on it"
    if row.acknowledged_by and row.acknowledged_at:
        at = format_typed(row.acknowledged_at)
        return f"{row.acknowledged_by.get_username()} has seen it, {at}"
    return "nobody yet"


def error_words(group: SimilarFailures) -> str:
    """Say where and with what a test failed last."""
    return f"{WHERE.get(group.where, '')}: {shortened(group.example.error)}".removeprefix(": ")


def about_one(row: Incident, now: datetime) -> Matter:
    """Return an incident with its links and the errors of their tests."""
    links, _ = incidents.members(row, MOST_READ)
    names = sorted({f"{link.source} → {link.destination}" for link in links})
    return matter(row, names[:MOST_LINKS], failures_of(row, links, now))


def about_incidents(row: Subscription, delivered: Sequence[Notification], now: datetime) -> Message:
    """Say what happened to the incidents of these rows; of what was missed the newest."""
    missed = sum(each.missed for each in delivered)
    rows = [*delivered, *missed_by(row, delivered)] if missed else list(delivered)
    ids = {each.incident_id for each in rows} - {None}
    concerned = list(of_incidents(Q(pk__in=ids))[:MOST_IN_DIGEST])
    alone = len(concerned) == 1
    matters = [about_one(each, now) if alone else matter(each) for each in concerned]
    numbers = sorted({number for each in rows for number in each.events})
    events = [
        Occurrence(event.pk, event.kind, event.at, event.incident_id)
        for event in IncidentEvent.objects.filter(pk__in=numbers)
    ]
    kinds = [event.kind for event in events]
    subject = subject_of(matters[0], kinds) if alone and not missed else digest_subject(matters)
    begins = [f"{counted(missed, 'message')} could not be sent to you before."] if missed else []
    context = {
        "subject": subject, "begins": begins, "matters": matters, "alone": alone,
        "left_out": len(ids) - len(matters), "events": [event_words(each) for each in events],
        "name": row.name, "page": outside("subscriptions"),
    }  # fmt: skip
    key = "-".join(map(str, [*numbers, *(each.pk for each in delivered if each.missed), missed]))
    return Message(
        id=str(uuid5(row.key, key)),
        at=now,
        kind="incident" if alone and not missed else "digest",
        subject=subject,
        text=render_to_string("mail/message.txt", context),
        html=render_to_string("mail/message.html", context),
        matters=matters,
        events=events,
    )


def missed_by(row: Subscription, delivered: Sequence[Notification]) -> list[Notification]:
    """Return the newest of what could not be sent since it was first noted that there is any."""
    since = min(each.created_at for each in delivered if each.missed)
    failed = row.notifications.filter(state=Notification.State.FAILED, ended_at__gte=since)
    return list(failed.filter(incident__isnull=False).order_by("-id")[:MOST_IN_DIGEST])


def subject_of(incident: Matter, kinds: Sequence[str]) -> str:
    """Begin the title with what is new of it."""
    if kinds and kinds[-1] in ENDS:
        beginning = "Over: "
    elif Kind.WORSE in kinds:
        beginning = "Worse: "
    elif Kind.REOPENED in kinds:
        beginning = "Again: "
    else:
        beginning = ""
    return f"{beginning}{incident.title}"


def digest_subject(matters: Sequence[Matter]) -> str:
    still = sum(each.closed_at is None for each in matters)
    return f"{counted(len(matters), 'incident')}, {still or 'none'} of them open"


def event_words(event: Occurrence) -> str:
    kind = Kind(event.kind)
    said = {Kind.CAUSE: "turned out to be wider", Kind.WORSE: "got worse", Kind.CLOSED: "over"}
    return f"{format_typed(event.at)}: {said.get(kind, kind.label.lower())}"


def plain(
    row: Subscription, cause: Notification, now: datetime, subject: str, *lines: str, link: str = ""
) -> Message:
    """Return a message that is of no incident; ``link`` is its only one."""
    context = {"subject": subject, "begins": lines, "name": row.name, "link": link}
    context["page"] = outside("subscriptions")
    return Message(
        id=str(uuid5(row.key, f"{cause.kind}-{cause.pk}")),
        at=now,
        kind=cause.kind,
        subject=subject,
        text=render_to_string("mail/message.txt", context),
        html=render_to_string("mail/message.html", context),
    )


def test_lines(row: Subscription) -> list[str]:
    return [
        f"Somebody pressed the test button of the subscription “{row.name}”.",
        "Incidents will be told in this way. Nothing is wrong.",
    ]


def confirmation(row: Subscription, cause: Notification, now: datetime) -> Message:
    """Ask whether an address may be written to.

    Whoever reads it has agreed to nothing yet: it has no text, name or link of an account.
    """
    topic = "reports" if row.report else "incident notifications"
    lines = (
        f"Somebody with an account of this Sonar wants {topic} to be sent to this address. If that "
        f"was you, log in with that account and open this link within {subscriptions.LINK_DAYS} "
        "days:",
        "If it was not you, do nothing: Sonar sends nothing more.",
    )
    link = f"{outside('confirm-address')}?token={subscriptions.token_of(row)}"
    return plain(row, cause, now, "Is this your address?", *lines, link=link)
