"""The page of causes, judged by the 30 days before, as people see it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import until_settled
from tests.matrix.months import month_of, slow_link


@pytest.fixture
def month(scene_of_today: Scene) -> Scene:
    month_of(7, slow_link)
    return scene_of_today


@seen_by(LAPTOP, NARROW)
def test_what_is_slower_than_on_its_own_days_is_read(visit, month):
    page = visit.open("/causes/?window=24h")
    page.get_by_text("compare", exact=True).click()
    page.get_by_role("link", name="the 30 days before", exact=True).click()
    expect(page.locator("h1")).to_have_text("1 link is slower than in the 30 days before.")
    assert page.url.endswith("/causes/?window=24h&compare=month")
    finding = page.locator("p.finding")
    expect(finding).to_contain_text(
        re.compile(r"S03_DISK → S05_DISK is at \d+ % of its 30-day rate")
    )
    until_settled(page)
    assert fits(page)
    look(page, f"causes-month-{visit.reader}")
    assert by_day_and_night(page) == []
