"""The pages of a link and of a transfer in a real browser: pictures, toggles, refresh, parts."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from sonar.models import Probe
from sonar.people.roles import Role
from tests.accounts import account
from tests.browser.axe import by_day_and_night
from tests.browser.pages import box_of, fits, look, refresh
from tests.browser.readers import LAPTOP, NARROW, SCRIPTLESS, SCRIPTLESS_NARROW, WALL, seen_by
from tests.browser.scene import Scene
from tests.browser.waiting import (
    ONE_REFRESH,
    REFRESH_MS,
    until,
    until_refreshed,
    until_settled,
)
from tests.conditions import TYPES, stored_condition
from tests.matrix import sent, world
from tests.matrix.network import failed, measured, servers
from tests.matrix.test_connections import BEGAN, UPLOAD, flow

LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
FAILING = "/links/RAL_DATADISK/DESY_DATADISK/"
POINTS = "#rates .scatterlayer .point"


def drawn(page: Page, name: str = "rates") -> Page:
    page.wait_for_selector(f"#{name} .plot svg.main-svg", state="attached")
    return page


def in_legend(page: Page, text: str) -> Locator:
    """Return what has this text in the legend of the picture of rates."""
    return page.locator("#rates .legendtext", has_text=text)


def test_every_result_is_drawn_and_both_directions_if_asked_for(visit, scene):
    page = drawn(visit.open(LINK))
    expect(page.locator(POINTS)).to_have_count(7)
    expect(in_legend(page, "reverse: each test")).to_have_count(0)
    page.get_by_role("link", name="both directions", exact=True).click()
    page.wait_for_url(f"**{LINK}?reverse=1")
    expect(page.locator(POINTS)).to_have_count(9)
    expect(in_legend(page, "reverse: each test")).to_have_count(1)
    page.get_by_role("link", name="this direction").click()
    expect(page.locator(POINTS)).to_have_count(7)
    page.go_back()
    page.wait_for_url(f"**{LINK}?reverse=1")


def test_a_size_class_is_drawn_by_its_switch_and_by_its_row(visit, scene):
    page = drawn(visit.open(LINK))
    rows = page.get_by_role("region", name="Current rates")
    expect(rows.locator("[aria-current]")).to_have_text("large")
    sizes = page.get_by_role("group", name="size class", exact=True)
    sizes.get_by_role("link", name="small").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{LINK}?size=small")
    expect(page.locator(POINTS)).to_have_count(6)
    expect(page.get_by_role("heading", name="Small files over time")).to_be_attached()
    expect(rows.locator("[aria-current]")).to_have_text("small")
    rows.get_by_role("link", name="large").click()
    page.wait_for_url(f"**{LINK}")
    expect(sizes.locator("[aria-current]")).to_have_text("large")
    page.go_back()
    page.wait_for_url(f"**{LINK}?size=small")


def test_verdict_and_picture_of_failures_come_first_whose_points_lead_to_transfers(visit, scene):
    page = drawn(visit.open(FAILING))
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("Fails, with large files, 10 of 10 tests failed, since 20 Nov")
    expect(verdict).to_contain_text(
        "Most often (5 of 6) until 20 Nov 10:50: at the destination, DESY"
    )
    expect(verdict).to_contain_text("Now: during the transfer: checksum differs.")
    parts = ["h1", "#verdict", "#rates", "#strip", ".tabs", ".causes-of-failure", ".latest"]
    tops = [box_of(page.locator(part))["y"] for part in parts]
    assert tops == sorted(tops)
    assert tops[1] < 200, "it is the first thing in sight"
    assert tops[2] < 520, "and so is the picture"
    edge = verdict.evaluate("box => getComputedStyle(box).borderLeftColor")
    assert edge == "rgb(179, 20, 27)"
    # What failed stands on a strip of its own.
    expect(page.locator(POINTS)).to_have_count(6)
    expect(in_legend(page, "failed")).to_have_text("failed")
    words = page.locator("#rates .annotation-text", has_text="no transfer succeeded")
    expect(words).to_have_text("no transfer succeeded")
    point = page.locator(POINTS).last
    point.scroll_into_view_if_needed()
    box = box_of(point)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.locator("#rates .hoverlayer .hovertext").wait_for()
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(f"**/transfers/{scene.failing}/")
    expect(page.get_by_role("heading", name="Failed during the transfer")).to_be_visible()


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_conditions_of_a_link_are_said_in_order_by_day_and_night(visit, scene):
    made = scene.world
    wide = {"since": timedelta(hours=30), "baseline": 160e6}
    stored_condition(TYPES.SLOW, destination=made.glasgow, **wide)
    own = {"source": made.ral, "destination": made.glasgow}
    stored_condition(**own, since=timedelta(days=3), ended=timedelta(days=2))
    stored_condition(TYPES.SLOW, **own, since=timedelta(hours=5), confirmed=False, sizes=["small"])
    page = drawn(visit.open(LINK))
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("Part of: Glasgow_DATADISK receives at 0.40× (0.35–0.46), with")
    expect(verdict.get_by_text("Unconfirmed: runs at 0.40×")).to_be_visible()
    look(page, f"link-conditions-{visit.reader}")
    assert by_day_and_night(page, "#now") == []
    assert fits(page)
    look(page, f"link-conditions-{visit.reader}-dark")


def seen_parts(page: Page) -> list[str]:
    """Return the ids of the parts that can be seen."""
    ids = "parts => parts.filter((part) => part.checkVisibility()).map((part) => part.id)"
    return list(page.locator(".panel").evaluate_all(ids))


def test_parts_are_tabs_that_the_address_keeps(visit, scene):
    page = drawn(visit.open(FAILING))
    tabs = page.get_by_role("navigation", name="Parts of this page")
    assert seen_parts(page) == ["overview"]
    expect(tabs.locator("[aria-current]")).to_have_text("Overview")
    tabs.get_by_role("link", name="Failures").focus()
    page.keyboard.press("Enter")
    expect(tabs.locator("[aria-current]")).to_have_text("Failures 6")
    assert seen_parts(page) == ["failures"]
    assert page.url == visit.base + FAILING + "#failures"
    assert page.locator("#rates").is_visible(), "the picture stays where it is"
    world.transfer(scene.world.ral, scene.world.desy, None, ago=timedelta(minutes=1))
    refresh(page)
    expect(tabs.locator("[aria-current]")).to_have_text("Failures 7")
    assert seen_parts(page) == ["failures"]
    page.get_by_role("link", name="24h", exact=True).click()
    page.wait_for_url(f"**{FAILING}?window=24h#failures")
    assert seen_parts(page) == ["failures"]
    page.reload()
    expect(tabs.locator("[aria-current]")).to_have_text("Failures 7")
    assert seen_parts(page) == ["failures"]
    # What stands in a part opens it.
    page.goto(f"{visit.base}{FAILING}#methods")
    expect(page.get_by_role("heading", name="Test methods")).to_be_in_viewport()
    assert seen_parts(page) == ["measured"]
    tabs.get_by_role("link", name="All results").click()
    assert page.evaluate("location.hash") == "#all-results"
    tabs.get_by_role("link", name="Overview").click()
    assert page.evaluate("location.hash") == ""


ALL_PARTS = ["overview", "failures", "inside-transfers", "measured", "all-results"]


def test_notes_are_words_in_the_picture_the_dark_recolours_it_and_paper_has_all_parts(visit, scene):
    page = drawn(visit.open(LINK))
    expect(page.locator("#rates .annotation-text", has_text="note: New switch")).to_have_text(
        re.compile("^note: New switch")
    )
    expect(page.locator("#rates .shapelayer path").first).to_be_attached()
    paper = "getComputedStyle(document.querySelector('#rates svg.main-svg')).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    until(page, f"{paper} === 'rgb(20, 24, 29)'")
    line = page.locator("#rates .scatterlayer .js-line").first
    expect(line).to_have_css("stroke", "rgb(125, 184, 245)")
    page.emulate_media(media="print")
    assert seen_parts(page) == [part for part in ALL_PARTS if part != "failures"]
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    until(page, "document.querySelector('#inside-transfers .plot')?.clientWidth > 200")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen_parts(page) == ["overview"]


def test_a_refresh_brings_new_results_and_keeps_the_place(visit, scene):
    page = drawn(visit.open(LINK))
    page.get_by_text("Rate over time as a table").click()
    row = page.locator(".by-size tr", has=page.locator("[aria-current]"))
    before = row.inner_text()
    page.evaluate("scrollTo(0, 300)")
    world.transfer(scene.world.ral, scene.world.glasgow, 77.7, ago=timedelta(minutes=1))
    refresh(page)
    expect(page.locator(POINTS)).to_have_count(8)
    expect(page.get_by_role("cell", name="77.7", exact=True).first).to_be_visible()
    expect(page.locator(".latest tr").first).to_contain_text("77.7")
    assert row.inner_text() != before
    assert page.evaluate("scrollY") == 300
    assert page.get_by_text("One row for each time bucket").is_visible()


@pytest.mark.long
@pytest.mark.parametrize("reader", [LAPTOP, NARROW, SCRIPTLESS_NARROW], ids=str)
def test_no_page_scrolls_sideways(visit, scene):
    for path in (LINK, f"{LINK}?reverse=1", FAILING, *transfers(scene)):
        visit.reader.adjust(visit.page)
        page = visit.open(path)
        for screen in (visit.reader, WALL) if visit.reader is LAPTOP else (visit.reader,):
            page.set_viewport_size({"width": screen.width, "height": screen.height})
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width == page.evaluate("innerWidth"), (path, screen)


def transfers(scene: Scene) -> list[str]:
    return [f"/transfers/{one}/" for one in (scene.sampled, scene.failing)]


@seen_by(SCRIPTLESS)
def test_without_a_script_tabs_are_a_table_of_contents_and_tables_have_the_numbers(visit, scene):
    page = visit.open(FAILING)
    assert seen_parts(page) == ALL_PARTS
    page.get_by_role("link", name="Test setup").click()
    expect(page.get_by_role("heading", name="Schedule")).to_be_in_viewport()
    page = visit.open(f"{LINK}?reverse=1")
    table = page.get_by_role("region", name="Rate over time as a table")
    expect(table.locator("tbody tr").first).to_contain_text("RAL_DATADISK → Glasgow_DATADISK")
    expect(table).to_be_visible()
    expect(page.get_by_role("region", name="Distribution as a table")).to_be_visible()
    expect(page.locator(".picture")).to_have_count(4)
    expect(page.locator(".picture").first).to_be_hidden()
    page.get_by_role("link", name="24h").click()
    page.wait_for_url(f"**{LINK}?window=24h&reverse=1")
    page = visit.open(f"/transfers/{scene.sampled}/")
    page.get_by_text("5 progress samples as a table").click()
    expect(page.get_by_role("cell", name="1.40 GB")).to_be_visible()


def test_a_running_test_shows_its_progress_and_then_its_result(visit, scene):
    made = scene.world
    probe = sent.probe(made.ral, made.glasgow, size="large", started_at=world.NOW)
    visit.set_clock()
    page = visit.open(f"/transfers/{probe.id}/")
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "0")
    Probe.objects.update(progress_bytes=10**9)
    bar = expect(page.get_by_role("progressbar"))
    until_refreshed(page, lambda: bar.to_have_attribute("value", "50", timeout=ONE_REFRESH))
    Probe.objects.all().delete()
    sent.send(made.ral, made.glasgow, world.NOW, id=probe.id)
    result = expect(page.locator(".result"))
    until_refreshed(page, lambda: result.to_contain_text("200 MB/s", timeout=ONE_REFRESH))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(4 * REFRESH_MS)
    page.evaluate("new Promise(requestAnimationFrame)")
    assert asked == []


def test_markup_is_text_in_pictures_too_and_the_rate_inside_a_transfer_is_drawn(visit, scene):
    sampled, failing = transfers(scene)
    for path in (LINK, FAILING, failing, sampled):
        page = visit.open(path)
        until_settled(page)
        assert page.locator("main b, .plot b").count() == 0
        assert page.locator("pre.error").count() == (path == failing)
    drawn(page, "inside")
    expect(page.locator("#inside .legendtext")).to_have_text(
        ["rate (MB/s, left)", "moved so far (MB, right)"]
    )
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG", exact=True).click()
    assert download.value.suggested_filename.endswith(".png")


def test_time_over_size_and_rates_within_transfers_are_drawn(visit, scene):
    ral, glasgow = scene.world.ral, scene.world.glasgow
    samples = [[5.0 * at, 4e8 * at] for at in range(1, 12)]
    ago = timedelta(minutes=20)
    sent.send(ral, glasgow, world.NOW - ago, seconds=60.0, moved_bytes=int(48e8), samples=samples)
    page = drawn(drawn(visit.open(f"{LINK}#inside-transfers"), "overhead"), "inside-rates")
    expect(page.locator("#overhead .scatterlayer .point")).to_have_count(3)
    expect(page.locator("#inside-rates .barlayer .point")).to_have_count(1)
    expect(page.get_by_text("1 runs at a constant maximum rate:")).to_be_visible()
    page.get_by_text("Transfer times as a table").click()
    expect(page.get_by_role("region", name="Transfer times as a table")).to_contain_text("20 MB")


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_network_tests_stand_on_the_page_of_a_link(visit, scene):
    ral, glasgow = servers(scene.world)
    for number in range(5):
        measured(ral, glasgow, bytes=100_000_000 + 7_000_000 * number)
    measured(glasgow, ral, mode="pull", rtt_min_ms=None, rtt_mean_ms=None, rtt_max_ms=None)
    failed(ral, glasgow)
    for path in (LINK, "/links/RAL_NET/Glasgow_NET/"):
        page = visit.open(f"{path}#network")
        until_settled(page)
        part = page.get_by_role("region", name="Network tests", exact=True)
        expect(part.locator("tbody tr")).to_have_count(7)
        expect(part).to_contain_text("median 114 MB/s (n = 5), round trip 92.2 ms")
        assert by_day_and_night(page, "section:has(#network)") == []
        assert fits(page)
        part.scroll_into_view_if_needed()
        look(page, f"network-{visit.reader}-{'files' if path == LINK else 'own'}")


TCP = {"rtt": 14.25, "snd_cwnd": 812, "snd_mss": 8948, "total_retrans": 7, "busy_time": 9e6}


@seen_by(LAPTOP, NARROW)
def test_reported_connections_stand_on_the_page_of_a_transfer(visit, scene):
    source, destination = scene.world.ral, scene.world.glasgow
    samples = [[5.0, 10**9], [10.0, 2 * 10**9]]
    own = sent.send(source, destination, BEGAN, scitag=139, samples=samples, upload=UPLOAD)
    sent.send(source, destination, BEGAN + timedelta(seconds=5), scitag=139)
    flow(source, destination, tcp=TCP | {"rwnd_limited": 4e6, "sndbuf_limited": 0})
    flow(source, destination, sent_bytes=None, ended_at=None, application="", tcp={})
    visit.log_in(account(Role.OPERATOR))
    page = visit.open(f"/transfers/{own}/")
    part = page.get_by_role("region", name="Connections", exact=True)
    expect(part.locator("tbody tr")).to_have_count(2)
    expect(part).to_contain_text("this test or 1 other test that ran at the same time")
    expect(part).to_contain_text("missing at RAL_DATADISK, so a Sonar worker uploaded it first")
    assert by_day_and_night(page) == []
    assert fits(page)
    look(page, f"connections-{visit.reader}")
