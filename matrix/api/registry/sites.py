"""Sites as rows of the registry; what is measured there, matrix.api.sites answers."""

from __future__ import annotations

from typing import Annotated

from matrix.api.registry.deserialise import record_of
from matrix.api.registry.rendering import Json
from matrix.api.registry.resource import CallText, Examples, Resource
from matrix.api.registry.values import line, number, own_name, whole
from matrix.api.schema.schemas import Body
from matrix.http.exceptions import Conflict
from sonar.models import Site

COUNTRY = "^([A-Z]{2})?$"


REGISTERED = {
    "name": "GLASGOW",
    "cloud": "UK",
    "tier": 2,
    "country": "GB",
    "latitude": 55.87,
    "longitude": -4.29,
    "wan_gbit_s": 6.0,
}


class NewSite(Body):
    """A site to register."""

    name: Annotated[str, own_name()]
    cloud: Annotated[str, line(40, "the region, like UK")] = ""
    tier: Annotated[int, whole(0, 3)] = 2
    country: Annotated[str, line(2, "ISO 3166, two capital letters or empty", COUNTRY)] = ""
    latitude: Annotated[float | None, number(-90, 90, "degrees", "if unknown")] = None
    longitude: Annotated[float | None, number(-180, 180, "degrees", "if unknown")] = None
    wan_gbit_s: Annotated[
        float | None, number(0.001, 1_000_000, "nominal capacity in Gbit/s", "if unknown")
    ] = None


class Sites(Resource[Site]):
    """What is read of sites is more than what is registered: see matrix.api.sites."""

    model = Site
    new = NewSite
    answer = record_of(
        NewSite,
        "A site as it is registered, with the names of its endpoints.",
        endpoints=list[str],
        retired_endpoints=list[str],
    )
    calls = {
        "add": CallText("Register a site"),
        "change": CallText("Change a site", "Fields that are left out stay as they are."),
        "remove": CallText(
            "Remove a site",
            "Only one that never had an endpoint; its downtimes and notes go with it.",
        ),
    }
    examples = Examples(
        row=REGISTERED | {"endpoints": ["GLASGOW_DATADISK"], "retired_endpoints": []},
        new=REGISTERED,
        change={"wan_gbit_s": 10},
        added={"endpoints": []},
        changed={"wan_gbit_s": 10.0},
    )

    def others(self, row: Site) -> Json:
        endpoints = row.endpoints.all()
        return {
            "endpoints": [endpoint.name for endpoint in endpoints if endpoint.retired_at is None],
            "retired_endpoints": [endpoint.name for endpoint in endpoints if endpoint.retired_at],
        }

    def refuse_removal(self, row: Site) -> None:
        if count := row.endpoints.count():
            has = "an endpoint" if count == 1 else f"{count} endpoints"
            sentence = f"The site {row.name} has {has}, and an endpoint is never removed."
            raise Conflict({"name": [sentence]})


SITES = Sites()
