"""The link page without a script: numbers, words, lists, explanations, errors."""

import re
from datetime import timedelta

import numpy as np
import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers.link import report
from matrix.plots.link import apart
from matrix.plots.scales import decades
from sonar.models import Annotation, Downtime, Endpoint, Mesh, Schedule, Transfer
from sonar.people.roles import Role
from tests.accounts import account
from tests.html import Page, Part
from tests.matrix import responses, world
from tests.matrix.sent import MARKUP, MINUTE, PLAIN, many, probe, send
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"


def look(client: Client, text: str = "", path: str = LINK) -> Page:
    return responses.page(client, f"{path}{text}")


def figure(page: Page, name: str = "rates") -> dict:
    return page.data(f"{name}-data")


def test_heading_and_sentence_say_the_link_the_window_and_the_filters(client, small_world):
    page = look(client, "?window=24h&streams=4").words
    assert "From RAL_DATADISK to Glasgow_DATADISK" in page
    assert "The last 24 hours, only with streams 4." in page
    page = look(client, "?size=small").words
    assert "The last 7 days. Times are in UTC" in page
    assert "Small files over time" in page


def test_a_picture_to_take_away_says_link_size_class_and_window(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 10.0, size="small")
    page = look(client, "?size=small&window=24h")
    assert [picture["data-png-title"] for picture in page.parts("[data-png-title]")] == [
        "From RAL_DATADISK to Glasgow_DATADISK, small files, 19 Nov 12:01 to 20 Nov 2026 12:01 UTC"
    ]
    page = look(client, "?size=small", "/sites/RAL/")
    assert [picture["data-png-title"] for picture in page.parts("[data-png-title]")] == [
        "RAL as source, small files, 13 Nov 12:01 to 20 Nov 2026 12:01 UTC"
    ]


def test_each_direction_has_its_numbers_and_a_comparison(client, small_world):
    ends = small_world.ral, small_world.glasgow
    for number in range(5):
        transfer(*ends, 36.0, ago=8 * DAY + number * HOUR)
    for rate in (10.0, 14.0):
        transfer(*ends, rate)
    transfer(*ends, None)
    transfer(*reversed(ends), 1.2)
    page = look(client)
    there, back = page.part("tbody.there"), page.part("tbody.back")
    assert "From RAL_DATADISK to Glasgow_DATADISK" in there
    large = " ".join(there.by_head("tr")["large"])
    assert large.startswith(
        "as usual 12.0 ± 2.83 (2) 12.0 10.2 to 13.8 14.0 2 of 3 67 % 30 min ago 36.0 (5)"
    )
    assert "0.33× 10×" in large
    assert "From Glasgow_DATADISK to RAL_DATADISK" in back
    large = " ".join(back.by_head("tr")["large"])
    assert large.startswith("measured 1.20 (1) 1.20")
    assert "0.10×" in large


def test_what_is_missing_is_a_dash_with_its_reason(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    page = look(client)
    why = "failed: every test in this time range failed, "
    why += "but too few tests ran to classify the link as failing"
    assert set(page.texts(f'span[title="{why}"]')) == {"–"}
    assert not re.search(r"\bnan|None", page.words)


def test_points_medians_and_failures_are_in_a_figure_that_plotly_takes(client, small_world):
    many(small_world.ral, small_world.glasgow, 90, NOW)
    many(small_world.glasgow, small_world.ral, 30, NOW - HOUR)
    for text, names, count in (("", 1, 30), ("?reverse=1", 2, 40)):
        drawn = figure(look(client, text))
        go.Figure(drawn)
        points = [one for one in drawn["data"] if one.get("mode") == "markers"]
        assert len({one["name"] for one in points if "failed" not in one["name"]}) == names
        assert sum(len(one["x"]) for one in points) == count, "those of the chosen class alone"


@pytest.mark.parametrize("bounds", [(0.55, 1.6), (3.6, 13.0), (8.0, 35.0), (0.01, 1000.0)])
def test_ticks_of_a_panel_leave_room_for_each_other(bounds):
    ticks = apart(decades(*bounds), *bounds)
    steps = np.diff(np.log10(ticks)) / np.log10(bounds[1] / bounds[0])
    assert steps.min() >= 0.12
    assert any(bounds[0] <= tick <= bounds[1] and f"{tick:g}".strip("0.") == "1" for tick in ticks)


def test_a_point_is_where_and_what_its_transfer_was(client, small_world):
    fast = transfer(small_world.ral, small_world.glasgow, 200.0, ago=3 * HOUR)
    wrong = transfer(small_world.ral, small_world.glasgow, None, ago=2 * HOUR)
    slow = transfer(small_world.glasgow, small_world.ral, 3.0, ago=HOUR)
    data = {one["name"]: one for one in figure(look(client, "?reverse=1"))["data"] if one["x"]}
    there = data["each test"]
    assert there["x"] == [(NOW - 3 * HOUR).timestamp() * 1000]
    assert (there["y"], there["customdata"]) == ([200.0], [fast.id.hex])
    failed = data["failed"]
    assert (failed["x"], failed["customdata"]) == (
        [(NOW - 2 * HOUR).timestamp() * 1000],
        [wrong.id.hex],
    )
    assert failed["yaxis"] != there["yaxis"]
    back = data["reverse: each test"]
    assert (back["y"], back["customdata"]) == ([3.0], [slow.id.hex])
    assert back["marker"]["symbol"] != there["marker"]["symbol"]


def test_few_results_do_not_all_stand_at_the_edge_of_a_long_window(client, small_world):
    ends = small_world.ral, small_world.glasgow
    for minutes in (40, 20, 0):
        transfer(*ends, 7.0, ago=minutes * MINUTE)
    page = look(client)
    begin, end = figure(page)["layout"]["xaxis"]["range"]
    assert (begin, end) == (
        (NOW - 45 * MINUTE).timestamp() * 1000,
        (NOW + MINUTE / 2).timestamp() * 1000,
    )
    assert "begins at the first result, 20 Nov 11:15 UTC." in page.words
    # What else is seen in the window stays in sight, and so do results that fill some of it.
    Annotation.objects.create(
        site=small_world.ral.site, text="moved", starts_at=NOW - 5 * DAY, public=True
    )
    begin, _ = figure(look(client))["layout"]["xaxis"]["range"]
    assert begin < (NOW - 5 * DAY).timestamp() * 1000
    Annotation.objects.all().delete()
    transfer(*ends, 7.0, ago=DAY)
    page = look(client)
    assert end - figure(page)["layout"]["xaxis"]["range"][0] == 7 * DAY.total_seconds() * 1000
    assert "begins at the first result" not in page.words


def trace(page: Page, name: str) -> dict:
    return next(one for one in figure(page)["data"] if one["name"] == name)


def test_the_line_changes_at_the_test_at_which_the_rate_did(client, small_world):
    change = NOW - 16 * HOUR
    with world.transfers() as some:
        for number in range(7 * 24 - 1):
            ago = number * HOUR
            rate = 2.1 if NOW - ago >= change else 7.5
            some.add(small_world.ral, small_world.glasgow, rate, ago=ago)
    for window in ("", "?window=30d"):
        line = trace(look(client, window), "median of 5 tests")
        drawn = [at for at, rate in zip(line["x"], line["y"], strict=True) if rate == 2.1]
        assert min(drawn) == change.timestamp() * 1000, window
        assert {rate for rate in line["y"] if rate} == {7.5, 2.1}


def test_the_line_has_a_gap_where_nothing_came_through_for_long(client, small_world):
    for hours in (1, 2, 3, 30, 31, 32):
        transfer(small_world.ral, small_world.glasgow, float(hours), ago=hours * HOUR)
    line = trace(look(client), "median of 5 tests")
    assert line["y"] == [31.0, 31.0, 31.0, None, 2.0, 2.0, 2.0, None]


def test_usual_is_a_line_with_its_range_as_a_band(client, small_world):
    ends = small_world.ral, small_world.glasgow
    transfer(*ends, 7.0)
    assert not [one for one in figure(look(client))["layout"]["shapes"] if one["name"] == "usual"]
    for number in range(21):
        transfer(*ends, 5.0 + 0.1 * number, ago=8 * DAY + number * HOUR)
    page = look(client)
    layout = figure(page)["layout"]
    band, line = (one for one in layout["shapes"] if one["name"] == "usual")
    assert (band["y0"], band["y1"]) == (pytest.approx(5.1), pytest.approx(6.9))
    assert line["y0"] == line["y1"] == pytest.approx(6.0)
    assert [one["text"] for one in layout["annotations"]] == ["baseline 6.00"]
    assert "Baseline: 6.00 MB/s, range 5.10 to 6.90" in page.words


@pytest.mark.parametrize(("rates", "kind"), [((2.1, 7.5), "linear"), ((0.1, 7.5), "log")])
def test_rates_are_drawn_from_zero_unless_they_differ_by_far(client, small_world, rates, kind):
    for rate in rates:
        transfer(small_world.ral, small_world.glasgow, rate)
    axis = figure(look(client))["layout"]["yaxis"]
    assert axis["type"] == kind
    low, high = axis["range"] if kind == "linear" else [10**end for end in axis["range"]]
    assert (low == 0) == (kind == "linear")
    assert low <= min(rates) < max(rates) < high


def test_only_the_newest_are_drawn_as_points_and_the_page_says_so(client, small_world, monkeypatch):
    many(small_world.ral, small_world.glasgow, 60, NOW)
    assert "are drawn as points" not in look(client, "?size=small").words
    monkeypatch.setattr("matrix.plots.link.MOST_POINTS", 10)
    page = look(client, "?size=small")
    said = "The latest 10 of 20 tests are drawn as points; the line covers all of them."
    assert said in page.words
    points = [one for one in figure(page)["data"] if one.get("mode") == "markers"]
    assert sum(len(one["x"]) for one in points) == 10
    first = min(min(one["x"]) for one in points if one["x"])
    assert first == (NOW - 27 * MINUTE).timestamp() * 1000


def test_downtimes_and_notes_are_spans_of_the_picture_and_stand_in_words(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 10.0)
    Downtime.objects.create(
        site=small_world.ral.site, starts_at=NOW - 2 * HOUR, ends_at=NOW - HOUR, reason="new disks"
    )
    Downtime.objects.create(
        endpoint=small_world.desy, starts_at=NOW - 2 * HOUR, ends_at=NOW, reason="elsewhere"
    )
    Annotation.objects.create(
        site=small_world.glasgow.site, text="new switch", starts_at=NOW - HOUR, public=True
    )
    Annotation.objects.create(site=small_world.ral.site, text="secret", starts_at=NOW - HOUR)
    page = look(client)
    drawn = figure(page)
    assert [one["type"] for one in drawn["layout"]["shapes"]] == ["rect", "line"]
    said = [one["text"] for one in drawn["layout"]["annotations"]]
    assert said == ["downtime, RAL: new disks", "note: new switch"]
    assert "RAL, down: new disks from 20 Nov 10:00:30 UTC to 20 Nov 11:00:30 UTC" in page.words
    assert "new switch" in page.part('section[aria-label="Notes"]')
    assert "elsewhere" not in page.words.replace("Elsewhere", "")
    assert "secret" not in page.source


def test_without_a_script_tables_have_what_the_pictures_show(client, small_world):
    for rate in (10.0, 20.0):
        transfer(small_world.ral, small_world.glasgow, rate)
    transfer(small_world.ral, small_world.glasgow, None)
    page = look(client)
    assert not page.parts("#distribution")
    assert "A distribution of rates needs at least 8 successful transfers." in page.words
    for _ in range(6):
        transfer(small_world.ral, small_world.glasgow, 10.0, ago=20 * HOUR)
    table = look(client, "?window=6h").section("over-time").part("tbody")
    assert "20 Nov 11:30 large RAL_DATADISK → Glasgow_DATADISK 2 1 15.0 15.0 10.5 19.5" in table
    bins = look(client).section("distribution-heading").part("tbody")
    assert "large RAL_DATADISK → Glasgow_DATADISK 10.0 12.6 7" in bins


def test_results_say_where_they_failed_as_the_failures_do(client, small_world):
    ends = small_world.ral, small_world.glasgow
    send(*ends, NOW, error="no worker", error_where="control")
    listed = look(client).section("results")
    assert "failed in Sonar itself: no worker" in listed
    assert "control" not in listed


def test_failures_are_grouped_and_the_newest_is_linked(client, small_world):
    ends = small_world.ral, small_world.glasgow
    for number in range(3):
        newest = send(*ends, NOW - (3 - number) * HOUR, error=f"503 from node{number}.example.org")
    send(*ends, NOW, error="checksum differs", error_where="transfer")
    page = look(client).section("failures-heading")
    grouped = (
        "at the destination, Glasgow_DATADISK 503 from node2.example.org large 3 20 Nov 09:00 "
        "20 Nov 11:00"
    )
    assert grouped in page.words
    assert f"/transfers/{newest}/" in page.links()
    assert "during the transfer checksum differs large 1" in page.words


def test_results_go_on_page_by_page(client, small_world, monkeypatch):
    monkeypatch.setattr(report, "RESULTS_PER_PAGE", 4)
    many(small_world.ral, small_world.glasgow, 10, NOW)
    seen, text = [], "?window=24h"
    while text:
        page = look(client, text).section("results")
        seen += page.links('tbody th a[href^="/transfers/"]')
        text = page.link("Earlier results").removeprefix(LINK) if "Earlier results" in page else ""
    assert len(seen) == len(set(seen)) == 10
    assert "There are no earlier results in this time range." in page
    assert page.link("Newest results") == f"{LINK}?window=24h"


def test_results_have_their_numbers_and_lead_to_their_transfer(client, small_world):
    client.force_login(account(Role.OPERATOR))
    made = world.profile(**PLAIN | {"streams": 4, "ip_version": 6})
    one = send(
        small_world.ral, small_world.glasgow, NOW, profile_id=made.id, worker="w1", seconds=8.0
    )
    page = look(client).section("results")
    way = "http-tpc, 4 streams requested, IPv6"
    assert "20 Nov 12:00:30 large 250 2 GB 8.00 done w1" in page.words
    assert f"Method of all results: {way}." in page.words
    assert f"/transfers/{one}/" in page.links()
    everybodys = look(Client()).section("results")
    assert "w1" not in everybodys
    assert "worker" not in everybodys


def test_markup_in_errors_workers_reasons_and_notes_shows_as_text(client, small_world):
    ends = small_world.ral, small_world.glasgow
    send(*ends, NOW, error=f"wrong {MARKUP}", worker=f"w {MARKUP}"[:120])
    transfer(*ends, 5.0)
    Downtime.objects.create(
        site=small_world.ral.site, starts_at=NOW - HOUR, ends_at=NOW, reason=f"disk {MARKUP}"
    )
    Annotation.objects.create(
        site=small_world.ral.site, text=f"note {MARKUP}", starts_at=NOW - HOUR
    )
    client.force_login(account(Role.OPERATOR))
    page = look(client)
    assert "<script>alert" not in page.source
    assert "<b>bold" not in page.source
    assert page.source.count("&lt;script&gt;alert(1)") >= 5
    labels = figure(page)["layout"]["annotations"]
    said = [one[name] for one in labels for name in ("text", "hovertext")]
    # Plotly reads some HTML.
    assert said
    assert not any("<" in text.replace("<br>", "") for text in said)


@pytest.mark.long
def test_ways_of_measuring_are_told_apart_and_lead_to_each_alone(client, small_world):
    ends = small_world.ral, small_world.glasgow
    transfer(*ends, 10.0, made=world.profile(**PLAIN))
    transfer(*ends, None, made=world.profile(**PLAIN | {"ip_version": None, "streams": 9}))
    page = look(client)
    assert not page.parts("#mixed")
    transfer(*ends, 90.0, made=world.profile(**PLAIN | {"streams": 4, "ip_version": 6}))
    transfer(*ends, 5.0, made=world.profile(**PLAIN | {"origin": "production"}))
    assert "These numbers mix tests with 1 and 4 streams. Show only: 1 , 4 (" in look(client).part(
        "#mixed"
    )
    page = look(client, "?origin=all")
    said = "These numbers mix tests with 1 and 4 streams, with origin production and test."
    assert said in page.part("#mixed")
    hrefs = page.section("methods").links('a[aria-label^="filter by method:"]')
    medians = []
    for href in hrefs:
        alone = look(client, href.removeprefix(LINK))
        medians.append(alone.part("tbody.there").by_head("tr")["large"][1].split()[0])
        assert not alone.parts("#mixed")
    assert sorted(medians) == ["10.0", "5.00", "90.0", "–"]


@pytest.mark.long
def test_pull_and_push_are_ways_of_measuring_and_so_are_concurrent_tests(client, small_world):
    ends = small_world.ral, small_world.glasgow
    pulled = PLAIN | {"mode": "pull", "streams_used": 1}
    push = PLAIN | {"mode": "push", "streams": 4}
    transfer(*ends, 10.0, made=world.profile(**pulled, concurrent=0))
    transfer(*ends, 5.0, made=world.profile(**push, streams_used=1, concurrent=1))
    transfer(*ends, 6.0, made=world.profile(**push, streams_used=None, concurrent=1))
    page, mixed = (
        look(client),
        "These numbers mix tests with mode pull and push, with 1 and 4 streams.",
    )
    assert mixed in page
    methods = page.section("methods")
    # What is the same in all rows is said above them.
    assert "All results: transfer tool http-tpc, origin test." in methods
    assert methods.texts("tbody tr") == [
        "large pull 1 none 10.0 1 0 filter by method",
        "large push 4 requested, not known or 1 used some 5.50 2 0 filter by method",
    ]
    push = "http-tpc push, 4 streams requested, 1 used, with concurrent tests"
    assert push in page.section("results")
    counts = {"mode=push": 2, "mode=!push": 1, "concurrent=none": 1, "concurrent=!none": 2}
    for text, count in counts.items():
        listed = look(client, f"?{text}").section("results")
        assert len(listed.parts("tbody tr")) == count, text
    transfer(*ends, 7.0, made=world.profile(**pulled, concurrent=1))
    assert mixed in look(client)


@pytest.mark.long
def test_slower_tests_with_concurrent_tests_are_reported_with_both_medians(client, small_world):
    ends = small_world.ral, small_world.glasgow
    without = world.profile(**PLAIN | {"mode": "pull"}, concurrent=0)
    concurrent = world.profile(**PLAIN | {"mode": "pull"}, concurrent=1)
    for number, rate in enumerate((22.9, 23.8, 20.5)):
        transfer(*ends, rate, size="medium", made=without, ago=number * HOUR)
    for number, rate in enumerate((2.6, 2.7, 2.77, 2.85)):
        transfer(*ends, rate, size="medium", made=concurrent, ago=number * HOUR)
        transfer(*ends, 10.0 + number, size="small", made=(without, concurrent)[number % 2])
    transfer(*ends, None, size="medium", made=concurrent)
    page = look(client)
    notice = page.part("#concurrent")
    assert notice.words == (
        "Tests that ran at the same time as other tests were significantly slower. "
        "Median rates for medium files: 2.74 MB/s with concurrent tests (4 tests), 22.9 MB/s "
        "without concurrent tests (3 tests). Show only tests without concurrent tests ."
    )
    assert notice.link("Show only tests without concurrent tests") == f"{LINK}?concurrent=none"
    for narrower in ("?concurrent=none", "?concurrent=some", "?size=small&show=one", "?window=1h"):
        assert not look(client, narrower).parts("#concurrent")
    other = world.profile(**PLAIN | {"mode": "push"}, concurrent=1)
    Transfer.objects.filter(profile=concurrent).update(profile=other)
    assert not look(client).parts("#concurrent"), "what was pushed is compared with what was pulled"


def test_the_schedule_says_how_often_when_and_why_it_waits(client, small_world):
    mine = Schedule.objects.filter(source=small_world.ral, destination=small_world.glasgow)
    mine.update(next_due=NOW + 12 * MINUTE, every_seconds=5400)
    page = look(client).section("planned")
    shared = "mesh everything, transfer tool http-tpc, mode pull, streams 1, priority 5."
    assert f"All size classes: {shared}" in page.words
    assert "large every 90 min in 12 min" in page.words
    mine.update(next_due=NOW - 3 * HOUR, skipped_because="budget", skipped_since=NOW - HOUR)
    page = look(client).section("planned")
    assert "reason for waiting budget, since 20 Nov 11:00 UTC" in page.words
    assert "overdue by 3 h" in page.words
    Mesh.objects.update(name="other")
    assert "mesh other" in look(client).section("planned")


def test_what_is_queued_or_running_is_said_for_both_directions(client, small_world):
    probe(
        small_world.ral, small_world.glasgow, size="large", started_at=NOW, progress_bytes=5 * 10**8
    )
    probe(small_world.glasgow, small_world.ral, HOUR, "large")
    page = look(client).section("planned")
    assert (
        "large, from RAL_DATADISK to Glasgow_DATADISK : running since 20 Nov 12:00 UTC, "
        "500 MB of 2 GB (25 %)" in page
    )
    assert "from Glasgow_DATADISK to RAL_DATADISK : queued since 20 Nov 11:00 UTC" in page


def test_the_rate_inside_the_newest_transfer_is_drawn(client, small_world):
    ends = small_world.ral, small_world.glasgow
    send(*ends, NOW - HOUR, samples=[[5.0, 5e8], [10.0, 2e9]])
    send(*ends, NOW)
    page = look(client)
    assert "20 Nov 11:00:30 UTC : 200 MB/s on average." in page
    drawn = figure(page, "inside")
    go.Figure(drawn)
    assert drawn["data"][0]["y"] == [100.0, 100.0, 300.0, 300.0]


def verdict(page: Page) -> Part:
    return page.part("#verdict")


def test_a_link_that_nobody_tests_says_so(client, small_world):
    Schedule.objects.all().delete()
    page = look(client)
    assert "Not tested: no mesh includes this link, and it has no results." in verdict(page)
    assert "/meshes/" in page.links()
    assert "No enabled mesh includes this direction." in page


def test_a_link_without_a_result_yet_says_when_its_test_is_due(client, small_world):
    Schedule.objects.update(next_due=NOW + 12 * MINUTE)
    said = verdict(look(client))
    assert (
        "Not tested yet: the first test has not run. The reverse direction was not tested in "
        "this time range. The next test is due in 12 min (20 Nov 12:12 UTC)."
    ) in said
    Schedule.objects.update(skipped_because="downtime", skipped_since=NOW - HOUR)
    assert "it has been waiting since 20 Nov 11:00 UTC because of downtime." in verdict(
        look(client)
    )


@pytest.mark.parametrize(
    ("ago", "leads_to"),
    [
        (3 * HOUR, "?window=6h"),
        (3 * DAY, ""),
        (60 * DAY, "?window=90d"),
        (100 * DAY, "?from=2026-08-12T00:00:00Z&to=2026-08-13T00:00:00Z"),
    ],
)
def test_a_window_without_results_leads_to_one_that_has_some(client, small_world, ago, leads_to):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=ago)
    page = look(client, "?window=1h")
    assert "No test in this time range: the last test was" in verdict(page)
    assert f"{LINK}{leads_to}" in verdict(page).links()
    assert "No test in this time range: " not in verdict(look(client, leads_to))


def test_a_link_that_only_fails_says_so_above_its_failures(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    page = look(client)
    assert "Failed in this time range: the only test with large files" in verdict(page)
    parts = ("verdict", "rates", "why-failed", "last-tests", "failures")
    places = [page.source.index(f'id="{part}"') for part in parts]
    assert places == sorted(places)
    drawn = figure(page)
    assert drawn["layout"]["annotations"][0]["text"] == "no transfer succeeded"


def test_filters_that_nothing_passes_can_be_dropped(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    assert not look(client).parts("#failures")
    page = look(client, "?window=24h&streams=9")
    assert "no result for this link in this time range matches the filters." in verdict(page)
    assert page.link("Show all tests without filters") == f"{LINK}?window=24h"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/links/RAL_DATADISK/Nowhere/", "No endpoint is registered with the name “Nowhere”."),
        ("/links/A/B/", "No endpoint is registered with the name “A” or “B”."),
        ("/links/RAL_DATADISK/RAL_DATADISK/", "A link needs two different endpoints"),
        ("/links/RAL_DATADISK/%3Cscript%3Ealert(1)/", "“&lt;script&gt;alert(1)”"),
    ],
)
def test_an_unknown_end_is_a_404_that_names_it(client, small_world, path, said):
    response = client.get(path)
    assert response.status_code == 404
    assert said in response.content.decode()
    assert "Search for the current name:" in " ".join(response.content.decode().split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reverse=yes", "reverse “yes” is not known: use 1, or leave it out."),
        ("show=all", "show “all” is not known: use one, or leave it out."),
        (
            "before=yesterday",
            "“before” is “yesterday”, which is not a position in the list of results",
        ),
        ("window=2h", "window “2h” is not known"),
    ],
)
def test_a_bad_parameter_is_a_400_that_says_what_is_allowed(client, small_world, text, said):
    response = client.get(f"{LINK}?{text}")
    assert response.status_code == 400
    assert said in response.content.decode()


@pytest.mark.parametrize(
    ("asked", "shortest"),
    [
        ("?window=7d&stat=max&rows=site&reverse=", ""),
        ("?site=RAL&mover=http-tpc", "?mover=http-tpc"),
        ("?reverse=1&window=24h", "?window=24h&reverse=1"),
    ],
)
def test_one_view_has_one_url(client, small_world, asked, shortest):
    response = client.get(LINK + asked)
    assert (response.status_code, response["Location"]) == (302, LINK + shortest)
    assert client.get(LINK + shortest).status_code == 200


def test_controls_keep_all_but_what_they_change(client, small_world):
    page = look(client, "?window=24h&streams=4&show=one&reverse=1")
    for href in (
        "?window=24h&streams=4&show=one",
        "?size=small&window=24h&streams=4&show=one&reverse=1",
        "?window=24h&streams=4&reverse=1",
        "?window=1h&streams=4&show=one&reverse=1",
        "?window=24h&show=one&reverse=1",
    ):
        assert f"{LINK}{href}" in page.links(), href
    assert page.parts('input[type="hidden"][name="reverse"][value="1"]')


def test_the_rates_of_each_class_are_a_file_for_a_notebook(client, small_world):
    url = look(client).part(".take").link("large")
    assert url.startswith("/api/v1/series/")
    assert url.endswith("format=csv")


def test_lists_of_one_class_alone_leave_the_others_out(client, small_world):
    ends = small_world.ral, small_world.glasgow
    transfer(*ends, 10.0)
    transfer(*ends, 3.0, size="small")
    transfer(*ends, None, size="medium")
    page = look(client, "?size=small&show=one")
    assert "medium" not in page.section("results")
    assert not page.parts("#failures")
    of_small = 'a[href^="/api/v1/transfers/?size=small&source_endpoint=RAL_DATADISK"]'
    assert page.links(of_small)
    every = look(client, "?size=small")
    order = every.texts('tbody.there th[scope="row"]')
    assert order == ["small", "medium", "large"]
    assert "medium" in every.section("results")
    assert every.links('a[href^="/api/v1/transfers/?source_endpoint=RAL_DATADISK"]')


@pytest.mark.long
def test_the_share_links_answer(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 10.0)
    for text in ("", "?show=one", "?size=small&window=24h&streams=!4&show=one"):
        page = look(client, text)
        calls = page.links('a[href^="/api/v1/"]')
        assert len(calls) >= 2
        for call in calls:
            response = client.get(call)
            assert response.status_code == 200, call
            # A stream that is not read to its end keeps the connection that the next call needs.
            assert response.getvalue()


def test_it_leads_to_the_reverse_link_both_sites_and_the_matrix(client, small_world):
    page = look(client, "?window=24h&streams=4")
    hrefs = page.part('nav[aria-label="Related pages"]').links()
    assert hrefs[:3] == [
        "/links/Glasgow_DATADISK/RAL_DATADISK/?window=24h&streams=4",
        "/sites/RAL/?window=24h&streams=4",
        "/sites/Glasgow/?window=24h&streams=4",
    ]
    assert hrefs[3].startswith("/?window=24h&source_endpoint=Glasgow_DATADISK&source_endpoint=RAL")
    assert client.get(hrefs[3]).status_code == 200


def test_simulated_rates_are_called_so(client, small_world):
    assert "Simulated" not in look(client).source
    Endpoint.objects.filter(name="Glasgow_DATADISK").update(simulated=True)
    assert "Simulated" in look(client)


@pytest.mark.long
def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world):
    look(client)
    for count in (10, 1000):
        many(small_world.ral, small_world.glasgow, count, NOW)
        many(small_world.glasgow, small_world.ral, count, NOW)
        Downtime.objects.bulk_create(
            Downtime(
                site=small_world.ral.site,
                starts_at=NOW - (number + 2) * HOUR,
                ends_at=NOW - (number + 1) * HOUR,
                reason="disk",
            )
            for number in range(count // 10)
        )
        look(client)  # places are read anew after a change of the registry
        with CaptureQueriesContext(connection) as captured:
            look(client, "?reverse=1")
        assert len(captured) == 32, [one["sql"] for one in captured.captured_queries]
        Transfer.objects.all().delete()


@pytest.mark.parametrize("of", ["ral", "glasgow"])
def test_a_note_can_be_written_by_who_may(client, small_world, of):
    assert "Add note" not in look(client).source
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site, name="of-desy"))
    assert "Add note" not in look(client).source
    client.force_login(account(Role.SITE_ADMIN, getattr(small_world, of).site))
    page = look(client)
    assert "Add note" in page
    assert ("source", "RAL_DATADISK") in page.part("#add-note").hidden()
