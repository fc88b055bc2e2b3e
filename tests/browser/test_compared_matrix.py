"""A matrix that compares: its card, its menu, and what the keyboard says of a cell."""

import random
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.cells import point_at, row, wait_until_drawn
from tests.browser.conftest import Standing
from tests.browser.pages import box_of, fits, is_on_the_screen, look
from tests.browser.readers import NARROW, seen_by
from tests.browser.waiting import until
from tests.matrix import world
from tests.matrix.world import HOUR, World

DAY = timedelta(days=1)
COMPARED = "/?window=24h&compare=previous"


def make() -> World:
    """From RAL to Glasgow at half the rate of the day before; too few the other way."""
    made, draws = world.make(), random.Random(9)
    with world.transfers() as some:
        for number in range(12):
            noise, ago = draws.lognormvariate(0, 0.04), (1 + number) * HOUR
            some.add(made.ral, made.glasgow, 40 * noise, ago=ago)
            some.add(made.ral, made.glasgow, 80 / noise, ago=DAY + ago)
        for number in range(2):
            some.add(made.glasgow, made.ral, 10.0, ago=(1 + number) * HOUR)
    return made


@pytest.fixture
def changed(standing: Standing[World], at_noon: None) -> World:
    return standing(make)


def test_the_card_has_both_sides_of_both_directions_and_nothing_stands_on_anything_else(
    visit, changed
):
    page = wait_until_drawn(visit.open(COMPARED))
    card = point_at(page, "RAL_DATADISK", "Glasgow_DATADISK")
    here, few = row(card, "median, the last 24 hours")
    assert here.endswith(" MB/s (12)")
    assert 38 < float(here.split()[0]) < 42
    assert few == "10.0 MB/s (2)"
    there, none = row(card, "median, the 24 hours before")
    assert 76 < float(there.split()[0]) < 84
    assert none == "–"
    ratio, no_ratio = row(card, "ratio")
    assert ratio.startswith(("0.49× (", "0.50× (", "0.51× ("))
    assert no_ratio == "–"
    change = row(card, "change")
    assert change == ["significantly slower, p < 0.001", "too few results to compare"]
    look(page, f"compared-card-{visit.reader}")
    for line in card.locator("tbody").first.get_by_role("row").all():
        head = box_of(line.get_by_role("rowheader"))
        cell = box_of(line.get_by_role("cell").first)
        assert head["x"] + head["width"] <= cell["x"] + 1
        inner = line.get_by_role("rowheader").evaluate("it => [it.scrollWidth, it.clientWidth]")
        assert inner[0] <= inner[1] + 1, line.inner_text()


@seen_by(NARROW)
def test_the_menu_fits_a_telephone(visit, changed):
    page = wait_until_drawn(visit.open(COMPARED))
    page.click("[popovertarget=controls]")
    page.click("[popovertarget=compare-menu]")
    look(page, "compared-menu-narrow")
    assert fits(page)
    box = box_of(page.locator("#compare-menu"))
    assert is_on_the_screen(page, box)


def test_the_keyboard_says_the_ratio_of_a_cell(visit, changed):
    page = wait_until_drawn(visit.open(COMPARED))
    page.focus("#picture")
    page.keyboard.press("End")
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+Home")
    said = page.locator("#said")
    for _ in range(16):
        if "from RAL_DATADISK to Glasgow_DATADISK" in said.inner_text():
            break
        page.keyboard.press("ArrowRight" if "RAL" in said.inner_text() else "ArrowDown")
    expect(said).to_contain_text("from RAL_DATADISK to Glasgow_DATADISK: 0.")
    page.keyboard.press("Space")
    link = page.locator("#card a", has_text="Open this link")
    expect(link).to_have_attribute(
        "href", "/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h&compare=previous"
    )


def test_the_menu_compares_by_click_and_by_its_form(visit, changed):
    page = wait_until_drawn(visit.open("/?window=24h"))
    page.click("[popovertarget=compare-menu]")
    page.click("#compare-menu >> text=the 24 hours before")
    expect(page.locator("h1")).to_contain_text("1 link slower")
    assert page.url.endswith(COMPARED)
    expect(page.locator(".chip")).to_contain_text("compared with the 24 hours before")
    page.click(".chip")
    expect(page.locator(".chip")).to_have_count(0)
    page.click("[popovertarget=compare-menu]")
    page.select_option("#compare-menu [name='compare.size']", "small")
    page.click("#compare-menu button")
    until(page, "location.search === '?window=24h&compare.size=small'")
