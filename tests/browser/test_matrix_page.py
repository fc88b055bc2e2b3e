"""The matrix page in a real browser: what is drawn, said, and done by its script."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.matrix import world


@pytest.fixture(autouse=True)
def real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "NOW", timezone.now())


@pytest.fixture
def small_world(real_commits: None) -> world.World:
    made = world.make()
    world.transfer(made.ral, made.glasgow, 10.0)
    world.transfer(made.ral, made.glasgow, 14.0)
    world.transfer(made.glasgow, made.ral, 1.23)
    world.transfer(made.ral, made.desy, None)
    world.transfer(made.desy, made.ral, 5.0, ago=timedelta(hours=5))
    return made


def drawn_texts(page: Page) -> list[str]:
    texts: list[str] = page.locator("#picture svg text").all_text_contents()
    return texts


def point_at(page: Page, source: str, destination: str) -> str:
    """Move the pointer over a cell and return what the picture says."""
    x, y = page.evaluate(
        """([source, destination]) => {
            const said = JSON.parse(document.getElementById("picture-data").textContent).cells;
            const { xaxis, yaxis } = picture._fullLayout;
            const box = picture.getBoundingClientRect();
            return [
                box.x + xaxis._offset + xaxis.l2p(said.destinations.indexOf(destination)),
                box.y + yaxis._offset + yaxis.l2p(said.sources.indexOf(source)),
            ];
        }""",
        [source, destination],
    )
    page.mouse.move(x - 5, y - 5)
    page.mouse.move(x, y)
    page.locator("#picture .hoverlayer .hovertext", has_text=f"to {destination}").wait_for()
    label = page.locator("#picture .hoverlayer .hovertext")
    label.wait_for()
    return "\n".join(label.locator("tspan.line").all_text_contents())


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag the pointer between two points, given as parts of the width and height of the cells."""
    box = page.locator(
        "#picture .xy .nsewdrag, #picture .nsewdrag[data-subplot=xy]"
    ).first.bounding_box()
    assert box is not None
    for (across, down), act in ((start, page.mouse.down), (end, page.mouse.up)):
        page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=4)
        act()


def test_cells_averages_and_both_directions_are_drawn(
    visit: Visit, small_world: world.World
) -> None:
    texts = drawn_texts(visit.go())
    assert texts.count("12.0") == 3  # the cell, and the mean of its row and of its column
    assert "1.23" in texts
    assert "6.08" in texts  # the mean of 12.0, 1.23 and 5.00
    assert any(text.startswith("to (destination endpoint") for text in texts)
    assert any(text.startswith("from (source endpoint") for text in texts)
    assert "mean of measured cells" in texts
    assert "MB/s" in texts


def test_the_published_averages_are_drawn(visit: Visit, real_commits: None) -> None:
    table = world.make_published()
    texts = drawn_texts(visit.go())
    assert f"{table.average:.2f}" in texts
    assert "10.3" in texts  # RAL-LCG2: 10.26


def test_a_cell_says_its_ends_rate_counts_age_and_state(
    visit: Visit, small_world: world.World
) -> None:
    said = point_at(visit.go(), "RAL_DATADISK", "Glasgow_DATADISK")
    assert said.startswith(
        "from RAL_DATADISK\nto Glasgow_DATADISK\nmean 12.0 ± 2.83 MB/s\n2 ok, 0 failed"
    )
    assert re.search(r"last 30 min ago, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\nmeasured$", said)


def test_every_cell_says_its_state(visit: Visit, small_world: world.World) -> None:
    page = visit.go()
    for source, destination, words in [
        ("RAL_DATADISK", "DESY_DATADISK", "0 ok, 1 failed"),
        ("RAL_DATADISK", "DESY_DATADISK", "failed: tests ran and none succeeded"),
        ("DESY_DATADISK", "RAL_DATADISK", "stale: its last result is older"),
        ("DESY_DATADISK", "Glasgow_DATADISK", "untested: scheduled"),
        ("RAL_DATADISK", "RAL_DATADISK", "not applicable: no mesh tests it"),
    ]:
        said = point_at(page, source, destination)
        assert said.startswith(f"from {source}\nto {destination}\n")
        assert words in said
        assert "NaN" not in said


def test_dark_mode_recolours_page_and_picture_without_a_reload(
    visit: Visit, small_world: world.World
) -> None:
    page = visit.go()
    paper = "getComputedStyle(document.body).backgroundColor"
    drawn = "getComputedStyle(picture.querySelector('svg.main-svg')).backgroundColor"
    assert page.evaluate(paper) == page.evaluate(drawn) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{drawn} === 'rgb(20, 24, 29)'")
    assert page.evaluate(paper) == "rgb(20, 24, 29)"


def test_on_a_telephone_the_matrix_scrolls_in_its_own_box(visit: Visit, real_commits: None) -> None:
    world.make_published()
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = visit.go()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator(".picture-box")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")


def test_the_picture_takes_most_of_a_laptop_screen(visit: Visit, small_world: world.World) -> None:
    page = visit.go()
    box = page.locator("#picture").bounding_box()
    assert box is not None
    assert box["width"] * box["height"] >= 0.7 * 1440 * 900
    assert page.locator("#legend").bounding_box()["y"] < 900  # type: ignore[index]


def test_controls_change_the_url_and_back_goes_back(visit: Visit, small_world: world.World) -> None:
    page = visit.go()
    page.get_by_label("statistic").select_option("p95")
    page.wait_for_url("**/?stat=p95")
    page.get_by_role("link", name="24h").click()
    page.wait_for_url("**/?window=24h&stat=p95")
    expect(page.get_by_role("heading")).to_contain_text("95th percentile of the rate of large")
    page.go_back()
    page.wait_for_url("**/?stat=p95")
    page.go_back()
    page.wait_for_url(visit.base + "/")
    assert page.get_by_label("statistic").input_value() == "mean"


def test_a_custom_window_is_asked_for_in_utc(visit: Visit, small_world: world.World) -> None:
    page = visit.go()
    page.get_by_text("from–to").click()
    page.locator("input[name=from]").fill("2026-11-01T00:00:00")
    page.locator("input[name=to]").fill("2100-01-01T00:00:00")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/?from=2026-11-01T00:00:00Z&to=2100-01-01T00:00:00Z")


def test_a_refresh_brings_new_results_and_keeps_the_zoom(
    visit: Visit, small_world: world.World
) -> None:
    page = visit.go()
    zoom = "[...picture.layout.xaxis.range, ...picture.layout.yaxis.range].map(Math.round)"
    before = page.evaluate(zoom)
    drag(page, (0.3, 0.3), (0.9, 0.9))
    zoomed = page.evaluate(zoom)
    assert zoomed != before
    world.transfer(small_world.glasgow, small_world.ral, 7.77)
    world.transfer(small_world.glasgow, small_world.desy, 3.21)
    page.evaluate("refresh()")
    expect(page.locator("#picture svg text", has_text="4.50").first).to_be_attached()
    expect(page.locator("#legend")).to_contain_text("measured 3")
    assert page.evaluate(zoom) == zoomed


def test_a_refresh_that_fails_is_said_and_the_picture_stays(
    visit: Visit, small_world: world.World
) -> None:
    page = visit.go()
    page.route("**/*", lambda route: route.fulfill(status=503))
    page.evaluate("refresh()")
    expect(page.locator("#updated")).to_have_class("late")
    assert "12.0" in drawn_texts(page)
    visit.errors.clear()  # the browser itself reports the 503


def test_labels_thin_out_until_the_reader_zooms_in(visit: Visit, real_commits: None) -> None:
    site = world.Site.objects.create(name="Many")
    places = [world.endpoint(f"node-{number:03d}", site) for number in range(70)]
    mesh = world.Mesh.objects.create(name="ring")
    world.schedule(mesh, *((one, other) for one in places[:2] for other in places if one != other))
    page = visit.go()
    shown = "picture.layout.xaxis.ticktext.length"
    assert page.evaluate(shown) < 70
    page.evaluate("Plotly.relayout(picture, {'xaxis.range': [-0.5, 9.5]})")
    page.wait_for_function(f"{shown} === 70")
