"""The tests of one endpoint are paused: on its page and by REST, and seen wherever a site's are."""

import pytest
from django.test import Client

from sonar.models import Endpoint, Schedule
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import responses
from tests.matrix.registry import caller, patch
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
ENDPOINT = "/sites/RAL/endpoints/RAL_DATADISK/"
PAUSE = f"{ENDPOINT}pause/"
REASON = {"pause_reason": "new disks"}
BANNER = "The tests of RAL_DATADISK are paused since 20 Nov 12:00 UTC"


@pytest.fixture
def admin(small_world: World) -> Client:
    return logged_in(account(Role.SITE_ADMIN, small_world.ral.site, name="anna"))


def ral() -> Endpoint:
    return Endpoint.objects.get(name="RAL_DATADISK")


def test_it_is_paused_changed_and_resumed_on_its_page(client, admin):
    assert not responses.page(client, ENDPOINT).parts("#site-work")
    answer = admin.post(PAUSE, REASON | {"next": f"{ENDPOINT}#site-work"})
    assert answer["Location"] == f"{ENDPOINT}#site-work"
    row = ral()
    assert (row.paused_since, row.paused_until, row.paused_by.username) == (NOW, None, "anna")
    page = responses.page(admin, ENDPOINT)
    assert "Paused the tests of RAL_DATADISK, until someone resumes them: new disks." in page
    assert f"{BANNER} (anna), until someone resumes them: new disks." in page
    assert f"{BANNER}, until someone" in responses.page(client, ENDPOINT)
    wrong = admin.post(PAUSE, {"pause_reason": "firmware", "paused_until": "2026-11-20 11:00"})
    refused = Page(wrong.content.decode())
    assert wrong.status_code == 400
    assert "The end must be in the future" in refused.part("#pause-paused_until_error").words
    assert refused.field("pause_reason")["value"] == "firmware"
    assert ral().pause_reason == "new disks"
    admin.post(PAUSE, {"resume": ""})
    assert not ral().is_paused(NOW)
    assert "Pause tests…" in responses.page(admin, ENDPOINT).texts("summary")


@pytest.mark.long
def test_all_that_show_a_paused_site_show_it(client, small_world: World):
    for minutes in (50, 40, 30):
        transfer(small_world.ral, small_world.desy, None, ago=minutes * HOUR / 60)
    link = "/links/RAL_DATADISK/DESY_DATADISK/"
    assert "are paused" not in responses.page(client, link)
    row = ral()
    row.pause(NOW, "new disks", None, None)
    row.save()
    Schedule.objects.update(skipped_because="paused", skipped_since=NOW)
    page = responses.page(client, link)
    assert f"{BANNER}, until someone resumes them: new disks." in page
    assert "waiting: a pause of RAL_DATADISK" in page
    assert "tests have failed since" not in page
    for path in ("/", "/?rows=cloud&columns=cloud"):
        assert "The tests of RAL_DATADISK are paused." in responses.page(client, path)
    assert f"{BANNER}, until" in responses.page(client, "/sites/RAL/")
    assert "yes, paused" in responses.page(client, "/sites/RAL/")
    found = responses.page(client, "/operations/")
    assert "endpoint RAL_DATADISK , since 20 Nov 12:00 UTC, until someone resumes them" in found


def test_a_site_admin_pauses_it_by_rest_and_its_test_is_refused(small_world: World):
    anna = caller(Role.SITE_ADMIN, "RAL", name="anna")
    sent = REASON | {"paused": True, "paused_until": "2026-11-20T14:00:00Z"}
    answer = patch(anna, "endpoints/RAL_DATADISK/", sent)
    assert answer.json().items() >= (sent | {"paused_since": "2026-11-20T12:00:30Z"}).items()
    assert str(ral().paused_by) == "anna"
    refused = patch(anna, "endpoints/RAL_DATADISK/", {"pause_reason": ""})
    assert refused.json()["errors"].keys() == {"pause_reason"}
    order = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "sizes": ["small"]}
    response = anna.post("/api/v1/probes/", order, content_type="application/json")
    assert "The tests of RAL_DATADISK are paused until 20 Nov 14:00" in response.content.decode()
