"""An operator says what is expected, sees what it matches before, and accepts a new normal."""

import pytest
from playwright.sync_api import expect

from sonar.models import Expectation, HeldLevel
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.cells import point_at, row, wait_until_drawn
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.scene import Scene
from tests.matrix.world import HOUR, transfers

LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
PAGES = {"list": "/expectations/", "change": "/expectations/uk/", "link": LINK}
PAGES |= {"matrix": "/?stat=expectation"}
WIDE, NARROW = ({"width": width, "height": 900} for width in (1440, 390))


@pytest.mark.long
def test_an_expectation_is_made_seen_in_the_matrix_and_a_new_normal_accepted(
    visit: Visit, scene: Scene
):
    with transfers() as several:
        for hour in range(1, 4):
            several.add(scene.world.ral, scene.world.glasgow, 12.0, ago=hour * HOUR / 9)
            several.add(scene.world.glasgow, scene.world.ral, 17.0, ago=hour * HOUR / 9)
            several.add(scene.world.ral, scene.world.desy, 90.0, ago=hour * HOUR / 9)
    visit.log_in(account(Role.OPERATOR))
    page = visit.open("/expectations/")
    page.get_by_role("link", name="Add an expectation…").click()
    page.get_by_label("name", exact=True).fill("uk")
    page.get_by_label("at least, like").fill("fast")
    expect(page.locator("#matched")).to_contain_text("'fast' is not a rate")
    page.get_by_label("at least, like").fill("130 MB/s")
    expect(page.locator("#matched")).to_contain_text("Expected is at least 130 MB/s: slow below")
    look(page, "expectation-add")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text(["Added the expectation uk."])
    assert Expectation.objects.get().floor == 130e6
    for name, path in PAGES.items():
        page = visit.open(path)
        assert by_day_and_night(page, ALL) == []
        look(page, f"expectation-{name}-dark")
        page.emulate_media(color_scheme="light")
        look(page, f"expectation-{name}")
        page.set_viewport_size(NARROW)
        page = visit.open(path)
        assert fits(page)
        look(page, f"expectation-{name}-narrow")
        page.set_viewport_size(WIDE)
    page = wait_until_drawn(visit.open("/?stat=expectation"))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    said = ["0.77× the expected 130 MB/s: near", "0.13× the expected 130 MB/s: below"]
    assert row(card, "now / expected") == said
    look(page, "expectation-card")
    page = visit.open(LINK)
    page.click("summary >> text=This is the new normal")
    page.get_by_label("why").fill("another route")
    look(page, "expectation-normal")
    page.get_by_role("button", name="Expect the rate that it has now").click()
    expect(page.locator("#expected")).to_contain_text("another route")
    look(page, "expectation-accepted")
    assert HeldLevel.objects.get().note == "another route"
