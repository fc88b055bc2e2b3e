"""For each route and method a request that is right in all but who sends it; and its scene."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from sonar.alerting import subscriptions
from sonar.models import (
    Alias,
    Annotation,
    CriteriaSet,
    Downtime,
    EndpointCheck,
    Mesh,
    Probe,
    Proposal,
    Site,
    SizeClass,
    Subscription,
    Sweep,
    Target,
    UnknownAlias,
)
from sonar.registry.topology import proposals
from sonar.registry.topology.model import Topology
from tests import found
from tests.matrix import world
from tests.matrix.registry import BODIES
from tests.matrix.world import HOUR, NOW

PASSWORD = "correct-horse-battery"
API = "/api/v1"
ENDS = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK"}
ORDER = {**ENDS, "sizes": ["small"]}
SWEEP = {**ENDS, "variable": "mode", "size": "small"}
RESULT = {
    **ENDS,
    "id": str(UUID(int=1)),
    "started_at": "2026-11-20T11:00:00Z",
    "seconds": 10.5,
    "bytes": 2_000_000_000,
    "state": "done",
    "mover": "fts",
}


@dataclass(frozen=True)
class Sample:
    """A request. ``path`` and form fields have {names} of the scene; ``good`` are its successes.

    The admin asks for another account where others answer that this one may not.
    """

    path: str
    json: Any = None
    form: dict[str, Any] | None = None
    good: tuple[int, ...] = (200,)
    asks_for_another: bool = False

    def send(self, client: Client, method: str, names: dict[str, str]) -> HttpResponse:
        """Send it, and read the answer to its end."""
        path = self.path.format_map(names)
        if self.form is not None:
            return getattr(client, method.lower())(path, self.filled(names))
        sent = {} if self.json is None else {"data": self.json, "content_type": "application/json"}
        response = getattr(client, method.lower())(path, **sent)
        if response.streaming:
            b"".join(response.streaming_content)
        return response

    def filled(self, names: dict[str, str]) -> dict[str, Any]:
        return {field: _filled(value, names) for field, value in (self.form or {}).items()}


def _filled(value: Any, names: dict[str, str]) -> Any:
    return value.format_map(names) if isinstance(value, str) else value


# What stands in a path for what a route has there.
IN_PATHS = {
    "<str:source>/<str:destination>": "RAL_DATADISK/DESY_DATADISK",
    "<str:endpoint>": "RAL_DATADISK",
    "<str:mesh>": "idle",
    "<str:criteria>": "DDT",
    "<str:target>": "kept",
    "<str:size>": "large",
    "<str:period>": "2026-W46",
    "<str:name>": "RAL",
    "sweeps/<uuid:id>": "sweeps/{sweep}",
    "probes/<uuid:id>": "probes/{probe}",
    "transfers/<uuid:id>": "transfers/{transfer}",
    "downtimes/<int:id>": "downtimes/{downtime}",
    "subscriptions/<int:id>": "subscriptions/{mine}",
    "incidents/<int:id>": "incidents/{incident}",
}


def of_route(route: str, asked: str = "", **more: Any) -> Sample:
    """Return a sample whose path is that of the route, and what it is asked."""
    for part, name in IN_PATHS.items():
        route = route.replace(part, name)
    return Sample(f"{route}{asked}", **more)


LINK = "/links/<str:source>/<str:destination>"
OF_LINK = "?source=RAL_DATADISK&destination=DESY_DATADISK"
PAGE = {
    route: of_route(route)
    for route in (
        *(
            "/",
            "/table/",
            "/cells/",
            "/cells/codes/",
            "/preview/",
            "/events/",
            "/incidents/",
            "/causes/",
            "/metrics",
            "/healthz",
        ),
        *(
            "/operations/",
            "/operations/aliases/",
            "/operations/topology/",
            "/operations/probes/<uuid:id>/cancel/",
            "/tokens/",
            "/password/",
            "/views/",
            "/login/",
            "/history/",
            "/people/",
            "/subscriptions/",
            "/subscriptions/add/",
            "/subscriptions/confirm/",
            "/subscriptions/<int:id>/",
        ),
        *("/downtimes/", "/glossary/", "/reports/", "/reports/<str:period>/"),
        *("/size-classes/", "/size-classes/add/", "/size-classes/<str:size>/"),
        *("/commissioning/", "/commissioning/add/", "/commissioning/<str:criteria>/"),
        "/commissioning/<str:criteria>/change/",
        "/commissioning/<str:criteria>/<str:source>/<str:destination>/",
        *("/meshes/", "/meshes/add/", "/meshes/<str:mesh>/", "/meshes/<str:mesh>/change/"),
        *("/sweeps/<uuid:id>/", "/incidents/<int:id>/"),
        *("/targets/", "/targets/add/", "/targets/<str:target>/"),
        *(f"{LINK}/{part}" for part in ("", "preview/", "card/", "tests/", "sweeps/")),
        *("/sites/", "/sites/<str:name>/", "/sites/<str:name>/preview/", "/transfers/<uuid:id>/"),
        "/sites/<str:name>/endpoints/<str:endpoint>/",
        "/sites/add/",
        *(f"/sites/<str:name>/{part}/" for part in ("set-up", "add-endpoint")),
        *(
            f"/sites/<str:name>/endpoints/<str:endpoint>/set-up/{part}"
            for part in ("", "endpoint/")
        ),
    )
} | {
    "/people/<str:name>/": Sample("/people/somebody/"),
    "/subscriptions/add/<str:channel>/": Sample("/subscriptions/add/webhook/"),
    "/search/": Sample("/search/?q=DISK"),
    # Off unless a provider, or a front server, is named: tests/matrix/test_log_in_elsewhere.py.
    "/login/oidc/": Sample("/login/oidc/", good=(404,)),
    "/login/oidc/callback/": Sample("/login/oidc/callback/", good=(404,)),
    "/admin/": Sample("/admin/", asks_for_another=True),
    "/favicon.ico": Sample("/favicon.ico", good=(302,)),
    "/readyz": Sample("/readyz", good=(200, 503)),
}
IN_SET = f"{API}/commissioning/<str:name>"
OF_ONE_LINK = ("diagnosis/", "inside/", "series/")
CALLS = (
    {
        f"{API}/{route}": of_route(f"{API}/{route}", OF_LINK if route in OF_ONE_LINK else "")
        for route in (
            *("", "schema/", "docs/", "links/", "causes/", "diagnosis/", "network/", "inside/"),
            *(
                "commissioning/",
                "matrix/",
                "series/",
                "events/",
                "strip/",
                "status/",
                "stop/",
                "history/",
            ),
            *("sweeps/", "sweeps/<uuid:id>/", "probes/", "probes/<uuid:id>/"),
            *("transfers/", "transfers/<uuid:id>/", "reports/<str:period>/"),
            "endpoints/state/",
            *("incidents/", "incidents/<int:id>/", "incidents/events/"),
        )
    }
    | {}
    | {
        f"{IN_SET}/{part}": of_route(f"{API}/commissioning/DDT/{part}")
        for part in ("", "<str:source>/<str:destination>/")
    }
)
# By plural: how one of them is called in a route, and which one the samples take.
ONE = {
    "sites": ("<str:name>", "Empty"),
    "endpoints": ("<str:name>", "RAL_DATADISK"),
    "size-classes": ("<str:name>", "large"),
    "meshes": ("<str:name>", "idle"),
    "criteria-sets": ("<str:name>", "DDT"),
    "targets": ("<str:name>", "kept"),
    "downtimes": ("<int:id>", "{downtime}"),
    "annotations": ("<int:id>", "{note}"),
    "aliases": ("<int:id>", "{alias}"),
    "subscriptions": ("<int:id>", "{list}"),
}
DELETED = (
    "sites",
    "meshes",
    "criteria-sets",
    "targets",
    "downtimes",
    "annotations",
    "aliases",
    "subscriptions",
)


def _of_registry() -> dict[tuple[str, str], Sample]:
    samples = {}
    for plural, (new, change) in BODIES.items():
        route, name = ONE[plural]
        every = f"{API}/{plural}/"
        one, each = f"{every}{name}/", f"{every}{route}/"
        known = f"{every}RAL/" if plural == "sites" else one
        samples[every, "GET"] = Sample(every)
        samples[every, "POST"] = Sample(every, json=new, good=(201,))
        samples[each, "GET"] = Sample(known)
        samples[each, "PATCH"] = Sample(known, json=change)
        if plural in DELETED:
            samples[each, "DELETE"] = Sample(one, good=(204,))
    return samples


class Document:
    """A file that is uploaded, as often as it is read."""

    name = "sites.json"

    def read(self) -> bytes:
        return b'{"RAL": {"name": "RAL", "tier_level": 1}}'


SITE = "/sites/<str:name>"
MESH = {"every-small": "1h", "mover": "http-tpc", "mode": "pull", "streams": "1", "priority": "5"}
SIZE = {"from_bytes": "10 GB", "test_bytes": "20 GB", "timeout_seconds": "2h"}
CRITERIA = {"size_class": "large", "period_hours": "24h", "least_tests": "6", "least_mb_s": "20"}
# An own subscription, or a list; `{mine}` is each account's own.
OWN = {"name": "nights", "address": "a@example.org", "scope": "own", "cap": "10", "enabled": "on"}
HOOK = {"name": "hook", "scope": "grid", "cap": "10", "enabled": "on"}
HOOK |= {"channel-url": "https://hooks.example.org/x", "channel-key": "k" * 16}
TARGET = {"site": "RAL", "floor_mb_s": "20 MB/s", "below": "60 %", "above": "80 %"}
TARGET |= {"failures": "3", "silent_after": "3", "priority": "5", "save": ""}
MESH |= {"alike": "on", "save": ""}
# What the forms of pages send; where they lead to another page, which is a 302.
FORMS: dict[str, dict[str, Any]] = {
    "/my-site/": {"site": "RAL"},
    "/notes/": {"site": "RAL", "text": "x"},
    "/tokens/revoke/": {"key": "{key}"},
    "/views/": {"name": "n", "address": "{table}"},
    "/views/rename/": {"view": "mine", "name": "other"},
    "/views/delete/": {"view": "mine"},
    "/operations/probes/": {**ENDS, "size": "small"},
    "/operations/probes/<uuid:id>/cancel/": {},
    "/operations/stop/": {"pause_reason": "new switch"},
    "/operations/topology/": {"source": "cric-atlas", "digest": "{digest}"},
    "/operations/topology/propose/": {"source": "cric-atlas", "documents": Document()},
    "/operations/aliases/": {"kind": "rse", "name": "RAL-ECHO", "place": "RAL_DATADISK"},
    "/operations/aliases/dismiss/": {"kind": "rcsite", "name": "RAL-PPD", "source": "gocdb"},
    "/operations/aliases/remove/": {"kind": "rcsite", "name": "RAL-LCG2"},
    f"{LINK}/tests/": {"size": "small"},
    f"{LINK}/sweeps/": {"variable": "mode", "size": "small"},
    "/sweeps/<uuid:id>/cancel/": {},
    "/incidents/<int:id>/": {"decision": "note", "text": "x"},
    f"{SITE}/downtimes/": {
        "starts_at": "2026-11-20 13:00",
        "ends_at": "2026-11-20 14:00",
        "reason": "new switch",
    },
    f"{SITE}/downtimes/<int:id>/": {"end": ""},
    f"{SITE}/endpoints/<str:endpoint>/": {"inbound_cap": "3", "outbound_cap": "3"},
    f"{SITE}/endpoints/<str:endpoint>/data-hosts/": {"data_hosts": "st-*.example.org:1094"},
    f"{SITE}/endpoints/<str:endpoint>/check/": {},
    f"{SITE}/endpoints/<str:endpoint>/enable/": {"disable": ""},
    f"{SITE}/endpoints/<str:endpoint>/pause/": {"pause_reason": "new switch"},
    "/sites/add/": {"name": "Added", "tier": "2"},
    f"{SITE}/set-up/": {"tier": "1", "cloud": "UK", "country": "GB"},
    f"{SITE}/add-endpoint/": {
        "name": "RAL_TAPE",
        "base_url": "https://se.ral.example/tape",
    },
    f"{SITE}/endpoints/<str:endpoint>/set-up/endpoint/": {"base_url": "https://se.ral.example/d"},
    f"{SITE}/endpoints/<str:endpoint>/set-up/credential/": {"how": "none"},
    f"{SITE}/endpoints/<str:endpoint>/set-up/start/": {"mesh": "everything"},
    "/size-classes/add/": {"name": "huge", **SIZE},
    "/size-classes/<str:size>/": SIZE | {"from_bytes": "1 GB", "test_bytes": "3 GB"},
    "/commissioning/add/": {"name": "added", **CRITERIA},
    "/commissioning/<str:criteria>/change/": CRITERIA,
    "/commissioning/<str:criteria>/delete/": {},
    "/meshes/add/": {"name": "added", **MESH},
    "/meshes/<str:mesh>/change/": MESH,
    "/meshes/<str:mesh>/enable/": {},
    "/meshes/<str:mesh>/delete/": {},
    "/targets/add/": {"name": "added", **TARGET},
    "/targets/<str:target>/": TARGET,
    "/targets/<str:target>/delete/": {},
    f"{SITE}/quiet-hours/": {"quiet_from": "22:00", "quiet_until": "04:00"},
    f"{SITE}/pause/": {"pause_reason": "new switch"},
    f"{SITE}/notes/": {"text": "x"},
    "/reports/": {"report": "week", "address": "a@example.org"},
    "/subscriptions/add/": OWN,
    "/subscriptions/<int:id>/": OWN,
    "/subscriptions/<int:id>/test/": {},
    "/subscriptions/<int:id>/open-incidents/": {},
    "/subscriptions/<int:id>/delete/": {},
    "/login/": {"username": "somebody", "password": PASSWORD},
    "/logout/": {},
}
WRITES = {
    ("/password/", "POST"): Sample("/password/", form={"old_password": "x"}, good=(400,)),
    ("/tokens/", "POST"): Sample("/tokens/", form={"name": "n", "scopes": ["read"], "days": "1"}),
    ("/people/", "POST"): Sample(
        "/people/",
        form={"username": "bob", "usable_password": "false", "role": "reader"},
        good=(302,),
    ),
    ("/people/<str:name>/", "POST"): Sample(
        "/people/somebody/", form={"role": "reader", "is_active": "on"}, good=(302,)
    ),
    ("/people/<str:name>/password/", "POST"): Sample(
        "/people/somebody/password/",
        form=dict.fromkeys(("new_password1", "new_password2"), PASSWORD),
        good=(302,),
    ),
    ("/subscriptions/add/<str:channel>/", "POST"): Sample(
        "/subscriptions/add/webhook/", form=HOOK, good=(302,)
    ),
    ("/subscriptions/confirm/", "POST"): Sample(
        "/subscriptions/confirm/", form={"token": "{token}"}, good=(302,)
    ),
    # It has no rate yet that could be accepted.
    (f"{LINK}/baseline/", "POST"): of_route(
        f"{LINK}/baseline/", form={"size": "small", "note": "another route"}, good=(400,)
    ),
    ("/login/certificate/", "POST"): Sample("/login/certificate/", form={}, good=(404,)),
    ("/admin/", "POST"): Sample(
        "/admin/sonar/site/add/",
        form={"name": "Added", "tier": "2"},
        good=(302,),
        asks_for_another=True,
    ),
    (f"{API}/sweeps/", "POST"): Sample(f"{API}/sweeps/", json=SWEEP, good=(202,)),
    (f"{API}/incidents/<int:id>/", "POST"): of_route(
        f"{API}/incidents/<int:id>/", json={"decision": "note", "text": "x"}
    ),
    (f"{API}/stop/", "PATCH"): Sample(
        f"{API}/stop/", json={"paused": True, "pause_reason": "new switch"}
    ),
    (f"{API}/probes/", "POST"): Sample(f"{API}/probes/", json=ORDER, good=(202,)),
    (f"{API}/transfers/", "POST"): Sample(f"{API}/transfers/", json=[RESULT], good=(201,)),
    **{
        (f"{API}/{route}", "DELETE"): of_route(f"{API}/{route}", good=(204,))
        for route in ("sweeps/<uuid:id>/", "probes/<uuid:id>/")
    },
}
CHECK, CHECK_OF_RAL = (f"{API}/endpoints/{name}/check/" for name in ("<str:name>", "RAL_DATADISK"))
COST = f"{API}/endpoints/<str:name>/cost/"
CHECKS = {
    (CHECK, "GET"): Sample(CHECK_OF_RAL),
    (CHECK, "POST"): Sample(CHECK_OF_RAL, json={}, good=(202,)),
    (COST, "GET"): Sample(f"{API}/endpoints/RAL_DATADISK/cost/?mesh=everything"),
}
NOWHERE = Sample("/api/v1/nowhere/", good=(404,))

SAMPLES: dict[tuple[str, str], Sample] = {
    **{(route, "GET"): sample for route, sample in (PAGE | CALLS).items()},
    **{(route, "POST"): of_route(route, form=form, good=(302,)) for route, form in FORMS.items()},
    **_of_registry(),
    **WRITES,
    **CHECKS,
    **{("/api/", method): NOWHERE for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
}


def a_list() -> Subscription:
    """Return a list that a webhook is told by."""
    row = Subscription(name="shift", channel="webhook", confirmed_at=NOW)
    subscriptions.seal(row, {"url": "https://hooks.example.org/x", "key": "k" * 16})
    row.save()
    return row


def own_subscription(user: User) -> dict[str, str]:
    """Make a subscription of an account; return its id, and the token by which it is confirmed."""
    own = {"name": "mine", "channel": "email", "address": "a@example.org"}
    row = Subscription.objects.create(owner=user, confirmed_at=NOW, **own)
    return {"mine": str(row.pk), "token": subscriptions.token_of(row)}


def scene() -> dict[str, str]:
    """Make the small world with one of each kind, RAL's wherever it has a site; return names."""
    made = world.make()
    Site.objects.create(name="Empty")
    Mesh.objects.create(name="idle", enabled=False)
    large = SizeClass.objects.get(name="large")
    asked = {"period_hours": 24, "least_tests": 6, "least_mb_s": 20}
    CriteriaSet.objects.create(name="DDT", size_class=large, **asked)
    Target.objects.create(name="kept", site=made.ral.site, floor_mb_s=20)
    User.objects.create_user("somebody", password=PASSWORD)
    link = {"source": made.ral, "destination": made.desy, "mover": "http-tpc"}
    link |= {"size_class": SizeClass.objects.get(name="small"), "requested_at": NOW}
    test = link | {"bytes": 20_000_000, "sent_at": NOW}
    probe = Probe.objects.create(**test)
    step = Probe.objects.create(**test, state=Probe.State.WAITING)
    sweep = Sweep.objects.create(**link, variable="mode")
    for position, value, test_id in ((0, "pull", step.id), (1, "push", uuid4())):
        sweep.steps.create(position=position, value=value, test_id=test_id)
    note = Annotation.objects.create(
        site=made.ral.site, text="a note", starts_at=NOW - HOUR, public=True
    )
    later, over = NOW + HOUR, NOW + 2 * HOUR
    downtime = Downtime.objects.create(
        endpoint=made.ral, starts_at=later, ends_at=over, reason="new disks"
    )
    alias = Alias.objects.create(kind="rcsite", name="RAL-LCG2", site=made.ral.site)
    told = {"source": "gocdb", "first_at": NOW, "last_at": NOW}
    UnknownAlias.objects.create(kind="rcsite", name="RAL-PPD", **told)
    EndpointCheck.objects.create(endpoint=made.ral, requested_at=NOW - HOUR)
    proposals.keep(Topology(source="cric-atlas"), ["sites.json"], NOW)
    digest = proposals.compared(Proposal.objects.get()).digest
    return {
        "transfer": str(world.transfer(made.ral, made.desy, 10.0).id),
        "probe": str(probe.id),
        "sweep": str(sweep.id),
        "note": str(note.id),
        "downtime": str(downtime.id),
        "alias": str(alias.id),
        "list": (whole_list := str(a_list().id)),
        # Of who has none of its own.
        "mine": whole_list,
        "token": "none",
        "incident": str(found.opened(found.of_link(made.ral, made.desy)).id),
        "digest": digest,
        "table": reverse("table"),
    }
