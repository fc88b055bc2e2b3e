"""Filters on how a result was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from django.db.models import Q, QuerySet

from matrix.query.attributes import OF_PROFILES
from matrix.query.filters import Filter, alternatives
from matrix.statistics.arrays import Flags
from sonar.models import Profile, Transfer

PROFILE_FIELDS = {name: attribute.columns[0] for name, attribute in OF_PROFILES.items()}
# Ids of profiles have 16 bits.
IDS = 2**16


def passing(filters: Iterable[Filter]) -> Flags | None:
    """Say of each id of a profile whether it passes the filters; nothing if none is on profiles.

    One SQL statement, or none. What says how links are asks for query.filters.counted.
    """
    profiles = condition(filters, PROFILE_FIELDS)
    if not profiles:
        return None
    table = np.zeros(IDS, dtype=bool)
    table[list(Profile.objects.filter(profiles).values_list("id", flat=True))] = True
    return table


def all_but(profiles: Sequence[int]) -> Flags:
    """Say of each id of a profile that it passes, but of these."""
    table = np.ones(IDS, dtype=bool)
    table[list(profiles)] = False
    return table


def made_so(transfers: QuerySet[Transfer], filters: Iterable[Filter]) -> QuerySet[Transfer]:
    """Leave those results that were made as the filters on profiles say."""
    profiles = condition(filters, PROFILE_FIELDS)
    if not profiles:
        return transfers
    return transfers.filter(profile__in=Profile.objects.filter(profiles).values("id"))


def condition(filters: Iterable[Filter], fields: Mapping[str, str]) -> Q:
    """Turn the filters on these columns, by the names of attributes, into a condition.

    NULL is never an excluded value, but where a filter has a name for it.
    """
    whole = Q()
    for options in alternatives(filters, fields):
        name, values = options[0].parameter, [option.value for option in options]
        stored: list[Any] = [OF_PROFILES[name].stored.get(value, value) for value in values]
        hit = Q(**{f"{fields[name]}__in": [value for value in stored if value is not None]})
        if None in stored:
            hit |= Q(**{f"{fields[name]}__isnull": True})
        whole &= ~hit if options[0].exclude else hit
    return whole
