"""The address of a link: its ends, by their names, and pages that need no more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from django.http import Http404, QueryDict

from matrix.answers.ordering.probe_requests import ORDER
from matrix.pages.base import Page
from matrix.query.addresses import address, link_path
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import notes, registry
from sonar.models import Endpoint
from sonar.people import roles
from sonar.people.roles import Anyone


def registered() -> Sequence[EndpointInfo]:
    return registry.read_places(registry.read_versions())


def ends_among(
    places: Sequence[EndpointInfo], source: str, destination: str
) -> tuple[EndpointInfo, EndpointInfo]:
    """Return two endpoints by their names; raise Http404 that says which name is none."""
    endpoints = {endpoint.name: endpoint for endpoint in places}
    unknown = [name for name in (source, destination) if name not in endpoints]
    if unknown:
        names = " or ".join(f"“{name}”" for name in dict.fromkeys(unknown))
        raise Http404(f"No endpoint is registered with the name {names}.")
    if source == destination:
        raise Http404(
            f"A link needs two different endpoints: {source} is both its source and "
            "its destination."
        )
    return endpoints[source], endpoints[destination]


@dataclass(frozen=True)
class OfLinkPage(Page):
    """A page on one thing about a link, without parameters; its route takes the names of both."""

    source: EndpointInfo
    destination: EndpointInfo

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        Page.read(params)
        return cls.of(path["source"], path["destination"])

    @classmethod
    def of(cls, source: str, destination: str) -> Self:
        return cls(*ends_among(registered(), source, destination))

    def path(self) -> str:
        return address(self.route, self.source.name, self.destination.name)

    def head(self, subject: str) -> dict[str, Any]:
        """Return what the template says of the link; ``subject`` begins the heading."""
        return {
            "heading": f"{subject} from {self.source.name} to {self.destination.name}",
            "simulated": self.source.simulated or self.destination.simulated,
            "link_url": link_path(self.source.name, self.destination.name),
        }

    def may_order(self, reader: Anyone) -> bool:
        return roles.may(reader, ORDER, notes.sites_of(self.source.name, self.destination.name))

    def endpoints(self) -> tuple[Endpoint, Endpoint]:
        """Read the rows of both ends. One SQL query."""
        rows = Endpoint.objects.select_related("site").in_bulk(
            [self.source.id, self.destination.id]
        )
        return rows[self.source.id], rows[self.destination.id]
