"""The meshes on the page of operations: what each tests now, in words and numbers."""

from __future__ import annotations

import pytest
from django.test import Client

from matrix.answers import meshes
from matrix.pages.parts.meshes import matrix_of
from sonar.models import Endpoint, Mesh, MeshInterval, SizeClass
from sonar.people.roles import Role
from tests.accounts import account
from tests.html import Part
from tests.matrix import responses
from tests.matrix.world import World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_status", "nothing_is_sent")]


def mesh(name: str, size: str = "small", **columns: object) -> Mesh:
    """A mesh that tests files of one size class each hour."""
    made = Mesh.objects.create(name=name, **columns)
    size_class = SizeClass.objects.get(name=size)
    MeshInterval.objects.create(mesh=made, size_class=size_class, every_seconds=3600)
    return made


def section(client: Client) -> Part:
    return responses.page(client, "/operations/").section("meshes")


def by_filter(**chosen: list[str]) -> dict[str, object]:
    return {"sources_filter": chosen, "destinations_filter": chosen}


def test_each_mesh_says_what_it_tests_now(client, small_world: World):
    mesh("disks", **by_filter(label=["DATADISK"]))
    mesh("from-uk", sources_filter={"cloud": ["UK"]}).destinations.set([small_world.desy])
    mesh("off", enabled=False)
    dash = "–"
    meshes_now = section(client)
    assert meshes_now.by_head() == {
        "disks": ["endpoints with label DATADISK", "3", "6", "144", "2.88 GB"],
        "everything": [
            "all endpoints The mesh has no intervals, so no tests run.",
            *("4", "12", "0", "0 B"),
        ],
        "from-uk": ["from endpoints of cloud UK to DESY_DATADISK", "2 to 1", "2", "48", "960 MB"],
        "off": ["all endpoints The mesh is not enabled, so no tests run.", "4", "12", dash, dash],
    }
    assert meshes_now.link("disks") == "/meshes/disks/"
    page = responses.page(client, "/meshes/disks/")
    assert page.link("Results of this mesh in the matrix") == "/?size=small&mesh=disks"
    assert client.get("/api/v1/matrix/?size=small&mesh=disks").status_code == 200


@pytest.mark.parametrize(
    ("columns", "remark"),
    [
        (by_filter(tag=["new"]), "The mesh has no endpoints, so no tests run."),
        ({"sources_filter": {"tag": ["new"]}}, "The mesh has no sources, so no tests run."),
        (
            {"destinations_filter": {"cloud": ["DE"], "label": ["TAPE"]}},
            "The mesh has no destinations, so no tests run.",
        ),
        (
            by_filter(label=["SCRATCHDISK"]),
            "1 endpoint is not tested, because http-tpc does not support its protocol.",
        ),
        (by_filter(site=["RAL"]), "A single endpoint has no links, so no tests run."),
        (
            by_filter(site=["DESY"]),
            "1 more endpoint is not tested, because http-tpc does not support its protocol.",
        ),
    ],
)
def test_a_mesh_says_why_less_is_tested_than_it_seems(small_world: World, columns, remark):
    Endpoint.objects.filter(pk=small_world.scratch.pk).update(base_url="root://desy.example//x")
    mesh("m", **columns)
    [line] = [line for line in meshes.build(9)[0] if line.mesh.name == "m"]
    assert remark in line.remarks


def test_many_meshes_are_cut_and_cost_what_one_does(small_world: World, django_assert_num_queries):
    for number in range(3):
        mesh(f"m{number}", "large").sources.set([small_world.ral])
    meshes.build(1)  # what they cost is read once for a version of the registry
    for most, names in ((3, ["everything", "m0", "m1"]), (9, ["everything", "m0", "m1", "m2"])):
        with django_assert_num_queries(6 if most == 3 else 5):
            lines, count = meshes.build(most)
            assert [line.mesh.name for line in lines] == names
        assert count == 4
    assert matrix_of(lines[1]) == "/?mesh=m0"


def test_who_may_add_one_is_led_there(client, small_world: World):
    assert section(client).link("All meshes") == "/meshes/"
    Mesh.objects.all().delete()
    assert not section(client).links('a[href="/meshes/add/"]')
    client.force_login(account(Role.OPERATOR))
    assert section(client).link("Add a mesh") == "/meshes/add/"
