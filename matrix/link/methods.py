"""In which ways the results of a link were measured, so that none are mixed unknowingly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from matrix.filters import Filter
from matrix.link.both_ways import Results
from sonar.models import Profile
from sonar.units import MB


@dataclass(frozen=True, order=True)
class Method:
    """What filters can tell apart; an IP version of 0 is one that is not known."""

    mover: str
    streams: int
    ip_version: int
    origin: str
    mesh: str

    @classmethod
    def of(cls, profile: Profile) -> Method:
        mesh = profile.mesh.name if profile.mesh else ""
        return cls(profile.mover, profile.streams, profile.ip_version or 0, profile.origin, mesh)

    def filters(self) -> tuple[Filter, ...]:
        """Return what lets only such results pass; a mesh is no filter where there was none."""
        chosen = [Filter("mover", self.mover), Filter("streams", str(self.streams))]
        if self.ip_version:
            chosen.append(Filter("ip_version", str(self.ip_version)))
        else:
            chosen += [Filter("ip_version", known, exclude=True) for known in ("4", "6")]
        chosen.append(Filter("origin", self.origin))
        return (*chosen, Filter("mesh", self.mesh)) if self.mesh else tuple(chosen)


@dataclass(frozen=True)
class Measured:
    """What was measured by one method in one size class; ``median`` in MB/s, NaN if all failed."""

    method: Method
    size: str
    ok: int
    failed: int
    median: float


def methods(results: Results, sizes: Mapping[int, str]) -> list[Measured]:
    """Return what was measured, by method and size class. One SQL query."""
    found: list[Measured] = []
    for method, profiles in by_method(np.unique(results.profiles).tolist()).items():
        of_method = results.taken(np.isin(results.profiles, profiles))
        of_sizes = ((name, of_method.of_class(size)) for size, name in sizes.items())
        found += [measured(method, name, some) for name, some in of_sizes if len(some)]
    return found


def by_method(ids: Iterable[int]) -> dict[Method, list[int]]:
    found: dict[Method, list[int]] = {}
    for profile in Profile.objects.filter(id__in=list(ids)).select_related("mesh"):
        found.setdefault(Method.of(profile), []).append(profile.id)
    return dict(sorted(found.items()))


def measured(method: Method, size: str, results: Results) -> Measured:
    rates = results.rates[results.ok].astype(np.float64)
    median = float(np.median(rates)) / MB if rates.size else np.nan
    return Measured(method, size, len(rates), len(results) - len(rates), median)
