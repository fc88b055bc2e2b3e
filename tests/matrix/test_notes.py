"""Notes on sites and links: written by those who may, read for a window."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.store import notes
from sonar.models import Annotation
from sonar.notation.windows import Window
from sonar.people import roles
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = Window(NOW - timedelta(days=1), NOW)


SITE = "/sites/RAL/?window=24h"
LINK = "/links/RAL_DATADISK/DESY_DATADISK/?window=24h"


@pytest.fixture
def writer(client: Client, small_world: World) -> User:
    user = account(Role.SITE_ADMIN, small_world.ral.site, name="admin-of-ral")
    client.force_login(user)
    return user


@pytest.fixture
def operator(db: None) -> User:
    return account(Role.OPERATOR)


def note(
    text: str, *, begun: timedelta = HOUR, ends: timedelta | None = None, **of: object
) -> None:
    ends_at = None if ends is None else NOW - ends
    Annotation.objects.create(text=text, starts_at=NOW - begun, ends_at=ends_at, **of)


def texts(found: list[Annotation]) -> list[str]:
    return [one.text for one in found]


def test_a_note_is_kept_with_its_author_and_leads_back(client, writer):
    sent = {"site": "RAL", "text": "new switch", "next": "/sites/RAL/?window=24h"}
    response = client.post("/notes/", sent)
    assert (response.status_code, response["Location"]) == (302, "/sites/RAL/?window=24h")
    (kept,) = Annotation.objects.all()
    assert (kept.subject, kept.text, kept.author, kept.ends_at) == (
        "RAL",
        "new switch",
        writer,
        None,
    )


def test_a_note_on_a_link_keeps_its_direction_and_its_times(client, writer):
    ends = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK"}
    times = {"starts_at": "2026-11-20 10:00", "ends_at": "2026-11-20T11:00"}
    client.post("/notes/", ends | times | {"text": "routed over the backup"})
    (kept,) = notes.on_link("RAL_DATADISK", "DESY_DATADISK", DAY, writer)
    assert (kept.text, kept.ends_at) == ("routed over the backup", NOW.replace(hour=11, second=0))
    assert notes.on_link("DESY_DATADISK", "RAL_DATADISK", DAY, writer) == []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"site": "RAL", "text": ""}, "text: This field is required."),
        ({"text": "of nothing"}, "A note needs a site, or the source and destination of a link."),
        ({"site": "Atlantis", "text": "x"}, "site: Select a valid choice."),
        (
            {"source": "RAL_DATADISK", "text": "half"},
            "A note needs a site, or the source and destination of a link.",
        ),
        (
            {
                "site": "RAL",
                "text": "x",
                "starts_at": "2026-11-20T12:00",
                "ends_at": "2026-11-20T11:00",
            },
            "A note must end after it starts.",
        ),
        ({"site": "RAL", "text": "x", "starts_at": "soon"}, "from: Not a valid time. Use"),
    ],
)
def test_a_bad_note_is_a_400_and_nothing_is_kept(client, writer, sent: dict[str, str], said: str):
    response = client.post("/notes/", sent)
    assert response.status_code == 400
    assert said in response.content.decode()
    assert not Annotation.objects.exists()


def test_readers_write_no_notes(client, small_world):
    sent = {"site": "RAL", "text": "x"}
    assert client.post("/notes/", sent)["Location"].startswith("/login/")
    client.force_login(account())
    for body in (sent, {"site": "Atlantis"}):
        assert client.post("/notes/", body).status_code == 403
    assert client.get("/notes/").status_code == 405
    assert not Annotation.objects.exists()


BETWEEN = {"source": "Glasgow_DATADISK", "destination": "DESY_DATADISK"}


@pytest.mark.parametrize(
    ("of", "status"),
    [
        ({"site": "RAL"}, 302),
        ({"site": "DESY"}, 403),
        ({"source": "RAL_DATADISK", "destination": "DESY_DATADISK"}, 302),
        ({"source": "DESY_DATADISK", "destination": "RAL_DATADISK"}, 302),
        (BETWEEN, 403),
    ],
)
def test_a_site_admin_writes_on_its_own_sites_and_their_links(
    client, writer, of: dict[str, str], status: int
):
    assert client.post("/notes/", of | {"text": "x"}).status_code == status
    assert Annotation.objects.exists() == (status == 302)


def test_an_operator_and_who_has_the_permission_write_on_any(client, small_world, operator):
    given = account(name="given")
    given.user_permissions.add(Permission.objects.get(codename="add_annotation"))
    for user in (operator, given):
        client.force_login(user)
        assert client.post("/notes/", BETWEEN | {"text": "x"}).status_code == 302
    assert Annotation.objects.count() == 2


def everybody(made: World) -> dict[str, Client]:
    return {
        "anyone": Client(),
        "reader": logged_in(account()),
        "admin of RAL": logged_in(account(Role.SITE_ADMIN, made.ral.site)),
        "admin of DESY": logged_in(account(Role.SITE_ADMIN, made.desy.site, name="desy")),
        "admin of Glasgow": logged_in(account(Role.SITE_ADMIN, made.glasgow.site, name="gla")),
        "operator": logged_in(account(Role.OPERATOR)),
        "administrator": logged_in(account(Role.ADMINISTRATOR)),
    }


def who_sees(path: str, clients: dict[str, Client], text: str) -> set[str]:
    return {who for who, client in clients.items() if text in client.get(path).content.decode()}


@pytest.mark.long
def test_a_note_is_for_the_admins_of_its_site_or_of_both_ends_until_it_is_public(small_world):
    clients = everybody(small_world)
    note("of-the-site", site=small_world.ral.site)
    own = {"admin of RAL", "operator", "administrator"}
    assert who_sees(SITE, clients, "of-the-site") == own
    assert who_sees(LINK, clients, "of-the-site") == own
    Annotation.objects.update(public=True)
    assert who_sees(SITE, clients, "of-the-site") == set(clients)
    note("of-the-link", source=small_world.ral, destination=small_world.desy)
    both = {"admin of RAL", "admin of DESY", "operator", "administrator"}
    assert who_sees(LINK, clients, "of-the-link") == both
    Annotation.objects.update(public=True)
    assert who_sees(LINK, clients, "of-the-link") == set(clients)


def test_a_note_is_not_public_unless_its_author_says_so(client, writer):
    client.post("/notes/", {"site": "RAL", "text": "x"})
    assert not Annotation.objects.get().public
    assert ", private" in client.get(SITE).content.decode()
    Annotation.objects.all().delete()
    client.post("/notes/", {"site": "RAL", "text": "x", "public": "on"})
    assert Annotation.objects.get().public
    assert ", private" not in client.get(SITE).content.decode()


def test_names_of_accounts_are_for_accounts(client, writer):
    client.post("/notes/", {"site": "RAL", "text": "known to all", "public": "on"})
    assert "by admin-of-ral" in client.get(SITE).content.decode()
    html = Client().get(SITE).content.decode()
    assert "known to all" in html
    assert "admin-of-ral" not in html


def test_a_page_that_was_made_for_one_right_is_not_taken_for_another(client, small_world):
    user = account()
    client.force_login(user)

    def changed() -> bool:
        """Say whether the browser is given the page anew."""
        response = client.get("/sites/?window=24h", headers={"if-none-match": known[-1]})
        known.append(response["ETag"])
        return response.status_code == 200

    known = [client.get("/sites/?window=24h")["ETag"]]
    assert not changed()
    roles.give(user, Role.SITE_ADMIN, [small_world.ral.site])
    assert changed()
    roles.give(user, Role.SITE_ADMIN, [small_world.desy.site])
    assert changed()
    roles.give(user, Role.OPERATOR)
    assert changed()
    assert not changed()
    user.user_permissions.add(Permission.objects.get(codename="delete_sizeclass"))
    assert changed()
    assert len(set(known)) == 5


@pytest.mark.parametrize(
    "path", ["https://example.org/", "//example.org/", "javascript:alert(1)", ""]
)
def test_a_form_never_leads_to_another_host(client, writer, path: str):
    response = client.post("/notes/", {"site": "RAL", "text": "x", "next": path})
    assert response["Location"] == "/"


def test_the_notes_of_a_window_are_those_that_hold_at_some_time_of_it(small_world, operator):
    site = small_world.ral.site
    note("open", site=site)
    note("over before", begun=40 * HOUR, ends=25 * HOUR, site=site)
    note("into it", begun=40 * HOUR, ends=23 * HOUR, site=site)
    note("later", begun=-HOUR, site=site)
    note("elsewhere", site=small_world.desy.site)
    assert texts(notes.on_site(site, DAY, operator)) == ["open", "into it"]


def test_a_link_has_the_notes_of_both_sites_and_its_own_in_one_query(small_world, operator):
    assert notes.on_link("RAL_DATADISK", "DESY_DATADISK", DAY, operator) == []
    note("of the source's site", site=small_world.ral.site)
    note("of the other's", site=small_world.desy.site)
    note("own", source=small_world.ral, destination=small_world.desy)
    note("of the way back", source=small_world.desy, destination=small_world.ral)
    with CaptureQueriesContext(connection) as captured:
        found = notes.on_link("RAL_DATADISK", "DESY_DATADISK", DAY, operator)
        assert {one.subject for one in found} == {
            "RAL",
            "DESY",
            "from RAL_DATADISK to DESY_DATADISK",
        }
    assert len(captured) == 1


def test_the_database_refuses_a_note_of_two_subjects(small_world):
    with pytest.raises(IntegrityError), transaction.atomic():
        note(
            "both", site=small_world.ral.site, source=small_world.ral, destination=small_world.desy
        )


def test_the_admin_notes_who_wrote(client, small_world):
    root = User.objects.create_superuser("root")
    client.force_login(root)
    sent = {
        "site": small_world.ral.site.pk,
        "text": "x",
        "starts_at_0": "2026-11-20",
        "starts_at_1": "10:00",
    }
    assert client.post("/admin/sonar/annotation/add/", sent).status_code == 302
    assert Annotation.objects.get().author == root
