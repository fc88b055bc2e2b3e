"""Who reads and writes what of the registry: by role, by site, and by the scopes of a token."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sonar.models import Annotation, Endpoint, Site
from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.credentials import bind
from tests.matrix.registry import BODIES, JSON, PLURALS, address, caller, get, made, patch, post

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "small_world")]
BY_OPERATORS = ("sites", "endpoints", "meshes")
BY_SITE_ADMINS = ("downtimes", "annotations", "targets")
CAPS = {"inbound_cap": 4, "outbound_cap": 5, "budget_bytes_per_day": 10**12}


def with_token(user: User, *scopes: str) -> Client:
    _, text = tokens.create(user, "-".join(scopes), scopes, 3650)
    return Client(headers={"authorization": f"Token {text}"})


@pytest.mark.parametrize("plural", PLURALS)
def test_nobody_in_particular_and_readers_write_nothing(root, plural: str):
    where = address(plural, made(root, plural))
    anyone, reader = Client(), caller(Role.READER)
    for client, status in ((anyone, 401), (reader, 403)):
        assert post(client, f"{plural}/", BODIES[plural][0]).status_code == status
        assert patch(client, where, BODIES[plural][1]).status_code in (status, 404)
        assert client.delete(f"/api/v1/{where}").status_code in (status, 404, 405)


@pytest.mark.parametrize("plural", PLURALS)
def test_operators_write_all_but_size_classes(plural: str):
    operator = caller(Role.OPERATOR)
    response = post(operator, f"{plural}/", BODIES[plural][0])
    if plural == "size-classes":
        assert response.status_code == 403
        assert patch(operator, "size-classes/large/", {"timeout_seconds": 1}).status_code == 403
        return
    assert response.status_code == 201
    where = address(plural, response.json())
    assert patch(operator, where, BODIES[plural][1]).status_code == 200
    if plural in ("sites", *BY_SITE_ADMINS):
        assert operator.delete(f"/api/v1/{where}").status_code == 204


@pytest.mark.parametrize("plural", PLURALS)
def test_site_admins_write_downtimes_and_notes_of_their_sites(root, plural: str):
    own, other = caller(Role.SITE_ADMIN, "RAL"), caller(Role.SITE_ADMIN, "Glasgow")
    allowed = plural in BY_SITE_ADMINS
    assert post(own, f"{plural}/", BODIES[plural][0]).status_code == (201 if allowed else 403)
    assert post(other, f"{plural}/", BODIES[plural][0]).status_code == 403
    name = {"name": f"of-root-{plural}"} if "name" in BODIES[plural][0] else {}
    if plural == "size-classes":
        return
    where = address(plural, made(root, plural, **name, **of_url(plural)))
    change = {"inbound_cap": 3} if plural == "endpoints" else BODIES[plural][1]
    own_may = allowed or plural == "endpoints"
    assert patch(other, where, change).status_code in (403, 404)
    assert patch(own, where, change).status_code == (200 if own_may else 403)
    if allowed:
        assert other.delete(f"/api/v1/{where}").status_code in (403, 404)
        assert own.delete(f"/api/v1/{where}").status_code == 204


def of_url(plural: str) -> dict[str, str]:
    return {"base_url": "https://other.example.org/data"} if plural == "endpoints" else {}


@pytest.mark.parametrize("site", ["RAL", "DESY"])
def test_a_note_on_a_link_is_for_the_admins_of_either_end(site: str):
    admin = caller(Role.SITE_ADMIN, site)
    note = made(admin, "annotations")
    assert patch(admin, address("annotations", note), {"text": "x"}).status_code == 200


def test_a_downtime_of_an_endpoint_is_for_the_admins_of_its_site():
    admin = caller(Role.SITE_ADMIN, "RAL")
    body = BODIES["downtimes"][0] | {"site": None}
    assert post(admin, "downtimes/", body | {"endpoint": "RAL_DATADISK"}).status_code == 201
    assert post(admin, "downtimes/", body | {"endpoint": "DESY_DATADISK"}).status_code == 403


def test_a_site_admin_changes_caps_budget_label_and_software_of_an_endpoint():
    admin = caller(Role.SITE_ADMIN, "RAL")
    changed = patch(admin, "endpoints/RAL_DATADISK/", CAPS | {"label": "X", "software": "Y"})
    assert changed.status_code == 200
    assert {name: changed.json()[name] for name in CAPS} == CAPS
    assert patch(admin, "endpoints/RAL_DATADISK/", {"enabled": False}).json()["enabled"] is False
    assert patch(admin, "endpoints/DESY_DATADISK/", CAPS).status_code == 403


@pytest.mark.parametrize(
    "change",
    [
        {"name": "mine"},
        {"base_url": "https://elsewhere.example.org/"},
        {"credential": "other"},
        {"credential_lent": "other"},
        {"lend_credential": True},
        {"retired": True},
        {"simulated": True},
        {"site": "DESY"},
        {"site": "RAL"},
    ],
)
def test_a_site_admin_changes_nothing_else_of_it(change: dict[str, Any]):
    admin = caller(Role.SITE_ADMIN, "RAL", "DESY")
    before = Endpoint.objects.values().get(name="RAL_DATADISK")
    response = patch(admin, "endpoints/RAL_DATADISK/", CAPS | change)
    assert response.status_code == 403
    assert response.json()["detail"] == (
        "Admins of the site can change “inbound_cap”, “outbound_cap”, “budget_bytes_per_day”, "
        "“label”, “software”, “enabled”, “paused”, “paused_until”, “pause_reason”, but not "
        f"“{next(iter(change))}”."
    )
    assert Endpoint.objects.values().get(name="RAL_DATADISK") == before


def test_a_site_admin_sets_quiet_hours_and_pauses_the_own_site():
    admin = caller(Role.SITE_ADMIN, "RAL")
    change = {"quiet_hours": "23:00-05:30", "paused": True, "pause_reason": "new switch"}
    changed = patch(admin, "sites/RAL/", change)
    assert changed.status_code == 200
    assert {name: changed.json()[name] for name in change} == change
    assert Site.objects.get(name="RAL").paused_by == User.objects.get(username="site-admin-RAL")
    assert patch(admin, "sites/DESY/", change).status_code == 403
    assert post(admin, "sites/", {"name": "New"}).status_code == 403
    assert admin.delete("/api/v1/sites/RAL/").status_code == 403


@pytest.mark.parametrize("change", [{"name": "mine"}, {"tags": ["t"]}, {"wan_gbit_s": 1}])
def test_a_site_admin_changes_nothing_else_of_the_own_site(change: dict[str, Any]):
    admin, before = caller(Role.SITE_ADMIN, "RAL"), Site.objects.values().get(name="RAL")
    response = patch(admin, "sites/RAL/", {"quiet_hours": "23:00-05:30"} | change)
    assert response.status_code == 403
    assert response.json()["detail"] == (
        "Admins of the site can change “quiet_hours”, “paused”, “paused_until”, “pause_reason”, "
        f"but not “{next(iter(change))}”."
    )
    assert Site.objects.values().get(name="RAL") == before


@pytest.mark.parametrize("plural", BY_SITE_ADMINS)
def test_nothing_is_moved_to_a_site_or_away_without_rights_at_both(root, plural: str):
    ral, desy = caller(Role.SITE_ADMIN, "RAL"), caller(Role.SITE_ADMIN, "DESY")
    own = {"site": "RAL"} | ({"source": None, "destination": None} if "ann" in plural else {})
    where = address(plural, made(root, plural, **own))
    for client, site in ((ral, "DESY"), (desy, "DESY"), (desy, "RAL")):
        assert patch(client, where, {"site": site}).status_code in (403, 404)
    both = caller(Role.SITE_ADMIN, "RAL", "DESY")
    assert patch(both, where, {"site": "DESY"}).json()["site"] == "DESY"


def test_internal_fields_are_for_who_may_see_them(root):
    bind(Endpoint.objects.get(name="RAL_DATADISK"), "ral-key", lent="ral-key-read")
    seen = {
        "base_url": "https://ral-datadisk.example.org/data",
        "credential": "ral-key",
        "credential_lent": "ral-key-read",
        "lend_credential": False,
    }
    callers = {
        Client(): False,
        caller(Role.READER): False,
        caller(Role.SITE_ADMIN, "DESY"): False,
        caller(Role.SITE_ADMIN, "RAL"): True,
        caller(Role.OPERATOR): True,
        root: True,
    }
    for client, sees in callers.items():
        one = get(client, "endpoints/RAL_DATADISK/")
        assert {name: one[name] for name in seen if name in one} == (seen if sees else {})
        (row,) = get(client, "endpoints/?site=RAL")["endpoints"]
        assert row == one
        for form in ("csv", "ndjson"):
            whole = client.get(f"/api/v1/endpoints/?format={form}").content
            assert (b"ral-key" in whole) is sees
            assert (b"ral-datadisk.example.org" in whole) is sees


def test_notes_are_for_those_who_may_see_them(root):
    own = {"source": None, "destination": None}
    made(root, "annotations", text="for all", public=True)
    hidden = made(root, "annotations", text="of the link")
    made(root, "annotations", site="Glasgow", text="of the site", **own)
    callers = {
        Client(): ["for all"],
        caller(Role.READER): ["for all"],
        caller(Role.SITE_ADMIN, "Glasgow"): ["for all", "of the site"],
        caller(Role.SITE_ADMIN, "DESY"): ["for all", "of the link"],
        caller(Role.OPERATOR): ["for all", "of the link", "of the site"],
    }
    for client, texts in callers.items():
        for form in ("json", "ndjson", "csv"):
            whole = client.get(f"/api/v1/annotations/?format={form}").content.decode()
            seen = [one for one in ("for all", "of the link", "of the site") if one in whole]
            assert seen == texts
        status = 200 if "of the link" in texts else 404
        assert client.get(f"/api/v1/{address('annotations', hidden)}").status_code == status


def test_a_hidden_note_is_not_there_for_who_may_not_see_it(root):
    where = address("annotations", made(root, "annotations"))
    client = caller(Role.SITE_ADMIN, "Glasgow")
    refused = patch(client, where, {"text": "x"})
    assert refused.status_code == 404
    number = where.split("/")[1]
    assert (
        refused.json()["detail"]
        == f"Note {number} does not exist, or you are not allowed to see it."
    )
    assert client.delete(f"/api/v1/{where}").status_code == 404
    assert Annotation.objects.get().text == "over the backup"


def test_who_wrote_a_note_is_for_who_is_logged_in(root):
    where = address("annotations", made(root, "annotations", public=True))
    assert "author" not in get(Client(), where)
    assert get(caller(Role.READER), where)["author"] == "root"
    assert "root" not in Client().get("/api/v1/annotations/?format=csv").content.decode()
    User.objects.get(username="root").delete()
    assert get(caller(Role.OPERATOR), where)["author"] is None


@pytest.mark.parametrize(
    ("scopes", "reads", "writes"),
    [
        (["read"], True, 403),
        (["ingest"], False, 403),
        (["operate"], False, 201),
        (["read", "operate"], True, 201),
    ],
)
def test_a_token_does_what_its_scopes_say(root, scopes: list[str], reads: bool, writes: int):
    made(root, "annotations", text="hidden")
    user = User.objects.create_user("shifter")
    roles.give(user, Role.OPERATOR)
    client = with_token(user, *scopes)
    response = post(client, "annotations/", BODIES["annotations"][0])
    assert response.status_code == writes, response.content
    texts = [one["text"] for one in get(client, "annotations/")["annotations"]]
    assert ("hidden" in texts) is reads
    assert ("base_url" in get(client, "endpoints/RAL_DATADISK/")) is reads
    if writes == 201:
        where = address("annotations", response.json())
        assert patch(client, where, {"text": "mended"}).json()["text"] == "mended"
        assert client.delete(f"/api/v1/{where}").status_code == 204


@pytest.mark.parametrize("plural", PLURALS)
def test_reading_needs_an_account_where_it_is_not_public(root, settings, plural: str):
    where = address(plural, made(root, plural))
    settings.SONAR_PUBLIC_READ = False
    for path in (f"{plural}/", where):
        assert Client().get(f"/api/v1/{path}").status_code == 401
        assert root.get(f"/api/v1/{path}").status_code == 200


def test_a_session_writes_with_the_token_of_its_forms_only(small_world):
    user = User.objects.create_superuser("careful")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    response = client.post("/api/v1/sites/", {"name": "x"}, content_type=JSON)
    assert response.status_code == 403
    assert "CSRF" in response.json()["detail"]
    assert not Site.objects.filter(name="x").exists()


def test_what_an_account_reads_is_kept_by_nobody_else(root):
    anyone = Client().get("/api/v1/endpoints/")
    own = root.get("/api/v1/endpoints/")
    assert own["Cache-Control"] == "private, no-cache"
    assert anyone["ETag"] != own["ETag"]
    assert {"Authorization", "Cookie"} <= set(own["Vary"].split(", "))
    again = root.get("/api/v1/endpoints/", headers={"if-none-match": own["ETag"]})
    assert again.status_code == 304
    patch(root, "endpoints/RAL_DATADISK/", {"label": "X"})
    again = root.get("/api/v1/endpoints/", headers={"if-none-match": own["ETag"]})
    assert again.status_code == 200
