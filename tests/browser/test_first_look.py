"""What is seen first: the cells before Plotly has come, in the place where they stay, and no matrix
that moves under the reader's eyes (of all pages: test_accessibility.py)."""

import gzip
from datetime import timedelta
from itertools import permutations, product
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Response, Route, expect

from sonar.models import Condition
from sonar.processes.static import QuickCompressor, as_sent
from tests.browser.cells import CELL_SIZE, place, wait_until_drawn
from tests.browser.conftest import NOT_LOADED, Visit
from tests.browser.pages import assert_still, holding, refresh
from tests.browser.readers import DARK, LAPTOP, NARROW, WALL, seen_by
from tests.browser.waiting import until, until_settled, until_so
from tests.conditions import TYPES, stored_condition
from tests.matrix import world
from tests.matrix.world import HOUR

PAINTED = "performance.getEntriesByName('cells-painted').length > 0"
# A picture that is where it was for so many looks, a tenth of a second apart, stays there.
STILL_LOOKS = 6
# What a first visit may fetch, as it is sent; the head of an answer has some 400 bytes.
MOST_BYTES = 450_000
HEAD_BYTES = 400
STATIC = "/static/"
KEEP_FIRST_LOOK = """() => {
    const canvas = document.querySelector(".first-look");
    const { width, height } = canvas;
    window.firstLook = canvas.getContext("2d").getImageData(0, 0, width, height);
    const box = canvas.getBoundingClientRect();
    window.firstBox = { left: box.left, top: box.top, factor: width / box.width };
}"""
# The colour of the first look at a point of the screen.
COLOUR_AT = """([x, y]) => {
    const { left, top, factor } = firstBox;
    const [column, row] = [(x - left) * factor, (y - top) * factor].map(Math.floor);
    const at = 4 * (row * firstLook.width + column);
    const channels = [...firstLook.data.slice(at, at + 3)];
    return `#${channels.map((channel) => channel.toString(16).padStart(2, "0")).join("")}`;
}"""
VARIABLE = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"


def until_still(page: Page) -> None:
    """Wait until no other script moves the picture any more, or changes its size."""
    boxes = [page.locator(".first-look").bounding_box()]

    def is_still() -> bool:
        page.wait_for_timeout(100)
        boxes.append(page.locator(".first-look").bounding_box())
        return len(boxes) > STILL_LOOKS and len({str(box) for box in boxes[-STILL_LOOKS:]}) == 1

    until_so(page, is_still, "the picture stays where it is")


def first_look(visit: Visit) -> Page:
    """Look at the matrix while Plotly is on its way, and then once it has come."""
    page, held = visit.page, list[Route]()
    page.route("**/plotly*", holding(held))
    page.goto(visit.base, wait_until="commit")
    until(page, PAINTED)
    assert page.locator(".first-look").is_visible()
    assert page.locator("#picture .main-svg").count() == 0
    until_so(page, lambda: bool(held), "Plotly is asked for")
    until_still(page)
    page.evaluate(KEEP_FIRST_LOOK)
    for route in held:
        route.continue_()
    return wait_until_drawn(page)


@pytest.mark.long
@seen_by(LAPTOP, DARK, NARROW, WALL)
def test_cells_and_frames_are_there_before_plotly_where_it_draws_them_and_then_go(visit, scene):
    page = first_look(visit)
    colours = {
        ("RAL_DATADISK", "RAL_DATADISK"): "--not-applicable",
        ("DESY_SCRATCHDISK", "RAL_DATADISK"): "--down",
        ("RAL_DATADISK", "DESY_SCRATCHDISK"): "--down",
        ("Glasgow_DATADISK", "DESY_DATADISK"): "--untested",
    }
    wide, high = page.evaluate(CELL_SIZE)
    for (source, destination), variable in colours.items():
        x, y = place(page, source, destination)
        corners = [
            (x + a * (wide / 2 - 3), y + b * (high / 2 - 3)) for a in (-1, 1) for b in (-1, 1)
        ]
        seen = {page.evaluate(COLOUR_AT, list(corner)) for corner in corners}
        assert seen == {page.evaluate(VARIABLE, variable)}, (source, destination)
    x, y = place(page, "RAL_DATADISK", "DESY_DATADISK")
    edge = {page.evaluate(COLOUR_AT, [x, y - high / 2 + pixels]) for pixels in range(4)}
    assert page.evaluate(VARIABLE, "--failing") in edge
    expect(page.locator(".first-look")).to_have_count(0)


def test_a_library_that_does_not_come_leaves_the_cells_and_says_so(visit, scene):
    page = visit.page
    page.route("**/plotly*", lambda route: route.abort())
    page.goto(visit.base)
    page.get_by_text("The chart could not be drawn").wait_for()
    assert page.locator(".first-look").is_visible()
    page.unroute_all()
    visit.expect_error(NOT_LOADED)


def box_of(part: Locator) -> tuple[int, ...]:
    """Return where a part of a page is, from its top on, in whole pixels; nothing if it is not."""
    box = part.bounding_box()
    return tuple(round(box[side]) for side in ("y", "x", "width", "height")) if box else ()


@seen_by(NARROW)
def test_a_link_that_begins_to_fail_moves_nothing_while_somebody_reads(visit, scene_of_today):
    page, made = visit.open(), scene_of_today.world
    until_settled(page)
    failing = page.locator("#rail .failing")
    place_before = box_of(page.locator("#picture"))
    for link in ((made.glasgow, made.desy), (made.glasgow, made.ral)):
        for ago in (3, 2, 1):
            world.transfer(*link, None, ago=timedelta(minutes=ago))
        stored_condition(source=link[0], destination=link[1])
    refresh(page)
    expect(failing.locator("li")).to_have_count(3)
    until_settled(page)
    assert_still(page)
    assert box_of(page.locator("#picture")) == place_before
    failing.locator("li").last.scroll_into_view_if_needed()
    expect(failing.locator("li").last).to_be_in_viewport()


@seen_by(LAPTOP, NARROW)
def test_the_first_results_move_nothing(visit, real_commits, real_time):
    made = world.make()
    page = visit.open()
    until_settled(page)
    place_before = box_of(page.locator("#picture"))
    expect(page.locator("#live > .notice")).to_contain_text("No results in this time range yet")
    for link in permutations(made.endpoints, 2):
        world.transfer(*link, 50.0)
    for _ in range(2):
        refresh(page)
        expect(page.locator("#live > .notice")).to_have_count(0)
        until_settled(page)
        assert box_of(page.locator("#picture")) == place_before
    assert_still(page)


@seen_by(NARROW)
def test_what_fails_stands_above_the_picture_from_the_first_results_on(
    visit, real_commits, real_time
):
    made = world.make()
    page = visit.open()
    until_settled(page)
    failing, picture = page.locator("#rail .failing"), page.locator("#picture")
    heights = set()
    failing_links = [(made.glasgow, made.desy), (made.glasgow, made.ral)]
    for link in set(permutations(made.endpoints, 2)) - set(failing_links):
        world.transfer(*link, 50.0)
    for heading, rate in (("Failing show links", None), ("Failing 0", 50.0)):
        for ago, link in product((3, 2, 1), failing_links):
            world.transfer(*link, rate, ago=timedelta(minutes=ago if rate is None else 0))
        Condition.objects.all().delete()
        for source, destination in failing_links if rate is None else ():
            stored_condition(TYPES.FAILING, source=source, destination=destination, since=HOUR)
        refresh(page)
        expect(failing.locator("h2")).to_have_text(heading, use_inner_text=True)
        until_settled(page)
        above, below = box_of(failing), box_of(picture)
        assert above < below
        heights.add((above[0], below[0]))
    assert len(heights) == 1
    assert_still(page)
    expect(failing).to_contain_text("None now.")


@seen_by(LAPTOP, NARROW)
def test_an_answer_that_gets_shorter_moves_nothing(visit, scene_of_today):
    page = visit.open()
    until_settled(page)
    page.evaluate("document.querySelector('.question').append(' More was said.'.repeat(20))")
    parts = [page.locator(part) for part in (".controls", "#strip", "#picture")]
    places_before = [box_of(part) for part in parts]
    refresh(page)
    expect(page.locator(".question")).not_to_contain_text("More was said.")
    until_settled(page)
    assert [box_of(part) for part in parts] == places_before


def bytes_sent(response: Response) -> int:
    """Return how large an answer is as the web server of Sonar sends it."""
    path, body = urlsplit(response.url).path, response.body()
    if path.startswith(STATIC):
        body = QuickCompressor.compress_brotli(as_sent(path.removeprefix(STATIC), body))
    else:
        body = gzip.compress(body, 6)
    return HEAD_BYTES + len(body)


def test_a_first_visit_is_not_heavy(visit, real_commits, at_noon):
    world.make_published()
    answers: list[Response] = []

    def answered(response: Response) -> None:
        if urlsplit(response.url).scheme == "http":
            answers.append(response)

    visit.page.on("response", answered)
    visit.forget_files()
    visit.go()
    until_settled(visit.page)
    visit.page.remove_listener("response", answered)
    sizes = {urlsplit(answer.url).path: bytes_sent(answer) for answer in answers}
    assert any("plotly" in path for path in sizes)
    assert sum(sizes.values()) <= MOST_BYTES, sorted(sizes.items(), key=lambda item: -item[1])
