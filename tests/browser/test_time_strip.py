"""The strip of time: what failed and was slow by the hour, and the window that is chosen on it."""

import re
from datetime import datetime, timedelta
from itertools import permutations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import NOT_LOADED, Standing, Visit
from tests.browser.pages import box_of, call, look, refresh
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.browser.waiting import until, until_so
from tests.conditions import stored_condition
from tests.matrix import world
from tests.matrix.world import HOUR, World

WEEK = 7 * 24
# The buckets of the strip in which RAL -> Glasgow fails, and the others from RAL are slow.
BAD = range(100, 106)


def hour(bucket: int) -> datetime:
    """Return when a bucket of the last 7 days begins."""
    end = world.NOW.replace(minute=0, second=0, microsecond=0) + HOUR
    return end - (WEEK - bucket) * HOUR


def make() -> World:
    """A week in which every link was tested each hour, with two conditions of some hours."""
    made = world.make()
    with world.transfers() as some:
        for bucket in range(WEEK - 1):
            for source, destination in permutations(made.endpoints, 2):
                ago = world.NOW - hour(bucket) - timedelta(minutes=20)
                is_bad = bucket in BAD and source == made.ral
                rate = None if is_bad and destination == made.glasgow else 3.0 if is_bad else 10.0
                some.add(source, destination, rate, ago=ago)
    hours = {"since": world.NOW - hour(BAD[0]), "ended": world.NOW - hour(BAD[-1] + 1)}
    stored_condition("failing", source=made.ral, destination=made.glasgow, **hours)
    others = [(made.ral, made.desy), (made.ral, made.scratch)]
    stored_condition("slow", source=made.ral, links=others, **hours)
    return made


@pytest.fixture
def week(standing: Standing[World], at_noon: None) -> World:
    return standing(make)


def strip(page: Page) -> Locator:
    return page.locator("#strip .hours")


def shown(visit: Visit, path: str = "/") -> Page:
    page = visit.open(path)
    expect(strip(page).locator("svg")).to_be_visible()
    strip(page).scroll_into_view_if_needed()
    return page


def place(page: Page, bucket: float, of: int = WEEK) -> tuple[float, float]:
    box = box_of(strip(page))
    return box["x"] + (bucket + 0.5) / of * box["width"], box["y"] + 20


def stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def at_window(first: int, past: int) -> re.Pattern[str]:
    return re.compile(rf"[?&]from={stamp(hour(first))}&to={stamp(hour(past))}")


def words(first: int) -> str:
    start, end = hour(first), hour(first + 1)
    day = "" if start.day == end.day else f"{end:%a} {end.day} {end:%b} "
    return f"{start:%a} {start.day} {start:%b} {start:%H:%M} to {day}{end:%H:%M} UTC"


def test_the_hour_under_the_pointer_is_said_and_of_thirty_days_the_day(visit, week):
    page = shown(visit)
    tip = page.locator("#strip .tip")
    expect(tip).to_be_hidden()
    page.mouse.move(*place(page, BAD[2]))
    expect(tip).to_have_text(
        f"{words(BAD[2])}: 1 link failing, 2 slower than usual; "
        "12 links tested, 1 with a failed test"
    )
    page.mouse.move(*place(page, 50))
    expect(tip).to_have_text(f"{words(50)}: 0 links failing, 0 slower than usual; 12 links tested")
    page.mouse.move(*place(page, WEEK - 1))
    expect(tip).to_have_text(f"{words(WEEK - 1)}: no test")
    look(page, "strip")
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    page.get_by_role("button", name="30 d").click()
    expect(page.get_by_role("button", name="30 d")).to_have_attribute("aria-pressed", "true")
    day = world.NOW.date() - timedelta(days=1)
    page.mouse.move(*place(page, 28, 30))
    expect(tip).to_have_text(
        re.compile(rf"^{day:%a} {day.day} {day:%b} \(UTC\): \d links?.*; 12 links")
    )
    page.mouse.click(*place(page, 28, 30))
    expect(page).to_have_url(re.compile(rf"from={day}T00:00:00Z&to="))
    # The longer strip stays.
    expect(page.get_by_role("button", name="30 d")).to_have_attribute("aria-pressed", "true")


def test_a_click_shows_that_hour_and_the_way_back(visit, week):
    page = shown(visit, "/?size=large&stat=p95")
    before = page.url
    page.mouse.click(*place(page, BAD[0]))
    expect(page).to_have_url(at_window(BAD[0], BAD[1]))
    assert "stat=p95" in page.url
    expect(page.locator("#strip .chosen")).to_be_visible()
    look(page, "strip-hour")
    page.get_by_role("link", name="back to the last 7 days").click()
    expect(page).to_have_url(before)
    expect(page.locator("#strip .chosen")).to_have_count(0)
    page.go_back()
    expect(page).to_have_url(at_window(BAD[0], BAD[1]))
    expect(page.locator("#strip .chosen")).to_be_visible()


@pytest.mark.long
def test_the_page_follows_a_drag(visit, week):
    page = shown(visit)
    start = page.url
    page.mouse.move(*place(page, 90))
    page.mouse.down()
    page.mouse.move(*place(page, BAD[0]), steps=5)
    # Not yet let go: the window of the controls is that of the drag, the address the old one.
    expect(page.locator("#strip")).to_have_attribute("data-end", stamp(hour(BAD[1])))
    assert page.url == start
    page.mouse.move(*place(page, BAD[-1]), steps=5)
    page.mouse.up()
    expect(page).to_have_url(at_window(90, BAD[-1] + 1))
    # The chosen window is moved by its middle, and keeps its length.
    page.mouse.move(*place(page, 95))
    page.mouse.down()
    page.mouse.move(*place(page, 115), steps=10)
    page.mouse.up()
    expect(page).to_have_url(at_window(110, BAD[-1] + 21))


def test_keys_choose_a_window(visit, week):
    page = shown(visit)
    before = page.url
    strip(page).focus()
    last = WEEK - 1
    page.keyboard.press("ArrowLeft")
    expect(strip(page)).to_have_attribute("aria-valuetext", f"{words(last)}: no test")
    page.keyboard.press("ArrowLeft")
    expect(strip(page)).to_have_attribute("aria-valuenow", str(last - 1))
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("PageDown")
    assert page.url == before
    page.keyboard.press("Enter")
    expect(page).to_have_url(at_window(last - 3, last - 1))
    expect(strip(page)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Escape")
    expect(page).to_have_url(at_window(last - 3, last - 1))
    page.keyboard.press("Escape")
    expect(page).to_have_url(before)


@seen_by(NARROW)
def test_a_finger_chooses_a_window(visit, week):
    page = shown(visit)
    page.touchscreen.tap(*place(page, BAD[0]))
    expect(page).to_have_url(re.compile("[?&]from="))
    look(page, "strip-phone")


@seen_by(NARROW)
def test_a_finger_drags_over_a_night(visit, week):
    page = shown(visit)
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *buckets: int) -> None:
        points = [dict(zip("xy", place(page, bucket), strict=True)) for bucket in buckets]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 60)
    for bucket in (70, 80, 90):
        touch("touchMove", bucket)
    expect(page.locator("#strip .tip")).to_contain_text(f"{hour(91):%H:%M} UTC")
    touch("touchEnd")
    expect(page).to_have_url(at_window(60, 91))
    expect(page.locator("#strip .tip")).to_be_hidden()


def test_new_results_come_with_the_refresh_and_nothing_moves(visit, week):
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    visit.page.route("**/api/v1/strip/**", hold)
    page = visit.open("/")
    until_so(page, lambda: bool(held), "the strip asks for its numbers")
    before = box_of(page.locator("#strip"))
    held.pop().continue_()
    page.unroute("**/api/v1/strip/**", hold)
    expect(strip(page).locator("svg")).to_be_visible()
    assert page.locator("#strip").bounding_box() == before
    world.transfer(week.desy, week.ral, None, ago=timedelta(seconds=1))
    refresh(page)
    until(page, "performance.getEntriesByName('strip-loaded').length > 1")
    page.mouse.move(*place(page, WEEK - 1))
    # One failed test makes no link failing.
    said = "0 links failing, 0 slower than usual; 1 link tested, 1 with a failed test"
    expect(page.locator("#strip .tip")).to_contain_text(said)


@seen_by(SCRIPTLESS)
def test_without_a_script_days_are_links(visit, week):
    page = visit.open("/")
    page.get_by_text("Show another day").click()
    day = world.NOW.date() - timedelta(days=1)
    page.get_by_role("link", name=f"{day:%a} {day.day} {day:%b}", exact=True).click()
    expect(page).to_have_url(re.compile(rf"from={day}T00:00:00Z&to={world.NOW.date()}T00:00:00Z"))


@pytest.mark.long
@pytest.mark.parametrize("reader", [LAPTOP, NARROW], ids=str)
def test_pages_of_links_and_sites_have_their_own(visit, week):
    for path, said in (
        ("/links/RAL_DATADISK/Glasgow_DATADISK/", "1 test, 1 failed; failing"),
        (
            "/sites/RAL/",
            "1 link failing, 2 slower than usual; 6 links tested, 1 with a failed test",
        ),
    ):
        page = shown(visit, path)
        page.mouse.move(*place(page, BAD[2]))
        expect(page.locator("#strip .tip")).to_have_text(f"{words(BAD[2])}: {said}")
        look(page, f"strip{path.replace('/', '-')}")
        page.mouse.click(*place(page, BAD[2]))
        expect(page).to_have_url(at_window(BAD[2], BAD[3]))


def test_the_strip_has_a_scale_and_single_failures_leave_it_quiet(visit, week):
    world.transfer(week.desy, week.ral, None, ago=30 * HOUR)
    page = shown(visit)
    failing = page.locator("#strip path.failing").get_attribute("d") or ""
    assert failing.count("M") == len(BAD)
    # Two links are slow as long as one fails.
    expect(page.locator("#strip .scale span")).to_have_text(["3 links", "0"])
    colours = [page.locator(f"#strip .key .{name}") for name in ("failing", "slower")]
    assert len({round(box_of(one)["y"]) for one in colours}) == 1


def test_it_says_that_nothing_was_tested_or_answered_and_begins_after_a_few_hours_of_tests(
    visit, real_commits, at_noon
):
    made = world.make()
    page = visit.open("/")
    expect(strip(page)).to_have_text("No tests in this period.")
    page.route("**/api/v1/strip/**", lambda route: route.abort())
    page.reload()
    expect(strip(page)).to_contain_text("The chart of failures over time did not load")
    visit.expect_error(NOT_LOADED)
    page.unroute_all()
    world.transfer(made.ral, made.glasgow, 10.0, ago=HOUR)
    page = visit.open("/")
    expect(strip(page)).to_contain_text("After a few hours of tests")
    for hours in (2, 3, 30):
        world.transfer(made.ral, made.glasgow, 10.0, ago=hours * HOUR)
    page = shown(visit)
    tested = page.locator("#strip path.tested").get_attribute("d") or ""
    assert tested.startswith("M0 ")
    page.mouse.move(*place(page, 0, 31))
    expect(page.locator("#strip .tip")).to_contain_text(
        "0 links failing, 0 slower than usual; 1 link tested"
    )


# Which days are named in a strip of each width, and whether all of each name is seen; the last day
# has just begun.
NAMED = call(
    "strip-picture",
    """({ picture }) => {
        const zeros = Array(168).fill(0);
        const counts = { first: Date.UTC(2026, 10, 22, 12), width: 3600e3, links: zeros };
        const names = ["failing", "slower", "down", "at_risk"];
        for (const name of names) counts[`${name}_links`] = zeros;
        const box = document.querySelector("#strip .hours");
        const cut = [];
        for (let width = 200; width < 1400; width += 7) {
            box.replaceChildren(picture(counts, [0, 0], width));
            for (const text of box.querySelectorAll("text")) {
                const { x, width: wide } = text.getBBox();
                if (x + wide > width) cut.push(`${text.textContent} at ${width}`);
            }
        }
        return cut;
    }""",
)


def test_the_name_of_a_day_that_has_just_begun_is_not_cut(visit: Visit, week: World) -> None:
    assert shown(visit).evaluate(NAMED) == []
