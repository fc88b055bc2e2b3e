"""What may be kept is asked for with its ETag, and what may not says so; nothing is ever stale."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sonar.models import Transfer
from sonar.people import roles
from tests.matrix.sent import send
from tests.matrix.world import NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
API = "/api/v1/"
LINK = "source=RAL_DATADISK&destination=Glasgow_DATADISK"
CALLS = {
    "matrix/": 1,
    "matrix/?format=csv&stat=p95": 1,
    "links/": 1,
    "links/?format=csv&search=ral": 1,
    "links/?format=ndjson": 1,
    "strip/": 1,
    f"series/?{LINK}": 3,
    f"series/?{LINK}&points=1&format=csv": 3,
}
# These are made to be compared: an answer is spared, not the work.
COMPARED = (
    *("transfers/", "transfers/{id}/", "sites/", "sites/RAL/", "endpoints/"),
    *("size-classes/", "meshes/", "downtimes/", "annotations/", "probes/", "status/"),
)


@pytest.fixture
def measured(small_world: World) -> World:
    transfer(small_world.ral, small_world.glasgow, 4.0)
    return small_world


def path_of(call: str) -> str:
    return API + call.format(id=Transfer.objects.values_list("id", flat=True).first())


@pytest.mark.parametrize("call", [*CALLS, *COMPARED])
def test_what_has_not_changed_is_a_304_without_a_body(client, measured, call):
    path = path_of(call)
    first = client.get(path)
    assert (first.status_code, first["Cache-Control"]) == (200, "no-cache")
    assert {"Accept", "Authorization", "Cookie"} <= set(first["Vary"].split(", "))
    first.getvalue()
    for etag in (first["ETag"], f"W/{first['ETag'].removeprefix('W/')}", f'"x", {first["ETag"]}'):
        again = client.get(path, headers={"if-none-match": etag})
        assert (again.status_code, again.content) == (304, b"")
        assert (again["ETag"], again["Cache-Control"]) == (first["ETag"], "no-cache")
        assert {"Accept", "Authorization", "Cookie"} <= set(again["Vary"].split(", "))


@pytest.mark.parametrize("call", CALLS)
def test_a_304_of_results_computes_nothing(client, measured, call):
    first = client.get(API + call)
    first.getvalue()
    with CaptureQueriesContext(connection) as captured:
        again = client.get(API + call, headers={"if-none-match": first["ETag"]})
    assert again.status_code == 304
    statements = [one["sql"] for one in captured.captured_queries]
    assert len(statements) == CALLS[call], statements
    assert not [sql for sql in statements if 'FROM "sonar_transfer"' in sql or "COPY" in sql]


def another_result(world: World) -> None:
    transfer(world.ral, world.glasgow, 6.0)


def a_result_fewer(world: World) -> None:
    Transfer.objects.all().delete()


def another_name(world: World) -> None:
    world.glasgow.site.cloud = "XX"
    world.glasgow.site.save()
    world.glasgow.label = "OTHER"
    world.glasgow.save()


@pytest.mark.parametrize("change", [another_result, a_result_fewer, another_name])
@pytest.mark.parametrize("call", CALLS)
def test_what_has_changed_is_answered(client, measured, call, change):
    first = client.get(API + call)
    before = first.getvalue()
    change(measured)
    second = client.get(API + call, headers={"if-none-match": first["ETag"]})
    assert second.status_code == 200
    assert second["ETag"] != first["ETag"]
    if change is not another_name:
        assert second.getvalue() != before


@pytest.mark.parametrize(
    "text",
    [
        "&size=small",
        "&window=24h",
        "&bucket=1d",
        "&points=1",
        "&format=csv",
        "&streams=4",
        "&from=",
    ],
)
def test_another_question_of_a_link_is_another_answer(client, measured, text):
    first = client.get(f"{API}series/?{LINK}")
    if text == "&from=":
        text = "&from=2026-11-13T12:01:01Z&to=2026-11-20T12:01:00Z"
    second = client.get(f"{API}series/?{LINK}{text}", headers={"if-none-match": first["ETag"]})
    assert second.status_code == 200


def test_the_other_direction_is_another_answer(client, measured):
    etag = client.get(f"{API}series/?{LINK}")["ETag"]
    back = "source=Glasgow_DATADISK&destination=RAL_DATADISK"
    assert client.get(f"{API}series/?{back}", headers={"if-none-match": etag}).status_code == 200


def test_a_page_of_results_changes_with_them_alone(client, measured):
    first = client.get(f"{API}transfers/?size=large")
    again = {"if-none-match": first["ETag"]}
    transfer(measured.ral, measured.glasgow, 4.0, size="small")
    assert client.get(f"{API}transfers/?size=large", headers=again).status_code == 304
    send(measured.ral, measured.glasgow, NOW)
    assert client.get(f"{API}transfers/?size=large", headers=again).status_code == 200


def test_what_an_account_reads_is_kept_by_nobody_else(client, measured):
    path = path_of("transfers/{id}/")
    anyones = client.get(path)
    operator = User.objects.create_user("operator")
    roles.give(operator, roles.Role.OPERATOR)
    client.force_login(operator)
    own = client.get(path, headers={"if-none-match": anyones["ETag"]})
    assert (own.status_code, own["Cache-Control"]) == (200, "private, no-cache")
    again = client.get(path, headers={"if-none-match": own["ETag"]})
    assert (again.status_code, again["Cache-Control"]) == (304, "private, no-cache")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("get", "matrix/?size=giant", 400),
        ("get", "links/?page_size=0", 400),
        ("get", "transfers/00000000-0000-0000-0000-000000000000/", 404),
        ("post", "transfers/", 401),
        ("delete", "matrix/", 405),
    ],
)
def test_what_was_refused_is_not_kept(client, db, method, path, status):
    response = getattr(client, method)(API + path, headers={"if-none-match": "*"})
    assert (response.status_code, response["Cache-Control"]) == (status, "no-store")
    assert "ETag" not in response


def test_what_was_stored_is_not_kept(client, db):
    client.force_login(User.objects.create_superuser("admin"))
    response = client.post(f"{API}transfers/", "[]", content_type="application/json")
    assert (response.status_code, response["Cache-Control"]) == (400, "no-store")


def test_without_public_read_a_304_is_for_accounts_only(client, measured, settings):
    etag = client.get(f"{API}matrix/")["ETag"]
    settings.SONAR_PUBLIC_READ = False
    refused = client.get(f"{API}matrix/", headers={"if-none-match": etag})
    assert (refused.status_code, refused["Cache-Control"]) == (401, "no-store")


@pytest.mark.parametrize("call", ["transfers/?format=csv", "transfers/?format=ndjson"])
def test_a_stream_of_results_has_no_version(client, measured, call):
    response = client.get(API + call)
    assert ("ETag" in response, response["Cache-Control"]) == (False, "no-cache")
    response.getvalue()
