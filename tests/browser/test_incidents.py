"""One way through incidents in a real browser: from the list to the text for a ticket."""

from datetime import timedelta
from itertools import permutations

import pytest
from playwright.sync_api import Page, expect

from sonar.models import Annotation, Incident
from sonar.people.roles import Role
from tests import found
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.conftest import Standing, Visit
from tests.browser.pages import fits, look
from tests.browser.readers import COPYING, NARROW, Reader, seen_by
from tests.found import FAILING
from tests.matrix import world
from tests.matrix.sent import MARKUP
from tests.matrix.world import HOUR, NOW, World

BEGUN = 5


def make() -> World:
    """Two days of tests; for five hours DESY takes no files, and Glasgow sends slowly to RAL."""
    made = world.make()
    with world.transfers() as some:
        for hours in range(48):
            for source, destination in permutations(made.endpoints, 2):
                fails = destination == made.desy and hours < BEGUN
                slow = (source, destination) == (made.glasgow, made.ral) and hours < BEGUN
                ago = timedelta(hours=hours, minutes=7 * source.pk % 50)
                rate = 21.0 if slow else 90.0 + (hours * 7 + destination.pk) % 20
                some.add(source, destination, None if fails else rate, ago=ago)
    sources = [made.ral, made.glasgow, made.scratch]
    found.evaluate(found.into(made.desy, sources, FAILING), found.of_link(made.glasgow, made.ral))
    Annotation.objects.create(
        site=made.desy.site, text=f"Pool 3 moves {MARKUP}", starts_at=NOW - 6 * HOUR, public=True
    )
    return made


@pytest.fixture
def troubled(standing: Standing[World], at_noon: None) -> World:
    return standing(make)


def decide(page: Page, title: str, button: str, **fields: str) -> None:
    """Fill a form behind its button, and send it by the keyboard."""
    page.get_by_text(title, exact=True).click()
    form = page.locator("details[open] form")
    for label, value in fields.items():
        field = form.get_by_label(label)
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(label=value)
        else:
            field.fill(value)
    form.get_by_role("button", name=button, exact=True).press("Enter")
    expect(page.locator("details[open]")).to_have_count(0)


@seen_by(COPYING, NARROW)
def test_an_incident_is_found_muted_noted_and_told(visit: Visit, troubled: World, reader: Reader):
    """From the front page to the text for a ticket; forms are sent by the keyboard."""
    visit.log_in(account(Role.OPERATOR, name="anna"))
    page = visit.open("/")
    expect(page.locator("#answer h1")).to_contain_text("DESY_DATADISK fails as destination")
    look(page, f"incidents-front-{reader}")
    visit.open("/incidents/")
    assert fits(page)
    assert by_day_and_night(page) == []
    look(page, f"incidents-list-{reader}")
    page.locator("main table").get_by_role("link", name="DESY_DATADISK fails").click()
    expect(page.locator("h1")).to_have_text("DESY_DATADISK fails as destination")
    decide(page, "Acknowledge…", "Acknowledge incident")
    decide(page, "Mute…", "Mute incident", **{"End time (UTC)": "tomorrow 08:00"})
    muted = "anna muted the incident until 21 Nov 08:00 UTC"
    expect(page.locator(".timeline")).to_contain_text(muted)
    decide(page, "Add note…", "Add note", Note=f"Disks are ordered {MARKUP}")
    noted = f"anna added a note: Disks are ordered {MARKUP}"
    expect(page.locator(".timeline")).to_contain_text(noted)
    expect(page.locator("#site-work [role=status]")).to_contain_text(noted)
    page.get_by_text("Assign…").click()
    assert fits(page)
    assert by_day_and_night(page) == []
    look(page, f"incident-{reader}")
    if reader == COPYING:
        page.get_by_role("button", name="Copy ticket text").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        told = page.evaluate("navigator.clipboard.readText()")
        assert told.startswith("DESY_DATADISK has been failing as destination since ")
        number = Incident.objects.get(scope="destination").pk
        assert f"\n\nIncident page: {visit.base}/incidents/{number}/\n\nSite: DESY\n" in told
