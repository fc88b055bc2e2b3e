"""The matrix picture where its room changes while it is being drawn."""

from playwright.sync_api import Page

from tests.browser.modules import PLOT, wait_for_turns
from tests.browser.waiting import until

# How wide its cells are, and where what was written beside the colour bar stands.
CELLS = f"{PLOT}._fullLayout.xaxis._length"
TICKS = f"""[...{PLOT}.querySelectorAll('.infolayer .cbaxis text')].map(
    (text) => text.getBoundingClientRect().x)"""


def assert_whole(page: Page, width: float) -> None:
    wait_for_turns(page)
    until(page, f"Math.abs({CELLS} / {width} - 1) < 0.05")
    ticks = page.evaluate(TICKS)
    assert ticks
    assert max(ticks) - min(ticks) < 20


def test_a_picture_that_becomes_wide_again_is_as_it_was(visit, published):
    page = visit.go()
    before = page.evaluate(CELLS)
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        wait_for_turns(page)
    assert_whole(page, before)


def test_changes_of_its_room_that_overlap_leave_the_picture_whole(visit, published):
    page = visit.go()
    before = page.evaluate(CELLS)
    for width in (390, 1440, 900, 390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(70)
    assert_whole(page, before)
