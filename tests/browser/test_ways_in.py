"""What a first look needs: groups that open, a search, the right place in the navigation."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from sonar.models import Downtime, Endpoint, Site
from tests import found
from tests.browser.cells import place, point_at, wait_until_drawn
from tests.browser.conftest import Standing
from tests.browser.pages import box_of, holding, look
from tests.browser.readers import DARK, LAPTOP, NARROW, SCRIPTLESS, seen_by
from tests.browser.slow_scene import LINK, SITE, SOURCE
from tests.browser.waiting import until, until_settled
from tests.conditions import stored_condition
from tests.matrix import world
from tests.matrix.test_large_grid import ring

# How many lines of text an element has: its texts by where they stand on the screen.
LINES = """element => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const middles = [];
    while (texts.nextNode()) {
        const { parentElement: parent } = texts.currentNode;
        if (!texts.currentNode.data.trim() || !parent.checkVisibility() ||
            parent.closest(".visually-hidden, .simulated, svg")) continue;
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        for (const { top, bottom, width } of range.getClientRects()) {
            if (width > 1) middles.push((top + bottom) / 2);
        }
    }
    middles.sort((one, other) => one - other);
    return middles.filter((middle, at) => !at || middle - middles[at - 1] > 9).length;
}"""
CUT = """() => [...document.querySelectorAll(".scroll, .links-box, pre")]
    .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
    .map((box) => box.getAttribute("aria-label"))"""
ROWS = "JSON.parse(document.getElementById('picture-data').textContent).rows.names"


def make_ring() -> None:
    ring(sites=31, endpoints=61)


@pytest.fixture
def large(standing: Standing[None], at_noon: None) -> None:
    standing(make_ring)


def test_a_click_opens_a_group_and_a_link_shows_all_rows(visit, large):
    page = wait_until_drawn(visit.go("/?window=24h"))
    look(page, "grouped")
    assert page.evaluate(ROWS)[:2] == ["SITE-000", "SITE-001"]
    with page.expect_navigation():
        page.mouse.click(*place(page, "SITE-000", "SITE-001"))
    until(page, f"{ROWS}.length === 2")
    assert page.evaluate(ROWS) == ["E000_DATADISK", "E031_DATADISK"]
    page.go_back()
    wait_until_drawn(page)
    _, y = place(page, "SITE-002", "SITE-003")
    left = box_of(page.locator("#picture"))["x"]
    edge = "document.querySelector('#picture .plot')._fullLayout.xaxis._offset"
    with page.expect_navigation():
        page.mouse.click(left + page.evaluate(edge) - 12, y)
    assert "source_site=SITE-002" in page.url
    page.go_back()
    wait_until_drawn(page)
    page.get_by_role("link", name="Show all 61").click()
    page.wait_for_url("**rows=endpoint*")
    until(page, f"{ROWS}.length === 61")
    page.get_by_role("link", name="Group rows and columns").click()
    page.wait_for_url(lambda url: "rows=" not in url)
    until(page, f"{ROWS}.length === 31")


@pytest.mark.parametrize("reader", [SCRIPTLESS], ids=str)
def test_a_group_opens_without_a_script(visit, large):
    page = visit.open("/?window=24h")
    page.get_by_text("Open a group").click()
    page.locator("#groups").get_by_role("link", name="SITE-002", exact=True).first.click()
    expect(page.locator(".question")).to_contain_text("only from site SITE-002")


@seen_by(LAPTOP, DARK)
def test_the_search_has_ten_lines_of_one_line_each_in_a_wide_box(visit, large):
    page = visit.open("/table/?window=24h")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Jump to a site, endpoint or link")
    expect(box).to_be_focused()
    box.press_sequentially("site 00")
    options = page.locator("#found [role=option]")
    expect(options).to_have_count(10)
    expect(options.first).to_contain_text("SITE-000")
    look(page, "search")
    assert box_of(box)["width"] >= 480
    heights = [box_of(option)["height"] for option in options.all()]
    assert max(heights) < 32
    found = box_of(page.locator("#found"))
    assert found["width"] >= 480
    assert found["x"] >= 0
    assert found["x"] + found["width"] <= 1440
    assert found["y"] + found["height"] <= 900
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sites/SITE-000/**")


@seen_by(LAPTOP, NARROW)
def test_what_the_box_of_the_search_says_is_not_cut(visit, scene):
    page = visit.open("/table/")
    is_whole = """box => {
        const { font, paddingLeft, paddingRight } = getComputedStyle(box);
        const ink = document.createElement("canvas").getContext("2d");
        ink.font = font;
        const room = box.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
        return ink.measureText(box.placeholder).width <= room;
    }"""
    assert page.locator("#jump").evaluate(is_whole)


def test_a_link_to_another_page_is_marked_in_the_navigation(visit, slow_scene):
    page = visit.go("/")
    page.locator(".today").click()
    page.wait_for_url("**/events/")
    pages = page.get_by_role("navigation", name="Sonar")
    expect(pages.locator("[aria-current]")).to_have_text(["Problems", "Events"])
    tabs = page.get_by_role("navigation", name="Problems")
    expect(tabs.get_by_role("link")).to_have_text(["Incidents", "Events", "Causes"])
    expect(tabs.locator("[aria-current]")).to_have_text("Events")
    expect(page).to_have_title("Events, the last 7 days – Sonar")


def test_what_the_header_links_to_follows_the_view(visit, scene):
    page = visit.go("/")
    log_in = page.get_by_role("link", name="Log in", exact=True)
    expect(log_in).to_have_attribute("href", "/login/")
    page.get_by_role("link", name="24h", exact=True).click()
    page.wait_for_url("**/?window=24h")
    page.get_by_role("link", name="30d", exact=True).click()
    page.wait_for_url("**/?window=30d")
    expect(log_in).to_have_attribute("href", "/login/?next=/%3Fwindow%3D30d")


@pytest.mark.parametrize("key", ["Shift", "Tab"])
def test_a_menu_that_is_opened_while_a_view_loads_stays_with_what_is_typed(visit, scene, key):
    """What is typed stays, too, if its field has lost the focus: Tab moves that, Shift does not."""
    page = visit.go("/")
    held: list[Route] = []
    page.route("**/?window=24h", holding(held))
    page.get_by_role("link", name="24h", exact=True).click()
    page.get_by_role("button", name="from anywhere").click()
    box = page.locator("#filter-source")
    box.press_sequentially("gla")
    box.press(key)
    assert len(held) == 1
    held[0].continue_()
    page.wait_for_url("**/?window=24h")
    expect(page.get_by_role("link", name="24h", exact=True)).to_have_class(
        "btn btn-outline-secondary active"
    )
    expect(page.locator("#from-menu")).to_be_visible()
    expect(page.locator("#filter-source:focus")).to_have_count(int(key != "Tab"))
    expect(box).to_have_value("gla")
    # What is chosen in it closes it, as ever.
    box.press("ArrowDown")
    page.get_by_role("option", name="Glasgow", exact=True).first.click()
    page.wait_for_url("**source_site=Glasgow*")
    expect(page.locator("#from-menu")).to_be_hidden()


# Where it is, and how many lines it has at most; on a small laptop it may have one more.
HEADS = {
    "matrix": ("/", "#answer", 4),
    "compared matrix": ("/?window=24h&compare=previous", "#answer", 5),
    "table": ("/table/", "#page > h1", 4),
    "link": (LINK, ".link-head", 4),
    "site": (SITE, ".site-head .who", 4),
}


@pytest.mark.parametrize("name", HEADS)
def test_the_head_of_a_page_has_few_lines(visit, slow_scene, name):
    path, head, most = HEADS[name]
    for site in Site.objects.all():
        times = {"starts_at": world.NOW + world.HOUR, "ends_at": world.NOW + 9 * world.HOUR}
        Downtime.objects.create(site=site, reason="disks", severity="warning", **times)
    slow = Endpoint.objects.get(name=SOURCE)
    others = list(Endpoint.objects.exclude(pk=slow.pk))
    causes = [found.into(end, [slow], found.FAILING) for end in others[:3]]
    found.evaluate(*causes, at=world.NOW)
    page = visit.open(path)
    until_settled(page)
    lines = {}
    for width in (1440, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        if head == "#answer":
            look(page, f"head-{name}-{width}")
            expect(page.locator(".downtimes")).to_contain_text("and 3 more")
        lines[width] = page.locator(head).evaluate(LINES)
    assert 1 <= lines[1440] <= most, lines
    assert 1 <= lines[1280] <= most + 1, lines


def is_in_one_line(page: Page) -> bool:
    controls = page.locator("#controls > :is(.btn-group, .menu)").all()
    tops = [box_of(control)["y"] for control in controls]
    return max(tops) - min(tops) < 10


@pytest.mark.parametrize("width", [1280, 1440])
def test_the_controls_of_the_matrix_are_in_one_line(visit, scene, width):
    page = visit.open("/")
    page.set_viewport_size({"width": width, "height": 900})
    assert is_in_one_line(page)


@pytest.mark.parametrize("path", ["/table/", "/events/", "/incidents/", "/reports/", "/sites/"])
def test_no_table_is_cut_on_a_laptop(visit, slow_scene, path):
    page = visit.open(path)
    until_settled(page)
    assert page.evaluate(CUT) == []


def test_the_card_of_a_cell_leaves_the_lists_in_sight(visit, large):
    page = wait_until_drawn(visit.go("/?window=24h&rows=endpoint"))
    rail = box_of(page.locator("#rail"))
    # Of cells at the right edge, and of those whose card has room up to that of the screen.
    for number in range(20, 61, 5):
        card = box_of(point_at(page, "E059_DATADISK", f"E{number:03}_DATADISK"))
        assert card["x"] + card["width"] <= rail["x"], number


def failed_once_and_thrice() -> None:
    made = world.make()
    world.transfer(made.ral, made.glasgow, None)
    for minutes in (10, 20, 30):
        world.transfer(made.ral, made.desy, None, ago=timedelta(minutes=minutes))
    stored_condition(source=made.ral, destination=made.desy)


# How much a cell stands out from the page, as contrast of its own colour with that of the page.
STANDS_OUT = """cell => {
    const light = (element) => {
        const [red, green, blue] = getComputedStyle(element).backgroundColor.match(/[\\d.]+/g)
            .map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.05 + 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ratio = light(cell) / light(document.body);
    return Math.max(ratio, 1 / ratio);
}"""


@seen_by(LAPTOP, DARK)
def test_one_failed_test_is_paler_in_the_table_than_a_link_that_is_failing(
    visit, standing, at_noon
):
    standing(failed_once_and_thrice)
    page = visit.open("/table/")
    look(page, f"pale-{visit.reader}")
    failed, failing = (
        page.locator(f".links tbody td.words.{state}").evaluate(STANDS_OUT)
        for state in ("failed", "failing")
    )
    assert 1.1 < failed < failing / 2
