"""The pictures of overhead and of what happens inside transfers."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.test_link_page import LINK, drawn
from tests.matrix import world
from tests.matrix.sent import send

pytestmark = pytest.mark.usefixtures("scene")


def test_time_over_size_and_rates_within_transfers_are_drawn(visit, scene):
    ral, glasgow = scene.world.ral, scene.world.glasgow
    samples = [[5.0 * at, 4e8 * at] for at in range(1, 12)]
    ago = timedelta(minutes=20)
    send(ral, glasgow, world.NOW - ago, seconds=60.0, moved_bytes=int(48e8), samples=samples)
    page = drawn(drawn(visit.open(f"{LINK}#inside-transfers"), "overhead"), "inside-rates")
    expect(page.locator("#overhead .scatterlayer .point")).to_have_count(3)
    expect(page.locator("#inside-rates .barlayer .point")).to_have_count(1)
    expect(page.get_by_text("1 runs at a ceiling:")).to_be_visible()
    page.get_by_text("Times as a table").click()
    expect(page.get_by_role("region", name="Times as a table")).to_contain_text("20 MB")
