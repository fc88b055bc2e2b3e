"""Waiting for what a script of the page does."""

import time
from collections.abc import Callable
from contextlib import suppress

from playwright.sync_api import Error, Page

from tests.browser.readers import PATIENCE_MS

# To look costs a page and the test some milliseconds each.
LOOK_MS = 50
# The longest time between two refreshes of a page on which something is under way.
REFRESH_MS, ONE_REFRESH = 5000, 2_000
SETTLED = """[...document.querySelectorAll(".picture[data-figure]")].every((box) =>
    !document.getElementById(box.dataset.figure)?.textContent || box.querySelector(".main-svg")
    || !box.checkVisibility()
) && (!document.querySelector("#picture .main-svg")
    || ["picture-drawn", "cells-loaded"].every((name) => performance.getEntriesByName(name).length))
"""


def until(page: Page, expression: str, seconds: float = PATIENCE_MS / 1000) -> None:
    """Wait until an expression is true in the page.

    Playwright's wait_for_function has the page itself evaluate a text again and again, which its
    Content-Security-Policy forbids.
    """
    until_so(page, lambda: is_so(page, expression), expression, seconds)


def until_so(
    page: Page, condition: Callable[[], bool], words: str, seconds: float = PATIENCE_MS / 1000
) -> None:
    """Wait until a condition of the test holds, and let the page go on meanwhile."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds} s: {words}"
        page.wait_for_timeout(LOOK_MS)


def until_refreshed(page: Page, check: Callable[[], None]) -> None:
    """Put the clock of a page forward until a check with a short timeout passes.

    One refresh may show what was there before: it was under way, or its figures are kept a while.
    """
    for _ in range(30):
        page.clock.run_for(REFRESH_MS)
        with suppress(AssertionError):
            return check()
    return check()


def hold_clock(page: Page) -> None:
    """Let no more time pass for a page whose clock the test may set, until the test says so."""
    try:
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    except Error as error:
        if "to the past" not in error.message:
            raise
        # The browser took longer than that second to hear of it. It stands still by now.
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)


def until_settled(page: Page) -> None:
    """Wait until a page is there whole: its pictures, and the numbers of a matrix."""
    page.wait_for_load_state("load")
    until(page, SETTLED)


def is_so(page: Page, expression: str) -> bool:
    try:
        return bool(page.evaluate(expression))
    except Error as error:
        if "context was destroyed" in error.message:  # another page is coming
            return False
        raise
