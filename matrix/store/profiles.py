"""The ways of measuring that there are results of: what filters on profiles can ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg

from matrix.query.attributes import OF_PROFILES
from matrix.statistics.arrays import Integers
from matrix.store.profile_filters import IDS, PROFILE_FIELDS
from sonar.models import Profile
from sonar.results.store import MADE_UP

# What must not be pooled unknowingly.
APART = tuple(name for name, attribute in OF_PROFILES.items() if attribute.apart)


@dataclass(frozen=True)
class ProfileChoices:
    """The values of each profile filter that occur together, as text; empty for unknown.

    ``ids`` are those of the profiles of each combination.
    """

    combinations: tuple[dict[str, str], ...]
    ids: tuple[frozenset[int], ...]

    def among(self, profiles: Collection[int]) -> ProfileChoices:
        """Return those that some of these profiles, by their ids, have."""
        return self._kept(not ids.isdisjoint(profiles) for ids in self.ids)

    @property
    def differing(self) -> list[str]:
        """Name the attributes of which there are several known values, and that keep ways apart."""
        return [name for name in APART if len(self.values(name)) > 1]

    def codes(self) -> dict[str, Integers]:
        """Return for each differing attribute the number of the value of a profile by its id.

        They count from 1 in the order of values(), 0 stands for unknown.
        """
        codes = {}
        for name in self.differing:
            numbers = {text: number for number, text in enumerate(self.values(name), 1)}
            codes[name] = np.zeros(IDS, dtype=np.int64)
            for values, ids in zip(self.combinations, self.ids, strict=True):
                codes[name][list(ids)] = numbers.get(values[name], 0)
        return codes

    def _kept(self, flags: Iterable[bool]) -> ProfileChoices:
        pairs = zip(self.combinations, self.ids, strict=True)
        kept = [pair for pair, is_kept in zip(pairs, flags, strict=True) if is_kept]
        return ProfileChoices(tuple(values for values, _ in kept), tuple(ids for _, ids in kept))

    def values(self, attribute: str) -> list[str]:
        """Return the known values of an attribute, numbers in their order."""
        texts = {values[attribute] for values in self.combinations} - {""}
        return sorted(texts, key=lambda text: text.rjust(5) if text.isdigit() else text)


def read() -> ProfileChoices:
    """Read the ways of measuring, which are few: what is made up has none. One SQL query."""
    alike = Profile.objects.exclude(MADE_UP).order_by().values(*PROFILE_FIELDS.values())
    rows = list(alike.annotate(ids=ArrayAgg("id")))
    return ProfileChoices(
        tuple(
            {
                name: attribute.text(row[PROFILE_FIELDS[name]])
                for name, attribute in OF_PROFILES.items()
            }
            for row in rows
        ),
        tuple(frozenset(row["ids"]) for row in rows),
    )
