"""axe-core finds nothing on any page, light and dark; none is wider than its screen or moves.

On a telephone it looks at a page or two of each template that no other module looks at there.
"""

import re

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Page

from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night, violations
from tests.browser.conftest import Visit
from tests.browser.pages import assert_still, fits
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.slow_scene import LINK as SLOW_LINK
from tests.browser.slow_scene import SITE as SLOW_SITE
from tests.browser.waiting import until_settled

everybody = seen_by(LAPTOP, NARROW)
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
# What each is called in the report of a test, and where it is; {ids} are those of the scene.
PAGES = {
    "matrix": "/",
    "matrix, filtered, by site": "/?source_cloud=UK&site=!DESY&size=small&rows=site&columns=cloud",
    "matrix, statistic": "/?stat=success",
    "matrix, nothing matches": "/?mover=fake",
    "matrix, only failing, transposed": "/?only=failed&order=tier&transpose=1&palette=rdylgn",
    "matrix, compared": "/?window=1h&compare=previous",
    "matrix, both directions": "/?compare=reverse&compare.of=mean",
    "wall": "/?wall=1",
    "wall, compared": "/?wall=1&compare=reverse",
    "table": "/table/",
    "table, compared, searched": "/table/?compare=reverse&ordering=large.compared_p&search=RAL",
    "table, nothing matches": "/table/?search=nobody",
    "link": LINK,
    "link, both ways": f"{LINK}?reverse=1",
    "link, never tested": "/links/Glasgow_DATADISK/DESY_DATADISK/",
    "failed transfer": "/transfers/{failing}/",
    "sampled transfer": "/transfers/{sampled}/",
    "sites": "/sites/",
    "site": "/sites/RAL/",
    "site in downtime": "/sites/DESY/",
    "operations": "/operations/",
    "search": "/search/?q=a",
    "search, nothing found": "/search/?q=nowhere",
    "search, empty": "/search/",
    "login": "/login/",
}
# Those that say what changed and why it is slow, to an operator; {ids} are those of its scene.
PAGES_ON_SLOWNESS = {
    "causes": "/causes/?window=24h",
    "causes of a change": "/causes/?window=24h&compare=previous",
    "causes, one source": "/causes/?window=24h&source_site=RAL-LCG2",
    "events": "/events/?significant=any",
    "events, none like this": "/events/?source_site=TAIWAN-LCG2",
    "matrix, window before": "/?window=24h&compare=previous",
    "matrix, too few": "/?window=24h&compare=week",
    "matrix, around a moment, one row": "/?compare.around={moment}&only=slower&source_cloud=UK",
    "matrix, vs_predicted": "/?window=24h&stat=vs_predicted",
    "matrix, slower than usual": "/?window=24h&only=slower&stat=vs_usual",
    "matrix, overhead": "/?window=24h&stat=overhead",
    "table, window before": "/table/?window=24h&compare=previous&overhead=1",
    "link": f"{SLOW_LINK}?window=24h",
    "link, window before": f"{SLOW_LINK}?window=24h&compare=previous",
    "link, too few": f"{SLOW_LINK}?window=24h&compare=week&reverse=1",
    "site": f"{SLOW_SITE}?window=24h",
    "site, window before": f"{SLOW_SITE}?window=24h&compare=previous",
    "sweep": "/sweeps/{finished}/",
    "sweep that runs": "/sweeps/{running}/",
    "sweep, cancelled": "/sweeps/{cancelled}/",
    "sweeps of a link": f"{SLOW_LINK}sweeps/",
    "tests of a link": f"{SLOW_LINK}tests/",
}
# What is like nothing else on a narrow screen: there, axe-core looks at these.
ON_A_TELEPHONE = {
    "matrix",
    "matrix, compared",
    "wall",
    "table",
    "link, both ways",
    "failed transfer",
    "sampled transfer",
    "sites",
    "site in downtime",
    "search",
    "causes of a change",
    "matrix, slower than usual",
    "table, window before",
    "link, too few",
    "site, window before",
    "sweep that runs",
    "sweeps of a link",
    "/nowhere/",
    "bad parameter",
}
# What test_log_in.py and test_operations_page.py look at, and what differs from another page by a
# number or a word alone.
AS_ELSEWHERE = {
    "matrix, statistic",
    "matrix, overhead",
    "causes, one source",
    "operations",
    "login",
}
# A part that only test_tabs.py opens, of a site without the states of this one.
PARTNERS = {"site in downtime, row and column": "/sites/DESY/#partners"}
NOT_FOUND = (
    "/nowhere/",
    "/sites/nowhere/",
    "/links/RAL_DATADISK/nowhere/",
    "/links/RAL_DATADISK/RAL_DATADISK/",
    "/transfers/00000000-0000-4000-8000-000000000000/",
)


def looked_at(page: Page) -> list[str]:
    """Look at a page in light and in dark, once its pictures are there."""
    page.emulate_media(color_scheme="light")
    until_settled(page)
    return by_day_and_night(page)


def faults(visit: Visit, name: str) -> list[str]:
    """Return what is wrong with the page that is open, which is called this."""
    is_asked = name in ON_A_TELEPHONE or (visit.reader is LAPTOP and name not in AS_ELSEWHERE)
    found = looked_at(visit.page) if is_asked else []
    until_settled(visit.page)
    return found if fits(visit.page) else [*found, "wider than the screen"]


def open_still(visit: Visit, name: str, path: str) -> None:
    """Open a page as on a first visit, and again with its files there; nothing may move by itself.

    Where files are there at once, one page of a template is as good as another.
    """
    visit.forget_files()
    visit.reader.adjust(visit.page)
    for time in ("cold", "warm") if name in ON_A_TELEPHONE else ("cold",):
        page = visit.open(path)
        until_settled(page)
        assert_still(page, name, time)


@pytest.mark.long
@everybody
def test_no_page_breaks_a_rule_or_is_too_wide_or_moves_as_it_loads(visit, scene_of_today):
    found = {}
    ids = {"failing": scene_of_today.failing, "sampled": scene_of_today.sampled}
    for name, path in (PAGES | PARTNERS).items():
        if visit.reader is LAPTOP or name in ON_A_TELEPHONE:
            open_still(visit, name, path.format(**ids))
        else:
            visit.open(path.format(**ids))
        found[name] = faults(visit, name)
    assert not any(found.values()), in_words(found)


@pytest.mark.long
@everybody
def test_no_page_on_slowness_breaks_a_rule_or_is_too_wide(visit, slow_scene):
    visit.log_in(account(Role.OPERATOR))
    found = {}
    for name, path in PAGES_ON_SLOWNESS.items():
        visit.open(path.format(**vars(slow_scene)))
        found[name] = faults(visit, name)
    assert not any(found.values()), in_words(found)


@pytest.mark.long
@everybody
def test_pages_of_an_empty_sonar_break_no_rule_and_fit(visit, real_commits):
    found = {}
    for path in ("/", "/table/", "/sites/", "/operations/", "/causes/", "/events/"):
        visit.open(path)
        found[path] = faults(visit, path)
    assert not any(found.values()), in_words(found)


@pytest.mark.long
@everybody
def test_pages_that_say_no_break_no_rule_and_fit(visit, scene):
    visit.open("/?size=huge", status=400)
    found = {"bad parameter": faults(visit, "bad parameter")}
    for path in NOT_FOUND:
        visit.open(path, status=404)
        found[path] = faults(visit, path)
    for template in ("500.html", "unreadable.html"):
        visit.page.set_content(render_to_string(template, {"sentence": "Too long."}))
        found[template] = looked_at(visit.page)
        assert fits(visit.page)
    assert not any(found.values()), in_words(found)


def test_a_rule_that_is_broken_is_reported_with_its_place(visit, scene):
    page = visit.open("/search/")
    page.evaluate("document.querySelector('main').innerHTML += '<input id=bare>'")
    assert [one.split(" ")[0] for one in violations(page)] == ["label"]


ONE_OF_MANY = """() => {
    document.querySelector("main").innerHTML += `<ul>${"<li>As all are</li>".repeat(9)}</ul>`;
    const one = document.querySelector("main li:nth-last-child(5)");
    [one.id, one.style.background, one.style.color] = ["odd", "#fff", "#ddd"];
}"""


def test_one_of_a_list_that_is_drawn_otherwise_is_looked_at(visit, scene):
    page = visit.open("/search/")
    page.evaluate(ONE_OF_MANY)
    (broken,) = violations(page)
    assert broken.startswith("color-contrast ")
    assert "#odd: <li" in broken
    assert page.locator("main li:not([data-asked])").count() >= 6


PLANTED = """() => {
    document.querySelector("main").innerHTML += `<p id=pale>Pale</p><p id=dim>Dim</p>
        <div id=late><input></div>`;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`
        @media (prefers-color-scheme: light) { #pale { color: #ddd; background: #fff; } }
        @media (prefers-color-scheme: dark) { #dim { color: #333; background: #000; } }
        %s`);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}"""
ONLY_BY_NIGHT = "@media (prefers-color-scheme: light) { #late { display: none; } }"


@pytest.mark.parametrize(
    ("reader", "more", "expected"),
    [
        (
            LAPTOP,
            "",
            ["color-contrast #pale", "label #late > input", "in the dark: color-contrast #dim"],
        ),
        (NARROW, "", ["in the dark: color-contrast #dim", "in the dark: label #late > input"]),
        (
            LAPTOP,
            ONLY_BY_NIGHT,
            [
                "color-contrast #pale",
                "in the dark: color-contrast #dim",
                "in the dark: label #late > input",
            ],
        ),
    ],
    ids=["colours alone differ", "on a telephone", "more than colours differs"],
)
def test_what_is_broken_in_one_scheme_alone_is_found(visit, scene, more, expected):
    """A rule that has to do with no colour is asked once, unless the dark changes what it sees."""
    page = visit.open("/search/")
    assert looked_at(page) == []
    page.evaluate(PLANTED % more)
    found = [re.sub(r" \(.*?\n  (.*?): .*", r" \1", one, flags=re.S) for one in looked_at(page)]
    assert found == expected


def in_words(found: dict[str, list[str]]) -> str:
    return "\n\n".join(f"{name}:\n" + "\n".join(some) for name, some in found.items() if some)
