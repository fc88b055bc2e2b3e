"""The diagnoses of the slowest links of a site, and of those that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers import grid
from matrix.answers.diagnosis import evidence
from matrix.answers.diagnosis.diagnosis import diagnose
from matrix.answers.diagnosis.evidence import SLOW, DirectedLink
from matrix.answers.diagnosis.failing_pattern import FEWEST as FEWEST_FAILURES
from matrix.answers.diagnosis.link_diagnosis import beside
from matrix.answers.diagnosis.rule import Diagnosis
from matrix.answers.diagnosis.streams import disobeyed, of_experiments
from matrix.answers.experiments import report as experiments
from matrix.answers.grid import Grid
from matrix.answers.inside import lowest
from matrix.answers.link import samples
from matrix.answers.link.link_profiles import counted, profiles_of
from matrix.answers.link.overhead import ClassSample, Overhead, overhead_of
from matrix.answers.link.samples import Results
from matrix.answers.site.reports import Report
from matrix.statistics.arrays import Floats
from matrix.statistics.cells.standing import LEVELS, SLOWER
from matrix.statistics.cells.states import PARTLY_FROM
from sonar.models import SizeClass

# So many links are looked at; the page of each has all that is said of it.
MOST_LINKS = 5


@dataclass(frozen=True)
class DiagnosedLink:
    """A link by the names of its ends, and the strongest that is said of it."""

    source: str
    destination: str
    diagnosis: Diagnosis


def of_site(report: Report, now: datetime) -> list[DiagnosedLink]:
    """Diagnose the links of a site that are the slowest or fail, in the order of candidates().

    They lack what is within transfers and the texts of errors. The number of SQL queries does not
    depend on the data, but for a site without such links, which takes fewer.
    """
    links = grid.build(beside(report.query), now)
    slow = candidates(links, report)
    if not slow:
        return []
    pairs = [(link.source.id, link.destination.id) for link in slow]
    filters = report.query.filters
    results = samples.of_links(pairs, report.window, filters, experiments=True)
    profiles, classes = profiles_of(results), dict(SizeClass.objects.values_list("name", "id"))
    newest = experiments.with_streams(pairs, now)
    sites = {end.site for link in slow for end in (link.source, link.destination)}
    capacities = evidence.nominal_capacities(sites)
    lines = []
    for link, pair in zip(slow, pairs, strict=True):
        tests = results.of_link(link.source, link.destination)
        own = counted(tests, profiles, filters)
        of_pair = [
            each
            for each in newest
            if (each.experiment.source_id, each.experiment.destination_id) == pair
        ]
        ends = (link.source.site, link.destination.site)
        said = diagnose(
            evidence.of_link(
                link,
                links,
                tests,
                own.of_class(classes[link.size]),
                profiles,
                tests=tests.of_class(classes[link.size]),
                overhead=line_of(own, classes),
                streams=of_experiments(of_pair),
                disobeyed=disobeyed(of_pair, link.size),
                nominal=lowest({site: capacities[site] for site in ends if site in capacities}),
            )
        )
        lines += [
            DiagnosedLink(link.source.name, link.destination.name, first) for first in said[:1]
        ]
    return lines


def candidates(links: Grid, report: Report) -> list[DirectedLink]:
    """Return the links of a site to look at: failing ones, then the slowest beside their ends."""
    cells = links.cells
    ends = (links.sources, links.destinations)
    at_row, at_column = (
        np.array([group.site == report.name for group in end], dtype=bool) for end in ends
    )
    is_own = at_row[:, None] | at_column
    rates = evidence.medians(links)
    elsewhere = np.fmax.outer(middles(rates), middles(rates.T))
    is_slower = cells.level == SLOWER
    against_usual = np.divide(cells.now, cells.usual, out=np.ones(rates.shape), where=is_slower)
    ratio = np.fmin(rates / elsewhere, against_usual)
    tests = cells.ok + cells.failed
    fails = (cells.failed >= FEWEST_FAILURES) & (cells.failed >= PARTLY_FROM * tests)
    looked_at = is_own & (fails | (ratio <= SLOW) | is_slower)
    badness = np.where(fails, 1 + cells.failed / np.maximum(tests, 1), 1 - ratio)
    order = np.where(looked_at, -badness, np.inf)
    chosen = np.argsort(order, axis=None, kind="stable")[:MOST_LINKS]
    endpoints = {endpoint.name: endpoint for endpoint in report.all_endpoints}
    return [
        DirectedLink(
            source=endpoints[links.sources[row].name],
            destination=endpoints[links.destinations[column].name],
            size=report.query.size,
            level=LEVELS[cells.level[row, column]],
            usual=float(cells.usual[row, column]),
            now=float(cells.now[row, column]),
        )
        for row, column in (divmod(int(cell), rates.shape[1]) for cell in chosen)
        if looked_at[row, column]
    ]


def middles(rates: Floats) -> Floats:
    """Return the median of each row, NaN for none."""
    rows = (row[row > 0] for row in rates)
    return np.array([np.median(row) if row.size else np.nan for row in rows])


def line_of(results: Results, classes: Mapping[str, int]) -> Overhead | None:
    """Fit the line of overhead and bandwidth through all size classes."""
    done = results.taken(results.ok)
    by_class: Sequence[tuple[str, Results]] = [
        (name, done.of_class(key)) for name, key in classes.items()
    ]
    return overhead_of([ClassSample(name, each.bytes, each.rates) for name, each in by_class])
