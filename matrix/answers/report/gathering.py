"""Gathers the figures of a report: of each size class, events and downtimes."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from django.db.models import Q

from matrix.answers.causes import change_causes
from matrix.answers.causes.attribution import attribute
from matrix.answers.comparison.all_links import grid_together
from matrix.answers.events import reading
from matrix.answers.matrix import grid, standing
from matrix.answers.report.figures import ClassFigures, GridFigures, ReportFigures
from matrix.answers.report.question import ReportQuestion
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.samples.run import FAILED_BIT, Run
from matrix.store import data_version, downtimes, incidents, registry, runs
from matrix.store.data_version import DataVersion
from sonar.models import Incident
from sonar.notation.windows import Window


def version(question: ReportQuestion) -> DataVersion:
    """Return what changes whenever the report may, for one small SQL statement."""
    window = question.period.window
    first = standing.reach(question.period.before.window).start
    present = data_version.read(None, Window(first, window.end))
    return present.of_question(question)


def build(question: ReportQuestion) -> ReportFigures:
    """Read and compute all of it; the number of SQL queries grows with that of size classes."""
    plan = registry.read_versions()
    places = registry.read_places(plan)
    sizes, window = reading.size_names(), question.period.window
    links = LinkIndex(places)
    allowed = links.matching(question.filters).reshape(links.shape)
    every = reading.read(window, places, question.filters, as_at_end=True)
    events = [event for event in every if event.is_certain]
    scope = question.scope.items()
    sites = {place.site for place in places if all(place.has(*each) for each in scope)}
    declared = downtimes.declared(downtimes.within(window.start, window.end))
    return ReportFigures(
        question,
        places,
        [class_figures(question, size, links, allowed, plan) for size in sizes],
        [event for event in events if window.start <= event.at],
        [event for event in events if event.at < window.start],
        [downtime for downtime in declared if downtime.site_name in sites],
        called(window, sites, whole=not scope),
    )


def called(window: Window, sites: Set[str], *, whole: bool) -> list[Incident]:
    """Return what people were called for, of these sites or of all, the newest first."""
    rows = incidents.rows().filter(
        Q(closed_at=None) | Q(closed_at__gt=window.start),
        opened_at__lt=window.end,
        merged_into=None,
    )
    if not whole:
        rows = rows.filter(incidents.of_sites(sorted(sites)))
    return list(rows.order_by("-began_at", "-id"))


def class_figures(
    question: ReportQuestion, size: str, links: LinkIndex, allowed: Flags, plan: DataVersion
) -> ClassFigures:
    """Compute the figures of a size class; ``allowed`` links are of shape (places, places)."""
    window, before = question.period.window, question.period.before.window
    query = question.query(size, compared=True)
    compared = grid.build(query, window.end)
    earlier = grid.build(question.query(size).during(before), before.end)
    every = registry.read_promises(query, links, plan).reshape(links.shape)
    planned = np.isfinite(every) & allowed
    results = runs.read(size, window, (), sizes=True)
    return ClassFigures(
        size,
        compared,
        GridFigures.of(compared),
        GridFigures.of(earlier),
        grid_together(compared, window.end),
        planned=int(planned.sum()),
        tested=int((planned & (links.numbering.newest(results) > 0)).sum()),
        volume=sum(bytes_of(run, links, allowed) for run in results),
        causes=change_causes.build(attribute(compared)).named,
    )


def bytes_of(run: Run, links: LinkIndex, allowed: Flags) -> int:
    """Return how many bytes the successful tests of ``allowed`` links moved."""
    if run.sizes is None:
        raise ValueError("runs with sizes are needed to say how much was moved")
    counts = np.pad(allowed, (0, 1)).ravel()[links.numbering.numbers(run.keys)]
    return int(run.sizes[counts & ((run.keys & FAILED_BIT) == 0)].sum())
