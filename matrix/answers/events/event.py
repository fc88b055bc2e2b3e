"""An event: what happened to a link, an endpoint, a site or the grid, with all size classes.

A happening is of the files of one size class: a rate jumped and stayed, or tests failed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from matrix.answers.words.names import NO_NAMES
from matrix.query.addresses import address, link_path
from matrix.query.comparison import LONGEST_AROUND
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.compare.two_samples import SMALLEST_RATIO
from matrix.statistics.levels.change_points import NORMAL
from sonar.models import Change, Outage
from sonar.notation.units import format_factor

SLOWER, FASTER, FAILING, RECOVERED = KINDS = ("slower", "faster", "failing", "recovered")
LEVELS = ("link", "source", "destination", "endpoint", "site", "grid")
ARROW = "→"
# The page of an event shows so much before and after it.
AROUND = timedelta(days=14)
MINUTE = timedelta(minutes=1)
# A jump is undone by one that leaves so small a part of it, as a logarithm.
LEFT_OVER = 0.3

# Rates by equal bins of time, half of them before and half since; None without a success.
Course = tuple[float | None, ...]
Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class Happening:
    """Of a link by the ids of both ends, of an endpoint by one of them, of the grid by neither.

    It began between ``earliest`` and ``latest``, as the test ``since`` shows, and lasts, or lasted
    ``until`` a test shows its end. ``factor`` is the rate since over the one before with ``low``
    and ``high``, its interval of 95 %, None where there is none. ``tests`` are those since,
    ``sure`` says that it is beyond chance among all that was searched, ``links`` how many links
    it is of.
    """

    kind: str
    ends: Ends
    size: str
    since: datetime
    earliest: datetime
    latest: datetime
    until: datetime | None
    tests: int
    links: int = 1
    sure: bool = True
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    course: Course = ()

    @property
    def is_of_link(self) -> bool:
        return None not in self.ends

    def overlaps(self, other: Happening) -> bool:
        return (self.until is None or other.since <= self.until) and (
            other.until is None or self.since <= other.until
        )


def jumps(rows: Iterable[Change]) -> list[Happening]:
    """Return the jumps of rows of all sequences, each with its end.

    What undoes a jump is its end, and no happening of its own.
    """
    sequences: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.at):
        whose = row.size_class.name, row.kind, row.source_id, row.destination_id
        sequences[whose].append(row)
    return [each for sequence in sequences.values() for each in jumps_in_sequence(sequence)]


def jumps_in_sequence(rows: Sequence[Change]) -> Iterator[Happening]:
    """Yield the jumps of one sequence, given in the order of time."""
    undone = False
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if not undone:
            yield jump(row, following.at if following else None)
        undone = not undone and following is not None and undoes(following, row)


def undoes(later: Change, change: Change) -> bool:
    """Say whether the level after the later change is that before the other one, or nearly so."""
    left = math.log(change.factor) + math.log(later.factor)
    return abs(left) <= max(math.log(SMALLEST_RATIO), LEFT_OVER * abs(math.log(change.factor)))


def jump(row: Change, until: datetime | None) -> Happening:
    return Happening(
        kind=SLOWER if row.factor < 1 else FASTER,
        ends=(row.source_id, row.destination_id),
        size=row.size_class.name,
        since=row.at,
        earliest=row.earliest,
        latest=row.latest,
        until=until,
        tests=row.ok_after,
        links=row.links,
        sure=row.sure,
        factor=row.factor,
        low=row.low,
        high=row.high,
        course=tuple(row.course),
    )


def failing_happening(row: Outage) -> Happening:
    return Happening(
        kind=FAILING,
        ends=(row.source_id, row.destination_id),
        size=row.size_class.name,
        since=row.began,
        earliest=row.last_ok or row.began,
        latest=row.began,
        until=row.ended,
        tests=row.tests,
        links=row.links,
        course=tuple(row.course),
    )


def going_on(
    kind: str, ends: Ends, size: str, *, since: float, tests: int, factor: tuple[float, ...]
) -> Happening:
    """Return what goes on at a link since a test (Unix s).

    ``factor`` is now / usual with its interval, NaN where there is none; what fails has none.
    """
    began = datetime.fromtimestamp(since, UTC)
    ratio, low, high = (None if kind == FAILING or math.isnan(value) else value for value in factor)
    return Happening(
        kind=kind,
        ends=ends,
        size=size,
        since=began,
        earliest=began,
        latest=began,
        until=None,
        tests=tests,
        factor=ratio,
        low=low,
        high=high,
    )


@dataclass(frozen=True)
class Event:
    """``parts`` are its happenings, of one kind, each of a size class and of an endpoint or link.

    ``source`` and ``destination`` are there where it is of a link or of an endpoint at that end;
    ``site`` where it is of several endpoints of a site.
    """

    kind: str
    level: str
    source: EndpointInfo | None
    destination: EndpointInfo | None
    site: str
    parts: tuple[Happening, ...]
    sizes: tuple[str, ...]

    @property
    def since(self) -> datetime:
        """Return the start of the first test that shows it."""
        return min(part.since for part in self.parts)

    @property
    def earliest(self) -> datetime:
        """Return the latest moment before which no part of it can have begun."""
        earliest = max(part.earliest for part in self.parts)
        return earliest if earliest <= self.since else min(part.earliest for part in self.parts)

    @property
    def latest(self) -> datetime:
        return max(self.since, min(part.latest for part in self.parts))

    @property
    def until(self) -> datetime | None:
        ends = [part.until for part in self.parts]
        return None if None in ends else max(end for end in ends if end)

    @property
    def at(self) -> datetime:
        """Return when it made what it is: a link that recovered did so at the end of its outage."""
        return self.until if self.kind == RECOVERED and self.until else self.since

    @property
    def is_certain(self) -> bool:
        return any(part.sure for part in self.parts)

    @property
    def tests(self) -> int:
        return sum(part.tests for part in self.parts)

    @property
    def links(self) -> int:
        return max(part.links for part in self.parts)

    @property
    def course(self) -> Course:
        """Return that of the part with most tests of those that have one."""
        drawn = [part for part in self.parts if part.course]
        return max(drawn, key=lambda part: part.tests).course if drawn else ()

    @property
    def factor(self) -> tuple[float, float | None, float | None] | None:
        """Return the rate since over the one before and its interval of 95 %, if it has one."""
        return mean_factor(self.parts)

    @property
    def factor_words(self) -> str:
        return format_factor(*self.factor) if self.factor else ""

    @property
    def sites(self) -> list[str]:
        ends = {end.site for end in (self.source, self.destination) if end}
        return sorted(ends | {self.site} if self.site else ends)

    @property
    def source_id(self) -> int | None:
        return self.source.id if self.source else None

    @property
    def destination_id(self) -> int | None:
        return self.destination.id if self.destination else None

    @property
    def id(self) -> str:
        """Return what tells it from all others."""
        ends = f"{self.source_id or ''}-{self.destination_id or ''}{self.site}"
        return f"{self.kind}:{ends}:{self.since.timestamp():.0f}:{'.'.join(self.sizes)}"

    def where(self, short: Mapping[str, str] = NO_NAMES) -> str:
        """Say what it is of, with names that are ``short`` where there are such."""
        names = {end.name: short.get(end.name, end.name) for end in self.ends}
        if self.level == "link":
            return f" {ARROW} ".join(names.values())
        if self.level == "grid":
            return "the whole grid"
        return self.site if self.level == "site" else next(iter(names.values()))

    @property
    def ends(self) -> list[EndpointInfo]:
        return [end for end in (self.source, self.destination) if end]

    @property
    def role(self) -> str:
        """Say what of an endpoint it is of."""
        return {"source": "sending", "destination": "receiving"}.get(self.level, "")

    def words(self, short: Mapping[str, str] = NO_NAMES) -> str:
        """Say it in a few words: `SARA → NDGF fails`."""
        return f"{self.where(short)} {self.predicate()}"

    def predicate(self) -> str:
        role = f" {self.role}" if self.role else ""
        if self.kind == FAILING:
            verbs = {"source": "stopped sending files", "destination": "stopped taking files"}
            return verbs.get(self.level, "fails")
        if self.kind == RECOVERED:
            return f"recovered{role}"
        factor = format_factor(self.factor[0]) if self.factor else ""
        return f"{'slowed' if self.kind == 'slower' else 'sped up'} to {factor}{role}"

    def url(self, now: datetime) -> str:
        """Return the page that shows it, with some time before and after."""
        start = (self.earliest - AROUND).replace(second=0, microsecond=0)
        end = min(self.latest + AROUND, now).replace(second=0, microsecond=0) + MINUTE
        return MatrixQuery(size=self.size, window="", start=start, end=end).url(self.path)

    def comparison_url(self, now: datetime) -> str:
        """Return the page that compares up to 7 days since it began with the 7 days before."""
        query = MatrixQuery(size=self.size).around(min(self.since, now), now, LONGEST_AROUND)
        return query.url(self.path)

    @property
    def size(self) -> str:
        """Return the largest of its size classes: overhead blurs its rates the least."""
        return self.sizes[-1]

    @property
    def path(self) -> str:
        """Return the page of what it is of."""
        if self.source and self.destination and self.level == "link":
            return link_path(self.source.name, self.destination.name)
        return address("site", self.sites[0]) if self.sites else address("matrix")


def mean_factor(parts: Sequence[Happening]) -> tuple[float, float | None, float | None] | None:
    """Return the mean factor of happenings, each weighted by how exactly it is known.

    Where they differ by more than their intervals say, that of the mean is wider by as much
    (Birge 1932). None where none has a factor, and no interval where one has none.
    """
    factors = [part.factor for part in parts if part.factor]
    if not factors:
        return None
    logs = [math.log(factor) for factor in factors]
    errors = [error_of(part) for part in parts if part.factor]
    if None in errors:
        return math.exp(sum(logs) / len(logs)), None, None
    weights = [1 / error**2 for error in errors if error]
    mean = sum(w * log for w, log in zip(weights, logs, strict=True)) / sum(weights)
    square = sum(w * (log - mean) ** 2 for w, log in zip(weights, logs, strict=True))
    wider = math.sqrt(max(1.0, square / max(len(logs) - 1, 1)))
    half = NORMAL * wider / math.sqrt(sum(weights))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def error_of(part: Happening) -> float | None:
    """Return the standard error of the logarithm of a factor, None if it is not known."""
    if not part.low or not part.high or part.high <= part.low:
        return None
    return (math.log(part.high) - math.log(part.low)) / (2 * NORMAL)


def event_of(
    parts: Sequence[Happening],
    level: str,
    ends: tuple[EndpointInfo | None, EndpointInfo | None],
    sizes: Sequence[str],
    site: str = "",
) -> Event:
    """Make an event of happenings of one kind: of those that last, or else of one that is over."""
    lasting = [part for part in parts if part.until is None]
    parts = lasting or parts
    is_over = parts[0].kind == FAILING and not lasting
    befallen = {part.size for part in parts}
    return Event(
        kind=RECOVERED if is_over else parts[0].kind,
        level=level,
        source=ends[0],
        destination=ends[1],
        site=site,
        parts=tuple(parts),
        sizes=tuple(size for size in sizes if size in befallen),
    )
