"""Notes on sites and links: written by those who may, read for a window."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix import notes
from sonar.models import Annotation
from sonar.windows import Window
from tests.matrix.world import HOUR, NOW, World

pytestmark = pytest.mark.django_db
DAY = Window(NOW - timedelta(days=1), NOW)


@pytest.fixture
def writer(client: Client) -> User:
    user = User.objects.create_user("admin-of-ral")
    user.user_permissions.add(Permission.objects.get(codename="add_annotation"))
    client.force_login(user)
    return user


def note(
    text: str, *, begun: timedelta = HOUR, ends: timedelta | None = None, **of: object
) -> None:
    ends_at = None if ends is None else NOW - ends
    Annotation.objects.create(text=text, starts_at=NOW - begun, ends_at=ends_at, **of)


def texts(found: list[Annotation]) -> list[str]:
    return [one.text for one in found]


def test_a_note_is_kept_with_its_author_and_leads_back(
    client: Client, small_world: World, writer: User
) -> None:
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


def test_a_note_on_a_link_keeps_its_direction_and_its_times(
    client: Client, small_world: World, writer: User
) -> None:
    ends = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK"}
    times = {"starts_at": "2026-11-20T10:00", "ends_at": "2026-11-20T11:00"}
    client.post("/notes/", ends | times | {"text": "routed over the backup"})
    (kept,) = notes.on_link("RAL_DATADISK", "DESY_DATADISK", DAY)
    assert (kept.text, kept.ends_at) == ("routed over the backup", NOW.replace(hour=11, second=0))
    assert notes.on_link("DESY_DATADISK", "RAL_DATADISK", DAY) == []


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"site": "RAL", "text": ""}, "text: This field is required."),
        ({"text": "of nothing"}, "Name either a site, or the two ends of a link."),
        ({"site": "Atlantis", "text": "x"}, "site: Select a valid choice."),
        (
            {"source": "RAL_DATADISK", "text": "half"},
            "Name either a site, or the two ends of a link.",
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
        ({"site": "RAL", "text": "x", "starts_at": "soon"}, "from: Enter a valid date/time."),
    ],
)
def test_a_bad_note_is_a_400_and_nothing_is_kept(
    client: Client, small_world: World, writer: User, sent: dict[str, str], said: str
) -> None:
    response = client.post("/notes/", sent)
    assert response.status_code == 400
    assert said in response.content.decode()
    assert not Annotation.objects.exists()


def test_only_accounts_with_the_permission_write_notes(client: Client, small_world: World) -> None:
    sent = {"site": "RAL", "text": "x"}
    assert client.post("/notes/", sent)["Location"].startswith("/login/")
    client.force_login(User.objects.create_user("shifter"))
    assert client.post("/notes/", sent).status_code == 403
    assert client.get("/notes/").status_code == 405
    assert not Annotation.objects.exists()


@pytest.mark.parametrize(
    "path", ["https://example.org/", "//example.org/", "javascript:alert(1)", ""]
)
def test_a_form_never_leads_to_another_host(
    client: Client, small_world: World, writer: User, path: str
) -> None:
    response = client.post("/notes/", {"site": "RAL", "text": "x", "next": path})
    assert response["Location"] == "/"


def test_the_notes_of_a_window_are_those_that_hold_at_some_time_of_it(small_world: World) -> None:
    site = small_world.ral.site
    note("open", site=site)
    note("over before", begun=40 * HOUR, ends=25 * HOUR, site=site)
    note("into it", begun=40 * HOUR, ends=23 * HOUR, site=site)
    note("later", begun=-HOUR, site=site)
    note("elsewhere", site=small_world.desy.site)
    assert texts(notes.on_site("RAL", DAY)) == ["open", "into it"]


def test_a_link_has_the_notes_of_both_sites_and_its_own_in_one_query(small_world: World) -> None:
    note("of the source's site", site=small_world.ral.site)
    note("of the other's", site=small_world.desy.site)
    note("own", source=small_world.ral, destination=small_world.desy)
    note("of the way back", source=small_world.desy, destination=small_world.ral)
    with CaptureQueriesContext(connection) as captured:
        found = notes.on_link("RAL_DATADISK", "DESY_DATADISK", DAY)
        assert {one.subject for one in found} == {
            "RAL",
            "DESY",
            "from RAL_DATADISK to DESY_DATADISK",
        }
    assert len(captured) == 1


def test_the_database_refuses_a_note_of_two_subjects(small_world: World) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        note(
            "both", site=small_world.ral.site, source=small_world.ral, destination=small_world.desy
        )


def test_the_admin_notes_who_wrote(client: Client, small_world: World) -> None:
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
