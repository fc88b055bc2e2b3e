"""What a report on a site says of its links while it compares them."""

from __future__ import annotations

from typing import Literal

from matrix.api.schema.compared import ComparedRates
from matrix.api.schema.schemas import Answer


class ComparedSiteLink(ComparedRates):
    """A link on both sides; `change` says if it differs beyond chance among all links."""

    source: str
    destination: str
    partner: str
    change: Literal["", "slower", "faster"]


class SiteEndComparison(Answer):
    """The links of one end on both sides.

    `ratio` is what the `compared` links have in common, with its 95 % interval and p: each is taken
    against itself and counts by its tests, of which `ok` and `other_ok` succeeded on both sides.
    `slower` and `faster` count links beyond chance. `beyond` says whether the links of others
    changed as much, where only time differs.
    """

    kind: Literal["slower", "faster", "usual", "unknown"]
    sentence: str
    beyond: str
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    compared: int
    ok: int
    other_ok: int
    slower: int
    faster: int
    links: list[ComparedSiteLink]


class SiteComparison(Answer):
    """The links of a site against what `description` says."""

    description: str
    as_source: SiteEndComparison
    as_destination: SiteEndComparison
