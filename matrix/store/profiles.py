"""The ways of measuring that there are results of: what filters on profiles can ask for."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg

from matrix.query.filters import PROFILE_FILTERS, Filter, alternatives
from matrix.store.profile_filters import BESIDE_TEXTS, PROFILE_FIELDS
from sonar.models import Profile

# What must not be pooled unknowingly. The mesh is not among them: two may measure alike. Nor is
# what ran beside a test: where that has told, matrix.statistics.slowdown says so with the numbers.
APART = ("mover", "mode", "streams", "ip_version", "origin")


@dataclass(frozen=True)
class ProfileChoices:
    """The values of each profile filter that occur together, as text; empty for unknown.

    ``ids`` are those of the profiles of each combination.
    """

    combinations: tuple[dict[str, str], ...]
    ids: tuple[frozenset[int], ...]

    def among(self, profiles: Collection[int]) -> ProfileChoices:
        """Return those that some of these profiles, by their ids, have."""
        wanted = frozenset(profiles)
        return self._kept(bool(wanted & some) for some in self.ids)

    def passing(self, filters: Iterable[Filter]) -> ProfileChoices:
        """Return those that pass the filters; what is unknown is never an excluded value."""
        asked = [
            (some[0].parameter, {one.value for one in some}, some[0].exclude)
            for some in alternatives(one for one in filters if one.parameter in PROFILE_FILTERS)
        ]
        return self._kept(
            all((one[name] in values) != exclude for name, values, exclude in asked)
            for one in self.combinations
        )

    def _kept(self, wanted: Iterable[bool]) -> ProfileChoices:
        pairs = zip(self.combinations, self.ids, strict=True)
        kept = [pair for pair, is_wanted in zip(pairs, wanted, strict=True) if is_wanted]
        return ProfileChoices(tuple(one for one, _ in kept), tuple(ids for _, ids in kept))

    def values(self, attribute: str) -> list[str]:
        """Return the known values of an attribute, numbers in their order."""
        found = {one[attribute] for one in self.combinations if one[attribute]}
        return sorted(found, key=lambda value: value.rjust(5) if value.isdigit() else value)


def read() -> ProfileChoices:
    """Read the ways of measuring, which are few. One SQL query."""
    alike = Profile.objects.order_by().values(*PROFILE_FIELDS.values())
    rows = list(alike.annotate(ids=ArrayAgg("id")))
    return ProfileChoices(
        tuple(
            {name: text(name, row[field]) for name, field in PROFILE_FIELDS.items()} for row in rows
        ),
        tuple(frozenset(row["ids"]) for row in rows),
    )


def text(name: str, value: Any) -> str:  # noqa: ANN401 - a column of some type
    if name == "beside":
        return BESIDE_TEXTS[value]
    return "" if value is None else str(value)
