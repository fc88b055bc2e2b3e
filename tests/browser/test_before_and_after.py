"""Before and after a moment: asked in words, on the strip and by a note, answered where one looks.

Each number that a sentence states is worked out once more from the rows of the database.
"""

import re
from datetime import datetime, timedelta

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from sonar.models import Transfer
from sonar.notation.windows import Window, format_time
from tests.browser.cells import wait_until_drawn
from tests.browser.pages import Hand, box_of, fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.test_time_strip import strip
from tests.matrix.changed_site import CHANGED, NOTED
from tests.matrix.test_site_comparison import interval_by_hand, rates, shift_by_hand
from tests.matrix.world import HOUR, NOW

GLASGOW = "UKI-SCOTGRID-GLASGOW"
SITE = f"/sites/{GLASGOW}/"
END = NOW.replace(second=0) + timedelta(minutes=1)
FACTOR = r"([\d.]+)× \(([\d.]+)–([\d.]+)\), ([a-z ]+): (\d+) tests (\w+) and (\d+) before"


def links_at(end: str) -> list[tuple[str, str]]:
    """Return the links that have the site at this end, by the names of their ends."""
    ends = Transfer.objects.values_list("source__name", "destination__name").distinct()
    own = 0 if end == "source" else 1
    return sorted(pair for pair in ends if pair[own].startswith(GLASGOW))


def check(said: str, end: str, own: Window, other: Window) -> tuple[str, int]:
    """Compare a sentence with rows; return its verdict, and how many tests are after."""
    match = re.search(FACTOR, said)
    assert match, said
    ratio, low, high = map(float, match.groups()[:3])
    verdict, after, _, before = match.groups()[3:]
    links = links_at(end)
    sides = [[rates(*link, side) for link in links] for side in (own, other)]
    counts = [sum(map(len, side)) for side in sides]
    assert [int(after), int(before)] == counts
    # As far as two digits say.
    expected = interval_by_hand(links, own, other)
    assert (ratio, low, high) == pytest.approx(expected, abs=0.006, rel=0.05)
    return verdict, counts[0]


def around(moment: datetime) -> tuple[Window, Window]:
    length = min(END - moment, timedelta(days=7))
    return Window(moment, moment + length), Window(moment - length, moment)


def find(on: Hand, name: str) -> None:
    """Go to a site by typing its name, which counts as a click."""
    on.clicks += 1
    on.page.keyboard.press("/")
    on.page.keyboard.type(name)
    expect(on.page.locator("#found [role=option]").first).to_contain_text(name)
    on.page.keyboard.press("ArrowDown")
    on.page.keyboard.press("Enter")
    on.page.wait_for_url(f"**/sites/{name}/")


def ask(page: Page, words: str) -> None:
    field = page.locator("#compare-menu [name='compare.around']")
    field.fill(words)
    field.press("Enter")


def covered(page: Page, what: str) -> bool:
    """Say whether anything lies over the middle of an element."""
    over = "e => !e.contains(document.elementFromPoint(...(({x, y, width, height}) => "
    over += "[x + width / 2, y + height / 2])(e.getBoundingClientRect())))"
    return bool(page.locator(what).evaluate(over))


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_did_what_we_changed_yesterday_at_20_15_help(visit, changed):
    on = Hand(wait_until_drawn(visit.go()))
    find(on, GLASGOW)
    on.click(on.page.locator("[popovertarget=compare-menu]"))
    on.clicks += 1
    ask(on.page, "yesterday 20:15")
    on.page.wait_for_url("**from=2026-11-19T20:15:00Z**")
    assert on.clicks == 3
    answer = on.page.locator("#comparison")
    expect(answer).to_contain_text(f"{GLASGOW} received at")
    expect(on.page.locator("#compare-menu")).to_be_hidden()
    assert not covered(on.page, "#comparison")
    first = box_of(on.page.locator("#answer"))
    box = box_of(answer)
    assert box["y"] + box["height"] <= first["y"]
    look(on.page, f"before-after-site-{visit.reader.name}")
    received, sent = answer.locator("p:not(.rest)").all_inner_texts()
    assert check(received, "destination", *around(CHANGED)) == ("slower", 39)
    assert check(sent, "source", *around(CHANGED))[0] != "slower"
    assert fits(on.page)


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_has_the_site_drifted_in_a_month(visit, changed):
    on = Hand(wait_until_drawn(visit.go()))
    find(on, GLASGOW)
    on.link("30d")
    on.page.wait_for_url("**window=30d")
    assert on.clicks == 2
    middle = END - timedelta(days=15)
    halves = Window(middle, END), Window(END - timedelta(days=30), middle)
    for end in ("source", "destination"):
        said = on.page.locator(f"section[aria-labelledby=as-{end}] .drift").inner_text()
        verdict, after = check(said, end, *halves)
        assert (verdict, after > 800) == ("about the same", True)
    look(on.page, f"before-after-drift-{visit.reader.name}")
    on.page.locator("section[aria-labelledby=as-source] .drift a").click()
    on.page.wait_for_url(f"**from={format_time(middle)}**")
    _, sent = on.page.locator("#comparison p:not(.rest)").all_inner_texts()
    assert check(sent, "source", *halves)[0] == "about the same"


def test_all_links_together_are_said_above_the_matrix(visit, changed):
    on = Hand(wait_until_drawn(visit.go()))
    on.click(on.page.locator("[popovertarget=compare-menu]"))
    on.clicks += 1
    ask(on.page, "yesterday 20:15")
    said = on.page.locator("#answer .together")
    expect(said).to_contain_text("links with tests on both sides, combined: 0.")
    assert on.clicks == 2
    expect(on.page.locator("#compare-menu")).to_be_hidden()
    wait_until_drawn(on.page)
    look(on.page, "before-after-matrix")
    match = re.search(FACTOR, said.inner_text())
    assert match
    own, other = around(CHANGED)
    links = [*links_at("source"), *links_at("destination")]
    sides = [[rates(*link, side) for link in links] for side in (own, other)]
    shift = shift_by_hand(*sides).log
    assert float(match[1]) == pytest.approx(np.exp(shift), abs=0.006)
    both = [pair for pair in zip(*sides, strict=True) if all(pair)]
    assert int(match[5]) == sum(len(pair[0]) for pair in both)


@pytest.mark.long
def test_a_note_leads_to_what_its_row_says(visit, changed):
    page = visit.open(f"{SITE}#effects")
    row = page.get_by_role(
        "region", name="Rates before and after each note (scrollable)", exact=True
    ).locator("tbody tr")
    cells = [words.strip() for words in row.locator("td").all_inner_texts()]
    row.get_by_role("link").click()
    page.wait_for_url(f"**from={format_time(NOTED)}**")
    sentences = page.locator("#comparison p:not(.rest)").all_inner_texts()
    for end, (factor, verdict, counts), said in zip(
        ("destination", "source"), (cells[1:4], cells[4:7]), sentences, strict=True
    ):
        after, before = counts.split(", ")
        assert f"{factor}, {verdict}: {after} tests after and {before} before" in said
        check(said, end, *around(NOTED))


@pytest.mark.long
def test_an_hour_of_the_strip_leads_to_before_and_after_it(visit, changed):
    page = visit.open(SITE)
    expect(strip(page).locator("svg")).to_be_visible()
    link = page.locator("#strip .around")
    expect(link).to_be_hidden()
    box = box_of(strip(page))
    hours = (CHANGED.replace(minute=0) - (NOW.replace(minute=0, second=0) - 167 * HOUR)) / HOUR
    page.mouse.click(box["x"] + (hours + 0.5) / 168 * box["width"], box["y"] + 20)
    expect(link).to_have_attribute("title", "Compare before and after Thu 19 Nov 20:00 UTC")
    look(page, "before-after-strip")
    link.click()
    page.wait_for_url("**from=2026-11-19T20:00:00Z&to=2026-11-20T12:01:00Z&compare=**")
    received, _ = page.locator("#comparison p:not(.rest)").all_inner_texts()
    assert check(received, "destination", *around(CHANGED.replace(minute=0)))[0] == "slower"


def test_keys_on_the_strip_do_so_too(visit, changed):
    page = visit.open(SITE)
    expect(strip(page).locator("svg")).to_be_visible()
    strip(page).focus()
    page.keyboard.press("b")
    for key in (*["ArrowLeft"] * 9, "b"):
        page.keyboard.press(key)
    page.wait_for_url("**from=2026-11-20T04:00:00Z&to=2026-11-20T12:01:00Z&compare=**")
    expect(page.locator("#comparison")).to_contain_text(f"{GLASGOW} received at")


def test_dates_in_words_close_their_menu(visit, changed):
    page = wait_until_drawn(visit.open("/"))
    page.click("[popovertarget=dates-menu]")
    page.fill("[name=from]", "thu 20:15")
    page.fill("[name=to]", "now")
    page.press("[name=to]", "Enter")
    page.wait_for_url("**/?from=2026-11-19T20:15:00Z&to=2026-11-20T12:00:30Z")
    expect(page.locator("#dates-menu")).to_be_hidden()
