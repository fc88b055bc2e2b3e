"""What axe-core finds on a page, in words that name the place and the way to mend it."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# Colours that are inherited change one level of elements after the other, a frame for each.
UNTIL_COLOURS_STAY = """() => new Promise((done) => {
    let still = 0;
    const look = () => {
        const moves = document.getAnimations().some((one) => one.playState === "running");
        still = moves ? 0 : still + 1;
        if (still < 3) requestAnimationFrame(look);
        else done();
    };
    requestAnimationFrame(look);
})"""


# What is called wrong is wanted, not what is right: to list each element of a page costs a tenth.
ONLY_WRONG = {"resultTypes": ["violations"]}
# The rules that look at colours, of those that axe-core asks by itself.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def violations(page: Page) -> list[str]:
    """Return one text for each rule that the page breaks, be it gravely or a little."""
    return broken(page, ONLY_WRONG)


def violations_of_colour(page: Page) -> list[str]:
    """Return the same of rules on colour: for a page of which all the rest was looked at."""
    return broken(page, ONLY_WRONG | COLOURS)


def broken(page: Page, options: dict[str, Any]) -> list[str]:
    """Ask axe-core, once colours no longer are on their way from one scheme to the other."""
    page.evaluate(UNTIL_COLOURS_STAY)
    found = Axe().run(page, options=options).response["violations"]
    return [in_words(one) for one in found]


def in_words(violation: dict[str, Any]) -> str:
    places = "".join(f"\n  {place(node)}" for node in violation["nodes"][:5])
    count = len(violation["nodes"])
    return f"{violation['id']} ({violation['impact']}, {count} x): {violation['help']}{places}"


def place(node: dict[str, Any]) -> str:
    messages = [one["message"] for kind in ("any", "all", "none") for one in node[kind]]
    return f"{' '.join(map(str, node['target']))}: {node['html'][:160]}\n    {'; '.join(messages)}"
