"""How results were made: filters on it, and the ways of measuring that there are results of."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, cast

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Q, QuerySet

from matrix.query.attributes import OF_PROFILES, OF_RESULTS, ORIGIN
from matrix.query.filters import Filter, alternatives
from matrix.statistics.arrays import Flags, Integers
from sonar.database.cursors import planned_rows
from sonar.models import Profile, Transfer
from sonar.results.segments import PROFILE_IDS
from sonar.results.store import MADE_UP

PROFILE_FIELDS = {name: attribute.columns[0] for name, attribute in OF_PROFILES.items()}
RESULT_FIELDS = {name: attribute.columns[0] for name, attribute in OF_RESULTS.items()}
Statement = tuple[str, tuple[Any, ...]]
ATTRIBUTES = {**OF_PROFILES, **OF_RESULTS}
# What must not be pooled unknowingly.
APART = tuple(name for name, attribute in OF_PROFILES.items() if attribute.apart)


def passing(filters: Iterable[Filter]) -> Flags | None:
    """Say of each id of a profile whether it passes the filters; nothing if none is on profiles.

    One SQL statement, or none. What says how links are asks for query.filters.counted.
    """
    profiles = condition(filters, PROFILE_FIELDS)
    if not profiles:
        return None
    table = np.zeros(PROFILE_IDS, dtype=bool)
    table[list(Profile.objects.filter(profiles).values_list("id", flat=True))] = True
    return table


def made_so(transfers: QuerySet[Transfer], filters: Iterable[Filter]) -> QuerySet[Transfer]:
    """Leave those results that were made as the filters say."""
    filters = tuple(filters)
    transfers = transfers.filter(condition(filters, RESULT_FIELDS))
    profiles = condition(filters, PROFILE_FIELDS)
    if not profiles:
        return transfers
    return transfers.filter(profile__in=Profile.objects.filter(profiles).values("id"))


def condition(filters: Iterable[Filter], fields: Mapping[str, str]) -> Q:
    """Turn the filters on these columns into a condition; NULL is excluded by its name alone."""
    whole = Q()
    for options in alternatives(filters, fields):
        name, values = options[0].parameter, [option.value for option in options]
        if ATTRIBUTES[name].every in values:
            continue
        stored: list[Any] = [ATTRIBUTES[name].stored.get(value, value) for value in values]
        hit = Q(**{f"{fields[name]}__in": [value for value in stored if value is not None]})
        if None in stored:
            hit |= Q(**{f"{fields[name]}__isnull": True})
        whole &= ~hit if options[0].exclude else hit
    return whole


@dataclass(frozen=True)
class ProfileChoices:
    """The values of each profile filter that occur together, as text; empty for unknown.

    ``ids`` are those of the profiles of each combination.
    """

    combinations: tuple[dict[str, str], ...]
    ids: tuple[frozenset[int], ...]

    def among(self, profiles: Collection[int]) -> Self:
        """Return those that some of these profiles, by their ids, have."""
        pairs = zip(self.combinations, self.ids, strict=True)
        kept = [(values, ids) for values, ids in pairs if not ids.isdisjoint(profiles)]
        return type(self)(tuple(values for values, _ in kept), tuple(ids for _, ids in kept))

    @property
    def have_others(self) -> bool:
        """Say whether there are results of other origins than those that count."""
        return any(values[ORIGIN] != OF_PROFILES[ORIGIN].default for values in self.combinations)

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
            codes[name] = np.zeros(PROFILE_IDS, dtype=np.int64)
            for values, ids in zip(self.combinations, self.ids, strict=True):
                codes[name][list(ids)] = numbers.get(values[name], 0)
        return codes

    def values(self, attribute: str) -> list[str]:
        """Return the known values of an attribute, numbers in their order."""
        texts = {values[attribute] for values in self.combinations} - {""}
        return sorted(texts, key=lambda text: text.rjust(5) if text.isdigit() else text)


def read() -> ProfileChoices:
    """Read the ways of measuring, which are few: what is made up has none. One SQL query."""
    rows = planned_rows(*_of_ways())
    return ProfileChoices(
        tuple(
            {
                name: attribute.text(value)
                for (name, attribute), value in zip(OF_PROFILES.items(), row[:-1], strict=True)
            }
            for row in rows
        ),
        tuple(frozenset(row[-1]) for row in rows),
    )


@cache
def _of_ways() -> Statement:
    """Return the statement, which is always the same: each matrix asks."""
    alike = Profile.objects.exclude(MADE_UP).order_by().values(*PROFILE_FIELDS.values())
    return cast("Statement", alike.annotate(ids=ArrayAgg("id")).query.sql_with_params())
