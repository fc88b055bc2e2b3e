"""The link page: one link over time, in every size class and against its reverse."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from django.http import Http404, QueryDict

from matrix.answers.link import report
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import LinkReport, Question
from matrix.answers.series import MOST, is_too_long
from matrix.pages.base import Params, QueryPage
from matrix.pages.controls import Choice, bounds_of, filter_chips, window_choices
from matrix.pages.link.figures import drawn
from matrix.pages.link.notices import notice_for, planned_for
from matrix.pages.notices import with_filter
from matrix.pages.progress import TransferLine, every_words, progress_words, until_words
from matrix.pages.share import Share
from matrix.pages.transfer.facts import profile_words, streams_words
from matrix.plots import inside as inside_plot
from matrix.query.addresses import about_link, address, link_path, link_url, matrix_url, site_url
from matrix.query.attributes import ALONE, OF_PROFILES
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW, OF_LINK
from matrix.query.filters import Filter, alternatives, words_of
from matrix.query.forms import DEFAULT_SIZE, BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from matrix.statistics.states import STATE_WORDS
from matrix.store import notes, registry
from matrix.store.data_version import DataVersion
from matrix.store.transfers import Cursor
from sonar import roles
from sonar.models import SizeClass, Transfer
from sonar.roles import Anyone
from sonar.windows import Window

OWN = ("reverse", "show", "before")


@dataclass(frozen=True)
class LinkPage(QueryPage):
    """``reverse`` draws the other direction too, ``only`` shows the size class of the query alone.

    ``before`` is where the list of results goes on.
    """

    template: ClassVar[str] = "link.html"

    source: EndpointInfo
    destination: EndpointInfo
    reverse: bool = False
    only: bool = False
    before: Cursor | None = None

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        source, destination = endpoints_of(path["source"], path["destination"])
        query = MatrixQuery.from_params(params, also=OWN)
        own = read_own(params)
        if query.start and query.end and is_too_long(Window(query.start, query.end)):
            sentence = f"from must be at most {MOST:,} days before to: a link is shown by the day."
            raise BadQueryError({"from": [sentence]})
        return cls(about_link(query), source, destination, *own)

    def path(self) -> str:
        return link_path(self.source.name, self.destination.name)

    def own_params(self) -> Params:
        own = {
            "show": "one" if self.only else "",
            "reverse": "1" if self.reverse else "",
            "before": str(self.before or ""),
        }
        return {name: [text] for name, text in own.items() if text}

    def asking(self, query: MatrixQuery) -> Self:
        """Ask anew: the list of results begins with its first page again."""
        return dataclasses.replace(self, query=query, before=None)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        question = Question(self.source, self.destination, self.query, self.only, self.before)
        answer = report.answer(question, now)
        names = self.source.name, self.destination.name
        notes_on_link = notes.on_link(*names, answer.window, reader)
        ends = {"source": self.source.name, "destination": self.destination.name}
        return {
            "answer": answer,
            "heading": f"From {self.source.name} to {self.destination.name}",
            "sentence": self.sentence(),
            "simulated": self.source.simulated or self.destination.simulated,
            "controls": self.controls(answer),
            "notice": notice_for(answer, lambda query: self.asking(query).url()),
            "elsewhere": self.elsewhere(),
            # A dash stands for it, with its reason.
            "missing": None,
            "directions": directions_of(answer),
            "quantiles": [heading for heading, _ in QUANTILE_COLUMNS],
            "share": Share.of(self.results_url()),
            "series_urls": [
                (line.size, self.query.replace(size=line.size).url(address("api-series"), **ends))
                for line in answer.classes
            ],
            "drawn": drawn(answer, notes_on_link, reverse=self.reverse),
            "notes": notes_on_link,
            "may_note": roles.may(reader, notes.WRITE, notes.sites_of(*names)),
            **lists(self, answer),
        }

    def sentence(self) -> str:
        """Say the window, the size classes and the filters, with a capital letter."""
        sizes = f"{self.query.size} files" if self.only else "all size classes"
        filters = [words_of(group) for group in alternatives(self.query.filters)]
        text = ", ".join([self.query.window_words(), sizes, *filters])
        return text[0].upper() + text[1:]

    def controls(self, answer: LinkReport) -> dict[str, Any]:
        """Return what can be changed; the size classes are known from the answer or one query."""
        other = dataclasses.replace(self, reverse=not self.reverse)
        return {
            "sizes": self.size_choices(),
            "windows": window_choices(self),
            "bounds": bounds_of(self, answer.window),
            "chips": filter_chips(self),
            "reverse": Choice(
                f"draw {self.destination.name} → {self.source.name} too",
                other.url(),
                self.reverse,
                "The reverse direction, in the same pictures",
            ),
        }

    def size_choices(self) -> list[Choice]:
        """Return the switch between all size classes and each alone. One SQL query."""
        every = dataclasses.replace(self, only=False, before=None)
        alone = dataclasses.replace(self, only=True, before=None)
        return [Choice("all", every.url(), not self.only, "all size classes")] + [
            Choice(size, alone.asking(self.query.replace(size=size)).url(), chosen)
            for size in SizeClass.objects.values_list("name", flat=True)
            for chosen in [self.only and size == self.query.size]
        ]

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
            (f"The reverse link, from {back} to {there}", link_url(back, there, self.query)),
            *((f"Site {site}", site_url(site, self.query)) for site in sites),
            ("Both in the matrix", matrix_url(both)),
        ]

    def results_url(self) -> str:
        """Return the call of the API that has all results of this view."""
        query = self.query.replace(size=DEFAULT_SIZE)
        ends = {"source_endpoint": self.source.name, "destination_endpoint": self.destination.name}
        only = {"size": self.query.size} if self.only else {}
        return query.url(address("api-transfers"), **only, **ends)


def endpoints_of(source: str, destination: str) -> tuple[EndpointInfo, EndpointInfo]:
    """Return two registered endpoints; raise Http404 that says which name is none."""
    endpoints = {
        endpoint.name: endpoint for endpoint in registry.read_places(registry.read_versions())
    }
    unknown = [name for name in (source, destination) if name not in endpoints]
    if unknown:
        names = " and ".join(f"“{name}”" for name in dict.fromkeys(unknown))
        raise Http404(f"No endpoint is registered with the name {names}.")
    if source == destination:
        raise Http404(f"A link has two different ends: {source} is both of them here.")
    return endpoints[source], endpoints[destination]


def read_own(params: QueryDict) -> tuple[bool, bool, Cursor | None]:
    """Read the parameters that other pages do not have; raise BadQueryError."""
    errors = {
        name: [f"{name} “{params[name]}” is not known: use {allowed}, or leave it out."]
        for name, allowed in (("reverse", "1"), ("show", "one"))
        if params.get(name) not in (None, "", allowed)
    }
    before = None
    try:
        if text := str(params.get("before", "")):
            before = Cursor.parse(text)
    except ValueError:
        errors["before"] = ["before is not a place in the list of results: follow a link to it."]
    if errors:
        raise BadQueryError(errors)
    return params.get("reverse") == "1", params.get("show") == "one", before


# Headings and the names of what stands below them: both ends of the band in one column.
QUANTILE_COLUMNS = [
    (BAND_WORDS, [LOW.name, HIGH.name]) if statistic == LOW else (statistic.label, [statistic.name])
    for statistic in OF_LINK
    if statistic.quantile is not None and statistic != HIGH
]


def directions_of(answer: LinkReport) -> list[list[tuple[Direction, str, str, list[list[float]]]]]:
    """Return each class of this direction, then of the reverse.

    With its state in words, its comparison, and its quantiles column by column.
    """
    return [
        [
            (
                direction,
                STATE_WORDS[direction.state],
                direction.against(reverse),
                [[direction.quantiles[name] for name in names] for _, names in QUANTILE_COLUMNS],
            )
            for direction, reverse in pairs
        ]
        for pairs in (
            [(line.there, line.back) for line in answer.classes],
            [(line.back, line.there) for line in answer.classes],
        )
    ]


def lists(page: LinkPage, answer: LinkReport) -> dict[str, Any]:
    """Return the lists of results, of ways of measuring, and of tests to come."""
    sizes = {line.size for line in answer.classes}
    cursor = answer.listing.next
    return {
        "transfers": [TransferLine.of(transfer) for transfer in answer.listing.results],
        "further": dataclasses.replace(page, before=cursor).url() if cursor else "",
        "first": dataclasses.replace(page, before=None).url() if page.before else "",
        "failures": [(group, TransferLine.of(group.example)) for group in answer.failures],
        "profiles": [
            (
                line,
                streams_words(line.profile.streams, line.used),
                OF_PROFILES["beside"].words[line.profile.beside],
                page.asking(page.query.replace(filters=line.profile.filters())).url(),
            )
            for line in answer.summaries
        ],
        # Nobody knows the IP version of what failed: that alone mixes no rates.
        "profiles_count": len({line.profile.apart() for line in answer.summaries if line.ok}),
        "company": company_of(page, answer),
        "planned": [
            (
                schedule,
                every_words(schedule.every_seconds),
                until_words(schedule.next_due, answer.now),
            )
            for schedule in planned_for(answer)
        ],
        "probes": [
            (probe, probe.source_id == page.source.id, progress_words(probe))
            for probe in answer.probes
            if probe.size_class.name in sizes
        ],
        "inside": inside(answer),
    }


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
        if figure := inside_plot.figure(inside_plot.stretches(transfer.samples)):
            return {"line": TransferLine.of(transfer), "figure": figure}
    return None
