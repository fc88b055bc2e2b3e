"""The site page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from django.conf import settings
from django.http import QueryDict
from django.utils.text import capfirst

from matrix.answers import other_origins
from matrix.answers.causes.words import site_conclusion
from matrix.answers.comparison import all_links
from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KINDS
from matrix.answers.diagnosis import site_diagnosis
from matrix.answers.incidents.target_counts import below_of
from matrix.answers.site import loads, reports
from matrix.answers.site.failures import errors_of
from matrix.answers.site.overview import compared_question, registered
from matrix.answers.site.reports import ENDS, Report, capacity, partners_of
from matrix.answers.site.site_now import EndComparison, SiteNow, beyond_words, inside_of, site_now
from matrix.answers.site.verdict import VERBS
from matrix.pages.base import QueryPage
from matrix.pages.parts.controls import compare_control, question_controls, resized
from matrix.pages.parts.events import EventsPart
from matrix.pages.parts.incidents import IncidentsOf, of_site
from matrix.pages.parts.notes import COMPARE_SINCE, around_url, note_lines, since_url
from matrix.pages.parts.notices import about_others, failures_in_a_row
from matrix.pages.parts.share import ChatCard, Share
from matrix.pages.parts.time_strip import strip_for
from matrix.pages.parts.transfers import inside_part
from matrix.pages.site.sides import MOST_FIRST, WORDS, ShortNames, side_of, strips
from matrix.pages.site.work_forms import site_work
from matrix.pages.site.written_rows import both_directions
from matrix.plots.site import end_figures, histories_drawn, is_of_rates
from matrix.query.addresses import address, causes_url, link_url, matrix_url, table_url
from matrix.query.catalogue import VS_TARGET
from matrix.query.comparison import CUSTOM, Comparison
from matrix.query.filters import Filter, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.store import downtimes, notes, profiles
from matrix.store.data_version import DataVersion
from sonar.models import Annotation, Condition, Downtime, Endpoint, Site
from sonar.notation.windows import format_window
from sonar.obstacles.catalogue import BY_NAME
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.results.circuits import open_circuits

REASONS = {name: obstacle.label or name for name, obstacle in BY_NAME.items()}


@dataclass(frozen=True)
class SitePage(QueryPage):
    site: Site

    template = "site.html"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(compared_question(params), registered(path["name"]))

    def path(self) -> str:
        return address("site", self.site.name)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        site, query = self.site, self.query
        report = reports.build(site.name, query, now)
        plan = loads.plan_for([endpoint.id for endpoint in report.endpoints])
        because = plan.because(now)
        circuits = open_circuits().filter(endpoint__site=site)
        rows = list(Endpoint.objects.listed().filter(site=site).select_related("paused_by"))
        endpoints = []
        for row in rows:
            load, budget = plan.of(endpoint=row.id), row.budget_bytes_per_day
            line = {
                "endpoint": row,
                "load": load,
                "running_out": plan.running(row.id, loads.OUT),
                "running_in": plan.running(row.id, loads.IN),
                "url": address("endpoint", site.name, row.name),
                # Which share of its budget of bytes a day the plan takes.
                "of_budget": load.bytes_per_day / budget if budget else None,
            }
            endpoints.append(line)
        notes_on_site = notes.on_site(site, report.window, reader)
        declared = notes.downtimes_of(site, report.window, now)
        choices, own_filter = profiles.read(), Filter("site", site.name)
        own = query.replace(filters=(own_filter, *query.filters))
        api_url = address("api-site", site.name)
        share = Share.of(query.url(api_url))
        for end in reversed(ENDS):
            share = share.drawing(query.url(api_url, end=end), f"Plot of the site as {end},")
        return {
            **question_controls(self, report.window),
            "site": site,
            "capacity": capacity(site.wan_gbit_s) if site.wan_gbit_s else None,
            "window_words": query.window_words(),
            "compare": compare_control(self, report.window, choices, report.sites),
            "other_origins": about_others(
                query,
                lambda question: self.asking(question).url(),
                other_origins.of_grid(report.links) if choices.have_others else other_origins.NONE,
            ),
            "own_matrix_url": matrix_url(own),
            "own_table_url": table_url(own.replace(size=MatrixQuery.size)),
            "below": below_of(report),
            "targets_url": matrix_url(own.replace(stat=VS_TARGET.name, compare=None)),
            "notes": note_lines(self, notes_on_site, now),
            "may_note": roles.may(reader, notes.WRITE, [site.id]),
            "work": site_work(site, reader, now),
            "paused": [
                row
                for row in (site, *rows)
                if row.is_paused(now) and not getattr(row, "retired_at", None)
            ],
            "is_quiet": site.is_quiet(now),
            "downtimes": downtimes.declared(
                downtime for downtime in declared if notes.is_soon(downtime, now)
            ),
            # Evidence of what fails; the verdict has the conditions.
            "failing": failures_in_a_row(circuits.select_related("endpoint"), now),
            "endpoints": endpoints,
            "tagged": any(row.tags for row in rows),
            "plan": plan,
            "waiting": [
                (REASONS.get(reason, reason), links, since, because.get(reason, ()))
                for reason, links, since in plan.waiting()
            ],
            "running": plan.probes("running"),
            "queued": plan.probes("queued"),
            "costs": [cost(plan, report, end, site.wan_gbit_s, rows) for end in ENDS],
            "strip": strip_for(self, report.window, now, [own_filter]),
            "share": share,
            **self.results(report, notes_on_site, declared, now),
            **errors_of(report),
            # Of each direction that has samples. Two SQL queries.
            "insides": [
                (f"Inside transfers {WORDS[end]['preposition']} {site.name}", part)
                for end in reversed(ENDS)
                if (part := inside_part(inside_of(report, end), f"-{end}"))
            ],
            "incidents_of": IncidentsOf.read(of_site(site.name), now, reader),
            "longest_url": self.asking(query.replace(window="90d")).url(),
        }

    def results(
        self,
        report: Report,
        notes_on_site: Sequence[Annotation],
        declared: Sequence[Downtime],
        now: datetime,
    ) -> dict[str, Any]:
        query, name = self.query, self.site.name
        names = ShortNames.of(report.all_endpoints)
        called = {**names.endpoints, **names.sites}
        window, site_is = report.window, site_now(report, notes_on_site, now, called)
        judged = site_is.judgement
        events = EventsPart.of(report, report.all_endpoints, now)
        figures = end_figures(
            report, site_is, downtimes.declared(declared), notes_on_site, events.events
        )
        # As source and as destination; before anything is usual, with its rates. `compared` is
        # there if the question compares with something, `drift` if the window is long.
        sides, histories = [], histories_drawn(site_is)
        for end in ENDS:
            compared = compared_end(report, site_is, end, names)
            drift, halves = None, None if compared else site_is.drift
            if halves and halves.ends[end].links:
                factor = all_links.factor_words(halves.ends[end], all_links.AROUND)
                verb = VERBS[end].then
                said = f"Since the middle of this time range, the site has {verb} at {factor}."
                before = Comparison(CUSTOM, halves.sides.other.start, halves.sides.other.end)
                after = query.replace(compare=None).during(halves.sides.own)
                drift = said, self.asking(after.replace(compare=before)).url()
            side = side_of(
                *(report, self.site, end),
                site_is=site_is,
                history=histories[end],
                figure=figures[end],
                names=names,
                is_of_rates=is_of_rates(site_is),
            )
            sides.append(side | {"compared": compared, "drift": drift})
        sent, received = sides
        classes = [
            chosen
            for side in sides
            for _, chosen, standing, _ in side["lines"]
            if standing.ok + standing.failed
        ]
        # Where the links that are slow now, or else fast, are compared with the time before.
        kinds = (Condition.Type.SLOW, Condition.Type.FAST)
        conditions = site_is.verdict.conditions
        slow, fast = ([each.since for each in conditions if each.type == kind] for kind in kinds)
        since = None if query.compare else min(slow or fast, default=None)
        # Each note, the page that compares before it with after it, and what that says by end: what
        # colours it, the factor (empty for no tests), it in words, the tests after it and before.
        effects = []
        for effect in site_is.effects:
            ends = []
            for of_end in (effect.ends[end] for end in reversed(ENDS)):
                texts = ("", "", "")
                if of_end.links:
                    texts = of_end.kind, all_links.factor_alone(of_end), all_links.verdict(of_end)
                ends.append((*texts, of_end.ok, of_end.other_ok))
            url = around_url(self, effect.note.starts_at, now)
            effects.append({"note": effect.note, "url": url, "ends": ends})
        partners = partners_of(report)
        return {
            "report": report,
            "window": window,
            "window_times": format_window(window),
            "verdict": site_is.verdict,
            "diagnoses": [
                (line, link_url(line.source, line.destination, query))
                for line in site_diagnosis.diagnosed_links(report, judged, now)
            ],
            # The verdict itself says what was not assessed lately.
            "assessed": "" if judged.as_of is None or judged.is_late else words.as_of(judged),
            "judges_all": bool(on_profiles(query.filters)),
            "card": ChatCard.of(
                self,
                address("site-preview", name),
                f"{name}, {query.size} files, {query.window_words()}",
                site_is.verdict.news,
                simulated=report.links.simulated,
            ),
            "since_link": since and (COMPARE_SINCE, since_url(self, since, now)),
            "cause": site_conclusion(report.sites[query.size], name),
            "causes_url": causes_url(query),
            # The beginning of a sentence on each of these size classes, with its view.
            "other_classes": [
                (
                    others.words,
                    [
                        (size if at else capfirst(size), self.asking(resized(query, size)).url())
                        for at, size in enumerate(others.sizes)
                    ],
                )
                for others in site_is.verdict.others
            ],
            "sides": sides,
            "short_name": names.site(name),
            "short_ends": names.endpoints,
            "links": sum(side["figures"].links for side in sides),
            "left_out": sum(side["left_out"] for side in sides),
            "strips": strips(sent["rows"], received["rows"], names),
            "effects": effects,
            "events": events,
            "comparison": self.comparison(site_is.comparisons, names.site(name), now),
            "results": bool(classes),
            "results_of_class": any(classes),
            "partners": partners,
            "partner_rows": both_directions(partners, now, names.site(name), names.sites),
        }

    def comparison(
        self, comparisons: Mapping[str, EndComparison], name: str, now: datetime
    ) -> dict[str, Any] | None:
        """Return what the page says of both ends together, None if it compares with nothing."""
        if not comparisons:
            return None
        ends = [comparisons[end] for end in reversed(ENDS)]
        changes = all_links.changes(self.query, now)
        said = [(end.sentence(name), beyond_words(changes, self.site.name, end)) for end in ends]
        return {
            "kind": min((end.kind for end in ends), key=KINDS.index),
            "words": ends[0].words,
            "sentences": [" ".join(filter(None, sentences)) for sentences in said],
        }


def cost(
    plan: loads.PlannedTests,
    report: Report,
    end: str,
    wan_gbit_s: float | None,
    endpoints: Iterable[Endpoint],
) -> dict[str, Any]:
    """Return what is planned at one end of the site's links, and what it takes.

    That is on average how many tests run and which share of the WAN they take; and at the peak,
    when as many run as caps and links allow, each as fast as the fastest one in this window.
    """
    direction, standings = loads.DIRECTIONS[end], report.standings(end)
    load = plan.of(direction=direction)
    means = {size: standing.mean for size, standing in standings.items()}
    planned = {part.size for part in plan.parts if part.direction == direction}
    rates = [standings[size].fastest for size in planned]
    fastest = float(np.fmax.reduce(rates, initial=math.nan))
    cap = "outbound_cap" if direction == loads.OUT else "inbound_cap"
    of_endpoints = sum(
        min(plan.of(direction=direction, endpoint=each.pk).links, getattr(each, cap))
        for each in endpoints
    )
    most = min(of_endpoints, settings.SONAR_IN_FLIGHT)
    of_capacity = 1 / capacity(wan_gbit_s) if wan_gbit_s else math.nan
    return {
        "load": load,
        "at_once": plan.at_once(end, means),
        "share": load.rate_mb_s * of_capacity,
        "most": most,
        "fastest": fastest,
        "peak": most * fastest,
        "peak_share": most * fastest * of_capacity,
    }


def compared_end(
    report: Report, site_is: SiteNow, end: str, names: ShortNames
) -> dict[str, Any] | None:
    """Return the links that differ beyond chance first, coloured by `kind`, then the slowest."""
    links, comparison = site_is.links[end], site_is.comparisons.get(end)
    if comparison is None or report.query.compare is None:
        return None
    is_sure = comparison.ratios.sure.tolist()
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "link": link,
            "url": link_url(link.source, link.destination, report.query),
            "kind": pair.direction if changed else "",
            "pair": pair,
        }
        for link, name, pair, changed in zip(
            links, names.links(links), comparison.pairs, is_sure, strict=True
        )
    ]
    rows.sort(key=lambda row: (not row["kind"], not row["pair"].kind, row["pair"].ratio))
    return {
        "words": comparison.words,
        "of": report.query.compare.of,
        "rows": [row | {"first": at < MOST_FIRST} for at, row in enumerate(rows)],
    }
