"""The pages on what is slow and why, and of events: as seen, by keys alone, without JavaScript."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from sonar.models import Annotation, Probe, Sweep
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, SCRIPTLESS_NARROW, seen_by
from tests.browser.scene import Scene
from tests.browser.slow_scene import LINK, SITE
from tests.browser.test_journeys import tab_to
from tests.browser.waiting import until_settled
from tests.matrix import changed, world
from tests.matrix.changed import change, outage
from tests.matrix.months import month_of, slow_link
from tests.matrix.sent import MARKUP

# What can have the focus and is seen, in the order of the page; a group of radio buttons is one.
CONTROLS = """() => [...document.querySelectorAll(
    "main :is(a[href], button, input, select, textarea, summary, [tabindex='0'])"
)].filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.disabled
    && it.type !== "hidden" && !it.closest("[inert]") && it.tabIndex >= 0).length"""
# Numbers what has the focus, and says whether that is seen: by a line around it, or a caret.
FOCUSED = """() => {
    const it = document.activeElement;
    if (!it.closest("main")) return null;
    window.reached ??= new Set();
    window.reached.add(it);
    const style = getComputedStyle(it);
    const isSeen = style.outlineStyle !== "none" || it.matches(".form-control");
    return [window.reached.size, isSeen ? "" : it.outerHTML.slice(0, 120)];
}"""


def walk(page: Page) -> None:
    """Press Tab from the first control of a page to its last: each is reached, and seen."""
    page.focus("#page")
    count = page.evaluate(CONTROLS)
    reached, unseen = 0, []
    while True:
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        assert focused[0] > reached, f"the focus is caught after {reached} of {count} controls"
        reached = focused[0]
        unseen += [focused[1]] if focused[1] else []
    assert not unseen
    assert reached == count


@pytest.mark.long
def test_tab_reaches_each_control_and_is_seen_there(visit, slow_scene):
    visit.log_in(account(Role.OPERATOR))
    for path in (
        "/causes/?window=24h&compare=previous",
        "/events/",
        f"{LINK}?window=1h&compare=previous",
        f"{SITE}?window=24h&compare=previous",
        "/table/?window=24h&compare=previous&source_site=RAL-LCG2",
        f"/sweeps/{slow_scene.running}/",
        f"{LINK}sweeps/",
    ):
        page = visit.open(path)
        until_settled(page)
        walk(page)


@pytest.mark.long
def test_escape_closes_a_menu_and_the_focus_is_where_it_was_opened(visit, slow_scene):
    for path in ("/causes/", "/events/", "/table/", LINK, SITE):
        page = visit.open(f"{path}?window=24h")
        until_settled(page)
        for button in page.locator(".controls .menu").all():
            menu = page.locator(f"#{button.get_attribute('popovertarget')}")
            button.focus()
            page.keyboard.press("Enter")
            expect(menu).to_be_visible()
            menu.locator(":is(a, input, select, button):visible").last.focus()
            if page.locator(".offers:visible").count():
                page.keyboard.press("Escape")  # what the box offers
            page.keyboard.press("Escape")
            expect(menu).to_be_hidden()
            expect(button).to_be_focused()


def test_a_moment_is_compared_by_keys(visit, slow_scene):
    page = visit.open("/causes/?window=24h")
    page.locator("[popovertarget=compare-menu]").focus()
    page.keyboard.press("Enter")
    tab_to(page, page.locator("#compare-menu [name='compare.around']"))
    page.keyboard.type("2026-11-19 12:00")
    page.keyboard.press("Enter")
    page.wait_for_url("**/causes/?from=2026-11-19T12:00:00Z&to=*compare=*")
    finding = page.locator(".finding.slow").first
    expect(finding).to_contain_text("UKI-NORTHGRID-MAN-HEP sends at 34 %")


@seen_by(SCRIPTLESS, SCRIPTLESS_NARROW)
def test_without_javascript_the_figures_are_there_and_forms_work(visit, slow_scene):
    page = visit.open("/causes/?window=24h")
    page.click("[popovertarget=compare-menu]")
    page.select_option("#compare-menu select[name=compare]", "previous")
    page.click("#compare-menu button >> nth=0")
    assert page.url.endswith("/causes/?window=24h&compare=previous")
    expect(page.locator(".finding", has_text="sends at 34 %")).to_have_count(1)
    assert "0.3" in page.locator(".causes tbody tr").first.inner_text()
    visit.open("/events/?scope=source").click("table.events tbody .where a")
    assert SITE in page.url
    visit.open(f"{LINK}?window=24h&compare=previous")
    assert "slower than the 24 hours before" in page.locator("#comparison").inner_text()
    assert "give 3.5×" in page.locator(".diagnosis").inner_text()
    for caption, figure in (
        ("Transfer times as a table", "2 GB"),
        ("Rate over time as a table", "16."),
    ):
        page.click(f"summary:has-text('{caption}')")
        table = page.locator("details", has_text=caption).locator("table").last
        assert figure in table.inner_text()
    assert "2 stall" in page.locator("main").inner_text()


@seen_by(SCRIPTLESS)
def test_without_javascript_an_sweep_is_ordered_and_cancelled(visit, slow_scene):
    visit.log_in(account(Role.OPERATOR))
    Probe.objects.all().delete()
    page = visit.open(f"{LINK}sweeps/")
    page.click("summary:has-text('Request a parameter sweep')")
    page.fill("#sweep-values", "1, 2, x")
    page.click("#sweeps form button")
    visit.expect_refusal(400)
    assert "“x” is not allowed for streams" in page.locator("#sweep-values_error").inner_text()
    page.fill("#sweep-values", "1, 2")
    page.fill("#sweep-repeats", "2")
    page.click("#sweeps form button")
    newest = Sweep.objects.latest("requested_at")
    assert page.url.endswith(f"/sweeps/{newest.id}/")
    assert "4 of 4 tests have not ended" in page.locator("#live").inner_text()
    page.click("#live form button")
    assert "4 tests were cancelled" in page.locator("[role=status].notice").inner_text()
    assert not Probe.objects.exists()


@pytest.fixture
def month(scene_of_today: Scene) -> Scene:
    month_of(7, slow_link)
    return scene_of_today


@seen_by(LAPTOP, NARROW)
def test_what_is_slower_than_on_its_own_days_is_read(visit, month):
    page = visit.open("/causes/?window=24h")
    page.get_by_text("compare", exact=True).click()
    page.get_by_role("link", name="the 30 days before", exact=True).click()
    fell = "Compared with the 30 days before, the rate of 1 link fell."
    expect(page.locator("h1")).to_contain_text(fell)
    assert page.url.endswith("/causes/?window=24h&compare=month")
    finding = page.locator("[aria-labelledby=findings] p.finding")
    expect(finding).to_contain_text(
        re.compile(r"S03_DISK → S05_DISK is at \d+ % of its 30-day rate")
    )
    until_settled(page)
    assert fits(page)
    look(page, f"causes-month-{visit.reader}")
    assert by_day_and_night(page) == []


HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ROWS = "table.events:not(.unconfirmed) tbody tr:not(.day)"


@pytest.fixture
def events(scene: Scene) -> Scene:
    made = scene.world
    change(made.ral, made.glasgow, 0.5, 3 * HOUR, sizes=("small", "large"))
    change(made.glasgow, None, 2.0, 2 * DAY)
    change(None, made.desy, 0.25, 3 * DAY)
    change(None, None, 0.7, 4 * DAY, size="small", ended=3 * DAY)
    change(made.desy, made.ral, 0.85, 5 * DAY, confirmed=False)
    outage(made.ral, made.desy, 7 * HOUR, HOUR)
    Annotation.objects.create(
        site=made.ral.site,
        text=f"TCP buffers changed {MARKUP}",
        starts_at=world.NOW - 4 * HOUR,
        public=True,
    )
    changed.assessed()
    return scene


@seen_by(LAPTOP, NARROW)
def test_the_list_is_read_and_narrowed_down(visit, events):
    page = visit.open("/events/")
    rows = page.locator(ROWS)
    expect(page.locator("h1")).to_contain_text("RAL_DATADISK to Glasgow_DATADISK runs at 0.50×")
    until_settled(page)
    total = rows.count()
    assert total >= 5
    assert fits(page)
    look(page, f"events-{visit.reader}")
    assert by_day_and_night(page) == []
    page.get_by_role("link", name="slower ").first.click()
    expect(page.locator("table.events tr.faster")).to_have_count(0)
    confirmed = rows.count()
    page.locator("[popovertarget=lasting-menu]").click()
    page.get_by_role("link", name="include unconfirmed events").click()
    expect(rows).to_have_count(confirmed + 1)
    assert page.url.endswith("/events/?type=slower&significant=any")
    page.keyboard.press("Tab")
    page.go_back()
    expect(rows).to_have_count(confirmed)


def test_an_event_leads_to_its_link_with_a_mark_and_a_row(visit, events):
    page = visit.open("/events/?scope=link&type=slower")
    page.locator(f"{ROWS} .where a").first.click()
    expect(page.locator("h1")).to_contain_text("RAL_DATADISK → Glasgow_DATADISK")
    expect(page.locator(".events-of tr.slower").first).to_contain_text("0.50×")
    until_settled(page)
    marks = page.locator(".annotation-text", has_text="at 0.50×")
    expect(marks).to_have_count(1)
    look(page, "events-link")
    page = visit.open("/sites/Glasgow/")
    until_settled(page)
    expect(page.locator(".events-of tr.faster")).to_have_count(1)
    look(page, "events-site")
