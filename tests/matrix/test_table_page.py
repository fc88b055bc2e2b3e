"""The table page without a script: its numbers, search, filters, order, pages and words."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers.matrix import grid
from matrix.answers.table import column_filters, link_table
from matrix.answers.table.link_table import COMPARED, SURE, LinkTable, trouble_of
from matrix.pages.table.page import LOOK_WORDS, about_results
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import LOOKS, STATE_WORDS, STATES
from sonar.models import Assessment, Condition, Endpoint, Mesh, Schedule, Site, SizeClass
from sonar.results import sealing
from tests.conditions import stored_condition
from tests.html import Page
from tests.matrix import many_links, responses, sent, world
from tests.matrix.world import HOUR, NOW, Transfers, World, transfer, transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
SIZES = ("small", "medium", "large")
TYPES = Condition.Type
THIN = "\u202f"
MARKUP = "</script><script>alert(1)</script>"


def look(client: Client, text: str = "") -> Page:
    return responses.page(client, f"/table/{text}", follow=True)


def rows(page: Page) -> list[list[str]]:
    """Return the words of the cells of each row of the table."""
    return page.table("table.links tbody tr")


def heads(page: Page) -> str:
    return page.part("table.links thead").words


def links_of(page: Page) -> list[tuple[str, str]]:
    """Return the source and the destination of each row."""
    return [
        (row[0].split()[0], next(text for text in row if text.startswith("→ ")).split()[1])
        for row in rows(page)
    ]


def test_a_row_has_the_link_and_its_numbers_under_heads_by_size_class(client, small_world):
    for rate in (4.0, 5.0, 6.0, None):
        transfer(small_world.ral, small_world.glasgow, rate)
    transfer(small_world.ral, small_world.glasgow, 1.5, size="small")
    page = look(client, "?source.has=RAL&destination.has=Glasgow&constant=1")
    assert rows(page) == [
        [
            *("RAL_DATADISK to Glasgow_DATADISK", "UK", "1", "→ Glasgow_DATADISK", "UK", "2", "5"),
            *("unknown", "5.00 ± 1.00", "5.00", "–", "–", "2 GB", "3 + 1 failed"),
            *("1.50", "20 MB", "1"),
            *("–", "–", "–"),
        ]
    ]
    groups = look(client, "?constant=1").parts('table.links th[scope="colgroup"]')
    assert [(group["colspan"], group.words) for group in groups] == [
        ("3", "from (source)"),
        ("3", "to (destination)"),
        ("7", "large files"),
        ("3", "small files"),
        ("3", "medium files"),
    ]
    assert "large files MB/s" in heads(page)
    assert "small files state" not in heads(page)
    assert "small files state" in heads(look(client, "?size=small"))


def test_the_page_shows_what_the_link_table_has(client, small_world):
    for number, (source, destination) in enumerate(
        [(small_world.ral, small_world.desy), (small_world.desy, small_world.ral)] * 2
    ):
        transfer(source, destination, 3.0 + number, size=("small", "large")[number // 2])
    table = link_table.build(MatrixQuery(), NOW)
    table = table.taken(table.order("large.mean_mb_s", descending=True))
    page = look(client, "?ordering=-large.mean_mb_s&constant=1")
    ends = table.column("source").tolist(), table.column("destination").tolist()
    assert links_of(page) == list(zip(*ends, strict=True))
    shown = [row[8].partition(" ")[0] for row in rows(page)]
    rates = table.column("large.mean_mb_s").tolist()
    assert shown == [f"{rate:.2f}" if rate == rate else "–" for rate in rates]


def test_what_is_older_than_its_mesh_promises_is_called_stale(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=1.9 * HOUR)
    transfer(small_world.ral, small_world.desy, 7.0, ago=2.1 * HOUR)
    shown = {row[3]: row[7:9] for row in rows(look(client, "?large.ok.min=1&constant=1"))}
    assert shown == {
        "→ Glasgow_DATADISK": ["unknown", "5.00"],
        "→ DESY_DATADISK": ["stale", "7.00"],
    }
    page = look(client, "?size=small&large.ok.min=1&constant=1")
    beside = {row[3]: row[-3] for row in rows(page)}
    assert beside == {"→ Glasgow_DATADISK": "5.00", "→ DESY_DATADISK": "stale 7.00"}


def test_what_failed_since_it_last_succeeded_says_when_it_did(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=HOUR)
    transfer(small_world.ral, small_world.glasgow, None, ago=HOUR / 2)
    assert (
        "last result 30 min ago, 20 Nov 11:30:30 UTC, failed; "
        "last success 1 h ago, 20 Nov 11:00:30 UTC"
    ) in look(client).titles()
    assert len(rows(look(client, "?max_age=45m"))) == 0
    assert len(rows(look(client, "?large.age.max=2h"))) == 1


def test_a_link_in_a_declared_downtime_is_called_down_as_in_the_matrix(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    world.downtime(endpoint=small_world.ral)
    (row,) = rows(look(client, "?large.ok.min=1&constant=1"))
    assert row[7:9] == ["down", "5.00"]
    said = "no result in this time range; down: an endpoint is in a declared downtime"
    assert said in look(client).titles()


def test_a_failed_link_is_called_so_and_missing_numbers_say_why(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    (row,) = rows(look(client, "?large.failed.min=1&constant=1"))
    assert row[7:14] == ["failed", "–", "–", "–", "–", "–", "0 + 1 failed"]
    (row,) = rows(look(client, "?size=small&large.failed.min=1&constant=1"))
    assert row[-3:] == ["failed –", "–", "0 + 1 failed"]
    page = look(client).words
    assert "Every test in this time range failed. 1 test ran and none succeeded." in page
    page = look(client)
    cells = page.parts("table.links tbody td[title]")
    titles = " ".join(cell["title"] for cell in cells)
    assert "not tested with small files, and no result in this time range" in titles
    assert page.parts('td[title="no result in this time range"]')
    last = "the only result failed; last result 30 min ago, 20 Nov 11:30:30 UTC"
    assert page.parts(f'td[title="{last}"]')
    assert not re.search(r"\b(nan|None)\b", page.part("table.links tbody").words)


def test_links_and_windows_lead_on_with_what_was_asked(client, small_world):
    page = look(client, "?window=24h&source_site=RAL&streams=1")
    assert "/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h&streams=1" in page.links()
    assert "RAL_DATADISK → Glasgow_DATADISK, site RAL" in page.titles()
    page = look(client, "?search=ral&per_page=25&page=2")
    assert "/table/?window=24h&search=ral&per_page=25" in page.links()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", "Showing 1 to 12 of 12 links"),
        ("?search=glasgow+de", "Showing 1 to 4 of 4 links (filtered from 12)"),
        ("?search=t1&source_site=RAL", "Showing 1 to 3 of 3 links"),
        ("?destination.cloud.has=de&source.tier.is=1", "Showing 1 to 2 of 2 links (filtered from"),
        ("?source.has=ral&destination.has=glas", "Showing 1 to 1 of 1 link (filtered from 12)"),
        ("?priority.min=6", "Showing no links (filtered from 12)"),
        ("?per_page=25&page=9", "Showing 1 to 12 of 12 links"),
    ],
)
def test_it_says_which_of_how_many_links_are_shown(client, small_world, text: str, count: int):
    page = look(client, text)
    assert count in page.words
    assert len(rows(page)) == int(re.search(r"of (\d+)|$", count)[1] or 0)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    """The table has 1,560 links."""
    have_links_of(40, monkeypatch)


def have_links_of(endpoints: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = many_links.table(endpoints)
    monkeypatch.setattr(link_table, "build", lambda *asked, **also: table)


@pytest.mark.long
def test_the_pages_of_the_table_have_each_link_once(client, db, monkeypatch):
    have_links_of(16, monkeypatch)
    seen = []
    for number in range(1, 4):
        turned = f"page={number}&" if number > 1 else ""
        shown = links_of(look(client, f"?ordering=source&{turned}per_page=100"))
        assert len(shown) == (100 if number < 3 else 40)
        seen += shown
    assert len(set(seen)) == 240
    whole = [tuple(f"{end}_DATADISK".casefold() for end in link) for link in seen]
    assert whole == sorted(whole)


def test_what_all_names_end_with_is_said_once(client, many):
    page = look(client, "?ordering=source&per_page=25")
    assert "from (source, all …_DATADISK)" in page
    assert "to (destination, all …_DATADISK)" in page
    assert {end for link in links_of(page) for end in link} <= {f"SITE-{n}" for n in range(1, 41)}
    assert "SITE-10_DATADISK → SITE-11_DATADISK, site SITE-10" in page.titles()


def test_pages_are_turned_up_to_the_last_with_everything_else_kept(client, many):
    page = look(client, "?window=24h&search=site&ordering=-large.ok&page=3&per_page=100")
    base, pager = "/table/?window=24h&search=site&ordering=-large.ok", page.part("nav.pager")
    assert pager.links('[rel="prev"]') == [f"{base}&page=2&per_page=100"]
    assert pager.links('[rel="next"]') == [f"{base}&page=4&per_page=100"]
    assert pager.links('[aria-label="page 1"]') == [f"{base}&per_page=100"]
    assert page.part("#search")["value"] == "site"
    page = look(client, "?page=99")
    assert f"Showing 1{THIN}551 to 1{THIN}560 of 1{THIN}560 links" in page.source
    assert page.part('span[aria-current="page"]').words == "32"


def test_heads_sort_and_say_how_it_is_sorted(client, small_world):
    page = look(client, "?ordering=-large.mean_mb_s&search=ral")
    sorted_by = page.part("th[aria-sort]")
    assert sorted_by["aria-sort"] == "descending"
    assert sorted_by.links()[0] == "/table/?search=ral&ordering=large.mean_mb_s"
    assert len(page.parts(".sorted")) == 1
    # Names from A on, numbers from the greatest on.
    assert "/table/?search=ral&ordering=source" in page.links()
    assert "/table/?search=ral&ordering=-small.failed" in page.links()
    assert page.link("Show problems first") == "/table/?search=ral"
    assert not look(client).parts("[aria-sort]")
    by_name = look(client, "?ordering=source")
    assert by_name.part('[aria-sort="ascending"]').links()[0] == "/table/?ordering=-source"


def test_the_form_carries_everything_that_has_no_field_in_it(client, small_world):
    text = "?window=24h&cloud=UK&ordering=-priority&source.country.has=GB&large.age.max=6h"
    form = look(client, f"{text}&large.ok.min=1&per_page=100").part("form#listing")
    assert form.hidden() == [
        ("window", "24h"),
        ("cloud", "UK"),
        ("ordering", "-priority"),
        ("source.country.has", "GB"),
        ("large.ok.min", "1"),
        ("large.age.max", "6h"),
    ]
    assert form.field("per_page").texts("option[selected]") == ["100"]


def test_what_is_set_can_be_dropped_one_by_one(client, small_world):
    page = look(client, "?cloud=UK&search=ral&source.tier.is=1&large.ok.max=3")
    chips = [(chip["href"], chip.words.removesuffix(" ×")) for chip in page.parts("a.chip")]
    assert chips == [
        ("/table/?search=ral&source.tier.is=1&large.ok.max=3", "only from or to cloud UK"),
        ("/table/?cloud=UK&source.tier.is=1&large.ok.max=3", "search “ral”: site RAL"),
        ("/table/?cloud=UK&search=ral&large.ok.max=3", "from tier 1"),
        ("/table/?cloud=UK&search=ral&source.tier.is=1", "large successful tests at most 3"),
    ]


@pytest.mark.parametrize(
    ("asked", "shorter"),
    [
        ("/table/?search=&source.has=&ordering=-trouble&per_page=50", "/table/"),
        ("/table/?page=1&window=7d&large.ok.min=2", "/table/?large.ok.min=2"),
        ("/table/?min_mb_s=5", "/table/?large.mean_mb_s.min=5"),
        (
            "/table/?ordering=priority&search=a&window=1h",
            "/table/?window=1h&search=a&ordering=priority",
        ),
    ],
)
def test_one_view_has_one_url(client, small_world, asked: str, shorter: str):
    response = client.get(asked)
    assert (response.status_code, response["Location"]) == (302, shorter)
    assert client.get(shorter).status_code == 200


def test_a_bad_parameter_is_a_400_that_says_what_is_allowed(client, db):
    response = client.get("/table/?per_page=7&large.ok.min=<b>")
    page = response.content.decode()
    assert response.status_code == 400
    assert "per_page “7” is not known: use 25, 50, 100, 250 or 1000." in page
    assert "large.ok.min “&lt;b&gt;” is not a number" in page
    response = client.get("/table/?only=broken")
    assert response.status_code == 400
    assert "only “broken” is not a state: use measured, failing, failed" in unescape(
        response.content.decode()
    )


def test_no_endpoints_yet_says_what_to_do(client, db):
    page = look(client)
    assert "No endpoints are registered yet." in page
    assert "/sites/add/" in page.links()
    assert "<table" not in page.source


def test_endpoints_without_a_mesh_say_so(client, small_world):
    Schedule.objects.all().delete()
    Mesh.objects.create(name="newer")  # schedules follow the registry
    page = look(client)
    assert "No link is tested by a mesh. 4 endpoints are registered" in page.words
    assert "/meshes/" in page.links()


def test_filters_and_a_search_that_find_nothing_can_be_dropped(client, small_world):
    page = look(client, "?window=24h&cloud=FR&search=ral")
    assert "No link matches these filters." in page
    assert page.link("Clear the filters") == "/table/?window=24h&search=ral"
    page = look(client, "?cloud=UK&search=nothing&large.ok.min=3&ordering=priority")
    assert "No link matches the search and the column filters." in page
    clear = page.part('p.notice a[href="/table/?cloud=UK&ordering=priority"]')
    assert clear.words.startswith("Clear the search")
    assert page.link("Clear all filters") == "/table/?ordering=priority"
    assert page.parts("#search")


def test_a_window_without_results_says_when_the_last_was(client, small_world):
    assert "Sonar has no results yet." in look(client)
    assert "Every test in this time range failed." not in look(client).source
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=3 * HOUR)
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=4 * HOUR, size="small")
    page = look(client, "?window=1h")
    assert (
        "No results in this time range. The last result was 3 h ago, at 20 Nov 09:00 UTC."
    ) in page.words
    assert page.link("Show the last 90 days") == "/table/?window=90d"
    assert "No results" not in look(client, "?window=6h").source


def test_simulated_and_retired_endpoints_are_marked_unless_all_are_simulated(client, small_world):
    assert "Simulated" not in look(client).source
    transfer(small_world.desy, small_world.glasgow, 1.0)
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    Endpoint.objects.filter(name="DESY_DATADISK").update(retired_at=NOW)
    page = look(client)
    assert "Simulated" in page
    shown = {row[0] for row in rows(page)}
    assert "RAL_DATADISK to Glasgow_DATADISK simulated" in shown
    assert "DESY_DATADISK to Glasgow_DATADISK retired" in shown
    assert "→ RAL_DATADISK simulated" in {row[3] for row in rows(page)}
    Endpoint.objects.update(simulated=True)
    page = look(client)
    assert "Simulated" in page
    assert "simulated</small>" not in page.source


def test_free_text_shows_as_text(client, small_world):
    Site.objects.filter(name="RAL").update(cloud=MARKUP)
    Endpoint.objects.filter(name="RAL_DATADISK").update(label=MARKUP)
    for text in ("", f"?search={MARKUP}", f"?cloud={MARKUP}", f"?source.cloud.has={MARKUP}"):
        page = look(client, text)
        assert "<script>alert" not in page.source
        assert MARKUP in unescape(page.source)
    assert len(rows(look(client, f"?source.cloud.has={MARKUP}"))) == 3


def test_data_of_the_same_view_is_linked(client, small_world):
    page = look(client, "?window=24h&cloud=UK&stat=max&search=ra&ordering=-large.ok&per_page=25")
    asked = "/api/v1/links/?window=24h&cloud=UK&search=ra&ordering=-large.ok"
    assert {asked, f"{asked}&format=csv"} <= set(page.links())
    assert "/api/v1/links/?ordering=-trouble&format=csv" in look(client).links()
    assert "/api/v1/links/?format=csv" in look(client, "?ordering=source").links()


def test_an_unchanged_page_is_a_304(client, small_world):
    etag = client.get("/table/")["ETag"]
    assert client.get("/table/", headers={"if-none-match": etag}).status_code == 304
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert client.get("/table/", headers={"if-none-match": etag}).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world):
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            look(client, "?search=disk&ordering=-large.mean_mb_s")
        return len(captured)

    transfer(small_world.ral, small_world.glasgow, 1.0)
    # The page's classes and the form's; what has changed; what is queued, what
    # is overdue, and the ways of measuring; versions and classes, places and three plans; for
    # each class what stands there; raw rows of one; who is down. And how links stand:
    # for each class its versions, and three windows, the rows of one; and the marks of conditions.
    # Then the conditions of the links shown, and when they were assessed.
    of_standings, of_conditions = 3 * (1 + 3) + 1, 2
    assert statements() == 2 + 1 + 3 + 2 + 4 + 3 + 1 + 1 + of_standings + of_conditions
    assert statements() == 2 + 1 + 3 + of_conditions
    sites = [Site.objects.create(name=f"SITE-{number}") for number in range(30)]
    places = [world.endpoint(f"{site.name}_DATADISK", site) for site in sites]
    with transfers() as some:
        for place in places:
            some.add(small_world.ral, place, 5.0)
            some.add(small_world.ral, place, 5.0, ago=30 * HOUR)
    # Rows of yesterday come with the others.
    assert statements() == 2 + 1 + 3 + 2 + 4 + 3 + 1 + 1 + of_standings + of_conditions
    sealing.seal(NOW)
    # The columns of the segments, once, and raw rows of this hour; of how links stand, too, where
    # results are.
    assert statements() == 2 + 1 + 3 + 2 + 3 + 2 + 1 + 3 + 2 + 1 + 1 + of_conditions
    assert statements() == 2 + 1 + 3 + of_conditions


def test_notices_cost_a_query_for_each_class_only_where_there_is_no_result(client, small_world):
    table = link_table.build(MatrixQuery(), NOW)
    with CaptureQueriesContext(connection) as captured:
        assert about_results(table, NOW, "/") is not None
    assert len(captured) == 3
    with CaptureQueriesContext(connection) as captured:
        assert about_results(many_links.table(3), NOW, "/") is None
    assert len(captured) == 0


def test_tests_that_nobody_takes_are_said(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert "No worker is running tests." not in look(client).source
    sent.probe(small_world.ral, small_world.desy, HOUR)
    page = look(client)
    assert "No worker is running tests." in page
    assert len(rows(page)) == 12


def test_results_that_were_measured_in_several_ways_are_not_mixed_unsaid(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    assert "mix tests with" not in look(client).source
    transfer(small_world.ral, small_world.glasgow, 9.0, made=world.profile(streams=4))
    page = look(client, "?search=ral")
    assert "These numbers mix tests with 1 and 4 streams." in page
    assert "/table/?streams=4&search=ral" in page.links()
    assert "mix tests with" not in look(client, "?streams=4").source


def test_ways_of_another_link_or_class_are_not_said_to_be_mixed(client, small_world):
    ral, glasgow, desy, _ = small_world.endpoints
    transfer(ral, glasgow, 5.0, made=world.profile(mode="pull"))
    transfer(ral, glasgow, 5.0, made=world.profile(mode="push"), ago=72 * HOUR, size="small")
    transfer(desy, glasgow, 5.0, made=world.profile(mode="push"), size="small")
    assert "with mode" not in look(client).source
    transfer(desy, glasgow, 5.0, made=world.profile(mode="pull"), size="small", ago=72 * HOUR)
    assert "1 of 3 rates mix tests with mode pull and push." in look(client)
    assert "with mode" not in look(client, "?window=24h").source
    assert "with mode" not in look(client, "?source_site=RAL").source


@pytest.mark.parametrize(
    "text", ["?window=24h", "?from=2026-11-19T00:00:00Z&to=2026-11-19T12:00:00Z"]
)
def test_the_age_of_a_last_result_is_that_of_the_other_pages(client, small_world, text: str):
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=timedelta(hours=26, minutes=59))
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=timedelta(hours=5, minutes=59))
    said = look(client, text).titles()
    (age,) = re.findall(r"n = 1\); last result ([^,]*), (?:[0-9]+ Nov [0-9:]*) UTC", said)
    for other in ("/links/RAL_DATADISK/Glasgow_DATADISK/", "/sites/RAL/"):
        answer = client.get(f"{other}{text}").content.decode()
        assert f'UTC">{age}</span>' in answer, other


# How links are now.


def in_trouble(made: World) -> None:
    """RAL to Glasgow fails since two hours, RAL to DESY is at a quarter of its usual rate."""
    with transfers() as some:
        for place in (made.glasgow, made.desy):
            as_usual(some, made.ral, place)
        some.add(made.ral, made.glasgow, 8.0, ago=3 * HOUR)
        for number in range(3):
            some.add(made.ral, made.glasgow, None, ago=(4 - number) * HOUR / 2)
            some.add(made.ral, made.desy, 2.0, ago=(4 - number) * HOUR / 4)
        some.add(made.desy, made.ral, 5.0)
    stored_condition(source=made.ral, destination=made.glasgow, since=2 * HOUR, baseline=8e6)
    slow = {"source": made.ral, "destination": made.desy, "since": HOUR, "baseline": 8e6}
    stored_condition(TYPES.SLOW, **slow)


def as_usual(some: Transfers, source: Endpoint, destination: Endpoint) -> None:
    """Let a link have 8 MB/s in the weeks before the window."""
    for day in range(8, 28):
        some.add(source, destination, 8.0, ago=24 * day * HOUR)


def test_a_link_says_how_it_is_since_when_and_by_what_factor(client, small_world):
    in_trouble(small_world)
    page = look(client, "?source.has=RAL&large.ok.min=1&constant=1")
    shown = {row[3].removeprefix("→ "): row[7:14] for row in rows(page)}
    assert shown == {
        "Glasgow_DATADISK": [
            "failing since 20 Nov 10:00 UTC",
            *("8.00", "–", "8.00", "–", "2 GB", "1 + 3 failed"),
        ],
        "DESY_DATADISK": [
            "slower since 20 Nov 11:00 UTC",
            "2.00 ± 0",
            "2.00",
            "8.00",
            "0.25×",
            "2 GB",
            "3",
        ],
    }
    assert (
        page.source.count('title="failing: the last successful tests are more than 2 h old"') == 2
    )
    (failing,) = page.parts("td.failing.words")
    assert failing["title"] == (
        "RAL_DATADISK to Glasgow_DATADISK has been failing since 20 Nov 10:00 UTC, with large "
        f"files, 10 of 10 tests failed. {STATE_WORDS['failing']}"
    )
    assert "states not assessed yet" in page.words


def test_what_is_not_confirmed_is_called_so_and_is_neither_counted_nor_as_usual(
    client, small_world
):
    made = small_world
    with transfers() as some:
        for place in (made.glasgow, made.desy):
            as_usual(some, made.ral, place)
            for number in range(3):
                some.add(made.ral, place, 2.0 if place == made.desy else 8.0, ago=number * HOUR)
    stored_condition(TYPES.SLOW, source=made.ral, destination=made.desy, confirmed=False)
    for size_class in SizeClass.objects.all():
        Assessment.objects.create(size_class=size_class, assessed_at=NOW)
    page = look(client, "?large.ok.min=1&constant=1")
    assert [row[7] for row in rows(page)] == ["unknown unconfirmed: slow", "as usual"]
    title = "RAL_DATADISK to DESY_DATADISK has been slow since 20 Nov 06:00 UTC, at 0.40× "
    assert page.parts(
        f'[title="{title}(0.35–0.46) of the baseline, with large files, 10 tests, unconfirmed"]'
    )
    assert client.get("/table/").context["looks"] == []
    assert "states as of 12:00 UTC" in page.words
    # The filters do not change what conditions say.
    assert "States are based on all tests" not in page
    assert "States are based on all tests" in look(client, "?streams=!4")


def test_too_few_tests_are_said_to_be_too_few(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    (row,) = rows(look(client, "?large.ok.min=1&constant=1"))
    assert row[7] == "unknown"
    assert (
        "too few tests: needs 5 successful tests in the 28 days before the time range"
        in look(client).titles()
    )


def test_links_that_failed_a_time_or_two_come_after_those_that_are_slower(client, small_world):
    in_trouble(small_world)
    _, glasgow, desy, scratch = small_world.endpoints
    transfer(glasgow, desy, None)
    for hours in (1, 2):
        transfer(scratch, desy, None, ago=hours * HOUR)
    assert links_of(look(client))[:4] == [
        ("RAL_DATADISK", "Glasgow_DATADISK"),
        ("RAL_DATADISK", "DESY_DATADISK"),
        ("DESY_SCRATCHDISK", "DESY_DATADISK"),
        ("Glasgow_DATADISK", "DESY_DATADISK"),
    ]


def test_what_is_not_as_usual_is_counted_and_chosen_by_click_or_ratio(client, small_world):
    in_trouble(small_world)
    looks = client.get("/table/").context["looks"]
    assert [(name, count, choice.url) for name, count, choice in looks] == [
        ("failing", 1, "/table/?large.state.is=failing"),
        ("slower", 1, "/table/?large.state.is=slower"),
    ]
    page = look(client, "?large.state.is=failing")
    assert links_of(page) == [("RAL_DATADISK", "Glasgow_DATADISK")]
    assert "large failing" in page.words
    (first, *_) = client.get("/table/?large.state.is=failing").context["looks"]
    assert (first[0], first[2].chosen, first[2].url) == ("failing", True, "/table/")
    assert links_of(look(client, "?large.ratio.max=0.5")) == [("RAL_DATADISK", "DESY_DATADISK")]
    assert len(rows(look(client, "?large.usual_mb_s.min=8"))) == 2


def test_table_and_matrix_agree_on_every_look(client, small_world):
    in_trouble(small_world)
    ral, glasgow, desy, scratch = small_world.endpoints
    with transfers() as some:
        for source in (glasgow, scratch):
            as_usual(some, source, ral)
        for number in range(3):
            some.add(glasgow, ral, 80.0, ago=(4 - number) * HOUR / 4)
            # Slower, in part failing, and failing, at an endpoint that is down.
            some.add(scratch, ral, 2.0, ago=(4 - number) * HOUR / 4)
            some.add(scratch, desy, None, ago=(4 - number) * HOUR / 4)
        for source in (scratch, desy):
            some.add(source, glasgow, 8.0)
            some.add(source, glasgow, None, ago=HOUR)
        some.add(glasgow, desy, None)
    stored_condition(TYPES.FAST, source=glasgow, destination=ral)
    stored_condition(TYPES.SLOW, source=scratch, destination=ral)
    stored_condition(source=scratch, destination=desy)
    stored_condition(TYPES.SILENT, source=glasgow, destination=desy)
    world.downtime(endpoint=scratch)
    Schedule.objects.filter(source=desy, destination=ral).update(every_seconds=10)
    cells = grid.build(MatrixQuery(), NOW).cells
    marked = {name: int(cells.of_look(name).sum()) for name in LOOKS}
    assert marked == {
        "measured": 3,
        "failing": 1,
        "failed": 1,
        "stale": 1,
        "untested": 0,
        "down": 6,
        "usual": 0,
        "slower": 1,
        "faster": 1,
        "silent": 1,
        "unknown": 0,
        "partly": 2,
    }
    listed = {name: len(rows(look(client, f"?large.state.is={name}"))) for name in LOOKS}
    assert listed == marked
    counted = {name: count for name, count, _ in client.get("/table/").context["looks"]}
    assert counted == {name: marked[name] for name in LOOK_WORDS if marked[name]}


@pytest.mark.parametrize(
    ("asked", "shortest", "found"),
    [
        ("?only=failing", "?large.state.is=failing", 1),
        ("?only=slower&only=failing", "?large.state.is=failing%2Cslower", 2),
        ("?size=small&only=untested", "?size=small&small.state.is=untested", 0),
    ],
)
def test_only_is_that_of_the_matrix(client, small_world, asked: str, shortest: str, found: int):
    in_trouble(small_world)
    response = client.get(f"/table/{asked}")
    assert (response.status_code, response["Location"]) == (302, f"/table/{shortest}")
    assert len(rows(look(client, asked))) == found or found == 0
    api = client.get(f"/api/v1/links/{asked}").json()
    if found:
        assert api["found"] == found


@pytest.mark.parametrize("field", ["ratio", "now_mb_s", "usual_mb_s", "since", "state"])
def test_it_is_ordered_by_how_links_are_now(client, small_world, field: str):
    in_trouble(small_world)
    transfer(small_world.ral, small_world.scratch, 1.0)
    table = link_table.build(MatrixQuery(), NOW)
    table = table.taken(table.order(f"large.{field}"))
    ends = table.column("source").tolist(), table.column("destination").tolist()
    page = look(client, f"?ordering=large.{field}")
    assert links_of(page) == list(zip(*ends, strict=True))
    assert f"ordering=-large.{field}" in page.source


def test_a_size_has_its_deviation_beside_it(client, small_world):
    for number in (1, 3):
        one = transfer(small_world.ral, small_world.glasgow, 5.0, ago=number * HOUR)
        type(one).objects.filter(id=one.id).update(bytes=10**9 * number)
    (row,) = rows(look(client, "?large.ok.min=1&constant=1"))
    assert row[12] == "2 GB ± 1.41 GB"


# What is wrong comes first.


def test_trouble_comes_first_and_names_do_where_they_are_asked_for(client, small_world):
    in_trouble(small_world)
    ral, glasgow, desy, scratch = small_world.endpoints
    with transfers() as some:
        for place in (ral, desy, scratch):
            as_usual(some, glasgow, place)
        for number in range(3):
            ago = (4 - number) * HOUR / 4
            some.add(scratch, desy, None, ago=4 * HOUR + ago)  # fails for longer
            some.add(glasgow, desy, 1.0, ago=ago)  # slower by more
            some.add(glasgow, scratch, 80.0, ago=ago)
            some.add(glasgow, ral, 8.0, ago=ago)
        some.add(desy, glasgow, None, ago=HOUR)
        some.add(desy, glasgow, 8.0)
    stored_condition(source=scratch, destination=desy)
    stored_condition(TYPES.SLOW, source=glasgow, destination=desy, baseline=8e6)
    stored_condition(TYPES.FAST, source=glasgow, destination=scratch)
    stored_condition(TYPES.SILENT, source=desy, destination=ral)
    stored_condition(source=desy, destination=scratch, confirmed=False)
    page = look(client)
    assert [(pair[0].split("_")[0], *pair[1].split("_")[:1]) for pair in links_of(page)][:8] == [
        ("DESY", "DESY"),
        ("RAL", "Glasgow"),
        ("Glasgow", "DESY"),
        ("RAL", "DESY"),
        ("DESY", "RAL"),
        ("DESY", "DESY"),
        ("DESY", "Glasgow"),
        ("Glasgow", "DESY"),
    ]
    written = responses.csv_rows(client, "/api/v1/links/?ordering=-trouble&format=csv")
    assert [(row["source"], row["destination"]) for row in written] == links_of(page)
    assert links_of(look(client, "?ordering=source")) == sorted(
        links_of(page), key=lambda pair: tuple(end.casefold() for end in pair)
    )


def test_a_failing_link_has_the_worst_ratio_and_is_never_next_to_the_best(client, small_world):
    in_trouble(small_world)
    made = small_world
    with transfers() as some:
        as_usual(some, made.glasgow, made.ral)
        for number in range(3):
            some.add(made.glasgow, made.ral, 7.0, ago=(4 - number) * HOUR / 4)
    failing, slower = ("RAL_DATADISK", "Glasgow_DATADISK"), ("RAL_DATADISK", "DESY_DATADISK")
    best = ("Glasgow_DATADISK", "RAL_DATADISK")
    # The API has the ratio of its last successes, which is 1.
    call = client.get("/api/v1/links/?large.state.is=failing").json()
    assert [row["large"]["ratio"] for row in call["links"]] == [1.0]
    for ordering, links in (
        ("large.ratio", [failing, slower, best]),
        ("-large.ratio", [best, slower, failing]),
        ("large.now_mb_s", [failing, slower]),
    ):
        assert links_of(look(client, f"?ordering={ordering}"))[: len(links)] == links
        rows_of_api = client.get(f"/api/v1/links/?ordering={ordering}").json()["links"]
        ends = [(row["source"]["name"], row["destination"]["name"]) for row in rows_of_api]
        assert ends[: len(links)] == links
    assert len(links_of(look(client, "?ordering=-large.ratio"))) == 12


def test_while_comparing_what_is_certain_is_trouble():
    plain, changed = many_links.table(12), np.zeros(132, dtype=bool)
    changed[5] = True
    compared = {name: np.full(132, 0.5) for name in COMPARED} | {SURE: changed}
    large = plain.links.classes["large"]
    links = replace(plain.links, classes=plain.links.classes | {"large": large | compared})
    degrees, as_usual = trouble_of(LinkTable(links, changed=changed)), trouble_of(plain)
    assert STATES[large["state"][5]] == "measured"
    assert np.flatnonzero(degrees.astype(int) != as_usual.astype(int)).tolist() == [5]
    assert degrees[5] > as_usual[5]


def test_columns_with_one_value_are_left_out_until_asked_for(client, small_world):
    transfer(small_world.ral, small_world.glasgow, 5.0)
    page = look(client)
    for title in ("priority", "baseline", "ratio", "size"):
        assert title not in heads(page).split()
    assert client.get("/table/").context["same"] == [
        *("priority 5", "no baseline yet for large files", "large files of 2 GB"),
        *("no small file", "no medium file"),
    ]
    every = look(client, "?constant=1")
    assert "Same for all links" not in every
    assert {"priority", "baseline", "ratio", "size"} <= set(heads(every).split())
    # Nor while the table is ordered by it.
    assert "priority" in heads(look(client, "?ordering=priority")).split()


def test_the_points_of_numbers_stand_in_one_line(client, small_world):
    for place, rate in ((small_world.glasgow, 5.0), (small_world.desy, 0.25)):
        transfer(small_world.ral, place, rate)
    transfer(small_world.desy, small_world.ral, 125.0)
    page = look(client)
    padded = {(number["data-pad"], number.words) for number in page.parts("[data-pad]")}
    assert padded >= {("0", "5.00"), (".000", "125")}
    assert "0.250" in page.part("table.links").words.split()


def test_a_search_for_the_name_of_a_site_has_its_links_alone(client, small_world):
    Site.objects.filter(name="DESY").update(name="RALPP")
    page = look(client, "?search=ral")
    assert "Showing 1 to 6 of 6 links (filtered from 12)" in page.words
    assert "search “ral”: site RAL" in " ".join(page.words.split())
    assert all("RAL_DATADISK" in pair for pair in links_of(page))
    assert "/api/v1/links/?site=RAL&ordering=-trouble&format=csv" in page.links()
    assert "of 12 links" in look(client, "?search=r").words


def test_the_sheet_adds_a_filter_to_the_address(client, small_world):
    fields = "filter_column=large.mean_mb_s&filter_how=min&filter_value=5"
    response = client.get(f"/table/?search=ral&{fields}")
    assert response["Location"] == "/table/?search=ral&large.mean_mb_s.min=5"
    response = client.get("/table/?filter_column=source.cloud.has&filter_value=UK")
    assert response["Location"] == "/table/?source.cloud.has=UK"
    assert client.get(f"/table/?{fields.replace('=5', '=')}")["Location"] == "/table/"
    for wrong, sentence in (
        (
            "filter_column=stat&filter_value=5",
            "“stat” is not a filter: choose a filter from the list.",
        ),
        (fields.replace("=5", "=many"), "large.mean_mb_s.min “many” is not a number"),
    ):
        refused = client.get(f"/table/?{wrong}")
        assert refused.status_code == 400
        assert sentence in unescape(refused.content.decode())
    offered = {option["value"] for option in look(client).parts("option[value]")}
    names = {*column_filters.names(SIZES)} | {
        name.rpartition(".")[0] for name in column_filters.names(SIZES)
    }
    assert {"source.has", "large.state.is", "large.ratio", "medium.ok", "priority"} <= offered
    assert {value for value in offered if "." in value} <= names
