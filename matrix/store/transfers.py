"""Single results: as lists show them, newest first, page by page; failures by their cause.

And those of some links as raw rows, which the index on the link finds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    Aggregate,
    Case,
    Count,
    F,
    FloatField,
    Func,
    Max,
    Min,
    Q,
    QuerySet,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Concat, Left, Length, Right
from django.db.models.lookups import LessThanOrEqual
from numpy.typing import NDArray

from matrix.query.filters import Filter, alternatives, counted, on_links
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import keyset
from matrix.store.keyset import Cursor
from matrix.store.profiles import made_so
from sonar.database import pg_columns
from sonar.models import SizeClass, Transfer
from sonar.notation.units import MB
from sonar.notation.windows import Window
from sonar.results import segments

COMPARED_CHARACTERS = 200
"""The length of a cause: after that, errors may differ."""
LOOKED_AT_CHARACTERS = 1000
MOST_GROUPS = 20
MOST_SERVERS = 50
REPORTER = r"^COPY \S+(?:, redirected to another server)? reported about \S+: "
"""The words before the reason in HTTP third-party copies; results from elsewhere lack them."""
MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
UNIT = "(?:bytes|[kKMGT]?i?B|[mµ]?s|seconds?|min|minutes?|h|hours?)"
# What differs between two errors of one cause, as PostgreSQL writes expressions. A short whole
# number without a unit, like the status of an answer, is what they have in common.
DIFFERENCES = (
    r"[a-z]+://[^\s,;)\"']+",
    r"(?<=\")/[^\"]*(?=\")|(?<=')/[^']*(?=')",
    r"/[^\s,;)\"']+",
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|0x[0-9a-fA-F]+",
    r"\m(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}\M|\m[0-9a-fA-F]{16,}\M",
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|\m[0-9]{{1,2}} {MONTH}\M|\m{MONTH} +[0-9]{{1,2}}\M",
    # IPv6 addresses, and times of day.
    r"\[?[0-9a-fA-F]*(?::[0-9a-fA-F]*){2,7}[0-9](?:\.[0-9]+)?\]?|\m[0-9]{1,2}:[0-9]{2}\M",
    rf"[0-9]+\.[0-9.]+|[0-9]{{4,}}|[0-9]+(?= ?{UNIT}\M)",
    r"(?<=\m(?:pid|id|tid|request|thread|session|job|task)[ =:#]{0,2})[0-9]+",
    # The number of a host, in its whole name or alone, and the port that follows the name.
    r"(?<=[A-Za-z-])[0-9]+(?=[A-Za-z0-9-]*\.[A-Za-z])|(?<=\.[A-Za-z-]+):[0-9]{1,5}\M",
    r"(?<=[A-Za-z])(?<!IPv|TLSv|SSLv|HTTP|E)[0-9]+\M",
    # Where an address or a time has just gone: its port, its zone, what else it was made of.
    r"(?<=[0-9\]]):[0-9]{1,5}\M",
)
SPACE_BEFORE_QUOTE = r"\s+(?=\"(?:[\s.,;:)]|$))"

# What is read of each: segments.ROW_FIELDS, and of results of all size classes which one, and who.
OF_CLASS = segments.ROW_FIELDS
OF_ALL = OF_CLASS | {"size_class_id": pg_columns.INTEGER, "id": pg_columns.UUID}
Ends = tuple[int, int]


@dataclass(frozen=True)
class TransferSelection:
    """Which results a list shows. What is empty chooses all, but lost ones are named in states.

    All that pass the filters belong to it: query.filters.counted has those of what counts.
    """

    window: Window
    size_class: int | None = None
    filters: tuple[Filter, ...] = ()
    states: tuple[str, ...] = (Transfer.State.DONE, Transfer.State.FAILED)
    error: str = ""

    def rows(self, endpoints: Iterable[EndpointInfo]) -> QuerySet[Transfer]:
        """Return the results in no order; ``endpoints`` are all there are, for filters on ends."""
        rows = Transfer.objects.filter(
            Q(started_at__gte=self.window.start, started_at__lt=self.window.end),
            ends_condition(self.filters, list(endpoints)),
        )
        if set(self.states) != set(Transfer.State.values):
            rows = rows.filter(state__in=self.states)
        if self.size_class:
            rows = rows.filter(size_class=self.size_class)
        rows = made_so(rows, self.filters)
        return rows.filter(error__icontains=self.error) if self.error else rows


def ends_condition(filters: Iterable[Filter], endpoints: Sequence[EndpointInfo]) -> Q:
    """Turn the filters on the ends of links into a condition on ids, as LinkIndex.matching."""
    conditions = Q()
    for group in alternatives(on_links(filters)):
        ids = [
            endpoint.id
            for endpoint in endpoints
            if any(endpoint.has(condition.attribute, condition.value) for condition in group)
        ]
        ends = [group[0].end] if group[0].end else ["source", "destination"]
        hit = Q(*(Q(**{f"{end}__in": ids}) for end in ends), _connector=Q.OR)
        conditions &= ~hit if group[0].exclude else hit
    return conditions


@dataclass(frozen=True)
class TransferList:
    """A page of results, newest first; ``next`` says where the next one begins, if there is one."""

    results: list[Transfer]
    next: Cursor | None


def listing(rows: QuerySet[Transfer], count: int, after: Cursor | None = None) -> TransferList:
    """Return a page of ``rows`` with one SQL query, of which an index gives the order."""
    rows = rows.select_related("profile__mesh", "size_class")
    return TransferList(*keyset.page_by_time(rows, ("-started_at", "-id"), count, after))


def rate_of(transfer: Transfer) -> float:
    """Return the rate in MB/s; NaN for one that is not done."""
    if transfer.state != Transfer.State.DONE:
        return np.nan
    return transfer.bytes / transfer.seconds / MB


@dataclass(frozen=True)
class SimilarFailures:
    """Failures that seem to have one cause, of which ``example`` is the newest.

    ``by_class`` counts them by the name of their size class.
    """

    where: str
    by_class: Mapping[str, int]
    is_lost: bool
    first: datetime
    last: datetime
    example: Transfer

    @property
    def count(self) -> int:
        return sum(self.by_class.values())

    @property
    def sizes(self) -> list[str]:
        return sorted(self.by_class)


def failures(rows: QuerySet[Transfer]) -> list[SimilarFailures]:
    """Group the failures among ``rows`` by where, and by error without what differs.

    The most frequent groups, with two SQL queries: errors may be long, and only one of each
    group leaves the database.
    """
    ids = ArrayAgg("id", order_by=["-started_at", "-id"])
    groups = list(
        rows.exclude(state=Transfer.State.DONE)
        .order_by()
        .annotate(cause=cause())
        .values("error_where", "state", "cause")
        .annotate(
            number=Count("id"),
            sizes=ArrayAgg("size_class__name"),
            first=Min("started_at"),
            last=Max("started_at"),
            newest=Func(ids, template="(%(expressions)s)[1]", output_field=UUIDField()),
        )
        .order_by("-number", "-last", "cause", "error_where", "state")[:MOST_GROUPS]
    )
    examples = Transfer.objects.in_bulk([group["newest"] for group in groups])
    return [
        SimilarFailures(
            where=group["error_where"],
            by_class=Counter(group["sizes"]),
            is_lost=group["state"] == Transfer.State.LOST,
            first=group["first"],
            last=group["last"],
            example=examples[group["newest"]],
        )
        for group in groups
    ]


@dataclass(frozen=True)
class ServerSummary:
    """What one data server moved in a size class; ``median`` in MB/s, NaN if all failed."""

    data_server: str
    size: str
    ok: int
    failed: int
    median: float


def data_servers(rows: QuerySet[Transfer]) -> list[ServerSummary]:
    """Return which servers moved the bytes of results, those of most results first.

    One SQL query. Results of which nobody tells are left out.
    """
    done = Q(state=Transfer.State.DONE)
    groups = (
        rows.exclude(data_server="")
        .order_by()
        .values_list("data_server", "size_class__name")
        .annotate(ok=Count("id", filter=done), failed=Count("id", filter=~done))
        .annotate(median=MedianRate(filter=done))
        .order_by(-(F("ok") + F("failed")), "data_server", "size_class__name")
    )
    return [
        ServerSummary(server, size, ok, failed, np.nan if median is None else median / MB)
        for server, size, ok, failed, median in groups[:MOST_SERVERS]
    ]


MOST_LED = 10_000


class LedTest(NamedTuple):
    """A successful test that was led on: by which host, how long that took, its rate in MB/s.

    The host is empty, and seconds are NaN, where nobody tells.
    """

    host: str
    redirect_seconds: float
    rate: float


def led_tests(rows: QuerySet[Transfer], size: str) -> list[LedTest]:
    """Return the newest successes of a size class of which a data server or a redirect is known.

    One SQL query. Ports are left out: pools of dCache take one at random for each file.
    """
    led = rows.filter(~Q(data_server="") | Q(redirect_seconds__isnull=False))
    done = led.filter(state=Transfer.State.DONE, size_class__name=size).order_by(
        "-started_at", "-id"
    )
    values = done.values_list("data_server", "redirect_seconds", F("bytes") / F("seconds"))
    return [
        LedTest(server.rpartition(":")[0], np.nan if waited is None else waited, rate / MB)
        for server, waited, rate in values[:MOST_LED]
    ]


class MedianRate(Aggregate):
    """The median of bytes per second."""

    function = "percentile_cont"
    template = "percentile_cont(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - of Aggregate
        super().__init__(F("bytes") / F("seconds"), output_field=FloatField(), **more)


LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class CommonError:
    """Failures of one cause: how many there are, where, and the newest of them in words.

    ``cause`` is an error without what differs between two of one; ``last`` is when the newest of
    them started.
    """

    count: int
    where: str
    text: str
    cause: str = ""
    last: datetime = LONG_AGO


def common_errors(
    rows: QuerySet[Transfer], since: Mapping[int, datetime]
) -> dict[int, list[CommonError]]:
    """Return the errors of size classes, of what failed since a moment for each, by cause.

    The most common one first, and of those that are as common the newest.

    One SQL query, none for no class.
    """
    if not since:
        return {}
    of_classes = (Q(size_class=key, started_at__gte=start) for key, start in since.items())
    # Of a long error how it begins and how it ends: why is often last.
    of_long = Concat(
        Left("error", COMPARED_CHARACTERS), Value(" … "), Right("error", COMPARED_CHARACTERS)
    )
    is_short = LessThanOrEqual(Length("error"), 2 * COMPARED_CHARACTERS)
    ends = Case(When(is_short, then=F("error")), default=of_long, output_field=TextField())
    texts = ArrayAgg(ends, order_by=["-started_at", "-id"])
    groups = (
        rows.filter(reduce(or_, of_classes), state=Transfer.State.FAILED)
        .order_by()
        .annotate(cause=cause())
        .values("size_class", "error_where", "cause")
        .annotate(
            number=Count("id"),
            last=Max("started_at"),
            newest=Func(texts, template="(%(expressions)s)[1]", output_field=TextField()),
        )
        .order_by("-number", "-last", "cause", "error_where", "size_class")
    )
    errors = defaultdict[int, list[CommonError]](list)
    for group in groups:
        error = CommonError(
            group["number"], group["error_where"], group["newest"], group["cause"], group["last"]
        )
        errors[group["size_class"]].append(error)
    return dict(errors)


def cause_sql(error: str = "error") -> str:
    """Return SQL for an error without what differs between two of one cause.

    ``error`` is the SQL of the error. Every list that counts errors by cause uses this.
    """
    left_out = f"{REPORTER}|{SPACE_BEFORE_QUOTE}"
    tidy = f"regexp_replace(left({error}, {LOOKED_AT_CHARACTERS}), '{left_out}', '', 'g')"
    differences = "|".join(DIFFERENCES).replace("'", "''")
    return f"left(regexp_replace({tidy}, '{differences}', '…', 'g'), {COMPARED_CHARACTERS})"


def cause() -> Func:
    return Func(F("error"), template=cause_sql("%(expressions)s"), output_field=TextField())


def by_id(transfer: UUID) -> Transfer | None:
    """Return one result by its id, wherever in time; one look into the index of each month."""
    transfers = Transfer.objects.filter(id=transfer).select_related(
        "profile__mesh", "size_class", "source__site", "destination__site"
    )
    return transfers.first()


def read_links(
    links: Sequence[Ends],
    window: Window,
    filters: Sequence[Filter],
    size: str = "",
    *,
    sweeps: bool = False,
) -> NDArray[np.void]:
    """Read what says something about these links, in the order of time. One SQL statement.

    ``links`` are the ids of their ends. With the name of a size class, rows have OF_CLASS and are
    of that class, else they have OF_ALL. Lost results are left out, and what does not count unless
    a filter asks for it; ``sweeps`` belong to it if they are asked for here. Segments would
    have those of all links of the grid, and no index.
    """
    transfers = Transfer.objects.filter(
        between_ends(links),
        started_at__gte=window.start,
        started_at__lt=window.end,
        state__in=[Transfer.State.DONE, Transfer.State.FAILED],
    )
    if size:
        transfers = transfers.filter(
            size_class=SizeClass.objects.filter(name=size).values("id")[:1]
        )
    passing = made_so(transfers, counted(filters, sweeps=sweeps))
    judged = passing.annotate(ok=Q(state=Transfer.State.DONE))
    rows = pg_columns.columns(judged, OF_CLASS if size else OF_ALL)
    return rows[np.argsort(rows["started_at"], kind="stable")]


def between_ends(links: Sequence[Ends]) -> Q:
    """Return a condition that the index on the link answers: no link is looked for singly.

    Those of a site share an end: what they share is named once, with all that is opposite.
    """
    opposite: dict[frozenset[int], list[int]] = {}
    targets: dict[int, set[int]] = {}
    for source, destination in links:
        targets.setdefault(source, set()).add(destination)
    for source, of_source in targets.items():
        opposite.setdefault(frozenset(of_source), []).append(source)
    groups = [
        Q(source__in=sources, destination__in=list(destinations))
        for destinations, sources in opposite.items()
    ]
    return reduce(or_, groups, Q(pk__in=[]))
