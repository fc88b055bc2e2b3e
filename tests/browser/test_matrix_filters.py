"""The menus that choose links: suggestions as one types, by keys, pointer and touch, or without."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.conftest import Standing
from tests.browser.pages import fits
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.matrix import world

pytestmark = pytest.mark.usefixtures("at_noon")


def make() -> world.World:
    made = world.make()
    world.transfer(made.ral, made.glasgow, 10.0)
    world.transfer(made.desy, made.ral, 5.0)
    world.transfer(made.ral, made.desy, None)
    return made


@pytest.fixture
def small_world(standing: Standing[world.World], at_noon: None) -> world.World:
    return standing(make)


def open_controls(page: Page) -> None:
    """Open the menu that has all controls on a phone."""
    button = page.locator("[popovertarget=controls]")
    if button.is_visible() and not page.locator("#controls").is_visible():
        button.click()


def opened(page: Page, menu: str = "from-menu") -> Locator:
    """Open a menu, that of all controls before it on a phone, and return the box in it."""
    open_controls(page)
    page.locator(f"[popovertarget={menu}]").click()
    return page.locator(f"#{menu} [data-offers]")


def offered(page: Page, menu: str = "from-menu") -> dict[str, list[str]]:
    groups = page.locator(f"#{menu} .offers [role=group]").all()
    return {
        str(group.get_attribute("aria-label")): group.get_by_role("option").all_inner_texts()
        for group in groups
    }


@seen_by(LAPTOP, NARROW)
def test_values_are_offered_by_group_and_a_click_chooses_one(visit, small_world):
    page = visit.go()
    box = opened(page)
    expect(box).to_be_focused()
    expect(page.get_by_role("group", name="tier").get_by_role("option")).to_have_text(["1", "2"])
    box.press_sequentially("d")
    assert offered(page) == {
        "cloud": ["DE"],
        "country": ["DE"],
        "site": ["DESY"],
        "label": ["DATADISK", "SCRATCHDISK"],
        "endpoint": ["DESY_DATADISK", "DESY_SCRATCHDISK", "Glasgow_DATADISK", "RAL_DATADISK"],
    }
    page.get_by_role("group", name="cloud").get_by_role("option", name="DE").click()
    page.wait_for_url("**/?source_cloud=DE")
    expect(page.locator("[popovertarget=from-menu]")).to_have_text("from DE")
    expect(page.locator(".question")).to_contain_text("only from cloud DE")
    assert fits(page)


def test_several_are_chosen_by_keys_one_is_left_out_and_a_chip_takes_one_away(visit, small_world):
    page = visit.go()
    box = opened(page)
    box.press_sequentially("uk")
    box.press("ArrowDown")
    active = box.get_attribute("aria-activedescendant")
    expect(page.locator(f"#{active}")).to_have_attribute("aria-selected", "true")
    box.press("Enter")
    page.wait_for_url("**/?source_cloud=UK")
    expect(page.locator("#from-menu")).to_be_hidden()
    expect(page.locator("[popovertarget=from-menu]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(box).to_be_focused()
    expect(box).to_have_value("")
    box.press_sequentially("!ral")
    box.press("Enter")  # the first that is offered
    page.wait_for_url("**/?source_site=!RAL&source_cloud=UK")
    expect(page.locator("[popovertarget=from-menu]")).to_have_text("from UK, not RAL")
    expect(page.get_by_label("all except these").first).not_to_be_checked()
    expect(page.locator("[popovertarget=from-menu]")).to_be_focused()
    expect(page.locator("#from-menu")).to_be_hidden()
    page.get_by_role("link", name="not from site RAL").click()
    page.wait_for_url("**/?source_cloud=UK")


def test_the_other_end_and_either_have_menus_of_their_own(visit, small_world):
    page = visit.go()
    box = opened(page, "to-menu")
    box.fill("tier 2")
    page.get_by_label("all except these").nth(1).check()
    box.press("Enter")
    page.wait_for_url("**/?destination_tier=!2")
    box = opened(page, "more")
    expect(page.locator("#to-menu")).to_be_hidden()
    box.fill("http")
    box.press("Enter")
    page.wait_for_url("**/?destination_tier=!2&mover=http-tpc")


def test_menus_have_no_button_send_no_value_that_nothing_has_and_close_at_a_click(
    visit, small_world
):
    page = visit.go()
    for menu in ("from-menu", "to-menu", "more"):
        page.locator(f"[popovertarget={menu}]").click()
        expect(page.locator(f"#{menu}").get_by_role("button")).to_have_count(0)
        page.keyboard.press("Escape")
    box = opened(page)
    box.press_sequentially("Atlantis")
    expect(page.locator("#from-menu .offers")).to_have_text("No match for “Atlantis”")
    box.press("Enter")
    page.wait_for_timeout(200)
    expect(page).to_have_url(visit.base + "/")
    expect(box).to_have_value("Atlantis")
    page.locator("h1").click()
    expect(page.locator(".sheet:popover-open")).to_have_count(0)


@seen_by(SCRIPTLESS)
def test_without_a_script_a_form_with_a_button_does_the_same(visit, small_world):
    page = visit.open()
    menu = page.locator("#from-menu")
    page.locator("[popovertarget=from-menu]").click()
    menu.get_by_label("by").select_option("cloud")
    menu.locator("[name=filter_value]").fill("UK")
    menu.get_by_label("all except these").check()
    menu.get_by_role("button", name="Add filter").click()
    expect(page).to_have_url(visit.base + "/?source_cloud=!UK")
    expect(page.locator("[popovertarget=from-menu]")).to_have_text("from not UK")


def test_a_view_is_saved_from_the_matrix_and_opened_there(visit, small_world):
    visit.log_in(account())
    page = visit.go("/?source_cloud=UK")
    page.locator("[popovertarget=views]").click()
    menu = page.locator("#own-views")
    menu.get_by_label("name").fill("From the UK")
    with page.expect_navigation(url="**/?source_cloud=UK"):  # the address stays the same
        menu.get_by_role("button", name="Save this view").click()
    page.goto(visit.base + "/table/")
    page.locator("[popovertarget=account]").click()
    page.get_by_role("link", name="Saved views").click()
    page.locator("#saved-views").get_by_role("link", name="From the UK").click()
    page.wait_for_url("**/?source_cloud=UK")
    page.locator("[popovertarget=views]").click()
    expect(menu.get_by_role("link", name="From the UK")).to_be_visible()


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_open_menus_break_no_rule(visit, small_world):
    page = visit.go("/?source_cloud=UK&max_age=6h")
    broken = {}
    for menu in ("from-menu", "more", "views"):
        open_controls(page)
        page.locator(f"[popovertarget={menu}]").click()
        broken[menu] = by_day_and_night(page, f"#{menu}" if broken else ALL)
        page.keyboard.press("Escape")  # the list, which may lie over the next menu
    assert not any(broken.values()), broken
    assert fits(page)
