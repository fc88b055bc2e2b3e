"""Filters of meshes as people give them, judged by what is registered: the way in at each door."""

from collections.abc import Iterator, Mapping
from typing import Any

from sonar.models import Endpoint, Site
from sonar.notation import endpoint_filters
from sonar.notation.endpoint_filters import NOT, EndpointFilter, FilterError
from sonar.notation.enumeration import not_registered

# The attributes whose values are names of rows.
NAMED: dict[str, type[Site | Endpoint]] = {"site": Site, "endpoint": Endpoint}


def read_filter(value: Mapping[Any, object]) -> dict[str, list[str]]:
    """Return a filter as it is kept; raise FilterError for one that the registry cannot answer.

    One SQL query for each kind of row that it names.
    """
    chosen = endpoint_filters.tidied(value)
    for attribute, sentence in unknown_names(chosen):
        raise FilterError(attribute, sentence)
    return chosen


def unknown_names(chosen: EndpointFilter) -> Iterator[tuple[str, str]]:
    """Yield attribute and sentence for the first name of a kind that no row has."""
    for kind, model in NAMED.items():
        names = {text.removeprefix(NOT) for text in chosen.get(kind, ())}
        rows = model._default_manager.filter(name__in=names) if names else model.objects.none()
        for name in sorted(names.difference(rows.values_list("name", flat=True)))[:1]:
            yield kind, not_registered(kind, name, kind)
