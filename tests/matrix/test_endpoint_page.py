"""The page of an endpoint: what is registered, where its server redirects, who may declare that."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from sonar.models import Endpoint, RefusedRedirect, SignOfLife
from sonar.notation.data_hosts import SENTENCE
from sonar.people.roles import Role
from sonar.work import refused_redirects
from tests.accounts import account, logged_in
from tests.conditions import assessed_at, stored_condition
from tests.html import Page
from tests.matrix import responses
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGE = "/sites/RAL/endpoints/RAL_DATADISK/"
DECLARE = f"{PAGE}data-hosts/"
SERVERS = ("st-048.example.org:8443", "st-051.example.org:8443", "pool7.other.example.org:20001")
SUGGESTED = ["pool*.other.example.org:20001", "st-*.example.org:8443"]


@pytest.fixture
def refused(small_world: World) -> World:
    """Let the storage of RAL have led tests to three servers that are not declared."""
    for number, server in enumerate(SERVERS):
        for _ in range(number + 1):
            refused_redirects.note(small_world.ral, server, NOW - number * HOUR)
    return small_world


@pytest.fixture
def operator() -> Client:
    return logged_in(account(Role.OPERATOR))


def endpoint() -> Endpoint:
    return Endpoint.objects.get(name="RAL_DATADISK")


def sentences(client: Client) -> str:
    return responses.page(client, PAGE).words


def test_readers_see_what_is_registered_and_no_address(client, refused):
    page = sentences(client)
    assert "Storage endpoint of RAL ." in page
    for hidden in ("st-048", "ral.example", "Data servers"):
        assert hidden not in page


def test_it_says_from_which_vantage_it_is_reached_and_whether_a_worker_is_there(
    client, small_world
):
    assert "vantage point" not in sentences(client)
    Endpoint.objects.filter(pk=small_world.ral.pk).update(vantage="cern")
    alone = "only cern"
    dead = f"{alone}. No worker is running at the vantage point cern: start one there"
    assert responses.page(client, PAGE).facts()["vantage point"].startswith(dead)
    sign = {"seen_at": NOW, "every_seconds": 10, "queues": ["transfers@cern"]}
    SignOfLife.objects.create(name="w", kind="worker", **sign)
    assert responses.page(client, PAGE).facts()["vantage point"] == alone


def test_the_site_leads_to_it_and_it_leads_on(client, small_world):
    site = Page(client.get("/sites/RAL/").content.decode())
    assert PAGE in site.links()
    assert "/?endpoint=RAL_DATADISK" in responses.page(client, PAGE).links()


def test_operators_see_where_tests_were_led_the_newest_first(operator, refused):
    page = sentences(operator)
    assert "the server redirects them to data servers that are not declared" in page
    assert [server for server in page.split() if server in SERVERS] == list(SERVERS)
    assert f"declare: {' '.join(SUGGESTED)} " in page
    assert "Declare these 2 data hosts" in page


def test_one_click_declares_what_was_suggested(operator, refused):
    response = operator.post(DECLARE, {"data_hosts": "\n".join(["", *SUGGESTED])}, follow=True)
    page = Page(response.content.decode()).words
    assert endpoint().data_hosts == SUGGESTED
    assert "Data hosts of RAL_DATADISK: pool*.other.example.org:20001, st-*" in page
    assert "not declared" not in page
    assert "Data hosts of" in LogEntry.objects.latest("action_time").change_message
    again = operator.post(DECLARE, {"data_hosts": "\n".join(SUGGESTED)}, follow=True)
    assert "Nothing was changed: RAL_DATADISK already has" in again.content.decode()
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("line", ["*.org", "10.0.0.0/8", "https://st.example.org", "ST.example"])
def test_what_may_not_be_declared_is_refused_with_its_line(operator, small_world, line):
    response = operator.post(DECLARE, {"data_hosts": f"st-1.example.org\n{line}"})
    assert response.status_code == 400
    page = Page(response.content.decode()).words
    assert f"Line 2: {SENTENCE[:40]}" in page
    assert "Nothing was saved." in page
    assert endpoint().data_hosts == []


def test_the_admins_of_its_site_see_it_and_do_not_declare(refused):
    admin = logged_in(account(Role.SITE_ADMIN, refused.ral.site))
    page = sentences(admin)
    assert "st-048.example.org:8443" in page
    assert f"an operator can declare: {' '.join(SUGGESTED)}" in page
    assert admin.post(DECLARE, {"data_hosts": "st-1.example.org"}).status_code == 403
    other = logged_in(account(Role.SITE_ADMIN, refused.desy.site, name="other"))
    assert "st-048" not in sentences(other)


def test_an_endpoint_that_is_not_there_is_a_page_that_says_so(client, small_world):
    for path in ("/sites/RAL/endpoints/nothing/", "/sites/DESY/endpoints/RAL_DATADISK/"):
        response = client.get(path)
        assert response.status_code == 404
        assert "has no endpoint" in response.content.decode()


def test_servers_without_end_are_not_all_kept(small_world):
    for number in range(refused_redirects.MOST_KEPT + 5):
        at = NOW + timedelta(seconds=number)
        refused_redirects.note(small_world.ral, f"st-{number}.example.org:1094", at)
    kept = RefusedRedirect.objects.values_list("server", flat=True)
    assert len(kept) == refused_redirects.MOST_KEPT
    assert "st-4.example.org:1094" not in kept


def test_what_changed_there_is_said_with_all_size_classes(client, small_world):
    assert "There are no open conditions." in sentences(client)
    ral = small_world.ral
    stored_condition(source=ral, sizes=["small"], confirmed=False)
    stored_condition("slow", destination=ral)
    stored_condition(site=ral.site, sizes=["medium"])
    stored_condition(source=small_world.desy, destination=small_world.glasgow)
    stored_condition(destination=ral, ended=HOUR)
    assessed_at()
    changed = responses.page(client, PAGE).section("changed")
    assert changed.words.startswith("Open conditions as of 12:00 UTC RAL fails in both directions")
    kinds = [line["class"] for line in changed.parts("p.finding")]
    assert kinds == ["finding failing", "finding slower"]
    (perhaps,) = changed.texts("p.muted")
    assert perhaps.startswith("RAL_DATADISK fails as source , with small files")
    assert "DESY" not in changed.words
