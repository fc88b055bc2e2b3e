"""The page of events, and events on links and sites, as people see them."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from sonar.models import Annotation
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import until_settled
from tests.matrix import changed, world
from tests.matrix.changed import change, outage
from tests.matrix.sent import MARKUP

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ROWS = "table.events tbody tr:not(.day)"


COURSE = [*[1.0] * 12, *[0.5] * 11, None]


@pytest.fixture
def events(scene: Scene) -> Scene:
    made = scene.world
    for size in ("small", "large"):
        change(made.ral, made.glasgow, 0.5, 3 * HOUR, size=size, course=COURSE)
    change(made.glasgow, None, 2.0, 2 * DAY, course=[1 / one if one else None for one in COURSE])
    change(None, made.desy, 0.25, 3 * DAY, course=COURSE)
    change(None, None, 0.7, 4 * DAY, size="small", course=COURSE)
    change(made.desy, made.ral, 0.85, 5 * DAY, sure=False, chance=0.008)
    outage(made.ral, made.desy, 7 * HOUR, HOUR, course=[*[1.0] * 24])
    Annotation.objects.create(
        site=made.ral.site,
        text=f"TCP buffers changed {MARKUP}",
        starts_at=world.NOW - 4 * HOUR,
        public=True,
    )
    changed.searched()
    return scene


@seen_by(LAPTOP, NARROW)
def test_the_list_is_read_and_narrowed_down(visit, events):
    page = visit.open("/events/")
    rows = page.locator(ROWS)
    expect(page.locator("h1")).to_contain_text("RAL_DATADISK → Glasgow_DATADISK slowed to 0.50×")
    until_settled(page)
    total = rows.count()
    assert total >= 5
    assert fits(page)
    look(page, f"events-{visit.reader}")
    assert by_day_and_night(page) == []
    page.get_by_role("link", name="slower ").first.click()
    expect(page.locator("table.events tr.faster")).to_have_count(0)
    certain = rows.count()
    page.locator("[popovertarget=lasting-menu]").click()
    page.get_by_role("link", name="certain or not").click()
    expect(rows).to_have_count(certain + 1)
    assert page.url.endswith("/events/?kind=slower&certain=any")
    page.keyboard.press("Tab")
    page.go_back()
    expect(rows).to_have_count(certain)


def test_an_event_leads_to_its_link_with_a_mark_and_a_row(visit, events):
    page = visit.open("/events/?level=link&kind=slower")
    page.locator(f"{ROWS} .where a").first.click()
    expect(page.locator("h1")).to_contain_text("RAL_DATADISK → Glasgow_DATADISK")
    expect(page.locator(".events-of tr.slower").first).to_contain_text("0.50×")
    until_settled(page)
    marks = page.locator(".annotation-text", has_text="link 0.50×")
    expect(marks).to_have_count(1)
    look(page, "events-link")
    page = visit.open("/sites/Glasgow/")
    until_settled(page)
    expect(page.locator(".events-of tr.faster")).to_have_count(1)
    look(page, "events-site")
