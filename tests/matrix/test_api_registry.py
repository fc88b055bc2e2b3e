"""The registry by REST: rows are listed, made, changed and removed, and the matrix follows."""

import csv
import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve

from matrix.api.schema import describe
from matrix.api.schema.operation import stored_examples
from sonar.models import (
    Alias,
    Annotation,
    Credential,
    Downtime,
    Endpoint,
    Mesh,
    SignOfLife,
    Site,
    SizeClass,
    Subscription,
    Target,
    Version,
)
from sonar.people.roles import Role
from sonar.results import reclass
from tests.matrix.registry import BODIES, PLURALS, address, caller, get, made, patch, post
from tests.matrix.world import HOUR, NOW, World, downtime, endpoint, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


def view(plural: str) -> Any:
    """Return the view of a list."""
    return resolve(f"/api/v1/{plural}/").func.cls


def rows(client: Client, path: str) -> list[dict[str, Any]]:
    plural = path.split("/", maxsplit=1)[0].replace("-", "_")
    found: list[dict[str, Any]] = get(client, path)[plural]
    return found


def names(client: Client, path: str) -> list[str]:
    return [row["name"] for row in rows(client, path)]


@pytest.mark.parametrize("plural", PLURALS)
def test_a_row_is_made_read_and_changed(root, plural: str):
    new, change = BODIES[plural]
    response = post(root, f"{plural}/", new)
    assert response.status_code == 201, response.content
    record = response.json()
    where = address(plural, record)
    assert response["Location"] == f"http://testserver/api/v1/{where}"
    # The settings of a channel are secret: no answer has them.
    said = {name: value for name, value in new.items() if name not in ("every", "settings")}
    assert {name: record[name] for name in said} == said
    if plural != "sites":  # its address answers with the report
        assert get(root, where) == record
    changed = patch(root, where, change)
    assert changed.status_code == 200, changed.content
    follows = ("tests_per_day", "bytes_per_day", "in_words", "requirement")
    same = {name: value for name, value in record.items() if name not in (*change, *follows)}
    assert {name: changed.json()[name] for name in same} == same
    assert changed.json() != record


def test_who_moves_the_bound_of_a_size_class_is_told_how_many_results_lie_outside(
    root, small_world, monkeypatch
):
    transfer(small_world.ral, small_world.desy, 5.0)
    transfer(small_world.ral, small_world.desy, 5.0, ago=30 * HOUR)
    before = get(root, "size-classes/large/")
    end = transfer(small_world.ral, small_world.desy, 5.0).bytes
    body = {"name": "vast", "from_bytes": end, "test_bytes": 2 * end}
    patch(root, "size-classes/large/", {"test_bytes": end - 1})
    told = post(root, "size-classes/", body).json()
    assert (told["results_outside"], told["results_outside_since"]) == (3, None)
    assert "3 results are outside the bounds of their size class" in told["notice"]
    assert "manage.py reclass_results" in told["notice"]
    describe.of(view("size-classes").post).answer.model_validate(told)
    # Nothing is said where the bound is not written, nor of the list, nor when all is well.
    assert "notice" not in patch(root, "size-classes/vast/", {"timeout_seconds": 9}).json()
    assert "notice" not in get(root, "size-classes/vast/")
    monkeypatch.setattr(reclass, "outside", lambda: found)
    found = reclass.Outside(0, None, is_complete=False)
    told = patch(root, "size-classes/vast/", {"from_bytes": end}).json()
    assert (told["results_outside"], told["results_outside_since"]) == (None, None)
    found = reclass.Outside(7, NOW, is_complete=False)
    told = patch(root, "size-classes/vast/", {"from_bytes": end}).json()
    assert (told["results_outside"], told["results_outside_since"]) == (7, "2026-11-20T12:00:30Z")
    found = reclass.Outside(0, NOW, is_complete=True)
    assert "notice" not in patch(root, "size-classes/vast/", {"from_bytes": end}).json()
    assert before["from_bytes"] == get(root, "size-classes/large/")["from_bytes"]


@pytest.mark.parametrize("plural", PLURALS)
def test_answers_are_as_they_are_described(root, plural: str):
    calls = view(plural)
    record = made(root, plural)
    shape = describe.of(calls.post).answer
    shape.model_validate(record)
    row = describe.of(calls.get).answer.row
    for one in rows(root, f"{plural}/"):
        row.model_validate(one)
    body = describe.of(calls.post).body
    examples = stored_examples()[f"post_{plural.replace('-', '_')}"]
    body.model_validate(examples["body"])
    shape.model_validate(examples["json"])


@pytest.mark.parametrize("plural", PLURALS)
def test_lists_come_as_json_csv_and_ndjson_with_the_same_rows(root, plural: str):
    made(root, plural)
    found = rows(root, f"{plural}/")
    lines = root.get(f"/api/v1/{plural}/?format=ndjson")
    assert lines["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.content.splitlines()] == found
    table = root.get(f"/api/v1/{plural}/", headers={"accept": "text/csv"})
    name = {"sites": "sites-2026-11-13-to-2026-11-20"}.get(plural, plural)
    assert table["Content-Disposition"] == f'inline; filename="sonar-{name}.csv"'
    cells = list(csv.DictReader(table.content.decode().splitlines()))
    assert len(cells) == len(found)
    assert set(cells[0]) == set(found[0])
    key = "id" if "id" in found[0] else "name"
    assert [one[key] for one in cells] == [str(one[key]) for one in found]


@pytest.mark.parametrize("plural", [one for one in PLURALS if "-" not in one])
def test_a_list_is_turned_page_by_page(root, small_world, plural: str):
    model = {"downtimes": Downtime, "annotations": Annotation}.get(plural)
    if plural == "aliases":
        rows_of_ral = [
            Alias(kind="rcsite", name=str(n), site=small_world.ral.site) for n in range(4)
        ]
        Alias.objects.bulk_create(rows_of_ral)
    if plural == "meshes":
        Mesh.objects.bulk_create(Mesh(name=f"mesh-{number}") for number in range(4))
    if plural == "subscriptions":
        lists = [Subscription(name=f"list-{n}", channel="webhook") for n in range(4)]
        Subscription.objects.bulk_create(lists)
    if plural == "targets":
        Target.objects.bulk_create(Target(name=f"e-{number}") for number in range(4))
    if model:
        times = [{"starts_at": NOW - number // 3 * HOUR} for number in range(5)]
        own = {"reason": "x", "ends_at": NOW + HOUR} if model is Downtime else {"text": "x"}
        for one in times:
            model.objects.create(site=small_world.ral.site, **own, **one)
    everything = rows(root, f"{plural}/")
    assert len(everything) >= 3
    found, path = [], f"{plural}/?page_size=2"
    while path:
        page = get(root, path)
        assert len(page[plural]) <= 2
        found += page[plural]
        path = (page["next"] or "").partition("/api/v1/")[2]
    assert found == everything


def test_a_page_goes_on_behind_a_row_that_is_gone(root, small_world):
    for hours in range(4):
        downtime(-hours * HOUR, site=small_world.ral.site, reason=f"{hours}")
    first = get(root, "downtimes/?page_size=2")
    assert [one["reason"] for one in first["downtimes"]] == ["0", "1"]
    root.delete(f"/api/v1/downtimes/{first['downtimes'][1]['id']}/")
    second = get(root, first["next"].partition("/api/v1/")[2])
    assert [one["reason"] for one in second["downtimes"]] == ["2", "3"]
    assert second["next"] is None


def test_size_classes_come_by_size(root):
    assert names(root, "size-classes/") == ["small", "medium", "large"]
    page = get(root, "size-classes/?page_size=1")
    path = page["next"].partition("/api/v1/")[2]
    assert names(root, path) == ["medium"]


def test_endpoints_are_chosen_by_site_cloud_label_and_retirement(root):
    patch(root, "endpoints/RAL_DATADISK/", {"retired": True})
    assert names(root, "endpoints/?site=DESY") == ["DESY_DATADISK", "DESY_SCRATCHDISK"]
    assert names(root, "endpoints/?cloud=UK") == ["Glasgow_DATADISK", "RAL_DATADISK"]
    assert names(root, "endpoints/?cloud=UK&retired=false") == ["Glasgow_DATADISK"]
    assert names(root, "endpoints/?retired=true") == ["RAL_DATADISK"]
    assert names(root, "endpoints/?label=SCRATCHDISK&site=DESY") == ["DESY_SCRATCHDISK"]


def test_downtimes_are_chosen_by_what_they_concern_and_when(root, small_world):
    downtime(-5 * HOUR, -4 * HOUR, site=small_world.desy.site, reason="site")
    downtime(endpoint=small_world.desy, reason="endpoint")
    downtime(endpoint=small_world.scratch, reason="scratch")

    def reasons(asked: str) -> list[str]:
        return [row["reason"] for row in rows(root, f"downtimes/?{asked}")]

    assert reasons("site=DESY") == ["scratch", "endpoint", "site"]
    assert reasons("endpoint=DESY_DATADISK") == ["endpoint", "site"]
    assert reasons("current=true") == ["scratch", "endpoint"]
    assert reasons("current=false") == ["site"]
    assert reasons("to=2026-11-20T08:00:00Z") == ["site"]
    assert reasons("from=2026-11-20T08:00:30Z") == ["scratch", "endpoint"]
    assert reasons("from=2026-11-20T08:00:29Z&to=2026-11-20T09:00:00Z") == ["site"]
    assert reasons("site=RAL") == []


def test_notes_are_chosen_by_their_subject_and_time(root):
    made(root, "annotations")
    made(root, "annotations", site="RAL", source=None, destination=None, text="on the site")
    made(root, "annotations", ends_at="2026-11-21T00:00:00Z", text="for a day")

    def texts(asked: str) -> list[str]:
        return [row["text"] for row in rows(root, f"annotations/?{asked}")]

    assert texts("site=RAL") == ["on the site"]
    assert texts("source=RAL_DATADISK") == ["for a day", "over the backup"]
    assert texts("destination=RAL_DATADISK") == []
    assert texts("from=2026-11-21T00:00:00Z&destination=DESY_DATADISK") == ["over the backup"]
    assert texts("to=2026-11-20T12:00:30Z") == []


def test_an_endpoint_is_retired_and_comes_back(root):
    def retire(yes: bool) -> dict[str, Any]:
        found: dict[str, Any] = patch(root, "endpoints/RAL_DATADISK/", {"retired": yes}).json()
        return found

    retired = retire(True)
    assert (retired["retired"], retired["retired_at"]) == (True, "2026-11-20T12:00:30Z")
    Endpoint.objects.filter(name="RAL_DATADISK").update(retired_at=NOW - HOUR)
    assert retire(True)["retired_at"] == "2026-11-20T11:00:30Z"
    back = retire(False)
    assert (back["retired"], back["retired_at"]) == (False, None)


def test_a_mesh_is_written_and_read_in_the_notation_of_registry_files(root):
    first = made(root, "meshes", destinations=["RAL_DATADISK", "DESY_DATADISK"], sources="all")
    assert first["sources"] == "all"
    assert first["destinations"] == ["DESY_DATADISK", "RAL_DATADISK"]
    assert first["every"] == {"small": 3600, "large": 86400}
    assert first["quiet_hours"] is None
    changed = patch(root, "meshes/uk/", {"destinations": "all", "quiet_hours": "23:00-05:30"})
    assert (changed.json()["destinations"], changed.json()["every"]) == ("all", first["every"])
    kept = Mesh.objects.get(name="uk")
    assert (str(kept.quiet_from), str(kept.quiet_until)) == ("23:00:00", "05:30:00")
    assert patch(root, "meshes/uk/", {"quiet_hours": None}).json()["quiet_hours"] is None
    assert patch(root, "meshes/uk/", {"scitag": "2/11"}).json()["scitag"] == "2/11"
    assert Mesh.objects.get(name="uk").scitag == 139
    assert patch(root, "meshes/uk/", {"scitag": None}).json()["scitag"] is None
    replaced = patch(root, "meshes/uk/", {"every": {"medium": "90s"}}).json()["every"]
    assert replaced == {"medium": 90}


def test_who_writes_a_mesh_is_told_why_its_tests_cannot_run(root):
    assert "notice" not in made(root, "meshes")
    signs = {"name": "w", "kind": "worker", "seen_at": NOW, "every_seconds": 10}
    SignOfLife.objects.create(**signs, queues=["transfers", "transfers.http-tpc"])
    answer = patch(root, "meshes/uk/", {"mover": "gfal2"}).json()
    assert answer["notice"].startswith("No worker can run the transfer tool gfal2: a worker ")
    assert answer["mover"] == Mesh.objects.get(name="uk").mover == "gfal2"
    assert "notice" not in get(root, "meshes/uk/")
    assert "notice" not in patch(root, "meshes/uk/", {"enabled": False}).json()


def test_who_writes_a_mesh_or_an_end_of_it_is_told_which_links_have_two_proxies(root):
    proxy = Credential.objects.create(name="proxy", kind="x509", hosts=["ral.example"])
    disks = Endpoint.objects.filter(label="DATADISK")
    disks.filter(name="RAL_DATADISK").update(
        base_url="root://ral.example/data", credential=proxy, lend_credential=True
    )
    disks.filter(name="DESY_DATADISK").update(base_url="root://desy.example/data")
    ends = {"sources": ["RAL_DATADISK"], "destinations": ["DESY_DATADISK"]}
    answer = made(root, "meshes", mover="xrootd", **ends)
    why = "1 link is not tested. DESY_DATADISK has no X.509 proxy"
    assert answer["notice"].startswith(why)
    answer = patch(root, "endpoints/DESY_DATADISK/", {"base_url": "root://desy.example/other"})
    assert answer.json()["notice"].startswith(f"The mesh uk: {why}")
    assert "notice" not in patch(root, "endpoints/DESY_DATADISK/", {"inbound_cap": 3}).json()
    assert "notice" not in patch(root, "endpoints/DESY_DATADISK/", {"retired": True}).json()


def test_a_note_has_its_author_and_begins_now(root):
    note = made(root, "annotations", site="RAL", source=None, destination=None)
    assert (note["author"], note["starts_at"], note["ends_at"], note["public"]) == (
        "root",
        "2026-11-20T12:00:30Z",
        None,
        False,
    )
    other = caller(Role.OPERATOR)
    patch(other, address("annotations", note), {"text": "mended"})
    kept = Annotation.objects.get()
    assert (kept.text, kept.author) == ("mended", User.objects.get(username="root"))


def test_times_are_kept_to_the_microsecond_and_answered_in_utc(root):
    given = {"starts_at": "2026-11-20T10:00:00.000125+02:00", "ends_at": "2026-11-20T09:00:00"}
    record = made(root, "downtimes", **given)
    assert record["starts_at"] == "2026-11-20T08:00:00.000125Z"
    assert record["ends_at"] == "2026-11-20T09:00:00Z"
    page = get(root, "downtimes/?page_size=1")
    assert page["downtimes"] == [record]


def test_only_what_is_said_is_changed_and_a_null_takes_a_value_away(root):
    before = Endpoint.objects.filter(name="RAL_DATADISK").values().get()
    patch(root, "endpoints/RAL_DATADISK/", {"outbound_cap": 7})
    after = Endpoint.objects.filter(name="RAL_DATADISK").values().get()
    assert after == before | {"outbound_cap": 7}
    patch(root, "endpoints/RAL_DATADISK/", {"budget_bytes_per_day": 10**12})
    assert get(root, "endpoints/RAL_DATADISK/")["budget_bytes_per_day"] == 10**12
    answer = patch(root, "endpoints/RAL_DATADISK/", {"budget_bytes_per_day": None})
    assert answer.json()["budget_bytes_per_day"] is None


def version() -> int:
    return Version.objects.get(name="registry").value


@pytest.mark.parametrize("plural", ["sites", "endpoints", "size-classes", "meshes"])
def test_a_change_to_what_is_there_clears_no_cache(root, plural: str):
    record = made(root, plural)
    patch(root, address(plural, record), BODIES[plural][1])
    before = version()
    assert patch(root, address(plural, record), BODIES[plural][1]).status_code == 200
    assert patch(root, address(plural, record), {}).status_code == 200
    assert version() == before
    patch(root, address(plural, record), {"name": "renamed"})
    assert version() > before


def test_the_matrix_shows_a_change_at_once(root):
    def ask(etag: str = "") -> Any:
        return root.get("/api/v1/matrix/", headers={"if-none-match": etag} if etag else {})

    first = ask()
    assert ask(first["ETag"]).status_code == 304
    made(root, "sites", name="Lancaster")
    made(root, "endpoints", name="Lancaster_DATADISK", site="Lancaster")
    second = ask(first["ETag"])
    assert second.status_code == 200
    patch(root, "sites/Lancaster/", {"cloud": "FR"})
    assert ask(second["ETag"]).status_code == 200
    patch(root, "endpoints/Glasgow_DATADISK/", {"name": "Glasgow_DISK"})
    shown = {one["name"] for one in ask().json()["sources"]}
    assert "Glasgow_DISK" in shown
    assert "Glasgow_DATADISK" not in shown


def test_a_site_without_endpoints_is_removed_with_its_notes(root):
    made(root, "sites")
    made(root, "downtimes", site="Lancaster")
    response = root.delete("/api/v1/sites/Lancaster/")
    assert (response.status_code, response.content) == (204, b"")
    assert not Site.objects.filter(name="Lancaster").exists()
    assert not Downtime.objects.exists()
    assert root.delete("/api/v1/sites/Lancaster/").status_code == 404


def test_a_site_with_endpoints_stays_and_the_answer_says_why(root):
    Endpoint.objects.filter(site__name="DESY").update(retired_at=NOW)
    for site, has in (("DESY", "2 endpoints"), ("RAL", "an endpoint")):
        response = root.delete(f"/api/v1/sites/{site}/")
        assert response.status_code == 409
        sentence = f"Site {site} has {has}. A site with endpoints cannot be deleted."
        assert response.json() == {"detail": sentence, "errors": {"name": [sentence]}}
        assert Site.objects.filter(name=site).exists()


@pytest.mark.parametrize("plural", ["downtimes", "annotations"])
def test_what_is_declared_or_noted_can_be_removed(root, plural: str):
    record = made(root, plural)
    where = f"/api/v1/{address(plural, record)}"
    assert root.delete(where).status_code == 204
    assert root.get(where).status_code == 404
    assert root.delete(where).status_code == 404
    assert rows(root, f"{plural}/") == []


@pytest.mark.parametrize("plural", ["endpoints", "size-classes"])
def test_what_history_refers_to_is_not_removed(root, plural: str):
    record = made(root, plural)
    response = root.delete(f"/api/v1/{address(plural, record)}")
    assert response.status_code == 405
    assert "DELETE" not in response["Allow"]


def test_a_downtime_moves_to_another_subject(root, small_world):
    record = made(root, "downtimes")
    changed = patch(root, address("downtimes", record), {"site": None, "endpoint": "DESY_DATADISK"})
    assert (changed.json()["site"], changed.json()["endpoint"]) == (None, "DESY_DATADISK")
    assert Downtime.endpoints_down(NOW) == {small_world.desy.id}


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        get(client, path)
    return len(captured)


def test_the_number_of_queries_is_the_same_for_little_and_for_much(small_world):
    pinned = {
        "endpoints/": 1,
        "endpoints/?site=RAL&retired=false": 2,
        "size-classes/": 1,
        "meshes/": 5,
        "downtimes/": 1,
        "annotations/": 1,
        "endpoints/RAL_DATADISK/": 1,
        "meshes/everything/": 5,
    }
    client = Client()
    Mesh.objects.get().intervals.create(size_class=SizeClass.objects.all()[0], every_seconds=60)
    Mesh.objects.get().sources.add(small_world.ral)
    Mesh.objects.get().destinations.add(small_world.ral)
    client.get("/api/v1/meshes/")  # what they cost is read once for a version of the registry
    assert {path: queries(client, path) for path in pinned} == pinned
    for number in range(20):
        more(small_world, number)
    client.get("/api/v1/meshes/")
    assert {path: queries(client, path) for path in pinned} == pinned


def test_rights_cost_few_queries_whoever_asks(small_world):
    client = caller(Role.SITE_ADMIN, "RAL")
    paths = ("endpoints/", "annotations/")
    more(small_world, 20)
    few = [queries(client, path) for path in paths]
    for number in range(20):
        more(small_world, number)
    assert [queries(client, path) for path in paths] == few
    assert {row["author"] for row in rows(client, "annotations/")} >= {"user-0", "user-20"}


def more(world: World, number: int) -> None:
    one = endpoint(f"more-{number}", Site.objects.create(name=f"site-{number}"))
    mesh = Mesh.objects.create(name=f"mesh-{number}")
    mesh.sources.add(one, world.desy)
    mesh.destinations.add(one, world.ral)
    mesh.intervals.create(size_class=SizeClass.objects.all()[1], every_seconds=60)
    span = {"starts_at": NOW - timedelta(hours=number), "ends_at": NOW + HOUR}
    Downtime.objects.create(endpoint=one, reason="x", **span)
    author = User.objects.create_user(f"user-{number}")
    Annotation.objects.create(
        source=one, destination=world.ral, text="x", public=True, author=author, **span
    )
