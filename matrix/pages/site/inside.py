"""What happens inside the transfers to and from a site."""

from __future__ import annotations

from matrix.answers import inside
from matrix.answers.site.reports import Report
from matrix.pages.inside import InsidePart, part_of
from matrix.query.filters import Filter

TITLES = {"destination": "Inside transfers to {}", "source": "Inside transfers from {}"}


def insides_of(report: Report) -> list[tuple[str, InsidePart]]:
    """Return a title and a part for each direction that has samples. Two SQL queries."""
    parts = []
    for end, title in TITLES.items():
        ends = [Filter(f"{end}_site", report.name)]
        answer = inside.read(report.query, report.window, report.all_endpoints, ends, [report.name])
        if part := part_of(answer, f"-{end}"):
            parts.append((title.format(report.name), part))
    return parts
