"""The browser of the benchmarks: what its own clock says about a page."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.readers import CHROMIUM, LAPTOP
from tests.browser.waiting import until

PATIENCE_SECONDS = 120
MOVES = 25
# Hours that the window is dragged over, one by one.
STEPS = 12
# Shorter than the minute after which a page draws its picture anew by itself.
STEP_SECONDS = 30
# Frames and long tasks, noted from the very beginning of each page.
WATCH = """
    window.longTasks = [];
    window.frames = [];
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) longTasks.push(task.duration);
    }).observe({ type: "longtask", buffered: true });
    // The first to hear of a move; a message posted in a frame comes after it is painted.
    window.addEventListener("pointermove", () => {
        const began = (window.moved = performance.now());
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => window.frames.push(performance.now() - began);
            port2.postMessage(null);
        });
    }, { capture: true });
"""
# No frame that shows the cells comes before the first one that shows anything.
FIRST_CELLS = """() => Math.max(
    performance.getEntriesByName("cells-painted")[0].startTime,
    performance.getEntriesByName("first-contentful-paint")[0].startTime,
) - performance.getEntriesByType("navigation")[0].responseEnd"""
SCRIPTS = """performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js"))
    .map(({ transferSize }) => transferSize)"""
AFTER_RESPONSE = """mark => performance.getEntriesByName(mark)[0].startTime
    - performance.getEntriesByType("navigation")[0].responseEnd"""
FOLLOWED = "performance.getEntriesByName('picture-drawn')[0].startTime - moved"
CELLS = """() => {
    const plot = document.querySelector("#picture .plot");
    const { xaxis, yaxis } = plot._fullLayout;
    const box = plot.getBoundingClientRect();
    return [box.x + xaxis._offset, box.y + yaxis._offset, xaxis._length, yaxis._length];
}"""


@dataclass(frozen=True)
class Seen:
    """A page as it was seen once, in milliseconds; ``moves`` from each move to its frame.

    ``steps`` from each hour that the window was dragged on to the picture that followed.

    ``first`` is when the first cells were painted, ``picture`` when Plotly had drawn all.
    """

    first: float
    picture: float
    cells: float
    longest_task: float
    moves: list[float]
    longest_task_hovering: float
    steps: list[float]


def installed() -> bool:
    return shutil.which("chromium") is not None


@contextmanager
def running() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM)
        yield browser
        browser.close()


def see(browser: Browser, url: str) -> Seen:
    """Open a matrix in a window with empty caches, and move over its cells."""
    context = LAPTOP.sit_down(browser)
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(url, timeout=1000 * PATIENCE_SECONDS)
    for mark in ("cells-painted", "picture-drawn", "cells-loaded"):
        until(page, f"performance.getEntriesByName('{mark}').length", PATIENCE_SECONDS)
    page.wait_for_timeout(500)  # what is left of the drawing
    loading = page.evaluate("Math.max(0, ...longTasks.splice(0))")
    hover(page)
    seen = Seen(
        first=page.evaluate(FIRST_CELLS),
        picture=page.evaluate(AFTER_RESPONSE, "picture-drawn"),
        cells=page.evaluate(AFTER_RESPONSE, "cells-loaded"),
        longest_task=loading,
        moves=page.evaluate("frames"),
        longest_task_hovering=page.evaluate("Math.max(0, ...longTasks)"),
        steps=drag(page),
    )
    see_again(page, url)
    context.close()
    return seen


def drag(page: Page) -> list[float]:
    """Drag over the strip of time, hour by hour; the picture must follow each."""
    until(page, "performance.getEntriesByName('strip-loaded').length", PATIENCE_SECONDS)
    strip = page.locator("#strip .hours")
    box = strip.bounding_box()
    assert box is not None
    # A week, or what of it has tests.
    hours = int(strip.get_attribute("aria-valuemax") or 0) + 1
    first = min(60, hours - STEPS - 1) + 0.5
    hour, middle = box["width"] / hours, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + first * hour, middle)
    page.mouse.down()
    steps = []
    for step in range(1, STEPS + 1):
        page.evaluate("performance.clearMarks('picture-drawn')")
        page.mouse.move(box["x"] + (first + step) * hour, middle)
        until(page, "performance.getEntriesByName('picture-drawn').length", STEP_SECONDS)
        steps.append(page.evaluate(FOLLOWED))
    page.mouse.up()
    return steps


def see_again(page: Page, url: str) -> None:
    """Open it a second time: of the scripts, not a byte may be fetched."""
    page.goto(url)
    until(page, "performance.getEntriesByName('picture-drawn').length", PATIENCE_SECONDS)
    sizes = page.evaluate(SCRIPTS)
    if not sizes or sum(sizes):
        raise RuntimeError(f"the second visit fetched {sum(sizes)} bytes of {len(sizes)} scripts")


def hover(page: Page) -> None:
    """Move over the diagonal of the cells; the card must follow."""
    left, top, width, height = page.evaluate(CELLS)
    page.mouse.move(left + width * 0.05, top + height * 0.1)
    page.locator("#card").wait_for()
    until(page, "frames.length === 1")
    said = [page.locator("#card").inner_text()]
    page.evaluate("frames.length = 0")
    for move in range(1, MOVES + 1):
        part = 0.05 + 0.9 * move / MOVES
        page.mouse.move(left + width * part, top + height * (0.1 + 0.85 * move / MOVES))
        until(page, f"frames.length === {move}")
        said.append(page.locator("#card").inner_text())
    # In a small matrix, two moves may end in one cell.
    if len(set(said)) < MOVES // 2:
        raise RuntimeError("the card did not follow the pointer")
