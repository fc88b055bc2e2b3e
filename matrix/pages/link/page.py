"""The link page: one link over time, in every size class and against its reverse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from django.http import QueryDict
from django.utils.text import capfirst

from matrix.answers import mixed_ways
from matrix.answers.diagnosis import link_diagnosis
from matrix.answers.link import report
from matrix.answers.link.errors import where_at
from matrix.answers.link.report import LinkReport, Question
from matrix.answers.link.verdict import Verdict, verdict_of
from matrix.answers.series import check_length
from matrix.answers.short_names import short_names_of
from matrix.pages import inside as inside_part
from matrix.pages.base import Params, QueryPage
from matrix.pages.compare import compare_control
from matrix.pages.controls import Choice, bounds_of, filter_chips, resized, window_choices
from matrix.pages.events.part import EventsPart
from matrix.pages.experiments.page import LinkExperimentsPage, experiments_part
from matrix.pages.link import network, overhead
from matrix.pages.link.by_size import size_rows
from matrix.pages.link.comparison import changed_since, comparison_part
from matrix.pages.link.endpoints import ends_among, registered
from matrix.pages.link.figures import drawn
from matrix.pages.link.notices import advice_for, paused_sites
from matrix.pages.link.numbers import QUANTILE_COLUMNS, directions_of
from matrix.pages.link.parameters import OWN, read_own
from matrix.pages.link.tables import planned_tests, profile_table, schedule_table
from matrix.pages.note_lines import COMPARE_SINCE, note_lines, since_url
from matrix.pages.notices import mixed, with_filter
from matrix.pages.probes.page import LinkProbesPage, probes_part
from matrix.pages.progress import TransferLine, progress_words
from matrix.pages.share import ChatCard, Share
from matrix.pages.time_strip import of_link, strip_for
from matrix.pages.transfer.facts import profile_words
from matrix.plots import rate_profile as inside_plot
from matrix.query.addresses import about_link, address, link_path, link_url, matrix_url, site_url
from matrix.query.attributes import ALONE
from matrix.query.filters import EXPERIMENTS, Filter, alternatives, words_of
from matrix.query.forms import DEFAULT_SIZE
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.transfers.rate_profile import stretches
from matrix.store import notes, profiles
from matrix.store.data_version import DataVersion
from matrix.store.keyset import Cursor
from matrix.store.profiles import ProfileChoices
from sonar.models import Transfer
from sonar.notation.units import format_age
from sonar.notation.windows import format_window
from sonar.people import roles
from sonar.people.roles import Anyone

# So many of the newest results, and of the most frequent failures, are in the overview.
LATEST, TOP_FAILURES = 10, 3
# Verdicts that say whose it is, and those beside which no rate is worth a word.
FAILS = ("failing", "failed")
NOT_COMPARED = (*FAILS, "down", "untested")


@dataclass(frozen=True)
class LinkPage(QueryPage):
    """The size class of the query is drawn, the others are tiles beside it.

    ``reverse`` draws the other direction too; ``only`` lists no other class either. ``before`` is
    where the list of results goes on.
    """

    template: ClassVar[str] = "link.html"

    source: EndpointInfo
    destination: EndpointInfo
    reverse: bool = False
    only: bool = False
    before: Cursor | None = None
    # What lists call source and destination, among all endpoints.
    short: tuple[str, str] = ("", "")

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        places = registered()
        ends = ends_among(places, path["source"], path["destination"])
        query = MatrixQuery.from_params(params, also=OWN)
        reverse, only, before = read_own(params)
        check_length(query)
        names = short_names_of(places)
        short = names[ends[0].name], names[ends[1].name]
        return cls(about_link(query), *ends, reverse, only, before, short)

    def path(self) -> str:
        return link_path(self.source.name, self.destination.name)

    def own_params(self) -> Params:
        own = {
            "show": "one" if self.only else "",
            "reverse": "1" if self.draws_reverse else "",
            "before": str(self.before or ""),
        }
        return {name: [text] for name, text in own.items() if text}

    @property
    def draws_reverse(self) -> bool:
        """Say whether the reverse direction is drawn: not beside what the link is compared with."""
        return self.reverse and self.query.compare is None

    def asking(self, query: MatrixQuery) -> Self:
        """Ask anew: the list of results begins with its first page again."""
        return dataclasses.replace(self, query=query, before=None)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        question = Question(self.source, self.destination, self.query, self.only, self.before)
        answer = report.answer(question, now)
        names = self.source.name, self.destination.name
        notes_on_link = notes.on_link(*names, answer.window, reader)
        size = self.query.size
        events = EventsPart.of_link(answer)
        ends = {"source": self.source.name, "destination": self.destination.name}
        experiments = LinkExperimentsPage(self.source, self.destination)
        newest = experiments.newest(now)
        profile_choices = profiles.read()
        network_part = network.part_of(answer.network, answer.question.ends)
        diagnosis = link_diagnosis.of_report(answer, newest, now)
        said = verdict_of(answer.link_now())
        fails = said.kind in FAILS
        verdict = network.verdict_of(network_part) or self.verdict(answer, said)
        return {
            "card": self.card(verdict["headline"]),
            "answer": answer,
            "heading": f"From {self.source.name} to {self.destination.name}",
            "sentence": self.sentence(),
            "window_times": format_window(answer.window),
            "simulated": self.source.simulated or self.destination.simulated,
            "controls": self.controls(answer, profile_choices),
            "verdict": verdict,
            "fault": diagnosis.fault if fails else None,
            "against_others": None if said.kind in NOT_COMPARED else diagnosis.against_others,
            "diagnosis": diagnosis,
            "findings": diagnosis.beside_failing if fails else diagnosis.diagnoses,
            "comparison": comparison_part(self, answer),
            "by_size": size_rows(answer, lambda size: self.asking(resized(self.query, size)).url()),
            "short": self.short,
            "reverse_url": self.reverse_url(),
            "elsewhere": self.elsewhere(),
            # A dash stands for it, with its reason.
            "missing": None,
            "directions": directions_of(answer) if has_numbers(answer) else [],
            "quantiles": [heading for heading, _ in QUANTILE_COLUMNS],
            "strip": strip_for(self, answer.window, now, of_link(*names), single=True),
            "share": Share.of(self.results_url()).drawing(
                self.query.url(address("api-series"), **ends)
            ),
            "series_urls": [
                (line.size, resized(self.query, line.size).url(address("api-series"), **ends))
                for line in answer.classes
            ],
            "events": events,
            "drawn": drawn(answer, notes_on_link, events.spans(size), reverse=self.draws_reverse),
            "notes": note_lines(self, notes_on_link, now),
            "may_note": roles.may(reader, notes.WRITE, notes.sites_of(*names)),
            **lists(self, answer, profile_choices),
            "network": network_part,
            "inside_rates": inside_part.part_of(answer.inside),
            **probes_part(
                LinkProbesPage(self.source, self.destination), self.query.size, reader, now
            ),
            **experiments_part(experiments, {"size": self.query.size}, reader, newest),
        }

    def verdict(self, answer: LinkReport, said: Verdict) -> dict[str, Any]:
        """Return how the link is, in words, and where to go from there."""
        advice = advice_for(answer, lambda query: self.asking(query).url())
        rest = f"{said.rest} {advice.sentence}".strip()
        return {
            "kind": said.kind,
            "headline": said.headline,
            "why": said.why,
            "rest": rest,
            "links": [*advice.links, *self.since_links(answer)],
        }

    def card(self, headline: str) -> ChatCard:
        names = self.source.name, self.destination.name
        title = f"From {names[0]} to {names[1]}, {self.query.size} files"
        simulated = self.source.simulated or self.destination.simulated
        path = address("link-preview", *names)
        return ChatCard.of(self, path, title, headline, simulated=simulated)

    def since_links(self, answer: LinkReport) -> list[tuple[str, str]]:
        """Return where a change of level is compared with the time before it."""
        since = changed_since(answer)
        if since is None or self.query.compare:
            return []
        size, moment = since
        page = self.asking(resized(self.query, size))
        return [(COMPARE_SINCE, since_url(page, moment, answer.now))]

    def sentence(self) -> str:
        """Say the window and the filters, with a capital letter."""
        filters = [words_of(group) for group in alternatives(self.query.filters)]
        return capfirst(", ".join([self.query.window_words(), *filters]))

    def controls(self, answer: LinkReport, choices: ProfileChoices) -> dict[str, Any]:
        """Return what can be changed."""
        return {
            "sizes": [
                Choice(
                    part.size,
                    self.asking(resized(self.query, part.size)).url(),
                    part.size == self.query.size,
                )
                for part in answer.classes
            ],
            "windows": window_choices(self),
            "bounds": bounds_of(self, answer.window),
            "chips": filter_chips(self),
            "compare": compare_control(
                self, answer.window, choices, [part.size for part in answer.classes]
            ),
            "directions": [
                Choice(text, dataclasses.replace(self, reverse=both).url(), self.reverse == both)
                for text, both in (("this direction", False), ("both directions", True))
                if not self.query.compare
            ],
        }

    def list_choices(self) -> list[Choice]:
        """Return the switch between lists of all size classes, and of the one that is drawn."""
        return [
            Choice(text, dataclasses.replace(self, only=only, before=None).url(), self.only == only)
            for text, only in (("all size classes", False), (f"only {self.query.size} files", True))
        ]

    def reverse_url(self) -> str:
        """Return the page of the other direction, as this one is seen."""
        turned = dataclasses.replace(
            self, source=self.destination, destination=self.source, before=None
        )
        return turned.url()

    def elsewhere(self) -> list[tuple[str, str]]:
        """Return texts and addresses of what is shown elsewhere about these two endpoints."""
        there, back = self.source.name, self.destination.name
        ends = [
            Filter(f"{end}_endpoint", name)
            for end in ("source", "destination")
            for name in sorted({there, back})
        ]
        both = self.query.replace(filters=(*ends, *self.query.filters))
        sites = dict.fromkeys([self.source.site, self.destination.site])
        return [
            ("Reverse direction", link_url(back, there, self.query)),
            *((f"Site {site}", site_url(site, self.query)) for site in sites),
            ("This link in the matrix", matrix_url(both)),
        ]

    def results_url(self) -> str:
        """Return the call of the API that has all results of this view."""
        query = self.query.replace(size=DEFAULT_SIZE, compare=None)
        ends = {"source_endpoint": self.source.name, "destination_endpoint": self.destination.name}
        only = {"size": self.query.size} if self.only else {}
        return query.url(address("api-transfers"), **only, **ends)


def lists(page: LinkPage, answer: LinkReport, choices: ProfileChoices) -> dict[str, Any]:
    """Return the lists of results, of ways of measuring, and of tests to come."""
    sizes = {line.size for line in answer.classes}
    cursor = answer.listing.next
    lines = [TransferLine.of(transfer) for transfer in answer.listing.results]
    planned = planned_tests(answer)
    ends = [
        dataclasses.replace(end, name=name)
        for end, name in zip(answer.question.ends, page.short, strict=True)
    ]
    failures = [
        (group, TransferLine.of(group.example), where_at(group.where, *ends))
        for group in answer.failures
    ]
    return {
        "transfers": lines,
        "measured_alike": shared(line.profile_words for line in lines),
        "have_errors": any(line.error for line in lines),
        "results_count": len(answer.results),
        "further": dataclasses.replace(page, before=cursor).url() if cursor else "",
        "first": dataclasses.replace(page, before=None).url() if page.before else "",
        "last_tests": [
            (line, format_age(answer.now - line.transfer.started_at))
            for line in lines[:LATEST]
            if not page.before
        ],
        "overhead": overhead.part_of(answer.overhead()),
        "list_choices": page.list_choices(),
        "failures": failures,
        "top_failures": failures[:TOP_FAILURES],
        "failures_count": sum(group.count for group, _, _ in failures),
        "profiles": profile_table(
            answer.summaries,
            lambda filters: page.asking(page.query.replace(filters=filters)).url(),
        ),
        "mixed": mixed(
            page.query,
            lambda query: page.asking(query).url(),
            mixed_ways.of_link([line.results for line in answer.classes], choices),
        ),
        "left_out": left_out(page, answer),
        "company": company_of(page, answer),
        "paused": paused_sites(answer.question.ends, answer.now),
        "planned": planned,
        "schedule": schedule_table(planned),
        "probes": [
            (probe, probe.source_id == page.source.id, progress_words(probe))
            for probe in answer.probes
            if probe.size_class.name in sizes
        ],
        "inside": inside(answer),
    }


def has_numbers(answer: LinkReport) -> bool:
    """Say whether either direction has a test, or a usual rate."""
    both = [direction for part in answer.classes for direction in (part.there, part.back)]
    return any(direction.tests or direction.usual_count for direction in both)


def shared(texts: Iterable[str]) -> str:
    """Return what all of these texts are, empty if they differ or there is none."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def left_out(page: LinkPage, answer: LinkReport) -> dict[str, Any] | None:
    """Return how many experiments these numbers leave out, and the page of them; None for none."""
    count = sum(part.left_out for part in answer.classes)
    if not count:
        return None
    return {"count": count, "url": page.asking(with_filter(page.query, EXPERIMENTS)).url()}


def company_of(page: LinkPage, answer: LinkReport) -> dict[str, Any] | None:
    """Return where tests in company were slower, each with its profile if there are several."""
    if not answer.slowed:
        return None
    several = len({line.size for line in answer.slowed}) < len(answer.slowed)
    return {
        "slowed": [
            (line, profile_words(line.profile) if several else "") for line in answer.slowed
        ],
        "alone_url": page.asking(with_filter(page.query, Filter("beside", ALONE))).url(),
    }


def inside(answer: LinkReport) -> dict[str, Any] | None:
    """Return the newest listed transfer that is done and whose rate is known from within."""
    for transfer in answer.listing.results:
        if transfer.state != Transfer.State.DONE:
            continue
        if figure := inside_plot.course_figure(stretches(transfer.samples)):
            return {"line": TransferLine.of(transfer), "figure": figure}
    return None
