"""Conditions of the small world, as an assessment would have stored them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

from sonar.models import (
    Assessment,
    Condition,
    ConditionLink,
    ConditionPart,
    Endpoint,
    Site,
    SizeClass,
)
from tests.matrix import world
from tests.matrix.world import HOUR

Pair = tuple[Endpoint, Endpoint]
TYPES = Condition.Type
# What is slow or fast, by how much: with its interval.
FACTORS = {TYPES.SLOW: (0.4, 0.35, 0.46), TYPES.FAST: (2.0, 1.8, 2.2)}


def stored_condition(
    type_: str = TYPES.FAILING,
    *,
    source: Endpoint | None = None,
    destination: Endpoint | None = None,
    site: Site | None = None,
    since: timedelta = 6 * HOUR,
    ended: timedelta | None = None,
    confirmed: bool = True,
    sizes: Sequence[str] = ("large",),
    links: Sequence[Pair] | None = None,
    baseline: float | None = 40e6,
    **values: Any,
) -> Condition:
    """Store a condition that began so long before NOW, and lasts or ``ended`` so long before it.

    What it is of follows from the ends or the site; of neither it is of the grid. An endpoint is
    given as both ends. Without ``links`` its members are all links of registered endpoints that its
    subject has.
    """
    scope = scope_of(source, destination, site)
    members = list(links) if links is not None else links_of(scope, source, destination, site)
    began = world.NOW - since
    factors = FACTORS.get(TYPES(type_), (None, None, None))
    figures: dict[str, Any] = {
        "since": began,
        "since_low": began - HOUR,
        "since_high": began,
        "confirmed_at": began + HOUR if confirmed else None,
        "ended_at": None if ended is None else world.NOW - ended,
        **dict(zip(("factor", "factor_low", "factor_high"), factors, strict=True)),
        "links": len(members),
        "of_links": len(members),
    } | values
    condition = Condition.objects.create(
        scope=scope, source=source, destination=destination, site=site, type=type_,
        size_classes=list(sizes), seen_at=began + HOUR, **figures,
    )  # fmt: skip
    for size in sizes:
        part = ConditionPart.objects.create(
            condition=condition,
            size_class=SizeClass.objects.get(name=size),
            shown_at=began + HOUR,
            tests=10 * max(len(members), 1),
            failed=10 * max(len(members), 1) if type_ == TYPES.FAILING else 1,
            members_digest="",
            **figures,
        )
        if scope != Condition.Scope.GRID:
            ConditionLink.objects.bulk_create(
                ConditionLink(part=part, source=one, destination=other, baseline=baseline)
                for one, other in members
            )
    return condition


def assessed_at(moment: datetime | None = None) -> None:
    """Let the last assessment of all size classes have been at a moment, NOW if not given."""
    Assessment.objects.bulk_create(
        Assessment(size_class=size_class, assessed_at=moment or world.NOW)
        for size_class in SizeClass.objects.all()
    )


def scope_of(source: Endpoint | None, destination: Endpoint | None, site: Site | None) -> str:
    scopes = Condition.Scope
    if site is not None:
        return scopes.SITE
    if source is not None and source == destination:
        return scopes.ENDPOINT
    if source is not None and destination is not None:
        return scopes.LINK
    if source is None and destination is None:
        return scopes.GRID
    return scopes.SOURCE if source is not None else scopes.DESTINATION


def links_of(
    scope: str, source: Endpoint | None, destination: Endpoint | None, site: Site | None
) -> list[Pair]:
    scopes = Condition.Scope
    every = [*permutations(Endpoint.objects.filter(retired_at=None).order_by("id"), 2)]
    is_own = {
        scopes.LINK: lambda pair: pair == (source, destination),
        scopes.SOURCE: lambda pair: pair[0] == source,
        scopes.DESTINATION: lambda pair: pair[1] == destination,
        scopes.ENDPOINT: lambda pair: source in pair,
        scopes.SITE: lambda pair: site in {end.site for end in pair},
        scopes.GRID: lambda _: True,
    }[scopes(scope)]
    return [pair for pair in every if is_own(pair)]


def at(before: timedelta) -> datetime:
    return world.NOW - before
