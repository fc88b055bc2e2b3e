"""What happens inside the transfers to and from a site."""

from __future__ import annotations

from matrix.answers.site.reports import Report
from matrix.answers.site.site_now import inside_of
from matrix.pages.inside import InsidePart, part_of

TITLES = {"destination": "Inside transfers to {}", "source": "Inside transfers from {}"}


def insides_of(report: Report) -> list[tuple[str, InsidePart]]:
    """Return a title and a part for each direction that has samples. Two SQL queries."""
    parts = []
    for end, title in TITLES.items():
        if part := part_of(inside_of(report, end), f"-{end}"):
            parts.append((title.format(report.name), part))
    return parts
