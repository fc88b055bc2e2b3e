"""The Content-Security-Policy of the pages, tried in a browser."""

from __future__ import annotations

from tests.browser.conftest import Visit
from tests.browser.scene import Scene
from tests.browser.waiting import until_so

TRY_ALL = """async () => {
    window.ran = [];
    const add = (markup) => document.body.append(
        document.createRange().createContextualFragment(markup));
    add("<script>ran.push('inline script')</script>");
    add("<img src='/nothing.png' onerror=\\"ran.push('handler')\\">");
    add("<a id=leads href=\\"javascript:ran.push('address')\\">x</a>");
    document.getElementById("leads").click();
    add("<script src='https://elsewhere.invalid/x.js'></script>");
    await fetch("https://elsewhere.invalid/").catch(() => {});
}"""
ATTEMPTS = (
    "inline script",
    "inline event handler",
    "JavaScript URL",
    "Loading the script",
    "Connecting to",
)


def refused(visit: Visit) -> list[str]:
    """Return which attempts the browser has reported as refused so far."""
    refusals = [text for text in visit.errors if "Content Security Policy" in text]
    return [attempt for attempt in ATTEMPTS if any(attempt in text for text in refusals)]


def test_what_somebody_might_smuggle_into_a_page_does_not_run(visit: Visit, scene: Scene) -> None:
    page = visit.go("/")
    page.evaluate(TRY_ALL)
    # The picture's handler is tried once the server has no picture.
    until_so(page, lambda: len(refused(visit)) == len(ATTEMPTS), "all attempts are refused")
    assert refused(visit) == list(ATTEMPTS)
    assert page.evaluate("ran") == []
    visit.errors.clear()
    visit.hosts.discard("elsewhere.invalid")  # Playwright tells of what the browser refused, too
