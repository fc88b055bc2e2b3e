"""For each route and method a request that is right in all but who sends it; and its scene."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from sonar.models import Annotation, Downtime, Experiment, Probe, Site, SizeClass
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


PAGE = {
    "/": Sample("/"),
    "/table/": Sample("/table/"),
    "/cells/": Sample("/cells/"),
    "/preview/": Sample("/preview/"),
    "/links/<str:source>/<str:destination>/preview/": Sample(
        "/links/RAL_DATADISK/DESY_DATADISK/preview/"
    ),
    "/sites/<str:name>/preview/": Sample("/sites/RAL/preview/"),
    "/links/<str:source>/<str:destination>/": Sample("/links/RAL_DATADISK/DESY_DATADISK/"),
    "/links/<str:source>/<str:destination>/card/": Sample(
        "/links/RAL_DATADISK/DESY_DATADISK/card/"
    ),
    "/links/<str:source>/<str:destination>/tests/": Sample(
        "/links/RAL_DATADISK/DESY_DATADISK/tests/"
    ),
    "/links/<str:source>/<str:destination>/experiments/": Sample(
        "/links/RAL_DATADISK/DESY_DATADISK/experiments/"
    ),
    "/experiments/<uuid:id>/": Sample("/experiments/{experiment}/"),
    "/transfers/<uuid:id>/": Sample("/transfers/{transfer}/"),
    "/changes/": Sample("/changes/", good=(302,)),
    "/events/": Sample("/events/"),
    "/causes/": Sample("/causes/"),
    "/sites/": Sample("/sites/"),
    "/sites/<str:name>/": Sample("/sites/RAL/"),
    "/search/": Sample("/search/?q=DISK"),
    "/operations/": Sample("/operations/"),
    "/tokens/": Sample("/tokens/"),
    "/views/": Sample("/views/"),
    "/login/": Sample("/login/"),
    # Off unless a provider, or a front server, is named: tests/matrix/test_log_in_elsewhere.py.
    "/login/oidc/": Sample("/login/oidc/", good=(404,)),
    "/login/oidc/callback/": Sample("/login/oidc/callback/", good=(404,)),
    "/admin/": Sample("/admin/", asks_for_another=True),
    "/metrics": Sample("/metrics"),
    "/favicon.ico": Sample("/favicon.ico", good=(302,)),
    "/healthz": Sample("/healthz"),
    "/readyz": Sample("/readyz", good=(200, 503)),
}
CALLS = {
    "": Sample(f"{API}/"),
    "schema/": Sample(f"{API}/schema/"),
    "docs/": Sample(f"{API}/docs/"),
    "experiments/": Sample(f"{API}/experiments/"),
    "experiments/<uuid:id>/": Sample(f"{API}/experiments/{{experiment}}/"),
    "links/": Sample(f"{API}/links/"),
    "causes/": Sample(f"{API}/causes/"),
    "diagnosis/": Sample(f"{API}/diagnosis/?source=RAL_DATADISK&destination=DESY_DATADISK"),
    "network/": Sample(f"{API}/network/"),
    "inside/": Sample(f"{API}/inside/?source=RAL_DATADISK&destination=DESY_DATADISK"),
    "matrix/": Sample(f"{API}/matrix/"),
    "series/": Sample(f"{API}/series/?source=RAL_DATADISK&destination=DESY_DATADISK"),
    "changes/": Sample(f"{API}/changes/"),
    "events/": Sample(f"{API}/events/"),
    "strip/": Sample(f"{API}/strip/"),
    "status/": Sample(f"{API}/status/"),
    "probes/": Sample(f"{API}/probes/"),
    "probes/<uuid:id>/": Sample(f"{API}/probes/{{probe}}/"),
    "transfers/": Sample(f"{API}/transfers/"),
    "transfers/<uuid:id>/": Sample(f"{API}/transfers/{{transfer}}/"),
}
LISTS = {plural: Sample(f"{API}/{plural}/") for plural in BODIES}
# By plural: how one of them is called in a route, and which one the samples take.
ONE = {
    "sites": ("<str:name>", "Empty"),
    "endpoints": ("<str:name>", "RAL_DATADISK"),
    "size-classes": ("<str:name>", "large"),
    "meshes": ("<str:name>", "everything"),
    "downtimes": ("<int:id>", "{downtime}"),
    "annotations": ("<int:id>", "{note}"),
}
DELETED = ("sites", "downtimes", "annotations")


def _of_registry() -> dict[tuple[str, str], Sample]:
    found = {}
    for plural, (new, change) in BODIES.items():
        route, name = ONE[plural]
        one = f"{API}/{plural}/{name}/"
        every = f"{API}/{plural}/"
        known = Sample(f"{API}/sites/RAL/") if plural == "sites" else Sample(one)
        found[every, "GET"] = Sample(every)
        found[every, "POST"] = Sample(every, json=new, good=(201,))
        found[f"{every}{route}/", "GET"] = known
        changed = f"{API}/sites/RAL/" if plural == "sites" else one
        found[f"{every}{route}/", "PATCH"] = Sample(changed, json=change)
        if plural in DELETED:
            found[f"{every}{route}/", "DELETE"] = Sample(one, good=(204,))
    return found


WRITES = {
    ("/my-site/", "POST"): Sample("/my-site/", form={"site": "RAL"}, good=(302,)),
    ("/notes/", "POST"): Sample("/notes/", form={"site": "RAL", "text": "x"}, good=(302,)),
    ("/tokens/", "POST"): Sample("/tokens/", form={"name": "n", "scopes": ["read"], "days": "1"}),
    ("/tokens/revoke/", "POST"): Sample("/tokens/revoke/", form={"key": "{key}"}, good=(302,)),
    ("/views/", "POST"): Sample("/views/", form={"name": "n", "address": "{table}"}, good=(302,)),
    ("/views/rename/", "POST"): Sample(
        "/views/rename/", form={"view": "mine", "name": "other"}, good=(302,)
    ),
    ("/views/delete/", "POST"): Sample("/views/delete/", form={"view": "mine"}, good=(302,)),
    ("/operations/probes/", "POST"): Sample(
        "/operations/probes/", form={**ENDS, "size": "small"}, good=(302,)
    ),
    ("/links/<str:source>/<str:destination>/tests/", "POST"): Sample(
        "/links/RAL_DATADISK/DESY_DATADISK/tests/", form={"size": "small"}, good=(302,)
    ),
    ("/sites/<str:name>/downtimes/", "POST"): Sample(
        "/sites/RAL/downtimes/",
        form={
            "starts_at": "2026-11-20 13:00",
            "ends_at": "2026-11-20 14:00",
            "reason": "new switch",
        },
        good=(302,),
    ),
    ("/sites/<str:name>/downtimes/<int:id>/", "POST"): Sample(
        "/sites/RAL/downtimes/{downtime}/", form={"end": ""}, good=(302,)
    ),
    ("/sites/<str:name>/endpoints/<str:endpoint>/", "POST"): Sample(
        "/sites/RAL/endpoints/RAL_DATADISK/",
        form={"inbound_cap": "3", "outbound_cap": "3"},
        good=(302,),
    ),
    ("/sites/<str:name>/quiet-hours/", "POST"): Sample(
        "/sites/RAL/quiet-hours/",
        form={"quiet_from": "22:00", "quiet_until": "04:00"},
        good=(302,),
    ),
    ("/sites/<str:name>/pause/", "POST"): Sample(
        "/sites/RAL/pause/", form={"pause_reason": "new switch"}, good=(302,)
    ),
    ("/sites/<str:name>/notes/", "POST"): Sample(
        "/sites/RAL/notes/", form={"text": "x"}, good=(302,)
    ),
    ("/login/", "POST"): Sample(
        "/login/", form={"username": "somebody", "password": PASSWORD}, good=(302,)
    ),
    ("/login/certificate/", "POST"): Sample("/login/certificate/", form={}, good=(404,)),
    ("/logout/", "POST"): Sample("/logout/", form={}, good=(302,)),
    ("/admin/", "POST"): Sample(
        "/admin/sonar/site/add/",
        form={"name": "Added", "tier": "2"},
        good=(302,),
        asks_for_another=True,
    ),
    ("/operations/probes/<uuid:id>/cancel/", "POST"): Sample(
        "/operations/probes/{probe}/cancel/", form={}, good=(302,)
    ),
    ("/links/<str:source>/<str:destination>/experiments/", "POST"): Sample(
        "/links/RAL_DATADISK/DESY_DATADISK/experiments/",
        form={"variable": "mode", "size": "small"},
        good=(302,),
    ),
    ("/experiments/<uuid:id>/cancel/", "POST"): Sample(
        "/experiments/{experiment}/cancel/", form={}, good=(302,)
    ),
    (f"{API}/experiments/<uuid:id>/", "DELETE"): Sample(
        f"{API}/experiments/{{experiment}}/", good=(204,)
    ),
    (f"{API}/experiments/", "POST"): Sample(f"{API}/experiments/", json=SWEEP, good=(202,)),
    (f"{API}/probes/<uuid:id>/", "DELETE"): Sample(f"{API}/probes/{{probe}}/", good=(204,)),
    (f"{API}/probes/", "POST"): Sample(f"{API}/probes/", json=ORDER, good=(202,)),
    (f"{API}/transfers/", "POST"): Sample(f"{API}/transfers/", json=[RESULT], good=(201,)),
}
NOWHERE = Sample("/api/v1/nowhere/", good=(404,))

SAMPLES: dict[tuple[str, str], Sample] = {
    **{(route, "GET"): sample for route, sample in PAGE.items()},
    **{(f"{API}/{route}", "GET"): sample for route, sample in CALLS.items()},
    **_of_registry(),
    **WRITES,
    **{("/api/", method): NOWHERE for method in ("GET", "POST", "PUT", "PATCH", "DELETE")},
}


def scene() -> dict[str, str]:
    """Make the small world with one of each kind, RAL's wherever it has a site; return names."""
    made = world.make()
    Site.objects.create(name="Empty")
    User.objects.create_user("somebody", password=PASSWORD)
    probe = Probe.objects.create(
        source=made.ral,
        destination=made.desy,
        size_class=SizeClass.objects.get(name="small"),
        bytes=20_000_000,
        mover="http-tpc",
        requested_at=NOW,
        sent_at=NOW,
    )
    step = Probe.objects.create(
        source=made.ral,
        destination=made.desy,
        size_class=probe.size_class,
        bytes=20_000_000,
        mover="http-tpc",
        state=Probe.State.WAITING,
        requested_at=NOW,
        sent_at=NOW,
    )
    experiment = Experiment.objects.create(
        source=made.ral,
        destination=made.desy,
        variable="mode",
        size_class=probe.size_class,
        mover="http-tpc",
        requested_at=NOW,
    )
    for position, value, test_id in ((0, "pull", step.id), (1, "push", uuid4())):
        experiment.steps.create(position=position, value=value, test_id=test_id)
    note = Annotation.objects.create(
        site=made.ral.site, text="a note", starts_at=NOW - HOUR, public=True
    )
    downtime = Downtime.objects.create(
        endpoint=made.ral,
        starts_at=NOW + HOUR,
        ends_at=NOW + 2 * HOUR,
        reason="new disks",
    )
    return {
        "transfer": str(world.transfer(made.ral, made.desy, 10.0).id),
        "probe": str(probe.id),
        "experiment": str(experiment.id),
        "note": str(note.id),
        "downtime": str(downtime.id),
        "table": reverse("table"),
    }
