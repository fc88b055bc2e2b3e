"""The report on a site as the API answers it."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from matrix.answers.site import loads
from matrix.answers.site.failures import Failures, errors_of
from matrix.answers.site.loads import IN, OUT, Load, PlannedTests
from matrix.answers.site.patterns import findings
from matrix.answers.site.ranking import ENDS, Standing
from matrix.answers.site.reports import Report, ReportCell
from matrix.api.registry.sites import NewSite
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.rounding import rounded
from sonar.models import Site
from sonar.windows import Window, format_time

Json = dict[str, Any]


def of_report(report: Report, site: Site) -> Json:
    endpoints = report.endpoints
    plan = loads.plan_for([endpoint.id for endpoint in endpoints])
    errors = errors_of(report)
    return {
        "query": echo(report.query, report.window),
        "unit": "MB/s",
        "simulated": report.links.simulated,
        "site": of_site(site),
        "endpoints": [endpoint.name for endpoint in endpoints if not endpoint.retired],
        "retired_endpoints": [endpoint.name for endpoint in endpoints if endpoint.retired],
        **{f"as_{end}": of_end(report, end, site) for end in ENDS},
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
    return {name: getattr(site, name) for name in NewSite.model_fields}


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
    }


def number(value: float) -> float | None:
    return None if math.isnan(value) else float(rounded(np.asarray(value)))


def time(unix: float) -> str | None:
    moment = None if math.isnan(unix) else datetime.fromtimestamp(unix, UTC)
    return format_time(moment) if moment else None
