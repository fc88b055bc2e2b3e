"""What the API is asked about in these tests: the small world with one of everything."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from django.contrib.auth.models import User

from sonar.models import (
    Alias,
    Annotation,
    CommissioningRecord,
    CriteriaSet,
    EndpointCheck,
    SizeClass,
    Sweep,
    Target,
)
from sonar.notation.check_steps import CheckStep, StepState
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests import found
from tests.accounts import account
from tests.matrix import sent, world
from tests.matrix.world import NOW, World
from tests.rights_samples import a_list

HOUR = timedelta(hours=1)
PROBE = UUID("00000000-0000-4000-8000-00000000000d")


@dataclass(frozen=True)
class Scene:
    """The world, what stands for `{name}` and `{id}` in paths, and tokens by account."""

    world: World
    places: dict[str, str]
    tokens: dict[str, str]

    def address(self, path: str) -> str:
        """Fill in a path of the schema: `/api/v1/meshes/{name}/`."""
        for end in ("source", "destination"):
            path = path.replace(f"{{{end}}}", f"{self.places[end]}")
        before, brace, rest = path.partition("{")
        return f"{before}{self.places[before]}{rest.partition('}')[2]}" if brace else path


def make() -> Scene:
    made = world.make()
    sent.many(made.ral, made.glasgow, 300, NOW)
    sent.many(made.glasgow, made.ral, 30, NOW)
    administrator = account(Role.ADMINISTRATOR, name="administrator")
    site_admin = account(Role.SITE_ADMIN, made.ral.site, name="site-admin")
    led_elsewhere(made)
    passed(made)
    users = (account(name="reader"), site_admin, administrator)
    places = {
        "sites": "RAL",
        "endpoints": "RAL_DATADISK",
        "meshes": "everything",
        "size-classes": "large",
        "criteria-sets": "DDT",
        "commissioning": "DDT",
        "targets": Target.objects.create(name="at-least", floor_mb_s=20).name,
        "transfers": str(world.transfer(made.desy, made.ral, None).id),
        "probes": str(sent.probe(made.ral, made.desy, id=PROBE).id),
        "sweeps": str(sweep(made).id),
        "reports": "2026-W46",
        "downtimes": str(world.downtime(site=made.desy.site).id),
        "annotations": str(annotation(made, administrator).id),
        "subscriptions": str(a_list().id),
        "incidents": str(found.opened(found.of_link(made.ral, made.desy)).id),
        "aliases": str(Alias.objects.create(kind="rse", name="RAL-ECHO", endpoint=made.ral).id),
    }
    return Scene(
        made,
        {f"/api/v1/{plural}/": place for plural, place in places.items()}
        | {"source": "RAL_DATADISK", "destination": "DESY_DATADISK"},
        {str(user): tokens.create(user, "fuzz", roles.scopes_for(user), 1)[1] for user in users},
    )


def passed(made: World) -> None:
    """Let a link have passed a criteria set and lost it."""
    large = SizeClass.objects.get(name="large")
    asked = {"period_hours": 24, "least_tests": 6, "least_mb_s": 20.0, "least_bytes": 10**10}
    ddt = CriteriaSet.objects.create(name="DDT", size_class=large, **asked)
    CommissioningRecord.objects.create(
        criteria_set=ddt,
        source=made.ral,
        destination=made.desy,
        passed_at=NOW - 9 * HOUR,
        lost_at=NOW - HOUR,
        required=ddt.required,
        tests=8,
        ok=7,
        bytes=14 * 10**9,
        seconds=300.0,
        found_at=NOW,
    )


def led_elsewhere(made: World) -> None:
    """Let RAL be a cluster that was checked, known by its host, and at risk as GOCDB has it."""
    server = "st-048.disk.example.org"
    made.ral.data_hosts = ["st-*.disk.example.org:8443"]
    made.ral.save()
    sent.send(made.ral, made.desy, NOW, data_server=f"{server}:8443", redirect_seconds=5.02)
    Alias.objects.create(kind="se_host", name="door.disk.example.org", endpoint=made.ral)
    told = {"origin": "gocdb", "key": "46867G0", "url": "https://goc.egi.eu/portal/?id=46867"}
    world.downtime(endpoint=made.ral, severity="warning", **told)
    steps = [CheckStep("name", StepState.FINE, server), CheckStep("write", StepState.FAILED, "403")]
    EndpointCheck.objects.create(
        endpoint=made.ral,
        requested_at=NOW,
        started_at=NOW,
        ended_at=NOW,
        steps=[step.to_json() for step in steps],
    )


def sweep(made: World) -> Sweep:
    """Make one of two tests, of which the first has ended and the second was cancelled."""
    transfer = world.transfer(made.ral, made.glasgow, 12.0, size="small")
    ordered = Sweep.objects.create(
        source=made.ral,
        destination=made.glasgow,
        variable="mode",
        size_class=SizeClass.objects.get(name="small"),
        mover="http-tpc",
        streams=1,
        requested_at=transfer.started_at,
    )
    for position, (mode, test_id) in enumerate((("pull", transfer.id), ("push", uuid4()))):
        ordered.steps.create(position=position, value=mode, test_id=test_id)
    return ordered


def annotation(made: World, author: User) -> Annotation:
    return Annotation.objects.create(
        source=made.ral,
        destination=made.glasgow,
        text="a new route",
        starts_at=NOW,
        public=True,
        author=author,
    )
