"""What axe-core finds on a page, in words that name the place and the way to mend it."""

from __future__ import annotations

import json
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
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
# Everything but colours that a rule may look at: what there is, what is said of it, where it is,
# how large, and whether it is seen and scrolls.
BUT_COLOURS = """() => [...document.querySelectorAll("*")].map((one) => {
    const { x, y, width, height } = one.getBoundingClientRect();
    const seen = one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    const said = [...one.attributes].filter(
        ({ name, value }) => name !== "style" && !value.startsWith("data:image/"),
    );
    const text = [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
    return [
        one.localName, ...said.map(({ name, value }) => `${name}=${value}`),
        ...text.map(({ data }) => data), x, y, width, height, seen,
        one.scrollWidth, one.scrollHeight,
    ].join("\\t");
}).join("\\n")"""
# The rules on colours that are among those which axe-core asks by itself.
ON_COLOURS = {
    "runOnly": ["cat.color"],
    "rules": {"color-contrast-enhanced": {"enabled": False}},
}
# A page keeps axe-core until it is left.
IS_THERE = "typeof axe === 'object'"


def violations(page: Page, rules: dict[str, Any] | None = None) -> list[str]:
    """Return one text for each rule that the page breaks, be it gravely or a little.

    ``rules`` are options of axe-core, all rules without. The page is asked to move nothing from
    now on, as a reader may ask it.
    """
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(UNTIL_COLOURS_STAY)
    if not page.evaluate(IS_THERE):
        page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"]} | (rules or {})
    found = page.evaluate(f"axe.run({json.dumps(options)}).then((told) => told.violations)")
    return [in_words(one) for one in found]


def by_day_and_night(page: Page) -> list[str]:
    """Return the same of a page in light and then in dark.

    In the dark, rules on colours are enough where nothing but those has changed.
    """
    page.emulate_media(color_scheme="light")
    by_day = violations(page)
    seen_by_day = page.evaluate(BUT_COLOURS)
    page.emulate_media(color_scheme="dark")
    page.evaluate(UNTIL_COLOURS_STAY)
    is_the_same = page.evaluate(BUT_COLOURS) == seen_by_day
    by_night = violations(page, ON_COLOURS if is_the_same else None)
    return by_day + [f"in the dark: {one}" for one in by_night]


def in_words(violation: dict[str, Any]) -> str:
    places = "".join(f"\n  {place(node)}" for node in violation["nodes"][:5])
    count = len(violation["nodes"])
    return f"{violation['id']} ({violation['impact']}, {count} x): {violation['help']}{places}"


def place(node: dict[str, Any]) -> str:
    messages = [one["message"] for kind in ("any", "all", "none") for one in node[kind]]
    return f"{' '.join(map(str, node['target']))}: {node['html'][:160]}\n    {'; '.join(messages)}"
