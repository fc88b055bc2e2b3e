"""The two ends of a link, by the names that its address has."""

from __future__ import annotations

from django.http import Http404

from matrix.statistics.axes import EndpointInfo
from matrix.store import registry


def endpoints_of(source: str, destination: str) -> tuple[EndpointInfo, EndpointInfo]:
    """Return two registered endpoints; raise Http404 that says which name is none."""
    endpoints = {
        endpoint.name: endpoint for endpoint in registry.read_places(registry.read_versions())
    }
    unknown = [name for name in (source, destination) if name not in endpoints]
    if unknown:
        names = " or ".join(f"“{name}”" for name in dict.fromkeys(unknown))
        raise Http404(f"No endpoint is registered with the name {names}.")
    if source == destination:
        raise Http404(f"A link has two different ends: here {source} is both.")
    return endpoints[source], endpoints[destination]
