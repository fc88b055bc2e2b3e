"""An operator adds a target, sees the links that it matches, and accepts a new baseline."""

import pytest
from playwright.sync_api import expect

from sonar.models import HeldLevel, Target
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.cells import point_at, row, wait_until_drawn
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.scene import Scene
from tests.matrix.world import HOUR, transfers

LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
PAGES = {"list": "/targets/", "change": "/targets/uk/", "link": LINK}
PAGES |= {"matrix": "/?stat=vs_target"}
WIDE, NARROW = ({"width": width, "height": 900} for width in (1440, 390))


@pytest.mark.long
def test_a_target_is_made_and_a_new_baseline_accepted(visit: Visit, scene: Scene):
    with transfers() as several:
        for hour in range(1, 4):
            several.add(scene.world.ral, scene.world.glasgow, 12.0, ago=hour * HOUR / 9)
            several.add(scene.world.glasgow, scene.world.ral, 17.0, ago=hour * HOUR / 9)
            several.add(scene.world.ral, scene.world.desy, 90.0, ago=hour * HOUR / 9)
    visit.log_in(account(Role.OPERATOR))
    page = visit.open("/targets/")
    page.get_by_role("link", name="Add target…").click()
    page.get_by_label("name", exact=True).fill("uk")
    page.get_by_label("minimum rate").fill("fast")
    expect(page.locator("#matched")).to_contain_text("'fast' is not a rate")
    page.get_by_label("minimum rate").fill("130 MB/s")
    expect(page.locator("#matched")).to_contain_text("Target: at least 130 MB/s: slow below")
    look(page, "target-add")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text(["The target uk was added."])
    assert Target.objects.get().floor_mb_s == 130
    for name, path in PAGES.items():
        page = visit.open(path)
        assert by_day_and_night(page, ALL) == []
        look(page, f"target-{name}-dark")
        page.emulate_media(color_scheme="light")
        look(page, f"target-{name}")
        page.set_viewport_size(NARROW)
        page = visit.open(path)
        assert fits(page)
        look(page, f"target-{name}-narrow")
        page.set_viewport_size(WIDE)
    page = wait_until_drawn(visit.open("/?stat=vs_target"))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    said = ["0.77× the target of 130 MB/s: near", "0.13× the target of 130 MB/s: below"]
    assert row(card, "rate / target") == said
    look(page, "target-card")
    page = visit.open(LINK)
    page.click("summary >> text=Accept as new baseline")
    page.get_by_label("reason").fill("another route")
    look(page, "target-normal")
    page.get_by_role("button", name="Accept current rate").click()
    expect(page.locator("#target")).to_contain_text("another route")
    look(page, "target-accepted")
    assert HeldLevel.objects.get().note == "another route"
