"""Messages about incidents, as plain text and HTML, for readers who have just been woken."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import uuid5

from django.db.models import Q
from django.template.loader import render_to_string

from matrix.answers.incidents import words
from matrix.answers.incidents.evidence import failures_of
from matrix.answers.words.phrases import WHERE, counted, shortened
from matrix.query.addresses import outside
from matrix.store import incidents
from sonar.alerting import subscriptions
from sonar.alerting.channels.base import MOST_LINKS, Matter, Message, Occurrence
from sonar.alerting.outbox import ENDS
from sonar.alerting.subjects import sites_of
from sonar.alerting.subscriptions import Subscribed
from sonar.models import Incident, IncidentEvent, Notification, Subscription
from sonar.notation.windows import format_typed

Type = IncidentEvent.Type
NEWS = {
    Type.WORSE: "got worse",
    Type.BETTER: "improved",
    Type.CAUSE: "scope widened",
    Type.ACCEPTED: "closed, because the current rate was accepted as the baseline",
}
MOST_IN_DIGEST = 50
# Links of an incident that are read; a message lists the first of them by name.
MOST_READ = 1000


class IncidentWords:
    """Writes messages about incidents (`sonar.alerting.sending.Words`)."""

    def message(
        self, row: Subscription, delivered: Sequence[Notification], now: datetime
    ) -> Message:
        first, link = delivered[0], ""
        if first.kind == Notification.Kind.TEST:
            subject = "Test notification"
            begins = [
                "This is a test notification. No incident has occurred.",
                f"The test was requested for the subscription “{row.name}”.",
            ]
        elif first.kind == Notification.Kind.CONFIRMATION:
            # Its reader has agreed to nothing yet: it has no text, name or link of an account.
            subject = "Is this your address?"
            topic = "reports" if row.report else "incident notifications"
            begins = [
                f"A user of this Sonar instance requested {topic} for this e-mail address. "
                "If that was you, log in to the same account and open this link within "
                f"{subscriptions.LINK_DAYS} days:",
                "If you did not request this, ignore this message. Sonar sends no other message "
                "to an address that is not confirmed.",
            ]
            link = f"{outside('confirm-address')}?token={subscriptions.token_of(row)}"
        else:
            return about_incidents(row, delivered, now)
        context = {"subject": subject, "begins": begins, "link": link}
        return written(row, f"{first.kind}-{first.pk}", now, first.kind, context)

    def matters(self, subscribed: Subscribed, since: datetime, now: datetime) -> list[Matter]:
        """Return the open incidents that match a subscription, and those closed since then.

        Muted incidents are included only if they got worse since they were muted.
        """
        present = Q(closed_at=None) | Q(closed_at__gt=since)
        rows = incidents.rows().filter(present).order_by("-opened_at", "-id")
        mine = [row for row in rows if subscribed.concerns(row, sites_of(row))]
        muted = [row for row in mine if row.is_muted(now)]
        types = (Type.MUTED, Type.WORSE)
        events = IncidentEvent.objects.filter(incident__in=muted, type__in=types).order_by("id")
        last = dict(events.values_list("incident_id", "type"))
        return [matter(row) for row in mine if row not in muted or last.get(row.pk) == Type.WORSE]


def written(
    row: Subscription,
    key: str,
    now: datetime,
    kind: str,
    context: dict[str, Any],
    *,
    matters: Sequence[Matter] = (),
    events: Sequence[Occurrence] = (),
) -> Message:
    """Return a message of a subscription; the same ``key`` is the same message."""
    context |= {"name": row.name, "page": outside("subscriptions")}
    text, html = (render_to_string(f"mail/message.{each}", context) for each in ("txt", "html"))
    return Message(
        str(uuid5(row.key, key)), now, kind, context["subject"], text, html, matters, events
    )


def matter(row: Incident, now: datetime | None = None) -> Matter:
    """Return an incident as it is sent; with ``now`` also its links and the newest error."""
    condition, end = words.condition_of(row), row.source or row.destination
    # A link has two sites, and the grid has none.
    site = row.site or (end.site if end and row.scope != Incident.Scope.LINK else "")
    assignee = "no one"
    if row.assignee:
        assignee = row.assignee.get_username()
    elif row.acknowledged_by and row.acknowledged_at:
        at = format_typed(row.acknowledged_at)
        assignee = f"no one (acknowledged by {row.acknowledged_by.get_username()} at {at})"
    members, error, where = list[str](), "", ""
    if now:
        links, _ = incidents.members(row, MOST_READ)
        members = sorted({f"{link.source} → {link.destination}" for link in links})[:MOST_LINKS]
        failures = failures_of(row, links, now)
        if newest := max(failures, key=lambda group: group.last, default=None):
            where, error = newest.where, shortened(newest.example.error)
            error += f" ({WHERE[where]})" if where in WHERE else ""
    return Matter(
        id=row.pk,
        title=words.title(row),
        sentence=words.sentence(row),
        type=row.type,
        scope=row.scope,
        source=str(row.source or ""),
        destination=str(row.destination or ""),
        site=str(site),
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
        assignee=assignee,
        advice=words.advice(row),
        members=tuple(members),
        more=max(row.links - len(members), 0) if members else 0,
        error=error,
        error_where=where if where in ("source", "destination") else "",
    )


def about_incidents(row: Subscription, delivered: Sequence[Notification], now: datetime) -> Message:
    """Return the message about the incidents of these rows; of missed ones, the newest."""
    missed, rows = [each for each in delivered if each.missed], list(delivered)
    if missed:
        # What could not be sent since the first message was missed.
        failed = row.notifications.filter(
            state=Notification.State.FAILED,
            ended_at__gte=min(each.created_at for each in missed),
            incident__isnull=False,
        )
        rows += failed.order_by("-id")[:MOST_IN_DIGEST]
    ids = {each.incident_id for each in rows} - {None}
    newest = incidents.rows().filter(Q(pk__in=ids)).order_by("-opened_at", "-id")
    concerned = list(newest[:MOST_IN_DIGEST])
    alone, count = len(concerned) == 1, sum(each.missed for each in missed)
    matters = [matter(each, now if alone else None) for each in concerned]
    numbers = sorted({number for each in rows for number in each.events})
    events = [
        Occurrence(event.pk, event.type, event.at, event.incident_id)
        for event in IncidentEvent.objects.filter(pk__in=numbers)
    ]
    still = sum(each.closed_at is None for each in matters)
    subject = f"{counted(len(matters), 'incident')}, {still or 'none'} of them open"
    if alone and not missed:
        # The news comes before the title.
        types, news = [event.type for event in events], ""
        if types and types[-1] in ENDS:
            news = "Closed: "
        elif Type.WORSE in types:
            news = "Worse: "
        elif Type.REOPENED in types:
            news = "Reopened: "
        subject = f"{news}{matters[0].title}"
    said = {type_: NEWS.get(type_, type_.label.lower()) for type_ in Type}
    context = {
        "subject": subject,
        "begins": [f"{counted(count, 'earlier message')} could not be delivered."] * bool(missed),
        "matters": matters,
        "alone": alone,
        "left_out": len(ids) - len(matters),
        "events": [f"{format_typed(event.at)}: {said[Type(event.type)]}" for event in events],
    }
    key = "-".join(map(str, [*numbers, *(each.pk for each in missed), count]))
    kind = "incident" if alone and not missed else "digest"
    return written(row, key, now, kind, context, matters=matters, events=events)
