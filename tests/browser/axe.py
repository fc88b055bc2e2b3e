"""What axe-core finds on a page, in words that name the place and the way to mend it."""

import json
from typing import Any, TypeAlias

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from tests.browser.readers import NARROW

Rules: TypeAlias = dict[str, Any]
# Where nothing may move, colours are there with the next frame: else they change one level of
# elements after the other, a frame for each.
UNTIL_COLOURS_STAY = """() => new Promise((done) => {
    const look = () => {
        const moves = document.getAnimations().some((one) => one.playState === "running");
        requestAnimationFrame(moves ? look : done);
    };
    requestAnimationFrame(look);
})"""
# Whether all but colours that a rule may look at is as it was when this was asked last: what there
# is, what is said of it, where it is, how large, and whether it is seen and scrolls.
BUT_COLOURS_AS_BEFORE = """() => {
    const before = window.allButColours;
    window.allButColours = [...document.querySelectorAll("*")].map((one) => {
        const { x, y, width, height } = one.getBoundingClientRect();
        const seen = one.checkVisibility({ opacityProperty: true, visibilityProperty: true });
        const said = [...one.attributes].filter(
            ({ name, value }) => name !== "style" && name !== "data-asked"
                && !value.startsWith("data:image/"),
        );
        const text = [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
        return [
            one.localName, ...said.map(({ name, value }) => `${name}=${value}`),
            ...text.map(({ data }) => data), x, y, width, height, seen,
            one.scrollWidth, one.scrollHeight,
        ].join("\\t");
    }).join("\\n");
    return window.allButColours === before;
}"""
# To see how text stands out takes axe-core longer than all else. Of elements that are drawn alike,
# in others that are drawn alike, as cells of a column are, it looks at the first and at the last;
# and of what has neither text of its own nor a field's, at none, which it would find out later.
# Not in the look is what lies behind without being around: of that axe-core says that it is unsure.
MARK_ASKED = """(within) => {
    const looks = ["color", "backgroundColor", "backgroundImage", "opacity", "filter",
        "mixBlendMode", "fontSize", "fontWeight", "textShadow", "position", "clip", "clipPath"];
    const texts = ({ childNodes }) => [...childNodes].filter(
        ({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data.trim()).join("");
    const numbers = new Map();
    const number = new Map();
    const alike = new Map();
    for (const one of document.querySelectorAll("*")) {
        const style = getComputedStyle(one);
        const { width, height } = one.getBoundingClientRect();
        const text = texts(one);
        const look = [
            number.get(one.parentElement), one.localName, one.getAttribute("class"), one.type,
            ...looks.map((name) => style[name]), Math.min(text.length, 2), !!one.value,
            one.checkVisibility({ opacityProperty: true, visibilityProperty: true }),
            width > 1 && height > 1, one.matches(":disabled, [aria-disabled=true]"),
            one.control?.disabled,
        ].join("\\t");
        if (!numbers.has(look)) numbers.set(look, numbers.size);
        number.set(one, numbers.get(look));
        one.removeAttribute("data-asked");
        if (!one.closest(within) || !(text || one.matches("input, select, textarea"))) continue;
        alike.set(look, alike.get(look) ?? []);
        alike.get(look).push(one);
    }
    for (const some of alike.values())
        for (const one of [some.at(0), some.at(-1)]) one.setAttribute("data-asked", "");
    axe.configure({ rules: [{ id: "color-contrast", selector: "[data-asked]" }] });
}"""
# The rules on colours that are among those which axe-core asks by itself.
ON_COLOURS = {"runOnly": ["cat.color"], "rules": {"color-contrast-enhanced": {"enabled": False}}}
# Those for which the rest of a page matters.
ON_A_WHOLE = {"runOnly": ["heading-order", "duplicate-id-aria"]}
ALL = "html"
# A page keeps axe-core until it is left.
IS_THERE = "typeof axe === 'object'"


def violations(page: Page, rules: Rules | None = None, within: str = ALL) -> list[str]:
    """Return one text for each rule that the page breaks, be it gravely or a little.

    ``rules`` are options of axe-core, all rules without. Where a part alone has changed since the
    page was looked at, ``within`` selects it. The page is asked to move nothing from now on, as a
    reader may ask it.
    """
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(UNTIL_COLOURS_STAY)
    if not page.evaluate(IS_THERE):
        page.evaluate(AXE_SCRIPT)
    page.evaluate(MARK_ASKED, within)
    broken = ask_axe(page, rules or {}, within)
    return broken + ask_axe(page, ON_A_WHOLE, ALL) if within != ALL and not rules else broken


def ask_axe(page: Page, rules: Rules, within: str) -> list[str]:
    """Run axe-core, which the page has, on a part of it."""
    asked = f"{json.dumps(within)}, {json.dumps({'resultTypes': ['violations']} | rules)}"
    found = page.evaluate(f"axe.run({asked}).then((told) => told.violations)")
    return [in_words(one) for one in found]


def by_day_and_night(page: Page, within: str = ALL) -> list[str]:
    """Return the same of a page in light and then in dark, on a narrow screen in dark alone.

    No style asks for both, and a colour that was written by hand is seldom one for the dark. There,
    rules on colours are enough where nothing but those has changed.
    """
    if is_narrow(page):
        page.emulate_media(color_scheme="dark")
        return [f"in the dark: {one}" for one in violations(page, within=within)]
    page.emulate_media(color_scheme="light")
    by_day = violations(page, within=within)
    page.evaluate(BUT_COLOURS_AS_BEFORE)
    page.emulate_media(color_scheme="dark")
    page.evaluate(UNTIL_COLOURS_STAY)
    is_the_same = page.evaluate(BUT_COLOURS_AS_BEFORE)
    by_night = violations(page, ON_COLOURS if is_the_same else None, within)
    return by_day + [f"in the dark: {one}" for one in by_night]


def is_narrow(page: Page) -> bool:
    """Say whether a page is looked at on a telephone."""
    return page.viewport_size == {"width": NARROW.width, "height": NARROW.height}


def in_words(violation: dict[str, Any]) -> str:
    places = "".join(f"\n  {place(node)}" for node in violation["nodes"][:5])
    count = len(violation["nodes"])
    return f"{violation['id']} ({violation['impact']}, {count} x): {violation['help']}{places}"


def place(node: dict[str, Any]) -> str:
    messages = [one["message"] for kind in ("any", "all", "none") for one in node[kind]]
    return f"{' '.join(map(str, node['target']))}: {node['html'][:160]}\n    {'; '.join(messages)}"
