"""What the tests ask of the modules of a page: these hang nothing on its window."""

from playwright.sync_api import Page

from tests.browser.waiting import until

PLOT = "document.querySelector('#picture .plot')"


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
