"""A report: the three sentences that matter, and its sections."""

from __future__ import annotations

from math import isnan

import numpy as np

from matrix.answers.comparison.all_links import tells_nothing, verdict
from matrix.answers.events.reading import weight
from matrix.answers.report import gathering
from matrix.answers.report.figures import ReportFigures
from matrix.answers.report.parts import PeriodReport
from matrix.answers.report.question import ReportQuestion
from matrix.answers.report.sections import SECTIONS, percent
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import counted, join
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion, snapshot
from sonar.notation.units import format_count, format_factor, three_digits
from sonar.notation.windows import format_minute
from sonar.results import store

version = gathering.version
WRONG = {"failing": "failing", "slower": "slower than usual"}
SPEEDS = {
    "slower": "slower than in",
    "faster": "faster than in",
    "about the same": "about as fast as in",
    "not certain": "not certainly slower or faster than in",
}


def build(question: ReportQuestion, known_version: DataVersion | None = None) -> PeriodReport:
    """Answer with the whole report, as of one moment; what is kept for its version is not built."""
    with snapshot():
        key = "report", known_version or version(question)
        report: PeriodReport = ANSWERS.get(key, lambda: compute(question))
        return report


def compute(question: ReportQuestion) -> PeriodReport:
    computed = gathering.build(question)
    return PeriodReport(
        question,
        [words(computed) for words in (SUMMARY if computed.tests else SUMMARY[:1])],
        [section(computed) for section in SECTIONS],
        simulated_words(computed),
    )


def tests_words(computed: ReportFigures) -> str:
    """Say how many links were tested, and how many of the tests succeeded."""
    kind, classes, main = computed.question.period.kind, computed.classes, computed.main
    tests, ok = computed.tests, sum(each.own.ok for each in classes)
    if not tests:
        planned = max(each.planned for each in classes)
        verb = "is" if planned == 1 else "are"
        return (
            f"Nothing was tested in this {kind}; {counted(planned, 'link')} {verb} planned today."
        )
    tests_before, ok_before = (
        sum(getattr(each.before, name) for each in classes) for name in ("tests", "ok")
    )
    compared = f"there were no tests in the {kind} before"
    if tests_before:
        compared = f"{percent(100 * ok_before / tests_before)} % in the {kind} before"
    return (
        f"{counted(tests, 'test')} ran and {percent(100 * ok / tests)} % of them succeeded "
        f"({compared}); with {main.size} files {format_count(main.tested)} of "
        f"{counted(main.planned, 'planned link')} were tested."
    )


def rates_words(computed: ReportFigures) -> str:
    """Say how fast the main size class was, and whether that changed."""
    before, main = f"the {computed.question.period.kind} before", computed.main
    if not main.own.ok:
        return "No test succeeded, so there are no rates."
    rate = f"{three_digits(main.own.mean)} MB/s, averaged over all links"
    said = f"{main.size.capitalize()} files moved at {rate}"
    together = main.together
    if together is None or not together.links:
        return f"{said}; there is nothing in {before} to compare that with."
    if tells_nothing(together):
        return f"{said}; there are too few tests to compare that with {before}."
    bounds = () if isnan(together.low) else (together.low, together.high)
    factor, _, interval = format_factor(together.ratio, *bounds).partition("× (")
    times = f"{factor.rstrip('×')} times the rate"
    times += f" (95 % interval {interval}" if interval else ""
    return f"{said}; link by link that is {SPEEDS[verdict(together)]} {before}: {times}."


def trouble_words(computed: ReportFigures) -> str:
    """Say what was wrong at the end, and the worst of what happened."""
    period = computed.question.period
    said = f"When the {period.kind} ended ({format_minute(period.window.end)}), "
    counts = [(len(links_of(computed, look)), words) for look, words in WRONG.items()]
    parts = [
        f"{counted(count, 'link')} {'was' if count == 1 else 'were'} {words}"
        for count, words in counts
        if count
    ]
    said += join(parts) if parts else "no link was failing or slower than usual"
    short = short_names_of(computed.places)
    worst = sorted(computed.events, key=weight)[:1]
    return said + "".join(f"; the worst event: {event.words(short)}" for event in worst) + "."


def links_of(computed: ReportFigures, look: str) -> set[tuple[str, str]]:
    """Return the links of a look in any size class, by the names of their ends."""
    return {
        (each.links.sources[row].name, each.links.destinations[column].name)
        for each in computed.classes
        for row, column in np.argwhere(each.links.cells.of_look(look)).tolist()
    }


def simulated_words(computed: ReportFigures) -> str:
    """Say what of it is made up; nothing where nothing is."""
    if not computed.is_simulated:
        return ""
    until = store.until()
    said = (
        "Some endpoints are sandbox nodes: transfers are real, but rates and failures are made up."
    )
    made_up = f" Results before {format_minute(until)} are entirely made up." if until else ""
    return said + made_up


# What is said first; where nothing was tested there is no more to say than that.
SUMMARY = (tests_words, rates_words, trouble_words)
