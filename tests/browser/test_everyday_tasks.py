"""Everyday tasks, each from the front page in so many clicks at most, or so many keys."""

import re
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from sonar.models import Probe
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen
from sonar.notation.units import MB
from sonar.people.roles import Role
from sonar.results import endings
from tests.accounts import account
from tests.browser.cells import wait_until_drawn
from tests.browser.conftest import Visit
from tests.browser.pages import log_in
from tests.browser.readers import COPYING

GLASGOW = "UKI-SCOTGRID-GLASGOW"
SLOW = "/links/PIC_DATADISK/UKI-SCOTGRID-GLASGOW_DATADISK/"


@dataclass
class Hand:
    """Clicks, and no more often than it may."""

    page: Page
    clicks: int

    def click(self, what: Locator) -> None:
        self.clicks -= 1
        assert self.clicks >= 0, "one click too many"
        what.click()

    def type(self, what: Locator, text: str) -> None:
        """Type into a field, which counts as a click."""
        self.clicks -= 1
        assert self.clicks >= 0, "one field too many"
        what.fill(text)

    def highlight(self, path: str) -> None:
        """Click one of the links in the rail."""
        self.click(self.page.locator(f"#rail a[href^='{path}']").first)

    def link(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=True).first)


def hand(visit: Visit, clicks: int, path: str = "/") -> Hand:
    return Hand(wait_until_drawn(visit.go(path)), clicks)


def test_what_got_slow_compared_with_before(visit, changed):
    on = hand(visit, 2)
    expect(on.page.get_by_role("heading", level=1)).to_have_text(
        "1 link failing with large files, 4 slower than usual"
    )
    on.highlight(SLOW)
    verdict = on.page.locator("#now")
    expect(verdict).to_contain_text(
        re.compile(r"Less than a third of the usual rate since 19 Nov 2\d:\d\d: large 0\.\d\d×")
    )


def test_is_a_site_slow_as_source_or_as_destination(visit, changed):
    on = hand(visit, 2)
    on.link("Sites")
    on.click(on.page.locator("table.sites").get_by_role("link", name=GLASGOW))
    expect(on.page.locator("#answer")).to_contain_text(
        "Slower than usual from 4 of 10 sites (0.30×, since 19 Nov"
    )
    expect(on.page.locator("#answer")).to_contain_text("Faster than usual to NDGF-T1 (2.0×, since")


def test_my_rows_the_worst_first_as_a_file(visit, changed):
    log_in(visit.open("/login/"), account(Role.SITE_ADMIN, changed.glasgow.site))
    on = hand(visit, 2)
    on.link("My site")
    first = on.page.locator("section[aria-labelledby=as-destination] tbody tr").first
    expect(first).to_contain_text("slower since")
    with on.page.expect_download() as download:
        on.link("CSV")
    assert "UKI-SCOTGRID-GLASGOW" in download.value.path().read_text()


def test_did_the_change_help_this_site(visit, changed):
    on = hand(visit, 3)
    on.link("Sites")
    on.click(on.page.locator("table.sites").get_by_role("link", name=GLASGOW))
    on.click(on.page.locator(".tabs").get_by_role("link", name="Events and notes"))
    effects = on.page.get_by_role("region", name="Before and after each note", exact=True)
    expect(effects).to_contain_text("new firmware of the switch")
    expect(effects).to_contain_text(re.compile(r"0\.99× \(0\.9\d–1\.0\d*\)\s+about the same"))


# The rates of what was ordered on a link, by how many streams its servers used.
BY_STREAMS = """
    SELECT streams_used, count(*),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes / seconds / 1e6)
    FROM sonar_transfer JOIN sonar_profile ON sonar_profile.id = profile_id
    WHERE worker <> '' AND purpose IN ('ordered', 'experiment') AND state = 'done'
    GROUP BY streams_used ORDER BY streams_used
"""


def finish(probe: Probe, rate: float) -> None:
    """Let a test end as its worker ends it: with a rate in MB/s, and with the streams it used."""
    began = timezone.now() - timedelta(seconds=1)
    running = {"state": "running", "started_at": began, "deadline": began + timedelta(hours=1)}
    Probe.objects.filter(id=probe.id).update(**running, worker="worker-1")
    seen = Seen(streams_used=probe.streams)
    seconds = probe.bytes / rate / MB
    outcome = Outcome(Receipt(probe.bytes, seconds), None, None, seconds, seen=seen)
    assert endings.end_probe(Probe.objects.get(id=probe.id), outcome)


def test_three_large_files_with_four_streams_against_one(visit, changed):
    visit.log_in(account(Role.OPERATOR))
    on = hand(visit, 4)
    on.highlight(SLOW)
    on.page.wait_for_url(f"**{SLOW}*")  # whose script ticks the box below
    on.click(on.page.get_by_role("button", name="Test now…"))
    form = on.page.locator("#test-now form").first
    on.type(form.locator("[name=streams]"), "4")
    expect(form.locator("[name=compare]")).to_be_checked()
    on.click(form.locator("button"))
    expect(on.page.locator("#test-now [role=status]")).to_have_text("6 tests were ordered.")
    orders = Probe.objects.values_list("size_class__name", "streams")
    assert sorted(orders) == [("large", 1)] * 3 + [("large", 4)] * 3
    for number, probe in enumerate(Probe.objects.order_by("id")):
        finish(probe, (9.0 if probe.streams == 4 else 4.0) * (1 + number / 100))
    statement = on.page.locator("#test-now .streams")
    expect(statement).to_contain_text("4 streams: ", timeout=15_000)
    with connection.cursor() as cursor:
        cursor.execute(BY_STREAMS)
        (few, count, before), (several, other_count, after) = cursor.fetchall()
    assert (few, count, several, other_count) == (1, 3, 4, 3)
    words = " ".join(statement.inner_text().split())
    found = re.match(
        r"4 streams: ([\d.]+)× \(([\d.]+)–([\d.]+)\) the rate of 1 stream, "
        r"certain: 3 and 3 tests\.",
        words,
    )
    assert found, words
    ratio, low, high = map(float, found.groups())
    assert ratio == pytest.approx(after / before, rel=0.03)
    assert 1.5 < low < ratio < high
    assert f"median {after:.2f} MB/s instead of {before:.2f} MB/s" in words
    # Tests with other settings than the link's mesh count nowhere else.
    visit.open(SLOW)
    expect(on.page.locator("#left-out")).to_contain_text("3 tests with other settings")


@pytest.mark.parametrize("reader", [COPYING], ids=str)
def test_tier_1_to_tier_2_of_30_days_as_a_table_for_a_document(visit, changed, reader):
    on = hand(visit, 4)
    on.click(on.page.locator("[popovertarget=views]"))
    on.link("T1 to T2")
    on.page.wait_for_url("**source_tier=1**")
    on.link("30d")
    on.page.wait_for_url("**window=30d**")
    on.click(on.page.get_by_role("button", name="Copy table"))
    expect(on.page.get_by_role("button", name="Copied")).to_be_visible()
    table = on.page.evaluate("navigator.clipboard.readText()")
    assert "the last 30 days" in table.splitlines()[0]
    assert "RAL-LCG2_DATADISK" in table


def test_any_link_is_opened_by_six_keys(visit, changed):
    page = wait_until_drawn(visit.go("/"))
    for key in ("/", "p", " ", "u", "ArrowDown", "Enter"):
        if key == "ArrowDown":  # what is found for the first letter alone may stand there yet
            first = page.locator("#found [role=option]").first
            expect(first).to_contain_text("PIC_DATADISK → UKI-")
        page.keyboard.press(key)
    page.wait_for_url("**/links/PIC_DATADISK/UKI-*/")


def test_it_is_watched_on_the_wall(visit, changed):
    on = hand(visit, 1)
    on.link("wall")
    on.page.wait_for_url("**wall=1**")
    expect(on.page.get_by_role("heading", level=1)).to_have_text(
        "1 link failing with large files, 4 slower than usual"
    )
