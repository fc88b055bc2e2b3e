"""The pages of sites and the search in a real browser."""

from itertools import permutations

import pytest
from playwright.sync_api import Page, expect

from sonar.models import Mesh, Site
from sonar.sandbox import topology
from tests.browser.conftest import Standing
from tests.browser.pages import fits, look, refresh
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.waiting import until
from tests.matrix import world

GLASGOW = "UKI-SCOTGRID-GLASGOW"


def make() -> None:
    """The 19 sites of the sandbox with results of all links in three size classes."""
    rows = topology.load_sites()
    sites = Site.objects.bulk_create(
        Site(name=row.name, cloud=row.cloud, tier=row.tier) for row in rows
    )
    named = ((row.endpoint, site) for row, site in zip(rows, sites, strict=True))
    ends = world.endpoints(named, simulated=True)
    places = {end.site.name: end for end in ends.values()}
    with world.transfers() as some:
        for link in topology.load_links():
            for size, test_bytes in world.SIZES.items():
                rate = link.rate_mb_s(test_bytes / world.MB)
                for hours in (0.5, 5):
                    ends = places[link.source], places[link.destination]
                    some.add(*ends, rate / hours**0.1, ago=hours * world.HOUR, size=size)
    mesh = Mesh.objects.create(name="everything")
    world.schedule(mesh, *permutations(places.values(), 2), every=14_400)


@pytest.fixture
def grid_in_a_box(standing: Standing[None], at_noon: None) -> None:
    standing(make)


def drawn(page: Page) -> Page:
    until(
        page,
        "(boxes => boxes.length && boxes.every(box => box.querySelector('.xtick')))"
        "([...document.querySelectorAll('.site-side .picture')])",
    )
    return page


def test_every_partner_has_a_row_and_a_cell_in_both_strips(visit, grid_in_a_box):
    page = drawn(visit.open(f"/sites/{GLASGOW}/"))
    for end in ("source", "destination"):
        rows = page.locator(f"section[aria-labelledby=as-{end}] tbody tr")
        expect(rows).to_have_count(18)
    expect(page.locator(".strips td > a")).to_have_count(36)
    tab_to_strips(page)
    # Names are whole and stand on one line, and each strip says its direction.
    heads = page.locator(".strips thead th:not(:first-child)")
    boxes = heads.evaluate_all(
        "all => all.map(one => [one.textContent, one.scrollWidth - one.clientWidth, "
        "one.getBoundingClientRect().bottom])"
    )
    assert {text for text, _, _ in boxes} >= {"LANCS", "CAM", "MAN"}
    assert not [text for text, over, _ in boxes if "…" in text or over > 0]
    assert len({bottom for *_, bottom in boxes}) == 1
    directions = page.locator(".strips tbody th").all_inner_texts()
    assert directions == ["sent to", "received from"]


def tab_to_strips(page: Page) -> None:
    page.locator(".tabs").get_by_role("link", name="Matrix row and column").click()


def shows_window(page: Page, name: str) -> None:
    chosen = page.get_by_role("link", name=name, exact=True)
    expect(chosen).to_have_attribute("aria-current", "true")


def mean_of(page: Page, end: str) -> str:
    """Return the mean of large files as the summary has it."""
    table = page.locator(f"section[aria-labelledby=rank-{end}] table")
    row = table.locator("tr", has_text="mean in MB/s")
    return (row.locator("td").last.text_content() or "").strip()


@pytest.mark.long
def test_a_change_of_class_and_window_is_in_the_url_and_back_goes_back(visit, grid_in_a_box):
    page = drawn(visit.open(f"/sites/{GLASGOW}/"))
    before = mean_of(page, "source")
    page.get_by_role("link", name="small", exact=True).click()
    page.wait_for_url(f"**/sites/{GLASGOW}/?size=small")
    expect(page.get_by_role("heading", name="Errors with small files")).to_be_visible()
    drawn(page)
    page.get_by_role("link", name="1h", exact=True).click()
    page.wait_for_url(f"**/sites/{GLASGOW}/?size=small&window=1h")
    shows_window(page, "1h")
    page.go_back()
    page.wait_for_url(f"**/sites/{GLASGOW}/?size=small")
    # The address is there before the page: to go back while it still comes would abort both.
    shows_window(page, "7d")
    drawn(page).wait_for_load_state()
    page.go_back()
    page.wait_for_url(f"**/sites/{GLASGOW}/")
    expect(page.get_by_role("heading", name="Errors with large files")).to_be_visible()
    assert mean_of(drawn(page), "source") == before


@seen_by(LAPTOP, NARROW)
def test_the_list_is_searched_as_one_types_and_sorted(visit, grid_in_a_box, reader):
    page = visit.open("/sites/")
    assert fits(page)
    look(page, f"sites-{reader}")
    box = page.get_by_label("search", exact=True)
    box.press_sequentially("t2 nor")
    page.wait_for_url("**/sites/?search=t2+nor")
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(box).to_be_focused()
    assert box.input_value() == "t2 nor"
    # Not by a click: at 390 the frozen column lies over the head that is scrolled to.
    page.get_by_role("link", name="mean as source").press("Enter")
    page.wait_for_url("**/sites/?search=t2+nor&ordering=-source")
    expect(page.get_by_role("columnheader", name="mean as source")).to_have_attribute(
        "aria-sort", "descending"
    )
    means = page.locator("tbody td:nth-child(12)").all_inner_texts()
    assert means == sorted(means, key=float, reverse=True)
    page.go_back()
    page.wait_for_url("**/sites/?search=t2+nor")


def test_the_dark_recolours_pictures_and_a_refresh_keeps_what_is_open(visit, scene):
    page = drawn(visit.open("/sites/Glasgow/"))
    colour = "document.querySelector('#over-time-source .plot').data[1].line.color"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    until(page, f"{colour} !== '{light}'")
    page.locator(".tabs").get_by_role("link", name="Peers").click()
    page.get_by_text("All 6 links").click()
    assert mean_of(page, "source") == "1.78"
    world.transfer(scene.world.glasgow, scene.world.ral, 9.0)
    refresh(page)
    expect(page.locator("section[aria-labelledby=rank-source] table")).to_contain_text("4.19")
    expect(page.locator(".partner-rows .rest").first).to_be_visible()
    expect(page.get_by_role("heading", name="Rank among Tier 2 sites")).to_be_visible()
    expect(page.locator("section[aria-labelledby=as-source] .figures")).to_contain_text(
        "of 3 tests succeeded"
    )


CAM, LANCS = "UKI-SOUTHGRID-CAM-HEP", "UKI-NORTHGRID-LANCS-HEP"


def test_enter_opens_what_is_meant(visit, real_commits):
    """An exact name, and two names that mean a single link, in the box of all pages and here."""
    for name in ("RAL-LCG2", "RAL-LCG2-TAPE", LANCS, CAM):
        world.endpoint(f"{name}_DATADISK", Site.objects.create(name=name))
    for text, address in (
        ("RAL-LCG2", "/sites/RAL-LCG2/"),
        ("lancs cam", f"/links/{LANCS}_DATADISK/{CAM}_DATADISK/"),
    ):
        for box in ("#jump", "#q"):
            page = visit.open("/search/")
            page.locator(box).fill(text)
            page.locator(box).press("Enter")
            page.wait_for_url(f"{visit.base}{address}")
