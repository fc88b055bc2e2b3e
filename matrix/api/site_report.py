"""The report on a site as the API answers it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from matrix.answers.causes import words
from matrix.answers.site import inside, loads
from matrix.answers.site.failures import Failures, errors_of
from matrix.answers.site.history import RatioSeries
from matrix.answers.site.loads import IN, OUT, Load, PlannedTests
from matrix.answers.site.patterns import findings
from matrix.answers.site.ranking import ENDS, Standing
from matrix.answers.site.reports import Report, ReportCell
from matrix.answers.site.site_links import EndFigures, SiteLink, figures_of
from matrix.answers.site.site_now import ComparedEnds, NoteEffect, SiteNow
from matrix.api.compared import of_together
from matrix.api.inside_figures import of_inside
from matrix.api.numbers import number, time
from matrix.api.registry.sites import NewSite, of_testing
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Site
from sonar.notation.windows import Window, format_time

Json = dict[str, Any]


def of_report(report: Report, site: Site, site_is: SiteNow) -> Json:
    endpoints = report.endpoints
    plan = loads.plan_for([endpoint.id for endpoint in endpoints])
    errors = errors_of(report)
    peers = words.of_site(report.sites[report.query.size], report.name)
    return {
        "query": echo(report.query, report.window),
        "unit": "MB/s",
        "simulated": report.links.simulated,
        "site": of_site(site),
        "endpoints": [endpoint.name for endpoint in endpoints if not endpoint.retired],
        "retired_endpoints": [endpoint.name for endpoint in endpoints if endpoint.retired],
        "verdict": {"kind": site_is.verdict.kind, "sentence": site_is.verdict.sentence},
        "against_peers": {"kind": peers.kind, "sentence": peers.sentence},
        **{
            f"as_{end}": of_end(report, end, site)
            | of_links(site_is, end)
            | {"inside": of_inside(inside.of_end(report, end))}
            for end in ENDS
        },
        "notes": [of_effect(effect) for effect in site_is.effects],
        "drift": of_sides(site_is.drift) if site_is.drift else None,
        "findings": [asdict(finding) for finding in findings(report)],
        "errors": [of_failures(failures) for failures in errors["errors"]],
        "errors_total": errors["errors_total"],
        "planned": of_plan(plan),
    }


def of_end(report: Report, end: str, site: Site) -> Json:
    standings = report.standings(end)
    return {
        "classes": {size: of_standing(standing, site) for size, standing in standings.items()},
        "cells": [of_cell(cell) for cell in report.cells(end)],
        "worst": [of_cell(cell) for cell in report.worst(end)],
        "failing": [of_cell(cell) for cell in report.failing(end)],
    }


def of_links(site_is: SiteNow, end: str) -> Json:
    """Return the figures, the links with their sizes, and the line over time of one end."""
    links, history = site_is.links[end], site_is.histories[end]
    return {
        "figures": of_figures(figures_of(links)),
        "links": [
            of_link(link, *sizes) for link, sizes in zip(links, history.sizes(), strict=True)
        ],
        "over_time": of_series(history.series),
    }


def of_figures(figures: EndFigures) -> Json:
    return {
        "links": figures.links,
        "sites": figures.sites,
        "now_mb_s": number(figures.now),
        "usual_mb_s": number(figures.usual),
        "ratio": number(figures.ratio),
        "failing": figures.failing,
        "slower": figures.slower,
        "faster": figures.faster,
        "tested": figures.tested,
        "ok": figures.ok,
        "failed": figures.failed,
        "success": number(figures.success),
    }


def of_link(link: SiteLink, size_mean: float, size_std: float) -> Json:
    return {
        "source": link.source,
        "destination": link.destination,
        "partner": link.partner,
        "state": link.state,
        "partly_failing": link.partly,
        "level": link.level,
        "now_mb_s": number(link.now),
        "usual_mb_s": number(link.usual),
        "ratio": number(link.ratio),
        "since": time(link.since),
        "streak": link.streak,
        "mean_mb_s": number(link.mean),
        "std_mb_s": number(link.std),
        "size_mean_bytes": number(size_mean),
        "size_std_bytes": number(size_std),
        "ok": link.ok,
        "failed": link.failed,
        "last": time(link.last),
    }


def of_series(series: RatioSeries) -> Json:
    """Return a line over time; a bucket without any test is left out."""
    return {
        "bucket": series.bucket,
        "points": [
            {
                "start": time(float(series.starts[at])),
                "links": int(series.links[at]),
                "ratio_low": number(float(series.low[at])),
                "ratio_median": number(float(series.median[at])),
                "ratio_high": number(float(series.high[at])),
                "ok": int(series.ok[at]),
                "failed": int(series.failed[at]),
            }
            for at in np.flatnonzero(series.ok + series.failed).tolist()
        ],
    }


def of_effect(effect: NoteEffect) -> Json:
    return {
        "id": effect.note.id,
        "text": effect.note.text,
        "starts_at": format_time(effect.note.starts_at),
        **of_sides(effect),
    }


def of_sides(compared: ComparedEnds) -> Json:
    """Return two windows and, by end, what all links have in common."""
    sides = compared.sides
    windows = {"after": sides.own, "before": sides.other}
    bounds = {
        name: {"start": format_time(window.start), "end": format_time(window.end)}
        for name, window in windows.items()
    }
    return bounds | {f"as_{end}": of_together(compared.ends[end]) for end in ENDS}


def of_standing(standing: Standing, site: Site) -> Json:
    return {
        "mean_mb_s": number(standing.mean),
        "cells": standing.cells,
        "ok": standing.ok,
        "failed": standing.failed,
        "success": number(standing.success),
        "last": time(standing.last),
        "rank": standing.rank,
        "ranked": standing.ranked,
        "peers_median_mb_s": number(standing.peers_median),
        "ratio": number(standing.to_peers),
        "fastest_mb_s": number(standing.fastest),
        "fastest_partner": standing.fastest_partner or None,
        "fastest_of_wan": number(standing.of_capacity(site.wan_gbit_s)),
    }


def of_failures(failures: Failures) -> Json:
    return {
        "where": failures.where,
        "error": failures.error,
        "count": failures.count,
        "links": failures.links,
        "first": format_time(failures.first),
        "last": format_time(failures.last),
        "newest": str(failures.newest),
    }


def of_plan(plan: PlannedTests) -> Json:
    return {
        OUT: of_load(plan.of_direction(OUT)),
        IN: of_load(plan.of_direction(IN)),
        "meshes": [
            {"mesh": mesh, "size": size, OUT: of_load(out), IN: of_load(into)}
            for mesh, size, out, into in plan.lines()
        ],
        "waiting": {reason: count for reason, count, _ in plan.waiting()},
        "queued": plan.probes("queued"),
        "running": plan.probes("running"),
    }


def of_load(load: Load) -> Json:
    return asdict(load) | {"rate_mb_s": number(load.rate_mb_s)}


def echo(query: MatrixQuery, window: Window) -> Json:
    """Say what was asked, as the answer of matrix/ does."""
    own = ("from", "to", "rows", "columns", "stat")
    params = {name: texts for name, texts in query.to_params().items() if name not in own}
    return params | {
        "size": query.size,
        "window": query.window or None,
        "start": format_time(window.start),
        "end": format_time(window.end),
    }


def of_site(site: Site) -> Json:
    times = of_testing(site)
    others = [name for name in NewSite.model_fields if name not in times]
    return {name: getattr(site, name) for name in others} | times


def of_cell(cell: ReportCell) -> Json:
    return {
        "source": cell.source,
        "destination": cell.destination,
        "mean_mb_s": number(cell.mean),
        "std_mb_s": number(cell.std),
        "ok": cell.ok,
        "failed": cell.failed,
        "last": time(cell.last),
        "state": cell.state,
        "level": cell.level,
        "now_mb_s": number(cell.now),
        "usual_mb_s": number(cell.usual),
        "since": time(cell.since),
    }
