"""Words at the axes of pictures: none lies over or against another."""

import pytest
from playwright.sync_api import Page

from tests.browser.cells import wait_until_drawn
from tests.browser.conftest import Standing
from tests.browser.pages import box_of
from tests.browser.test_tasks import Shift, make
from tests.browser.waiting import until_settled

SITE = "/sites/UKI-SCOTGRID-GLASGOW/"
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


@pytest.fixture
def shift(standing: Standing[Shift], at_noon: None) -> Shift:
    return standing(make)


def meeting(page: Page, selectors: str) -> list[list[str]]:
    pairs: list[list[str]] = page.evaluate(MEETING, selectors)
    return pairs


@pytest.mark.parametrize("query", ["", "?compare=previous", "?window=24h&compare=week"])
def test_ticks_of_rates_failures_and_both_windows_keep_apart(visit, changed, query):
    page = visit.open(SITE + query)
    until_settled(page)
    for end in ("source", "destination"):
        ticks = ("xtick", "x2tick", "ytick", "y2tick")
        of_end = ", ".join(f"#over-time-{end} .{tick} text" for tick in ticks)
        assert page.locator(of_end).count() > 5
        assert meeting(page, of_end) == []


def test_the_unit_of_the_colours_keeps_off_their_highest_tick(visit, shift):
    page = wait_until_drawn(visit.go("/"))
    bar = page.locator("#picture .colorbar")
    unit = box_of(bar.locator(".cbtitle tspan").first)
    top = box_of(bar.get_by_text("▲"))
    assert unit["y"] + unit["height"] + 2 <= top["y"]
