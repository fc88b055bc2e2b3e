"""The table page in a browser: search as you type, filters, order, pages; also without script."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from sonar.models import Site
from tests.browser.axe import violations
from tests.browser.conftest import Visit
from tests.browser.readers import DARK, LAPTOP, NARROW, NARROW_DARK, SCRIPTLESS, Reader, seen_by
from tests.matrix import world

ROWS = ".links tbody tr"


@pytest.fixture
def published(real_commits: None, at_noon: None) -> None:
    """Ninety links of 2011, to BNL among others."""
    world.make_published()
    Site.objects.filter(name__startswith="UKI").update(cloud="UK")


def count(page: Page, words: str) -> None:
    expect(page.locator(".count")).to_have_text(words)


def numbers(page: Page) -> list[float]:
    """Return the rates of large files, which stand behind their state."""
    texts = page.locator(f"{ROWS} td:nth-child(9)").all_inner_texts()
    return [float(text.split()[0]) for text in texts if text != "–"]


def test_the_search_finds_as_one_types_and_keeps_focus_and_caret(
    published: None, visit: Visit
) -> None:
    page = visit.open("/table/")
    count(page, "Showing 1 to 50 of 90 links")
    search = page.get_by_label("Search all columns")
    search.press_sequentially("nl glas")
    count(page, "Showing 1 to 1 of 1 link (filtered from 90)")
    search.press("Home")
    search.press("b")
    expect(page.locator(".chip")).to_contain_text("search “bnl glas”")
    expect(page).to_have_url(f"{visit.base}/table/?search=bnl+glas")
    expect(search).to_be_focused()
    expect(search).to_have_value("bnl glas")
    assert search.evaluate("field => field.selectionStart") == 1
    expect(page.locator(ROWS)).to_have_count(1)


def test_what_is_typed_while_an_answer_comes_is_not_lost(published: None, visit: Visit) -> None:
    page = visit.open("/table/")
    search = page.get_by_label("Search all columns")
    with page.expect_response(lambda answer: "search=b" in answer.url):
        search.press_sequentially("b")
        page.wait_for_timeout(320)
        search.press_sequentially("nl", delay=5)
    expect(search).to_have_value("bnl")
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")


def test_back_returns_to_the_order_and_the_search_before(published: None, visit: Visit) -> None:
    page = visit.open("/table/")
    page.get_by_label("Search all columns").fill("bnl")
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")
    page.get_by_role("columnheader", name="large files MB/s").get_by_role("link").click()
    expect(page).to_have_url(f"{visit.base}/table/?search=bnl&ordering=-large.mean_mb_s")
    head = page.get_by_role("columnheader", name="large files MB/s")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert numbers(page) == sorted(numbers(page), reverse=True)
    assert len(numbers(page)) == 9
    head.get_by_role("link").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.go_back()
    expect(head).to_have_attribute("aria-sort", "descending")
    page.wait_for_load_state()
    page.go_back()
    expect(page).to_have_url(f"{visit.base}/table/?search=bnl")
    expect(page.get_by_label("Search all columns")).to_have_value("bnl")
    expect(page.get_by_role("columnheader", name="large files MB/s")).not_to_have_attribute(
        "aria-sort", "descending"
    )
    page.wait_for_load_state()
    page.go_forward()
    expect(page.get_by_role("columnheader", name="large files MB/s")).to_have_attribute(
        "aria-sort", "descending"
    )


def test_columns_are_narrowed_and_what_is_dropped_leaves_its_field(
    published: None, visit: Visit
) -> None:
    page = visit.open("/table/")
    page.get_by_label("endpoint of the destination contains").fill("ral")
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")
    page.get_by_label("large MB/s at least").fill("10")
    expect(page).to_have_url(re.compile(r"destination\.has=ral&large\.mean_mb_s\.min=10$"))
    expect(page.locator(".chip")).to_have_count(2)
    assert min(numbers(page)) >= 10
    page.get_by_label("tier of the source").fill("1")
    expect(page.get_by_text("No link matches the search")).to_be_visible()
    page.get_by_role("link", name="from tier 1").click()
    expect(page.get_by_label("tier of the source")).to_have_value("")
    page.get_by_role("link", name="large MB/s at least 10").click()
    expect(page.get_by_label("large MB/s at least")).to_have_value("")
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")


def test_a_value_that_cannot_be_is_said_beside_the_table_that_stays(
    published: None, visit: Visit
) -> None:
    page = visit.open("/table/")
    page.get_by_label("large ok at least").fill("many")
    expect(page.locator("#wrong")).to_have_text(
        "large.ok.min “many” is not a number from 0 on, like 12.5."
    )
    visit.expect_refusal(400)
    expect(page.locator(ROWS)).to_have_count(50)
    expect(page).to_have_url(f"{visit.base}/table/")
    page.get_by_label("large ok at least").fill("1")
    expect(page).to_have_url(f"{visit.base}/table/?large.ok.min=1")
    count(page, "Showing 1 to 50 of 90 links")
    expect(page.locator("#wrong")).to_be_empty()


def test_pages_are_turned_and_made_longer(published: None, visit: Visit) -> None:
    page = visit.open("/table/?per_page=25")
    pager = page.get_by_role("navigation", name="Pages of the table")
    pager.get_by_role("link", name="page 3").click()
    count(page, "Showing 51 to 75 of 90 links")
    pager.get_by_role("link", name="next").click()
    count(page, "Showing 76 to 90 of 90 links")
    expect(pager.get_by_role("link", name="next")).to_have_count(0)
    page.get_by_label("rows per page").select_option("100")
    count(page, "Showing 1 to 90 of 90 links")
    expect(page).to_have_url(f"{visit.base}/table/?per_page=100")
    expect(pager).to_have_count(0)


def test_a_refresh_keeps_what_is_half_typed_and_where_one_is(published: None, visit: Visit) -> None:
    page = visit.open("/table/")
    page.locator(".links-box").evaluate("box => { box.scrollTop = 300; }")
    search = page.get_by_label("Search all columns")
    search.evaluate("field => { field.focus(); field.value = 'half'; }")
    with page.expect_response(f"{visit.base}/table/"):
        page.evaluate("htmx.trigger('#live', 'refresh')")
    page.wait_for_timeout(100)
    expect(search).to_have_value("half")
    expect(search).to_be_focused()
    assert page.locator(".links-box").evaluate("box => box.scrollTop") == 300


def test_a_row_leads_to_its_link(published: None, visit: Visit) -> None:
    page = visit.open("/table/?search=bnl")
    first = page.locator(ROWS).first.get_by_role("link").first
    expect(first).to_have_attribute("href", "/links/UKI-LT2-QMUL_DATADISK/BNL-OSG2_DATADISK/")
    assert first.inner_text().split("\n")[0].startswith("UKI-LT2-QMUL")


@pytest.mark.parametrize("reader", [SCRIPTLESS], ids=str)
def test_without_a_script_forms_and_links_do_the_same(published: None, visit: Visit) -> None:
    page = visit.open("/table/")
    page.get_by_label("Search all columns").fill("bnl")
    page.get_by_label("large MB/s at most").fill("5")
    page.get_by_role("button", name="Show").last.click()
    page.wait_for_url(f"{visit.base}/table/?search=bnl&large.mean_mb_s.max=5")
    few = page.locator(ROWS).count()
    assert 0 < few < 9
    page.get_by_role("columnheader", name="large files MB/s").get_by_role("link").click()
    page.wait_for_url(re.compile("ordering=-large.mean_mb_s"))
    assert numbers(page) == sorted(numbers(page), reverse=True)
    assert len(numbers(page)) == few
    page.get_by_role("link", name="search “bnl”").click()
    expect(page.get_by_label("Search all columns")).to_have_value("")


@seen_by(LAPTOP, DARK, NARROW, NARROW_DARK)
def test_it_fits_the_screen_and_axe_finds_nothing_grave(
    published: None, visit: Visit, reader: Reader
) -> None:
    for path in ("/table/", "/table/?search=nothing", "/table/?per_page=25&page=2"):
        page = visit.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= reader.width
        assert violations(page) == []


@seen_by(LAPTOP, NARROW)
def test_head_and_source_stay_in_sight_where_the_box_is_scrolled(
    published: None, visit: Visit, reader: Reader
) -> None:
    page = visit.open("/table/")
    box = page.locator(".links-box")
    box.evaluate("box => box.scrollTo(box.scrollWidth, box.scrollHeight)")
    frame = box.bounding_box()
    head = page.locator(".links thead").bounding_box()
    last = page.locator(f"{ROWS}:last-child th").bounding_box()
    assert frame is not None
    assert head is not None
    assert last is not None
    assert abs(head["y"] - frame["y"]) < 2
    assert frame["x"] - 2 <= last["x"] <= frame["x"] + frame["width"] / 2
