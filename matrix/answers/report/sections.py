"""The sections of a report in their order, each made of its figures: one more is one entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np

from matrix.answers.causes.change_causes import NamedCause, subject_of
from matrix.answers.comparison.all_links import verdict
from matrix.answers.incidents import words
from matrix.answers.report.figures import ClassFigures, ReportFigures
from matrix.answers.report.parts import Record, ReportColumn, ReportSection, ReportTable
from matrix.answers.report.pictures import pictures
from matrix.answers.words.advice import LOOK, ONLY_THIS_LINK
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import counted
from matrix.query.addresses import address, link_url
from sonar.notation.units import format_bytes, format_count, format_factor, three_digits
from sonar.notation.windows import short_time

# More rows nobody reads in a meeting: the rest is counted.
MOST_ROWS = 15
Columns = Sequence[ReportColumn]
UNTESTED = "Nothing was tested."
LOOKS = {"failing": "failing", "slower": "slow", "partly": "often fails"}


def percent(value: float) -> str:
    """Write a share of tests: only where all succeeded it is 100."""
    return f"{min(value, 99.9) if value < 100 else value:.3g}"


rate = partial(ReportColumn, unit="MB/s", write=three_digits, is_number=True)
share = partial(ReportColumn, unit="%", write=percent, is_number=True)
count = partial(ReportColumn, write=format_count, is_number=True)
factor = partial(
    ReportColumn,
    unit="95 % interval",
    write=format_factor,
    is_number=True,
    bounds=("low", "high"),
)
moment = partial(ReportColumn, unit="UTC", write=short_time)
FILES = ReportColumn("size", "files")


def listing(
    columns: Columns, rows: Sequence[Record], noun: str
) -> tuple[ReportTable | None, list[str]]:
    """Return a table of the first rows, None without any, and what is to say of the others."""
    rest = len(rows) - MOST_ROWS
    notes = [f"And {format_count(rest)} more {noun}{'s' * (rest != 1)}."] if rest > 0 else []
    return (ReportTable(columns, rows[:MOST_ROWS]) if rows else None), notes


def matrix_section(figures: ReportFigures) -> ReportSection:
    size, site = figures.main.size, figures.question.site
    title = "Rates by partner" if site else "Rates in each direction"
    if not figures.main.own.ok:
        return ReportSection("matrix", title, ["No test succeeded: there are no rates to show."])
    ends = "Files go from the site at the left to the one at the top."
    if site:
        ends = f"“To partner” is what {site} sends, “from partner” what it receives."
    sentence = f"Mean rate of {size} files in MB/s (1 MB = 10⁶ bytes). {ends}"
    return ReportSection(
        "matrix", title, [sentence], list(pictures(figures.question, figures.main.links))
    )


def rates_section(figures: ReportFigures) -> ReportSection:
    before = f"{figures.question.period.kind} before"
    columns = (
        FILES,
        rate("mean_mb_s", "mean rate"),
        rate("before_mb_s", f"rate in the {before}"),
        factor("change", "change of each link"),
        ReportColumn("verdict", "that is"),
        share("success_percent", "tests that succeeded"),
        share("before_percent", f"in the {before}"),
    )
    sentence = (
        "The mean rate is the plain mean of the links that were measured. The change compares each "
        f"link with itself in the {before}, whichever links were tested: 0.50× is half as fast."
    )
    if not any(each.own.tests + each.before.tests for each in figures.classes):
        return ReportSection("rates", "Averages by size of files", [UNTESTED])
    rows = [rates_of(each) for each in figures.used]
    return ReportSection(
        "rates", "Averages by size of files", [sentence], table=ReportTable(columns, rows)
    )


def rates_of(figures: ClassFigures) -> Record:
    together = figures.together if figures.together and figures.together.links else None
    change = (together.ratio, together.low, together.high) if together else (None,) * 3
    return {
        "size": figures.size,
        "mean_mb_s": figures.own.mean,
        "before_mb_s": figures.before.mean,
        **dict(zip(("change", "low", "high"), change, strict=True)),
        "verdict": verdict(together) if together else "",
        "success_percent": figures.own.success,
        "before_percent": figures.before.success,
    }


def worst_section(figures: ReportFigures) -> ReportSection:
    short = short_names_of(figures.places)
    columns = (
        ReportColumn("look", "what"),
        ReportColumn("source", "from", write=short.__getitem__),
        ReportColumn("destination", "to", write=short.__getitem__),
        FILES,
        rate("rate_mb_s", "rate at the end"),
        rate("usual_mb_s", "usual rate"),
        count("failed", "failed tests"),
        count("tests", "of all tests"),
        moment("since", "since"),
    )
    rows = [row for look in LOOKS for row in worst_links(figures, look)]
    title = "Worst links at the end"
    table, notes = listing(columns, rows, "link")
    if table is None:
        said = "No link was failing, slower than usual or often failing when it ended."
        return ReportSection("worst", title, [said if figures.tests else UNTESTED])
    sentence = (
        "Failing: the newest three tests failed, or more. Slow: the newest three successes were "
        "far slower than the 28 days before. Often fails: at least every tenth test failed."
    )
    return ReportSection("worst", title, [sentence], table=table, notes=notes)


def worst_links(figures: ReportFigures, look: str) -> list[Record]:
    """Return the links of a look, of all size classes, the worst first."""
    rows: list[Record] = []
    for each in figures.classes:
        cells, query = each.links.cells, figures.question.query(each.size)
        for row, column in np.argwhere(cells.of_look(look)).tolist():
            at = row, column
            source, destination = each.links.sources[row].name, each.links.destinations[column].name
            is_failing, since = look == "failing", float(cells.since[at])
            rows.append(
                {
                    "look": LOOKS[look],
                    "source": source,
                    "destination": destination,
                    "size": each.size,
                    "rate_mb_s": np.nan if is_failing else float(cells.now[at]),
                    "usual_mb_s": float(cells.usual[at]),
                    "failed": int(cells.failed[at]),
                    "tests": int(cells.failed[at] + cells.ok[at]),
                    "since": None if np.isnan(since) else datetime.fromtimestamp(since, UTC),
                    "url": link_url(source, destination, query),
                }
            )
    return sorted(rows, key=badness)


def badness(row: Record) -> float:
    """Return what sorts links of one look: by how slow they are, or else by their failed tests."""
    if row["look"] == LOOKS["slower"]:
        return float(row["rate_mb_s"] / row["usual_mb_s"])
    return float(-row["failed"] / max(row["tests"], 1))


def events_section(figures: ReportFigures) -> ReportSection:
    short = short_names_of(figures.places)
    columns = (
        moment("at", "when"),
        ReportColumn("where", "where"),
        ReportColumn("kind", "what"),
        ReportColumn("sizes", "files"),
        factor("factor", "rate since / before"),
        moment("until", "until"),
    )
    end = figures.question.period.window.end
    rows = [
        {
            "at": event.at,
            "where": f"{event.where(short)} {event.role}".strip(),
            "kind": event.kind,
            "sizes": ", ".join(event.sizes),
            **dict(zip(("factor", "low", "high"), event.factor or (None,) * 3, strict=True)),
            "until": event.until,
            "url": event.url(end),
        }
        for event in figures.events
    ]
    table, notes = listing(columns, rows, "event")
    sentences = [
        "Each event is listed once, the newest first; without an end it went on when this ended."
    ]
    if table is None:
        sentences = [
            "No link, endpoint or site certainly became slower or faster, failed or recovered."
        ]
    if figures.lasting:
        sentences.append(f"{counted(len(figures.lasting), 'event')} from before went on.")
    return ReportSection("events", "What happened", sentences, table=table, notes=notes)


def causes_section(figures: ReportFigures) -> ReportSection:
    columns = (
        ReportColumn("subject", "what changed"),
        FILES,
        factor("factor", "change"),
        count("links", "links"),
        ReportColumn("check", "where to look"),
    )
    before, short = f"the {figures.question.period.kind} before", short_names_of(figures.places)
    rows = [cause_row(cause, each.size, short) for each in figures.classes for cause in each.causes]
    title = f"What explains the change since {before}"
    table, notes = listing(columns, rows, "cause")
    if table is None:
        said = f"No source, destination, site or link certainly differs from {before}."
        return ReportSection("causes", title, [said if figures.tests else UNTESTED])
    sentence = f"Beyond what all links did, compared with {before}, the most certain first."
    return ReportSection("causes", title, [sentence], table=table, notes=notes)


def cause_row(named: NamedCause, size: str, short: Mapping[str, str]) -> Record:
    cause = named.cause
    ends = {"source": named.source, "destination": named.destination}
    present = [end for end, group in ends.items() if group]
    look = LOOK[present[0] if len(present) == 1 else "both"]
    subject = subject_of(cause, named.source, named.destination, short)
    return {
        "subject": subject.removesuffix(" is"),
        "size": size,
        "factor": cause.factor,
        "low": cause.low,
        "high": cause.high,
        "links": cause.n,
        "check": "" if named.kind == "fast" else ONLY_THIS_LINK if cause.kind == "link" else look,
    }


def incidents_section(figures: ReportFigures) -> ReportSection:
    """Say what people were called for, as it stood when the period ended."""
    end = figures.question.period.window.end
    columns = (
        moment("began_at", "since"),
        ReportColumn("what", "what"),
        count("links", "links"),
        ReportColumn("sizes", "files"),
        moment("until", "until"),
    )
    rows = [
        {
            "began_at": row.began_at,
            "what": words.title(row),
            "links": row.links,
            "sizes": ", ".join(row.sizes),
            "until": row.closed_at if row.closed_at and row.closed_at < end else None,
            "url": words.path(row),
        }
        for row in figures.incidents
    ]
    table, notes = listing(columns, rows, "incident")
    sentences = [
        "Each is one cause, with the links that it explains; without an end it was still open."
        if table
        else "There was no incident."
    ]
    return ReportSection("incidents", "Incidents", sentences, table=table, notes=notes)


def downtimes_section(figures: ReportFigures) -> ReportSection:
    columns = (
        ReportColumn("subject", "of"),
        moment("starts_at", "from"),
        ReportColumn("ends", "to", "UTC"),
        ReportColumn("effect", "tests"),
        ReportColumn("reason", "reason"),
    )
    rows = [
        {
            "subject": each.subject,
            "starts_at": each.starts_at,
            "ends": each.rows[0].until_words
            if each.rows[0].is_open_ended
            else short_time(each.ends_at),
            "effect": "stopped" if each.stops_tests else "went on, at risk",
            "reason": each.reason_words,
            "url": address("site", each.site_name),
        }
        for each in figures.downtimes
    ]
    table, notes = listing(columns, rows, "downtime")
    sentences = [] if table else ["None was declared."]
    return ReportSection("downtimes", "Declared downtimes", sentences, table=table, notes=notes)


def coverage_section(figures: ReportFigures) -> ReportSection:
    columns = (
        FILES,
        count("planned_links", "planned links"),
        count("tested_links", "of these tested"),
        count("stale_links", "stale at the end"),
        count("tests", "tests"),
        count("failed", "of these failed"),
        ReportColumn("bytes", "data moved", write=format_bytes, is_number=True),
    )
    rows = [
        {
            "size": each.size,
            "planned_links": each.planned,
            "tested_links": each.tested,
            "stale_links": each.stale,
            "tests": each.own.tests,
            "failed": each.own.failed,
            "bytes": each.volume,
        }
        for each in figures.used
    ]
    sentence = (
        "A link leads from one endpoint to another: both directions are two links. Planned are "
        "those that are tested on schedule today. Stale are those whose newest result was older "
        "than two intervals of the schedule. Data moved is that of tests that succeeded. Tests of "
        "experiments are not counted."
    )
    return ReportSection(
        "coverage",
        "How much was tested, and what it took",
        [sentence],
        table=ReportTable(columns, rows),
    )


SECTIONS: tuple[Callable[[ReportFigures], ReportSection], ...] = (
    matrix_section,
    rates_section,
    worst_section,
    incidents_section,
    events_section,
    causes_section,
    downtimes_section,
    coverage_section,
)
