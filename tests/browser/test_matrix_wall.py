"""The wall: what is wrong, readable at four metres, and whether it can be trusted."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from sonar.models import Condition, Transfer
from tests.browser.cells import wait_until_drawn
from tests.browser.conftest import Visit
from tests.browser.pages import box_of, holding, look, refresh
from tests.browser.readers import LAPTOP, WALL, seen_by
from tests.browser.waiting import until_so
from tests.matrix import world

on_walls = seen_by(WALL, LAPTOP)
SIZES = {"full HD": (1920, 1080), "4K": (3840, 2160), "small": (1280, 720), "tall": (1080, 1920)}
# As a part of the height of a screen that is wide: of 1,080 lines so many, as on a poster.
LINES = {"h1": 58, ".wall-lists .ends": 27, "#clock": 40, "#age": 20, "#picture .ytick text": 16}
TURNS = "/?wall=1&views=size=small&views=&views=rows=site%26columns=site&every=100s"
# Longer than any step takes, as the clock goes on by itself too.
TURN_MS = 100_500


def by_a_clock_of_ours(visit: Visit, path: str) -> Page:
    """Open a wall whose time the test puts forward; a clock of that kind keeps no marks."""
    visit.set_clock()
    page = visit.open(path)
    page.locator("#picture .main-svg").first.wait_for(state="attached")
    return page


def font_size(page: Page, selector: str) -> float:
    size = "([selector]) => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize)"
    return float(page.evaluate(size, [selector]))


@pytest.mark.long
def test_all_of_it_is_on_the_screen_in_letters_that_grow_with_it(visit, scene_of_today):
    page = visit.page
    for name, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        wait_until_drawn(visit.open("/?wall=1"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if width > height:
            assert page.evaluate("document.documentElement.scrollHeight") <= height, name
            for selector, lines in LINES.items():
                least = lines * height / 1080 - 0.1
                assert font_size(page, selector) >= least, (name, selector)
        for selector in ("h1", "#clock", "#picture .plot", ".wall-lists", "#age", "#leave"):
            expect(page.locator(selector)).to_be_in_viewport(ratio=0.99)
        assert page.get_by_role("navigation", name="Sonar").count() == 0
        look(page, f"wall-{width}")


@on_walls
def test_what_fails_stands_above_in_words_and_beside_with_its_age_under_a_clock_in_utc(
    visit, scene_of_today
):
    page = wait_until_drawn(visit.open("/?wall=1"))
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text(re.compile(r"^\s*RAL_DATADISK to DESY_DATADISK fails\s*$"))
    line = page.locator(".wall-lists .failing li").first
    box, picture = box_of(line), box_of(page.locator("#picture"))
    expect(line).to_contain_text(re.compile(r"from\s+RAL_DATADISK\s+to\s+DESY_DATADISK\s+5 h"))
    assert box["x"] > picture["x"] + picture["width"]
    clock = page.locator("#clock")
    expect(clock).to_have_text(re.compile(r"^\d\d:\d\d:\d\d UTC$"))
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)
    line.get_by_role("link").click()
    page.wait_for_url("**/links/RAL_DATADISK/DESY_DATADISK/")


@on_walls
def test_it_says_how_long_ago_it_was_refreshed_and_since_when_it_cannot(visit, scene_of_today):
    page = wait_until_drawn(visit.open("/?wall=1"))
    age = page.locator("#age")
    expect(age).to_have_text(re.compile(r"^updated \d\d s ago$"))
    made = scene_of_today.world
    world.transfer(made.ral, made.desy, 3.21)
    Condition.objects.all().delete()
    refresh(page)
    expect(age).to_have_text(re.compile(r"^updated \d s ago$"))
    expect(page.locator("#newest")).to_have_text("10 min ago")
    expect(page.get_by_role("heading", level=1)).not_to_contain_text("fails")
    page.route("**/*", lambda route: route.fulfill(status=503))
    refresh(page)
    alarm = page.get_by_role("alert")
    expect(alarm).to_contain_text(re.compile(r"has not been refreshed since \d\d:\d\d:\d\d UTC"))
    expect(alarm).to_be_in_viewport(ratio=1)
    visit.expect_refusal(503)
    page.unroute_all()
    refresh(page)
    expect(alarm).to_be_hidden()


def test_a_server_that_does_not_answer_is_told_by_an_alarm_and_grey_cells(visit, scene_of_today):
    """It asks again and again, and all is well as soon as the server is back."""
    page = by_a_clock_of_ours(visit, "/?wall=1")
    held: list[Route] = []
    page.route(f"{visit.base}/?wall=1", holding(held))
    page.clock.run_for(66_000)
    until_so(page, lambda: bool(held), "the wall asks again")
    assert page.locator("body.old").count() == 0
    page.clock.run_for(56_000)
    alarm = page.get_by_role("alert")
    expect(alarm).to_contain_text(re.compile(r"^Not updated since \d\d:\d\d:\d\d UTC"))
    expect(page.locator("body.old")).to_have_count(1)
    expect(page.locator("#age")).to_have_text("updated 2 min ago")
    look(page, "wall-old")
    page.unroute_all()
    page.clock.run_for(11_000)
    expect(page.locator("body.old")).to_have_count(0)
    expect(alarm).to_be_hidden()


def test_a_page_of_yesterday_is_never_taken_for_new(visit, scene_of_today):
    """As a browser shows it that was closed and opened again."""
    page = visit.page
    held: list[Route] = []
    yesterday = int(world.NOW.timestamp()) - 86_400

    def stored(route: Route) -> None:
        if "hx-request" in route.request.headers:
            held.append(route)
            return
        html = route.fetch().text()
        route.fulfill(
            body=re.sub(r'data-made="\d+"', f'data-made="{yesterday}"', html),
            content_type="text/html",
        )

    page.route(f"{visit.base}/?wall=1", stored)
    visit.open("/?wall=1")
    expect(page.get_by_role("alert")).to_contain_text("Not updated since")
    expect(page.locator("body.old")).to_have_count(1)
    expect(page.locator("#age")).to_have_text("updated 24 h ago")
    until_so(page, lambda: bool(held), "the wall asks anew")
    held.pop().continue_()
    expect(page.locator("body.old")).to_have_count(0)
    expect(page.locator("#age")).to_have_text(re.compile("^updated [0-9] s ago"))


@on_walls
def test_it_says_unmistakably_that_data_stopped_coming(visit, scene_of_today):
    Transfer.objects.all().delete()
    made = scene_of_today.world
    world.transfer(made.ral, made.glasgow, 10.0, ago=timedelta(days=2))
    page = wait_until_drawn(visit.open("/?wall=1"))
    said = page.locator(".notice.stopped")
    expect(said).to_contain_text("stopped")
    expect(said).to_be_in_viewport(ratio=1)
    expect(page.locator("#newest")).to_have_text("2 d ago")


@pytest.mark.long
def test_views_turn_by_themselves_and_by_arrows_space_pauses_and_escape_leaves(
    visit, scene_of_today
):
    page = by_a_clock_of_ours(visit, TURNS)
    turns, question = page.locator("#turns"), page.locator(".wall-question")
    for number, words in ((1, "small"), (2, "large"), (3, "site to site"), (1, "small")):
        expect(turns).to_contain_text(f"{number} of 3, 100 s each")
        expect(question).to_contain_text(words)
        expect(turns.locator("[aria-current]")).to_have_text(str(number))
        page.clock.fast_forward(TURN_MS)
    expect(page).to_have_url(visit.base + TURNS)
    expect(turns).to_contain_text("2 of 3")
    page.keyboard.press("Space")
    button = page.get_by_role("button", name="paused: resume")
    expect(button).to_have_attribute("aria-pressed", "true")
    page.clock.fast_forward(2 * TURN_MS)
    expect(turns).to_contain_text("2 of 3")
    for key, number in (("Left", 1), ("Left", 3), ("Right", 1), ("Right", 2)):
        page.keyboard.press(f"Arrow{key}")
        expect(turns).to_contain_text(f"{number} of 3")
    button.click()
    expect(page.get_by_role("button", name="pause", exact=True)).to_be_visible()
    page.clock.fast_forward(TURN_MS)
    expect(turns).to_contain_text("3 of 3")
    page.keyboard.press("Escape")
    page.wait_for_url("**/?rows=site&columns=site")
    expect(page.get_by_role("navigation", name="Sonar")).to_be_visible()


def test_a_view_that_does_not_come_is_passed_over(visit, scene_of_today):
    page = by_a_clock_of_ours(visit, TURNS)
    page.route("**/*view=2", lambda route: route.fulfill(status=503))
    page.clock.fast_forward(TURN_MS)
    expect(page.get_by_role("alert")).to_contain_text("status 503")
    visit.expect_refusal(503)
    page.clock.fast_forward(TURN_MS)
    expect(page.locator("#turns")).to_contain_text("3 of 3")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_a_new_version_of_sonar_is_loaded_whole(visit, scene_of_today):
    page = wait_until_drawn(visit.open("/?wall=1"))
    page.evaluate("document.body.id = 'before'")
    page.route(
        f"{visit.base}/?wall=1",
        lambda route: route.fulfill(
            body=route.fetch().text().replace('data-code="', 'data-code="other '),
            content_type="text/html",
        ),
        times=1,
    )
    refresh(page)
    expect(page.locator("body#before")).to_have_count(0)


def test_a_link_leads_to_the_wall_and_back(visit, scene_of_today):
    page = wait_until_drawn(visit.open("/?window=24h"))
    page.get_by_role("link", name="wall").click()
    page.wait_for_url("**/?window=24h&wall=1")
    assert page.get_by_role("navigation", name="Sonar").count() == 0
    page.get_by_role("link", name="Leave the wall view").click()
    page.wait_for_url("**/?window=24h")
    expect(page.get_by_role("navigation", name="Sonar")).to_be_visible()
