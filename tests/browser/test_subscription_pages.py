"""Subscriptions in a real browser: added, tried and looked at, and read well as e-mail."""

import pytest
from playwright.sync_api import expect

from matrix.answers.incidents.messages import IncidentWords
from sonar.alerting import sending
from sonar.models import Notification, Subscription
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.matrix.world import NOW
from tests.sonar.alarms import incident, subscription

everybody = seen_by(LAPTOP, NARROW)


@pytest.mark.long
@everybody
def test_people_subscribe_and_see_what_was_told(visit, scene, reader, settings):
    settings.SONAR_URL, settings.EMAIL_HOST = "https://sonar.example.org", "mail.example.org"
    operator = account(Role.OPERATOR, name="olga")
    operator.email = "olga@example.org"
    operator.save()
    failing = {"failing_since": NOW, "failures": 3, "answer": "hooks.example.org answers 500."}
    subscription("a list with a name that is rather long", **failing)
    visit.log_in(operator)
    page = visit.open("/subscriptions/add/")
    look(page, f"subscribe-{reader}")
    assert page.get_by_label("e-mail address").input_value() == "olga@example.org"
    page.get_by_label("all incidents").check()
    page.get_by_label("failing").check()
    page.get_by_label("quiet hours from (UTC)").fill("22:00")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".field .error")).to_have_count(1)
    visit.expect_refusal(400)
    page.get_by_label("quiet hours to (UTC)").fill("06:00")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.locator("h1")).to_have_text("Subscription mine")
    row = Subscription.objects.get(owner=operator)
    assert (row.incident_types, row.quiet_hours) == (["failing"], "22:00-06:00")
    page.get_by_role("button", name="Send test notification").click()
    expect(page.locator("#deliveries")).to_contain_text("waiting")
    Notification.objects.filter(kind="test").update(
        state="sent",
        ended_at=NOW,
        answer="mail.example.org accepted the message for olga@example.org.",
    )
    expect(page.locator("#deliveries")).to_contain_text("accepted the message for")
    told = incident(scene.world.ral, NOW, type="failing")
    for name, path in {
        "subscription": f"/subscriptions/{row.pk}/",
        "subscriptions": "/subscriptions/",
        "list": "/subscriptions/add/icinga/",
        "confirm": "/subscriptions/confirm/?token=x",
    }.items():
        page = visit.open(path)
        look(page, f"{name}-{reader}")
        assert fits(page), name
        assert by_day_and_night(page) == [], name
        look(page, f"{name}-{reader}-dark")
    claimed = sending.claim(told.opened_at)
    while claimed.row != row:
        claimed = sending.claim(told.opened_at)
    message = IncidentWords().message(row, claimed.rows, NOW)
    page = visit.page
    page.set_content(message.html)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        look(page, f"mail-{reader}-{scheme}")
        assert fits(page)
    assert "RAL_DATADISK fails as destination" in page.inner_text("body")
