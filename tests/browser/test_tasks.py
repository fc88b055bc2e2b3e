"""Tasks of people on shift, with true answers in so many clicks at most from the front page."""

import csv
import random
import re
from dataclasses import dataclass
from datetime import timedelta
from itertools import permutations

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from sonar.models import Downtime, Endpoint, Mesh, Probe, Site
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen
from sonar.notation.units import MB
from sonar.people.roles import Role
from sonar.results import endings, store
from tests.accounts import account
from tests.browser.axe import ALL, violations
from tests.browser.cells import wait_until_drawn
from tests.browser.conftest import Standing, Visit
from tests.browser.pages import Hand, assert_still, box_of, fits, look
from tests.browser.readers import COPYING, LAPTOP, NARROW, NARROW_DARK, Reader, seen_by
from tests.browser.waiting import until_settled
from tests.conditions import TYPES, assessed_at, stored_condition
from tests.matrix import world
from tests.matrix.sent import result
from tests.matrix.world import HOUR, NOW

DAY = timedelta(days=1)
SITES = ("MAN", "LANCS", "CAM", "RAL", "PIC", "FZK", "BNL", "SARA", "NDGF")
# MAN sends at a half of what the others do, and receives at three quarters, as it always did.
SLOW_SENDER, SLOW_RECEIVER = 0.5, 0.75
FULL = "507 Insufficient Storage: no space left in the pool"
PATH = (
    "davs://lancs.example.org:1094/dpm/DATADISK/sonar/source/682914db-df7f-47d0-9034-a73be7bb3a02"
)
REFUSED = f"the active end says: failure: COPY {PATH} refused: HTTP 403 too many transfers"
SMALL_LAPTOP = Reader("small laptop", 1024, 768)
SLOW = "/links/PIC_DATADISK/UKI-SCOTGRID-GLASGOW_DATADISK/"
BEGUN = NOW - timedelta(hours=49)


@dataclass(frozen=True)
class Shift:
    """LANCS to CAM fails since BEGUN, in all classes; PIC to FZK has a third of its rate."""

    ends: dict[str, Endpoint]


def make() -> Shift:
    chance = random.Random(31)
    sites = Site.objects.bulk_create(Site(name=name, tier=2, cloud="UK") for name in SITES)
    places = world.endpoints((f"{site.name}_DATADISK", site) for site in sites)
    ends = {name.removesuffix("_DATADISK"): place for name, place in places.items()}
    world.schedule(
        Mesh.objects.create(name="everything"), *permutations(ends.values(), 2), every=6 * 3600
    )
    with world.transfers() as some:
        for source, destination in permutations(SITES, 2):
            for size, every in (("large", 6), ("small", 24), ("medium", 24)):
                for number in range(36 * 24 // every):
                    ago = timedelta(hours=every * (number + chance.random()))
                    rate = rate_of(source, destination, ago) * chance.lognormvariate(0, 0.08)
                    if (source, destination) != ("LANCS", "CAM") or NOW - ago < BEGUN:
                        some.add(ends[source], ends[destination], rate, ago=ago, size=size)
    store.store(failures(ends))
    stored_condition(
        TYPES.FAILING,
        source=ends["LANCS"],
        destination=ends["CAM"],
        since=NOW - BEGUN,
        sizes=("small", "medium", "large"),
    )
    stored_condition(TYPES.SLOW, source=ends["PIC"], destination=ends["FZK"], since=30 * HOUR)
    return Shift(ends)


def rate_of(source: str, destination: str, ago: timedelta) -> float:
    rate = 20.0 * (SLOW_SENDER if source == "MAN" else 1)
    rate *= SLOW_RECEIVER if destination == "MAN" else 1
    is_slower = (source, destination) == ("PIC", "FZK") and ago < 30 * HOUR
    return rate / 3 if is_slower else rate


def failures(ends: dict[str, Endpoint]) -> list[store.Result]:
    """Make 47 failed tests of three classes; at first CAM is full, and then it refuses LANCS."""
    sizes = ["large"] * 19 + ["medium"] * 14 + ["small"] * 14
    return [
        result(
            *(ends["LANCS"], ends["CAM"], BEGUN + number * HOUR, size),
            error=FULL if number < 32 else REFUSED,
            error_where="destination",
        )
        for number, size in enumerate(random.Random(7).sample(sizes, len(sizes)))
    ]


@pytest.fixture
def shift(standing: Standing[Shift], at_noon: None) -> Shift:
    return standing(make)


def hand(visit: Visit) -> Hand:
    return Hand(wait_until_drawn(visit.go("/")))


@seen_by(LAPTOP, NARROW_DARK)
def test_b_why_a_link_fails(visit, shift, reader):
    """Task b: since when, how many of all classes, the latest error whole, and whose, once."""
    on = hand(visit)
    on.click(on.page.locator("#rail a[href='/links/LANCS_DATADISK/CAM_DATADISK/']").first)
    box = on.page.locator("#verdict")
    expect(box).to_contain_text("Fails, with small, medium and large files")
    expect(box).to_contain_text("since 18 Nov 11:00 UTC.")
    expect(box).to_contain_text(f"Now: at the destination, CAM_DATADISK: {REFUSED}.")
    expect(box).to_contain_text(
        "The destination refuses only this source; other links of the destination work (0 of "
    )
    look(on.page, f"task-b-{reader}")
    assert fits(on.page)
    assert on.clicks == 1


@seen_by(LAPTOP, NARROW_DARK)
def test_c_is_a_site_slow_as_source_or_as_destination(visit, shift, reader):
    """Task c: as usual does not mean fast, and nobody has to know that."""
    assessed_at()
    on = hand(visit)
    on.type(on.page.locator("#jump"), "man", enter=True)
    on.page.wait_for_url("**/sites/MAN/")
    own = on.page.get_by_role("region", name="Changes")
    expect(own.locator("strong")).to_contain_text("As usual: sends at")
    peers = on.page.get_by_role("region", name="Compared with peers")
    expect(peers.locator("strong")).to_contain_text("Slow compared with its peers: sends at 5")
    sizes = [
        box.locator("strong").evaluate("box => getComputedStyle(box).fontSize")
        for box in (own, peers)
    ]
    assert sizes[0] == sizes[1], "both are of equal weight"
    look(on.page, f"task-c-{reader}")
    assert fits(on.page)
    assert on.clicks == 1


@pytest.mark.long
@seen_by(LAPTOP, NARROW)
def test_n_a_downtime_tomorrow(visit, shift, reader):
    """Task n: times may be words, and are typed in UTC."""
    man = shift.ends["MAN"].site
    visit.log_in(account(Role.SITE_ADMIN, man))
    on = hand(visit)
    on.type(on.page.locator("#jump"), "man", enter=True)
    on.page.wait_for_url("**/sites/MAN/")
    on.click(on.page.locator("summary", has_text="Declare downtime…"))
    on.clicks += 1  # what is typed, from field to field
    for text in ("tomorrow 08:00", "tomorrow 12:00", "switch firmware"):
        on.page.keyboard.press("Tab")
        on.page.keyboard.type(text)
    look(on.page, f"task-n-{reader}")
    on.page.keyboard.press("Enter")
    expect(on.page.locator("#site-work [role=status]")).to_contain_text("Declared a downtime")
    row = Downtime.objects.get()
    morning = NOW.replace(hour=8, minute=0, second=0) + DAY
    assert (row.starts_at, row.ends_at) == (morning, morning + 4 * HOUR)
    assert (row.site, row.reason) == (man, "switch firmware")
    expect(
        on.page.locator("#page .notice", has_text="Declared downtime starts soon")
    ).to_be_visible()
    assert on.clicks == 3
    assert fits(on.page)


def test_d_my_rows_the_worst_first_as_a_file(visit, shift):
    """Task d: the site alone, though its name is a part of another; what fails is no good rate."""
    Site.objects.filter(name="PIC").update(name="CAMPIC")
    on = hand(visit)
    on.link("Table")
    on.type(on.page.get_by_label("Search all columns"), "cam")
    expect(on.page.locator(".count")).to_contain_text("Showing 1 to 16 of 16 links")
    first = on.page.locator(".links tbody tr").first
    expect(first).to_contain_text("LANCS")
    expect(first).to_contain_text("failing")
    with on.page.expect_download() as download:
        on.link("CSV")
    text = download.value.path().read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 16
    assert all("CAM" in (row["source.site"], row["destination.site"]) for row in rows)
    assert (rows[0]["source"], rows[0]["large.state"]) == ("LANCS_DATADISK", "failing")
    assert on.clicks == 3


# What scrolls to the side though it is no picture and no row of tabs.
TOO_WIDE = """() => [...document.querySelectorAll(".link-page :is(.scroll, table, .verdict)")]
    .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
    .map((box) => `${box.getAttribute("aria-label") ?? box.className}: ${box.scrollWidth}`)"""
LANCS_TO_CAM = "/links/LANCS_DATADISK/CAM_DATADISK/"


@pytest.mark.long
def test_a_link_is_read_at_once_and_nothing_is_wider_than_its_column(visit, shift):
    """Ux: the picture began at y = 1026 on a page of 5,600 pixels, and tables were cut."""
    visit.log_in(account(Role.OPERATOR))
    for screen in (LAPTOP, SMALL_LAPTOP):
        visit.page.set_viewport_size({"width": screen.width, "height": screen.height})
        page = visit.open(LANCS_TO_CAM)
        until_settled(page)
        assert box_of(page.locator("#rates"))["y"] < 520, screen
        for number, tab in enumerate(page.locator(".tabs a").all()):
            tab.click()
            part = f"{tab.get_attribute('href')}.panel"
            expect(page.locator(part)).to_be_visible()
            assert page.evaluate(TOO_WIDE) == [], (screen, part)
            if screen is LAPTOP:
                assert violations(page, within=part if number else ALL) == [], part
                height = page.evaluate("document.documentElement.scrollHeight")
                assert height <= 2500, part
        assert_still(page, screen)


# The rates of what was ordered on a link, by how many streams its servers used.
BY_STREAMS = """
    SELECT streams_used, count(*),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes / seconds / 1e6)
    FROM sonar_transfer JOIN sonar_profile ON sonar_profile.id = profile_id
    WHERE worker <> '' AND purpose IN ('ordered', 'sweep') AND state = 'done'
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


@pytest.mark.long
def test_three_large_files_with_four_streams_against_one(visit, changed):
    visit.log_in(account(Role.OPERATOR))
    on = hand(visit)
    on.click(on.page.locator(f"#rail a[href^='{SLOW}']").first)
    on.page.wait_for_url(f"**{SLOW}*")  # whose script ticks the box below
    on.click(on.page.get_by_role("button", name="Test now…"))
    form = on.page.locator("#test-now form").first
    on.type(form.locator("[name=streams]"), "4")
    expect(form.locator("[name=compare]")).to_be_checked()
    on.click(form.locator("button"))
    assert on.clicks == 4
    expect(on.page.locator("#test-now [role=status]")).to_have_text("6 tests were requested.")
    orders = Probe.objects.values_list("size_class__name", "streams")
    assert sorted(orders) == [("large", 1)] * 3 + [("large", 4)] * 3
    for number, probe in enumerate(Probe.objects.order_by("id")):
        finish(probe, (9.0 if probe.streams == 4 else 4.0) * (1 + number / 100))
    statement = on.page.locator("#test-now .streams")
    expect(statement).to_contain_text("4 streams: ")
    with connection.cursor() as cursor:
        cursor.execute(BY_STREAMS)
        (few, count, before), (several, other_count, after) = cursor.fetchall()
    assert (few, count, several, other_count) == (1, 3, 4, 3)
    words = " ".join(statement.inner_text().split())
    found = re.match(
        r"4 streams: ([\d.]+)× \(([\d.]+)–([\d.]+)\) the rate of 1 stream, "
        r"significant: 3 and 3 tests\.",
        words,
    )
    assert found, words
    ratio, low, high = map(float, found.groups())
    assert ratio == pytest.approx(after / before, rel=0.03)
    assert 1.5 < low < ratio < high
    assert f"median {after:.2f} MB/s instead of {before:.2f} MB/s" in words
    # Tests with other settings than the link's mesh count nowhere else.
    visit.open(SLOW)
    expect(on.page.locator("#left-out")).to_contain_text("3 tests with settings other than")


@seen_by(COPYING)
def test_tier_1_to_tier_2_of_30_days_as_a_table_for_a_document(visit, changed):
    on = hand(visit)
    on.click(on.page.locator("[popovertarget=views]"))
    on.link("T1 to T2")
    on.page.wait_for_url("**source_tier=1**")
    on.link("30d")
    on.page.wait_for_url("**window=30d**")
    on.click(on.page.get_by_role("button", name="Copy table"))
    expect(on.page.get_by_role("button", name="Copied")).to_be_visible()
    assert on.clicks == 4
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


def test_the_unit_of_the_colours_keeps_off_their_highest_tick(visit, shift):
    page = wait_until_drawn(visit.go("/"))
    bar = page.locator("#picture .colorbar")
    unit = box_of(bar.locator(".cbtitle tspan").first)
    top = box_of(bar.get_by_text("▲"))
    assert unit["y"] + unit["height"] + 2 <= top["y"]
