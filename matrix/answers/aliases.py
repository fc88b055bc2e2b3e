"""Aliases: unknown ones, and those that have a site or an endpoint."""

from dataclasses import dataclass

from django.db.models import Count

from sonar.models import Alias, Endpoint, Site, UnknownAlias
from sonar.models.aliases import BY_HAND

MOST_LISTED = 200


@dataclass(frozen=True)
class Origin:
    """Number of aliases of one kind from one source, or from people."""

    name: str
    kind: str
    count: int


@dataclass(frozen=True)
class AliasesNow:
    """``by_hand`` has the newest that people assigned; ``origins`` counts all known aliases."""

    unknown: list[UnknownAlias]
    dismissed: list[UnknownAlias]
    by_hand: list[Alias]
    origins: list[Origin]


def read_aliases() -> AliasesNow:
    """Read all aliases, the most frequent first. Three SQL queries."""
    rows = list(UnknownAlias.objects.order_by("source", "-times", "kind", "name"))
    by_hand = Alias.objects.filter(origin=BY_HAND).select_related("site", "endpoint__site")
    counts = Alias.objects.values_list("origin", "kind").annotate(Count("id"))
    return AliasesNow(
        unknown=[row for row in rows if not row.dismissed],
        dismissed=[row for row in rows if row.dismissed],
        by_hand=list(by_hand.order_by("-id")[:MOST_LISTED]),
        origins=[
            Origin(name, Alias(kind=kind).get_kind_display(), count)
            for name, kind, count in counts.order_by("origin", "kind")
        ],
    )


def count_unknown() -> int:
    """Count unknown aliases that nobody has dismissed. One SQL query."""
    return UnknownAlias.objects.filter(dismissed=False).count()


def assignable_places() -> list[tuple[str, str]]:
    """Return the names of sites, then of endpoints, each with a description."""
    sites = [(name, "a site") for name in Site.objects.listed().values_list("name", flat=True)]
    rows = Endpoint.objects.in_use().values_list("name", "site__name")
    return sites + [(name, f"an endpoint of {site}") for name, site in rows]
