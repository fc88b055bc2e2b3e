"""The card beside the pointer, and where a click leads."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.browser.cells import DRAWN, place, point_at, row, wait_until_drawn
from tests.browser.pages import PLOT, box_of, call, holding, is_on_the_screen
from tests.browser.readers import Reader
from tests.browser.waiting import until

AT_AXIS = """([name, label]) => {
    const said = JSON.parse(document.getElementById("picture-data").textContent);
    const side = said[name === "xaxis" ? "columns" : "rows"];
    const axis = document.querySelector("#picture .plot")._fullLayout[name];
    return axis._offset + axis.d2p(side.at[side.names.indexOf(label)]);
}"""
PIXELS_OF = "({{ pixelsOf }}) => pixelsOf({{ row: {}, column: {} }})"
OVERLAP = """([one, other]) =>
    one.x < other.x + other.width && other.x < one.x + one.width &&
    one.y < other.y + other.height && other.y < one.y + one.height"""


def test_a_card_says_both_directions_side_by_side_and_every_state_with_its_reason(visit, scene):
    page = wait_until_drawn(visit.open())
    card = point_at(page, "Glasgow_DATADISK", "RAL_DATADISK")
    assert card.locator("p").first.inner_text() == "from Glasgow_DATADISK to RAL_DATADISK"
    assert card.inner_text().count("Glasgow_DATADISK") == 1
    heads = card.get_by_role("columnheader").all_inner_texts()
    assert heads[:2] == ["this direction", "reverse direction"]
    assert row(card, "mean ± std")[0] == "1.78 ± 0.785 MB/s (2)"
    assert row(card, "mean ± std")[1].startswith("129 ± ")
    assert row(card, "median")[0] == "1.78 MB/s"
    assert row(card, "failed") == ["0 of 2 tests", "0 of 7 tests"]
    assert row(card, "last result")[0] == "10 min ago"
    assert re.search(r"\d+ [A-Z][a-z]{2} \d\d:\d\d:\d\d UTC", card.inner_text())
    for source, destination, words in [
        ("RAL_DATADISK", "Glasgow_DATADISK", "measured"),
        ("RAL_DATADISK", "DESY_DATADISK", "failing since "),
        ("DESY_DATADISK", "RAL_DATADISK", "stale: no result for two intervals"),
        ("Glasgow_DATADISK", "DESY_DATADISK", "untested: scheduled"),
        ("RAL_DATADISK", "DESY_SCRATCHDISK", "down: "),
        ("RAL_DATADISK", "RAL_DATADISK", "not applicable: source and destination are the same"),
    ]:
        card = point_at(page, source, destination)
        expect(card).to_contain_text(f"from {source}")
        expect(card).to_contain_text(words)
        assert not re.search("NaN|null|undefined|None", card.inner_text())


def test_the_asked_statistic_is_said_too_if_it_is_another(visit, scene):
    page = wait_until_drawn(visit.open("/?stat=success"))
    assert row(point_at(page, "RAL_DATADISK", "DESY_DATADISK"), "success")[0] == "0 %"


def test_a_reverse_that_is_not_shown_is_said_to_be_missing(visit, scene):
    page = wait_until_drawn(visit.open("/?source_site=RAL&destination_site=Glasgow"))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(card).to_contain_text("not in this view")


def test_rows_of_sites_and_columns_of_clouds_have_no_reverse(visit, scene):
    page = wait_until_drawn(visit.open("/?rows=site&columns=cloud"))
    expect(point_at(page, "RAL", "UK")).to_contain_text("not in this view")
    page.mouse.click(*place(page, "RAL", "UK"))
    page.wait_for_url("**/?source_site=RAL&destination_cloud=UK")


def test_the_names_stand_before_the_numbers_have_come(visit, scene):
    held: list[Route] = []
    visit.page.route("**/cells/*", holding(held))
    page = visit.open()
    until(page, DRAWN)
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(card).to_contain_text("Loading the numbers …")
    held[0].continue_()
    expect(card).to_contain_text("0 of 7 tests")


def test_numbers_that_do_not_come_are_said_to_be_elsewhere(visit, scene):
    visit.page.route("**/cells/*", lambda route: route.fulfill(status=500))
    page = visit.open()
    until(page, DRAWN)
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(card).to_contain_text("did not load: status 500")
    visit.expect_refusal(500)


def test_the_card_is_neither_off_the_screen_nor_over_its_cell(visit, scene):
    page = wait_until_drawn(visit.open())
    for corner in ((0, 0), (0, 3), (3, 0), (3, 3), (1, 2)):
        page.mouse.move(5, 5)
        expect(page.locator("#card")).to_be_hidden()
        cell = page.evaluate(call("matrix/places", PIXELS_OF.format(*corner)))
        page.mouse.move(cell["left"] + cell["width"] / 2, cell["top"] + cell["height"] / 2)
        expect(page.locator("#card")).to_be_visible()
        card = box_of(page.locator("#card"))
        assert is_on_the_screen(page, card), corner
        cell = {"x": cell["left"], "y": cell["top"], **cell}
        assert not page.evaluate(OVERLAP, [card, cell]), corner


@pytest.mark.parametrize("reader", [Reader("small window", 640, 480)], ids=str)
def test_the_card_is_on_the_screen_of_a_small_window(visit, scene):
    page = wait_until_drawn(visit.open())
    page.locator("#picture").scroll_into_view_if_needed()
    for name in ("DESY_SCRATCHDISK", "RAL_DATADISK"):
        card = point_at(page, "DESY_DATADISK", name)
        assert is_on_the_screen(page, box_of(card))


def test_row_and_column_under_the_pointer_are_marked_and_labels_and_averages_say_their_mean(
    visit, scene
):
    page = wait_until_drawn(visit.open())
    point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    cell_x, cell_y = place(page, "RAL_DATADISK", "Glasgow_DATADISK")
    bands = page.locator(".band")
    for number in range(2):
        expect(bands.nth(number)).to_be_visible()
    across, down = (box_of(band) for band in bands.all())
    assert across["y"] < cell_y < across["y"] + across["height"]
    cells = page.evaluate(f"{PLOT}._fullLayout.xaxis._length")
    assert cells < across["width"] < 1300  # the strip of means too, but not the colour bar
    assert down["x"] < cell_x < down["x"] + down["width"]
    hot = page.locator("#picture text.hot").all_text_contents()
    assert sorted(hot) == ["Glasgow_DATADISK", "RAL_DATADISK"]
    page.mouse.move(5, 5)
    expect(page.locator("#card")).to_be_hidden()
    expect(page.locator(".band").first).to_be_hidden()
    expect(page.locator("#picture text.hot")).to_have_count(0)
    plot = box_of(page.locator("#picture .plot"))
    y = plot["y"] + page.evaluate(AT_AXIS, ["yaxis", "Glasgow_DATADISK"])
    x = plot["x"] + page.evaluate(AT_AXIS, ["xaxis", "RAL_DATADISK"])
    card = page.locator("#card")
    page.mouse.move(plot["x"] + 60, y)
    expect(card).to_have_text("from Glasgow_DATADISKmean of measured cells: 1.78 MB/s")
    strip = page.evaluate(f"{PLOT}._fullLayout.xaxis2._offset + 5")
    page.mouse.move(plot["x"] + strip, y)
    expect(card).to_have_text("from Glasgow_DATADISKmean of measured cells: 1.78 MB/s")
    bottom = page.evaluate(f"{PLOT}._fullLayout.yaxis2._offset + 5")
    page.mouse.move(x, plot["y"] + bottom)
    expect(card).to_contain_text("to RAL_DATADISK")
    top = plot["y"] + page.evaluate(f"{PLOT}._fullLayout.yaxis._offset")
    page.mouse.move(x + 30, top - 25)  # the label leans to the right
    expect(card).to_contain_text("to RAL_DATADISK")
    page.mouse.move(plot["x"] + strip, plot["y"] + bottom)
    expect(card).to_contain_text("all cells")


def test_a_middle_click_opens_another_tab_and_neither_a_drag_nor_what_is_not_applicable_does(
    visit, scene
):
    page = wait_until_drawn(visit.open())
    with page.context.expect_page() as opened:
        page.mouse.click(*place(page, "RAL_DATADISK", "DESY_DATADISK"), button="middle")
    opened.value.wait_for_url("**/links/RAL_DATADISK/DESY_DATADISK/")
    opened.value.close()
    expect(page).to_have_url(visit.base + "/")
    x, y = place(page, "DESY_DATADISK", "Glasgow_DATADISK")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 160, y + 120, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="whole matrix")).to_be_enabled()
    page.get_by_role("button", name="whole matrix").click()
    expect(page.get_by_role("button", name="whole matrix")).to_be_disabled()
    page.mouse.click(*place(page, "RAL_DATADISK", "RAL_DATADISK"))
    page.wait_for_timeout(300)
    expect(page).to_have_url(visit.base + "/")


def test_a_click_on_a_label_shows_its_row_and_column_alone(visit, scene):
    page = wait_until_drawn(visit.open("/?window=24h"))
    plot = box_of(page.locator("#picture .plot"))
    y = page.evaluate(AT_AXIS, ["yaxis", "Glasgow_DATADISK"])
    page.mouse.click(plot["x"] + 60, plot["y"] + y)
    page.wait_for_url("**/?window=24h&endpoint=Glasgow_DATADISK")
