"""The Content-Security-Policy of the pages, tried in a browser."""

from __future__ import annotations

from tests.browser.conftest import Visit
from tests.browser.scene import Scene

TRY_ALL = """async (name) => {
    window.ran = [];
    const add = (markup) => document.body.append(
        document.createRange().createContextualFragment(markup));
    add("<script>ran.push('inline script')</script>");
    add("<img src='/nothing.png' onerror=\\"ran.push('handler')\\">");
    add("<a id=leads href=\\"javascript:ran.push('address')\\">x</a>");
    document.getElementById("leads").click();
    add("<script src='https://elsewhere.invalid/x.js'></script>");
    await fetch("https://elsewhere.invalid/").catch(() => {});
    await new Promise((done) => setTimeout(done, 300));
    return ran;
}"""


def test_what_somebody_might_smuggle_into_a_page_does_not_run(visit: Visit, scene: Scene) -> None:
    page = visit.go("/")
    assert page.evaluate(TRY_ALL) == []
    for kind in (
        "inline script",
        "inline event handler",
        "JavaScript URL",
        "Loading the script",
        "Connecting to",
    ):
        assert any(kind in text and "Content Security Policy" in text for text in visit.errors)
    visit.errors.clear()
    visit.hosts.discard("elsewhere.invalid")  # Playwright tells of what the browser refused, too
