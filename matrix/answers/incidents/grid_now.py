"""What an evaluation needs to know of the whole grid: places, rules, and what can be tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from django.conf import settings

from matrix.answers.incidents import expectations
from matrix.assessment import targets
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.axes import LinkIndex
from matrix.store import downtimes, registry
from matrix.store.data_version import DataVersion
from sonar.alerting.subjects import Whose
from sonar.models import (
    Downtime,
    Endpoint,
    EvaluationRun,
    Expectation,
    HistoryEntry,
)

# Runs that are further apart than this, or than so many of their intervals, do not follow each
# other: Sonar was away.
AWAY, AWAY_INTERVALS = timedelta(minutes=15), 3
# For so long after a pause or a downtime no link is called silent by what was before it.
LONGEST_SILENCE = timedelta(days=7)


@dataclass(frozen=True)
class GridNow:
    """What all size classes share: places, what is expected, and which links can be tested.

    ``free_since`` (Unix s) is since when nothing known has kept Sonar from testing a link, and
    ``testable`` says which links nothing keeps from it now; both of shape (places, places).
    ``held`` has the rates (bytes/s) that are held, by size class and link.
    """

    now: datetime
    version: DataVersion
    links: LinkIndex
    expectations: Sequence[Expectation]
    held: Mapping[Whose, float]
    free_since: Floats
    testable: Flags
    awake_since: datetime
    site_ids: Mapping[int, int]

    @classmethod
    def read(cls, now: datetime) -> GridNow:
        version = registry.read_versions()
        links = registry.read_links(version)
        awake_since = awake(EvaluationRun.objects.first(), now)
        down = Downtime.endpoints_down(now)
        kept_back = links.ends(
            place.retired or place.id in down or place.is_paused(now) for place in links.places
        )
        free = np.maximum(free_since(links, now), awake_since.timestamp())
        return cls(
            now=now,
            version=version,
            links=links,
            expectations=targets.read(),
            held=expectations.read_held(now),
            free_since=np.maximum(free[:, None], free[None, :]),
            testable=links.matching(()).reshape(links.shape) & ~kept_back.reshape(links.shape),
            awake_since=awake_since,
            site_ids=dict(Endpoint.objects.values_list("id", "site_id")),
        )

    @cached_property
    def sites(self) -> list[str]:
        return [place.site for place in self.links.places]

    @cached_property
    def ids(self) -> list[int]:
        return [place.id for place in self.links.places]


def awake(last: EvaluationRun | None, now: datetime) -> datetime:
    """Return since when runs follow each other closely."""
    interval = timedelta(seconds=settings.SONAR_INCIDENTS_SECONDS)
    longest = max(AWAY, AWAY_INTERVALS * interval)
    if last is None or not timedelta() <= now - last.evaluated_at <= longest:
        return now
    return last.awake_since


def free_since(links: LinkIndex, now: datetime) -> Floats:
    """Return by place since when no downtime and no pause has kept its tests back, in Unix s."""
    free = np.zeros(len(links.places))
    number = {place.id: at for at, place in enumerate(links.places)}
    of_site: dict[str, list[int]] = {}
    for place in links.places:
        of_site.setdefault(place.site, []).append(place.id)
    ends = [
        (row.endpoint_id, row.site and row.site.name, row.ends_at)
        for row in downtimes.within(now - LONGEST_SILENCE, now)
        if row.stops_tests
    ]
    entries = HistoryEntry.objects.filter(
        kind__in=[HistoryEntry.Kind.SITE, HistoryEntry.Kind.ENDPOINT],
        at__gt=now - LONGEST_SILENCE,
        at__lte=now,
        changes__has_any_keys=["paused_since", "enabled", "retired_at"],
    )
    ends += [
        (entry.key, None, entry.at)
        if entry.kind == HistoryEntry.Kind.ENDPOINT
        else (None, entry.name, entry.at)
        for entry in entries
    ]
    for endpoint, site, end in ends:
        for each in [endpoint] if endpoint else of_site.get(site or "", []):
            if each in number:
                at = number[each]
                free[at] = max(free[at], min(end, now).timestamp())
    return free
