"""All that happened in a window: what the search has kept, with what goes on now, as events.

And the sentence of today.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta

import numpy as np
from django.db.models import Q

from matrix.answers.events.event import (
    FAILING,
    FASTER,
    KINDS,
    LEVELS,
    SLOWER,
    Ends,
    Event,
    Happening,
    event_of,
    failing_happening,
    going_on,
    jumps,
)
from matrix.answers.link.report import LinkReport
from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.site.reports import Report
from matrix.answers.words.names import NO_NAMES
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import changes as stored
from matrix.store.data_version import snapshot
from sonar.models import SizeClass
from sonar.notation.units import format_count
from sonar.notation.windows import Window

LOOKS = (FAILING, SLOWER, FASTER)
# An endpoint fails on as long as at least so many of its links do.
FEWEST_LINKS = 3
# What is slower or faster than a jump explains by more than this is something new.
MUCH = math.log(2)
EVERYTHING = Q()


@dataclass(frozen=True)
class Present:
    """What goes on at the end of a window, as far as it is known: of these size classes.

    ``shortest_promise`` is the shortest interval of tests in seconds, infinity for none.
    """

    happenings: Sequence[Happening] = ()
    sizes: frozenset[str] = frozenset()
    shortest_promise: float = math.inf

    @classmethod
    def of_grids(cls, grids: Iterable[Grid], places: Iterable[EndpointInfo]) -> Present:
        """Take it from grids of single links, each of a size class."""
        ids = {place.name: place.id for place in places}
        answered = list(grids)
        happenings = [each for answer in answered for each in present_happenings(answer, ids)]
        promise = min((answer.shortest_promise for answer in answered), default=math.inf)
        return cls(happenings, frozenset(answer.query.size for answer in answered), promise)


def present_happenings(grid: Grid, ids: Mapping[str, int]) -> Iterator[Happening]:
    """Yield what goes on by a grid of single links; ``ids`` are those of endpoints by name."""
    cells = grid.cells
    for look in LOOKS:
        for row, column in np.argwhere(cells.of_look(look)).tolist():
            at = row, column
            yield going_on(
                look,
                (ids[grid.sources[row].name], ids[grid.destinations[column].name]),
                grid.query.size,
                since=float(cells.since[at]),
                tests=int(cells.streak[at]),
                factor=(
                    float(cells.now[at] / cells.usual[at]),
                    *(float(bound[at]) for bound in (cells.ratio_low, cells.ratio_high)),
                ),
            )


UNKNOWN = Present()


def size_names() -> list[str]:
    """Return the size classes, smallest first. One SQL query."""
    return list(SizeClass.objects.values_list("name", flat=True))


def present_at(now: datetime, sizes: Iterable[str], places: Iterable[EndpointInfo]) -> Present:
    """Read how all links are now, of each size class as its matrix opens."""
    grids = [grid.build(MatrixQuery(size=size), now) for size in sizes]
    return Present.of_grids(grids, places)


def read(
    window: Window,
    places: Sequence[EndpointInfo],
    sizes: Sequence[str],
    present: Present = UNKNOWN,
    condition: Q = EVERYTHING,
    *,
    as_at_end: bool = False,
) -> list[Event]:
    """Return the events of a window, and those that last from before it, newest first.

    ``condition`` is one on their ends, ``present`` is of the end of the window. Where they are to
    be as they were ``as_at_end`` of it, what ended later lasts. Three SQL queries.
    """
    with snapshot():
        changes = stored.read_changes(window, condition)
        outages = stored.read_outages(window, condition)
        stored.with_ends(outages)
    kept = [*jumps(changes), *map(failing_happening, outages)]
    if as_at_end:
        kept = [
            replace(each, until=None) if each.until and each.until >= window.end else each
            for each in kept
        ]
    events = merged(joined(kept, present.happenings, present.sizes), places, sizes)
    return [event for event in events if event.until is None or window.start <= event.at]


def events_at(
    window: Window, now: datetime, places: Sequence[EndpointInfo], sizes: Sequence[str]
) -> tuple[list[Event], Present]:
    """Return the events of a window, and what goes on at its end unless that is over."""
    present = UNKNOWN if window.end < now else present_at(now, sizes, places)
    return read(window, places, sizes, present), present


OF_GRID = Q(source=None, destination=None)


def events_of_link(answer: LinkReport) -> list[Event]:
    """Read those of a link, of its ends, and of all links. Three SQL queries."""
    source, destination = answer.question.ends
    ends = Q(source=source.id, destination=destination.id)
    ends |= Q(source=source.id, destination=None) | Q(source=None, destination=destination.id)
    sizes = [part.size for part in answer.classes]
    happenings = [
        going_on(
            kind,
            (source.id, destination.id),
            there.size,
            since=there.since,
            tests=there.streak,
            factor=(there.ratio, np.nan, np.nan),
        )
        for there in (part.there for part in answer.classes)
        for kind in LOOKS
        if kind in (there.state, there.level)
    ]
    present = Present(happenings, frozenset(sizes))
    return read(answer.window, answer.question.ends, sizes, present, ends | OF_GRID)


def events_of_site(report: Report) -> list[Event]:
    """Read those of a site, of its endpoints and links, and of all links. Three queries."""
    ids = [place.id for place in report.endpoints]
    condition = Q(source__in=ids) | Q(destination__in=ids) | OF_GRID
    present = Present.of_grids([report.links], report.all_endpoints)
    return read(report.window, report.all_endpoints, [*report.sites], present, condition)


class ByEnds:
    """Happenings by what they are of, to find those that befell a link with all others."""

    def __init__(self, happenings: Iterable[Happening]) -> None:
        self._places: dict[tuple[str, str, Ends], list[Happening]] = defaultdict(list)
        for happening in happenings:
            self._places[happening.kind, happening.size, happening.ends].append(happening)

    def of(self, link: Happening) -> Iterator[Happening]:
        """Yield those that befell a link in the same way, at the same time."""
        source, destination = link.ends
        for ends in ((source, destination), (source, None), (None, destination), (None, None)):
            for other in self._places.get((link.kind, link.size, ends), ()):
                if other.overlaps(link):
                    yield other


def joined(
    stored: Sequence[Happening], present: Sequence[Happening], sizes: frozenset[str]
) -> list[Happening]:
    """Return what was found by looking back together with what goes on now in some size classes.

    Of what fails now a stored outage says since when there is no success; one that is not failing
    any more, without a success yet, is neither failing nor recovered.
    """
    failing = {(each.ends, each.size): each for each in present if each.kind == FAILING}
    kept = [refreshed(each, failing) if each.size in sizes else each for each in stored]
    every = [each for each in kept if each is not None]
    outages = [each for each in every if each.kind == FAILING and each.until is None]
    ends = {(each.ends, each.size) for each in outages}
    fresh = [each for each in failing.values() if (each.ends, each.size) not in ends]
    lasting = ByEnds(each for each in every if each.until is None)
    shifted = [each for each in present if each.kind != FAILING and not is_known(each, lasting)]
    return [*every, *fresh, *shifted]


def is_known(present: Happening, lasting: ByEnds) -> bool:
    """Say whether a stored jump that lasts is what makes a link slower, or faster, now.

    The newest three tests are no exact measure: only much more than the jump is another one.
    """
    shift = math.log(present.factor or 1)
    return any(
        abs(shift) - abs(math.log(other.factor)) <= MUCH
        for other in lasting.of(present)
        if other.factor
    )


def refreshed(
    happening: Happening, failing: Mapping[tuple[Ends, str], Happening]
) -> Happening | None:
    """Return an open outage as it is now, None if it is none any more; all else as it is."""
    if happening.kind != FAILING or happening.until:
        return happening
    if happening.is_of_link:
        now = failing.get((happening.ends, happening.size))
        return replace(happening, tests=now.tests) if now else None
    links = sum(
        each.size == happening.size
        and any(own == end for own, end in zip(happening.ends, each.ends, strict=True) if own)
        for each in failing.values()
    )
    return replace(happening, links=links) if links >= FEWEST_LINKS else None


# What befalls a link with one size class shows with another at its next test, and what befalls
# an endpoint at the next tests of its links.
APART = timedelta(days=1)
Group = list[Happening]


def merged(
    happenings: Iterable[Happening], places: Sequence[EndpointInfo], sizes: Sequence[str]
) -> list[Event]:
    """Return the events of happenings, newest first.

    ``places`` are the registered endpoints: what is of others is left out. ``sizes`` are the size
    classes in their order.
    """
    by_id = {place.id: place for place in places}
    registered = [each for each in happenings if all(end in by_id for end in each.ends if end)]
    of_subject: dict[object, Group] = defaultdict(list)
    for each in by_themselves(registered):
        of_subject[subject_of(each, by_id)].append(each)
    events = [
        event_of_group(part, by_id, sizes)
        for parts in of_subject.values()
        for group in at_once(parts)
        for part in by_whole_sites(group, by_id)
    ]
    return sorted(events, key=lambda event: (event.at, event.id), reverse=True)


def by_themselves(happenings: Sequence[Happening]) -> list[Happening]:
    """Leave out links that fail with all others of an endpoint. Of jumps the search does so."""
    of_many = ByEnds(each for each in happenings if not each.is_of_link)
    return [
        each
        for each in happenings
        if each.kind != FAILING or not each.is_of_link or not any(of_many.of(each))
    ]


def subject_of(happening: Happening, by_id: Mapping[int, EndpointInfo]) -> tuple[object, ...]:
    """Return what happenings share that may be one event: the link, the site, or the grid."""
    source, destination = happening.ends
    if source and destination:
        return happening.kind, source, destination
    end = source or destination
    return happening.kind, by_id[end].site if end else ""


def at_once(parts: Group) -> list[Group]:
    """Return those of one subject that began at about the same time, in the order of time.

    Each size class of an end is there once.
    """
    groups: list[Group] = []
    for part in sorted(parts, key=lambda part: part.since):
        group = groups[-1] if groups else []
        if (
            group
            and part.earliest <= group[0].latest + APART
            and part.overlaps(group[0])
            and (part.size, part.ends) not in {(other.size, other.ends) for other in group}
        ):
            group.append(part)
        else:
            groups.append([part])
    return groups


def by_whole_sites(group: Group, by_id: Mapping[int, EndpointInfo]) -> list[Group]:
    """Cut a group of some endpoints of a site, while others of it are well, by endpoint."""
    first = group[0]
    ends = {end for part in group for end in part.ends if end}
    if first.is_of_link or len(ends) < 2:
        return [group]
    site = by_id[min(ends)].site
    used = {each.id for each in by_id.values() if each.site == site and not each.retired}
    if used <= ends:
        return [group]
    return [[part for part in group if end in part.ends] for end in sorted(ends)]


def event_of_group(group: Group, by_id: Mapping[int, EndpointInfo], sizes: Sequence[str]) -> Event:
    """Make an event of happenings of one subject: of a link, an endpoint, a site or the grid."""
    source, destination = group[0].ends
    if source and destination:
        return event_of(group, "link", (by_id[source], by_id[destination]), sizes)
    ends = {end for part in group for end in part.ends if end}
    if not ends:
        return event_of(group, "grid", (None, None), sizes)
    if len(ends) > 1:
        return event_of(group, "site", (None, None), sizes, by_id[min(ends)].site)
    place = by_id[ends.pop()]
    sends, receives = (any(part.ends[at] for part in group) for at in (0, 1))
    if sends and receives:
        return event_of(group, "endpoint", (place, place), sizes)
    level = "source" if sends else "destination"
    return event_of(group, level, (place if sends else None, place if receives else None), sizes)


# More are counted.
MOST_TODAY = 3
# Of the worst kind first, and of what is of most links.
WEIGHT = {kind: at for at, kind in enumerate(("failing", "slower", "recovered", "faster"))}


def window_of(now: datetime) -> Window:
    """Return the UTC day so far; a window is not empty."""
    midnight = datetime.combine(now, time(), now.tzinfo)
    return Window(midnight, max(now, midnight.replace(microsecond=1)))


def today_words(
    events: Iterable[Event],
    now: datetime,
    short: Mapping[str, str] = NO_NAMES,
    most: int = MOST_TODAY,
) -> str:
    """Say the certain events of today, the worst first: nothing uncertain is worth a headline."""
    day = window_of(now)
    of_day = [event for event in events if event.is_certain and day.start <= event.at]
    if not of_day:
        return "Today: nothing new so far"
    first = sorted(of_day, key=weight)
    said = [event.words(short) for event in first[:most]]
    rest = len(first) - len(said)
    more = f" and {format_count(rest)} more" if rest else ""
    return f"Today: {', '.join(said)}{more}"


def weight(event: Event) -> tuple[int, int, float]:
    """Return what sorts events by how much they matter."""
    factor = event.factor[0] if event.factor else 1.0
    return WEIGHT[event.kind], -LEVELS.index(event.level), factor


def lasting_words(events: Iterable[Event], start: datetime) -> str:
    """Count the certain events from before a time that last; nothing if there are none."""
    lasting = [each for each in events if each.is_certain and not each.until and each.at < start]
    counts = Counter(event.kind for event in lasting)
    parts = [f"{format_count(counts[kind])} {kind}" for kind in KINDS if counts[kind]]
    return f"Still going on from before: {', '.join(parts)}" if parts else ""


def by_kind(events: Sequence[Event]) -> dict[str, int]:
    counts = Counter(event.kind for event in events)
    return {kind: counts[kind] for kind in KINDS}
