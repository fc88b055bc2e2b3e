"""Filters on how a result was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from django.db.models import Q, QuerySet

from matrix.query.filters import ALONE, IN_COMPANY, NOT_NOTED, Filter, alternatives
from matrix.statistics.arrays import Flags
from sonar.models import Profile, Transfer

PROFILE_FIELDS = {
    "mover": "mover",
    "mode": "mode",
    "streams": "streams",
    "ip_version": "ip_version",
    "origin": "origin",
    "mesh": "mesh__name",
    "beside": "beside",
}
# What a filter on it says of each value of Profile.beside.
BESIDE: dict[str, int | None] = {ALONE: 0, IN_COMPANY: 1, NOT_NOTED: None}
BESIDE_TEXTS = {number: text for text, number in BESIDE.items()}
# Ids of profiles have 16 bits.
IDS = 2**16


def passing(filters: Iterable[Filter]) -> Flags | None:
    """Say of each id of a profile whether it passes the filters; nothing if none is on profiles.

    One SQL statement, or none.
    """
    made = condition(filters, PROFILE_FIELDS)
    if not made:
        return None
    table = np.zeros(IDS, dtype=bool)
    table[list(Profile.objects.filter(made).values_list("id", flat=True))] = True
    return table


def made_so(transfers: QuerySet[Transfer], filters: Iterable[Filter]) -> QuerySet[Transfer]:
    """Leave those results that were made as the filters on profiles say."""
    made = condition(filters, PROFILE_FIELDS)
    return (
        transfers.filter(profile__in=Profile.objects.filter(made).values("id"))
        if made
        else transfers
    )


def condition(filters: Iterable[Filter], fields: Mapping[str, str]) -> Q:
    """Turn the filters on these fields into a condition.

    NULL is never an excluded value, but where a filter has a name for it.
    """
    whole = Q()
    for some in alternatives(one for one in filters if one.parameter in fields):
        hit = one_of(fields[some[0].parameter], [one.value for one in some])
        whole &= ~hit if some[0].exclude else hit
    return whole


def one_of(field: str, values: Sequence[str]) -> Q:
    """Return the condition that a field has one of the values of a filter."""
    if field != "beside":
        return Q(**{f"{field}__in": values})
    numbers = [BESIDE[value] for value in values]
    known = Q(beside__in=[number for number in numbers if number is not None])
    return known | Q(beside__isnull=True) if None in numbers else known
