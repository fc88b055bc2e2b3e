"""Conditions as they are read: those open at a moment or within a time range, and those of links.

Each function is one SQL statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.standing import Rates
from sonar.database.cursors import planned_rows
from sonar.models import Condition, ConditionLink, ConditionPart
from sonar.notation.windows import Window

# What is the matter with a link by conditions that have it as a member, the worst last.
MARKS = ("", *Condition.Type.values)
ASSESSED_AT = "SELECT min(assessed_at) FROM sonar_assessment"
# Those that began last come first.
ORDER = ("-since", "-id")


def rows() -> QuerySet[Condition]:
    """Return all with what they are of; `tests` and `failed` are counts of all size classes."""
    parts = ConditionPart.objects.filter(condition=OuterRef("pk")).order_by().values("condition")
    counts = {
        name: Coalesce(parts.annotate(total=Sum(name)).values("total"), Value(0))
        for name in ("tests", "failed")
    }
    subjects = ("source__site", "destination__site", "site")
    return Condition.objects.select_related(*subjects).annotate(**counts).order_by(*ORDER)


def lasting_at(moment: datetime, prefix: str = "") -> Q:
    """Choose what had begun by a moment and had not ended yet."""
    begun = Q(**{f"{prefix}since__lte": moment})
    ended = Q(**{f"{prefix}ended_at": None}) | Q(**{f"{prefix}ended_at__gt": moment})
    return begun & ended


def open_at(moment: datetime) -> list[Condition]:
    """Return the conditions that were open at a moment, those that began last first."""
    return list(rows().filter(lasting_at(moment)))


def overlapping(window: Window, chosen: Q | None = None) -> list[Condition]:
    """Return those of which any time lies in a window, those that began last first."""
    ended = Q(ended_at=None) | Q(ended_at__gt=window.start)
    return list(rows().filter(ended, chosen or Q(), since__lt=window.end))


def assessed_at() -> datetime | None:
    """Return when the size class that was assessed longest ago was; None before the first time."""
    rows: list[tuple[datetime | None]] = planned_rows(ASSESSED_AT)
    return rows[0][0]


def of_links(pairs: Iterable[tuple[int, int]], window: Window | None = None) -> list[Condition]:
    """Return the conditions that have one of these links (ids of its ends) as a member.

    Those that overlap a window, or all. A condition of the grid has no members.
    """
    of_pairs = Q(pk__in=[])
    for source, destination in pairs:
        of_pairs |= Q(source=source, destination=destination)
    members = ConditionLink.objects.filter(of_pairs, part__condition=OuterRef("pk"))
    chosen = rows().filter(Exists(members))
    if window is not None:
        ended = Q(ended_at=None) | Q(ended_at__gt=window.start)
        chosen = chosen.filter(ended, since__lt=window.end)
    return list(chosen)


@dataclass(frozen=True)
class LinkMarks:
    """What is the matter with each link in a size class; arrays of shape (places, places).

    ``mark`` indexes MARKS and is the worst of its conditions, confirmed ones before others;
    ``condition`` is the id of that one, 0 for none. ``since`` is in Unix ms, 0 for none.
    ``factor``, ``low`` and ``high`` are the rate of the condition over its baseline, NaN for
    none. ``tests`` are those of the condition since it began. ``baseline`` is what was usual of the
    link itself before that, in bytes/s, NaN where it is not known.
    """

    mark: NDArray[np.uint8]
    is_confirmed: Flags
    since: Integers
    factor: Rates
    low: Rates
    high: Rates
    tests: NDArray[np.int32]
    condition: Integers
    baseline: Rates

    def are(self, kind: str) -> Flags:
        """Say which links are failing, silent, slow or fast."""
        return np.asarray(self.mark == MARKS.index(kind))


# The worst last, so that it is what remains of a link. All links of a part are one value: as rows
# they would take five times as long.
MARKED = """
    SELECT array_position(%(marks)s::text[], condition.type::text) - 1,
           condition.confirmed_at IS NOT NULL,
           (extract(epoch FROM part.since) * 1000)::bigint,
           part.factor, part.factor_low, part.factor_high, part.tests, condition.id,
           string_agg(int4send(member.source_id::int4) || int4send(member.destination_id::int4)
                      || float4send(coalesce(member.baseline, 'NaN')::real), '')
    FROM sonar_conditionpart AS part
    JOIN sonar_condition AS condition ON condition.id = part.condition_id
    JOIN sonar_conditionlink AS member ON member.part_id = part.id
    WHERE part.size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
      AND part.since <= %(moment)s
      AND (part.ended_at IS NULL OR part.ended_at > %(moment)s)
    GROUP BY part.id, condition.id
    ORDER BY condition.confirmed_at IS NOT NULL,
             array_position(%(marks)s::text[], condition.type::text), part.since, condition.id
"""
MEMBER = np.dtype([("source", ">i4"), ("destination", ">i4"), ("baseline", ">f4")])
# Of links without a mark; and the types of columns that are no rates or parts of rates.
EMPTY = dict.fromkeys(("factor", "low", "high", "baseline"), np.nan)
KINDS: dict[str, Any] = {
    "mark": np.uint8,
    "is_confirmed": bool,
    "since": np.int64,
    "tests": np.int32,
    "condition": np.int64,
}


def marks(size: str, moment: datetime, links: LinkIndex) -> LinkMarks:
    """Return the marks of all links in a size class at a moment."""
    ids = np.array([place.id for place in links.places], dtype=np.int64)
    names = [each.name for each in fields(LinkMarks)]
    shape = len(ids), len(ids)
    arrays = {
        name: np.full(shape, EMPTY.get(name, 0), dtype=KINDS.get(name, np.float32))
        for name in names
    }
    parameters = {"size": size, "moment": moment, "marks": [*MARKS]}
    for *values, payload in planned_rows(MARKED, parameters):
        members = np.frombuffer(payload, MEMBER)
        ends = members["source"], members["destination"]
        members = members[np.isin(ends[0], ids) & np.isin(ends[1], ids)]
        where = ids.searchsorted(members["source"]), ids.searchsorted(members["destination"])
        for name, value in zip(names, (*values, members["baseline"]), strict=True):
            arrays[name][where] = np.nan if value is None else value
    return LinkMarks(**arrays)


# All links of a part are one value here, too.
LASTING = """
    SELECT condition.type, part.since, part.ended_at,
           string_agg(int4send(member.source_id::int4) || int4send(member.destination_id::int4), '')
    FROM sonar_conditionpart AS part
    JOIN sonar_condition AS condition ON condition.id = part.condition_id
    JOIN sonar_conditionlink AS member ON member.part_id = part.id
    WHERE part.size_class_id = (SELECT id FROM sonar_sizeclass WHERE name = %(size)s)
      AND part.since < %(end)s
      AND (part.ended_at IS NULL OR part.ended_at > %(start)s)
      AND condition.confirmed_at IS NOT NULL
      AND condition.type = ANY(%(types)s)
    GROUP BY part.id, condition.type
"""


class LinksInCondition(NamedTuple):
    """Links, by their numbers in LinkIndex, that a condition of a type had from when until when."""

    type: str
    since: datetime
    ended_at: datetime | None
    links: Integers


def lasting_links(
    size: str, window: Window, types: Collection[str], links: LinkIndex
) -> list[LinksInCondition]:
    """Return the members of the confirmed conditions that a size class had within a window."""
    ids = links.numbering.ids
    parameters = {"size": size, "start": window.start, "end": window.end, "types": [*types]}
    spans = []
    for kind, since, ended_at, payload in planned_rows(LASTING, parameters):
        pairs = np.frombuffer(payload, ">i4").reshape(-1, 2)
        source, destination = ids.searchsorted(pairs[np.isin(pairs, ids).all(axis=1)]).T
        numbers = source * len(ids) + destination
        spans.append(LinksInCondition(kind, since, ended_at, numbers))
    return spans
