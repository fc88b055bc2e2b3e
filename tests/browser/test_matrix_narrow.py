"""The matrix on a telephone: as wide as the screen, dragged, and answering taps."""

import itertools

import pytest
from playwright.sync_api import expect

from tests.browser.cells import place, wait_until_drawn
from tests.browser.pages import PLOT, box_of, call, is_on_the_screen, wait_for_turns
from tests.browser.readers import NARROW
from tests.browser.waiting import until

CELLS_ARE_WIDE = """({{ sizeOf }}) => ['xaxis', 'yaxis'].every(
    (name) => sizeOf({}._fullLayout[name]) >= {})"""
CELLS_ARE_TOLD_APART = call("matrix/places", CELLS_ARE_WIDE.format(PLOT, 12))
IS_ZOOMED = call("matrix/places", CELLS_ARE_WIDE.format(PLOT, 23))
CORNER = call(
    "matrix/places",
    "({ pixelsOf }) => { const at = pixelsOf({ row: 4, column: 5 }); return [at.left, at.top]; }",
)
ROWS = "JSON.parse(document.getElementById('picture-data').textContent).rows.names"
pytestmark = pytest.mark.parametrize("reader", [NARROW], ids=str)


def test_the_picture_is_as_wide_as_the_screen_and_shows_every_cell(visit, published):
    page = wait_until_drawn(visit.open())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = box_of(page.locator("#picture .plot"))
    assert box["width"] <= 390
    until(page, CELLS_ARE_TOLD_APART)
    wide = "document.querySelector('#picture svg.main-svg').getBoundingClientRect().width"
    assert page.evaluate(wide) <= 390
    labels = page.locator("#picture .yaxislayer-above text").all_text_contents()
    names = page.evaluate(ROWS)
    assert len(set(labels)) == len(labels) == len(names) + 1  # the mean


def test_a_drag_shows_other_cells(visit, published):
    page = wait_until_drawn(visit.open())
    until(page, CELLS_ARE_TOLD_APART)
    page.get_by_role("button", name="zoom in").click()
    until(page, IS_ZOOMED)
    wait_for_turns(page)  # a redraw under way would take the drag away
    page.locator("#picture").evaluate("it => it.scrollIntoView({ block: 'center' })")
    start = f"Math.round({PLOT}.layout.xaxis.range[0] * 10)"
    before = page.evaluate(start)
    x, y = page.evaluate(CORNER)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 90, y, steps=5)
    page.mouse.up()
    until(page, f"{start} > {before}")
    assert page.url.endswith("/")


def test_a_tap_shows_the_card_with_the_way_to_the_link_and_one_beside_puts_it_away(visit, scene):
    page = wait_until_drawn(visit.open())
    page.locator("#picture").scroll_into_view_if_needed()
    page.touchscreen.tap(*place(page, "RAL_DATADISK", "Glasgow_DATADISK"))
    card = page.locator("#card")
    expect(card).to_contain_text("from RAL_DATADISK")
    expect(card).to_contain_text("0 of 7 tests")
    box = box_of(card)
    assert is_on_the_screen(page, box)
    page.touchscreen.tap(4, box["height"] + 20 if box["y"] == 0 else box["y"] - 20)
    expect(card).to_be_hidden()
    page.touchscreen.tap(*place(page, "RAL_DATADISK", "Glasgow_DATADISK"))
    card.get_by_role("link", name="Open this link").tap()
    page.wait_for_url("**/links/RAL_DATADISK/Glasgow_DATADISK/")


def test_what_fails_comes_first_then_the_picture_whose_controls_are_one_button(visit, scene):
    page = wait_until_drawn(visit.open())
    tops = {
        name: box_of(page.locator(selector))["y"]
        for name, selector in {
            "failing": "#rail .failing",
            "button": "[popovertarget=controls]",
            "picture": "#picture",
            "strip": "#strip",
        }.items()
    }
    assert tops["failing"] < 300
    assert list(tops.values()) == sorted(tops.values())
    button, controls = page.locator("[popovertarget=controls]"), page.locator("#controls")
    expect(button).to_have_text("large, 7d, mean")
    expect(controls).to_be_hidden()
    button.tap()
    controls.get_by_role("link", name="24h").tap()
    page.wait_for_url("**/?window=24h")
    expect(controls).to_be_hidden()
    expect(button).to_have_text("large, 24h, mean")
    height = "all => Math.min(...all.map((it) => it.getBoundingClientRect().height))"
    button.tap()
    assert controls.locator("> :is(.menu, .btn-group)").evaluate_all(height) >= 44
    assert page.locator("#rail .ranked li").evaluate_all(height) >= 44


def test_a_strip_of_means_as_narrow_as_a_label_has_no_numbers_and_ticks_lie_flat(visit, published):
    page = wait_until_drawn(visit.open("/?rows=cloud&columns=cloud"))
    texts = page.evaluate(f"{PLOT}.data.map((it) => [it.xaxis, it.texttemplate ?? null])")
    assert any(text for axis, text in texts if axis != "x2")
    assert not any(text for axis, text in texts if axis == "x2")
    assert page.evaluate(f"{PLOT}._fullLayout.coloraxis.colorbar.tickangle") == 0
    ticks = page.locator(".cbaxis text").all()
    boxes = sorted((box_of(tick)["x"], box_of(tick)["width"]) for tick in ticks)
    assert all(x + width <= after for (x, width), (after, _) in itertools.pairwise(boxes))
