"""The first look at a site that changed, in a real browser: the answer, pictures, notes, paper."""

import os
import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import fits, look, refresh
from tests.browser.readers import LAPTOP, NARROW_DARK, seen_by
from tests.browser.waiting import until, until_settled
from tests.matrix import world

GLASGOW = "UKI-SCOTGRID-GLASGOW"
SENTENCE = "Slower than usual from 4 of 10 sites (0.30×, since 19 Nov"

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
    page = drawn(visit.open(f"/sites/{GLASGOW}/"))
    look(page, f"changed-{reader}")
    expect(page.locator("#answer")).to_contain_text(SENTENCE)
    bars = page.locator("section[aria-labelledby=as-source] .gauge .now")
    widths = bars.evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
    # The link that fails has no rate now.
    assert len(widths) == 9
    assert max(widths) > 40
    assert fits(page)


def test_a_site_is_one_page_of_paper(visit, changed):
    page = drawn(visit.open(f"/sites/{GLASGOW}/"))
    paper = page.pdf(format="A4")
    if os.environ.get("SONAR_TEST_PICTURES"):
        page.set_viewport_size({"width": 703, "height": 1032})
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        look(page, "site-print")
        page.emulate_media(media="null")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1


def test_a_refresh_brings_a_new_verdict(visit, changed):
    page = drawn(visit.open(f"/sites/{GLASGOW}/"))
    expect(page.locator("#answer")).to_contain_text("1 link is failing")
    for minutes in (3, 2, 1):
        ends = changed.glasgow, changed.partners["DESY-HH"]
        world.transfer(*ends, 12.0, ago=timedelta(minutes=minutes) / 2)
    refresh(page)
    expect(page.locator("#answer")).not_to_contain_text("failing")


@pytest.mark.parametrize("query", ["", "?compare=previous", "?window=24h&compare=week"])
def test_ticks_of_rates_failures_and_both_windows_keep_apart(visit, changed, query):
    page = visit.open(f"/sites/{GLASGOW}/{query}")
    until_settled(page)
    for end in ("source", "destination"):
        ticks = ("xtick", "x2tick", "ytick", "y2tick")
        of_end = ", ".join(f"#over-time-{end} .{tick} text" for tick in ticks)
        assert page.locator(of_end).count() > 5
        assert page.evaluate(MEETING, of_end) == []
