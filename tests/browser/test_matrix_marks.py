"""How links are now, on the cells of the matrix: frames and corners, beside the numbers."""

import pytest
from playwright.sync_api import FloatRect

from matrix.plots.matrix import STEPS
from matrix.plots.palettes import RATIO_COLOURS
from tests.browser.cells import CELL_SIZE, place, wait_until_drawn
from tests.browser.conftest import Standing
from tests.browser.pages import look
from tests.browser.readers import DARK, LAPTOP, NARROW, WALL, seen_by
from tests.conditions import TYPES, stored_condition
from tests.matrix import world
from tests.matrix.world import HOUR

# The bounds of the outline of a trace; each of the test's has one cell.
OUTLINE = """name => {
    const plot = document.querySelector("#picture .plot");
    const at = plot._fullData.findIndex((trace) => trace.name === name);
    const path = plot.querySelector(`.trace${plot._fullData[at].uid} :is(.js-line, .js-fill)`);
    const { x, y, width, height } = path.getBoundingClientRect();
    return { x, y, width, height };
}"""
TEXTS = """[...document.querySelectorAll("#picture .heatmap-label, #picture .heatmaplayer text")]
    .filter((text) => text.textContent.trim())
    .map((text) => text.getBoundingClientRect())
    .map(({ x, y, width, height }) => ({ x, y, width, height }))"""
COLOURS = "document.querySelector('#picture .plot')._fullLayout.coloraxis.colorscale"
# Where on the palette a cell is, from 0 to 1.
SHARE = """([[source, destination], last]) => {
    const said = JSON.parse(document.getElementById("picture-data").textContent);
    const { rows, columns } = said;
    const [row, column] = [rows.names.indexOf(source), columns.names.indexOf(destination)];
    const traces = document.querySelector("#picture .plot")._fullData;
    return traces.find(({ name }) => name === "cells").z[row][column] / last;
}"""
LINKS = {
    "failing": ("RAL_DATADISK", "Glasgow_DATADISK"),
    "slower": ("RAL_DATADISK", "DESY_DATADISK"),
    "faster": ("Glasgow_DATADISK", "RAL_DATADISK"),
    "partly": ("DESY_DATADISK", "RAL_DATADISK"),
}


def make() -> world.World:
    """Make one link of each: usual for 12 days, and otherwise in its newest tests."""
    made = world.make()
    ends = {one.name: one for one in made.endpoints}
    newest = {
        "failing": [None] * 3,
        "slower": [20.0] * 3,
        "faster": [500.0] * 3,
        "partly": [100.0, None, 100.0],
    }
    with world.transfers() as some:
        for name, (source, destination) in LINKS.items():
            for day in range(9, 21):
                some.add(ends[source], ends[destination], 95.0 + day % 5, ago=24 * day * HOUR)
            for hour, rate in enumerate(newest[name], start=1):
                some.add(ends[source], ends[destination], rate, ago=hour * HOUR)
    types = {"failing": TYPES.FAILING, "slower": TYPES.SLOW, "faster": TYPES.FAST}
    for name, type_ in types.items():
        source, destination = (ends[end] for end in LINKS[name])
        stored_condition(
            type_, source=source, destination=destination, since=3 * HOUR, baseline=97e6
        )
    return made


@pytest.fixture
def links(standing: Standing[world.World], at_noon: None) -> world.World:
    return standing(make)


def overlap(one: FloatRect, other: FloatRect) -> bool:
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] < other["y"] + other["height"]
        and other["y"] < one["y"] + one["height"]
    )


@seen_by(LAPTOP, NARROW, WALL)
def test_each_mark_stands_in_its_part_of_its_cell_and_on_no_number(visit, links):
    page = wait_until_drawn(visit.go())
    look(page, f"marks, {visit.reader}")
    wide, high = page.evaluate(CELL_SIZE)
    boxes = {name: page.evaluate(OUTLINE, name) for name in LINKS}
    gaps = {}
    for name, (source, destination) in LINKS.items():
        x, y = place(page, source, destination)
        box = boxes[name]
        left, top = box["x"] - (x - wide / 2), box["y"] - (y - high / 2)
        gaps[name] = (left, top, wide - left - box["width"], high - top - box["height"])
    # From the left, the top, the right and the bottom of the cell.
    assert gaps["failing"] == pytest.approx((1, 1, 1, 1), abs=1.5)
    assert gaps["slower"][1:3] == pytest.approx((0, 0), abs=1.5)
    assert gaps["faster"][1:3] == pytest.approx((1, 1), abs=1.5)
    assert (gaps["partly"][0], gaps["partly"][3]) == pytest.approx((0, 0), abs=1.5)
    texts = page.evaluate(TEXTS)
    assert len(texts) > len(LINKS)
    for name in ("slower", "faster", "partly"):
        assert 4 < boxes[name]["width"] < 0.3 * wide
        assert not [text for text in texts if overlap(boxes[name], text)], name
    # For how long it fails.
    assert page.locator("#picture .heatmaplayer text", has_text="3 h").count() == 1


@seen_by(LAPTOP, DARK, NARROW)
def test_slow_cells_are_brown_and_fast_ones_teal(visit, links):
    for path in ("/?only=slower", "/?stat=vs_usual"):
        page = wait_until_drawn(visit.open(path))
        look(page, f"{path.strip('/?')}, {visit.reader}")
    theme = "dark" if visit.reader is DARK else "light"
    colours = page.evaluate(COLOURS)
    assert [colour for _, colour in colours] == list(RATIO_COLOURS[theme])
    # From the left: slower, as usual, faster.
    shares = {
        name: page.evaluate(SHARE, [LINKS[name], STEPS - 1])
        for name in ("slower", "partly", "faster")
    }
    assert shares["slower"] < 0.2 < 0.45 < shares["partly"] < 0.55 < 0.8 < shares["faster"]
    numbers = page.evaluate("""[...document.querySelectorAll("#picture .heatmaplayer text")]
        .map((text) => text.textContent)""")
    assert {"0.21", "1.03", "5.2", "3 h"} <= {*numbers}
