"""/api/v1/endpoints/: storage areas; retired, never removed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Annotated

from django.db.models import Q
from django.http import HttpResponse, QueryDict
from django.utils import timezone
from rest_framework.request import Request

from matrix.api.registry.deserialise import Values, change_of
from matrix.api.registry.parameters import YES_OR_NO, named, words, yes_or_no
from matrix.api.registry.rendering import Json, moment
from matrix.api.registry.resource import Kind
from matrix.api.registry.values import (
    MOST_BYTES,
    Tags,
    flag,
    line,
    name_of,
    own_name,
    tag_list,
    whole,
)
from matrix.api.registry.views import ListView, RowView
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.schemas import Answer, Body, Listed
from matrix.http.permissions import refused, sees
from matrix.query.forms import BadQueryError
from sonar import credentials, roles
from sonar.compatibility import endpoint_problem, is_moved
from sonar.models import Credential, Endpoint, Site
from sonar.models.registry import BASE_URL

# Of all that the model takes, what has a host that is a name or an address.
HOST = r"([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
URL = BASE_URL.replace(r"[^/@?#\s]+", HOST).replace(r"\s", r"\s\x00-\x1f\x7f")
URL_MEANING = (
    "scheme://host[:port]/path with one of the schemes http, https, dav, davs, root, xroot, "
    "gsiftp, ftp or fake, and without user, password or query"
)
CREDENTIAL = "the name of a registered credential; empty for none"
CREDENTIAL_NAME = f"^({credentials.NAME.strip('^$')})?$"
# What an admin of its site may change.
OF_SITE_ADMINS = ("inbound_cap", "outbound_cap", "budget_bytes_per_day", "label", "software")
CREDENTIALS = ("credential", "credential_lent")
PLAIN = (
    *("name", "label", "software", "inbound_cap", "outbound_cap", "budget_bytes_per_day"),
    *("simulated", "tags"),
)


class NewEndpoint(Body):
    """An endpoint to register."""

    name: Annotated[str, own_name()]
    site: Annotated[str, name_of("site")]
    base_url: Annotated[str, line(400, URL_MEANING, URL)]
    label: Annotated[str, line(40, "the storage area, like DATADISK")] = ""
    software: Annotated[str, line(80, "like XRootD 5.5.3")] = ""
    inbound_cap: Annotated[int, whole(1, 9999, "test transfers towards it at once")] = 2
    outbound_cap: Annotated[int, whole(1, 9999, "test transfers from it at once")] = 2
    budget_bytes_per_day: Annotated[
        int | None, whole(1, MOST_BYTES, "test bytes in and out a UTC day", "for no limit")
    ] = None
    credential: Annotated[
        str, line(80, f"{CREDENTIAL}; it is sent to its base_url alone", CREDENTIAL_NAME)
    ] = ""
    credential_lent: Annotated[
        str, line(80, f"{CREDENTIAL}; the other end of a copy is given it", CREDENTIAL_NAME)
    ] = ""
    lend_credential: Annotated[
        bool, flag("whether the other end of a copy is given credential, if none is lent")
    ] = False
    simulated: Annotated[bool, flag("whether it is a sandbox node")] = False
    retired: Annotated[bool, flag("a retired one is tested no more and keeps its history")] = False
    tags: Annotated[Tags, tag_list("beside those of its site")] = []


class EndpointRecord(Answer):
    """An endpoint. Its base_url and what there is of credentials are for who may see them."""

    name: str
    site: str
    label: str
    software: str
    inbound_cap: int
    outbound_cap: int
    budget_bytes_per_day: int | None
    simulated: bool
    tags: list[str]
    retired: bool
    retired_at: datetime | None
    base_url: str = ""
    credential: str = ""
    credential_lent: str = ""
    lend_credential: bool = False


class Endpoints(Kind[Endpoint]):
    model = Endpoint
    plural = "endpoints"
    new = NewEndpoint
    change = change_of(NewEndpoint, "EndpointChange")
    columns = tuple(EndpointRecord.model_fields)
    references = {"site": Site} | dict.fromkeys(CREDENTIALS, Credential)
    parameters = (
        text("site", "Those of this site.", "GLASGOW"),
        text("cloud", "Those whose site is in this cloud.", "UK"),
        text("label", "Those with this label.", "DATADISK"),
        text("tag", "Those with this tag, their own or their site's.", "atlas"),
        choice("retired", YES_OR_NO, "Only retired ones, or only those in use."),
    )

    def chosen(self, params: QueryDict) -> Q:
        found = Q()
        if site := named(params, "site", Site):
            found &= Q(site=site)
        if cloud := words(params, "cloud"):
            found &= Q(site__cloud=cloud)
        if label := words(params, "label"):
            found &= Q(label=label)
        if tag := words(params, "tag"):
            found &= Q(tags__contains=[tag]) | Q(site__tags__contains=[tag])
        retired = yes_or_no(params, "retired")
        return found if retired is None else found & Q(retired_at__isnull=not retired)

    def record(self, row: Endpoint, request: Request) -> Json:
        found: Json = {"name": row.name, "site": row.site.name}
        found |= {name: getattr(row, name) for name in PLAIN}
        found |= {"retired": row.retired_at is not None, "retired_at": moment(row.retired_at)}
        if sees(request, "sonar.view_endpoint", [row.site_id]):
            found |= {"base_url": row.base_url}
            found |= {name: str(getattr(row, name) or "") for name in CREDENTIALS}
            found |= {"lend_credential": row.lend_credential}
        return found

    def sites(self, row: Endpoint) -> Collection[int]:
        return [row.site_id] if row.site_id else []

    def columns_of(self, row: Endpoint, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name != "retired"}
        if "retired" in values:
            since = row.retired_at or timezone.now()
            columns["retired_at"] = since if values["retired"] else None
        return columns

    def check(self, row: Endpoint) -> None:
        if is_moved(row) and (sentence := endpoint_problem(row)):
            raise BadQueryError({"base_url": [sentence]})

    def allow_change(self, request: Request, row: Endpoint, values: Values) -> None:
        super().allow_change(request, row, values)
        beyond = [name for name in values if name not in OF_SITE_ADMINS]
        if beyond and not roles.may(request.user, "sonar.change_endpoint"):
            allowed = ", ".join(OF_SITE_ADMINS)
            raise refused(request, f"An admin of the site may change {allowed}; not {beyond[0]}.")


ENDPOINTS = Endpoints()
EXAMPLE = {
    "name": "GLASGOW_DATADISK",
    "site": "GLASGOW",
    "label": "DATADISK",
    "software": "XRootD 5.5.3",
    "inbound_cap": 2,
    "outbound_cap": 2,
    "budget_bytes_per_day": 500_000_000_000,
    "simulated": False,
    "tags": ["atlas"],
    "retired": False,
    "retired_at": None,
}
SEEN = EXAMPLE | {
    "base_url": "davs://storage.example.org:1094/atlas",
    "credential": "glasgow",
    "credential_lent": "glasgow-read",
    "lend_credential": False,
}
NEW = {"name": "GLASGOW_DATADISK", "site": "GLASGOW", "base_url": SEEN["base_url"]}
CSV = (
    "name,site,label,software,inbound_cap,outbound_cap,budget_bytes_per_day,simulated,tags,retired,"
    "retired_at,base_url,credential,credential_lent,lend_credential\n"
    "GLASGOW_DATADISK,GLASGOW,DATADISK,XRootD 5.5.3,2,2,500000000000,False,atlas,False,,,,,\n"
)


class EndpointsView(ListView):
    kind = ENDPOINTS
    one = "api-endpoint"

    @described(
        "All endpoints",
        answer=Listed("endpoints", EndpointRecord),
        parameters=[*ENDPOINTS.parameters, *paging()],
        formats=("json", "csv", "ndjson"),
        example={"endpoints": [EXAMPLE], "next": None},
        csv_example=CSV,
        tag="registry",
    )
    def get(self, request: Request) -> HttpResponse:
        """By name, retired ones too."""
        return self.listed(request)

    @described(
        "Register an endpoint",
        answer=EndpointRecord,
        body=NewEndpoint,
        status=201,
        errors=(409,),
        example=SEEN,
        body_example=NEW,
        tag="registry",
    )
    def post(self, request: Request) -> HttpResponse:
        """Sonar writes and deletes below its base_url, in `sonar/`. Its credentials must be for
        the host of base_url (administrators say for which hosts one is), and https or davs."""
        return self.made(request)


class EndpointView(RowView):
    kind = ENDPOINTS

    @described(
        "One endpoint",
        answer=EndpointRecord,
        errors=(404,),
        example=EXAMPLE,
        tag="registry",
    )
    def get(self, request: Request, name: str) -> HttpResponse:
        return self.shown(request, name)

    @described(
        "Change or retire an endpoint",
        answer=EndpointRecord,
        body=ENDPOINTS.change,
        errors=(404, 409),
        example=SEEN | {"inbound_cap": 4},
        body_example={"inbound_cap": 4},
        tag="registry",
    )
    def patch(self, request: Request, name: str) -> HttpResponse:
        """Fields that are left out stay as they are. An admin of its site may change
        inbound_cap, outbound_cap, budget_bytes_per_day, label and software."""
        return self.changed(request, name)
