"""Large matrices in the browser: drawn, and as quick to answer as small ones. Nothing is timed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pytest
from django.utils import timezone
from numpy.typing import NDArray
from playwright.sync_api import expect

from sonar.models import Endpoint
from sonar.notation.units import MB, three_digits
from tests.benchmarks import full
from tests.browser.cells import point_at, wait_until_drawn
from tests.browser.pages import box_of, look
from tests.browser.waiting import until

LONG_TASKS = """
    window.longTasks = [];
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) longTasks.push(task.duration);
    }).observe({ type: "longtask", buffered: true });
"""


@dataclass(frozen=True)
class Large:
    """A full matrix: names in order, and the rate of each link in MB/s (NaN: failed)."""

    names: list[str]
    rates: NDArray[np.float64]

    def said(self, row: int, column: int) -> str:
        """Return how the page begins to say what a cell holds."""
        rate = self.rates[row, column]
        said = f"from {self.names[row]} to {self.names[column]}: "
        return said if np.isnan(rate) else f"{said}{three_digits(rate)} MB/s"

    def measured(self) -> tuple[int, int]:
        """Return row and column of a cell off the middle whose transfer worked."""
        half = len(self.names) // 2
        row, column = np.argwhere(~np.isnan(self.rates[half:, half:]))[7] + half
        return int(row), int(column)


def make(endpoints: int) -> Large:
    rows = full.fill(endpoints, last_whole_hour(timezone.now()))
    rates = np.full((endpoints, endpoints), np.nan)
    done = rows[~rows["failed"]]
    rates[done["source"], done["destination"]] = done["bytes"] / done["seconds"] / MB
    names = list(Endpoint.objects.order_by("id").values_list("name", flat=True))
    assert names == sorted(names, key=str.casefold)
    return Large(names, rates)


def last_whole_hour(now: datetime) -> datetime:
    """Return the start of an hour that has been over long enough to be sealed."""
    return (now - timedelta(hours=1, minutes=2)).replace(minute=0, second=0, microsecond=0)


@pytest.mark.parametrize("endpoints", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_a_large_matrix_is_drawn_and_says_what_each_cell_holds(
    endpoints, visit, unpooled, real_commits, record_property
):
    large = make(endpoints)
    visit.run_before_each_page(LONG_TASKS)
    page = wait_until_drawn(visit.open("/?window=24h"))
    row, column = large.measured()
    card = point_at(page, large.names[row], large.names[column]).inner_text()
    assert f"from {large.names[row]}" in card
    assert three_digits(large.rates[row, column]) in card
    page.locator("#picture").focus()
    for key in ("Control+End", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator("#said")).to_contain_text(large.said(-2, -1))
    record_property("longest_task_ms", page.evaluate("Math.max(0, ...longTasks)"))


@pytest.mark.long
def test_a_large_matrix_is_painted_while_a_window_is_dragged_and_drawn_at_its_end(
    visit, unpooled, real_commits
):
    make(320)
    now = timezone.now()
    full.store_one_link(now - timedelta(days=6), hours=3)
    page = wait_until_drawn(visit.open("/?window=24h"))
    hours, painted = page.locator("#strip .hours"), page.locator("#picture .first-look")
    expect(hours.locator("svg")).to_be_visible()
    box = box_of(hours)
    expect(painted).to_have_count(0)
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 20, steps=3)
    expect(painted).to_have_count(1)
    look(page, "large-dragged")
    # Marks and the card stay above it.
    expect(page.locator("#picture .plot + .first-look")).to_have_count(1)
    page.evaluate("performance.clearMarks('cells-loaded')")
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20, steps=3)
    page.mouse.up()
    expect(painted).to_have_count(0)
    until(page, "performance.getEntriesByName('cells-loaded').length")
    look(page, "large-drag-done")
