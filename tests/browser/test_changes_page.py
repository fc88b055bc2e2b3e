"""The page of changes of level, and their marks on links and sites, as people see them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from sonar.models import Annotation
from tests.browser.axe import violations
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import DARK, LAPTOP, NARROW, NARROW_DARK, SCRIPTLESS, seen_by
from tests.browser.scene import MARKUP, Scene
from tests.browser.waiting import until_settled
from tests.matrix import changed, world
from tests.matrix.changed import change

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def changes(scene_of_today: Scene) -> Scene:
    made = scene_of_today.world
    change(made.ral, made.glasgow, 0.5, 3 * HOUR)
    change(made.glasgow, None, 2.0, 2 * DAY)
    change(None, made.desy, 0.25, 3 * DAY)
    change(None, None, 0.7, 4 * DAY, size="small")
    change(made.desy, made.ral, 0.85, 5 * DAY, sure=False, chance=0.008)
    Annotation.objects.create(
        site=made.ral.site,
        text=f"TCP buffers changed {MARKUP}",
        starts_at=world.NOW - 4 * HOUR,
        public=True,
    )
    changed.searched()
    return scene_of_today


@seen_by(LAPTOP, NARROW, DARK, NARROW_DARK)
def test_the_list_is_read_and_narrowed_down(visit: Visit, changes: Scene) -> None:
    page = visit.open("/changes/")
    rows = page.locator("table.changes tbody tr")
    expect(rows).to_have_count(4)
    until_settled(page)
    assert fits(page)
    look(page, f"changes-{visit.reader}")
    assert violations(page) == []
    page.get_by_role("link", name="slower", exact=True).click()
    expect(rows).to_have_count(3)
    page.get_by_role("link", name="all found").click()
    expect(rows).to_have_count(4)
    assert page.url.endswith("/changes/?level=slower&sure=any")
    page.keyboard.press("Tab")
    page.go_back()
    expect(rows).to_have_count(3)


def test_a_change_leads_to_its_link_with_a_mark_and_a_sentence(
    visit: Visit, changes: Scene
) -> None:
    page = visit.open("/changes/?kind=link")
    page.locator("table.changes tbody a").first.click()
    expect(page.locator("h1")).to_contain_text("From RAL_DATADISK to Glasgow_DATADISK")
    expect(page.locator(".changes-of li").first).to_contain_text("40.0 to 20.0 MB/s")
    until_settled(page)
    marks = page.locator(".annotation-text", has_text="link 0.50×")
    expect(marks).to_have_count(1)
    look(page, "changes-link")
    page = visit.open("/sites/Glasgow/")
    until_settled(page)
    expect(page.locator(".changes-of li")).to_have_count(1)
    look(page, "changes-site")


@pytest.mark.parametrize("reader", [SCRIPTLESS], ids=str)
def test_filters_are_added_without_a_script(visit: Visit, changes: Scene) -> None:
    page = visit.open("/changes/")
    page.locator("#adds summary").click()
    page.select_option("#adds [name=filter_end]", "source")
    page.select_option("#adds [name=filter_on]", "site")
    page.fill("#adds [name=filter_value]", "Glasgow")
    rows = page.locator("table.changes tbody tr")
    page.click("#adds button >> nth=0")
    expect(rows).to_have_count(3)
    assert page.url.endswith("/changes/?source_site=Glasgow")
    page.locator("#adds summary").click()
    page.fill("#adds [name=factor]", "2.1")
    page.click("#adds button >> nth=1")
    expect(rows).to_have_count(1)
    assert page.url.endswith("source_site=Glasgow&factor=2.1")
