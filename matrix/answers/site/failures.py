"""Why tests of a site failed: their errors, and what its failing and slow links have in common.

Patterns are as MaDDash's Madalert had them for failures; here with numbers, and for slowness, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from django.db.models import Q

from matrix.answers.site.reports import ENDS, RankedSide, Report, ReportCell, cells_of
from matrix.query.filters import Filter, counted, on_profiles
from matrix.statistics.arrays import Flags
from matrix.store.profiles import RESULT_FIELDS, condition, passing
from matrix.store.transfers import cause_sql
from matrix.store.window_buckets import NOT_COUNTED
from sonar.database import pg_copy
from sonar.models import Transfer
from sonar.notation.units import format_count
from sonar.notation.windows import Window

MOST_GROUPS = 10
# By the index on the link, so that it costs what these links have, not what the window has.
GROUPS = """
    SELECT error_where, {cause},
           count(*), count(DISTINCT (source_id, destination_id)), min(started_at),
           max(started_at), (array_agg(id ORDER BY started_at DESC, id))[1],
           (array_agg(error ORDER BY started_at DESC, id))[1], sum(count(*)) OVER ()
    FROM unnest(%(sources)s::bigint[], %(destinations)s::bigint[]) AS link (source, destination)
    JOIN sonar_transfer ON source_id = link.source AND destination_id = link.destination
    WHERE started_at >= %(start)s AND started_at < %(end)s AND state = 'failed'
      AND size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
      AND CASE WHEN %(profiles)s::int[] IS NULL THEN profile_id NOT IN
                   ({not_counted})
               ELSE profile_id = ANY(%(profiles)s) END
      {own}
    GROUP BY 1, 2 ORDER BY 3 DESC, 6 DESC, 1, 2 LIMIT %(most)s
"""
# From so many partners on, most of them say something about the site.
FEWEST = 3
MOST = 2 / 3
# Of what the median of the peers gets with the same partner.
SLOW = 0.5
FEWEST_PEERS = 2
NAMED = 5

AS = {"source": "as source", "destination": "as destination"}
TO = {"source": "to", "destination": "from"}
OTHER = {"source": "destination", "destination": "source"}
LOOK = {
    "source": "All read from this site: check its test files, read permissions and outgoing doors.",
    "destination": "All write to this site: check its free space, write permissions and incoming "
    "doors.",
    "both": "All involve this site: check its storage service, network and credential.",
}

OTHERS_WORK = (
    "Most others work: check first which partners fail with other sites, then the network between."
)
FEW = "Too few partners were tested to say whether the problem is here or at them."


@dataclass(frozen=True)
class Failures:
    """Failed tests of one cause, as far as errors tell; ``error`` is that of the newest."""

    where: str
    cause: str
    count: int
    links: int
    first: datetime
    last: datetime
    newest: UUID
    error: str


def grouped(
    links: Sequence[tuple[int, int]], size: str, window: Window, filters: Sequence[Filter]
) -> tuple[list[Failures], int]:
    """Return the largest groups, and how many failures all groups have. At most two SQL queries.

    ``links`` are the ids of their ends.
    """
    if not links:
        return [], 0
    allowed = passing(counted(filters) if on_profiles(filters) else ())
    sources, destinations = zip(*links, strict=True)
    parameters: dict[str, Any] = {
        "sources": list(sources),
        "destinations": list(destinations),
        "start": window.start,
        "end": window.end,
        "size": size,
        "profiles": None if allowed is None else np.flatnonzero(allowed).tolist(),
        "most": MOST_GROUPS,
    }
    with connection.cursor() as cursor:
        own = own_condition(window, filters)
        cursor.execute(
            GROUPS.format(cause=cause_sql(), own=own, not_counted=NOT_COUNTED), parameters
        )
        rows = cursor.fetchall()
    return [Failures(*row[:-1]) for row in rows], int(rows[0][-1]) if rows else 0


def own_condition(window: Window, filters: Sequence[Filter]) -> str:
    """Return the filters on what no profile has as SQL; empty for none."""
    own = condition(filters, RESULT_FIELDS)
    if not own:
        return ""
    started = Q(started_at__gte=window.start, started_at__lt=window.end)
    ids = pg_copy.sql_of(Transfer.objects.filter(own, started).values_list("id"))
    return f"AND id IN ({ids})".replace("%", "%%")


def errors_of(report: Report) -> dict[str, Any]:
    """Return the groups of errors of the links with failed tests, and how many tests they are."""
    failed = report.links.cells.failed > 0
    ids = {endpoint.name: endpoint.id for endpoint in report.all_endpoints}
    cells = cells_of(ReportCell, report.links, failed)
    links = [(ids[cell.source], ids[cell.destination]) for cell in cells]
    groups, total = grouped(links, report.query.size, report.window, report.query.filters)
    return {
        "errors": groups,
        "errors_total": total,
        "errors_left": total - sum(group.count for group in groups),
    }


@dataclass(frozen=True)
class Finding:
    """What stands out, and what to do."""

    title: str
    sentence: str
    advice: str


@dataclass(frozen=True)
class FailureShare:
    """How many of the partners that can be judged are bad."""

    bad: int
    judged: int

    @property
    def is_most(self) -> bool:
        return self.judged >= FEWEST and self.bad >= MOST * self.judged

    def __str__(self) -> str:
        return f"{format_count(self.bad)} of {format_count(self.judged)}"


@dataclass(frozen=True)
class Judged:
    """The partners of a site at one end, judged; arrays by partner."""

    side: RankedSide
    bad: Flags
    judged: Flags

    @property
    def share(self) -> FailureShare:
        return FailureShare(int(self.bad.sum()), int(self.judged.sum()))


def findings(report: Report) -> list[Finding]:
    """Return what stands out in the size class asked for, failures first."""
    failing: dict[str, Judged] = {}
    slow: dict[str, Judged] = {}
    for end in ENDS:
        side = RankedSide.of(report.sites[report.query.size], end)
        row = side.row_of(report.name)
        if row is None:
            nobody = np.zeros(len(side.partners), dtype=bool)
            failing[end] = slow[end] = Judged(side, nobody, nobody)
            continue
        ok, failed = side.ok[row], side.failed[row]
        # By counts, bad is a partner with which more tests failed than were ok.
        failing[end] = Judged(side, failed > ok, failed + ok > 0)
        slow[end] = slow_of(side, row)
    return [*failure_patterns(failing, report.name), *slowness_patterns(slow)]


def slow_of(side: RankedSide, row: int) -> Judged:
    """Judge by rates: those of the other sites of the tier with the same partner."""
    tiers = side.tiers
    peers = side.mean[(tiers == tiers[row]) & (np.arange(len(tiers)) != row)]
    enough = (~np.isnan(peers)).sum(axis=0) >= FEWEST_PEERS
    judged = enough & ~np.isnan(side.mean[row])
    usual = np.full(len(judged), np.nan)
    usual[judged] = np.nanmedian(peers[:, judged], axis=0) if judged.any() else np.nan
    return Judged(side, judged & (side.mean[row] < SLOW * usual), judged)


def failure_patterns(failing: dict[str, Judged], name: str) -> Iterator[Finding]:
    shares = {end: judged.share for end, judged in failing.items()}
    if all(share.is_most for share in shares.values()):
        yield Finding(
            "Fails as source and as destination.",
            f"More tests failed than succeeded with {shares['source']} destinations and with "
            f"{shares['destination']} sources.",
            LOOK["both"],
        )
        return
    for end, share in shares.items():
        if share.is_most:
            yield Finding(
                f"Fails {AS[end]}, not {AS[OTHER[end]]}.",
                f"More tests failed than succeeded with {share} {OTHER[end]}s; {AS[OTHER[end]]} "
                f"only with {shares[OTHER[end]]} {end}s.",
                LOOK[end],
            )
        elif share.bad:
            yield on_single_links(failing[end], name)


def on_single_links(judged: Judged, name: str) -> Finding:
    """Name the partners, and say of each with how many others it fails likewise."""
    side, end, share = judged.side, judged.side.end, judged.share
    others = np.array([group.name != name for group in side.groups], dtype=bool)
    partners = np.flatnonzero(judged.bad).tolist()
    named = []
    for partner in partners[:NAMED]:
        ok, failed = side.ok[others, partner], side.failed[others, partner]
        of_others = FailureShare(int((failed > ok).sum()), int((failed + ok > 0).sum()))
        likewise = f"fails with {of_others} other" if of_others.judged else "not tested with other"
        named.append(f"{TO[end]} {side.partners[partner].name} ({likewise} {end}s)")
    more = f", and {len(partners) - NAMED} more" if len(partners) > NAMED else ""
    return Finding(
        f"Fails {AS[end]} on individual links.",
        f"More tests failed than succeeded with {share} {OTHER[end]}s: {', '.join(named)}{more}.",
        FEW if share.judged < FEWEST else OTHERS_WORK,
    )


def slowness_patterns(slow: dict[str, Judged]) -> Iterator[Finding]:
    for end, judged in slow.items():
        if judged.share.is_most:
            does = "sends to" if end == "source" else "receives from"
            yield Finding(
                f"Slow {AS[end]} with most {OTHER[end]}s.",
                f"It {does} {judged.share} {OTHER[end]}s at less than half the median rate of "
                "its tier with the same partner.",
                "Compare its fastest transfer with its nominal WAN capacity, and check the load on "
                "its storage.",
            )
