"""The matrix with the keyboard alone, and what a screen reader hears of it."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.cells import wait_until_drawn
from tests.browser.conftest import Visit
from tests.browser.pages import PLOT, refresh
from tests.browser.waiting import until
from tests.matrix import world

CURSOR = """async () => {
    const { ends } = await import("/static/js/matrix/links.js");
    const { placeAt } = await import("/static/js/matrix/places.js");
    const box = document.querySelector(".cursor").getBoundingClientRect();
    const event = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 };
    return ends(placeAt(event));
}"""


CURSOR_IS_INSIDE = """["cursor", "plot"].map((name) =>
    document.querySelector(`#picture .${name}`).getBoundingClientRect().right
).reduce((cursor, cells) => cursor < cells)"""


def on_the_matrix(visit: Visit, path: str = "/") -> Page:
    page = wait_until_drawn(visit.open(path))
    page.keyboard.press("Tab")  # the focus ring is for keys
    page.locator("#picture").focus()
    return page


def said(page: Page) -> Locator:
    return page.locator("#said")


def test_arrows_move_a_cursor_and_each_cell_is_said_with_since_when_it_fails(visit, scene):
    page = on_the_matrix(visit)
    expect(said(page)).to_have_text(
        "from DESY_DATADISK to DESY_DATADISK: no value, 0 ok, 0 failed, not applicable"
    )
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(said(page)).to_have_text(
        "from DESY_DATADISK to Glasgow_DATADISK: 25.0 MB/s, 1 ok, 0 failed, measured"
    )
    page.keyboard.press("ArrowDown")
    expect(said(page)).to_contain_text("from DESY_SCRATCHDISK to Glasgow_DATADISK: no value")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    expect(said(page)).to_contain_text("from DESY_DATADISK to DESY_SCRATCHDISK")
    assert page.evaluate(CURSOR) == {"from": "DESY_DATADISK", "to": "DESY_SCRATCHDISK"}
    expect(page.locator("#card")).to_contain_text("to DESY_SCRATCHDISK")
    assert said(page).get_attribute("aria-live") == "polite"
    page.keyboard.press("Control+End")
    page.keyboard.press("Home")
    expect(said(page)).to_contain_text("from RAL_DATADISK to DESY_DATADISK")
    expect(said(page)).to_contain_text(
        re.compile(r"failing since \d+ [A-Z][a-z]{2} [\d:]{5} UTC \(\d+ \w+\), ")
    )


def test_one_key_leads_to_edges_corners_and_the_reverse(visit, scene):
    page = on_the_matrix(visit)
    for key, ends in (
        ("End", "from Glasgow_DATADISK to RAL_DATADISK"),
        ("Home", "from Glasgow_DATADISK to DESY_DATADISK"),
        ("Control+End", "from RAL_DATADISK to RAL_DATADISK"),
        ("PageDown", "from RAL_DATADISK to DESY_SCRATCHDISK"),
        ("PageUp", "from DESY_DATADISK to DESY_SCRATCHDISK"),
        ("r", "from DESY_SCRATCHDISK to Glasgow_DATADISK"),
    ):
        # From the corner, itself reached by a key, always to the same cell.
        page.keyboard.press("Control+Home")
        expect(said(page)).to_contain_text("from DESY_DATADISK to DESY_DATADISK")
        for arrow in ("ArrowDown", "ArrowDown", "ArrowRight"):
            page.keyboard.press(arrow)
        expect(said(page)).to_contain_text("from Glasgow_DATADISK to DESY_SCRATCHDISK")
        page.keyboard.press(key)
        expect(said(page)).to_contain_text(ends)


def test_a_reverse_that_is_not_in_the_view_is_said(visit, scene):
    page = on_the_matrix(visit, "/?source_site=RAL&destination_site=Glasgow")
    page.keyboard.press("r")
    expect(said(page)).to_have_text("The reverse direction is not in this view.")


def test_space_holds_the_card_whose_links_are_reached_and_escape_lets_go(visit, scene):
    page = on_the_matrix(visit)
    page.keyboard.press("End")
    page.keyboard.press(" ")
    card = page.locator("#card.pinned")
    expect(card).to_be_visible()
    page.keyboard.press("Tab")
    link = card.get_by_role("link", name="Open this link")
    expect(link).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#card.pinned")).to_have_count(0)
    expect(page.locator("#picture")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#card")).to_be_hidden()
    expect(page.locator(".cursor")).to_be_hidden()
    for key in ("End", "End", " ", "Tab", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/links/*/RAL_DATADISK/")


def test_the_keys_are_hinted_at_and_listed_and_slash_goes_to_the_jump_box(visit, scene):
    page = on_the_matrix(visit)
    expect(page.locator("#keys-hint")).to_be_visible()
    page.keyboard.press("?")
    listed = page.get_by_role("dialog", name="Keyboard shortcuts of the matrix")
    expect(listed).to_contain_text("to the reverse direction")
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    expect(page.locator("#picture")).to_be_focused()
    page.keyboard.press("/")
    box = page.locator("#jump")
    expect(box).to_be_focused()
    page.keyboard.type("a/b")
    expect(box).to_have_value("a/b")


def test_the_cursor_brings_its_cell_into_a_part_that_is_looked_at(visit, published):
    page = on_the_matrix(visit)
    for key in ("+", "+", "Control+End"):
        page.keyboard.press(key)
    ranges = f"['xaxis', 'yaxis'].map((name) => {PLOT}.layout[name].range.map(Math.round))"
    until(page, f"{ranges}[0][1] === 10 && {ranges}[1][0] === 9")
    expect(page.locator(".cursor")).to_be_visible()
    until(page, CURSOR_IS_INSIDE)
    page.keyboard.press("0")
    until(page, f"{ranges}[0][0] === 0")
    assert page.evaluate(ranges)[0][1] >= 9


def test_a_refresh_keeps_cursor_held_card_and_focus(visit, scene):
    page = on_the_matrix(visit)
    for key in ("Control+End", "ArrowLeft", " "):
        page.keyboard.press(key)
    card = page.locator("#card.pinned")
    expect(card).to_contain_text("0 of 7 tests")
    world.transfer(scene.world.ral, scene.world.glasgow, 33.0)
    refresh(page)
    expect(card).to_contain_text("0 of 8 tests")
    expect(page.locator("#picture")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(said(page)).to_contain_text("from Glasgow_DATADISK to Glasgow_DATADISK")


def test_the_jump_box_is_walked_with_arrows_and_closed_with_escape(visit, scene):
    page = visit.open()
    box = page.locator("#jump")
    box.fill("DESY")  # at once: an answer to the first letters would take the choice away
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#found a[aria-selected=true]")
    expect(chosen).to_have_count(1)
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(box).to_have_attribute("aria-expanded", "false")
    expect(page.locator("#found a")).to_have_count(0)
    box.fill("DESY_")
    expect(page.locator("#found a").first).to_be_visible()
    target = page.locator("#found a").first.get_attribute("href")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{target}")


def test_a_click_elsewhere_closes_what_was_found_and_enter_without_a_choice_searches(visit, scene):
    page = visit.open()
    page.locator("#jump").press_sequentially("DESY")
    expect(page.locator("#found a").first).to_be_visible()
    page.get_by_role("heading", level=1).click()
    expect(page.locator("#found a")).to_have_count(0)
    expect(page.locator("#jump")).to_have_attribute("aria-expanded", "false")
    page.locator("#jump").fill("DISK")
    page.locator("#jump").press("Enter")
    page.wait_for_url("**/search/?q=DISK")
    page.locator("#jump").fill("DESY")
    page.locator("#jump").press("Enter")
    page.wait_for_url("**/sites/DESY/")


def test_strips_are_walked_as_a_matrix_is(visit, scene):
    page = on_the_matrix(visit, "/?window=24h&endpoint=Glasgow_DATADISK")
    expect(said(page)).to_contain_text("from Glasgow_DATADISK to DESY_DATADISK")
    page.keyboard.press("r")
    expect(said(page)).to_have_text(
        "from DESY_DATADISK to Glasgow_DATADISK: 25.0 MB/s, 1 ok, 0 failed, measured"
    )
    assert page.evaluate(CURSOR) == {"from": "DESY_DATADISK", "to": "Glasgow_DATADISK"}
    expect(page.locator("#card")).to_contain_text("from DESY_DATADISK to Glasgow_DATADISK")
    page.keyboard.press("Enter")
    page.wait_for_url("**/links/DESY_DATADISK/Glasgow_DATADISK/?window=24h")
    page = on_the_matrix(visit, "/?window=24h&endpoint=Glasgow_DATADISK&transpose=1")
    page.keyboard.press("ArrowRight")
    expect(said(page)).to_contain_text("from DESY_DATADISK to Glasgow_DATADISK: 25.0 MB/s")
    page.keyboard.press("r")
    expect(said(page)).to_contain_text("from Glasgow_DATADISK to DESY_DATADISK: no value")
