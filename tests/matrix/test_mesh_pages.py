"""Meshes on pages: what each tests and costs, and how operators add, change and delete them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from matrix.pages.meshes.mesh_form import MeshRowForm
from sonar.models import Endpoint, Mesh, Profile, Schedule, SizeClass, Target
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses
from tests.matrix.registry import caller
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "small_world")]
ADD, UK = "/meshes/add/", "/meshes/uk/"
FORM = {
    "name": "uk",
    "sources_filter": "cloud=UK&label=DATADISK",
    "alike": "on",
    "every-small": "1h",
    "every-large": "6h",
    "mover": "http-tpc",
    "mode": "pull",
    "streams": "1",
    "priority": "5",
}


@pytest.fixture
def operator() -> Client:
    return logged_in(account(Role.OPERATOR, name="olga"))


@pytest.fixture
def uk(operator: Client) -> Mesh:
    assert operator.post(ADD, FORM | {"start": ""}).status_code == 302
    return Mesh.objects.get(name="uk")


def read(response: Any) -> Page:
    return Page(response.content.decode())


def test_its_cost_is_seen_before_it_is_kept(operator: Client):
    Endpoint.objects.filter(name="RAL_DATADISK").update(budget_bytes_per_day=10**12)
    asked = operator.post(ADD, FORM)
    assert asked.status_code == 200
    cost = read(asked).part("#cost").words
    # Two links, 24 small tests of 20 MB and 4 large ones of 2 GB each.
    for words in ("tests a day 56", "a day 17.0 GB", "2.33 tests and 707 MB an hour"):
        assert words in cost
    assert "Daily limit of RAL_DATADISK 1.7 % of 1 TB" in cost
    assert "Testing every link and size class once takes at least" in cost
    assert read(asked).field("sources_filter")["value"] == FORM["sources_filter"]
    assert not Mesh.objects.filter(name="uk").exists()


def test_without_links_nothing_is_said_of_what_would_be_noticed(operator: Client):
    assert "Time to detect a problem" in read(operator.post(ADD, FORM)).part("#cost").words
    none = read(operator.post(ADD, FORM | {"sources_filter": "cloud=UKK"})).part("#cost").words
    assert "No links would be tested." in none
    assert "Time to detect a problem" not in none


def test_one_is_added_and_enabled_later(operator: Client, client: Client):
    answer = operator.post(ADD, FORM | {"save": ""})
    assert answer["Location"] == UK
    page = responses.page(operator, UK)
    said = "Added mesh uk: endpoints of cloud UK with label DATADISK: 2 now, 2 links, 56 tests"
    assert said in page
    assert "Tests of this mesh start only after it is enabled." in page
    assert "Enabling it starts 2 links, 56 tests and 17.0 GB a day." in page
    assert "Operators can enable this mesh." in responses.page(client, UK)
    row = Mesh.objects.get(name="uk")
    intervals = row.intervals.values_list("size_class__name", "every_seconds")
    assert dict(intervals) == {"small": 3600, "large": 21600}
    assert row.sources_filter == row.destinations_filter == {"cloud": ["UK"], "label": ["DATADISK"]}
    operator.post(f"{UK}enable/")
    assert Mesh.objects.get(name="uk").enabled
    operator.post(f"{UK}enable/", {"disable": ""})
    entries = LogEntry.objects.order_by("id").values_list("user__username", "object_repr")
    assert [*entries] == [("olga", "uk")] * 3
    assert "is not enabled. Nothing was changed" in read(
        operator.post(f"{UK}enable/", {"disable": ""}, follow=True)
    )


def test_what_is_kept_is_in_the_form_and_a_change_replaces_it(operator: Client, uk: Mesh):
    page = responses.page(operator, f"{UK}change/")
    assert page.field("sources_filter")["value"] == FORM["sources_filter"]
    assert page.field("every-large")["value"] == "6h"
    assert "tests a day 56" in page.part("#cost").words
    named = {"sources_filter": "", "sources": "RAL_DATADISK\nGlasgow_DATADISK"}
    own = {"alike": "", "destinations": "DESY_DATADISK", "every-small": "", "quiet_from": "22:00"}
    change = FORM | named | own | {"quiet_until": "04:00", "bytes_per_hour": "1 TB"}
    change |= {"vantage": "cern", "save": ""}
    assert operator.post(f"{UK}change/", change)["Location"] == UK
    row = Mesh.objects.get(name="uk")
    assert [end.name for end in row.sources.all()] == ["Glasgow_DATADISK", "RAL_DATADISK"]
    assert [end.name for end in row.destinations.all()] == ["DESY_DATADISK"]
    assert (row.sources_filter, row.bytes_per_hour, row.quiet_hours, row.enabled) == (
        {},
        10**12,
        "22:00-04:00",
        True,
    )
    assert [step.size_class.name for step in row.intervals.all()] == ["large"]
    page = responses.page(Client(), UK)
    assert "vantage point cern" in page.section("how").words
    members = page.section("members")
    assert members.by_head()["DESY_DATADISK"] == ["DESY", "destination", "yes"]


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        ({"name": ""}, "name", "Enter a name, for example, uk-disks."),
        ({"name": "add"}, "name", "The name add is reserved"),
        ({"name": "Everything"}, "name", "differs only in case from the mesh “everything”"),
        (
            {"sources_filter": "cluod=UK"},
            "sources_filter",
            "“cluod” is not an attribute of endpoints",
        ),
        ({"sources_filter": "site=X"}, "sources_filter", "Site “X” is not known"),
        (
            {"sources": "RAL_DATADISK"},
            "sources_filter",
            "Use either an endpoint filter or endpoint names, not both.",
        ),
        ({"sources_filter": "", "sources": "A\nB"}, "sources", "Unknown endpoint names: “A”, “B”."),
        ({"alike": "", "destinations": "C"}, "destinations", "Unknown endpoint names: “C”."),
        ({"every-small": "soon"}, "every-small", "soon"),
        ({"every-small": "99999999999"}, "every-small", "99999999999"),
        ({"every-small": "0"}, "every-small", "greater than or equal to 1"),
        ({"every-small": "", "every-large": ""}, "every-large", "for at least one size class"),
        ({"streams": "0"}, "streams", "greater than or equal to 1"),
        ({"bytes_per_hour": "many"}, "bytes_per_hour", "many"),
        ({"quiet_from": "22:00"}, "quiet_until", "need a start and an end. Leave both"),
        ({"quiet_from": "22:00", "quiet_until": "22:00"}, "quiet_until", "at different times"),
        ({"mover": "xrootd"}, "mover", "The mesh uk would test nothing"),
        ({"tcp_buffer_bytes": "8 MB"}, "tcp_buffer_bytes", "http-tpc"),
        ({"service": "https://fts.example.org"}, "service", "http-tpc"),
        ({"scitag": "2"}, "scitag", "2/11"),
        ({"vantage": "CERN"}, "vantage", "1 to 40 lower-case letters, digits and dashes"),
    ],
)
def test_what_is_wrong_stands_at_its_field_and_nothing_is_lost(
    operator: Client, wrong: dict[str, str], field: str, sentence: str
):
    answer = operator.post(ADD, FORM | {"save": ""} | wrong)
    page = read(answer)
    assert answer.status_code == 400
    assert sentence in page.part(f"#mesh-{field}_error").words
    assert page.field("every-large").attributes.get("value", "") == (FORM | wrong)["every-large"]
    assert not Mesh.objects.filter(name="uk").exists()


def test_what_somebody_else_does_meanwhile_is_told(
    operator: Client, uk: Mesh, monkeypatch: pytest.MonkeyPatch
):
    is_valid = MeshRowForm.is_valid

    def then(act: Callable[[], object]) -> None:
        monkeypatch.setattr(MeshRowForm, "is_valid", lambda form: is_valid(form) and bool(act()))

    then(lambda: Mesh.objects.get_or_create(name="new"))
    answer = operator.post(ADD, FORM | {"name": "new", "save": ""})
    assert answer.status_code == 400
    assert "A mesh with this name already exists" in read(answer).part("#mesh-name_error").words
    monkeypatch.setattr(MeshRowForm, "is_valid", is_valid)
    uk.delete()
    answer = operator.post(f"{UK}change/", FORM | {"save": ""})
    assert answer.status_code == 404
    assert not Mesh.objects.filter(name="uk").exists()


def test_it_is_deleted_only_without_results_and_not_while_it_is_enabled(
    operator: Client, uk: Mesh, small_world: World
):
    assert "This mesh cannot be deleted. Mesh uk is enabled" in responses.page(operator, UK)
    refused = read(operator.post(f"{UK}delete/", follow=True))
    assert "Disable it before deleting it" in refused
    Mesh.objects.update(enabled=False)
    assert "Deleting this mesh also deletes its endpoint selection" in responses.page(operator, UK)
    assert "for this mesh" not in responses.page(operator, UK)
    for name in ("slow", "fast"):
        Target.objects.create(name=name, mesh=uk)
    Target.objects.create(name="all")
    assert "2 targets for this mesh will be deleted, too." in responses.page(operator, UK)
    gone = read(operator.post(f"{UK}delete/", follow=True))
    assert "Deleted mesh uk, and 2 targets for this mesh." in gone
    assert not Mesh.objects.filter(name="uk").exists()
    assert Target.objects.get().name == "all"
    transfer(small_world.ral, small_world.desy, 10.0)
    Profile.objects.update(mesh=small_world.mesh)
    words = "Results refer to mesh everything"
    assert words in read(operator.post("/meshes/everything/delete/", follow=True))
    by_rest = caller(Role.OPERATOR).delete("/api/v1/meshes/everything/")
    assert (by_rest.status_code, words in by_rest.content.decode()) == (409, True)


def test_many_are_turned_page_by_page_at_the_cost_of_one(
    client: Client, small_world: World, django_assert_num_queries
):
    Schedule.objects.update(next_due=NOW + HOUR)
    size = SizeClass.objects.get(name="small")
    for number in range(200):
        made = Mesh.objects.create(name=f"m{number:03}", enabled=number != 7)
        made.intervals.create(size_class=size, every_seconds=3600)
    responses.page(client, "/meshes/")  # what they cost is read once for a version of the registry
    with django_assert_num_queries(8):
        first = responses.page(client, "/meshes/")
    rows = first.part("main table").by_head()
    assert rows["everything"][-2:] == ["yes", "20 Nov 13:00"]
    assert rows["m007"][-2:] == ["no", "–"]
    assert "Showing 1 to 100 of 201 meshes." in first
    assert first.link("next") == "/meshes/?page=2"
    assert "Showing 201 to 201 of 201 meshes." in responses.page(client, "/meshes/?page=9")
    assert client.get("/meshes/?page=x").status_code == 400
    Schedule.objects.update(next_due=NOW - timedelta(minutes=5))
    assert (
        responses.page(client, "/meshes/").part("main table").by_head()["everything"][-1] == "now"
    )


def test_no_mesh_and_an_unknown_one_say_so(client: Client, operator: Client):
    Mesh.objects.all().delete()
    assert "There are no meshes, so no scheduled tests run." in responses.page(client, "/meshes/")
    assert responses.page(operator, "/meshes/").link("Add a mesh") == ADD
    missing = client.get(UK)
    assert (missing.status_code, "No mesh is named “uk”." in read(missing)) == (404, True)


def test_only_who_may_see_it_learns_which_service_it_asks(client: Client, operator: Client):
    Mesh.objects.create(name="fts", mover="fts", service="https://fts.example.org:8446")
    assert "fts.example.org" not in responses.page(client, "/meshes/fts/").source
    assert "fts.example.org" in responses.page(operator, "/meshes/fts/").source
