"""The link page: one link over time, in every size class and against its reverse."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from django.http import Http404, QueryDict

from matrix.answers.link import report
from matrix.answers.link.directions import Direction
from matrix.answers.link.report import Between, Question
from matrix.answers.series import MOST, is_too_long
from matrix.pages.base import Params, QueryPage
from matrix.pages.controls import Choice, bounds_of, window_choices
from matrix.pages.link.figures import drawn
from matrix.pages.link.notices import notice_for, planned_for
from matrix.pages.notices import with_filter
from matrix.pages.progress import Attempt, every_words, progress_words, until_words
from matrix.pages.share import Share
from matrix.pages.transfer.facts import streams_words, way_words
from matrix.plots import inside as inside_plot
from matrix.query.addresses import about_link, address, link_path, link_url, matrix_url, site_url
from matrix.query.filters import ALONE, BESIDE_WORDS, Filter, alternatives, words_of
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
        source, destination = ends_of(path["source"], path["destination"])
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
        found = report.answer(question, now)
        known = notes.on_link(self.source.name, self.destination.name, found.window, reader)
        return {
            "found": found,
            "heading": f"From {self.source.name} to {self.destination.name}",
            "sentence": self.sentence(),
            "simulated": self.source.simulated or self.destination.simulated,
            "controls": self.controls(found),
            "notice": notice_for(found, lambda query: self.asking(query).url()),
            "elsewhere": self.elsewhere(),
            # A dash stands for it, with its reason.
            "missing": None,
            "directions": directions_of(found),
            "share": Share.of(self.results_url()),
            "series_urls": self.series_urls(found),
            "drawn": drawn(found, known, reverse=self.reverse),
            "notes": known,
            "may_note": roles.may(
                reader, notes.WRITE, notes.sites_of(self.source.name, self.destination.name)
            ),
            **lists(self, found),
        }

    def sentence(self) -> str:
        """Say the window, the size classes and the filters, with a capital letter."""
        sizes = f"{self.query.size} files" if self.only else "all size classes"
        made = [words_of(some) for some in alternatives(self.query.filters)]
        text = ", ".join([self.query.window_words(), sizes, *made])
        return text[0].upper() + text[1:]

    def controls(self, found: Between) -> dict[str, Any]:
        """Return what can be changed; the size classes are known from the answer or one query."""
        turned = dataclasses.replace(self, reverse=not self.reverse)
        return {
            "sizes": self.size_choices(),
            "windows": window_choices(self),
            "bounds": bounds_of(self, found.window),
            "chips": chips(self),
            "reverse": Choice(
                f"draw {self.destination.name} → {self.source.name} too",
                turned.url(),
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

    def series_urls(self, found: Between) -> list[tuple[str, str]]:
        ends = {"source": self.source.name, "destination": self.destination.name}
        return [
            (one.size, self.query.replace(size=one.size).url(address("api-series"), **ends))
            for one in found.classes
        ]


def ends_of(source: str, destination: str) -> tuple[EndpointInfo, EndpointInfo]:
    """Return two registered endpoints; raise Http404 that says which name is none."""
    known = {place.name: place for place in registry.read_places(registry.read_versions())}
    unknown = [name for name in (source, destination) if name not in known]
    if unknown:
        names = " and ".join(f"“{name}”" for name in dict.fromkeys(unknown))
        raise Http404(f"No endpoint is registered with the name {names}.")
    if source == destination:
        raise Http404(f"A link has two different ends: {source} is both of them here.")
    return known[source], known[destination]


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


def directions_of(found: Between) -> list[list[tuple[Direction, str, str]]]:
    """Return each class of this direction, then of the reverse: numbers, state, comparison."""
    return [
        [(one, STATE_WORDS[one.state], one.against(other)) for one, other in pairs]
        for pairs in (
            [(one.there, one.back) for one in found.classes],
            [(one.back, one.there) for one in found.classes],
        )
    ]


def chips(page: LinkPage) -> list[Choice]:
    return [
        Choice(one.words(), page.asking(page.query.without(one)).url(), True)
        for one in page.query.filters
    ]


def lists(page: LinkPage, found: Between) -> dict[str, Any]:
    """Return the lists of results, of ways of measuring, and of tests to come."""
    sizes = {one.size for one in found.classes}
    further = found.listing.next
    attempts = [Attempt.of(one) for one in found.listing.results]
    return {
        "attempts": attempts,
        "further": dataclasses.replace(page, before=further).url() if further else "",
        "first": dataclasses.replace(page, before=None).url() if page.before else "",
        "failures": [(one, Attempt.of(one.example)) for one in found.failures],
        "methods": [
            (
                one,
                streams_words(one.method.streams, one.used),
                BESIDE_WORDS[one.method.beside],
                page.asking(page.query.replace(filters=one.method.filters())).url(),
            )
            for one in found.methods
        ],
        # Nobody knows the IP version of what failed: that alone mixes no rates.
        "methods_count": len({one.method.apart() for one in found.methods if one.ok}),
        "company": company_of(page, found),
        "planned": [
            (one, every_words(one.every_seconds), until_words(one.next_due, found.now))
            for one in planned_for(found)
        ],
        "probes": [
            (one, one.source_id == page.source.id, progress_words(one))
            for one in found.probes
            if one.size_class.name in sizes
        ],
        "inside": inside(found),
    }


def company_of(page: LinkPage, found: Between) -> dict[str, Any] | None:
    """Return where tests in company were slower, each with its way if there are several."""
    if not found.slowed:
        return None
    several = len({one.size for one in found.slowed}) < len(found.slowed)
    return {
        "slowed": [(one, way_words(one.way) if several else "") for one in found.slowed],
        "alone_url": page.asking(with_filter(page.query, Filter("beside", ALONE))).url(),
    }


def inside(found: Between) -> dict[str, Any] | None:
    """Return the newest listed transfer that is done and whose rate is known from within."""
    for one in found.listing.results:
        if one.state != Transfer.State.DONE:
            continue
        if figure := inside_plot.figure(inside_plot.stretches(one.samples)):
            return {"attempt": Attempt.of(one), "figure": figure}
    return None
