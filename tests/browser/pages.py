"""What tests of several pages ask of a page."""

from __future__ import annotations

import os
from collections.abc import Callable

from playwright.sync_api import Page, Route


def fits(page: Page) -> bool:
    """Say whether nothing but boxes of their own scrolls to the side."""
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    return bool(page.evaluate(wide))


def look(page: Page, name: str) -> None:
    """Save what is seen, if somebody wants to look."""
    if folder := os.environ.get("SONAR_TEST_PICTURES"):
        page.wait_for_timeout(150)
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def holding(held: list[Route]) -> Callable[[Route], None]:
    """Return what keeps requests waiting for their answer."""

    def hold(route: Route) -> None:
        held.append(route)

    return hold
