"""A site that is being added changes no page and no answer for others until it is enabled."""

import re
from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from sonar.models import Endpoint, Mesh, Site, SizeClass
from sonar.people.roles import Role
from sonar.registry import mesh_size
from sonar.scheduler.sync import follow_registry
from tests import rights_samples
from tests.accounts import account, logged_in
from tests.matrix.world import NOW
from tests.rights_samples import SAMPLES

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
# Different in each answer, or in each version of the registry: tokens of forms, versions, and what
# the process itself has used.
CHANGING = re.compile(
    r'csrfmiddlewaretoken" value="\w+"|csrf="\w+"|\d+\.\d+-\d+\.\d+-[\w.-]+'
    r"|^(# \w+ )?(python|process|django)_.*\n",
    re.MULTILINE,
)
# What the reader asks for besides the sample of each route.
MORE = (
    "/?rows=site&columns=site",
    "/?rows=cloud&columns=cloud",
    "/?cloud=UK",
    "/?size=small&wall=1",
    "/search/?q=ECDF",
    "/api/v1/reports/2026-W46/?format=pdf",
    *(f"/api/v1/matrix/?size=small&format={form}" for form in ("csv", "html", "png")),
    *(f"/api/v1/{rows}/?format=csv" for rows in ("links", "sites", "endpoints", "transfers")),
    "/api/v1/meshes/everything/",
    "/api/v1/endpoints/state/",
)
# The log of what was changed has what was added, and the registry itself is for operators.
OF_THE_DRAFT = ("/history/", "/api/v1/history/", "/api/v1/endpoints/")
HINTS = {
    "/sites/": "4 drafts",
    "/sites/add/": "4 drafts",
    **dict.fromkeys(("/sites/RAL/", "/sites/RAL/set-up/", "/sites/RAL/add-endpoint/"), "RAL_TAPE"),
}


def paths(names: dict[str, str]) -> list[str]:
    samples = [sample for (_, method), sample in SAMPLES.items() if method == "GET"]
    return sorted({*(sample.path.format_map(names) for sample in samples), *MORE})


def answers(client: Client, names: dict[str, str]) -> dict[str, str]:
    """Return what each path answers, as text."""
    cache.clear()
    found = {}
    for path in paths(names):
        response = client.get(path)
        body = b"".join(response.streaming_content) if response.streaming else response.content
        text = body.decode("utf-8", "backslashreplace")
        found[path] = f"{response.status_code} {CHANGING.sub('', text)}"
    return found


def draft_site() -> list[Endpoint]:
    """Begin to add a site with two endpoints, and a third endpoint at a site that is tested."""
    ral = Site.objects.get(name="RAL")
    Endpoint.objects.create(
        name="RAL_TAPE", site=ral, base_url="http://127.0.0.1:18998/tape", enabled=False
    )
    site = Site.objects.create(name="ECDF", cloud="UK", tier=2, country="GB", tags=["fresh"])
    return [
        Endpoint.objects.create(
            name=f"ECDF_{label}",
            label=label,
            site=site,
            base_url=f"http://127.0.0.1:18999/{label.lower()}",
            enabled=False,
        )
        for label in ("DATADISK", "SCRATCHDISK")
    ]


@pytest.fixture
def names(settings: Settings) -> dict[str, str]:
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    names = rights_samples.scene()
    Mesh.objects.create(name="uk", sources_filter={"cloud": ["UK"]})
    for mesh, size in (("everything", "large"), ("everything", "small"), ("uk", "small")):
        SizeClass.objects.get(name=size).meshinterval_set.create(
            mesh=Mesh.objects.get(name=mesh), every_seconds=3600
        )
    follow_registry(NOW)
    return names


Visitor = Callable[[], Client]
VISITORS: dict[str, Visitor] = {
    "reader": Client,
    "operator": lambda: logged_in(account(Role.OPERATOR)),
}


@pytest.mark.parametrize("visitor", VISITORS)
def test_a_draft_changes_no_page_and_no_answer(visitor: str, names: dict[str, str]) -> None:
    client = VISITORS[visitor]()
    client.raise_request_exception = False
    before = answers(client, names)
    assert {text[:3] for text in before.values()} >= {"200"}
    draft_site()
    follow_registry(NOW)
    after = answers(client, names)
    own = OF_THE_DRAFT if visitor == "operator" else ()
    differing = {
        path for path, text in after.items() if text != before[path] and not path.startswith(own)
    }
    assert differing == (HINTS.keys() if visitor == "operator" else set())
    for path in differing:
        assert after[path].count('<details class="notice drafts') == 1
        assert f"<summary><strong>{HINTS[path]}</strong>" in after[path]


def test_enabling_ends_a_draft_for_good(names: dict[str, str]) -> None:
    one, other = draft_site()
    assert {one, other} < set(Endpoint.objects.drafts())
    assert one.site not in Site.objects.listed()
    Endpoint.objects.filter(pk=one.pk).update(enabled=True)
    Endpoint.objects.filter(pk=one.pk).update(enabled=False)
    one.save()  # as it was read, before it was enabled
    assert one in Endpoint.objects.in_use()
    assert other in Endpoint.objects.drafts()
    assert one.site in Site.objects.listed()


def test_an_imported_result_ends_a_draft(names: dict[str, str]) -> None:
    one, other = draft_site()
    ingest = logged_in(account(Role.OPERATOR))
    body = [rights_samples.RESULT | {"source": one.name}]
    response = ingest.post("/api/v1/transfers/", body, content_type="application/json")
    assert response.status_code == 201, response.content
    assert one in Endpoint.objects.in_use()
    assert other in Endpoint.objects.drafts()
    rows = Client().get("/api/v1/links/?size=large&origin=all").json()["links"]
    assert one.name in {row["source"]["name"] for row in rows}


def test_a_mesh_that_chooses_drafts_says_so_to_those_who_may_see_them(
    names: dict[str, str],
) -> None:
    one, _ = draft_site()
    Mesh.objects.create(name="named").sources.add(one)
    operator = VISITORS["operator"]()
    tape = logged_in(account(Role.SITE_ADMIN, Site.objects.get(name="RAL")))
    of_one = "ECDF_DATADISK is a draft; its tests start only after it is enabled"
    of_all = "ECDF_DATADISK and 2 more are drafts; their tests start only after they are enabled"
    of_tape = "RAL_TAPE is a draft; its tests start only after it is enabled"
    for mesh, visitor, said in (
        ("named", operator, of_one),
        ("uk", operator, of_all),
        ("uk", tape, of_tape),
        ("named", tape, ""),
        ("everything", operator, ""),
        ("uk", Client(), ""),
    ):
        page = visitor.get(f"/meshes/{mesh}/").content.decode()
        assert re.findall(r"[^<>]*\bdrafts?\b[^<>]*\.", page) == [f"{said}."] * bool(said), mesh
    for mesh, said in (("named", of_one), ("uk", of_all), ("everything", "")):
        kept = operator.patch(f"/api/v1/meshes/{mesh}/", {"priority": 6}, "application/json")
        assert ("draft" in kept.json().get("notice", "")) is bool(said)
        assert said in kept.json().get("notice", "")
        assert mesh_size.lines([mesh])[1:] == [f"mesh {mesh}: {said}"] * bool(said)
