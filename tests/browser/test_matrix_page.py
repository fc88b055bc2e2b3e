"""The matrix page in a real browser: what is drawn, its controls, and its refreshing."""

import struct
from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.cells import place, point_at, wait_until_drawn
from tests.browser.conftest import Standing
from tests.browser.pages import PLOT, box_of, holding, refresh, wait_for_turns
from tests.browser.readers import DARK, LAPTOP, seen_by
from tests.browser.waiting import until, until_so
from tests.matrix import world

pytestmark = pytest.mark.usefixtures("at_noon")
# What survives where the page is changed in place, and not where it is loaded anew.
MARK = "window.marked = true"
MARKED = "window.marked === true"
ZOOM = f"['xaxis', 'yaxis'].flatMap((name) => {PLOT}.layout[name].range).map(Math.round)"


def make() -> world.World:
    made = world.make()
    world.transfer(made.ral, made.glasgow, 10.0)
    world.transfer(made.ral, made.glasgow, 14.0)
    world.transfer(made.glasgow, made.ral, 1.23)
    world.transfer(made.ral, made.desy, None)
    world.transfer(made.desy, made.ral, 5.0, ago=timedelta(hours=5))
    return made


@pytest.fixture
def small_world(standing: Standing[world.World], at_noon: None) -> world.World:
    return standing(make)


def drawn_texts(page: Page) -> list[str]:
    texts: list[str] = page.locator("#picture svg text").all_text_contents()
    return texts


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag the pointer between two points, given as parts of the width and height of the cells."""
    cells = "#picture .xy .nsewdrag, #picture .nsewdrag[data-subplot=xy]"
    box = box_of(page.locator(cells).first)
    for (across, down), act in ((start, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=4)
        act()


def show(page: Page, label: str) -> None:
    """Choose what the cells show."""
    page.locator("[popovertarget=show-menu]").click()
    page.locator("#show-menu a", has_text=label).first.click()


def test_cells_averages_and_both_directions_take_most_of_a_laptop_screen(visit, small_world):
    page = visit.go()
    texts = drawn_texts(page)
    assert texts.count("12.0") == 3  # the cell, and the mean of its row and of its column
    assert "1.23" in texts
    assert "6.08" in texts  # the mean of 12.0, 1.23 and 5.00
    assert "to (destination endpoint)" in texts
    assert "from (source endpoint)" in texts
    assert texts.count("mean") == 2
    assert "MB/s" in texts
    box = box_of(page.locator("#picture"))
    assert box["width"] >= 0.7 * 1440
    assert box["height"] >= 0.6 * 900
    assert box_of(page.locator("#legend"))["y"] < 900


def test_dark_mode_recolours_page_and_picture_without_a_reload(visit, small_world):
    page = visit.go()
    paper = "getComputedStyle(document.body).backgroundColor"
    drawn = "getComputedStyle(document.querySelector('#picture svg.main-svg')).backgroundColor"
    assert page.evaluate(paper) == page.evaluate(drawn) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    until(page, f"{drawn} === 'rgb(20, 24, 29)'")
    until(page, f"{paper} === 'rgb(20, 24, 29)'")


@pytest.mark.long
def test_controls_change_the_view_in_place_and_back_and_forward_go_through_it(visit, small_world):
    page = visit.go()
    page.evaluate(MARK)
    show(page, "95th percentile")
    page.wait_for_url("**/?stat=p95")
    page.get_by_role("link", name="24h").click()
    page.wait_for_url("**/?window=24h&stat=p95")
    heading = page.locator(".question")
    expect(heading).to_contain_text("95th percentile of the rate for large")
    expect(heading).to_contain_text("24 hours")
    assert page.evaluate(MARKED)
    page.go_back()
    page.wait_for_url("**/?stat=p95")
    expect(heading).to_contain_text("7 days")
    wait_until_drawn(page)
    page.go_back()
    page.wait_for_url(visit.base + "/")
    expect(page.locator("[popovertarget=show-menu]")).to_have_text("show mean")
    wait_until_drawn(page)
    page.go_forward()
    expect(page.locator("[popovertarget=show-menu]")).to_have_text("show 95th percentile")


def test_a_custom_window_is_asked_for_in_utc(visit, small_world):
    page = visit.go()
    page.locator("[popovertarget=dates-menu]").click()
    begin = page.get_by_label("start", exact=True)
    begin.fill("1.11.2026 4 pm")
    page.get_by_role("button", name="Show this time range").click()
    expect(page.locator("#page")).to_contain_text("“1.11.2026 4 pm” is not a valid time")
    visit.expect_refusal(400)
    visit.go()
    page.locator("[popovertarget=dates-menu]").click()
    begin.fill("2026-11-01 16:00")
    page.get_by_label("end", exact=True).fill("2100-01-01 00:00:30")
    page.get_by_role("button", name="Show this time range").click()
    page.wait_for_url("**/?from=2026-11-01T16:00:00Z&to=2100-01-01T00:00:30Z")


def test_only_failing_is_one_click_and_colours_can_be_chosen(visit, small_world):
    page = visit.go()
    page.locator("#legend").get_by_role("link", name="failed").click()
    page.wait_for_url("**/?only=failed")
    until(page, f"{PLOT}._fullLayout.yaxis.tickvals.length === 1")
    page.get_by_role("link", name="magma").click()
    page.wait_for_url("**/?only=failed&palette=magma")
    until(page, f"{PLOT}.layout.coloraxis.colorscale[0][1] === '#000004'")
    # It is remembered where the address names none.
    visit.go("/?stat=max")
    assert page.url.endswith("/?stat=max&palette=magma")


def test_a_transposed_matrix_has_its_destinations_as_rows(visit, small_world):
    page = visit.go()
    page.get_by_role("link", name="transpose").click()
    page.wait_for_url("**/?transpose=1")
    until(page, f"{PLOT}.layout.yaxis.title.text.startsWith('to ')")
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    expect(card).to_contain_text("from RAL_DATADISK")
    expect(card).to_contain_text("12.0 ± 2.83 MB/s")
    page.mouse.click(*place(page, "RAL_DATADISK", "Glasgow_DATADISK"))
    page.wait_for_url("**/links/RAL_DATADISK/Glasgow_DATADISK/")


def test_fields_show_what_counts_after_a_chip_is_dropped(visit, small_world):
    page = visit.go()
    page.locator("[popovertarget=more]").click()
    failed = page.get_by_label("failed (1)")
    failed.check()
    page.wait_for_url("**/?only=failed")
    age = page.get_by_label("last success less than")
    age.fill("6h")
    age.press("Enter")
    page.wait_for_url("**/?max_age=6h&only=failed")
    page.keyboard.press("Escape")
    expect(page.locator("[popovertarget=more]")).to_be_focused()
    page.get_by_role("link", name="only failed").click()
    page.wait_for_url("**/?max_age=6h")
    expect(failed).not_to_be_checked()


def test_a_refresh_brings_new_results_and_keeps_zoom_focus_scroll_and_what_is_open(
    visit, small_world
):
    page = visit.go()
    before = page.evaluate(ZOOM)
    drag(page, (0.3, 0.3), (0.9, 0.9))
    until(page, f"JSON.stringify({ZOOM}) !== '{str(before).replace(' ', '')}'")
    zoomed = page.evaluate(ZOOM)
    page.get_by_text("Matrix as a table").click()
    page.locator("[popovertarget=show-menu]").focus()
    page.evaluate("scrollTo(0, 120)")
    world.transfer(small_world.glasgow, small_world.ral, 7.77)
    world.transfer(small_world.glasgow, small_world.desy, 3.21)
    refresh(page)
    expect(page.locator("#picture svg text", has_text="4.50").first).to_be_attached()
    expect(page.locator("#legend")).to_contain_text("measured 3")
    expect(page.locator("#table td", has_text="3.21").first).to_be_visible()
    assert page.evaluate(ZOOM) == zoomed
    assert page.evaluate("scrollY") == 120
    expect(page.locator("[popovertarget=show-menu]")).to_be_focused()


def test_the_picture_stays_where_a_refresh_fails_a_slow_answer_is_cancelled_or_the_server_errs(
    visit, small_world
):
    page = visit.go()
    page.route(visit.base + "/", lambda route: route.fulfill(status=503))
    refresh(page)
    expect(page.locator("#updated")).to_have_class("late")
    expect(page.get_by_role("alert")).to_contain_text("has not been refreshed since")
    assert "12.0" in drawn_texts(page)
    visit.expect_refusal(503)
    page.unroute_all()
    refresh(page)
    expect(page.locator("#updated")).not_to_have_class("late")
    expect(page.locator("#trouble")).to_be_hidden()
    held: list[Route] = []
    page.route("**/?stat=max*", holding(held))
    show(page, "highest")
    expect(page.get_by_text("Working …")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Working …")).to_be_hidden()
    expect(page).to_have_url(visit.base + "/")
    assert "12.0" in drawn_texts(page)
    page.route("**/?window=24h", lambda route: route.fulfill(status=500, body="<h1>Broken</h1>"))
    page.get_by_role("link", name="24h").click()
    expect(page.get_by_role("alert")).to_contain_text("the server answered with status 500")
    expect(page.get_by_role("alert")).to_contain_text("The page is unchanged")
    expect(page).to_have_url(visit.base + "/")
    assert "12.0" in drawn_texts(page)
    visit.expect_refusal(500)


def test_the_newest_question_counts_even_if_an_older_one_is_answered_later(visit, small_world):
    page = visit.go()
    held: list[Route] = []
    page.route("**/?window=1h", holding(held))
    page.locator("[popovertarget=dates-menu]").click()
    page.locator("#dates-menu").get_by_role("link", name="the last hour").click()
    until_so(page, lambda: bool(held), "the first question is asked")
    page.get_by_role("link", name="24h").click()
    page.wait_for_url("**/?window=24h")
    expect(page.locator(".question")).to_contain_text("24 hours")
    held[0].continue_()
    page.wait_for_timeout(1500)
    expect(page).to_have_url(visit.base + "/?window=24h")
    expect(page.locator(".question")).to_contain_text("24 hours")


@seen_by(LAPTOP, DARK)
def test_the_png_is_the_picture_at_twice_its_size_with_heading_and_legend(visit, scene, tmp_path):
    page = wait_until_drawn(visit.open())
    box = box_of(page.locator("#picture .plot"))
    with page.expect_download() as started:
        page.get_by_role("button", name="PNG").click()
    saved = tmp_path / "matrix.png"
    started.value.save_as(saved)
    assert started.value.suggested_filename.startswith("sonar-matrix-20")
    assert saved.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", saved.read_bytes()[16:24])
    assert width == 2 * round(box["width"])
    assert 2 * box["height"] + 100 < height < 2 * box["height"] + 400
    expect(page.get_by_role("button", name="PNG")).to_be_enabled()


def test_labels_thin_out_until_the_reader_zooms_in(visit, real_commits):
    site = world.Site.objects.create(name="Many")
    places = [world.endpoint(f"node-{number:03d}", site) for number in range(70)]
    mesh = world.Mesh.objects.create(name="ring")
    world.schedule(mesh, *((one, other) for one in places[:2] for other in places if one != other))
    page = visit.go("/?rows=endpoint")
    shown = f"{PLOT}.layout.xaxis.ticktext.length"
    assert page.evaluate(shown) < 70
    page.evaluate(f"Plotly.relayout({PLOT}, {{'xaxis.range': [-0.5, 9.5]}})")
    until(page, f"{shown} === 70")
    page.get_by_role("button", name="whole matrix").click()
    until(page, f"{shown} < 70")
    expect(page.get_by_role("button", name="whole matrix")).to_be_disabled()


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


# The Content-Security-Policy, tried.
TRY_ALL = """async () => {
    window.ran = [];
    const add = (markup) => document.body.append(
        document.createRange().createContextualFragment(markup));
    add("<script>ran.push('inline script')</script>");
    add("<img src='/nothing.png' onerror=\\"ran.push('handler')\\">");
    add("<a id=leads href=\\"javascript:ran.push('address')\\">x</a>");
    document.getElementById("leads").click();
    add("<script src='https://elsewhere.invalid/x.js'></script>");
    await fetch("https://elsewhere.invalid/").catch(() => {});
}"""
REFUSALS = (
    "Executing inline script violates the following Content Security Policy",
    "Executing inline event handler violates the following Content Security Policy",
    "Running the JavaScript URL violates the following Content Security Policy",
    "Loading the script 'https://elsewhere.invalid/x.js' violates the following Content Security P",
    "Connecting to 'https://elsewhere.invalid/' violates the following Content Security Policy",
    "Fetch API cannot load https://elsewhere.invalid/",
)


def test_what_somebody_might_smuggle_into_a_page_does_not_run(visit, scene):
    page = visit.go("/")
    page.evaluate(TRY_ALL)
    visit.expect_refusal(404)  # the handler of the picture is tried once the server has none
    for refusal in REFUSALS:
        visit.expect_error(refusal)
    assert page.evaluate("ran") == []
    visit.hosts.discard("elsewhere.invalid")  # Playwright tells of what the browser refused, too
