"""An operator makes a mesh on pages, sees its cost before, and pauses one of its endpoints."""

import pytest
from playwright.sync_api import expect

from sonar.models import Mesh
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.conftest import Visit
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.browser.scene import Scene

PAGES = {"list": "/meshes/", "mesh": "/meshes/uk/", "change": "/meshes/uk/change/"}
PAGES |= {"downtimes": "/downtimes/", "sizes": "/size-classes/"}


@pytest.mark.long
@seen_by(LAPTOP, NARROW, SCRIPTLESS)
def test_a_mesh_is_made_with_its_cost_seen_before_and_an_endpoint_paused(
    visit: Visit, scene: Scene, reader
):
    visit.log_in(account(Role.OPERATOR))
    page = visit.open("/meshes/")
    page.get_by_role("link", name="Add mesh…").click()
    page.get_by_label("name", exact=True).fill("uk")
    page.get_by_label("endpoint filter").fill("cluod=UK")
    page.get_by_label("interval per link for small files").fill("30m")
    if reader is SCRIPTLESS:
        page.get_by_role("button", name="Show the cost").click()
        expect(page.locator("#mesh-sources_filter_error")).to_contain_text("cluod")
    else:
        expect(page.locator("#cost")).to_contain_text("Correct these errors to see the cost")
    page.get_by_label("endpoint filter").fill("cloud=UK")
    if reader is SCRIPTLESS:
        page.get_by_role("button", name="Show the cost").click()
    expect(page.locator("#cost")).to_contain_text("96")
    expect(page.get_by_label("name", exact=True)).to_have_value("uk")
    assert not Mesh.objects.filter(name="uk").exists()
    look(page, f"mesh-cost-{reader}")
    page.get_by_role("button", name="Save without enabling").click()
    expect(page.locator("main")).to_contain_text("Enabling it starts 2 links, 96 tests")
    page.get_by_role("button", name="Enable mesh").click()
    expect(page.get_by_role("status")).to_contain_text(["Enabled mesh uk"])
    if reader is not SCRIPTLESS:
        for name, path in PAGES.items():
            page = visit.open(path)
            assert fits(page)
            assert by_day_and_night(page, ALL) == []
            look(page, f"mesh-{name}-{reader}-dark")
            page.emulate_media(color_scheme="light")
            look(page, f"mesh-{name}-{reader}")
    page = visit.open("/meshes/uk/")
    page.get_by_role("link", name="RAL_DATADISK").click()
    page.click("summary >> text=Pause tests")
    page.get_by_label("reason (visible to everyone)").fill("new disks")
    page.get_by_role("button", name="Pause tests", exact=True).click()
    expect(page.locator("#paused")).to_contain_text("The tests of RAL_DATADISK are paused")
    page = visit.open("/")
    notice = page.locator(".notice", has_text="The tests of RAL_DATADISK are paused.")
    expect(notice).to_contain_text("RAL_DATADISK, until someone resumes them: new disks")
    look(page, f"matrix-endpoint-paused-{reader}")
