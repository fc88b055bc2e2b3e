"""The sections of a report in their order, each built from its figures: a new one is one entry.

The matrix has so few rows and columns that each cell shows its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np

from matrix.answers.causes.change_causes import subject_of
from matrix.answers.comparison.all_links import verdict
from matrix.answers.incidents import words
from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.report.figures import ReportFigures
from matrix.answers.report.parts import HeatTable, Record, ReportColumn, ReportSection, ReportTable
from matrix.answers.report.question import ReportQuestion
from matrix.answers.words.advice import LOOK, ONLY_THIS_LINK
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import counted
from matrix.query.addresses import address, link_url
from matrix.query.attributes import DEFAULT_GROUPING, GROUPINGS
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.states import NOT_APPLICABLE
from sonar.notation.units import format_bytes, format_count, format_factor, three_digits
from sonar.notation.windows import LATEST, short_time

# Nobody reads more rows in a meeting: the rest is counted.
MOST_ROWS = 15
Columns = Sequence[ReportColumn]
UNTESTED = "No tests ran in this period."
LOOKS = {"failing": "failing", "slower": "slow", "partly": "often fails"}
# By site, or where those are too many for a page, by what they have in common.
SHARED = tuple(name for name in GROUPINGS if name != DEFAULT_GROUPING)
MOST_LINES, MOST_PARTNERS = 16, 40


def percent(value: float) -> str:
    """Write a share of tests; 100 only if all succeeded."""
    return f"{min(value, 99.9) if value < 100 else value:.3g}"


rate = partial(ReportColumn, unit="MB/s", write=three_digits, is_number=True)
share = partial(ReportColumn, unit="%", write=percent, is_number=True)
count = partial(ReportColumn, write=format_count, is_number=True)
factor = partial(
    ReportColumn, unit="95 % interval", write=format_factor, is_number=True, bounds=("low", "high")
)
moment = partial(ReportColumn, unit="UTC", write=short_time)
FILES = ReportColumn("size", "size class")


def listing(
    columns: Columns, rows: Sequence[Record], noun: str
) -> tuple[ReportTable | None, list[str]]:
    """Return a table of the first rows, None without any, and a note about the others."""
    rest = len(rows) - MOST_ROWS
    notes = [f"And {format_count(rest)} more {noun}{'s' * (rest != 1)}."] if rest > 0 else []
    return (ReportTable(columns, rows[:MOST_ROWS]) if rows else None), notes


def matrix_section(figures: ReportFigures) -> ReportSection:
    size, site = figures.main.size, figures.question.site
    title = "Rates by partner" if site else "Rates in each direction"
    if not figures.main.own.ok:
        return ReportSection("matrix", title, ["No test succeeded, so there are no rates to show."])
    ends = "Rows are sources, columns are destinations."
    if site:
        ends = f"“To partner” is the sending rate of {site}, “from partner” the receiving rate."
    sentence = f"Mean rate of {size} files in MB/s (1 MB = 10⁶ bytes). {ends}"
    return ReportSection(
        "matrix", title, [sentence], list(pictures(figures.question, figures.main.links))
    )


def pictures(question: ReportQuestion, links: Grid) -> Iterator[HeatTable]:
    """Yield the matrix of the whole grid; of a cloud one each way; of a site all its partners.

    Of the size class of ``links``.
    """
    cloud, query = question.cloud, question.query(links.query.size)
    groups = [*links.sources, *links.destinations]
    every = grouping(groups, MOST_LINES)
    if question.site:
        yield of_partners(question.site, query, grouping(groups, MOST_PARTNERS))
    elif cloud:
        own = grouping([group for group in groups if group.cloud == cloud], MOST_LINES)
        sent = grouped(query, own, every, Filter("source_cloud", cloud))
        yield heat_table(sent, f"Sent by sites of cloud {cloud}")
        received = grouped(query, every, own, Filter("destination_cloud", cloud))
        yield heat_table(received, f"Received by sites of cloud {cloud}")
    else:
        yield heat_table(grouped(query, every, every), "")


def grouping(groups: Iterable[AxisGroup], most: int) -> str:
    """Return the attribute to group endpoints by, so that there are not too many lines."""
    present = list(groups)
    lines = {by: len({group.facts[by] for group in present}) for by in SHARED}
    return next((by for by in SHARED if lines[by] <= most), min(lines, key=lines.__getitem__))


def grouped(query: MatrixQuery, rows: str, columns: str, *filters: Filter) -> Grid:
    """Return a matrix of these lines as of the end of its window."""
    query = query.replace(rows=rows, columns=columns, filters=filters or query.filters)
    return grid.build(query, query.window_at(LATEST).end)


def heat_table(cells: Grid, title: str) -> HeatTable:
    rows, columns = ([group.name for group in side] for side in (cells.sources, cells.destinations))
    return HeatTable(
        title,
        "from ↓, to →",
        rows,
        columns,
        cells.short_names(),
        cells.cells.mean,
        cells.cells.state,
    )


def of_partners(site: str, query: MatrixQuery, by: str) -> HeatTable:
    """Return the partners of a site as rows, with a column for each direction."""
    sent = grouped(query, "site", by, Filter("source_site", site))
    received = grouped(query, by, "site", Filter("destination_site", site))
    partners = {group.name: group for group in (*sent.destinations, *received.sources)}
    names = sorted(partners, key=str.casefold)
    value = np.full((len(names), 2), np.nan)
    state = np.full((len(names), 2), NOT_APPLICABLE, dtype=np.uint8)
    for column, (cells, groups) in enumerate(
        ((sent.cells, sent.destinations), (received.cells, received.sources))
    ):
        places = [names.index(group.name) for group in groups]
        value[places, column] = cells.mean.ravel()
        state[places, column] = cells.state.ravel()
    short = short_names_of(list(partners.values()))
    directions = ["to partner", "from partner"]
    return HeatTable("", "partner", names, directions, short, value, state, site)


def rates_section(figures: ReportFigures) -> ReportSection:
    before = f"{figures.question.period.kind} before"
    columns = (
        FILES,
        rate("mean_mb_s", "mean rate"),
        rate("before_mb_s", f"rate in the {before}"),
        factor("change", "change per link"),
        ReportColumn("verdict", "result"),
        share("success_percent", "successful tests"),
        share("before_percent", f"successful tests in the {before}"),
    )
    sentence = (
        "The mean rate is the mean over all links with results. For the change, the rate of each "
        f"link is compared with its own rate in the {before}. 0.50× means half the rate."
    )
    if not any(each.own.tests + each.before.tests for each in figures.classes):
        return ReportSection("rates", "Averages by size class", [UNTESTED])
    rows = []
    for each in figures.used:
        together = each.together if each.together and each.together.links else None
        change = (together.ratio, together.low, together.high) if together else (None,) * 3
        rows.append(
            {
                "size": each.size,
                "mean_mb_s": each.own.mean,
                "before_mb_s": each.before.mean,
                **dict(zip(("change", "low", "high"), change, strict=True)),
                "verdict": verdict(together) if together else "",
                "success_percent": each.own.success,
                "before_percent": each.before.success,
            }
        )
    return ReportSection(
        "rates", "Averages by size class", [sentence], table=ReportTable(columns, rows)
    )


def worst_section(figures: ReportFigures) -> ReportSection:
    short = short_names_of(figures.places)
    columns = (
        ReportColumn("look", "state"),
        ReportColumn("source", "source", write=short.__getitem__),
        ReportColumn("destination", "destination", write=short.__getitem__),
        FILES,
        rate("rate_mb_s", "rate at the end"),
        rate("usual_mb_s", "baseline"),
        count("failed", "failed tests"),
        count("tests", "tests"),
        moment("since", "since"),
    )
    rows = [row for look in LOOKS for row in worst_links(figures, look)]
    title = f"Worst links at the end of the {figures.question.period.kind}"
    table, notes = listing(columns, rows, "link")
    if table is None:
        kind = figures.question.period.kind
        said = f"At the end of the {kind}, no link was failing, slower than usual or often failing."
        return ReportSection("worst", title, [said if figures.tests else UNTESTED])
    sentence = (
        "Failing: at least the newest three tests failed. Slow: the newest three successful tests "
        "were far slower than those in the 28 days before. Often fails: at least one in ten tests "
        "failed."
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
    # Slow ones by how slow they are, others by their failed tests.
    if look == "slower":
        return sorted(rows, key=lambda row: float(row["rate_mb_s"] / row["usual_mb_s"]))
    return sorted(rows, key=lambda row: float(-row["failed"] / max(row["tests"], 1)))


def events_section(figures: ReportFigures) -> ReportSection:
    short = short_names_of(figures.places)
    columns = (
        moment("at", "start"),
        ReportColumn("where", "object"),
        ReportColumn("type", "event"),
        ReportColumn("sizes", "size classes"),
        factor("factor", "rate after / before"),
        moment("until", "end"),
    )
    end = figures.question.period.window.end
    rows = [
        {
            "at": event.at,
            "where": f"{event.where(short)} {event.role}".strip(),
            "type": event.type,
            "sizes": ", ".join(event.sizes),
            **dict(zip(("factor", "low", "high"), event.factor or (None,) * 3, strict=True)),
            "until": event.until,
            "url": event.url(end),
        }
        for event in figures.events
    ]
    table, notes = listing(columns, rows, "event")
    kind = figures.question.period.kind
    sentences = [
        "The newest event is listed first. An event without an end was still open at the end of "
        f"the {kind}."
    ]
    if table is None:
        sentences = [
            "No link, endpoint or site became significantly slower or faster, failed or recovered."
        ]
    if lasting := len(figures.lasting):
        was = "was" if lasting == 1 else "were"
        sentences.append(f"{counted(lasting, 'earlier event')} {was} still open in this period.")
    return ReportSection("events", "Events", sentences, table=table, notes=notes)


def causes_section(figures: ReportFigures) -> ReportSection:
    columns = (
        ReportColumn("subject", "object"),
        FILES,
        factor("factor", "change"),
        count("links", "links"),
        ReportColumn("check", "first action"),
    )
    before, short = f"the {figures.question.period.kind} before", short_names_of(figures.places)
    rows = []
    for size, named in ((each.size, named) for each in figures.classes for named in each.causes):
        cause = named.cause
        ends = {"source": named.source, "destination": named.destination}
        present = [end for end, group in ends.items() if group]
        look = LOOK[present[0] if len(present) == 1 else "both"]
        subject = subject_of(cause, named.source, named.destination, short)
        check = ONLY_THIS_LINK if cause.kind == "link" else look
        rows.append(
            {
                "subject": subject.removesuffix(" is"),
                "size": size,
                "factor": cause.factor,
                "low": cause.low,
                "high": cause.high,
                "links": cause.n,
                "check": "" if named.kind == "fast" else check,
            }
        )
    title = f"Causes of the change since {before}"
    table, notes = listing(columns, rows, "cause")
    if table is None:
        said = f"No source, destination, site or link differs significantly from {before}."
        return ReportSection("causes", title, [said if figures.tests else UNTESTED])
    sentence = (
        "These changes exceed the overall change in the rates of all links. "
        "The most significant change is listed first."
    )
    return ReportSection("causes", title, [sentence], table=table, notes=notes)


def incidents_section(figures: ReportFigures) -> ReportSection:
    end = figures.question.period.window.end
    columns = (
        moment("began_at", "start"),
        ReportColumn("what", "incident"),
        count("links", "links"),
        ReportColumn("sizes", "size classes"),
        moment("until", "end"),
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
    kind = figures.question.period.kind
    sentences = ["No incident was open in this period."]
    if table:
        sentences = [f"An incident without an end was still open at the end of the {kind}."]
    return ReportSection("incidents", "Incidents", sentences, table=table, notes=notes)


def downtimes_section(figures: ReportFigures) -> ReportSection:
    columns = (
        ReportColumn("subject", "object"),
        moment("starts_at", "start"),
        ReportColumn("ends", "end", "UTC"),
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
            "effect": "stopped" if each.stops_tests else "continued (at risk)",
            "reason": each.reason_words,
            "url": address("site", each.site_name),
        }
        for each in figures.downtimes
    ]
    table, notes = listing(columns, rows, "downtime")
    sentences = [] if table else ["No downtime was declared for this period."]
    return ReportSection("downtimes", "Declared downtimes", sentences, table=table, notes=notes)


def coverage_section(figures: ReportFigures) -> ReportSection:
    columns = (
        FILES,
        count("planned_links", "planned links"),
        count("tested_links", "tested links"),
        count("stale_links", "stale links at the end"),
        count("tests", "tests"),
        count("failed", "failed tests"),
        ReportColumn("bytes", "data transferred", write=format_bytes, is_number=True),
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
        "A link has one direction, so two endpoints can have two links. Planned links are those "
        "with a schedule today. The newest result of a stale link was older than two intervals of "
        "its schedule. “Data transferred” counts only successful tests. Tests of parameter sweeps "
        "are not counted."
    )
    return ReportSection(
        "coverage",
        "Test coverage",
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
