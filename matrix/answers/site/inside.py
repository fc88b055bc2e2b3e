"""What happens inside the transfers to a site, and from it."""

from __future__ import annotations

from matrix.answers import inside
from matrix.answers.inside import InsideTransfers
from matrix.answers.site.reports import Report
from matrix.query.filters import Filter


def of_end(report: Report, end: str) -> InsideTransfers | None:
    """Look into the transfers that have the site at this end. One SQL query."""
    ends = [Filter(f"{end}_site", report.name)]
    return inside.read(report.query, report.window, report.all_endpoints, ends, [report.name])
