"""Names of others: those that stand for nothing here, and what the others stand for."""

from dataclasses import dataclass

from django.db.models import Count

from sonar.models import Alias, Endpoint, Site, UnknownName
from sonar.models.aliases import BY_HAND

MOST_LISTED = 200


@dataclass(frozen=True)
class Origin:
    """How many names of a kind one source, or people, have said."""

    name: str
    kind: str
    count: int


@dataclass(frozen=True)
class ForeignNames:
    """``by_hand`` are the newest that people assigned; ``origins`` counts all."""

    unknown: list[UnknownName]
    dismissed: list[UnknownName]
    by_hand: list[Alias]
    origins: list[Origin]


def build() -> ForeignNames:
    """Read them, what was said most often first. Three SQL queries."""
    rows = list(UnknownName.objects.order_by("source", "-times", "kind", "name"))
    by_hand = Alias.objects.filter(origin=BY_HAND).select_related("site", "endpoint__site")
    counts = Alias.objects.values_list("origin", "kind").annotate(Count("id"))
    return ForeignNames(
        unknown=[row for row in rows if not row.dismissed],
        dismissed=[row for row in rows if row.dismissed],
        by_hand=list(by_hand.order_by("-id")[:MOST_LISTED]),
        origins=[
            Origin(name, Alias(kind=kind).get_kind_display(), count)
            for name, kind, count in counts.order_by("origin", "kind")
        ],
    )


def count_unknown() -> int:
    """Count those that nobody has assigned or dismissed. One SQL query."""
    return UnknownName.objects.filter(dismissed=False).count()


def places() -> list[tuple[str, str]]:
    """Return what a name may be assigned to, and what each is: sites, then endpoints."""
    sites = [(name, "a site") for name in Site.objects.listed().values_list("name", flat=True)]
    rows = Endpoint.objects.in_use().values_list("name", "site__name")
    return sites + [(name, f"an endpoint of {site}") for name, site in rows]
