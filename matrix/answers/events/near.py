"""What happened near a link or a site: to it, to its endpoints, and to all links."""

from __future__ import annotations

from django.db.models import Q

from matrix.answers.events import reading
from matrix.answers.events.event import Event
from matrix.answers.events.present import LOOKS, going_on
from matrix.answers.events.reading import Present
from matrix.answers.link.report import LinkReport
from matrix.answers.site.reports import Report

OF_GRID = Q(source=None, destination=None)


def events_of_link(answer: LinkReport) -> list[Event]:
    """Read those of a link, of its ends, and of all links. Three SQL queries."""
    source, destination = answer.question.ends
    ends = Q(source=source.id, destination=destination.id)
    ends |= Q(source=source.id, destination=None) | Q(source=None, destination=destination.id)
    sizes = [part.size for part in answer.classes]
    present = present_of(answer)
    return reading.read(answer.window, answer.question.ends, sizes, present, ends | OF_GRID)


def events_of_site(report: Report) -> list[Event]:
    """Read those of a site, of its endpoints and links, and of all links. Three queries."""
    ids = [place.id for place in report.endpoints]
    condition = Q(source__in=ids) | Q(destination__in=ids) | OF_GRID
    present = Present.of_grids([report.links], report.all_endpoints)
    return reading.read(report.window, report.all_endpoints, [*report.sites], present, condition)


def present_of(answer: LinkReport) -> Present:
    """Return how the link is at the end of the window, in each size class."""
    happenings = [
        going_on(
            kind,
            (there.source.id, there.destination.id),
            there.size,
            since=there.since,
            tests=there.streak,
            factor=(there.ratio, there.ratio_low, there.ratio_high),
        )
        for there in (part.there for part in answer.classes)
        for kind in LOOKS
        if kind in (there.state, there.level)
    ]
    return Present(happenings, frozenset(part.size for part in answer.classes))
