"""The matrix on a wall: nothing but the picture, a clock, and whether it can be trusted."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from sonar.models import Transfer
from tests.browser.cells import wait_until_drawn
from tests.browser.conftest import Visit
from tests.browser.modules import refresh
from tests.browser.readers import LAPTOP, WALL, seen_by
from tests.browser.scene import Scene
from tests.matrix import world

on_walls = seen_by(WALL, LAPTOP)


@on_walls
def test_a_wall_is_filled_by_the_matrix_and_needs_no_scrolling(visit: Visit, scene: Scene) -> None:
    page = wait_until_drawn(visit.open("/?wall=1"))
    size = page.viewport_size
    assert size is not None
    box = page.locator("#picture").bounding_box()
    assert box is not None
    assert box["width"] * box["height"] > 0.7 * size["width"] * size["height"]
    for side in ("Width", "Height"):
        assert page.evaluate(f"document.documentElement.scroll{side}") <= size[side.lower()]
    assert page.get_by_role("navigation").count() == 0
    assert page.locator("form").count() == page.locator("dialog form").count()
    expect(page.locator("#legend")).to_be_in_viewport(ratio=1)
    expect(page.locator("#below")).to_contain_text("failing: from RAL_DATADISK to DESY_DATADISK")


@pytest.mark.parametrize("reader", [WALL], ids=str)
def test_its_words_are_large_enough_for_four_metres(visit: Visit, scene: Scene) -> None:
    page = wait_until_drawn(visit.open("/?wall=1"))
    size = "([selector]) => parseFloat(getComputedStyle(document.querySelector(selector)).fontSize)"
    assert page.evaluate(size, ["#picture .ytick text"]) >= 22
    assert page.evaluate(size, ["h1"]) >= 30
    assert page.evaluate(size, ["#legend li"]) >= 22


@on_walls
def test_its_clock_runs_in_utc(visit: Visit, scene: Scene) -> None:
    page = wait_until_drawn(visit.open("/?wall=1"))
    clock = page.locator("#clock")
    expect(clock).to_have_text(re.compile(r"^\d\d:\d\d:\d\d UTC$"))
    before = clock.inner_text()
    expect(clock).not_to_have_text(before)


@on_walls
def test_it_refreshes_and_says_since_when_it_cannot(visit: Visit, scene: Scene) -> None:
    page = wait_until_drawn(visit.open("/?wall=1"))
    world.transfer(scene.world.glasgow, scene.world.desy, 3.21)
    refresh(page)
    expect(page.locator("#picture svg text", has_text="3.21").first).to_be_attached()
    page.route("**/*", lambda route: route.fulfill(status=503))
    refresh(page)
    alarm = page.get_by_role("alert")
    expect(alarm).to_contain_text(re.compile(r"could not be refreshed since \d\d:\d\d:\d\d UTC"))
    expect(alarm).to_be_in_viewport(ratio=1)
    visit.expect_refusal(503)


@on_walls
def test_it_says_unmistakably_that_data_stopped_coming(visit: Visit, scene: Scene) -> None:
    Transfer.objects.all().delete()
    made = scene.world
    world.transfer(made.ral, made.glasgow, 10.0, ago=timedelta(days=2))
    page = wait_until_drawn(visit.open("/?wall=1"))
    said = page.locator(".notice.stopped")
    expect(said).to_contain_text("stopped")
    expect(said).to_be_in_viewport(ratio=1)


@on_walls
def test_a_link_leads_to_the_wall_and_back(visit: Visit, scene: Scene) -> None:
    page = wait_until_drawn(visit.open("/?window=24h"))
    page.get_by_role("link", name="wall").click()
    page.wait_for_url("**/?window=24h&wall=1")
    assert page.get_by_role("navigation").count() == 0
    page.get_by_role("link", name="leave the wall").click()
    page.wait_for_url("**/?window=24h")
    expect(page.get_by_role("navigation")).to_be_visible()
