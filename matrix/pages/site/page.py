"""The site page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from django.http import QueryDict
from django.utils.text import capfirst

from matrix.answers.causes.words import of_site
from matrix.answers.diagnosis import site_diagnosis
from matrix.answers.site import loads, reports
from matrix.answers.site.failures import errors_of, findings
from matrix.answers.site.loads import DIRECTIONS, IN, OUT, Load, PlannedTests
from matrix.answers.site.question import compared_question, registered
from matrix.answers.site.ranking import ENDS, capacity
from matrix.answers.site.reports import Report, partners_of
from matrix.answers.site.site_now import SiteNow, site_now
from matrix.pages import failing_endpoints
from matrix.pages.base import QueryPage
from matrix.pages.compare import compare_control
from matrix.pages.controls import bounds_of, filter_chips, resized, size_choices, window_choices
from matrix.pages.events.part import EventsPart
from matrix.pages.note_lines import COMPARE_SINCE, note_lines, since_url
from matrix.pages.share import ChatCard, Share
from matrix.pages.site.comparison import changed_since, compared_end, comparison_part
from matrix.pages.site.inside import insides_of
from matrix.pages.site.names import ShortNames
from matrix.pages.site.partner_rows import strips
from matrix.pages.site.sides import SiteSide, side_of
from matrix.pages.site.together import drift_of, effect_lines
from matrix.pages.site_work.part import site_work
from matrix.pages.time_strip import strip_for
from matrix.plots.site_ends import end_figures, histories_drawn, is_of_rates
from matrix.query.addresses import address, causes_url, link_url, matrix_url, table_url
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.store import downtimes, notes, profiles
from matrix.store.data_version import DataVersion
from sonar.models import Annotation, Downtime, Endpoint, Site
from sonar.notation.windows import format_window
from sonar.obstacles.catalogue import BY_NAME
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.results.circuits import open_circuits

# What is slow or fast against its peers is coloured as what is so against its usual.
PEER_COLOURS = {"slow": "slower", "fast": "faster"}
REASONS = {name: obstacle.label or name for name, obstacle in BY_NAME.items()}


@dataclass(frozen=True)
class SitePage(QueryPage):
    site: Site

    template = "site.html"
    nav = "sites"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(compared_question(params), registered(path["name"]))

    def path(self) -> str:
        return address("site", self.site.name)

    def share(self) -> Share:
        """Return what the call of the report has, and the pictures of both ends."""
        path = address("api-site", self.site.name)
        share = Share.of(self.query.url(path))
        for end in reversed(ENDS):
            share = share.drawing(self.query.url(path, end=end), f"Figure as {end},")
        return share

    def card(self, report: Report, news: str) -> ChatCard:
        title = f"{self.site.name}, {self.query.size} files, {self.query.window_words()}"
        path = address("site-preview", self.site.name)
        return ChatCard.of(self, path, title, news, simulated=report.links.simulated)

    def links_to(self, sizes: Sequence[str]) -> list[tuple[str, str]]:
        """Return the beginning of a sentence on these size classes, each with its view."""
        return [
            (size if at else capfirst(size), self.asking(resized(self.query, size)).url())
            for at, size in enumerate(sizes)
        ]

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        report = reports.build(self.site.name, self.query, now)
        plan = loads.plan_for([endpoint.id for endpoint in report.endpoints])
        circuits = open_circuits().filter(endpoint__site=self.site)
        endpoints = endpoint_lines(self, plan)
        notes_on_site = notes.on_site(self.site, report.window, reader)
        declared = downtimes.of_site(self.site, report.window, now)
        own = self.query.replace(filters=(Filter("site", self.site.name), *self.query.filters))
        return {
            "site": self.site,
            "capacity": capacity(self.site.wan_gbit_s) if self.site.wan_gbit_s else None,
            "query": self.query,
            "window_words": self.query.window_words(),
            "sizes": size_choices(self),
            "windows": window_choices(self),
            "bounds": bounds_of(self, report.window),
            "chips": filter_chips(self),
            "compare": compare_control(self, report.window, profiles.read(), list(report.sites)),
            "own_matrix_url": matrix_url(own),
            "own_table_url": table_url(own.replace(size=MatrixQuery.size)),
            "notes": note_lines(self, notes_on_site, now),
            "may_note": roles.may(reader, notes.WRITE, [self.site.id]),
            "work": site_work(self.site, reader, now),
            "is_paused": self.site.is_paused(now),
            "is_quiet": self.site.is_quiet(now),
            # As who wrote a note: for who is logged in.
            "paused_by": reader.is_authenticated and self.site.paused_by,
            "downtimes": [downtime for downtime in declared if downtimes.is_soon(downtime, now)],
            # Its ends that are tested thinly, as their tests keep failing.
            "failing": failing_endpoints.notices(
                list(circuits.select_related("endpoint__site")), now
            ),
            "endpoints": endpoints,
            "tagged": any(line.endpoint.tags for line in endpoints),
            "plan": plan,
            "waiting": [(REASONS.get(reason, reason), *rest) for reason, *rest in plan.waiting()],
            "running": plan.probes("running"),
            "queued": plan.probes("queued"),
            "costs": [cost(plan, report, end, self.site.wan_gbit_s) for end in ENDS],
            "strip": strip_for(self, report.window, now, [Filter("site", self.site.name)]),
            "share": self.share(),
            **results_of(self, report, notes_on_site, declared, now),
            **errors_of(report),
            "insides": insides_of(report),
            "diagnoses": [
                (line, link_url(line.source, line.destination, self.query))
                for line in site_diagnosis.of_site(report, now)
            ],
            "longest_url": self.asking(self.query.replace(window="90d")).url(),
        }


def results_of(
    page: SitePage,
    report: Report,
    notes_on_site: Sequence[Annotation],
    declared: Sequence[Downtime],
    now: datetime,
) -> dict[str, Any]:
    names = ShortNames.of(report.all_endpoints)
    window, site_is = report.window, site_now(report, notes_on_site, now, names.sites)
    events = EventsPart.of_site(report, now)
    figures = end_figures(report, site_is, declared, notes_on_site, events.events)
    sides = sides_of(page, report, site_is, names, figures)
    sent, received = sides
    classes = [
        line for side in sides for line in side.lines if line.standing.ok + line.standing.failed
    ]
    cause = of_site(report.sites[report.query.size], page.site.name)
    return {
        "report": report,
        "window": window,
        "window_times": format_window(window),
        "verdict": site_is.verdict,
        "card": page.card(report, site_is.verdict.news),
        "since_link": since_link(page, site_is, now),
        "cause": cause,
        "cause_kind": PEER_COLOURS.get(cause.kind, cause.kind),
        "causes_url": causes_url(page.query),
        "other_classes": [
            (classes.words, page.links_to(classes.sizes)) for classes in site_is.verdict.others
        ],
        "sides": sides,
        "short_name": names.site(page.site.name),
        "short_sites": names.sites,
        "short_ends": names.endpoints,
        "links": sum(side.figures.links for side in sides),
        "left_out": sum(side.left_out for side in sides),
        "strips": strips(sent.rows, received.rows, names),
        "effects": effect_lines(page, site_is.effects, now),
        "events": events,
        "comparison": comparison_part(page.query, page.site.name, site_is.comparisons, now, names),
        "results": bool(classes),
        "results_of_class": any(line.chosen for line in classes),
        "findings": findings(report),
        "partners": partners_of(report),
    }


def sides_of(
    page: SitePage,
    report: Report,
    site_is: SiteNow,
    names: ShortNames,
    figures: Mapping[str, dict[str, Any]],
) -> list[SiteSide]:
    """Return the site as source and as destination; before anything is usual, with its rates."""
    sides, histories = [], histories_drawn(site_is)
    for end in ENDS:
        links = site_is.links[end]
        compared = compared_end(report, links, site_is.comparisons.get(end), names)
        side = side_of(
            report,
            page.site,
            end,
            links=links,
            history=histories[end],
            figure=figures[end],
            names=names,
            is_of_rates=is_of_rates(site_is),
        )
        drift = None if compared else drift_of(page, site_is.drift, end)
        sides.append(replace(side, compared=compared, drift=drift))
    return sides


def since_link(page: SitePage, site_is: SiteNow, now: datetime) -> tuple[str, str] | None:
    """Return where the links that changed are compared with the time before the first did."""
    since = changed_since(site_is)
    if since is None or page.query.compare:
        return None
    return COMPARE_SINCE, since_url(page, since, now)


@dataclass(frozen=True)
class Cost:
    """What is planned at one end of the site's links, and what it takes.

    ``at_once`` is how many tests run on average, ``of_capacity`` the share of the WAN.
    """

    load: Load
    at_once: float
    of_capacity: float


def cost(plan: PlannedTests, report: Report, end: str, wan_gbit_s: float | None) -> Cost:
    load = plan.of_direction(DIRECTIONS[end])
    means = {size: standing.mean for size, standing in report.standings(end).items()}
    share = load.rate_mb_s / capacity(wan_gbit_s) if wan_gbit_s else math.nan
    return Cost(load, plan.at_once(end, means), share)


@dataclass(frozen=True)
class EndpointLine:
    """An endpoint with what is planned for it, and the page of its row and column.

    ``of_budget`` is which share of its budget of bytes a day the plan takes.
    """

    endpoint: Endpoint
    load: Load
    running_out: int
    running_in: int
    url: str
    of_budget: float | None


def endpoint_lines(page: SitePage, plan: PlannedTests) -> list[EndpointLine]:
    query, lines = page.query, []
    for endpoint in Endpoint.objects.filter(site=page.site):
        load, budget = plan.of_endpoint(endpoint.id), endpoint.budget_bytes_per_day
        filters = Filter("endpoint", endpoint.name), *query.filters
        line = EndpointLine(
            endpoint,
            load,
            running_out=plan.running(endpoint.id, OUT),
            running_in=plan.running(endpoint.id, IN),
            url=matrix_url(query.replace(filters=filters)),
            of_budget=load.bytes_per_day / budget if budget else None,
        )
        lines.append(line)
    return lines
