"""Conditions as they are read: those of a moment or of a time range, and marks of links.

Each function that reads is one SQL statement.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.models import OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.standing import USUAL_DAYS, Rates
from sonar.database.cursors import planned_rows
from sonar.models import Condition, ConditionPart, Endpoint, Site
from sonar.notation.windows import Window

# What is the matter with a link by conditions that have it as a member, the worst last.
MARKS = ("", *Condition.Type.values)
ASSESSED_AT = "SELECT min(assessed_at) FROM sonar_assessment"
# An assessment that is later than this many of its intervals is not coming.
LATE = 3
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


# A statement of its own, as pages read it every minute, and the ORM takes longer to write it
# than to read what it returns.
COLUMNS = [field.attname for field in Condition._meta.concrete_fields]
OVERLAPPING = f"""
    SELECT assessed.at, parts.tests, parts.failed, parts.open_sizes,
           source.id, source.name, source_site.id, source_site.name,
           destination.id, destination.name, destination_site.id, destination_site.name,
           site.id, site.name, {", ".join(f"condition.{name}" for name in COLUMNS)}
    FROM ({ASSESSED_AT}) AS assessed(at)
    LEFT JOIN (sonar_condition AS condition
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(tests), 0)::bigint, coalesce(sum(failed), 0)::bigint,
                   coalesce(array_agg(size_class.name::text ORDER BY size_class.from_bytes)
                            FILTER (WHERE is_chosen AND is_open), '{{}}'),
                   bool_or(is_chosen AND (is_open OR NOT %(only_open)s))
            FROM sonar_conditionpart AS part
            JOIN sonar_sizeclass AS size_class ON size_class.id = part.size_class_id,
            LATERAL (SELECT %(parts)s::bigint[] IS NULL OR part.id = ANY(%(parts)s::bigint[]),
                            part.since <= %(moment)s
                            AND (part.ended_at IS NULL OR part.ended_at > %(moment)s)
            ) AS state(is_chosen, is_open)
            WHERE part.condition_id = condition.id
        ) AS parts(tests, failed, open_sizes, is_listed)
        LEFT JOIN sonar_endpoint AS source ON source.id = condition.source_id
        LEFT JOIN sonar_site AS source_site ON source_site.id = source.site_id
        LEFT JOIN sonar_endpoint AS destination ON destination.id = condition.destination_id
        LEFT JOIN sonar_site AS destination_site ON destination_site.id = destination.site_id
        LEFT JOIN sonar_site AS site ON site.id = condition.site_id
    ) ON parts.is_listed AND condition.since <= %(last)s
        AND (condition.ended_at IS NULL OR condition.ended_at > %(first)s)
    ORDER BY condition.since DESC, condition.id DESC
"""  # noqa: S608 - constants


def read_overlapping(
    first: datetime,
    last: datetime,
    moment: datetime,
    parts: Sequence[int] | None = None,
    *,
    only_open: bool = False,
) -> tuple[list[Condition], datetime | None]:
    """Return the conditions between two moments, as `rows` does, and `assessed_at`.

    Conditions have one of these ``parts`` (ids, None for any), which with ``only_open`` lasts at a
    moment. `open_sizes` are the size classes of such parts that last then. Of endpoints and sites
    ids and names are read, the rest when it is used.
    """
    parameters = {"first": first, "last": last, "moment": moment, "parts": parts}
    conditions = []
    lines = planned_rows(OVERLAPPING, parameters | {"only_open": only_open})
    for _, tests, failed, open_sizes, *values in lines:
        source, destination, site, own = values[:4], values[4:8], values[8:10], values[10:]
        if own[0] is None:
            break
        condition = Condition.from_db(DEFAULT_DB_ALIAS, COLUMNS, own)
        vars(condition).update(tests=tests, failed=failed, open_sizes=open_sizes)
        condition.source, condition.destination = _endpoint(*source), _endpoint(*destination)
        condition.site = _site(*site)
        conditions.append(condition)
    return conditions, lines[0][0]


def _endpoint(pk: int | None, name: str, site_id: int, site_name: str) -> Endpoint | None:
    if pk is None:
        return None
    endpoint = Endpoint.from_db(DEFAULT_DB_ALIAS, ("id", "name", "site_id"), (pk, name, site_id))
    endpoint.site = Site.from_db(DEFAULT_DB_ALIAS, ("id", "name"), (site_id, site_name))
    return endpoint


def _site(pk: int | None, name: str) -> Site | None:
    return None if pk is None else Site.from_db(DEFAULT_DB_ALIAS, ("id", "name"), (pk, name))


def assessed_at() -> datetime | None:
    """Return when the size class that was assessed longest ago was; None before the first time."""
    rows: list[tuple[datetime | None]] = planned_rows(ASSESSED_AT)
    return rows[0][0]


def is_late(as_of: datetime | None, now: datetime) -> bool:
    """Say whether results were assessed once, and not within the last intervals."""
    return as_of is not None and now - as_of > timedelta(
        seconds=LATE * settings.SONAR_INCIDENTS_SECONDS
    )


@dataclass(frozen=True)
class LinkMarks:
    """What is the matter with links of a size class at a moment: arrays with a value for each link
    that is a member of a condition, in the order of links.

    ``link`` is the flat place of a link in an array of shape (places, places). ``mark`` indexes
    MARKS and is the worst of its conditions, confirmed ones before others; ``condition`` is the id
    of that one. ``since`` is in Unix ms. ``factor``, ``low`` and ``high`` are the rate of the
    condition over its baseline, NaN for none; ``tests`` and ``failed`` count those of its subject
    in this size class since it began. ``baseline`` is what was usual of the link itself before
    that, in bytes/s, NaN where it is not known. Where ``mark`` is 0, a condition of its rate ended
    in the USUAL_DAYS before: only the baseline is of that one, the other values are 0 or NaN.
    """

    places: int
    link: Integers
    mark: NDArray[np.uint8]
    is_confirmed: Flags
    since: Integers
    factor: Rates
    low: Rates
    high: Rates
    tests: Integers
    failed: Integers
    condition: Integers
    baseline: Rates

    def are(self, kind: str) -> Flags:
        """Say which links are surely failing, silent, slow or fast; shape (places, places)."""
        such = (self.mark == MARKS.index(kind)) & self.is_confirmed
        flags = np.zeros((self.places, self.places), dtype=bool)
        flags.ravel()[self.link[such]] = True
        return flags


# The worst last, so that it is what remains of a link. All links of a part are one value: as rows
# they would take five times as long.
MARKED = """
    SELECT size_class.name, is_open,
           (SELECT string_agg(int4send(source_id::int4) || int4send(destination_id::int4)
                              || float4send(coalesce(baseline, 'NaN')::real), '')
            FROM sonar_conditionlink
            WHERE part_id = part.id AND (%(ends)s::int[] IS NULL
                OR source_id = ANY(%(ends)s) AND destination_id = ANY(%(ends)s))),
           array_position(%(marks)s::text[], condition.type::text) - 1,
           condition.confirmed_at IS NOT NULL,
           (extract(epoch FROM condition.since) * 1000)::bigint,
           condition.factor, condition.factor_low, condition.factor_high,
           part.tests, part.failed, condition.id
    FROM sonar_conditionpart AS part
    JOIN sonar_condition AS condition ON condition.id = part.condition_id
    JOIN sonar_sizeclass AS size_class ON size_class.id = part.size_class_id,
    LATERAL (SELECT part.ended_at IS NULL OR part.ended_at > %(moment)s) AS state(is_open)
    WHERE size_class.name = ANY(%(sizes)s) AND part.since <= %(moment)s
      AND (is_open OR part.ended_at > %(ended)s AND condition.type IN ('slow', 'fast'))
    ORDER BY is_open, condition.confirmed_at IS NOT NULL,
             array_position(%(marks)s::text[], condition.type::text), part.since, condition.id
"""
MEMBER = np.dtype([("source", ">i4"), ("destination", ">i4"), ("baseline", ">f4")])
# What MARKED returns of a part after its members, as LinkMarks has it.
OF_PART: dict[str, Any] = {
    "mark": np.uint8,
    "is_confirmed": bool,
    "since": np.int64,
    **dict.fromkeys(("factor", "low", "high"), np.float32),
    **dict.fromkeys(("tests", "failed", "condition"), np.int64),
}
# Of no more places the database chooses the links, so that only theirs are sent.
FEW_PLACES = 100


def marks_by_class(
    sizes: Sequence[str], moment: datetime, links: LinkIndex
) -> dict[str, LinkMarks]:
    """Return the marks of all links at a moment, by size class."""
    ids, places = links.numbering.ids, len(links.places)
    parameters = {
        "sizes": [*sizes],
        "moment": moment,
        "ended": moment - timedelta(days=USUAL_DAYS),
        "marks": [*MARKS],
        "ends": ids.tolist() if places <= FEW_PLACES else None,
    }
    of_size: dict[str, list[Any]] = {size: [] for size in sizes}
    for size, is_open, members, *columns in planned_rows(MARKED, parameters):
        of_size[size].append(
            (members or b"", columns if is_open else [0, False, 0, *[None] * 3, 0, 0, 0])
        )
    return {size: _marks_of(parts, ids) for size, parts in of_size.items()}


def _marks_of(parts: Sequence[tuple[bytes, Sequence[Any]]], ids: Integers) -> LinkMarks:
    """Return the marks of the links of parts, each with its columns, the worst last."""
    of_parts = [np.frombuffer(payload, MEMBER) for payload, _ in parts]
    part = np.repeat(np.arange(len(parts)), [len(each) for each in of_parts])
    members = np.concatenate([np.empty(0, MEMBER), *of_parts])
    is_listed = np.isin(members["source"], ids) & np.isin(members["destination"], ids)
    members, part = members[is_listed], part[is_listed]
    ends = (ids.searchsorted(members[end]) for end in ("source", "destination"))
    link = np.ravel_multi_index(tuple(ends), (len(ids), len(ids)))
    order = np.argsort(link, kind="stable")
    # Of several for one link, the last is kept.
    order = order[np.flatnonzero(np.diff(link[order], append=-1))]
    columns = zip(*(columns for _, columns in parts), strict=True) if parts else [()] * len(OF_PART)
    return LinkMarks(
        places=len(ids),
        link=link[order],
        baseline=members["baseline"][order].astype(np.float32),
        **{
            name: np.array(column, dtype=kind)[part[order]]
            for (name, kind), column in zip(OF_PART.items(), columns, strict=True)
        },
    )


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
