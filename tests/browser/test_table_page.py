"""The table page in a browser: search as you type, filters, order, pages; also without script."""

import re

import pytest
from playwright.sync_api import Page, expect

from sonar.models import Site
from tests.browser.axe import by_day_and_night
from tests.browser.conftest import Standing
from tests.browser.pages import box_of, fits
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.matrix import world

ROWS = ".links tbody tr"


def make() -> None:
    """Ninety links of 2011, to BNL among others."""
    world.make_published()
    Site.objects.filter(name__startswith="UKI").update(cloud="UK")


@pytest.fixture
def published(standing: Standing[None], at_noon: None) -> None:
    standing(make)


def count(page: Page, words: str) -> None:
    expect(page.locator(".count")).to_have_text(words)


def add(page: Page, column: str, value: str, how: str = "") -> None:
    """Fill in the sheet of filters: text, or a number with a bound."""
    page.click("[popovertarget=filters-menu]")
    form = page.get_by_role("form", name=f"Filter by {'number' if how else 'text'}")
    form.locator("[name=filter_column]").select_option(column)
    if how:
        form.locator("[name=filter_how]").select_option(how)
    form.locator("[name=filter_value]").fill(value)
    form.get_by_role("button").click()


def numbers(page: Page) -> list[float]:
    """Return the rates of large files, which stand behind their state."""
    texts = page.locator(f"{ROWS} td.words + td").all_inner_texts()
    return [float(text.split()[0]) for text in texts if text != "–"]


def test_the_search_finds_as_one_types_and_keeps_focus_and_caret(published, visit):
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


def test_what_is_typed_while_an_answer_comes_is_not_lost(published, visit):
    page = visit.open("/table/")
    search = page.get_by_label("Search all columns")
    with page.expect_response(lambda answer: "search=b" in answer.url):
        search.press_sequentially("b")
        page.wait_for_timeout(320)
        search.press_sequentially("nl", delay=5)
    expect(search).to_have_value("bnl")
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")


def test_back_returns_to_the_order_and_the_search_before(published, visit):
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


def test_a_filter_is_added_by_the_sheet_and_taken_away_by_its_chip(published, visit):
    page = visit.open("/table/")
    sheet = page.locator("#filters-menu")
    add(page, "destination.has", "ral")
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")
    expect(sheet).to_be_hidden()
    add(page, "large.mean_mb_s", "10", "min")
    expect(page).to_have_url(re.compile(r"destination\.has=ral&large\.mean_mb_s\.min=10$"))
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator("[popovertarget=filters-menu]")).to_have_text("Filters 2")
    assert min(numbers(page)) >= 10
    add(page, "source.tier.is", "1")
    expect(page.get_by_text("No link matches the search")).to_be_visible()
    page.get_by_role("link", name="from tier 1").click()
    expect(page.locator(".chip")).to_have_count(2)
    page.get_by_role("link", name="large mean rate (MB/s) at least 10").click()
    count(page, "Showing 1 to 9 of 9 links (filtered from 90)")
    page.go_back()
    expect(page.locator(".chip")).to_have_count(2)


def test_a_value_that_cannot_be_is_said_in_the_sheet_and_the_table_stays(published, visit):
    page = visit.open("/table/")
    add(page, "large.ok", "many", "min")
    expect(page.locator("#wrong-filter")).to_have_text(
        "large.ok.min “many” is not a number of 0 or more, for example, 12.5."
    )
    visit.expect_refusal(400)
    expect(page.locator("#filters-menu")).to_be_visible()
    expect(page.locator(ROWS)).to_have_count(50)
    expect(page).to_have_url(f"{visit.base}/table/")
    form = page.get_by_role("form", name="Filter by number")
    form.locator("[name=filter_value]").fill("1")
    form.get_by_role("button").click()
    expect(page).to_have_url(f"{visit.base}/table/?large.ok.min=1")
    count(page, "Showing 1 to 50 of 90 links")


def test_pages_are_turned_and_made_longer(published, visit):
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


def test_a_refresh_keeps_what_is_half_typed_and_where_one_is(published, visit):
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


@seen_by(SCRIPTLESS)
def test_without_a_script_forms_and_links_do_the_same(published, visit):
    page = visit.open("/table/")
    page.get_by_label("Search all columns").fill("bnl")
    page.get_by_role("button", name="Show").last.click()
    page.wait_for_url(f"{visit.base}/table/?search=bnl")
    add(page, "large.mean_mb_s", "5", "max")
    page.wait_for_url(f"{visit.base}/table/?search=bnl&large.mean_mb_s.max=5")
    few = page.locator(ROWS).count()
    assert 0 < few < 9
    page.get_by_role("columnheader", name="large files MB/s").get_by_role("link").click()
    page.wait_for_url(re.compile("ordering=-large.mean_mb_s"))
    assert numbers(page) == sorted(numbers(page), reverse=True)
    assert len(numbers(page)) == few
    page.get_by_role("link", name="search “bnl”").click()
    expect(page.get_by_label("Search all columns")).to_have_value("")


@seen_by(LAPTOP, NARROW)
def test_a_page_of_it_fits_the_screen_and_axe_finds_nothing_grave(published, visit):
    page = visit.open("/table/?per_page=25&page=2")
    assert fits(page)
    assert by_day_and_night(page) == []


def test_few_controls_stand_above_the_rows_whose_head_and_source_stay_where_these_are_scrolled(
    published, visit
):
    page = visit.open("/table/")
    box = page.locator(".links-box")
    box.evaluate("box => box.scrollTo(box.scrollWidth, box.scrollHeight)")
    frame = box_of(box)
    head = box_of(page.locator(".links thead"))
    last = box_of(page.locator(f"{ROWS}:last-child th"))
    assert abs(head["y"] - frame["y"]) < 2
    assert frame["x"] - 2 <= last["x"] <= frame["x"] + frame["width"] / 2
    fields = page.locator("main :is(input, select):visible")
    expect(fields).to_have_count(2)
    page.click("[popovertarget=filters-menu]")
    expect(page.locator("main :is(input, select):visible")).to_have_count(2 + 5)


@seen_by(NARROW)
def test_on_a_phone_each_link_is_a_card_that_leads_to_it(published, visit, reader):
    page = visit.open("/table/?search=bnl&ordering=source")
    card = page.locator(ROWS).first
    expect(card).to_contain_text("LT2-QMUL")
    expect(card.locator("td.words")).to_be_visible()
    expect(card.locator("td.spread:visible")).to_have_count(0)
    box = box_of(card)
    assert box["width"] <= reader.width
    assert box["height"] >= 44
    # Anywhere on it.
    page.mouse.click(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5)
    page.wait_for_url("**/links/UKI-LT2-QMUL_DATADISK/BNL-OSG2_DATADISK/")
