"""Quiet hours and pauses of sites by the API: as meshes write them, and gone when they are over."""

from datetime import time, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sonar.models import Site
from sonar.people.roles import Role
from tests.matrix.registry import caller, get, patch, post
from tests.matrix.world import HOUR, NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "small_world")]
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
        assert sentence.endswith("is over: use a time in the future.")
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
    assert "RAL has paused its tests until somebody resumes them." in response.content.decode()
