"""/api/v1/endpoints/: storage areas; retired, never removed."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Q
from django.utils import timezone

from matrix.api.registry.resource import CallText, Resource, of_row, of_words, yes_or_no
from matrix.api.registry.values import (
    Tags,
    Values,
    flag,
    line,
    name_of,
    own_name,
    record_of,
    tag_list,
    whole,
)
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from matrix.query.forms import BadQueryError
from sonar.credentials import rules as credentials
from sonar.models import Endpoint, Site
from sonar.models.endpoint import BASE_URL, MOST_CAP, MOST_DAILY_BYTES
from sonar.obstacles import catalogue as obstacles
from sonar.people.roles import ENDPOINT_COLUMNS
from sonar.registry.compatibility import endpoint_problem, is_moved

# Of all that the model takes, what has a host that is a name or an address.
HOST = r"([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
URL = BASE_URL.replace(r"[^/@?#\s]+", HOST).replace(r"\s", r"\s\x00-\x1f\x7f")
URL_MEANING = (
    "scheme://host[:port]/path with one of the schemes http, https, dav, davs, root, xroot, "
    "gsiftp, ftp, iperf3 or fake, and without user, password or query"
)
CREDENTIAL = "the name of a registered credential; empty for none"
CREDENTIAL_NAME = f"^({credentials.NAME.strip('^$')})?$"
CREDENTIALS = ("credential", "credential_lent")
# What is for those who may see it, as that may be where Sonar writes and with what.
INTERNAL = ("base_url", *CREDENTIALS, "lend_credential")
# What decides which X.509 proxy an end has, and whether it is an end at all.
PROXY_FIELDS = ("base_url", "credential", "retired")
# What is answered otherwise than it is sent.
AS_ANSWERED: dict[str, Any] = {
    "retired_at": datetime | None,
    "base_url": (str, ""),
    "credential": (str, ""),
    "credential_lent": (str, ""),
    "lend_credential": (bool, False),
}


class NewEndpoint(Body):
    """An endpoint to register."""

    name: Annotated[str, own_name()]
    site: Annotated[str, name_of("site")]
    base_url: Annotated[str, line(400, URL_MEANING, URL)]
    label: Annotated[str, line(40, "the storage area, like DATADISK")] = ""
    software: Annotated[str, line(80, "like XRootD 5.5.3")] = ""
    inbound_cap: Annotated[int, whole(1, MOST_CAP, "test transfers to it at once")] = 2
    outbound_cap: Annotated[int, whole(1, MOST_CAP, "test transfers from it at once")] = 2
    budget_bytes_per_day: Annotated[
        int | None, whole(1, MOST_DAILY_BYTES, "test bytes in and out per UTC day", "for no limit")
    ] = None
    credential: Annotated[
        str, line(80, f"{CREDENTIAL}; it is sent only to its base_url", CREDENTIAL_NAME)
    ] = ""
    credential_lent: Annotated[
        str, line(80, f"{CREDENTIAL}; it is given to the other end of a copy", CREDENTIAL_NAME)
    ] = ""
    lend_credential: Annotated[
        bool,
        flag("whether the other end of a copy is given credential if there is no credential_lent"),
    ] = False
    simulated: Annotated[bool, flag("whether it is a sandbox node")] = False
    retired: Annotated[bool, flag("if retired, it is no longer tested and keeps its history")] = (
        False
    )
    tags: Annotated[Tags, tag_list("in addition to those of its site")] = []


class Endpoints(Resource[Endpoint]):
    model = Endpoint
    new = NewEndpoint
    site_fields = ENDPOINT_COLUMNS
    internal = INTERNAL
    answer = record_of(
        NewEndpoint,
        "An endpoint. Its base_url and credentials are shown only to those who may see them.",
        **AS_ANSWERED,
    )
    written = record_of(
        NewEndpoint,
        "An endpoint as it was stored. If meshes have links with two X.509 proxies after a change "
        "of its base_url, its credential or whether it is in use, `notice` names them.",
        name="EndpointWritten",
        **AS_ANSWERED,
        notice=(str, ""),
    )
    parameters = (
        of_row("site", "Endpoints of this site.", "GLASGOW", Site),
        of_words("cloud", "Endpoints whose site is in this cloud.", "UK", "site__cloud"),
        of_words("label", "Endpoints with this label.", "DATADISK", "label"),
        of_words(
            "tag",
            "Endpoints with this tag, their own or their site's.",
            "atlas",
            "tags__contains",
            "site__tags__contains",
        ),
        yes_or_no(
            "retired",
            "Only retired ones, or only those in use.",
            lambda: Q(retired_at__isnull=False),
        ),
    )
    calls = {
        "list": CallText("All endpoints", "By name, including retired ones."),
        "add": CallText(
            "Register an endpoint",
            "Sonar writes and deletes below its base_url, in `sonar/`. Its credentials must be for"
            "\nthe host of base_url (which administrators set), and that URL https or "
            "davs.",
        ),
        "show": CallText("One endpoint"),
        "change": CallText(
            "Change or retire an endpoint",
            "Fields that are left out stay as they are. Admins of its site may change\n"
            "inbound_cap, outbound_cap, budget_bytes_per_day, label and software.",
        ),
    }

    def others(self, row: Endpoint) -> Json:
        credentials = {name: str(getattr(row, name) or "") for name in CREDENTIALS}
        return credentials | {"retired": row.retired_at is not None}

    def remarks(self, row: Endpoint, values: Values) -> Json:
        notice = "" if values.keys().isdisjoint(PROXY_FIELDS) else obstacles.notice(timezone.now())
        return {"notice": notice} if notice else {}

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


ENDPOINTS = Endpoints()
