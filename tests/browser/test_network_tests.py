"""Tests of the network on the page of a link, in a real browser."""

from playwright.sync_api import expect

from tests.browser.axe import by_day_and_night
from tests.browser.pages import fits, look
from tests.browser.readers import LAPTOP, NARROW, seen_by
from tests.browser.waiting import until_settled
from tests.matrix.network import failed, measured, servers

LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
OWN_LINK = "/links/RAL_NET/Glasgow_NET/"


@seen_by(LAPTOP, NARROW)
def test_network_tests_stand_on_the_page_of_a_link(visit, scene):
    ral, glasgow = servers(scene.world)
    for number in range(5):
        measured(ral, glasgow, bytes=100_000_000 + 7_000_000 * number)
    measured(glasgow, ral, mode="pull", rtt_min_ms=None, rtt_mean_ms=None, rtt_max_ms=None)
    failed(ral, glasgow)
    for path in (LINK, OWN_LINK):
        page = visit.open(f"{path}#network")
        until_settled(page)
        part = page.get_by_role("region", name="Network tests", exact=True)
        expect(part.locator("tbody tr")).to_have_count(7)
        expect(part).to_contain_text("a median of 114 MB/s (n = 5), a round trip of 92.2 ms")
        assert by_day_and_night(page, "section:has(#network)") == []
        assert fits(page)
        part.scroll_into_view_if_needed()
        look(page, f"network-{visit.reader}-{'files' if path == LINK else 'own'}")
