"""The history on its page, by the API and on pages of things; what each channel leaves there."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from sonar.models import Endpoint, HistoryEntry, Site
from sonar.people import tokens
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix.registry import caller, get, patch
from tests.matrix.world import World

pytestmark = pytest.mark.django_db
PAGE, CALL = "/history/", "/api/v1/history/"
RAL = "endpoints/RAL_DATADISK/"


@pytest.fixture
def emptied(small_world: World) -> None:
    HistoryEntry.objects.all().delete()


@pytest.fixture
def anna(emptied: None) -> Client:
    client = logged_in(account(Role.ADMINISTRATOR, name="anna"))
    HistoryEntry.objects.all().delete()
    return client


def rows_of(client: Client, query: str = "") -> list[list[str]]:
    page = Page(client.get(f"{PAGE}{query}", follow=True).content.decode())
    return [row.cells()[1:] for row in page.parts("table.history tbody tr")]


def by_page(anna: Client) -> None:
    path = "/sites/RAL/endpoints/RAL_DATADISK/"
    anna.post(path, {"inbound_cap": "4", "outbound_cap": "2", "label": "DATADISK"})


def by_api(anna: Client) -> None:
    patch(anna, RAL, {"inbound_cap": 4})


def by_token(anna: Client) -> None:
    _, text = tokens.create(User.objects.get(username="anna"), "cron", ["operate", "read"], 9)
    HistoryEntry.objects.all().delete()
    patch(Client(headers={"Authorization": f"Token {text}"}), RAL, {"inbound_cap": 4})


def by_admin(anna: Client) -> None:
    key = Endpoint.objects.get(name="RAL_DATADISK").pk
    path = f"/admin/sonar/endpoint/{key}/change/"
    form = anna.get(path).context["adminform"].form
    kept = {name: form[name].value() for name in form.fields}
    fields = {name: "" if value in (None, False) else value for name, value in kept.items()}
    anna.post(path, fields | {"inbound_cap": "4"})


CHANNELS = {
    "page": (by_page, "anna on a page"),
    "API": (by_api, "anna through the API"),
    "token": (by_token, "anna, with the token cron through the API"),
    "admin": (by_admin, "anna in the admin interface"),
}


@pytest.mark.parametrize("channel", CHANNELS)
def test_each_channel_leaves_who_by_what_and_from_what(anna: Client, channel: str) -> None:
    go, by = CHANNELS[channel]
    go(anna)
    assert rows_of(anna) == [["endpoint RAL_DATADISK", "inbound cap: 2 → 4", by]]
    # And nobody acts any more: the transaction ends, which here is that of the test.
    with connection.cursor() as cursor:
        cursor.execute("RESET sonar.actor")
    Site.objects.filter(name="RAL").update(tier=3)
    assert HistoryEntry.objects.get(kind="site").channel == "database"


def test_what_is_refused_leaves_nothing(anna: Client) -> None:
    assert anna.patch(f"/api/v1/{RAL}", {"inbound_cap": 0}, "application/json").status_code == 400
    wrong = {"inbound_cap": "0", "outbound_cap": "4"}
    assert anna.post("/sites/RAL/endpoints/RAL_DATADISK/", wrong).status_code == 400
    assert not HistoryEntry.objects.exists()
    assert "There are no changes yet." in Page(anna.get(PAGE).content.decode())


def test_pages_of_things_say_their_last_change_to_who_may_see_it(anna: Client) -> None:
    by_api(anna)
    path = "/sites/RAL/endpoints/RAL_DATADISK/"
    said = "by anna through the API: inbound cap: 2 → 4 · history"
    for client, sees in (
        (anna, True),
        (caller(Role.SITE_ADMIN, "RAL"), True),
        (caller(Role.SITE_ADMIN, "DESY"), False),
        (Client(), False),
    ):
        assert (said in Page(client.get(path).content.decode())) == sees
    page = Page(anna.get(path).content.decode())
    (link,) = [link["href"] for link in page.parts("main a") if link.text == "history"]
    assert rows_of(anna, link.removeprefix(PAGE)) == rows_of(anna, "?kind=endpoint")
    Site.objects.filter(name="RAL").update(tier=3)
    assert "tier: 1 → 3" in Page(anna.get("/sites/RAL/set-up/").content.decode())


def test_an_admin_of_a_site_sees_what_concerns_it_and_nothing_else(anna: Client) -> None:
    for name in ("RAL", "DESY"):
        Endpoint.objects.filter(site__name=name).update(software="XRootD")
        Site.objects.filter(name=name).update(tier=3)
    account(Role.OPERATOR, name="bob")
    names = {"RAL", "RAL_DATADISK"}
    of_ral = caller(Role.SITE_ADMIN, "RAL")
    assert {row["name"] for row in get(of_ral, "history/")["history"]} == names
    assert {row[0].split()[1] for row in rows_of(of_ral)} == names
    assert rows_of(of_ral, "?name=DESY") == []
    for client, status in ((caller(Role.READER), 403), (Client(), 401)):
        assert client.get(CALL).status_code == status
    assert {"DESY", "bob"} <= {
        row["name"] for row in get(caller(Role.OPERATOR), "history/")["history"]
    }


def test_it_is_filtered_by_thing_who_channel_and_time_and_paged(anna: Client) -> None:
    ago = timezone.now() - timedelta(days=3)
    same = {"channel": "file", "who": "make run", "token": "", "kind": "site", "action": "changed"}
    HistoryEntry.objects.bulk_create(
        HistoryEntry(
            at=ago + timedelta(hours=hour),
            name=f"S{hour % 2}",
            key=hour,
            changes={"tier": [1, hour]},
            **same,
        )
        for hour in range(60)
    )
    by_api(anna)
    assert len(rows_of(anna, "?name=S1")) == 30
    assert len(rows_of(anna, "?who=anna&channel=API&kind=endpoint")) == 1
    bound = f"{ago + timedelta(hours=10):%Y-%m-%dT%H:%M:%SZ}"
    assert len(rows_of(anna, f"?to={bound}")) in (10, 11)
    assert len(rows_of(anna)) == 50
    page = Page(anna.get(PAGE).content.decode())
    (link,) = [link["href"] for link in page.parts("main a") if link.text == "Earlier changes"]
    assert len(rows_of(anna, link.removeprefix(PAGE))) == 11
    answer = get(anna, "history/?kind=site&page_size=40")
    assert [len(answer["history"]), len(anna.get(answer["next"]).json()["history"])] == [40, 20]
    assert "tier: 1 → 59" in anna.get(f"{CALL}?format=csv").content.decode()
    for query, sentence in {
        "kind=sites": "kind “sites” is not known",
        "channel=window": "channel “window” is not known",
        "from=soon-ish": "from “soon-ish” is not a valid time",
        f"name={'x' * 401}": "name must be at most 400 printable characters",
        "who=a%00b": "who must be at most 400 printable characters",
        "before=x": "“before” is “x”, which is not a position",
        f"from={bound}&to={bound}": "“from” must be before “to”",
        "who=a&who=b": "“who” is given 2 times",
    }.items():
        refused = anna.get(f"{PAGE}?{query}")
        assert refused.status_code == 400
        assert sentence in Page(refused.content.decode())


def test_door_is_called_channel(anna: Client) -> None:
    sentence = "The parameter “door” is now called channel."
    refused = anna.get(f"{CALL}?door=page")
    assert (refused.status_code, sentence in str(refused.json())) == (400, True)
    for query in ("door=page", "door=page&utm_source=mail"):
        refused = anna.get(f"{PAGE}?{query}")
        assert refused.status_code == 400
        assert sentence in Page(refused.content.decode())


def test_new_normal_is_called_baseline(anna: Client) -> None:
    sentence = "kind “new normal” is now called baseline"
    refused = anna.get(f"{CALL}?kind=new+normal")
    assert (refused.status_code, sentence in str(refused.json())) == (400, True)
    refused = anna.get(f"{PAGE}?kind=new+normal")
    assert (refused.status_code, sentence in Page(refused.content.decode())) == (400, True)


def test_many_entries_cost_no_more_queries(
    anna: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for cap in range(3, 20):
        Endpoint.objects.update(inbound_cap=cap)
    anna.get(PAGE)
    with django_assert_max_num_queries(8):
        anna.get(PAGE)
