"""The diagnoses of the slowest links of a site, and of those that fail."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from matrix.answers.conditions import reading
from matrix.answers.conditions.reading import Judgement
from matrix.answers.diagnosis import evidence
from matrix.answers.diagnosis.evidence import SLOW, Diagnosis, DirectedLink
from matrix.answers.diagnosis.rules import FEWEST_FAILURES, diagnose
from matrix.answers.link import samples
from matrix.answers.link.link_profiles import profiles_of, without_sweeps
from matrix.answers.link.overhead import overhead_of
from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.ordering import sweeps
from matrix.answers.site.reports import Report
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.cells.standing import LEVELS, SLOWER
from matrix.statistics.cells.states import PARTLY_FROM
from matrix.statistics.transfers.evidence import medians_of
from matrix.store import registry
from sonar.models import Condition, SizeClass

# So many links are looked at; the page of each has all that is said of it.
MOST_LINKS = 5
MOST_OF_PAIRS = 3


@dataclass(frozen=True)
class DiagnosedLink:
    """A link by the names of its ends, and the strongest that is said of it."""

    source: str
    destination: str
    diagnosis: Diagnosis


def diagnosed_links(report: Report, judgement: Judgement, now: datetime) -> list[DiagnosedLink]:
    """Diagnose the links of a site that are the slowest or fail, in the order of candidates().

    ``judgement`` has the conditions that links of the site are members of. The number of SQL
    queries does not depend on the data, but for a site without such links, which takes fewer.
    """
    links = grid.build(evidence.beside_query(report.query), now)
    return diagnosed(candidates(links, report), links, judgement.conditions, now)


def diagnosed(
    chosen: Sequence[DirectedLink], links: Grid, conditions: Sequence[Condition], now: datetime
) -> list[DiagnosedLink]:
    """Diagnose some links of a matrix of endpoints; without any it takes no query."""
    if not chosen:
        return []
    pairs = [(link.source.id, link.destination.id) for link in chosen]
    filters = links.query.filters
    results = samples.read_links(pairs, links.window, filters, sweeps=True)
    profiles, classes = profiles_of(results), dict(SizeClass.objects.values_list("name", "id"))
    newest = sweeps.with_streams(pairs, now)
    sites = {end.site for link in chosen for end in (link.source, link.destination)}
    capacities = evidence.nominal_capacities(sites)
    lines = []
    for link, pair in zip(chosen, pairs, strict=True):
        tests = results.of_link(link.source, link.destination)
        own = without_sweeps(tests, profiles, filters)
        by_class = [(name, own.of_class(size_class)) for name, size_class in classes.items()]
        of_link = evidence.link_evidence(
            replace(link, conditions=conditions),
            links,
            tests,
            own.of_class(classes[link.size]),
            profiles,
            tests=tests.of_class(classes[link.size]),
            reports=[each for each in newest if each.ends == pair],
            capacities=capacities,
            overhead=overhead_of(by_class),
        )
        ends = link.source.name, link.destination.name
        lines += [DiagnosedLink(*ends, first) for first in diagnose(of_link)[:1]]
    return lines


def of_pairs(pairs: Iterable[tuple[str, str]], links: Grid, now: datetime) -> list[DiagnosedLink]:
    """Diagnose the first of some links that a matrix has; what repeats another is left out."""
    endpoints = {end.name: end for end in registry.read_places(registry.read_versions())}
    ends = links.sources, links.destinations
    rows, columns = ({group.name: at for at, group in enumerate(end)} for end in ends)
    cells = [
        (rows[source], columns[destination])
        for source, destination in pairs
        if source in rows and destination in columns
    ]
    chosen = [directed(links, row, column, endpoints) for row, column in cells[:MOST_OF_PAIRS]]
    if not chosen:
        return []
    moment = reading.state_moment(links.window, now)
    own = reading.of_pairs([(link.source.id, link.destination.id) for link in chosen])
    lines = diagnosed(chosen, links, reading.read_open(moment, own).conditions, now)
    first = {(line.diagnosis.kind, line.diagnosis.evidence): line for line in reversed(lines)}
    return list(reversed(first.values()))


def candidates(links: Grid, report: Report) -> list[DirectedLink]:
    """Return the links of a site to look at: failing ones, then the slowest beside their ends."""
    cells = links.cells
    ends = (links.sources, links.destinations)
    at_row, at_column = (
        np.array([group.site == report.name for group in end], dtype=bool) for end in ends
    )
    is_own = at_row[:, None] | at_column
    rates = evidence.medians(links)
    elsewhere = np.fmax.outer(medians_of(rates), medians_of(rates.T))
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
        directed(links, row, column, endpoints)
        for row, column in (divmod(int(cell), rates.shape[1]) for cell in chosen)
        if looked_at[row, column]
    ]


def directed(
    links: Grid, row: int, column: int, endpoints: Mapping[str, EndpointInfo]
) -> DirectedLink:
    cells = links.cells
    return DirectedLink(
        source=endpoints[links.sources[row].name],
        destination=endpoints[links.destinations[column].name],
        size=links.query.size,
        level=LEVELS[cells.level[row, column]],
        usual=float(cells.usual[row, column]),
        now=float(cells.now[row, column]),
    )
