"""All that is said of a site's links as they are now and as they came to be so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from matrix.answers.site import comparison
from matrix.answers.site.comparison import EndComparison
from matrix.answers.site.history import BeforeAndAfter, EndHistory, history_of
from matrix.answers.site.other_classes import other_classes
from matrix.answers.site.ranking import ENDS
from matrix.answers.site.reports import Report
from matrix.answers.site.site_links import SiteLink, links_of, verdict_of
from matrix.answers.site.verdict import SiteAnswer
from sonar.models import Annotation


@dataclass(frozen=True)
class NoteEffect:
    """A note that begins in the window, with the links to the site and from it around it."""

    note: Annotation
    received: BeforeAndAfter
    sent: BeforeAndAfter

    @property
    def ends(self) -> tuple[BeforeAndAfter, BeforeAndAfter]:
        return self.received, self.sent


@dataclass(frozen=True)
class SiteNow:
    """The links of a site by end, the worst first, their history, and what follows of them.

    ``comparisons`` are by end, too, if the question asks for one.
    """

    links: dict[str, list[SiteLink]]
    histories: dict[str, EndHistory]
    verdict: SiteAnswer
    effects: list[NoteEffect]
    comparisons: dict[str, EndComparison]


def site_now(report: Report, notes: Sequence[Annotation], now: datetime) -> SiteNow:
    """Judge a site by its report; ``notes`` are those that a reader may see.

    One SQL statement, and one more to compare.
    """
    links = {end: links_of(report, end) for end in ENDS}
    begun = [note for note in notes if report.window.start <= note.starts_at]
    histories = history_of(report, links, [note.starts_at for note in begun])
    effects = [
        NoteEffect(
            note,
            received=histories["destination"].note_effect(note.starts_at),
            sent=histories["source"].note_effect(note.starts_at),
        )
        for note in begun
    ]
    verdict = verdict_of(report, links, is_past=report.window.end <= now)
    return SiteNow(
        links,
        histories,
        replace(verdict, others=other_classes(report)),
        effects,
        comparisons=comparison.compare(report, links, histories, now),
    )
