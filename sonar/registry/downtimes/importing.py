"""Downtimes of one source, from its address to rows, all of them or none; and how that went."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import ModuleType

from django.conf import settings
from django.db import transaction

from sonar.database import actor
from sonar.models import Downtime, DowntimeSource
from sonar.models.downtimes import Origin
from sonar.notation.addresses import is_url
from sonar.notation.units import format_counted
from sonar.registry import aliases, documents
from sonar.registry.documents import NoDocument
from sonar.registry.downtimes import gocdb, matching, osg, pages, replacing
from sonar.registry.downtimes.announcement import Announcement, Answer, LeftOut
from sonar.registry.downtimes.document import BadAnswer
from sonar.registry.downtimes.replacing import Differences
from sonar.registry.downtimes.state import addresses

log = logging.getLogger(__name__)

PAST = timedelta(days=3)
"""Sources are asked for what ended so recently, too."""
MARGIN = timedelta(days=1)
"""Nobody can tell in which zone a source begins its days."""
FORMATS: dict[str, ModuleType] = {Origin.GOCDB: gocdb, Origin.OSG: osg}


class NotImported(Exception):
    """A source does not answer, or with what cannot be read: nothing was changed."""


class Overtaken(Exception):
    """A later answer of the source has been kept meanwhile."""


@dataclass(frozen=True)
class Outcome:
    """What an answer came to."""

    announcements: tuple[Announcement, ...]
    concerned: int
    """How many of them concern endpoints in use."""
    changes: Differences
    unmatched: tuple[matching.Unmatched, ...]
    of_tape: int
    """How many of them are of no storage service but of tape."""
    left_out: tuple[LeftOut, ...]


def import_all(now: datetime) -> None:
    """Import from each source that is set; one that does not answer keeps no other from it."""
    for origin, address in addresses().items():
        try:
            outcome = import_from(origin, address, now, settings.SONAR_DOWNTIMES_CA_BUNDLE)
        except (NotImported, Overtaken) as error:
            log.warning("downtimes from %s were not imported: %s", Origin(origin).label, error)
            continue
        if outcome.changes.count:
            log.info("downtimes from %s: %s", Origin(origin).label, outcome.changes.words)
        if outcome.left_out:
            log.warning(
                "downtimes from %s: skipped %s that cannot be read; the first: %s",
                Origin(origin).label,
                format_counted(len(outcome.left_out), "element"),
                outcome.left_out[0].sentence,
            )


def import_from(
    origin: str, address: str, now: datetime, ca_file: str = "", *, dry_run: bool = False
) -> Outcome:
    """Ask, read, match and keep; raise NotImported, with which the state of the source is kept.

    With ``dry_run`` nothing at all is written.
    """
    try:
        answer = read(origin, address, now, ca_file)
    except (NoDocument, BadAnswer) as error:
        if not dry_run:
            note_failure(origin, str(error), now)
        raise NotImported(str(error)) from error
    if dry_run:
        return outcome_of(origin, answer, now)
    return keep(origin, answer, now)


def read(origin: str, address: str, now: datetime, ca_file: str = "") -> Answer:
    """Return what a source announces; raise NoDocument or BadAnswer."""
    source = FORMATS[origin]
    if is_url(address):
        return pages.read(source.read, source.question(address, now, PAST), ca_file)
    answer: Answer = source.read(documents.of_file(address, pages.MOST_BYTES))
    return answer


def outcome_of(origin: str, answer: Answer, now: datetime) -> Outcome:
    """Compare what a source announces with what is there. Two SQL queries."""
    endpoints = matching.EndpointsByHost.read()
    by_site = endpoints.of_sites()
    rows: list[Downtime] = []
    concerned = 0
    for announcement in answer.announcements:
        own = matching.rows_of(announcement, endpoints, origin, by_site)
        concerned += bool(own)
        rows += own if announcement.is_ever_in_force else []
    keys = [announcement.key for announcement in answer.announcements]
    unread = {each.key for each in answer.left_out}
    since = now - PAST + MARGIN
    return Outcome(
        announcements=answer.announcements,
        concerned=concerned,
        changes=replacing.differences(origin, rows, keys, since, unread),
        unmatched=tuple(matching.without_endpoint(answer.announcements, endpoints)),
        of_tape=sum(map(matching.is_of_tape_alone, answer.announcements)),
        left_out=answer.left_out,
    )


@transaction.atomic
def keep(origin: str, answer: Answer, now: datetime) -> Outcome:
    """Keep an answer and that it came; raise Overtaken. One import of a source at a time."""
    source = locked(origin, now)
    if source.answered_at and source.answered_at > now:
        raise Overtaken("a later response has already been stored")
    outcome = outcome_of(origin, answer, now)
    with actor.acting("refresh", f"downtimes from {Origin(origin).label}"):
        replacing.keep(outcome.changes)
    source.asked_at = source.answered_at = now
    source.error = ""
    source.downtimes, source.of_endpoints = len(answer.announcements), outcome.concerned
    source.save()
    unknown = matching.unknown_names(outcome.unmatched)
    aliases.note_unknown(origin, tuple(unknown), now)
    return outcome


@transaction.atomic
def note_failure(origin: str, why: str, now: datetime) -> None:
    """Keep why a source has given no answer that can be read; its downtimes stay."""
    source = locked(origin, now)
    if source.asked_at <= now:
        longest = DowntimeSource._meta.get_field("error").max_length
        source.asked_at, source.error = now, why[:longest]
        source.save(update_fields=["asked_at", "error"])


def locked(origin: str, now: datetime) -> DowntimeSource:
    """Return the row of a source, made if need be, for this transaction alone."""
    DowntimeSource.objects.bulk_create(
        [DowntimeSource(origin=origin, asked_at=now)], ignore_conflicts=True
    )
    return DowntimeSource.objects.select_for_update().get(origin=origin)
