"""The page of a site: its numbers, lists, plan and words."""

import re
from datetime import timedelta
from itertools import permutations

import pytest
from django.test import Client
from plotly import graph_objects

from sonar.models import Annotation, Circuit, Endpoint, Schedule, Site, SizeClass, Transfer
from sonar.results import sealing
from tests.conditions import assessed_at, stored_condition
from tests.html import Page, Part
from tests.matrix import changed_site, responses, world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR, NOW, World, transfer, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
MARKUP = "</script><script>alert(1)</script>"


def look(client: Client, path: str = "/sites/RAL/") -> Page:
    return responses.page(client, path)


def standing(page: Page, end: str = "source") -> dict[str, list[str]]:
    """Return the numbers of the summary of an end, by what they are."""
    return page.section(f"rank-{end}").by_head()


def figures(page: Page) -> list[dict[str, object]]:
    ends = ("source", "destination")
    names = (f"over-time-{end}-data" for end in ends)
    return [page.data(name) for name in names if page.parts(f"#{name}")]


def partners(page: Page, end: str) -> Part:
    """Return the table of the links of an end."""
    return page.section(f"as-{end}").part("table.partner-rows")


def test_the_head_says_who_it_is_and_for_which_window(client, small_world):
    Site.objects.filter(name="RAL").update(wan_gbit_s=10)
    page = look(client, "/sites/RAL/?window=24h").words
    assert "RAL the last 24 hours" in page
    assert "Tier 1, cloud UK, country GB, WAN 10 Gbit/s" in page


def test_tags_stand_with_the_site_and_each_endpoint(client, small_world):
    untagged = look(client, "/sites/DESY/")
    assert "tags" not in untagged.words.casefold()
    assert "DESY_DATADISK DATADISK – yes" in untagged.section("endpoints")
    Site.objects.filter(name="DESY").update(tags=["atlas", "lhcone"])
    head = look(client, "/sites/DESY/")
    assert "WAN capacity unknown. Tags: atlas, lhcone. Times are" in head.words
    assert "tags" not in head.section("endpoints").words
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(tags=["disk", "tape"])
    said = look(client, "/sites/DESY/").section("endpoints")
    assert "endpoint label tags software" in said
    assert "DESY_DATADISK DATADISK – yes" in said
    assert "DESY_SCRATCHDISK SCRATCHDISK disk, tape – yes" in said
    assert "Tags:" not in look(client).words


def test_the_summary_has_each_class_and_both_ends(client, small_world):
    Site.objects.filter(name="DESY").update(wan_gbit_s=10)
    transfer(small_world.desy, small_world.ral, 96.0)
    transfer(small_world.desy, small_world.glasgow, None)
    transfer(small_world.glasgow, small_world.ral, 24.0)
    transfer(small_world.glasgow, small_world.desy, 7.5, size="small")
    page = look(client, "/sites/DESY/")
    sent, received = standing(page), standing(page, "destination")
    assert sent["mean in MB/s"] == ["–", "–", "96.0"]
    assert sent["rank in Tier 2"] == ["–", "–", "1st of 2"]
    assert sent["median of peers"] == ["7.50", "–", "24.0"]
    assert sent["ratio to peers"] == ["–", "–", "4.00"]
    assert sent["tests ok, failed"] == ["0, 0", "0, 0", "1, 1"]
    assert sent["success"] == ["–", "–", "50 %"]
    assert sent["fastest / 10 Gbit/s"] == ["–", "–", "7.7 %"]
    assert received["mean in MB/s"] == ["7.50", "–", "–"]
    assert received["last result"] == ["30 min ago", "–", "–"]


def test_what_is_missing_is_a_dash_with_its_reason(client, small_world):
    page = look(client)
    for why in ("no measured cell", "WAN capacity unknown"):
        assert set(page.texts(f'span[title="{why}"]')) == {"–"}
    assert not re.search(r"\b(nan|None)\b", page.words)


def test_both_ends_have_a_picture_over_time_with_notes_and_downtimes(client, small_world):
    Annotation.objects.create(
        site=small_world.ral.site, text="New switch", starts_at=NOW - 30 * HOUR, public=True
    )
    world.downtime(-20 * HOUR, -10 * HOUR, site=small_world.ral.site, reason="new disks")
    send_all(small_world, size="large", rate=2.0)
    transfer(small_world.ral, small_world.glasgow, None)
    sent, received = (graph_objects.Figure(one) for one in figures(look(client)))
    for picture in (received, sent):
        texts = [one.text for one in picture.layout.annotations]
        assert "note: New switch" in texts
        assert "downtime, RAL: new disks" in texts
    assert [list(one.data[-1].y) for one in (received, sent)] == [[], [1]]
    assert received.layout.yaxis.range == sent.layout.yaxis.range


def answer_of(page: Page) -> Part:
    return page.part("#answer")


def send_all(small_world: World, *, size: str, rate: float) -> None:
    """Let the links between RAL and Glasgow be tested every six hours, both ways."""
    with transfers() as some:
        for hours in range(6, 20 * 24, 6):
            for ends in permutations((small_world.ral, small_world.glasgow)):
                some.add(*ends, rate, ago=hours * HOUR, size=size)


@pytest.mark.long
def test_the_answer_says_how_the_other_size_classes_are_and_leads_to_each(client, small_world):
    send_all(small_world, size="small", rate=2.0)
    send_all(small_world, size="medium", rate=3.0)
    answer = answer_of(look(client, "/sites/RAL/?window=24h"))
    assert "Small and medium files: as usual." in answer
    assert answer.link("Small") == "/sites/RAL/?size=small&window=24h"
    assert answer.link("medium") == "/sites/RAL/?size=medium&window=24h"
    ral, glasgow = small_world.ral, small_world.glasgow
    stored_condition(source=ral, destination=glasgow, sizes=["medium"])
    stored_condition("slow", destination=ral, sizes=["medium"])
    said = answer_of(look(client, "/sites/RAL/?window=24h")).words
    news = (
        "Medium files: RAL_DATADISK receives at 0.40× (0.35–0.46) and RAL_DATADISK to "
        "Glasgow_DATADISK fails. Small files: as usual."
    )
    assert news in said
    sentence = client.get("/api/v1/sites/RAL/?window=24h").json()["verdict"]["sentence"]
    assert sentence.endswith(news)
    # The class that is shown is not another one.
    said = answer_of(look(client, "/sites/RAL/?size=medium&window=24h")).words
    assert "Small files: as usual." in said
    assert "Medium files" not in said


def test_a_link_within_the_site_counts_once_among_the_other_classes(client, small_world):
    send_all(small_world, size="small", rate=2.0)
    within = world.endpoint("RAL_SCRATCHDISK", small_world.ral.site)
    stored_condition(source=small_world.ral, destination=within, sizes=["small"])
    said = answer_of(look(client, "/sites/RAL/?window=24h")).words
    assert said.count("fails") == 1
    assert "Small files: RAL_DATADISK to RAL_SCRATCHDISK fails." in said


@pytest.mark.parametrize(
    ("ago", "rate", "said"),
    [(HOUR, 2.0, "Small files: no baselines yet."), (40 * HOUR, 2.0, "")],
)
def test_of_other_classes_it_is_said_what_is_missing_and_nothing_of_those_that_nobody_tests(
    client, small_world, ago, rate, said
):
    transfer(small_world.ral, small_world.glasgow, rate, ago=ago, size="small")
    answer = answer_of(look(client, "/sites/RAL/?window=24h")).words
    assert said in answer
    assert answer.count("files:") == bool(said)


def test_other_classes_without_a_test_or_in_a_downtime_say_so(client, small_world):
    small = SizeClass.objects.get(name="small")
    Schedule.objects.filter(size_class__name="large").update(size_class=small)
    said = answer_of(look(client)).words
    assert "Small files: no tests in this time range." in said
    world.downtime(site=small_world.ral.site)
    said = answer_of(look(client)).words
    assert "Small files: all links are in declared downtimes." in said


def test_a_destination_that_fails_says_so_first_whatever_its_single_links_show(client, db):
    """All 48 tests of 40 sources failed, one or two a link: no link could be judged alone."""
    names = [f"S{number:02}" for number in range(41)]
    sites = Site.objects.bulk_create(Site(name=name, tier=2) for name in names)
    dead, *others = world.endpoints((f"{site.name}_DISK", site) for site in sites).values()
    with transfers() as some:
        for number, other in enumerate(others):
            for hours in range(1 + (number < 8)):
                some.add(other, dead, None, ago=(30 + 2 * hours) * HOUR)
            some.add(dead, other, 10.0)
    stored_condition(destination=dead, since=40 * HOUR)
    assessed_at()
    page = look(client, "/sites/S00/")
    answer = answer_of(page).words
    assert answer.startswith(
        "Changes in results for large files, as of 12:00 UTC S00_DISK fails as d"
    )
    assert "on 40 of 40 links" in answer
    for calm in ("As usual", "as usual", "Similar to its peers", "check which partners"):
        assert calm not in page.words
    assert page.section("as-destination").part("dl.figures").words.count("40 of 40 links failing")
    findings = client.get("/api/v1/sites/S00/").json()["findings"]
    assert [each["title"] for each in findings] == ["S00_DISK fails as destination"]


def test_what_keeps_failing_is_above_all_and_a_peer_comparison_is_no_alarm(client, small_world):
    """Five failures in a row that were blamed on an end say more than anything else."""
    Circuit.objects.create(
        endpoint=small_world.ral, failures=7, since=NOW - HOUR, last_at=NOW, error="refused"
    )
    answer = answer_of(look(client))
    assert answer.words.startswith("7 tests in a row failed because of RAL_DATADISK")
    (changed, peers) = answer.parts("section.verdict")
    assert (changed["class"], peers["class"]) == ("verdict unknown", "verdict")


def test_a_filter_on_how_tests_were_made_does_not_change_what_is_judged(client, small_world):
    stored_condition(source=small_world.ral)
    said = "Changes are calculated from all tests, regardless of the filters."
    assert said not in look(client).words
    filtered = answer_of(look(client, "/sites/RAL/?streams=4")).words
    assert "RAL_DATADISK fails as source" in filtered
    assert said in filtered


def test_before_anything_is_usual_it_shows_rates_the_slowest_first(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 9.0)
    transfer(small_world.ral, small_world.desy, 3.0)
    page = look(client)
    assert "2 of 2 tests succeeded, on 2 of 6 links." in answer_of(page).words
    sent = page.section("as-source").words
    assert "3 links to 2 sites, 2 tested 6.00 MB/s (median link) 0 of 3 links failing" in sent
    assert "usual" not in sent.replace("baselines yet", "").replace("no baseline yet", "")
    rows = partners(page, "source").table()
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("RAL_DATADISK → DESY_DATADISK", "3.00", "1"),
        ("Glasgow", "9.00", "1"),
        ("RAL_DATADISK → DESY_SCRATCHDISK", "–", "0"),
    ]
    (picture,) = figures(page)
    assert picture["layout"]["yaxis"]["ticksuffix"] == " MB/s"
    assert "No test in this time range." in page.section("as-destination")


def test_what_is_not_tested_yet_is_asked_for_like_more_than_ten(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 9.0)
    page = look(client)
    assert len(page.parts("tr.rest")) == 2
    assert "All 6 links" in page.texts("summary")


GLASGOW = "/sites/UKI-SCOTGRID-GLASGOW/"


@pytest.mark.long
def test_a_site_that_changed_says_so_in_each_of_its_parts(client, db):
    changed_site.make()
    page = look(client, GLASGOW)
    the_first_sentence_is_the_verdict(page, look(client, f"{GLASGOW}?size=small"))
    five_figures_stand_at_each_end(page)
    partners_are_listed_worst_against_usual_first_with_state_and_since(page)
    bars_begin_at_zero_and_have_a_tick_at_usual(partners(page, "destination"))
    row_and_column_are_two_strips_over_the_same_partners(page.part("table.strips"))
    Annotation.objects.update(starts_at=changed_site.CHANGED)
    a_note_has_its_before_and_after_in_numbers(look(client, GLASGOW))
    assert not look(client, "/sites/PIC/").parts('[aria-labelledby="effects"]')


def the_first_sentence_is_the_verdict(page: Page, small: Page) -> None:
    answer = answer_of(page).words
    assert answer.startswith(
        "Changes in results for large files, as of 12:00 UTC UKI-SCOTGRID-GLASGOW to DESY-HH "
        "fails With "
        "large files, 10 of 10 tests failed, since 19 Nov 06:00 UTC."
    )
    assert (
        "SARA-MATRIX to UKI-SCOTGRID-GLASGOW runs at 0.40× (0.35–0.46) , with large files, 10 "
        "tests, since 19 Nov 20:15 UTC." in answer
    )
    assert "3 more conditions on links of this site." in answer
    assert "14 of 20 links are as usual." in answer
    assert answer.endswith("Not compared with its peers: too few other links have results. Causes")
    assert page.parts(".verdict.failing")
    assert "No links to or from UKI-SCOTGRID-GLASGOW are tested with small files." in small
    assert "Not compared with its peers: too few other links have results." in small


def five_figures_stand_at_each_end(page: Page) -> None:
    received = page.section("as-destination")
    assert "10 links from 10 sites 0." in received
    assert (
        "ratio to baseline (median link) 2.63 MB/s (median link), baseline 5.12 0 of 10"
    ) in received
    assert "0 of 10 links failing 4 links slower than usual 98 % of" in received
    sent = page.section("as-source")
    assert "1 of 10 links failing 0 links slower than usual, 1 faster" in sent


def partners_are_listed_worst_against_usual_first_with_state_and_since(page: Page) -> None:
    received = partners(page, "destination").table()
    assert received[0][:2] == ["SARA-MATRIX", "1.95"]
    assert received[0][4] == "0.28×"
    assert received[0][7:] == ["slower since 19 Nov 20:15", "42"]
    assert {row[0] for row in received[:4]} == set(changed_site.SLOWED)
    assert [row[7] for row in received[4:]] == ["as usual"] * 6
    first = partners(page, "source").table()[0]
    assert (first[0], first[7]) == ("DESY-HH", "failing since 19 Nov 06:00, 8 tests")
    assert (first[1], first[4]) == ("–", "–")
    assert page.source.count("failing: the last successful tests are more than 30 h old") == 3
    link = partners(page, "destination").part('a[href^="/links/SARA-MATRIX_DATADISK/"]')
    assert link["href"] == "/links/SARA-MATRIX_DATADISK/UKI-SCOTGRID-GLASGOW_DATADISK/"
    assert link["title"].startswith("from SARA-MATRIX_DATADISK to UKI")


def bars_begin_at_zero_and_have_a_tick_at_usual(received: Part) -> None:
    bars = [float(bar["width"]) for bar in received.parts("rect.now")]
    ticks = [float(tick["d"][1:].removesuffix(" 0v10")) for tick in received.parts("path.usual")]
    assert not [bar for bar in received.parts("rect.now") if "x" in bar.attributes]
    assert len(bars) == len(ticks) == 10
    assert max(*bars, *ticks) == 100
    assert all(bar < 0.4 * tick for bar, tick in zip(bars[:4], ticks[:4], strict=True))


def row_and_column_are_two_strips_over_the_same_partners(strips: Part) -> None:
    names = [head["title"] for head in strips.parts("thead th[title]")]
    assert sorted(names, key=str.casefold) == names
    assert len(names) == 10
    rows = strips.parts("tbody tr")
    assert [row.part("th").words for row in rows] == ["sent to", "received from"]
    cells = [dict(zip(names, row.parts("td"), strict=True))["DESY-HH"] for row in rows]
    assert [cell["class"] for cell in cells] == ["failing", "measured"]
    site = "UKI-SCOTGRID-GLASGOW_DATADISK"
    expected = [f"/links/{site}/DESY-HH_DATADISK/", f"/links/DESY-HH_DATADISK/{site}/"]
    assert [*cells[0].links(), *cells[1].links()] == expected
    assert rows[0].texts("td span").count("–") == 1


def a_note_has_its_before_and_after_in_numbers(page: Page) -> None:
    said = page.section("effects").words
    assert "new firmware of the switch 19 Nov 20:15" in said
    assert re.search(r"20:15 0\.[56]\d× \(0\.\d+–0\.\d+\) slower 3\d, 3\d [01]\.\d+× ", said)
    assert re.search(r"\) (not significant|about the same) 3\d, 3\d$", said)


def test_names_are_short_and_whole_under_the_pointer(client, db):
    for name in ("UKI-NORTHGRID-MAN-HEP", "UKI-NORTHGRID-LANCS-HEP", "UKI-NORTHGRID-LIV-HEP"):
        world.endpoint(f"{name}_DATADISK", Site.objects.create(name=name))
    places = Endpoint.objects.order_by("id")
    transfer(places[0], places[1], 5.0)
    transfer(places[1], places[0], None)
    stored_condition(destination=places[0])
    page = look(client, "/sites/UKI-NORTHGRID-MAN-HEP/")
    assert page.part("h1").words.startswith("MAN ")
    assert "UKI-NORTHGRID-MAN-HEP, Tier" in page.words
    assert partners(page, "source").table()[0][0] == "LANCS"
    link = "from UKI-NORTHGRID-MAN-HEP_DATADISK to UKI-NORTHGRID-LANCS-HEP_DATADISK"
    assert partners(page, "source").part(f'[title="{link}"]').words == "LANCS"
    assert "MAN" in answer_of(page).words
    assert "HEP" not in answer_of(page).words


def test_a_table_has_the_same_numbers_and_leads_to_the_link(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 6.0)
    transfer(small_world.ral, small_world.glasgow, 4.0)
    transfer(small_world.glasgow, small_world.ral, 2.0)
    page = look(client, "/sites/RAL/?window=24h")
    table = page.part("table[data-main]")
    rows = {row.part("th")["title"]: row for row in table.parts("tbody tr")}
    glasgow, desy = rows["Glasgow"], rows["DESY"]
    assert "Glasgow 5.00 ± 1.41 2, 0 30 min ago measured 2.00 1, 0" in glasgow
    assert glasgow.cells()[-1] == "2.50"  # sends 2.5 times as fast as it receives
    assert "/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h" in glasgow.links()
    assert "/?window=24h&source_site=RAL&destination_site=DESY" in desy.links()


def test_where_a_partner_has_several_links_both_ends_are_named(client, small_world):
    transfer(small_world.desy, small_world.ral, 6.0)
    names = {row[0] for row in partners(look(client, "/sites/DESY/"), "source").table()}
    assert "DESY_SCRATCHDISK → RAL_DATADISK" in names
    assert "Glasgow" in {row[0] for row in partners(look(client), "source").table()}


def test_errors_are_grouped_and_lead_to_the_newest(client, small_world):
    for _ in range(3):
        made = transfer(small_world.ral, small_world.glasgow, None)
    transfer(small_world.glasgow, small_world.desy, None)
    page = look(client)
    errors = page.section("errors")
    assert "3 failed tests" in errors
    assert "3 1 at the destination 503 Service Unavailable 30 min ago" in errors
    newest = Transfer.objects.filter(source=small_world.ral).order_by("-started_at", "id").first()
    assert f"/transfers/{newest.id}/" in page.links() or f"/transfers/{made.id}/" in page.links()


def test_the_plan_of_a_day_is_said(client, small_world):
    Site.objects.filter(name="RAL").update(wan_gbit_s=1)
    Endpoint.objects.filter(name="RAL_DATADISK").update(budget_bytes_per_day=144 * 10**9)
    Schedule.objects.filter(source=small_world.ral).update(
        skipped_because="budget", skipped_since=NOW - HOUR
    )
    transfer(small_world.ral, small_world.glasgow, 10.0)
    page = look(client)
    said = page.section("planned")
    assert (
        "outbound 72 tests , 144 GB (1.67 MB/s, 1.3 % of the WAN capacity, about 0.17 "
        "concurrent tests)"
    ) in said
    assert (
        "Peak outbound: 2 concurrent tests, 20.0 MB/s, 16 % of the WAN capacity. Peak inbound: "
        "2 concurrent tests. For" in said
    )
    assert "3 due tests are waiting: budget, the longest since 20 Nov 11:00 UTC." in said
    assert "everything large 3 72 144 GB 3 72 144 GB" in said
    assert "144 tests, 288 GB 144 GB 200 %: over budget" in page.section("endpoints")


def test_an_end_without_a_plan_says_so(client, small_world):
    Schedule.objects.filter(source=small_world.ral).delete()
    world.Mesh.objects.create(name="newer")  # schedules follow the registry
    said = look(client).section("planned")
    assert "outbound no tests; inbound 72 tests , 144 GB (1.67 MB/s). Peak inbound" in said


def test_links_that_failed_a_time_or_two_come_after_those_that_are_slower(client, small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    with transfers() as some:
        for day in range(8, 28):
            some.add(ral, desy, 8.0, ago=24 * day * HOUR)
        for number in range(3):
            some.add(ral, desy, 2.0, ago=(4 - number) * HOUR / 4)
        some.add(ral, scratch, 5.0)
        some.add(ral, glasgow, None)
    stored_condition("slow", source=ral, destination=desy, baseline=8e6)
    shown = [row[7].split(" since")[0] for row in partners(look(client), "source").table()]
    assert shown == ["slower", "failed", "no baseline yet"]


def test_paper_has_the_worst_of_many_and_says_how_many_more(client, small_world):
    with transfers() as some:
        for number in range(45):
            site = Site.objects.create(name=f"site-{number:02d}")
            some.add(small_world.ral, world.endpoint(f"place-{number:02d}", site), number + 1.0)
    sent = look(client).section("as-source")
    assert (len(sent.parts("tbody tr")), len(sent.parts("tbody tr.rest"))) == (48, 38)
    assert "38 more links are listed on the web page and in its CSV file." in sent.words
    assert len(responses.csv_rows(client, look(client).link("CSV"))) >= 48


def test_endpoints_are_listed_with_their_caps_and_what_they_are(client, small_world):
    Endpoint.objects.filter(name="DESY_SCRATCHDISK").update(
        retired_at=NOW - HOUR, software="dCache 9", simulated=True, inbound_cap=7
    )
    said = look(client, "/sites/DESY/").section("endpoints")
    assert "DESY_DATADISK DATADISK – yes 0 / 2 0 / 2" in said
    assert "DESY_SCRATCHDISK SCRATCHDISK dCache 9 retired at 20 Nov 11:00 UTC" in said
    assert "simulated 0 / 2 0 / 7" in said


def test_downtimes_now_and_soon_are_said(client, small_world):
    def down(start: timedelta, reason: str, **of: object) -> None:
        world.downtime(start, start + HOUR, reason=reason, **of)

    down(-HOUR / 2, "moving racks", site=small_world.desy.site)
    down(24 * HOUR, "new kernel", endpoint=small_world.scratch)
    down(24 * 30 * HOUR, "far away", endpoint=small_world.scratch)
    down(-24 * HOUR, "long over", endpoint=small_world.scratch)
    down(-HOUR / 2, "of another site", site=small_world.ral.site)
    page = look(client, "/sites/DESY/")
    assert "In declared downtime now: moving racks" in page
    assert "Declared downtime starts soon, DESY_SCRATCHDISK: new kernel" in page
    assert not re.search("far away|of another site", page.source)
    assert not [notice for notice in page.texts("p.notice") if "long over" in notice]


def test_free_text_is_text(client, small_world):
    Site.objects.filter(name="DESY").update(cloud=MARKUP[:40])
    Endpoint.objects.filter(name="DESY_DATADISK").update(label=MARKUP[:40], software=MARKUP)
    world.downtime(0 * HOUR, site=small_world.desy.site, reason=MARKUP)
    Annotation.objects.create(site=small_world.desy.site, text=MARKUP, starts_at=NOW - HOUR)
    made = transfer(small_world.ral, small_world.desy, None)
    Transfer.objects.filter(id=made.id).update(error=MARKUP)
    page = look(client, "/sites/DESY/")
    assert "<script>alert" not in page.source
    assert page.source.count("&lt;script&gt;alert") >= 6
    for path in ("/sites/", "/search/?q=DESY"):
        # Of a search, what is listed as one types: the whole name leads to the site.
        part = client.get(path, headers={"HX-Request": "true"}).content.decode()
        assert "<script>alert" not in part
        assert "&lt;/script&gt;&lt;script&gt;alert" in part


def test_a_site_that_is_not_registered_is_a_404_that_says_so(client, db):
    response = client.get("/sites/Nowhere/")
    assert response.status_code == 404
    assert "No site “Nowhere” is registered." in response.content.decode()
    assert client.get("/sites/%3Cscript%3Ealert(1)/").status_code == 404
    assert "<script>alert" not in client.get("/sites/%3Cscript%3Ealert(1)/").content.decode()


@pytest.mark.parametrize("name", ["stat", "rows", "source_cloud", "endpoint", "colour", "search"])
def test_what_has_no_meaning_for_one_site_is_ignored(client, small_world, name):
    response = client.get(f"/sites/RAL/?{name}=mean")
    assert response.status_code == 200
    assert response.context["ignored"]["names"] == (name,)


def test_one_view_has_one_url_and_controls_lead_to_the_others(client, small_world):
    response = client.get("/sites/RAL/?window=7d&size=large&streams=4")
    assert response["Location"] == "/sites/RAL/?streams=4"
    page = look(client, "/sites/RAL/?streams=4")
    assert "/sites/RAL/?size=small&streams=4" in page.links()
    assert "/sites/RAL/?window=24h&streams=4" in page.links()
    assert page.links("a.chip") == ["/sites/RAL/"]
    for path in ("/?site=RAL&streams=4", "/table/?site=RAL&streams=4"):
        assert path in page.links()
        assert client.get(path).status_code == 200, "it is the shortest"
    assert "/api/v1/sites/RAL/?streams=4" in page.links()


def test_empty_is_explained(client, small_world):
    Site.objects.create(name="New")
    page = look(client, "/sites/New/")
    assert "This site has no endpoint in use." in page.words
    assert "/sites/New/add-endpoint/" in page.links()
    assert (
        "No results for this site in this time range. Tests on links of this site: 0 running, "
        "0 queued."
    ) in look(client).words
    transfer(small_world.ral, small_world.glasgow, 5.0, size="small")
    assert "No results for large files in this time range." in look(client).words
    Schedule.objects.all().delete()
    page = look(client, "/sites/DESY/")
    assert "No tests are scheduled on links of this site." in page.words
    assert "/sites/DESY/?window=90d" in page.links()


def test_simulated_results_are_called_so(client, small_world):
    assert "Simulated." not in look(client).source
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    assert "Simulated." in look(client)


def test_notes_on_the_site_are_shown(client, small_world):
    Annotation.objects.create(
        site=small_world.ral.site, text="New switch", starts_at=NOW - HOUR, public=True
    )
    assert "New switch" in look(client)
    assert "New switch" not in look(client, "/sites/DESY/").source


@pytest.mark.long
def test_the_number_of_queries_is_the_same_for_little_and_for_much(client, small_world):
    def queries() -> int:
        seen[:] = statements(look, client)
        return len(seen)

    seen: list[str] = []
    transfer(small_world.ral, small_world.glasgow, 5.0)
    transfer(small_world.ral, small_world.glasgow, None)
    queries()
    little = queries()
    with transfers() as some:
        for number in range(40):
            ends = small_world.endpoints[number % 4], small_world.endpoints[(number + 1) % 4]
            some.add(*ends, None if number % 3 else 5.0, ago=number * HOUR / 4)
    queries()  # how links stand is kept until results change
    # Of each class the version of how its links stand, and the results of the links over time; the
    # marks of conditions, those of the site, and when they were assessed.
    # Five more for the diagnoses of links that fail.
    assert (little, queries()) == (35, 40), seen
    sealing.seal(NOW)
    queries()
    assert queries() == 40, seen
