"""Filters on how a result was made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from django.db.models import Q, QuerySet

from matrix.filters import Filter, alternatives
from matrix.statistics import Flags
from sonar.models import Profile, Transfer

PROFILE_FIELDS = {
    "mover": "mover",
    "streams": "streams",
    "ip_version": "ip_version",
    "origin": "origin",
    "mesh": "mesh__name",
}
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
    """Turn the filters on these fields into a condition; NULL is never an excluded value."""
    whole = Q()
    for some in alternatives(one for one in filters if one.parameter in fields):
        field = fields[some[0].parameter]
        one_of = Q(**{f"{field}__in": [one.value for one in some]})
        whole &= ~one_of if some[0].exclude else one_of
    return whole
