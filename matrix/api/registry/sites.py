"""Sites and endpoints as rows of the registry; what is measured there, matrix.api.sites answers."""

from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Q
from django.utils import timezone
from pydantic import Field
from rest_framework.request import Request

from matrix.answers.words.phrases import join
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
    DataHosts,
    Tags,
    Values,
    credential_name,
    data_host_list,
    field,
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
# A name of the API in a description.
CODE = "`{}`".format


class NewSite(Body):
    """A site to register: a computing centre with storage endpoints."""

    name: Annotated[str, own_name("site")]
    cloud: Annotated[str, line(40, "Region (cloud) that the site belongs to, such as UK.")] = ""
    tier: Annotated[int, whole(0, 3, "WLCG tier of the site.")] = 2
    country: Annotated[
        str,
        field(
            "two capital letters, or empty",
            "ISO 3166 code of the country, such as GB. Empty if unknown.",
            max_length=2,
            pattern=COUNTRY,
        ),
    ] = ""
    latitude: Annotated[
        float | None,
        number(
            -90,
            90,
            "Latitude of the site in degrees. Values north of the equator are positive. Null if "
            "unknown.",
            or_null=True,
        ),
    ] = None
    longitude: Annotated[
        float | None,
        number(
            -180,
            180,
            "Longitude of the site in degrees. Values east of Greenwich are positive. Null if "
            "unknown.",
            or_null=True,
        ),
    ] = None
    wan_gbit_s: Annotated[
        float | None,
        number(
            0.001,
            1_000_000,
            "Nominal capacity of the site's WAN connection, in Gbit/s. Null if unknown.",
            or_null=True,
        ),
    ] = None
    tags: Annotated[Tags, tag_list("Tags that apply to all endpoints of the site.")] = []
    quiet_hours: Annotated[
        str | None,
        quiet_times(
            "Period of the day in UTC in which no scheduled tests start on links of the site. Null "
            "means no quiet hours."
        ),
    ] = None
    paused: Paused = False
    paused_until: PausedUntil = None
    pause_reason: PauseReason = ""


PAUSED_SINCE = Annotated[
    datetime | None,
    Field(description="Time when the pause began. Null if tests are not paused."),
]


class Sites(Resource[Site]):
    """What is read of sites is more than what is registered: see matrix.api.sites."""

    model = Site
    new = NewSite
    answer = record_of(
        NewSite,
        "A registered site with the names of its endpoints.",
        paused_since=PAUSED_SINCE,
        endpoints=Annotated[
            list[str], Field(description="Names of the endpoints of the site that are in use.")
        ],
        retired_endpoints=Annotated[
            list[str], Field(description="Names of the retired endpoints of the site.")
        ],
    )
    calls = {
        "add": CallText(
            "Register a site",
            "The site is shown to readers once one of its endpoints has been enabled.",
        ),
        "change": CallText(
            "Change a site",
            "Omitted fields keep their values. Admins of the site can change only "
            f"{join(map(CODE, SITE_FIELDS))}.\n\n"
            "During quiet hours, no scheduled tests start on links of the site. While the site is "
            "paused, no tests start on its links, not even on-demand tests. Due tests wait, and "
            "running tests continue.",
        ),
        "remove": CallText(
            "Delete a site",
            "A site can be deleted only if it has never had an endpoint. Its downtimes and notes "
            "are also deleted.",
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
            sentence = f"Site {row.name} has {has}. A site with endpoints cannot be deleted."
            raise Conflict({"name": [sentence]})


def of_testing(site: Site) -> Json:
    """Return its quiet hours, and its pause as long as that lasts."""
    return {"quiet_hours": site.quiet_hours, **of_pause(site, timezone.now())}


SITES = Sites()


# Of all that the model takes, what has a host that is a name or an address.
HOST = r"([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
URL = BASE_URL.replace(r"[^/@?#\s]+", HOST).replace(r"\s", r"\s\x00-\x1f\x7f")
URL_RULE = (
    "a URL of the form scheme://host[:port]/path with at most 400 characters, without user "
    "name, password or query string. The scheme must be http, https, dav, davs, root, xroot, "
    "gsiftp, ftp, iperf3 or fake"
)
CREDENTIALS = ("credential", "credential_lent")
ELSEWHERE = ("retired", *PAUSE_FIELDS)
# What is for those who may see it, as that may be where Sonar writes and with what.
INTERNAL = ("base_url", *CREDENTIALS, "lend_credential", "data_hosts")
# What decides which credential a program may show to both ends, whether it is one at all, and
# which workers reach it.
SHOWN_FIELDS = ("base_url", "credential", "lend_credential", "retired", "vantage")
# What is answered otherwise than it is sent.
AS_ANSWERED: dict[str, Any] = {
    "retired_at": Annotated[
        datetime | None,
        Field(
            description="Time when the endpoint was retired. Null if the endpoint is not retired."
        ),
    ],
    "paused_since": PAUSED_SINCE,
    "base_url": (str, ""),
    "credential": (str, ""),
    "credential_lent": (str, ""),
    "lend_credential": (bool, False),
    "data_hosts": (list[str], []),
}


class NewEndpoint(Body):
    """A storage endpoint to register."""

    name: Annotated[str, own_name("endpoint")]
    site: Annotated[str, name_of("site", "Site that the endpoint belongs to.")]
    base_url: Annotated[
        str,
        field(
            URL_RULE,
            "Base URL of the endpoint. Sonar writes and deletes files only in `sonar/` below it.",
            max_length=400,
            pattern=URL,
        ),
    ]
    label: Annotated[str, line(40, "Label of the storage area, such as DATADISK.")] = ""
    software: Annotated[
        str, line(80, "Server software of the endpoint, such as XRootD 5.5.3. Empty if unknown.")
    ] = ""
    inbound_cap: Annotated[
        int, whole(1, MOST_CAP, "Maximum number of concurrent test transfers to the endpoint.")
    ] = 2
    outbound_cap: Annotated[
        int, whole(1, MOST_CAP, "Maximum number of concurrent test transfers from the endpoint.")
    ] = 2
    budget_bytes_per_day: Annotated[
        int | None,
        whole(
            1,
            MOST_DAILY_BYTES,
            "Maximum number of bytes that tests read from and write to the endpoint per UTC day. "
            "Null means no limit.",
            or_null=True,
        ),
    ] = None
    credential: Annotated[
        str,
        credential_name(
            "Credential with which Sonar reads, writes and deletes files at the endpoint. It is "
            "not sent to other endpoints, unless `lend_credential` is true."
        ),
    ] = ""
    credential_lent: Annotated[
        str,
        credential_name(
            "Credential that is delegated to the other endpoint of a third-party copy. It should "
            "be read-only."
        ),
    ] = ""
    lend_credential: Annotated[
        bool,
        flag(
            "Whether `credential` is delegated to the other endpoint of a third-party copy if "
            "`credential_lent` is empty."
        ),
    ] = False
    data_hosts: Annotated[
        DataHosts,
        data_host_list("Data servers to which the server of the endpoint can redirect transfers."),
    ] = []
    vantage: Annotated[
        str,
        vantage_name(
            "Vantage point whose workers can reach the endpoint. Empty if all workers can reach "
            "the endpoint."
        ),
    ] = ""
    enabled: Annotated[bool, flag("Whether tests of the endpoint's links can start.")] = False
    simulated: Annotated[
        bool,
        flag("Whether the endpoint is a node of the sandbox, whose transfer rates are simulated."),
    ] = False
    retired: Annotated[
        bool,
        flag(
            "Whether the endpoint is retired. A retired endpoint is not tested and keeps its "
            "results."
        ),
    ] = False
    tags: Annotated[
        Tags, tag_list("Tags of the endpoint, in addition to the tags of its site.")
    ] = []
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
        "A storage endpoint. `base_url`, `data_hosts` and the three fields about credentials are "
        "present only for readers with the right to see them.",
        **AS_ANSWERED,
    )
    written = record_of(
        NewEndpoint,
        "An endpoint as it was stored, and a `notice` if some tests cannot run.",
        name="EndpointWritten",
        **AS_ANSWERED,
        notice=(
            Annotated[
                str,
                Field(
                    description="Sentences that name the meshes whose tests cannot run with the "
                    "present credentials and workers. Omitted if there are no such meshes."
                ),
            ],
            "",
        ),
    )
    parameters = (
        of_row("site", "Return only endpoints of the site with this name.", "GLASGOW", Site),
        of_words(
            "cloud",
            "Return only endpoints whose site is in this cloud (region).",
            "UK",
            "site__cloud",
        ),
        of_words("label", "Return only endpoints with this label.", "DATADISK", "label"),
        of_words(
            "tag",
            "Return only endpoints that have this tag, or whose site has this tag.",
            "atlas",
            "tags__contains",
            "site__tags__contains",
        ),
        yes_or_no(
            "enabled",
            "`true`: return only enabled endpoints. `false`: return only endpoints that are not "
            "enabled. Default: all endpoints.",
            lambda: Q(enabled=True),
        ),
        yes_or_no(
            "retired",
            "`true`: return only retired endpoints. `false`: return only endpoints in use. "
            "Default: all endpoints.",
            lambda: Q(retired_at__isnull=False),
        ),
    )
    calls = {
        "list": CallText(
            "List endpoints",
            "Returns all endpoints, including retired ones, sorted by name. Endpoints that were "
            "never enabled and have no results are shown only to users who can change them.",
        ),
        "add": CallText(
            "Register an endpoint",
            "The endpoint is tested only while `enabled` is true. An endpoint can be checked "
            "before it is enabled. An endpoint with credentials needs a `base_url` with the scheme "
            "`https` or `davs`. An administrator must first allow the credentials of the endpoint "
            "for the host of `base_url`.",
        ),
        "show": CallText("Get an endpoint", "Returns the endpoint with this name."),
        "change": CallText(
            "Change, enable or retire an endpoint",
            "Omitted fields keep their values. Admins of the endpoint's site can change only "
            f"{join(map(CODE, ENDPOINT_FIELDS))}.\n\n"
            "While the endpoint is paused, no tests start on its links, not even on-demand tests. "
            "Due tests wait, and running tests continue.",
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
