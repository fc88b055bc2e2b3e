"""To which servers an endpoint's own leads tests: what is declared, and what was not followed."""

from dataclasses import dataclass

from sonar.models import Endpoint, RefusedRedirect
from sonar.notation import data_hosts


@dataclass(frozen=True)
class DataServers:
    """``suggested`` is what to declare so that all of the ``refused`` ones are followed."""

    declared: list[str]
    refused: list[RefusedRedirect]
    suggested: list[str]


def of_endpoint(endpoint: Endpoint) -> DataServers:
    """Return them, the newest refusal first; what is declared by now is refused no more."""
    declared = data_hosts.data_hosts(tuple(endpoint.data_hosts))
    refused = [
        row
        for row in endpoint.refused_redirects.order_by("-last_at", "-id")
        if not data_hosts.covers_server(declared, row.server)
    ]
    suggested = data_hosts.suggestions(row.server for row in refused)
    return DataServers(endpoint.data_hosts, refused, suggested)
