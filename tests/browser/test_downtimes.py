"""An outage and a warning in a real browser: on the strip, the matrix, a link and a site."""

from datetime import timedelta
from itertools import permutations

import pytest
from playwright.sync_api import Page, expect

from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.conftest import Standing, Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, Reader, seen_by
from tests.matrix import world
from tests.matrix.world import HOUR, World, downtime

HALF = timedelta(minutes=30)


def make() -> World:
    """A day of tests; RAL is down and DESY at risk, both until an hour from now."""
    made = world.make()
    with world.transfers() as some:
        for hours in range(1, 30):
            for source, destination in permutations(made.endpoints, 2):
                some.add(source, destination, 10.0, ago=hours * HOUR)
    downtime(-6 * HOUR - HALF, HOUR, reason="new switch", site=made.ral.site)
    for endpoint in (made.desy, made.scratch):
        elsewhere = {"origin": "gocdb", "key": "8G0", "severity": "warning"}
        downtime(-3 * HOUR - HALF, HOUR, reason="dCache update", endpoint=endpoint, **elsewhere)
    for number in range(6):  # many short ones, as those of a server that comes and goes
        begin = -(10 + number * 3) * HOUR
        downtime(begin, begin + HALF, reason=f"restart {number}", endpoint=made.glasgow)
    return made


@pytest.fixture
def declared(standing: Standing[World], at_noon: None) -> World:
    return standing(make)


def text_of(page: Page, keys: str) -> str:
    """Return what the strip says to a screen reader after some keys."""
    hours = page.locator("#strip .hours")
    hours.focus()
    for key in keys.split():
        page.keyboard.press(key)
    return hours.get_attribute("aria-valuetext") or ""


@seen_by(LAPTOP, NARROW)
def test_an_outage_and_a_warning_are_told_apart_wherever_they_are_shown(
    visit: Visit, declared: World, reader: Reader
):
    page = visit.open("/")
    strip = page.locator("#strip")
    expect(strip.locator(".declared")).to_be_visible()
    # Seven outages, of which no two meet, above one time at risk: thick and thin.
    paths = [strip.locator(f"path.{name}") for name in ("down", "at-risk")]
    down, at_risk = (path.get_attribute("d") or "" for path in paths)
    assert (down.count("M"), at_risk.count("M")) == (7, 1)
    assert ("v4" in down, "v2" in at_risk) == (True, True)
    said = text_of(page, "End ArrowLeft")
    assert said.endswith(
        "; 6 links down (RAL); 6 links at risk (DESY_DATADISK and DESY_SCRATCHDISK)"
    )
    assert fits(page)
    assert by_day_and_night(page) == []
    look(page, f"downtimes-matrix-{reader}")
    expect(page.locator("#page")).to_contain_text("2 sites or endpoints are declared at risk.")

    page = visit.open("/links/Glasgow_DATADISK/DESY_DATADISK/")
    expect(strip.locator(".declared")).to_be_visible()
    said = text_of(page, "End ArrowLeft")
    assert said.endswith(": 1 test, 0 failed; at risk (DESY_DATADISK)")
    expect(page.locator("#page")).to_contain_text("At risk, DESY_DATADISK: dCache update")
    look(page, f"downtimes-link-{reader}")


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_a_site_admin_declares_a_warning(visit: Visit, declared: World, reader: Reader):
    visit.log_in(account(Role.SITE_ADMIN, declared.glasgow.site))
    page = visit.open("/sites/Glasgow/")
    page.click("summary >> text=Declare downtime")
    page.get_by_label("severity").select_option("at risk (tests run, and their results are marked)")
    page.fill("#downtime-reason", "update of the firewall")
    look(page, f"downtimes-form-{reader}")
    assert fits(page)
    page.click("button >> text=Declare")
    expect(page.locator("#site-work [role=status]")).to_contain_text(
        "Declared Glasgow to be at risk"
    )
    expect(page.locator("#page .notice", has_text="At risk now")).to_contain_text("may be slow")
    assert by_day_and_night(page) == []
    look(page, f"downtimes-site-{reader}")
