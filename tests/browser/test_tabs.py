"""A site that changed: its answer and its pictures first, and its other parts as tabs."""

import os
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from sonar.models import Condition
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import ALL, by_day_and_night
from tests.browser.pages import assert_still, fits, look, refresh
from tests.browser.readers import (
    LAPTOP,
    NARROW,
    NARROW_DARK,
    SCRIPTLESS,
    SCRIPTLESS_NARROW,
    seen_by,
)
from tests.browser.waiting import until, until_settled
from tests.matrix.world import NOW

SITE = "/sites/UKI-SCOTGRID-GLASGOW/"
# A laptop's screen of 1440 by 900 shows a page of this height in less than three.
HIGHEST = 2500
# Tables of many numbers, which on a telephone are two columns: those that scroll to the side.
TOO_WIDE = """boxes => boxes.filter((box) => box.scrollWidth > box.clientWidth)
    .filter((box) => box.checkVisibility()).map((box) => box.getAttribute("aria-label"))"""


def tab(page: Page, name: str) -> Locator:
    return page.locator(".tabs").get_by_role("link", name=name)


def seen(page: Page) -> list[str]:
    """Return the ids of the parts that can be seen."""
    panels = page.locator(".tabbed > .panel")
    return [panel.get_attribute("id") or "" for panel in panels.all() if panel.is_visible()]


def test_one_part_is_seen_and_clicks_keys_and_addresses_choose_it(visit, changed):
    page = visit.open(SITE)
    until_settled(page)
    assert seen(page) == ["causes"]
    expect(tab(page, "Diagnosis")).to_have_attribute("aria-current", "true")
    before = page.evaluate("scrollY")
    tab(page, "Peers").click()
    assert seen(page) == ["peers"]
    assert page.url.endswith(f"{SITE}#peers")
    assert page.evaluate("scrollY") == before or tab(page, "Peers").is_visible()
    expect(page.locator(".tabs [aria-current]")).to_have_text("Peers")
    tab(page, "Events").focus()
    page.keyboard.press("Enter")
    assert seen(page) == ["history"]
    # A refresh keeps what was chosen, and so does another view of the page.
    refresh(page)
    assert seen(page) == ["history"]
    page.get_by_role("link", name="30d", exact=True).click()
    page.wait_for_url("**?window=30d#history")
    expect(page.get_by_role("link", name="30d", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    assert seen(page) == ["history"]
    expect(page.locator(".tabs [aria-current]")).to_have_text("Events and notes")


@pytest.mark.parametrize(
    ("anchor", "part"), [("peers", "peers"), ("endpoints", "tests"), ("errors", "causes")]
)
def test_an_address_opens_the_part_that_has_what_it_names(visit, changed, anchor, part):
    page = visit.open(f"{SITE}#{anchor}")
    until_settled(page)
    assert seen(page) == [part]
    expect(page.locator(f"#{anchor}")).to_be_in_viewport()


@seen_by(SCRIPTLESS, SCRIPTLESS_NARROW)
def test_without_a_script_all_parts_stand_below_a_table_of_contents(visit, changed):
    page = visit.open(SITE)
    assert seen(page) == [
        link.removeprefix("#")
        for link in page.locator(".tabs a").evaluate_all("links => links.map(link => link.hash)")
    ]
    assert len(seen(page)) == 5
    tab(page, "Tests and endpoints").click()
    expect(page.get_by_role("heading", name="Endpoints")).to_be_in_viewport()
    assert fits(page)


@pytest.mark.long
def test_no_part_makes_the_page_high_and_hardly_anything_moves_by_itself(visit, changed):
    page = visit.page
    visit.log_in(account(Role.ADMINISTRATOR))
    for width in (390, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        for query in ("", "?compare=week", "?window=30d") if width == 1440 else ("",):
            until_settled(visit.open(SITE + query))
            assert_still(page, width, query)
            for link in page.locator(".tabs a").all() if width == 1440 else ():
                link.click()
                height = page.evaluate("document.documentElement.scrollHeight")
                assert height <= HIGHEST, (query, link.inner_text(), height)


WIDTH = "document.querySelector('.site-side').getBoundingClientRect().width"


def test_a_side_is_as_wide_as_long_as_the_other_is_on_its_way(visit, changed):
    page = visit.open(SITE)
    for width in (390, 1024, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(
            "document.body.append(window.other = document.querySelectorAll('.site-side')[1])"
        )
        alone = page.evaluate(WIDTH)
        page.evaluate("document.querySelector('.site-sides').append(window.other)")
        assert page.evaluate(WIDTH) == alone, width


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_each_part_fits_and_breaks_no_rule(visit, changed, reader):
    visit.log_in(account(Role.ADMINISTRATOR))
    page = visit.open(SITE)
    until_settled(page)
    for number, link in enumerate(page.locator(".tabs a").all()):
        link.click()
        assert fits(page)
        assert page.locator(".scroll:has(.folded)").evaluate_all(TOO_WIDE) == []
        part = str(link.get_attribute("href"))
        assert by_day_and_night(page, part if number else ALL) == [], part
        look(page, f"tab-{part[1:]}-{reader}")


SENTENCE = "UKI-SCOTGRID-GLASGOW to DESY-HH fails"

# Pairs of words whose boxes meet, a pixel around each.
MEETING = """(selectors) => {
    const words = [...document.querySelectorAll(selectors)];
    const boxes = words.map((one) => [one.textContent, one.getBoundingClientRect()])
        .filter(([, box]) => box.width);
    return boxes.flatMap(([text, box], at) => boxes.slice(at + 1).filter(([, other]) =>
        box.left - 1 < other.right && other.left - 1 < box.right &&
        box.top - 1 < other.bottom && other.top - 1 < box.bottom
    ).map(([next]) => [text, next]));
}"""


def drawn(page: Page) -> Page:
    until(
        page,
        "(plots => plots.length === 2 && plots.every(plot => plot.querySelector('.js-line')))"
        "([...document.querySelectorAll('.picture .plot')])",
    )
    return page


@seen_by(LAPTOP, NARROW_DARK)
def test_the_answer_stands_first(visit, changed, reader):
    page = drawn(visit.open(SITE))
    look(page, f"changed-{reader}")
    expect(page.locator("#answer")).to_contain_text(SENTENCE)
    bars = page.locator("section[aria-labelledby=as-source] .gauge .now")
    widths = bars.evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    # The link that fails has no rate now.
    assert len(widths) == 9
    assert max(widths) > 40
    assert fits(page)


def test_a_site_is_one_page_of_paper(visit, changed):
    page = drawn(visit.open(SITE))
    paper = page.pdf(format="A4")
    if os.environ.get("SONAR_TEST_PICTURES"):
        page.set_viewport_size({"width": 703, "height": 1032})
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        look(page, "site-print")
        page.emulate_media(media="null")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1


def test_a_refresh_brings_a_new_verdict(visit, changed):
    page = drawn(visit.open(SITE))
    expect(page.locator("#answer")).to_contain_text(SENTENCE)
    Condition.objects.filter(type="failing").update(ended_at=NOW)
    refresh(page)
    expect(page.locator("#answer")).not_to_contain_text("fails")


@pytest.mark.parametrize("query", ["", "?compare=previous", "?window=24h&compare=week"])
def test_ticks_of_rates_failures_and_both_windows_keep_apart(visit, changed, query):
    page = visit.open(SITE + query)
    until_settled(page)
    for end in ("source", "destination"):
        ticks = ("xtick", "x2tick", "ytick", "y2tick")
        of_end = ", ".join(f"#over-time-{end} .{tick} text" for tick in ticks)
        assert page.locator(of_end).count() > 5
        assert page.evaluate(MEETING, of_end) == []
