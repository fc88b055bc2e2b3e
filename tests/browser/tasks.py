"""A hand that does a task in the browser, and how often it had to click."""

from dataclasses import dataclass

from playwright.sync_api import Locator, Page


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
