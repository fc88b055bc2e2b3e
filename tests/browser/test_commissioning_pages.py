"""An operator makes a criteria set on pages; readers see which links have passed, and print one."""

import pytest
from playwright.sync_api import expect

from matrix.answers.commissioning.search import search_all
from sonar.models import CommissioningRecord, CriteriaSet
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.scene import Scene
from tests.matrix.world import HOUR, NOW

SET = "/commissioning/DDT/"
PAGES = {"list": "/commissioning/", "set": SET, "change": f"{SET}change/"}
PAGES |= {"lost": f"{SET}RAL_DATADISK/DESY_DATADISK/"}
PAGES |= {"record": f"{SET}RAL_DATADISK/Glasgow_DATADISK/"}
PAGES |= {"add": "/commissioning/add/?preset=TPC"}


def judged(scene: Scene) -> None:
    """Let all links be judged, of which one had passed long ago and lost it."""
    row = CriteriaSet.objects.get()
    ends = {"source": scene.world.ral, "destination": scene.world.desy}
    times = {"passed_at": NOW - 2400 * HOUR, "lost_at": NOW - 2399 * HOUR, "found_at": NOW}
    measured = {"tests": 24, "ok": 24, "bytes": 48 * 10**9, "seconds": 1200.0}
    CommissioningRecord.objects.create(
        criteria_set=row, required=row.required, **ends, **times, **measured
    )
    search_all(NOW)


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_a_set_is_made_and_who_passed_is_seen_by_all_and_printed(
    visit: Visit, scene: Scene, reader
):
    visit.log_in(account(Role.OPERATOR))
    page = visit.open("/commissioning/")
    page.get_by_role("link", name="Add criteria set…").click()
    page.get_by_role("link", name="DDT", exact=True).click()
    page.get_by_label("source filter").fill("tear=1")
    page.get_by_role("button", name="Save").click()
    visit.expect_refusal(400)
    expect(page.locator("#set-sources_filter_error")).to_contain_text("tear")
    page.get_by_label("source filter").fill("")
    page.get_by_label("minimum number of tests").fill("3")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Added criteria set DDT.")
    judged(scene)
    for name, path in PAGES.items():
        page = visit.open(path)
        assert fits(page)
        assert by_day_and_night(page, ALL) == []
        look(page, f"commissioning-{name}-{reader}-dark")
        page.emulate_media(color_scheme="light")
        look(page, f"commissioning-{name}-{reader}")
    page = visit.open(SET)
    page.get_by_role("link", name="RAL_DATADISK to Glasgow_DATADISK: passed").click()
    expect(page.locator("main")).to_contain_text("passed since")
    page.emulate_media(media="print")
    look(page, f"commissioning-print-{reader}")
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    page.emulate_media(media="screen")
    page.get_by_role("link", name="Results from the evaluated hours").click()
    page.wait_for_url("**/links/RAL_DATADISK/Glasgow_DATADISK/?from=*")
