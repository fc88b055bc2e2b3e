"""Sites as rows of the registry; what is measured there, matrix.api.sites answers."""

from __future__ import annotations

from typing import Annotated

from rest_framework.request import Request

from matrix.api.registry.deserialise import change_of
from matrix.api.registry.rendering import Json
from matrix.api.registry.resource import Kind
from matrix.api.registry.values import Tags, line, number, own_name, tag_list, whole
from matrix.api.schema.schemas import Answer, Body
from matrix.http.exceptions import Conflict
from sonar.models import Site

COUNTRY = "^([A-Z]{2})?$"
PLAIN = ("name", "cloud", "tier", "country", "latitude", "longitude", "wan_gbit_s", "tags")


REGISTERED = {
    "name": "GLASGOW",
    "cloud": "UK",
    "tier": 2,
    "country": "GB",
    "latitude": 55.87,
    "longitude": -4.29,
    "wan_gbit_s": 6.0,
    "tags": ["atlas"],
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
    tags: Annotated[Tags, tag_list("of all its endpoints")] = []


class SiteRecord(Answer):
    """A site as it is registered, with the names of its endpoints."""

    name: str
    cloud: str
    tier: int
    country: str
    latitude: float | None
    longitude: float | None
    wan_gbit_s: float | None
    tags: list[str]
    endpoints: list[str]
    retired_endpoints: list[str]


class Sites(Kind[Site]):
    model = Site
    plural = "sites"
    new = NewSite
    change = change_of(NewSite, "SiteChange")
    columns = tuple(SiteRecord.model_fields)

    def record(self, row: Site, request: Request) -> Json:
        endpoints = row.endpoints.all()
        return {name: getattr(row, name) for name in PLAIN} | {
            "endpoints": [one.name for one in endpoints if one.retired_at is None],
            "retired_endpoints": [one.name for one in endpoints if one.retired_at],
        }

    def refuse_removal(self, row: Site) -> None:
        if count := row.endpoints.count():
            has = "an endpoint" if count == 1 else f"{count} endpoints"
            sentence = f"The site {row.name} has {has}, and an endpoint is never removed."
            raise Conflict({"name": [sentence]})


SITES = Sites()
