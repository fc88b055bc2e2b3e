"""Happenings to events: each once, with all size classes, of the largest thing that it is of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from matrix.answers.events.event import Event, event_of
from matrix.answers.events.happening import FAILING, ByEnds, Happening
from matrix.statistics.cells.axes import EndpointInfo

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
        for part in of_whole_sites(group, by_id)
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


def at_once(parts: Group) -> Iterator[Group]:
    """Yield those of one subject that began at about the same time, in the order of time.

    Each size class of an end is there once.
    """
    groups: list[Group] = []
    for part in sorted(parts, key=lambda part: part.since):
        group = next((group for group in groups[-1:] if fits(part, group)), None)
        if group is None:
            groups.append([part])
        else:
            group.append(part)
    yield from groups


def fits(part: Happening, group: Group) -> bool:
    first = group[0]
    listed = {(other.size, other.ends) for other in group}
    return (
        part.earliest <= first.latest + APART
        and part.overlaps(first)
        and (part.size, part.ends) not in listed
    )


def of_whole_sites(group: Group, by_id: Mapping[int, EndpointInfo]) -> list[Group]:
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
