"""What axe-core finds on a page, in words that name the place and the way to mend it."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Where nothing may move, colours are there with the next frame: else they change one level of
# elements after the other, a frame for each.
UNTIL_COLOURS_STAY = """() => new Promise((done) => {
    const look = () => {
        const moves = document.getAnimations().some((one) => one.playState === "running");
        requestAnimationFrame(moves ? look : done);
    };
    requestAnimationFrame(look);
})"""


def violations(page: Page) -> list[str]:
    """Return one text for each rule that the page breaks, be it gravely or a little.

    The page is asked to move nothing from now on, as a reader may ask it.
    """
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(UNTIL_COLOURS_STAY)
    return [in_words(one) for one in Axe().run(page).response["violations"]]


def in_words(violation: dict[str, Any]) -> str:
    places = "".join(f"\n  {place(node)}" for node in violation["nodes"][:5])
    count = len(violation["nodes"])
    return f"{violation['id']} ({violation['impact']}, {count} x): {violation['help']}{places}"


def place(node: dict[str, Any]) -> str:
    messages = [one["message"] for kind in ("any", "all", "none") for one in node[kind]]
    return f"{' '.join(map(str, node['target']))}: {node['html'][:160]}\n    {'; '.join(messages)}"
