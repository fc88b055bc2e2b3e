"""Sites and endpoints as rows of the registry; what is measured there, matrix.api.sites answers."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Q
from django.utils import timezone
from rest_framework.request import Request

from matrix.api.registry.pauses import (
    Paused,
    PausedUntil,
    PauseReason,
    of_pause,
    pause_columns,
    paused_by,
)
from matrix.api.registry.resource import CallText, Resource, of_row, of_words, yes_or_no
from matrix.api.registry.values import (
    CREDENTIAL_NAME,
    DataHosts,
    Tags,
    Values,
    data_host_list,
    flag,
    line,
    name_of,
    number,
    own_name,
    quiet_times,
    record_of,
    tag_list,
    vantage_name,
    whole,
)
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from matrix.http.exceptions import Conflict
from matrix.query.forms import BadQueryError
from sonar.models import Endpoint, Site
from sonar.models.registry import BASE_URL, MOST_CAP, MOST_DAILY_BYTES
from sonar.obstacles import catalogue as obstacles
from sonar.people import roles
from sonar.people.roles import ENDPOINT_FIELDS, PAUSE_FIELDS, SITE_FIELDS, Anyone
from sonar.registry.compatibility import endpoint_problem, is_moved
from sonar.registry.file.sections import quiet_columns

COUNTRY = "^([A-Z]{2})?$"


class NewSite(Body):
    """A site to register."""

    name: Annotated[str, own_name()]
    cloud: Annotated[str, line(40, "region of the site, like UK")] = ""
    tier: Annotated[int, whole(0, 3)] = 2
    country: Annotated[str, line(2, "ISO 3166, two capital letters or empty", COUNTRY)] = ""
    latitude: Annotated[float | None, number(-90, 90, "degrees", "if unknown")] = None
    longitude: Annotated[float | None, number(-180, 180, "degrees", "if unknown")] = None
    wan_gbit_s: Annotated[
        float | None, number(0.001, 1_000_000, "nominal WAN capacity in Gbit/s", "if unknown")
    ] = None
    tags: Annotated[Tags, tag_list("for all endpoints of the site")] = []
    quiet_hours: Annotated[str | None, quiet_times()] = None
    paused: Paused = False
    paused_until: PausedUntil = None
    pause_reason: PauseReason = ""


class Sites(Resource[Site]):
    """What is read of sites is more than what is registered: see matrix.api.sites."""

    model = Site
    new = NewSite
    answer = record_of(
        NewSite,
        "A registered site with the names of its endpoints.",
        paused_since=datetime | None,
        endpoints=list[str],
        retired_endpoints=list[str],
    )
    calls = {
        "add": CallText("Register a site"),
        "change": CallText(
            "Change a site",
            "Omitted fields are not changed. An admin of the site may change\n"
            f"{', '.join(SITE_FIELDS)}.\n\n"
            "In its quiet hours no scheduled test of its links starts, and while it is paused none "
            "at\nall: what is due waits. Those that run go on.",
        ),
        "remove": CallText(
            "Remove a site",
            "Possible only for a site that never had an endpoint. Its downtimes and notes "
            "are removed, too.",
        ),
    }
    field_of = {
        "site_quiet_hours_have_two_ends": "quiet_hours",
        "site_pause_ends_after_it_starts": "paused_until",
    }
    site_fields = SITE_FIELDS

    def sites(self, row: Site) -> Collection[int]:
        return [row.pk] if row.pk else []

    def columns_of(self, row: Site, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in SITE_FIELDS}
        return columns | quiet_columns(values) | pause_columns(row, values, timezone.now())

    def signature(self, row: Site, columns: Values, request: Request) -> Values:
        return paused_by(row, columns, request)

    def others(self, row: Site) -> Json:
        endpoints = row.endpoints.all()
        return of_testing(row) | {
            "endpoints": [endpoint.name for endpoint in endpoints if endpoint.retired_at is None],
            "retired_endpoints": [endpoint.name for endpoint in endpoints if endpoint.retired_at],
        }

    def refuse_removal(self, row: Site) -> None:
        if count := row.endpoints.count():
            has = "an endpoint" if count == 1 else f"{count} endpoints"
            sentence = f"The site {row.name} has {has}, and endpoints are never removed."
            raise Conflict({"name": [sentence]})


def of_testing(site: Site) -> Json:
    """Return its quiet hours, and its pause as long as that lasts."""
    return {"quiet_hours": site.quiet_hours, **of_pause(site, timezone.now())}


SITES = Sites()


# Of all that the model takes, what has a host that is a name or an address.
HOST = r"([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
URL = BASE_URL.replace(r"[^/@?#\s]+", HOST).replace(r"\s", r"\s\x00-\x1f\x7f")
URL_MEANING = (
    "scheme://host[:port]/path with one of the schemes http, https, dav, davs, root, xroot, "
    "gsiftp, ftp, iperf3 or fake, and without user, password or query"
)
CREDENTIAL = "the name of a registered credential; empty for none"
CREDENTIALS = ("credential", "credential_lent")
ELSEWHERE = ("retired", *PAUSE_FIELDS)
# What is for those who may see it, as that may be where Sonar writes and with what.
INTERNAL = ("base_url", *CREDENTIALS, "lend_credential", "data_hosts")
# What decides which credential a program may show to both ends, whether it is one at all, and
# which workers reach it.
SHOWN_FIELDS = ("base_url", "credential", "lend_credential", "retired", "vantage")
# What is answered otherwise than it is sent.
AS_ANSWERED: dict[str, Any] = {
    "retired_at": datetime | None,
    "paused_since": datetime | None,
    "base_url": (str, ""),
    "credential": (str, ""),
    "credential_lent": (str, ""),
    "lend_credential": (bool, False),
    "data_hosts": (list[str], []),
}


class NewEndpoint(Body):
    """An endpoint to register."""

    name: Annotated[str, own_name()]
    site: Annotated[str, name_of("site")]
    base_url: Annotated[str, line(400, URL_MEANING, URL)]
    label: Annotated[str, line(40, "name of the storage area, like DATADISK")] = ""
    software: Annotated[str, line(80, "server software, like XRootD 5.5.3")] = ""
    inbound_cap: Annotated[
        int, whole(1, MOST_CAP, "maximum concurrent test transfers to the endpoint")
    ] = 2
    outbound_cap: Annotated[
        int, whole(1, MOST_CAP, "maximum concurrent test transfers from the endpoint")
    ] = 2
    budget_bytes_per_day: Annotated[
        int | None,
        whole(1, MOST_DAILY_BYTES, "test bytes sent and received per UTC day", "for no limit"),
    ] = None
    credential: Annotated[
        str,
        line(80, f"{CREDENTIAL}; it is sent only to the base_url of the endpoint", CREDENTIAL_NAME),
    ] = ""
    credential_lent: Annotated[
        str,
        line(
            80,
            f"{CREDENTIAL}; it is delegated to the other endpoint of a third-party copy",
            CREDENTIAL_NAME,
        ),
    ] = ""
    lend_credential: Annotated[
        bool,
        flag(
            "true: without credential_lent, `credential` is delegated to the other "
            "endpoint of a third-party copy"
        ),
    ] = False
    data_hosts: Annotated[
        DataHosts, data_host_list("data servers to which its server may redirect transfers")
    ] = []
    vantage: Annotated[
        str, vantage_name("the vantage point whose workers can reach it; empty if all workers can")
    ] = ""
    enabled: Annotated[bool, flag("true: tests of its links may start")] = False
    simulated: Annotated[bool, flag("true: the endpoint is a simulated node of the sandbox")] = (
        False
    )
    retired: Annotated[
        bool, flag("true: the endpoint is not tested any longer and keeps its results")
    ] = False
    tags: Annotated[Tags, tag_list("in addition to the tags of its site")] = []
    paused: Paused = False
    paused_until: PausedUntil = None
    pause_reason: PauseReason = ""


class Endpoints(Resource[Endpoint]):
    model = Endpoint
    new = NewEndpoint
    site_fields = ENDPOINT_FIELDS
    internal = INTERNAL
    answer = record_of(
        NewEndpoint,
        "An endpoint. Its base_url and credentials are shown only to readers with the "
        "right to see them.",
        **AS_ANSWERED,
    )
    written = record_of(
        NewEndpoint,
        "An endpoint as it was stored. If meshes have links with two credentials, for movers that "
        "show one to both ends, after a change of its base_url, its credential, whether it lends "
        "that or whether it is in use, `notice` names them.",
        name="EndpointWritten",
        **AS_ANSWERED,
        notice=(str, ""),
    )
    parameters = (
        of_row("site", "Only endpoints of this site.", "GLASGOW", Site),
        of_words("cloud", "Only endpoints whose site is in this cloud.", "UK", "site__cloud"),
        of_words("label", "Only endpoints with this label.", "DATADISK", "label"),
        of_words(
            "tag",
            "Only endpoints with this tag, their own or that of their site.",
            "atlas",
            "tags__contains",
            "site__tags__contains",
        ),
        yes_or_no(
            "enabled", "yes: only enabled endpoints; no: only others.", lambda: Q(enabled=True)
        ),
        yes_or_no(
            "retired",
            "yes: only retired endpoints; no: only those in use.",
            lambda: Q(retired_at__isnull=False),
        ),
    )
    calls = {
        "list": CallText(
            "All endpoints",
            "By name, including retired ones. Those that were never enabled and have no result\n"
            "are shown only to those who may change them.",
        ),
        "add": CallText(
            "Register an endpoint",
            "Sonar writes and deletes below its base_url, in `sonar/`. Its credentials must be for"
            "\nthe host of base_url (which administrators set), and that URL https or "
            "davs. It is\nnot tested until `enabled` is true, but its check works.",
        ),
        "show": CallText("One endpoint"),
        "change": CallText(
            "Change, enable or retire an endpoint",
            "Omitted fields are not changed. Admins of its site may change\n"
            f"{', '.join(ENDPOINT_FIELDS[:-1])} and {ENDPOINT_FIELDS[-1]}.\n\n"
            "While it is paused no test of its links starts: what is due waits. Those that run go "
            "on.",
        ),
    }
    field_of = {"endpoint_pause_ends_after_it_starts": "paused_until"}

    def visible_to(self, reader: Anyone) -> Q:
        if roles.may(reader, self.permission("change")):
            return Q()
        return Q(is_draft=False) | Q(site__in=roles.sites_of(reader))

    def others(self, row: Endpoint) -> Json:
        credentials = {name: str(getattr(row, name) or "") for name in CREDENTIALS}
        pause = of_pause(row, timezone.now())
        return credentials | pause | {"retired": row.retired_at is not None}

    def remarks(self, row: Endpoint, values: Values) -> Json:
        notice = "" if values.keys().isdisjoint(SHOWN_FIELDS) else obstacles.notice(timezone.now())
        return {"notice": notice} if notice else {}

    def sites(self, row: Endpoint) -> Collection[int]:
        return [row.site_id] if row.site_id else []

    def columns_of(self, row: Endpoint, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in ELSEWHERE}
        if "retired" in values:
            since = row.retired_at or timezone.now()
            columns["retired_at"] = since if values["retired"] else None
        return columns | pause_columns(row, values, timezone.now())

    def signature(self, row: Endpoint, columns: Values, request: Request) -> Values:
        return paused_by(row, columns, request)

    def check(self, row: Endpoint) -> None:
        if is_moved(row) and (sentence := endpoint_problem(row)):
            raise BadQueryError({"base_url": [sentence]})


ENDPOINTS = Endpoints()
