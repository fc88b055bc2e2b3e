"""The site page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from django.db.models import Q
from django.http import QueryDict

from matrix.answers.site import loads, reports
from matrix.answers.site.failures import errors_of
from matrix.answers.site.loads import DIRECTIONS, IN, OUT, Load, PlannedTests
from matrix.answers.site.partners import partners_of
from matrix.answers.site.patterns import findings
from matrix.answers.site.question import question, registered
from matrix.answers.site.ranking import ENDS, capacity
from matrix.answers.site.reports import Report
from matrix.pages import failing_endpoints
from matrix.pages.base import QueryPage
from matrix.pages.controls import bounds_of, filter_chips, size_choices, window_choices
from matrix.pages.share import Share
from matrix.pages.site.sides import side_of
from matrix.query.addresses import address, matrix_url, table_url
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.store import notes
from matrix.store.data_version import DataVersion
from sonar import roles
from sonar.circuits import open_circuits
from sonar.models import Downtime, Endpoint, Site
from sonar.roles import Anyone

# Declared downtimes that begin within this time are said.
SOON = timedelta(days=7)


@dataclass(frozen=True)
class SitePage(QueryPage):
    site: Site

    template = "site.html"
    nav = "sites"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(question(params), registered(path["name"]))

    def path(self) -> str:
        return address("site", self.site.name)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        report = reports.build(self.site.name, self.query, now)
        plan = loads.plan_for([endpoint.id for endpoint in report.endpoints])
        circuits = open_circuits().filter(endpoint__site=self.site)
        endpoints = endpoint_lines(self, plan)
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
            "own_matrix_url": matrix_url(own),
            "own_table_url": table_url(own.replace(size=MatrixQuery.size)),
            "notes": notes.on_site(self.site, report.window, reader),
            "may_note": roles.may(reader, notes.WRITE, [self.site.id]),
            "downtimes": downtimes(self.site, now),
            # Its ends that are tested thinly, as their tests keep failing.
            "failing": failing_endpoints.notices(
                list(circuits.select_related("endpoint__site")), now
            ),
            "endpoints": endpoints,
            "tagged": any(line.endpoint.tags for line in endpoints),
            "plan": plan,
            "running": plan.probes("running"),
            "queued": plan.probes("queued"),
            "costs": [cost(plan, report, end, self.site.wan_gbit_s) for end in ENDS],
            "share": Share.of(self.query.url(address("api-site", self.site.name))),
            **results_of(report, self.site),
            **errors_of(report),
            "longest_url": self.asking(self.query.replace(window="90d")).url(),
        }


def results_of(report: Report, site: Site) -> dict[str, Any]:
    sides = [side_of(report, end, site) for end in ENDS]
    lines = [
        line for side in sides for line in side.lines if line.standing.ok + line.standing.failed
    ]
    return {
        "report": report,
        "sides": sides,
        "results": bool(lines),
        "results_of_class": any(line.chosen for line in lines),
        "findings": findings(report),
        "partners": partners_of(report),
    }


def downtimes(site: Site, now: datetime) -> list[Downtime]:
    """Return the declared downtimes of the site or its endpoints, now or soon."""
    of_site = Q(site=site) | Q(endpoint__site=site)
    downtimes = Downtime.objects.filter(of_site, ends_at__gt=now, starts_at__lt=now + SOON)
    return list(downtimes.select_related("endpoint").order_by("starts_at"))


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
