"""Looking at the newest tests of all links: what is not as expected becomes an incident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from matrix.answers.incidents.class_now import ClassNow
from matrix.answers.incidents.grid_now import GridNow
from matrix.statistics.arrays import Floats
from matrix.statistics.incidents.naming import what_is_left
from matrix.store.data_version import snapshot
from sonar.alerting import incidents
from sonar.alerting.evaluation import RANK, Evaluation, FoundCause, FoundLink, Whose
from sonar.alerting.subjects import Subject
from sonar.models import (
    EvaluationRun,
    Incident,
    IncidentEvent,
    SizeClass,
)


def evaluate(now: datetime) -> list[IncidentEvent]:
    """Look at all size classes, store what is new, and hold what is usual; return what happened."""
    with snapshot():
        grid = GridNow.read(now)
        rows = incidents.still_open()
        classes = [look_at(size_class, grid, rows) for size_class in SizeClass.objects.all()]
    causes = together([cause for each in classes for cause in each.causes], grid.site_ids)
    events = incidents.record(
        Evaluation(now, causes, dict(still_standing(rows, classes, grid)), grid.site_ids),
        EvaluationRun(
            evaluated_at=now,
            awake_since=grid.awake_since,
            links=sum(each.judged for each in classes),
        ),
    )
    incidents.hold(levels_to_hold(incidents.still_open(), classes, grid), now)
    return events


@dataclass(frozen=True)
class ClassLook:
    """What a size class says: the causes in it, and what is left of incidents, by their ids.

    ``usual`` has the usual rates (bytes/s) of all links, shape (places, places), of which so many
    were ``judged``.
    """

    size_class: SizeClass
    causes: Sequence[FoundCause]
    left: Mapping[int, FoundCause]
    usual: Floats
    judged: int


def look_at(size_class: SizeClass, grid: GridNow, rows: Sequence[Incident]) -> ClassLook:
    """Look at a size class; of a million links it takes some 100 MB until this returns."""
    of_class = ClassNow.read(size_class, grid)
    left = {row.pk: cause for row in rows if (cause := left_of(row, of_class)) is not None}
    return ClassLook(
        size_class,
        list(of_class.causes()),
        left,
        of_class.usual,
        int(of_class.states.judged.sum()),
    )


def together(causes: Iterable[FoundCause], site_of: Mapping[int, int]) -> list[FoundCause]:
    """Make one cause of what several size classes say of the same subject, or of a part of it."""
    merged: dict[Subject, FoundCause] = {}
    for cause in sorted(causes, key=lambda cause: -cause.subject.size):
        larger = (
            subject
            for subject, other in merged.items()
            if subject == cause.subject
            or (
                subject.covers(cause.subject, site_of)
                and RANK[other.condition] >= RANK[cause.condition]
            )
        )
        subject = next(larger, cause.subject)
        merged[subject] = joined(merged[subject], cause) if subject in merged else cause
    return list(merged.values())


def joined(first: FoundCause, second: FoundCause) -> FoundCause:
    """Return one cause of two: the worse one's figures, the links and size classes of both."""
    same = first.subject == second.subject
    main = second if same and RANK[second.condition] > RANK[first.condition] else first
    sizes = (*first.sizes, *(size for size in second.sizes if size not in first.sizes))
    members = {link.whose: link for link in (*second.members, *first.members)}
    return replace(
        main,
        subject=first.subject,
        began_at=min(first.began_at, second.began_at),
        links=max(first.links, second.links) if same else first.links,
        of_links=max(first.of_links, second.of_links) if same else first.of_links,
        sizes=sizes,
        members=list(members.values()),
    )


def still_standing(
    rows: Iterable[Incident], classes: Sequence[ClassLook], grid: GridNow
) -> Iterator[tuple[int, FoundCause]]:
    """Yield the ids of open incidents that are not well again, with what is left of each."""
    for row in rows:
        rest = [each.left[row.pk] for each in classes if row.pk in each.left]
        if rest:
            yield row.pk, together(rest, grid.site_ids)[0]
        elif is_kept_back(row, grid):
            yield row.pk, as_it_was(row)


def left_of(row: Incident, of_class: ClassNow) -> FoundCause | None:
    place = of_class.grid.place(row)
    if place is None or of_class.size_class.name not in row.sizes:
        return None
    fault = what_is_left(place, row.condition, of_class.states, of_class.grid.sites)
    return None if fault is None else of_class.cause(fault)


def is_kept_back(row: Incident, grid: GridNow) -> bool:
    """Say whether nothing of an incident can be judged while its tests are kept back."""
    place = grid.place(row)
    if place is None:
        return False
    own = grid.links_of(place)
    in_use = ~grid.links.ends(each.retired for each in grid.links.places).reshape(own.shape)
    return bool((own & in_use).any()) and not (own & grid.testable).any()


def as_it_was(row: Incident) -> FoundCause:
    """Return the cause of an incident of which nothing new is known."""
    members = [
        FoundLink(incidents.whose_of(link), link.condition, link.since, link.expected, link.rate)
        for link in row.members.filter(until=None)
    ]
    return FoundCause(
        Subject.of(row),
        row.condition,
        row.began_at,
        row.links,
        row.of_links,
        tuple(row.sizes),
        row.factor,
        row.low,
        row.high,
        members,
    )


def levels_to_hold(
    rows: Iterable[Incident], classes: Sequence[ClassLook], grid: GridNow
) -> dict[Whose, float]:
    """Return the usual rates of all links of open incidents but those of the whole grid."""
    levels: dict[Whose, float] = {}
    for row in rows:
        place = grid.place(row)
        if place is None or row.level == Incident.Level.GRID:
            continue
        for each in classes:
            where = np.nonzero(grid.links_of(place) & (each.usual > 0))
            for source, destination, rate in zip(*where, each.usual[where].tolist(), strict=True):
                levels[grid.ids[source], grid.ids[destination], each.size_class.id] = rate
    return levels
