"""What is paused or quiet is seen: on matrix, link, operations; and it is not failing.

Quiet hours and pauses are written by the API as those of meshes, and gone when they are over.
"""

import re
from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sonar.models import Schedule, Site
from sonar.people.roles import Role
from tests.conditions import stored_condition
from tests.matrix import responses
from tests.matrix.registry import caller, get, patch, post
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "small_world")]
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
PAUSED = "RAL has paused its tests since 20 Nov 12:00 UTC, until someone resumes them: disks."


def words(client: Client, path: str) -> str:
    html = client.get(path).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def pause(
    name: str = "RAL", since: timedelta = timedelta(), until: timedelta | None = None
) -> None:
    site = Site.objects.get(name=name)
    site.pause(NOW + since, "disks", None if until is None else NOW + until, None)
    site.save()


@pytest.fixture
def failing(small_world) -> World:
    """From RAL to DESY the newest tests failed, of which the first of the day succeeded."""
    transfer(small_world.ral, small_world.desy, 10.0, ago=20 * HOUR)
    for minutes in (50, 40, 30):
        transfer(small_world.ral, small_world.desy, None, ago=timedelta(minutes=minutes))
    stored_condition(source=small_world.ral, destination=small_world.desy, since=HOUR)
    return small_world


def states(client: Client) -> set[str]:
    """Return how the link is by its matrix, by the table and by its own series."""
    found = responses.answer(client, "/api/v1/matrix/?window=24h")
    row, column = (
        [group["name"] for group in found[axis]].index(name)
        for axis, name in (("sources", "RAL_DATADISK"), ("destinations", "DESY_DATADISK"))
    )
    links = responses.answer(client, "/api/v1/links/?source_endpoint=RAL_DATADISK&window=24h")[
        "links"
    ]
    (link,) = [each for each in links if each["destination"]["name"] == "DESY_DATADISK"]
    return {found["cells"]["state"][row][column], link["large"]["state"]}


def test_a_link_of_a_paused_site_stays_failing(client, failing):
    says = "Fails, with large files, 10 of 10 tests failed, since 20 Nov 11:00 UTC."
    assert states(client) == {"failing"}
    pause(until=HOUR)
    verdict = responses.page(client, LINK).part("#verdict")
    assert (verdict["class"], says in verdict) == ("verdict failing", True)
    assert states(client) == {"failing"}
    assert "RAL_DATADISK to DESY_DATADISK fails" in responses.page(client, "/").part("#answer")


def test_the_matrix_names_the_paused_sites_in_sight(client, failing):
    assert "paused" not in words(client, "/")
    pause()
    title = "RAL has paused its tests."
    assert title in words(client, "/")
    assert "RAL, until someone resumes them: disks" in words(client, "/")
    assert title in words(client, "/?rows=cloud&columns=cloud")
    assert title not in words(client, "/?source_site=DESY&destination_site=Glasgow")
    assert title in words(client, "/?wall=1")
    pause("DESY", until=HOUR)
    found = words(client, "/")
    assert "The tests of 2 sites or endpoints are paused." in found
    assert "DESY, until 20 Nov 13:00:30 UTC: disks" in found


def test_a_link_says_which_end_is_paused_and_why_its_next_test_waits(client, small_world):
    pause()
    Schedule.objects.update(skipped_because="paused", skipped_since=NOW)
    found = words(client, LINK)
    assert f"{PAUSED} No test of this link starts during the pause." in found
    assert "waiting: a pause of RAL" in found
    assert "because of a pause of RAL." in found
    other = words(client, "/links/Glasgow_DATADISK/DESY_DATADISK/")
    assert "paused its tests" not in other


@pytest.mark.parametrize("sites", [["RAL"], ["RAL", "DESY"]])
def test_a_link_says_whose_quiet_hours_its_next_test_waits_for(client, small_world, sites):
    Site.objects.filter(name__in=sites).update(quiet_from=time(11), quiet_until=time(13))
    Schedule.objects.update(skipped_because="quiet site", skipped_since=NOW)
    each = [f"quiet hours of {site}, 11:00-13:00 UTC" for site in sites]
    assert f"waiting: {' and '.join(each)}" in words(client, LINK)
    small_world.mesh.quiet_from, small_world.mesh.quiet_until = time(22), time(1)
    small_world.mesh.save()
    Schedule.objects.update(skipped_because="quiet hours")
    of_mesh = "waiting: quiet hours of the mesh everything, 22:00-01:00 UTC"
    assert of_mesh in words(client, LINK)


def test_what_is_due_only_later_waits_for_a_pause_that_lasts_longer(client, small_world):
    Schedule.objects.update(next_due=NOW + HOUR)
    pause(until=HOUR)
    assert "waiting:" not in words(client, LINK)
    pause(until=HOUR + timedelta(seconds=1))
    assert "waiting: a pause of RAL" in words(client, LINK)
    assert "it will wait because of a pause of RAL." in words(client, LINK)


def test_a_site_says_why_its_due_tests_wait(client, small_world):
    Schedule.objects.update(skipped_because="quiet site", skipped_since=NOW)
    assert "due tests are waiting: quiet hours of a site, the longest since" in words(
        client, "/sites/RAL/"
    )


def test_operations_lists_pauses_and_counts_what_waits_for_them(client, small_world):
    assert "Paused tests" not in words(client, "/operations/")
    pause()
    Schedule.objects.filter(source=small_world.ral).update(
        skipped_because="paused", skipped_since=NOW
    )
    Schedule.objects.filter(source=small_world.desy).update(
        skipped_because="quiet site", skipped_since=NOW
    )
    found = words(client, "/operations/")
    assert "site RAL , since 20 Nov 12:00 UTC, until someone resumes them: disks" in found
    assert "RAL has paused its tests until someone resumes them." in found
    assert "the site of an endpoint has quiet hours" in found


RAL = "sites/RAL/"
REASON = {"pause_reason": "new firewall"}
OVER = {"paused": False, "paused_until": None, "pause_reason": "", "paused_since": None}


def pause_of(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in OVER}


def ral() -> Site:
    return Site.objects.get(name="RAL")


def test_quiet_hours_are_set_read_and_taken_away(root):
    changed = patch(root, RAL, {"quiet_hours": "23:00-05:30"})
    assert changed.json()["quiet_hours"] == "23:00-05:30"
    assert (ral().quiet_from, ral().quiet_until) == (time(23), time(5, 30))
    assert get(root, RAL)["site"]["quiet_hours"] == "23:00-05:30"
    expected = [None, None, "23:00-05:30"]
    assert [site["quiet_hours"] for site in get(root, "sites/")["sites"]] == expected
    assert patch(root, RAL, {"cloud": "X"}).json()["quiet_hours"] == "23:00-05:30"
    assert patch(root, RAL, {"quiet_hours": None}).json()["quiet_hours"] is None


def test_a_pause_says_who_since_when_until_when_and_why(root):
    assert pause_of(get(root, RAL)["site"]) == OVER
    anna = caller(Role.SITE_ADMIN, "RAL", name="anna")
    until = "2026-11-20T14:00:00Z"
    changed = patch(anna, RAL, REASON | {"paused": True, "paused_until": until})
    pause = REASON | {"paused": True, "paused_until": until, "paused_since": "2026-11-20T12:00:30Z"}
    assert pause_of(changed.json()) == pause
    assert pause_of(get(Client(), RAL)["site"]) == pause
    assert "anna" not in Client().get(f"/api/v1/{RAL}").content.decode()
    assert ral().paused_by == User.objects.get(username="anna")


def test_another_end_and_reason_change_the_pause_that_lasts(root):
    anna = caller(Role.SITE_ADMIN, "RAL", name="anna")
    patch(anna, RAL, REASON | {"paused": True})
    Site.objects.filter(name="RAL").update(paused_since=NOW - HOUR)
    for change in ({"paused_until": "2026-11-20T14:00:00Z"}, {"pause_reason": "disks"}):
        patch(root, RAL, change)
    row = ral()
    expected = (NOW - HOUR, NOW.replace(hour=14, second=0), "disks", "anna")
    assert (row.paused_since, row.paused_until, row.pause_reason, str(row.paused_by)) == expected
    assert patch(root, RAL, {"paused_until": None}).json()["paused_until"] is None
    assert pause_of(patch(root, RAL, {"paused": False}).json()) == OVER
    assert ral().paused_by is None


def test_one_that_ended_by_itself_is_over_and_another_begins_anew(root):
    hours_ago = NOW - timedelta(hours=5)
    Site.objects.filter(name="RAL").update(
        paused_since=hours_ago, paused_until=NOW, pause_reason="disks"
    )
    assert pause_of(get(root, RAL)["site"]) == OVER
    assert patch(root, RAL, {"paused": True}).status_code == 400
    changed = patch(root, RAL, REASON | {"paused": True}).json()
    assert (changed["paused_since"], changed["paused_until"]) == ("2026-11-20T12:00:30Z", None)


def test_what_was_read_can_be_sent_back(root):
    site = get(root, RAL)["site"]
    del site["paused_since"]
    assert patch(root, RAL, site).status_code == 200
    patch(root, RAL, REASON | {"paused": True})
    site = get(root, RAL)["site"]
    del site["paused_since"]
    assert pause_of(patch(root, RAL, site).json())["paused"]


def test_a_pause_in_the_past_is_refused(root):
    for until in ("2026-11-20T12:00:30Z", "2026-11-20T14:00:00+05:00"):
        body = REASON | {"paused": True, "paused_until": until}
        response = patch(root, RAL, body)
        assert response.status_code == 400
        (sentence,) = response.json()["errors"]["paused_until"]
        assert sentence.endswith("is in the past: use a time in the future.")
    assert not ral().is_paused(NOW)


def test_a_new_site_may_begin_paused(root):
    response = post(root, "sites/", REASON | {"name": "New", "paused": True})
    assert response.json()["paused_since"] == "2026-11-20T12:00:30Z"
    assert Site.objects.get(name="New").paused_by is not None


def test_an_order_at_a_paused_site_is_refused_with_the_sentence(root):
    patch(root, RAL, REASON | {"paused": True})
    body = {"source": "RAL_DATADISK", "destination": "DESY_DATADISK", "sizes": ["small"]}
    response = post(root, "probes/", body)
    assert response.status_code in (400, 409)
    assert "RAL has paused its tests until someone resumes them." in response.content.decode()
