"""What tests of several pages ask of a page."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from playwright.sync_api import FloatRect, Locator, Page, Route

from tests.browser.waiting import until

PLOT = "document.querySelector('#picture .plot')"

# Core Web Vitals call 0.1 good.
MOST_SHIFT = 0.02
# What has moved since the page began: the browser keeps that for who asks later.
SHIFTS = """() => new Promise((done) => {
    const shifts = [];
    new PerformanceObserver((list) => {
        for (const { value, hadRecentInput, sources } of list.getEntries()) {
            if (hadRecentInput) continue;
            const named = ({ node }) => node && `${node.nodeName} ${node.id} ${node.className}`;
            shifts.push([value, sources.map(named)]);
        }
    }).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(shifts), 100);
})"""


def fits(page: Page) -> bool:
    """Say whether nothing but boxes of their own scrolls to the side."""
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    return bool(page.evaluate(wide))


def assert_still(page: Page, *words: object) -> None:
    """Hardly anything on the page has moved by itself."""
    shifts = page.evaluate(SHIFTS)
    assert sum(value for value, _ in shifts) < MOST_SHIFT, (*words, shifts)


def navigate(page: Page, name: str) -> None:
    """Follow a link of the line of navigation, which on a narrow screen is a menu."""
    menu = page.locator("[popovertarget=places]")
    if menu.is_visible():
        menu.click()
    page.get_by_role("navigation", name="Sonar").get_by_role("link", name=name).click()


def look(page: Page, name: str) -> None:
    """Save what is seen, if somebody wants to look."""
    if folder := os.environ.get("SONAR_TEST_PICTURES"):
        page.wait_for_timeout(150)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def log_in(page: Page, user: User) -> None:
    """Log in by the form that is shown, and wait until the page after it comes."""
    user.set_password("four in the morning")
    user.save()
    page.fill("[name=username]", user.get_username())
    page.fill("[name=password]", "four in the morning")
    page.click("main button")
    page.wait_for_url(lambda url: "/login/" not in url, wait_until="commit")


def holding(held: list[Route]) -> Callable[[Route], None]:
    """Return what keeps requests waiting for their answer."""

    def hold(route: Route) -> None:
        held.append(route)

    return hold


def box_of(locator: Locator) -> FloatRect:
    """Return where an element is on the screen: it must be there."""
    box = locator.bounding_box()
    assert box is not None, f"{locator} is not seen"
    return box


def is_on_the_screen(page: Page, box: FloatRect) -> bool:
    """Say whether all of a box lies on the screen."""
    size = page.viewport_size
    assert size is not None
    right, bottom = box["x"] + box["width"], box["y"] + box["height"]
    return min(box["x"], box["y"]) >= 0 and right <= size["width"] and bottom <= size["height"]


def call(path: str, function: str) -> str:
    """Return the expression that gives a module of static/js/ to a function of it."""
    return f"import('/static/js/{path}.js').then({function})"


def refresh(page: Page) -> None:
    """Have what a page shows fetched anew, as it does each minute."""
    page.evaluate(call("page", "(page) => page.refresh()"))


def wait_for_turns(page: Page) -> None:
    """Wait until every change of the matrix that was asked for has been drawn."""
    for turn in range(2):
        page.wait_for_timeout(300)
        # What waits for a promise of the page may lose it; what the page notes stays.
        note = f"() => {{ window.turned = {turn}; }}"
        page.evaluate(call("picture", f"({{ inTurn }}) => void inTurn({PLOT}, {note})"))
        until(page, f"window.turned === {turn}")


@dataclass
class Hand:
    """Clicks and types on a page, from the front page on; ``clicks`` is what a task has cost.

    As tasks are counted: a click is one, and so is a field that is typed into, with the Enter that
    sends it. Where a page is turned to by itself costs nothing.
    """

    page: Page
    clicks: int = 0

    def click(self, what: Locator) -> None:
        self.clicks += 1
        what.click()

    def link(self, name: str) -> None:
        """Click the first link of this name."""
        self.click(self.page.get_by_role("link", name=name, exact=True).first)

    def type(self, field: Locator, text: str, *, enter: bool = False) -> None:
        """Type into a field: this counts as one."""
        self.clicks += 1
        field.fill(text)
        if enter:
            field.press("Enter")
