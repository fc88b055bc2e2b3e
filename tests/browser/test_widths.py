"""At the widths that screens have menus open whole, figures stay whole, and lists show choices."""

from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from sonar.models import Credential, Endpoint, EndpointCheck, Mesh, Site
from sonar.people.roles import Role
from tests import found
from tests.accounts import account
from tests.browser.pages import box_of, fits, is_on_the_screen, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.slow_scene import LINK, SITE
from tests.browser.waiting import until_settled
from tests.conditions import stored_condition
from tests.matrix import world

WIDTHS = (390, 1024, 1280, 1366, 1440, 1920)
HEIGHT = 800
PAGES = {
    "matrix": "/",
    "causes": "/causes/",
    "events": "/events/",
    "link": LINK,
    "site": SITE,
    "table": "/table/",
}
# What opens a menu; that of the pages is of each, and seen on narrow screens.
OPENERS = "button[popovertarget]"
# Which controls of what is seen reach over the screen's left or right edge.
OFF_SCREEN = """() => [...document.querySelectorAll(
    ":is(.top, .controls, .narrow-head) :is(a, button, input, select)"
)].filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.closest(".scroll"))
    .map((it) => [it, it.getBoundingClientRect()])
    .filter(([, { left, right }]) => right > left && (left < 0 || right > innerWidth + 0.5))
    .map(([it]) => it.outerHTML.slice(0, 80))"""


def assert_on_screen(page: Page, menu: Locator, words: str) -> None:
    """Each edge of an open menu lies on the screen, and nothing in it is wider than it."""
    box = box_of(menu)
    assert is_on_the_screen(page, box), (words, box)
    assert menu.evaluate("it => it.scrollWidth <= it.clientWidth"), words


def try_menus(page: Page, within: Locator, words: str) -> int:
    """Open each menu that a part of the page offers, and those in it; say how many there are."""
    openers = [opener for opener in within.locator(OPENERS).all() if opener.is_visible()]
    for opener in openers:
        name = opener.get_attribute("popovertarget")
        opener.click()
        menu = page.locator(f"[id='{name}']")
        expect(menu).to_be_visible()
        assert_on_screen(page, menu, f"{words}: {name}")
        if menu.locator(OPENERS).count():
            assert try_menus(page, menu, f"{words}: {name}")
        menu.evaluate("it => it.hidePopover()")
    return len(openers)


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
@seen_by(LAPTOP, NARROW)
def test_every_menu_opens_on_the_screen(visit, slow_scene, name):
    page = visit.open(PAGES[name])
    until_settled(page)
    widths = WIDTHS[:1] if visit.reader is NARROW else WIDTHS[1:]
    for width in widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.evaluate("scrollTo(0, 0)")
        assert page.evaluate(OFF_SCREEN) == [], width
        assert try_menus(page, page.locator("body"), f"{name} at {width}") >= 2


@seen_by(LAPTOP)
def test_the_controls_of_the_matrix_take_one_line_of_a_laptop_and_two_of_a_tablet(
    visit, slow_scene
):
    page = visit.open("/")
    for width, lines in ((1440, 1), (1920, 1), (1024, 2)):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        tops = page.locator("#controls > :is(.btn-group, .menu)").evaluate_all(
            "all => all.map((it) => Math.round(it.getBoundingClientRect().top))"
        )
        assert len(set(tops)) == lines, width


RAL_TO_DESY = "/links/RAL_DATADISK/DESY_DATADISK/"
# The times and figures in the text of the page that begin on one line and end on another, at any
# width that a column may have.
BROKEN = r"""() => {
  const time = /\d+ [A-Z][a-z]{2}( \d{4})? \d\d:\d\d(:\d\d)? UTC/.source;
  const figure = new RegExp(`${time}|[\\d.]+\\s+((h|d|min|s) ago|[kMGT]?B(/s)?\\b)`, "g");
  const main = document.getElementById("page");
  const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const ranges = [];
  while (texts.nextNode()) {
    const text = texts.currentNode;
    for (const match of text.data.matchAll(figure)) {
      const range = document.createRange();
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      ranges.push(range);
    }
  }
  const isBroken = (range) => {
    const boxes = [...range.getClientRects()].filter((box) => box.width > 1);
    return new Set(boxes.map((box) => box.top)).size > 1;
  };
  const broken = new Set();
  for (let width = main.clientWidth; width > 280; width -= 11) {
    main.style.width = `${width}px`;
    for (const range of ranges.filter(isBroken)) broken.add(range.startContainer.data.trim());
  }
  main.style.width = "";
  return [...broken];
}"""
# The choices that are longer than the room that their list has for them, menus opened.
CUT = """() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const menu of document.querySelectorAll("[popover]")) {
    menu.popover = "manual";
    menu.showPopover();
  }
  const pen = document.createElement("canvas").getContext("2d");
  const cut = [];
  for (const list of document.querySelectorAll("main select")) {
    const style = getComputedStyle(list);
    if (!list.checkVisibility()) continue;
    pen.font = style.font;
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    for (const { index, label } of list.options) {
      list.selectedIndex = index;
      const missing = pen.measureText(label).width + padding - list.clientWidth;
      if (missing > 1) cut.push(`${list.name}: ${label} lacks ${missing} px`);
    }
  }
  return cut;
}"""
IN_TEXT = [
    *("/", "/table/", "/sites/", "/sites/RAL/", "/operations/"),
    *(RAL_TO_DESY, f"{RAL_TO_DESY}tests/"),
]


@pytest.mark.long
@pytest.mark.parametrize("reader", [LAPTOP, NARROW], ids=str)
def test_no_line_breaks_within_a_figure_and_every_list_has_room_for_its_choices(visit, scene):
    visit.log_in(account(Role.ADMINISTRATOR))
    for path in IN_TEXT:
        page = visit.open(path)
        assert page.evaluate(BROKEN) == [], path
        assert page.evaluate(CUT) == [], path


# What is cut without a title that says it, but for a ribbon and notes, which open where they are
# clicked; what sticks out of its section; and tables of a wide screen that scroll to the side.
CROWDED = """() => {
  const name = (it) => `${it.localName}.${it.className} ${it.textContent.trim().slice(0, 40)}`;
  const crowded = [];
  for (const it of document.querySelectorAll("body *:not(svg *, select *)")) {
    if (!it.checkVisibility({ visibilityProperty: true }) || it.clientWidth < 5) continue;
    const { overflowX } = getComputedStyle(it);
    const isWide = it.scrollWidth > it.clientWidth + 1;
    const isCut = ["hidden", "clip"].includes(overflowX) && it.textContent.trim();
    const says = it.closest("[title], .simulated, .near, .picture");
    const isTable = it.matches(".scroll") && innerWidth > 1200;
    if (isWide && ((isCut && !says) || isTable)) crowded.push(name(it));
    const section = it.parentElement?.closest("section, td, th, button, .card-of");
    const mayStickOut = it.closest(".scroll, .controls, .verdict, [popover]");
    if (!section || mayStickOut || overflowX !== "visible") continue;
    const { right, width } = it.getBoundingClientRect();
    const around = section.getBoundingClientRect();
    const sticksOut = width > 1 && around.width > 1 && right > around.right + 2;
    if (sticksOut) crowded.push(`${name(it)} sticks out`);
  }
  return crowded;
}"""
# The buttons of forms that are not at the left, below all fields. In menus, and in the head of a
# page, they may be next to the fields.
MISPLACED = """() => [...document.querySelectorAll("main .fields > .btn")].filter((button) => {
  if (!button.checkVisibility() || button.closest(".site-work, .sheet")) return false;
  const fields = [...button.parentElement.querySelectorAll(".field")];
  const { left, top } = button.getBoundingClientRect();
  const boxes = fields.filter((it) => it.checkVisibility()).map((it) => it.getBoundingClientRect());
  return boxes.some((box) => box.bottom > top || box.left < left - 1);
}).map((it) => it.textContent)"""
# The buttons that leave no room between them, but for those of one group.
TOUCHING = """() => {
  const seen = [...document.querySelectorAll("main .btn")]
    .filter((it) => it.checkVisibility() && !it.closest(".btn-group"));
  const isNear = (one, other) => {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    const apart = Math.max(a.left - b.right, b.left - a.right, a.top - b.bottom, b.top - a.bottom);
    return apart < 3;
  };
  return seen.flatMap((one, at) => seen.slice(at + 1).filter((other) => isNear(one, other))
    .map((other) => `${one.textContent.trim()} touches ${other.textContent.trim()}`));
}"""
WORKED_ON = [
    *("/meshes/", "/meshes/everything/", "/meshes/add/", "/operations/", "/people/", "/tokens/"),
    *("/sites/RAL/", "/sites/RAL/set-up/", "/sites/RAL/add-endpoint/", "/sites/add/"),
    "/sites/RAL/endpoints/RAL_DATADISK/",
    "/sites/RAL/endpoints/RAL_DATADISK/set-up/",
    *("/size-classes/", "/size-classes/large/", "/commissioning/add/", "/targets/add/"),
    *("/subscriptions/", "/subscriptions/add/webhook/", "/password/", "/operations/topology/"),
    *("/operations/aliases/", "/history/", "/reports/", "/incidents/", "/views/", "/downtimes/"),
    f"{RAL_TO_DESY}tests/",
]


def make_what_is_seldom(ral: Endpoint, sources: list[Endpoint]) -> list[str]:
    """Make an endpoint whose check failed and an incident that one link has left."""
    credential = Credential.objects.create(name="new", hosts=["new.example.org"])
    url = {"base_url": "davs://new.example.org/data", "credential": credential}
    new = Endpoint.objects.create(name="RAL_NEW", site=ral.site, enabled=False, **url)
    steps = [{"name": "write", "state": "failed", "seen": "403", "advice": "Ask who gave it."}]
    times = dict.fromkeys(["requested_at", "started_at", "ended_at"], world.NOW - world.HOUR)
    EndpointCheck.objects.create(endpoint=new, steps=steps, **times)
    incident = found.opened(found.into(ral, sources), at=world.NOW - world.HOUR)
    incident.cause.parts.update(ended_at=world.NOW)
    return ["/sites/RAL/endpoints/RAL_NEW/set-up/", f"/incidents/{incident.pk}/"]


@seen_by(LAPTOP, NARROW)
def test_nothing_is_cut_or_sticks_out_and_buttons_are_below_their_fields(visit, scene):
    visit.log_in(account(Role.ADMINISTRATOR))
    made = scene.world
    seldom = make_what_is_seldom(made.ral, [made.glasgow, made.desy, made.scratch])
    for path in [*WORKED_ON, *seldom]:
        page = visit.open(path)
        if path in seldom:
            look(page, f"seldom-{seldom.index(path)}-{visit.reader}")
        assert fits(page), path
        assert page.evaluate(CROWDED) == [], path
        assert page.evaluate(MISPLACED) == [], path
        assert page.evaluate(TOUCHING) == [], path


@seen_by(LAPTOP)
def test_a_wide_table_and_a_legend_of_many_states_are_whole_on_a_laptop(visit, slow_scene):
    """Tiers and usual rates have columns, and there is a link of each look with large files."""
    Site.objects.filter(name__startswith="UKI").update(tier=1)
    names = ("BNL-OSG2", "DESY-HH", "RAL-LCG2", "UKI-SCOTGRID-GLASGOW")
    bnl, desy, ral, glasgow = Endpoint.objects.filter(site__name__in=names).order_by("name")
    made = world.profile(mode="pull", mesh=Mesh.objects.get())
    with world.transfers() as some:
        for size in world.SIZES:
            for number in range(13):
                ago = timedelta(minutes=number + 1)
                some.add(bnl, desy, None, size=size, ago=ago, made=made)
        for number in range(10):
            ago = timedelta(days=number + 8)
            some.add(desy, bnl, 30.0 + number, ago=ago, made=made)
            some.add(bnl, ral, 30.0 + number, ago=ago, made=made)
        for number in range(5):
            some.add(ral, glasgow, None, ago=number * world.HOUR * 7, made=made)
    stored_condition(source=bnl, destination=desy, sizes=[*world.SIZES])
    world.downtime(endpoint=Endpoint.objects.get(name__startswith="TAIWAN"))
    page = visit.open("/table/")
    for words in ("failing since 20 Nov 06:00 UTC", "+ 13 failed"):
        expect(page.locator(".links tbody")).to_contain_text(words)
    look(page, "wide-table")
    box = page.locator(".links-box")
    assert box.evaluate("it => it.scrollWidth - it.clientWidth") <= 0
    page = visit.open("/")
    until_settled(page)
    look(page, "wide-legend")
    expect(page.locator("#legend .legend > li")).to_have_count(7)
    left_out = page.locator("#legend .left-out")
    expect(left_out).to_contain_text("Omitted from names: _DATADISK")
    assert left_out.evaluate("it => it.scrollWidth - it.clientWidth") <= 0
