"""A report: its figures, a summary of three sentences, and its sections."""

from __future__ import annotations

from math import isnan

import numpy as np
from django.db.models import Q

from matrix.answers.causes import change_causes
from matrix.answers.causes.attribution import attribute
from matrix.answers.comparison.all_links import grid_together, tells_nothing, verdict
from matrix.answers.events import reading
from matrix.answers.events.reading import weight
from matrix.answers.matrix import grid, standing
from matrix.answers.report.figures import ClassFigures, GridFigures, ReportFigures
from matrix.answers.report.parts import PeriodReport
from matrix.answers.report.question import ReportQuestion
from matrix.answers.report.sections import SECTIONS, percent
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import counted, join
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.samples.run import FAILED_BIT
from matrix.store import data_version, downtimes, incidents, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion, snapshot
from sonar.notation.units import format_count, format_factor, three_digits
from sonar.notation.windows import Window, format_minute
from sonar.results import store

WRONG = {"failing": "failing", "slower": "slower than usual"}
SPEEDS = {
    "slower": "slower than in",
    "faster": "faster than in",
    "about the same": "about as fast as in",
    "not significant": "not significantly slower or faster than in",
}


def version(question: ReportQuestion) -> DataVersion:
    """Return what changes whenever the report may, for one small SQL statement."""
    window = question.period.window
    first = standing.reach(question.period.before.window).start
    present = data_version.read(None, Window(first, window.end))
    return present.of_question(question)


def build(question: ReportQuestion, known_version: DataVersion | None = None) -> PeriodReport:
    """Answer with the whole report, as of one moment; what is kept for its version is not built."""
    with snapshot():
        key = "report", known_version or version(question)
        report: PeriodReport = ANSWERS.get(key, lambda: compute(question))
        return report


def compute(question: ReportQuestion) -> PeriodReport:
    figures = gather(question)
    summary, simulated = [tests_words(figures)], ""
    # Where nothing was tested there is no more to say than that.
    if figures.tests:
        summary += [rates_words(figures), trouble_words(figures)]
    if any(each.links.simulated for each in figures.classes):
        simulated = (
            "Some endpoints are sandbox nodes: their transfers are real, but rates and failures "
            "are simulated."
        )
        if until := store.until():
            simulated += f" Results before {format_minute(until)} are entirely simulated."
    return PeriodReport(question, summary, [section(figures) for section in SECTIONS], simulated)


def gather(question: ReportQuestion) -> ReportFigures:
    """Read and compute all of it; the number of SQL queries grows with that of size classes."""
    plan = registry.read_versions()
    places = registry.read_places(plan)
    sizes, window = reading.size_names(), question.period.window
    links = LinkIndex(places)
    allowed = links.matching(question.filters).reshape(links.shape)
    every = reading.read(window, places, question.filters, as_at_end=True)
    events = [event for event in every if event.is_significant]
    scope = question.scope.items()
    sites = {place.site for place in places if all(place.has(*each) for each in scope)}
    declared = downtimes.declared(downtimes.within(window.start, window.end))
    called = incidents.rows().filter(
        Q(closed_at=None) | Q(closed_at__gt=window.start),
        opened_at__lt=window.end,
        merged_into=None,
    )
    if scope:
        called = called.filter(incidents.of_sites(sorted(sites)))
    return ReportFigures(
        question,
        places,
        [class_figures(question, size, links, allowed, plan) for size in sizes],
        [event for event in events if window.start <= event.at],
        [event for event in events if event.at < window.start],
        [downtime for downtime in declared if downtime.site_name in sites],
        list(called.order_by("-began_at", "-id")),
    )


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
    results, volume = runs.read(size, window, (), sizes=True), 0
    for run in results:
        if run.sizes is None:
            raise ValueError("the volume can be computed only from results that include file sizes")
        counts = np.pad(allowed, (0, 1)).ravel()[links.numbering.numbers(run.keys)]
        volume += int(run.sizes[counts & ((run.keys & FAILED_BIT) == 0)].sum())
    return ClassFigures(
        size,
        compared,
        GridFigures.of(compared),
        GridFigures.of(earlier),
        grid_together(compared, window.end),
        planned=int(planned.sum()),
        tested=int((planned & (links.numbering.newest(results) > 0)).sum()),
        volume=volume,
        causes=change_causes.build(attribute(compared)).named,
    )


def tests_words(figures: ReportFigures) -> str:
    """Give the number of tested links, and the share of successful tests."""
    kind, classes, main = figures.question.period.kind, figures.classes, figures.main
    tests, ok = figures.tests, sum(each.own.ok for each in classes)
    if not tests:
        planned = max(each.planned for each in classes)
        verb = "is" if planned == 1 else "are"
        return f"No tests ran in this {kind}; {counted(planned, 'link')} {verb} scheduled today."
    tests_before, ok_before = (
        sum(getattr(each.before, name) for each in classes) for name in ("tests", "ok")
    )
    compared = f"there were no tests in the {kind} before"
    if tests_before:
        compared = f"{percent(100 * ok_before / tests_before)} % in the {kind} before"
    return (
        f"{counted(tests, 'test')} ran and {percent(100 * ok / tests)} % of them succeeded "
        f"({compared}); with {main.size} files, {format_count(main.tested)} of "
        f"{counted(main.planned, 'planned link')} were tested."
    )


def rates_words(figures: ReportFigures) -> str:
    """Give the mean rate of the main size class, and its change."""
    before, main = f"the {figures.question.period.kind} before", figures.main
    if not main.own.ok:
        return "No test succeeded, so there are no rates."
    rate = f"{three_digits(main.own.mean)} MB/s, averaged over all links"
    said = f"{main.size.capitalize()} files were transferred at {rate}"
    together = main.together
    if together is None or not together.links:
        return f"{said}; there are no rates from {before} to compare with."
    if tells_nothing(together):
        return f"{said}; there are too few tests to compare with {before}."
    bounds = () if isnan(together.low) else (together.low, together.high)
    factor, _, interval = format_factor(together.ratio, *bounds).partition("× (")
    times = f"{factor.rstrip('×')} times the rate"
    times += f" (95 % interval {interval}" if interval else ""
    return f"{said}; compared link by link, that is {SPEEDS[verdict(together)]} {before}: {times}."


def trouble_words(figures: ReportFigures) -> str:
    """Give the links in trouble at the end, and the worst event."""
    period, parts = figures.question.period, []
    said = f"At the end of the {period.kind} ({format_minute(period.window.end)}), "
    for look, words in WRONG.items():
        # In any size class, by the names of their ends.
        links = {
            (each.links.sources[row].name, each.links.destinations[column].name)
            for each in figures.classes
            for row, column in np.argwhere(each.links.cells.of_look(look)).tolist()
        }
        if links:
            verb = "was" if len(links) == 1 else "were"
            parts.append(f"{counted(len(links), 'link')} {verb} {words}")
    said += join(parts) if parts else "no link was failing or slower than usual"
    short = short_names_of(figures.places)
    worst = sorted(figures.events, key=weight)[:1]
    for event in worst:
        said += f"; the worst event of the {period.kind}: {event.words(short)}"
    return f"{said}."
