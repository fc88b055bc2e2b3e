"""Three people's ways through the pages: on shift, at a site, and writing a report."""

import csv
import io
import json
import re
import shlex
import subprocess

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.cells import place, point_at, wait_until_drawn
from tests.browser.pages import PLOT, fits, navigate
from tests.browser.readers import (
    COPYING,
    DARK,
    LAPTOP,
    NARROW,
    NARROW_DARK,
    SCRIPTLESS,
    SCRIPTLESS_NARROW,
    seen_by,
)
from tests.browser.scene import Scene
from tests.browser.waiting import until, until_settled
from tests.matrix.sent import MARKUP
from tests.needs import needs

FAILING = ("RAL_DATADISK", "DESY_DATADISK")
# The marks of a drawing stay where the page changes in place: its rows tell which one stands there.
OF_ONE_LINK = f"{PLOT}._fullLayout.yaxis.tickvals.length === 1"
JUMP = "Jump to a site, endpoint or link"
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
with_a_script = seen_by(LAPTOP, NARROW_DARK)
without_script = seen_by(SCRIPTLESS, SCRIPTLESS_NARROW)
everybody = seen_by(LAPTOP, NARROW, SCRIPTLESS)


def heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


# On shift: what is red, and why?


def test_on_shift_from_the_red_cell_to_the_error_of_one_transfer_and_back(visit, scene):
    page = wait_until_drawn(visit.open())
    page.locator("#legend").get_by_role("link", name="failing", exact=True).click()
    page.wait_for_url("**/?only=failing")
    until(page, OF_ONE_LINK)
    card = point_at(page, *FAILING)
    expect(card).to_contain_text("6 of 6 tests")
    page.mouse.click(*place(page, *FAILING))
    page.wait_for_url(f"**{LINK}*")
    read_the_errors(page, scene)
    page.go_back()
    page.go_back()
    page.wait_for_url("**/?only=failing")
    expect(page.locator(".question")).to_contain_text("Mean rate of large-file transfers")


@without_script
def test_on_shift_without_javascript_by_the_table(visit, scene):
    page = visit.open()
    page.locator("#legend").get_by_role("link", name="failing", exact=True).click()
    page.wait_for_url("**/?only=failing")
    page.get_by_role("link", name="RAL_DATADISK to DESY_DATADISK").first.click()
    page.wait_for_url(f"**{LINK}*")
    read_the_errors(page, scene)
    assert fits(page)


def read_the_errors(page: Page, scene: Scene) -> None:
    """Read on the link's page that five transfers have one error, and open the sixth."""
    expect(heading(page)).to_contain_text("RAL_DATADISK")
    groups = page.locator("#overview .causes-of-failure")
    expect(groups).to_contain_text("503 Service Unavailable")
    expect(groups.get_by_role("row", name="503 Service Unavailable")).to_contain_text("5")
    groups.get_by_role("row", name="checksum differs").get_by_role("link").first.click()
    page.wait_for_url(f"**/transfers/{scene.failing}/")
    expect(page.locator("main")).to_contain_text("checksum differs")
    expect(page.locator("main")).not_to_contain_text(MARKUP)  # the name of the worker is internal
    assert fits(page)


@pytest.mark.long
def test_on_shift_with_the_keyboard_alone(visit, scene):
    page = wait_until_drawn(visit.open())
    tab_to(page, page.locator("#legend").get_by_role("link", name="failing", exact=True))
    page.keyboard.press("Enter")
    page.wait_for_url("**/?only=failing")
    until(page, OF_ONE_LINK)
    tab_to(page, page.locator("#picture"))
    page.keyboard.press("Home")
    expect(page.locator("#said")).to_contain_text("from RAL_DATADISK to DESY_DATADISK")
    expect(page.locator("#said")).to_contain_text("failed")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{LINK}*")
    tab_to(page, page.locator(".causes-of-failure").get_by_role("link").first)
    page.keyboard.press("Enter")
    page.wait_for_url("**/transfers/*/")
    page.go_back()  # Alt+Left belongs to the browser's own window, which is not there
    page.go_back()
    page.wait_for_url("**/?only=failing")


def tab_to(page: Page, target: Locator, most: int = 120) -> None:
    """Press Tab until the target has the focus: whoever has no mouse gets there, too."""
    target.wait_for()
    for _ in range(most):
        page.keyboard.press("Tab")
        if target.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"{target} is not reached with {most} times Tab")


# At a site: my row, my column, my worst link.


@pytest.mark.long
@with_a_script
def test_at_a_site_it_is_found_while_typing_and_from_then_on_one_click_away(visit, scene):
    page = visit.open("/table/")
    page.get_by_label(JUMP).press_sequentially("glas", delay=20)
    page.locator("#found").get_by_role("option", name="Glasgow").first.click()
    page.wait_for_url("**/sites/Glasgow/*")
    make_it_mine(page)
    look_at_my_site(page)


@pytest.mark.long
@without_script
def test_at_a_site_without_javascript_by_the_search_page(visit, scene):
    page = visit.open("/table/")
    page.get_by_label(JUMP).fill("disk")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=disk")
    found = page.locator("#found-list").get_by_role("link", name="Glasgow")
    expect(found.first).to_be_visible()
    # What only one site has in its name leads there.
    page.get_by_label("Site, endpoint or link", exact=True).fill("glas")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sites/Glasgow/*")
    make_it_mine(page)
    look_at_my_site(page)
    navigate(page, "My site")
    page.get_by_role("button", name="Unset as my site").click()
    expect(page.get_by_role("link", name="My site")).to_have_count(0)


def make_it_mine(page: Page) -> None:
    page.get_by_role("button", name="Set as my site").click()
    expect(page.get_by_text("my site", exact=True)).to_be_visible()
    page.goto(page.url.split("/sites/")[0] + "/")
    navigate(page, "My site")
    page.wait_for_url("**/sites/Glasgow/*")


def look_at_my_site(page: Page) -> None:
    """See row and column, open the worst link, and come back to the matrix of this site."""
    assert fits(page)
    main = page.locator("main")
    expect(main).to_contain_text("As source")
    expect(main).to_contain_text("As destination")
    main.locator("table.partner-rows a[title='from Glasgow_DATADISK to RAL_DATADISK']").click()
    page.wait_for_url("**/links/Glasgow_DATADISK/RAL_DATADISK/*")
    expect(page.locator("main")).to_contain_text("1.78 ± 0.785")
    page.go_back()
    page.wait_for_url("**/sites/Glasgow/*")
    main.get_by_role("link", name="Matrix of Glasgow").click()
    page.wait_for_url("**/?site=Glasgow*")
    expect(page.locator(".question")).to_contain_text("Glasgow")


# A number for a report.


@everybody
def test_for_a_report_the_csv_is_what_the_table_shows(visit, scene):
    page = visit.open("/table/")
    page.get_by_label("Search all columns").fill("RAL")
    page.keyboard.press("Enter")
    page.wait_for_url("**/table/?search=RAL*")
    expect(page.locator(".count")).to_contain_text("filtered from 12")
    shown = ends_in_table(page)
    assert shown
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert [(row["source"], row["destination"]) for row in rows] == shown
    assert fits(page)


def ends_in_table(page: Page) -> list[tuple[str, str]]:
    """Return both ends of each row, in order."""
    rows = page.locator("main table tbody tr").all()
    paths = [row.locator("a[href^='/links/']").first.get_attribute("href") or "" for row in rows]
    ends = [re.match(r"/links/([^/]+)/([^/]+)/", path) for path in paths]
    return [(found[1], found[2]) for found in ends if found]


@seen_by(COPYING)
def test_for_a_report_the_copied_link_shows_the_same_to_somebody_else(visit, visiting, scene):
    page = wait_until_drawn(visit.open("/?source_cloud=UK&stat=median&order=-average"))
    page.get_by_role("link", name="exactly these numbers").click()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    other = visiting(DARK)
    fresh = other.open(copied.removeprefix(other.base))
    assert " UTC" in fresh.title()
    assert figures(fresh) == figures(page)


def figures(page: Page) -> list[str]:
    wait_until_drawn(page)
    return page.locator("#picture svg text").all_text_contents()


@pytest.mark.long
@seen_by(COPYING)
def test_for_a_report_the_copied_line_for_the_terminal_works(visit, scene):
    needs("curl")
    for path in ("/?source_cloud=UK", "/table/?search=RAL", LINK, "/sites/RAL/"):
        page = visit.open(path)
        page.locator("#export summary").click()
        page.get_by_role("button", name="Copy API call").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        line = page.evaluate("navigator.clipboard.readText()")
        done = subprocess.run(
            [*shlex.split(line), "--silent", "--show-error", "--fail"],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert json.loads(done.stdout), path


@with_a_script
def test_for_a_report_every_picture_can_be_had_as_png(visit, scene):
    for path, name in (
        ("/", "sonar-matrix-20"),
        (LINK, "sonar-links-RAL_DATADISK-DESY_DATADISK-"),
        ("/sites/RAL/", "sonar-sites-RAL-"),
    ):
        page = visit.open(path)
        until_settled(page)
        with page.expect_download() as download:
            page.get_by_role("button", name="PNG", exact=True).first.click()
        assert download.value.suggested_filename.startswith(name)
        assert download.value.path().read_bytes().startswith(b"\x89PNG\r\n")
