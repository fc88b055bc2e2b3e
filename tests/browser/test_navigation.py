"""The navigation opens without a script and by keyboard; axe finds nothing in its menus."""

import pytest
from playwright.sync_api import expect

from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import box_of, fits, is_on_the_screen, look, navigate
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, SCRIPTLESS_NARROW, seen_by


@seen_by(LAPTOP, NARROW)
def test_axe_finds_nothing_in_the_open_menus(visit, scene, reader):
    visit.log_in(account(Role.ADMINISTRATOR))
    page = visit.open("/meshes/")
    menu = "places" if reader is NARROW else "account"
    for width in (390,) if reader is NARROW else (1280, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        page.locator(f"[popovertarget={menu}]").click()
        assert is_on_the_screen(page, box_of(page.locator(f"#{menu}")))
        assert fits(page)
        look(page, f"navigation-{width}")
        assert by_day_and_night(page) == []
        page.keyboard.press("Escape")
        expect(page.locator(f"#{menu}")).to_be_hidden()


@seen_by(SCRIPTLESS, SCRIPTLESS_NARROW)
def test_every_page_is_reached_without_a_script_and_by_keyboard(visit, scene, reader):
    visit.log_in(account(Role.ADMINISTRATOR))
    page = visit.open("/sites/")
    navigate(page, "Problems")
    page.get_by_role("navigation", name="Problems").get_by_role("link", name="Causes").click()
    page.wait_for_url("**/causes/")
    menu = "places" if reader is SCRIPTLESS_NARROW else "account"
    page.locator(f"[popovertarget={menu}]").focus()
    page.keyboard.press("Enter")
    history = page.get_by_role("link", name="History", exact=True)
    expect(history).to_be_visible()
    history.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/history/")


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_the_glossary_explains_a_term_of_the_table(visit, scene):
    page = visit.open("/table/")
    page.get_by_role("link", name="baseline", exact=True).click()
    page.wait_for_url("**/glossary/#baseline")
    assert fits(page)
    assert by_day_and_night(page) == []
