"""Large matrices in the browser: drawn, and as quick to answer as small ones. Nothing is timed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import numpy as np
import pytest
from django.utils import timezone
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from sonar.models import Endpoint, Profile
from sonar.notation.units import MB, three_digits
from tests.benchmarks import full
from tests.browser.cells import point_at, wait_until_drawn
from tests.browser.conftest import NOT_LOADED, Visit
from tests.browser.pages import box_of, look
from tests.browser.waiting import until
from tests.matrix import world

LONG_TASKS = """
    window.longTasks = [];
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) longTasks.push(task.duration);
    }).observe({ type: "longtask", buffered: true });
"""


@dataclass(frozen=True)
class Large:
    """A full matrix: names in order, and the rate of each link in MB/s (NaN: failed)."""

    names: list[str]
    rates: NDArray[np.float64]

    def said(self, row: int, column: int) -> str:
        """Return how the page begins to say what a cell holds."""
        rate = self.rates[row, column]
        said = f"from {self.names[row]} to {self.names[column]}: "
        return said if np.isnan(rate) else f"{said}{three_digits(rate)} MB/s"

    def measured(self) -> tuple[int, int]:
        """Return row and column of a cell off the middle whose transfer worked."""
        half = len(self.names) // 2
        row, column = np.argwhere(~np.isnan(self.rates[half:, half:]))[7] + half
        return int(row), int(column)


def make(endpoints: int) -> Large:
    rows = full.fill(endpoints, last_whole_hour(timezone.now()))
    rates = np.full((endpoints, endpoints), np.nan)
    done = rows[~rows["failed"]]
    rates[done["source"], done["destination"]] = done["bytes"] / done["seconds"] / MB
    names = list(Endpoint.objects.order_by("id").values_list("name", flat=True))
    assert names == sorted(names, key=str.casefold)
    return Large(names, rates)


def last_whole_hour(now: datetime) -> datetime:
    """Return the start of an hour that has been over long enough to be sealed."""
    return (now - timedelta(hours=1, minutes=2)).replace(minute=0, second=0, microsecond=0)


@pytest.mark.parametrize("endpoints", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_a_large_matrix_is_drawn_and_says_what_each_cell_holds(
    endpoints, visit, unpooled, real_commits, record_property
):
    large = make(endpoints)
    visit.run_before_each_page(LONG_TASKS)
    page = wait_until_drawn(visit.open("/?window=24h&rows=endpoint"))
    row, column = large.measured()
    card = point_at(page, large.names[row], large.names[column]).inner_text()
    assert f"from {large.names[row]}" in card
    assert three_digits(large.rates[row, column]) in card
    page.locator("#picture").focus()
    for key in ("Control+End", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator("#said")).to_contain_text(large.said(-2, -1))
    record_property("longest_task_ms", page.evaluate("Math.max(0, ...longTasks)"))


# Notes each image of cells that is drawn onto a canvas, and which part of it goes where.
NOTE_IMAGES = """
    window.drawnImages = [];
    const pixels = new WeakMap();
    const { drawImage, putImageData } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.putImageData = function (image, ...places) {
        pixels.set(this.canvas, image);
        return putImageData.call(this, image, ...places);
    };
    CanvasRenderingContext2D.prototype.drawImage = function (image, ...places) {
        if (pixels.has(image)) drawnImages.push([pixels.get(image), ...places]);
        return drawImage.call(this, image, ...places);
    };
"""
# The cells, the means of rows and of columns, and that of all that were drawn last: the colours of
# the pixels that were seen of each, row by row, and their place on the screen.
SEEN_IMAGES = """() => drawnImages.slice(-4).map(([image, left, top, wide, high, ...place]) => {
    const all = new Uint32Array(image.data.buffer);
    const begins = Array.from({ length: high }, (_, row) => (top + row) * image.width + left);
    const colours = begins.flatMap((begin) => [...all.subarray(begin, begin + wide)]);
    return { colours, rows: high, place };
})"""


def images(page: Page) -> list[NDArray[np.uint32]]:
    """Return the colours of the cells that were painted last, and of their means."""
    seen = page.evaluate(SEEN_IMAGES)
    return [np.array(one["colours"], dtype=np.uint32).reshape(one["rows"], -1) for one in seen]


def place_of_cells(page: Page) -> list[float]:
    place: list[float] = page.evaluate(SEEN_IMAGES)[0]["place"]
    return place


PLOTLY_PLACE = """() => {
    const { xaxis, yaxis } = document.querySelector("#picture .plot")._fullLayout;
    return [xaxis._offset, yaxis._offset, xaxis._length, yaxis._length];
}"""


@dataclass
class Drag:
    """A drag over the strip of time; ``asked`` are the paths that the page asks for meanwhile."""

    page: Page
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.asked.append(urlsplit(request.url).path))
        expect(self.hours.locator("svg")).to_be_visible()
        self.hours.scroll_into_view_if_needed()

    @property
    def hours(self) -> Locator:
        return self.page.locator("#strip .hours")

    def move(self, share: float) -> None:
        """Move to a part of the strip's width, and wait until what is there is painted."""
        box = box_of(self.hours)
        self.page.evaluate("performance.clearMarks('strip-followed')")
        self.page.mouse.move(box["x"] + share * (box["width"] - 1), box["y"] + 20)

    def until_painted(self) -> None:
        until(self.page, "performance.getEntriesByName('strip-followed').length")


def fill_and_open(visit: Visit) -> Drag:
    make(320)
    now = timezone.now()
    full.store_one_link(now - timedelta(days=6), hours=3)
    failing = Endpoint.objects.order_by("name")[2:4]
    made = Profile.objects.earliest("id")
    for minutes in (3, 4, 5):
        ago = world.NOW - now + timedelta(minutes=minutes)
        world.transfer(*failing, None, ago=ago, made=made)
    visit.run_before_each_page(NOTE_IMAGES)
    drag = Drag(wait_until_drawn(visit.open("/?window=24h&rows=endpoint")))
    expect(painted(drag.page)).to_have_count(0)
    return drag


def painted(page: Page) -> Locator:
    return page.locator("#picture .first-look")


@pytest.mark.long
def test_a_large_matrix_is_painted_while_a_window_is_dragged_and_drawn_at_its_end(
    visit, unpooled, real_commits
):
    drag = fill_and_open(visit)
    page = drag.page
    drawn_at = page.evaluate(PLOTLY_PLACE)
    answer = page.locator("#answer h1")
    title, said = page.locator("#answer [data-title]"), answer.inner_text()
    before = title.inner_text()
    drag.move(0.6)
    page.mouse.down()
    drag.move(0.7)
    drag.until_painted()
    expect(painted(page)).to_have_count(1)
    # Nothing was tested then. Marks and the card stay above it.
    assert len(np.unique(images(page)[0])) == 2
    expect(page.locator("#picture .plot + .first-look")).to_have_count(1)
    passed = title.inner_text()
    assert passed != before
    drag.move(1)
    drag.until_painted()
    assert title.inner_text() not in (before, passed)
    seen, last_title = images(page), title.inner_text()
    assert len(np.unique(seen[0])) > 50
    np.testing.assert_allclose(place_of_cells(page), drawn_at, atol=1)
    # What the page says of its own window is out of sight, and no page was asked for.
    expect(answer).to_be_hidden()
    expect(page.locator("#rail")).to_be_hidden()
    look(page, "large-dragged")
    assert set(drag.asked) == {"/cells/codes/"}
    page.evaluate("performance.clearMarks('cells-loaded')")
    page.mouse.up()
    expect(painted(page)).to_have_count(0)
    until(page, "performance.getEntriesByName('cells-loaded').length")
    expect(answer).to_be_visible()
    assert (title.inner_text(), answer.inner_text() == said) == (last_title, True)
    look(page, "large-drag-done")
    # The same cells and means as the first look at the page of that window.
    wait_until_drawn(visit.open(page.url.removeprefix(visit.base)))
    for own, other in zip(seen, images(page), strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(*map(channels, (own, other)), atol=CLOSE)
    np.testing.assert_array_equal(seen[0], images(page)[0])
    # The keys choose a window before they show it: as a page.
    drag.asked.clear()
    drag.hours.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(title).not_to_have_text(last_title)
    assert "/cells/codes/" not in drag.asked
    expect(answer).to_be_visible()


@pytest.mark.long
def test_a_drag_that_leads_nowhere_leaves_the_page_as_it_was(visit, unpooled, real_commits):
    drag = fill_and_open(visit)
    page = drag.page
    title, answer = page.locator("#answer [data-title]"), page.locator("#answer h1")
    before = title.inner_text()

    def dragged() -> None:
        page.evaluate("performance.clearMarks('cells-loaded')")
        drag.asked.clear()
        drag.move(0.6)
        page.mouse.down()
        drag.move(0.7)
        drag.until_painted()
        expect(painted(page)).to_have_count(1)
        assert title.inner_text() != before

    def assert_as_it_was() -> None:
        expect(painted(page)).to_have_count(0)
        expect(title).to_have_text(before)
        expect(answer).to_be_visible()
        until(page, "performance.getEntriesByName('cells-loaded').length")

    dragged()
    drag.hours.dispatch_event("pointercancel")
    page.mouse.up()
    assert_as_it_was()
    # The page of the window that was let go at does not come.
    dragged()
    page.route(lambda url: urlsplit(url).path == "/", lambda route: route.abort())
    page.mouse.up()
    expect(page.locator("#trouble")).to_contain_text("The request failed")
    visit.expect_error(NOT_LOADED)
    visit.expect_error("htmx: htmx:error")
    assert_as_it_was()
    page.unroute_all()
    # Nor do the colours: then pages follow, as of smaller matrices.
    page.route("**/cells/codes/**", lambda route: route.abort())
    dragged()
    assert "/" in drag.asked
    page.mouse.up()
    expect(painted(page)).to_have_count(0)
    visit.expect_error(NOT_LOADED)


# A mean is painted in steps while a window is dragged.
CLOSE = 4


def channels(colours: NDArray[np.uint32]) -> NDArray[np.int64]:
    return colours.view(np.uint8).astype(np.int64)
