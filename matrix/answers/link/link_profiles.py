"""In which ways the results of a link were measured, so that none are mixed unknowingly."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

import numpy as np

from matrix.answers.link.samples import Results
from matrix.query.attributes import NONE_CONCURRENT, OF_PROFILES, SOME_CONCURRENT, SWEEP
from matrix.query.filters import SWEEPS, Filter
from matrix.query.forms import ALLOWED_VALUES
from matrix.statistics.transfers.evidence import Slowdown, slowdown
from sonar.models import Profile

Group = TypeVar("Group", bound=Hashable)
ALIKE = ("mover", "mode", "tcp_buffer_bytes", "ip_version", "origin", "activity")
# What tests must have in common for their streams to be compared, and to be compared at all.
but_streams = attrgetter(*ALIKE)
comparable = attrgetter(*ALIKE, "streams", "streams_used")


@dataclass(frozen=True, order=True)
class ProfileKey:
    """What filters can tell apart; an IP version of 0, an empty mode or clock are not known."""

    mover: str
    mode: str
    streams: int
    ip_version: int
    clock: str
    origin: str
    mesh: str
    concurrent: str
    purpose: str

    @classmethod
    def of(cls, profile: Profile) -> ProfileKey:
        return cls(
            mover=profile.mover,
            mode=profile.mode,
            streams=profile.streams,
            ip_version=profile.ip_version or 0,
            clock=profile.clock,
            origin=profile.origin,
            mesh=profile.mesh.name if profile.mesh else "",
            concurrent=OF_PROFILES["concurrent"].text(profile.concurrent),
            purpose=OF_PROFILES["purpose"].text(profile.purpose),
        )

    @property
    def name(self) -> str:
        mover = f"{self.mover} {self.mode}".rstrip()
        streams = "1 stream" if self.streams == 1 else f"{self.streams} streams"
        return f"{mover}, {streams}, {self.origin}"

    def filters(self) -> tuple[Filter, ...]:
        """Return what lets only such results pass; a mesh is no filter where there was none."""
        conditions = []
        for name in OF_PROFILES:
            if value := str(getattr(self, name) or ""):
                conditions.append(Filter(name, value))
            else:  # not known: none of those that there are
                conditions += [
                    Filter(name, other, exclude=True) for other in ALLOWED_VALUES.get(name, ())
                ]
        return tuple(conditions)


@dataclass(frozen=True)
class ProfileSummary:
    """What was measured with one profile in one size class; ``median`` in MB/s, NaN if all failed.

    ``used`` are the numbers of streams that were used, None among them where nobody can tell.
    """

    profile: ProfileKey
    size: str
    ok: int
    failed: int
    median: float
    used: tuple[int | None, ...]


@dataclass(frozen=True)
class ConcurrentSlowdown:
    """Tests with concurrent tests that were slower than those without; rates in MB/s.

    Both groups have the same settings.
    """

    size: str
    profile: Profile
    rates: Slowdown


def profiles_of(results: Results) -> list[Profile]:
    """Return the profiles of results. One SQL query."""
    ids = np.unique(results.profiles).tolist()
    return list(Profile.objects.filter(id__in=ids).select_related("mesh").order_by("id"))


def without_sweeps(
    results: Results, profiles: Iterable[Profile], filters: Iterable[Filter]
) -> Results:
    """Return those that say how a link is: no sweeps, unless the filters ask for them."""
    if SWEEPS in filters:
        return results
    apart = [profile.id for profile in profiles if profile.purpose == SWEEP]
    return results.taken(~np.isin(results.profiles, apart))


def summaries(
    results: Results, sizes: Mapping[int, str], profiles: Iterable[Profile]
) -> list[ProfileSummary]:
    """Return what was measured, by what filters can tell apart and by size class."""
    summaries: list[ProfileSummary] = []
    for key, alike in sorted(grouped(profiles, ProfileKey.of).items()):
        of_profile = results.of_profiles(alike)
        for size, name in sizes.items():
            of_class = of_profile.of_class(size)
            if not len(of_class):
                continue
            ok = int(of_class.ok.sum())
            # Of failed tests nobody can tell how many streams were used.
            telling = of_class.taken(of_class.ok) if ok else of_class
            ids = set(np.unique(telling.profiles).tolist())
            used = {profile.streams_used for profile in alike if profile.id in ids}
            ordered = tuple(sorted(used, key=lambda number: number or 0))
            median = float(np.median(of_class.successes)) if ok else np.nan
            summary = ProfileSummary(key, name, ok, len(of_class) - ok, median, ordered)
            summaries.append(summary)
    return summaries


def grouped(
    profiles: Iterable[Profile], group: Callable[[Profile], Group]
) -> dict[Group, list[Profile]]:
    groups: dict[Group, list[Profile]] = {}
    for profile in profiles:
        groups.setdefault(group(profile), []).append(profile)
    return groups


def slowed(
    results: Results, sizes: Mapping[int, str], profiles: Iterable[Profile]
) -> list[ConcurrentSlowdown]:
    slower: list[ConcurrentSlowdown] = []
    concurrent = OF_PROFILES["concurrent"]
    groups = list(grouped(profiles, comparable).values())
    for size, name in sizes.items():
        of_class = results.of_class(size)
        for alike in groups:
            without, with_some = (
                of_class.of_profiles(
                    profile for profile in alike if concurrent.text(profile.concurrent) == value
                ).successes
                for value in (NONE_CONCURRENT, SOME_CONCURRENT)
            )
            if rates := slowdown(without, with_some):
                slower.append(ConcurrentSlowdown(name, alike[0], rates))
    return slower


def streams_of(profile: Profile) -> int:
    """Return how many streams were used or, where nobody can tell, were asked for."""
    return profile.streams_used or profile.streams
