"""The table page without a script: its numbers, search, filters, order, pages and words."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.answers import column_filters, grid, link_table
from matrix.answers.link_trouble import trouble_of
from matrix.pages.table import notices
from matrix.pages.table.page import LOOK_WORDS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.states import LOOKS, STATES
from sonar import sealing
from sonar.models import Endpoint, Mesh, Probe, Schedule, Site, SizeClass
from tests.matrix import many_links, responses, world
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
SIZES = ("small", "medium", "large")
THIN = "\u202f"
MARKUP = "</script><script>alert(1)</script>"


def page(client: Client, text: str = "") -> str:
    return responses.html(client, f"/table/{text}", follow=True)


def words(html: str) -> str:
    return unescape(responses.words(html)).strip()


def rows(html: str) -> list[list[str]]:
    """Return the words of the cells of each row of the table."""
    body = html.split("<tbody>")[1].partition("</tbody>")[0]
    return [
        [words(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)]
        for row in body.split("<tr>")[1:]
    ]


def links_of(html: str) -> list[tuple[str, str]]:
    """Return the source and the destination of each row."""
    destinations = [next(text for text in row if text.startswith("→ ")) for row in rows(html)]
    sources = [row[0].split()[0] for row in rows(html)]
    return [(source, to.split()[1]) for source, to in zip(sources, destinations, strict=True)]


def test_a_row_has_the_link_and_its_numbers_by_size_class(
    client: Client, small_world: World
) -> None:
    for rate in (4.0, 5.0, 6.0, None):
        transfer(small_world.ral, small_world.glasgow, rate)
    transfer(small_world.ral, small_world.glasgow, 1.5, size="small")
    html = page(client, "?source.has=RAL&destination.has=Glasgow&constant=1")
    assert rows(html) == [
        [
            *("RAL_DATADISK to Glasgow_DATADISK", "UK", "1", "→ Glasgow_DATADISK", "UK", "2", "5"),
            *("measured", "5.00 ± 1.00", "5.00", "–", "–", "2 GB", "3 + 1 failed"),
            *("1.50", "20 MB", "1"),
            *("–", "–", "–"),
        ]
    ]


def test_the_heads_say_direction_size_class_and_unit(client: Client, small_world: World) -> None:
    html = page(client, "?constant=1")
    head = words(html.split("<thead")[1].split("</thead>")[0])
    groups = re.findall(r'<th scope="colgroup" colspan="(\d)">(.*?)</th>', html)
    assert groups == [
        ("3", "from (source)"),
        ("3", "to (destination)"),
        ("7", "large files"),
        ("3", "small files"),
        ("3", "medium files"),
    ]
    assert "large files MB/s" in head
    assert "small files state" not in head
    assert "small files state" in words(page(client, "?size=small"))


def test_the_page_shows_what_the_link_table_has(client: Client, small_world: World) -> None:
    for number, (source, destination) in enumerate(
        [(small_world.ral, small_world.desy), (small_world.desy, small_world.ral)] * 2
    ):
        transfer(source, destination, 3.0 + number, size=("small", "large")[number // 2])
    table = link_table.build(MatrixQuery(), NOW).ordered_by("large.mean_mb_s", descending=True)
    html = page(client, "?ordering=-large.mean_mb_s&constant=1")
    ends = table.column("source").tolist(), table.column("destination").tolist()
    assert links_of(html) == list(zip(*ends, strict=True))
    shown = [row[8].partition(" ")[0] for row in rows(html)]
    rates = table.column("large.mean_mb_s").tolist()
    assert shown == [f"{rate:.2f}" if rate == rate else "–" for rate in rates]


def test_a_missing_number_is_a_dash_with_its_reason(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, None)
    html = page(client)
    body = html.split("<tbody>")[1]
    assert "not tested with small files, and no result in this window" in body
    assert 'title="no result in this window"' in body
    assert 'title="the only result failed; last result 30 min ago, 20 Nov 11:30:30 UTC"' in body
    assert not re.search(r">\s*(nan|None)\b", body)


def test_what_is_older_than_its_mesh_promises_is_called_stale(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=1.9 * HOUR)
    transfer(small_world.ral, small_world.desy, 7.0, ago=2.1 * HOUR)
    shown = {row[3]: row[7:9] for row in rows(page(client, "?large.ok.min=1&constant=1"))}
    assert shown == {
        "→ Glasgow_DATADISK": ["measured", "5.00"],
        "→ DESY_DATADISK": ["stale", "7.00"],
    }
    html = page(client, "?size=small&large.ok.min=1&constant=1")
    beside = {row[3]: row[-3] for row in rows(html)}
    assert beside == {"→ Glasgow_DATADISK": "5.00", "→ DESY_DATADISK": "stale 7.00"}


def test_what_failed_since_it_last_succeeded_says_when_it_did(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=HOUR)
    transfer(small_world.ral, small_world.glasgow, None, ago=HOUR / 2)
    assert (
        "last result 30 min ago, 20 Nov 11:30:30 UTC, failed; "
        "last success 1 h ago, 20 Nov 11:00:30 UTC"
    ) in page(client)
    assert len(rows(page(client, "?max_age=45m"))) == 0
    assert len(rows(page(client, "?large.age.max=2h"))) == 1


def test_a_link_in_a_declared_downtime_is_called_down_as_in_the_matrix(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0)
    world.Endpoint.objects.get(id=small_world.ral.id).downtime_set.create(
        starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="disks"
    )
    (row,) = rows(page(client, "?large.ok.min=1&constant=1"))
    assert row[7:9] == ["down", "5.00"]
    assert "no result in this window; down: an endpoint is in a declared downtime" in page(client)


def test_a_failed_link_is_called_so_in_words(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, None)
    (row,) = rows(page(client, "?large.failed.min=1&constant=1"))
    assert row[7:14] == ["failed", "–", "–", "–", "–", "–", "0 + 1 failed"]
    (row,) = rows(page(client, "?size=small&large.failed.min=1&constant=1"))
    assert row[-3:] == ["failed –", "–", "0 + 1 failed"]


def test_both_ends_lead_to_the_page_of_the_link_with_window_and_profile(
    client: Client, small_world: World
) -> None:
    html = page(client, "?window=24h&source_site=RAL&streams=1")
    assert 'href="/links/RAL_DATADISK/Glasgow_DATADISK/?window=24h&amp;streams=1"' in html
    assert "RAL_DATADISK → Glasgow_DATADISK, site RAL" in html


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
def test_it_says_which_of_how_many_links_are_shown(
    client: Client, small_world: World, text: str, count: int
) -> None:
    html = page(client, text)
    assert count in words(html)
    assert len(rows(html)) == int(re.search(r"of (\d+)|$", count)[1] or 0)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    """The table has 1,560 links."""
    table = many_links.table(40)
    monkeypatch.setattr(link_table, "build", lambda *asked, **also: table)


def test_the_pages_of_the_table_have_each_link_once(client: Client, many: None) -> None:
    seen = []
    for number in range(1, 8):
        turned = f"page={number}&" if number > 1 else ""
        shown = links_of(page(client, f"?ordering=source&{turned}per_page=250"))
        assert len(shown) == (250 if number < 7 else 60)
        seen += shown
    assert len(set(seen)) == 1560
    whole = [tuple(f"{end}_DATADISK".casefold() for end in link) for link in seen]
    assert whole == sorted(whole)


def test_what_all_names_end_with_is_said_once(client: Client, many: None) -> None:
    html = page(client, "?ordering=source&per_page=25")
    assert "from (source, all …_DATADISK)" in html
    assert "to (destination, all …_DATADISK)" in html
    assert {end for link in links_of(html) for end in link} <= {f"SITE-{n}" for n in range(1, 41)}
    assert 'title="SITE-10_DATADISK → SITE-11_DATADISK, site SITE-10"' in html


def test_a_page_behind_the_last_is_the_last(client: Client, many: None) -> None:
    html = page(client, "?page=99")
    assert f"Showing 1{THIN}551 to 1{THIN}560 of 1{THIN}560 links" in html
    assert '<span class="page-link" aria-current="page">32</span>' in html


def test_pages_are_turned_with_everything_else_kept(client: Client, many: None) -> None:
    html = page(client, "?window=24h&search=site&ordering=-large.ok&page=3&per_page=100")
    base = "/table/?window=24h&amp;search=site&amp;ordering=-large.ok"
    assert f'href="{base}&amp;page=2&amp;per_page=100" rel="prev"' in html
    assert f'href="{base}&amp;page=4&amp;per_page=100" rel="next"' in html
    assert f'href="{base}&amp;per_page=100" aria-label="page 1"' in html
    assert 'name="search" value="site"' in html


def test_heads_sort_and_say_how_it_is_sorted(client: Client, small_world: World) -> None:
    html = page(client, "?ordering=-large.mean_mb_s&search=ral")
    sorted_by = re.findall(r'<th [^>]*aria-sort="(\w+)"><a href="(.*?)"', html)
    assert sorted_by == [("descending", "/table/?search=ral&amp;ordering=large.mean_mb_s")]
    assert len(re.findall(r'class="sorted"', html)) == 1
    # Names from A on, numbers from the greatest on.
    assert 'href="/table/?search=ral&amp;ordering=source"' in html
    assert 'href="/table/?search=ral&amp;ordering=-small.failed"' in html
    assert re.search(r'href="/table/\?search=ral">Trouble first</a>', html)
    assert "aria-sort" not in page(client)
    by_name = page(client, "?ordering=source")
    assert 'aria-sort="ascending"><a href="/table/?ordering=-source"' in by_name


def test_the_form_carries_everything_that_has_no_field_in_it(
    client: Client, small_world: World
) -> None:
    text = "?window=24h&cloud=UK&ordering=-priority&source.country.has=GB&large.age.max=6h"
    form = page(client, f"{text}&large.ok.min=1&per_page=100").split('<form id="listing"')[1]
    hidden = re.findall(r'type="hidden" name="(.*?)" value="(.*?)"', form)
    assert hidden == [
        ("window", "24h"),
        ("cloud", "UK"),
        ("ordering", "-priority"),
        ("source.country.has", "GB"),
        ("large.ok.min", "1"),
        ("large.age.max", "6h"),
    ]
    assert "<option selected>100</option>" in form


def test_what_is_set_can_be_dropped_one_by_one(client: Client, small_world: World) -> None:
    html = page(client, "?cloud=UK&search=ral&source.tier.is=1&large.ok.max=3")
    chips = [
        (unescape(url), words(text).removesuffix(" ×"))
        for url, text in re.findall(r'class="chip" href="(.*?)".*?>(.*?)</a>', html)
    ]
    assert chips == [
        ("/table/?search=ral&source.tier.is=1&large.ok.max=3", "only from or to cloud UK"),
        ("/table/?cloud=UK&source.tier.is=1&large.ok.max=3", "search “ral”: site RAL"),
        ("/table/?cloud=UK&search=ral&large.ok.max=3", "from tier 1"),
        ("/table/?cloud=UK&search=ral&source.tier.is=1", "large ok at most 3"),
    ]


def test_another_window_keeps_the_listing_but_not_its_page(
    client: Client, small_world: World
) -> None:
    html = page(client, "?search=ral&per_page=25&page=2")
    assert 'href="/table/?window=24h&amp;search=ral&amp;per_page=25"' in html


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
def test_one_view_has_one_url(client: Client, small_world: World, asked: str, shorter: str) -> None:
    response = client.get(asked)
    assert (response.status_code, response["Location"]) == (302, shorter)
    assert client.get(shorter).status_code == 200


def test_a_bad_parameter_is_a_400_that_says_what_is_allowed(client: Client, db: None) -> None:
    response = client.get("/table/?per_page=7&large.ok.min=<b>")
    html = response.content.decode()
    assert response.status_code == 400
    assert "per_page “7” is not known: use 25, 50, 100, 250 or 1000." in html
    assert "large.ok.min “&lt;b&gt;” is not a number" in html


def test_no_endpoints_yet_says_what_to_do(client: Client, db: None) -> None:
    html = page(client)
    assert "No endpoints are registered yet." in html
    assert 'href="/admin/sonar/site/add/"' in html
    assert "<table" not in html


def test_endpoints_without_a_mesh_say_so(client: Client, small_world: World) -> None:
    Schedule.objects.all().delete()
    Mesh.objects.create(name="newer")  # schedules follow the registry
    html = page(client)
    assert "No mesh tests any link. 4 endpoints are registered" in words(html)
    assert 'href="/admin/sonar/mesh/"' in html


def test_filters_that_nothing_passes_can_be_dropped(client: Client, small_world: World) -> None:
    html = page(client, "?window=24h&cloud=FR&search=ral")
    assert "No link matches these filters." in html
    assert '<a href="/table/?window=24h&amp;search=ral">Clear the filters</a>' in html


def test_a_search_that_finds_nothing_can_be_dropped(client: Client, small_world: World) -> None:
    html = page(client, "?cloud=UK&search=nothing&large.ok.min=3&ordering=priority")
    assert "No link matches the search and the column filters." in html
    assert '<a href="/table/?cloud=UK&amp;ordering=priority">Clear the search' in html
    assert '<a href="/table/?ordering=priority">Clear all filters</a>' in html
    assert 'id="search"' in html


def test_a_window_without_results_says_when_the_last_was(
    client: Client, small_world: World
) -> None:
    assert "There has never been a result." in page(client)
    assert "Every test in this window failed." not in page(client)
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=3 * HOUR)
    transfer(small_world.ral, small_world.glasgow, 1.0, ago=4 * HOUR, size="small")
    html = page(client, "?window=1h")
    assert "No results in this window. The last was 3 h ago, at 20 Nov 09:00 UTC." in words(html)
    assert 'href="/table/?window=90d">Show the last 90 days' in html
    assert "No results" not in page(client, "?window=6h")


def test_simulated_and_retired_endpoints_are_marked(client: Client, small_world: World) -> None:
    assert "Simulated" not in page(client)
    transfer(small_world.desy, small_world.glasgow, 1.0)
    Endpoint.objects.filter(name="RAL_DATADISK").update(simulated=True)
    Endpoint.objects.filter(name="DESY_DATADISK").update(retired_at=NOW)
    html = page(client)
    assert "Simulated" in html
    shown = {row[0] for row in rows(html)}
    assert "RAL_DATADISK to Glasgow_DATADISK simulated" in shown
    assert "DESY_DATADISK to Glasgow_DATADISK retired" in shown
    assert "→ RAL_DATADISK simulated" in {row[3] for row in rows(html)}


def test_one_by_one_nothing_is_marked_simulated_where_everything_is(
    client: Client, small_world: World
) -> None:
    Endpoint.objects.update(simulated=True)
    html = page(client)
    assert "Simulated" in html
    assert "simulated</small>" not in html


def test_free_text_shows_as_text(client: Client, small_world: World) -> None:
    Site.objects.filter(name="RAL").update(cloud=MARKUP)
    Endpoint.objects.filter(name="RAL_DATADISK").update(label=MARKUP)
    for text in ("", f"?search={MARKUP}", f"?cloud={MARKUP}", f"?source.cloud.has={MARKUP}"):
        html = page(client, text)
        assert "<script>alert" not in html
        assert MARKUP in words(html) or MARKUP in unescape(html)
    assert len(rows(page(client, f"?source.cloud.has={MARKUP}"))) == 3


def test_data_of_the_same_view_is_linked(client: Client, small_world: World) -> None:
    html = page(client, "?window=24h&cloud=UK&stat=max&search=ra&ordering=-large.ok&per_page=25")
    asked = "/api/v1/links/?window=24h&amp;cloud=UK&amp;search=ra&amp;ordering=-large.ok"
    assert f'href="{asked}"' in html
    assert f'href="{asked}&amp;format=csv"' in html
    assert 'href="/api/v1/links/?ordering=-trouble&amp;format=csv"' in page(client)
    assert 'href="/api/v1/links/?format=csv"' in page(client, "?ordering=source")


def test_an_unchanged_page_is_a_304(client: Client, small_world: World) -> None:
    etag = client.get("/table/")["ETag"]
    assert client.get("/table/", headers={"if-none-match": etag}).status_code == 304
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert client.get("/table/", headers={"if-none-match": etag}).status_code == 200


def test_the_number_of_queries_does_not_grow_with_the_data(
    client: Client, small_world: World
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(client, "?search=disk&ordering=-large.mean_mb_s")
        return len(captured)

    transfer(small_world.ral, small_world.glasgow, 1.0)
    # The page's classes and the form's; what has changed; what is queued, what
    # is overdue, and the ways of measuring; versions and classes, places and three plans; for
    # each class what is dirty and its segments; raw rows of one; who is down. And how links stand:
    # for each class its versions, and three windows, the rows of one.
    of_standings = 3 * (1 + 3 * 2) + 1
    assert statements() == 2 + 1 + 3 + 2 + 4 + 3 * 2 + 1 + 1 + of_standings
    assert statements() == 2 + 1 + 3
    sites = [Site.objects.create(name=f"SITE-{number}") for number in range(30)]
    places = [world.endpoint(f"{site.name}_DATADISK", site) for site in sites]
    for place in places:
        transfer(small_world.ral, place, 5.0)
        transfer(small_world.ral, place, 5.0, ago=30 * HOUR)
    # Rows of yesterday, too.
    assert statements() == 2 + 1 + 3 + 2 + 4 + 3 * 2 + 1 + 1 + of_standings + 1
    sealing.seal(NOW)
    # The columns of the segments, once, and raw rows of this hour; of how links stand, too, where
    # results are.
    assert statements() == 2 + 1 + 3 + 2 + 3 * 2 + 2 + 1 + 3 + 3 + 3
    assert statements() == 2 + 1 + 3


def test_notices_cost_a_query_for_each_class_only_where_there_is_no_result(
    client: Client, small_world: World
) -> None:
    table = link_table.build(MatrixQuery(), NOW)
    with CaptureQueriesContext(connection) as captured:
        assert notices.about_results(table, NOW, "/") is not None
    assert len(captured) == 3
    with CaptureQueriesContext(connection) as captured:
        assert notices.about_results(many_links.table(3), NOW, "/") is None
    assert len(captured) == 0


def test_failures_alone_are_said(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, None)
    html = words(page(client))
    assert "Every test in this window failed. 1 test ran and none succeeded." in html


def test_tests_that_nobody_takes_are_said(client: Client, small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, 1.0)
    assert "No worker takes tests." not in page(client)
    Probe.objects.create(
        source=small_world.ral,
        destination=small_world.desy,
        size_class=SizeClass.objects.get(name="small"),
        bytes=1,
        requested_at=NOW - HOUR,
        sent_at=NOW - HOUR,
    )
    html = page(client)
    assert "No worker takes tests." in html
    assert len(rows(html)) == 12


def test_results_that_were_measured_in_several_ways_are_not_mixed_unsaid(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0)
    assert "Mixes tests" not in page(client)
    transfer(small_world.ral, small_world.glasgow, 9.0, made=world.profile(streams=4))
    html = page(client, "?search=ral")
    assert "Mixes tests with 1 and 4 streams." in html
    assert 'href="/table/?streams=4&amp;search=ral"' in html
    assert "Mixes tests" not in page(client, "?streams=4")


def test_ways_of_another_link_or_class_are_not_said_to_be_mixed(
    client: Client, small_world: World
) -> None:
    ral, glasgow, desy, _ = small_world.endpoints
    transfer(ral, glasgow, 5.0, made=world.profile(mode="pull"))
    transfer(ral, glasgow, 5.0, made=world.profile(mode="push"), ago=72 * HOUR, size="small")
    transfer(desy, glasgow, 5.0, made=world.profile(mode="push"), size="small")
    assert "with mode" not in page(client)
    transfer(desy, glasgow, 5.0, made=world.profile(mode="pull"), size="small", ago=72 * HOUR)
    assert "1 of 3 rates mix tests with mode pull and push." in page(client)
    assert "with mode" not in page(client, "?window=24h")
    assert "with mode" not in page(client, "?source_site=RAL")


@pytest.mark.parametrize(
    "text",
    ["?window=24h", "?from=2026-11-19T00:00:00Z&to=2026-11-19T12:00:00Z"],
)
def test_the_age_of_a_last_result_is_that_of_the_other_pages(
    client: Client, small_world: World, text: str
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=timedelta(hours=26, minutes=59))
    transfer(small_world.ral, small_world.glasgow, 5.0, ago=timedelta(hours=5, minutes=59))
    html = page(client, text)
    (age,) = re.findall(r"n = 1\); last result ([^,]*), (?:[0-9]+ Nov [0-9:]*) UTC", html)
    for other in ("/links/RAL_DATADISK/Glasgow_DATADISK/", "/sites/RAL/"):
        answer = client.get(f"{other}{text}").content.decode()
        assert f'UTC">{age}</span>' in answer, other


# How links are now.


def in_trouble(made: World) -> None:
    """RAL to Glasgow fails since two hours, RAL to DESY is at a quarter of its usual rate."""
    for day in range(8, 28):
        for place in (made.glasgow, made.desy):
            transfer(made.ral, place, 8.0, ago=24 * day * HOUR)
    transfer(made.ral, made.glasgow, 8.0, ago=3 * HOUR)
    for number in range(3):
        transfer(made.ral, made.glasgow, None, ago=(4 - number) * HOUR / 2)
        transfer(made.ral, made.desy, 2.0, ago=(4 - number) * HOUR / 4)
    transfer(made.desy, made.ral, 5.0)


def test_a_link_says_how_it_is_since_when_and_by_what_factor(
    client: Client, small_world: World
) -> None:
    in_trouble(small_world)
    html = page(client, "?source.has=RAL&large.ok.min=1&constant=1")
    shown = {row[3].removeprefix("→ "): row[7:14] for row in rows(html)}
    assert shown == {
        "Glasgow_DATADISK": [
            "failing 2 h",
            "8.00",
            "–",
            "8.00",
            "–",
            "2 GB",
            "1 + 3 failed",
        ],
        "DESY_DATADISK": [
            "slower than usual 1 h",
            "2.00 ± 0",
            "2.00",
            "8.00",
            "0.25×",
            "2 GB",
            "3",
        ],
    }
    assert html.count('title="failing: its last successes are more than 2 h old"') == 2
    assert 'title="since 20 Nov 10:00:30 UTC, 3 tests in a row; failing: its newest' in html


def test_what_is_not_as_usual_is_counted_and_is_a_click_away(
    client: Client, small_world: World
) -> None:
    in_trouble(small_world)
    looks = client.get("/table/").context["looks"]
    assert [(one.look, one.count, one.url) for one in looks] == [
        ("failing", 1, "/table/?large.state.is=failing"),
        ("slower", 1, "/table/?large.state.is=slower"),
    ]
    html = page(client, "?large.state.is=failing")
    assert links_of(html) == [("RAL_DATADISK", "Glasgow_DATADISK")]
    assert "large failing" in words(html)
    (first, *_) = client.get("/table/?large.state.is=failing").context["looks"]
    assert (first.look, first.chosen, first.url) == ("failing", True, "/table/")


def test_table_and_matrix_agree_on_every_look(client: Client, small_world: World) -> None:
    in_trouble(small_world)
    ral, glasgow, desy, scratch = small_world.endpoints
    for day in range(8, 28):
        transfer(glasgow, ral, 8.0, ago=24 * day * HOUR)
        transfer(scratch, ral, 8.0, ago=24 * day * HOUR)
    for number in range(3):
        transfer(glasgow, ral, 80.0, ago=(4 - number) * HOUR / 4)
        # Slower, in part failing, and failing, at an endpoint that is down.
        transfer(scratch, ral, 2.0, ago=(4 - number) * HOUR / 4)
        transfer(scratch, desy, None, ago=(4 - number) * HOUR / 4)
    transfer(scratch, glasgow, 8.0)
    transfer(scratch, glasgow, None, ago=HOUR)
    transfer(desy, glasgow, None, ago=HOUR)
    transfer(desy, glasgow, 8.0)
    transfer(glasgow, desy, None)
    scratch.downtime_set.create(starts_at=NOW - HOUR, ends_at=NOW + HOUR, reason="disks")
    Schedule.objects.filter(source=desy, destination=ral).update(every_seconds=10)
    cells = grid.build(MatrixQuery(), NOW).cells
    marked = {look: int(cells.of_look(look).sum()) for look in LOOKS}
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
        "unknown": 0,
        "partly": 2,
    }
    listed = {look: len(rows(page(client, f"?large.state.is={look}"))) for look in LOOKS}
    assert listed == marked
    counted = {entry.look: entry.count for entry in client.get("/table/").context["looks"]}
    assert counted == {look: marked[look] for look in LOOK_WORDS if marked[look]}


@pytest.mark.parametrize(
    ("asked", "shortest", "found"),
    [
        ("?only=failing", "?large.state.is=failing", 1),
        ("?only=slower&only=failing", "?large.state.is=failing%2Cslower", 2),
        ("?size=small&only=untested", "?size=small&small.state.is=untested", 0),
    ],
)
def test_only_is_that_of_the_matrix(
    client: Client, small_world: World, asked: str, shortest: str, found: int
) -> None:
    in_trouble(small_world)
    response = client.get(f"/table/{asked}")
    assert (response.status_code, response["Location"]) == (302, f"/table/{shortest}")
    assert len(rows(page(client, asked))) == found or found == 0
    api = client.get(f"/api/v1/links/{asked}").json()
    if found:
        assert api["found"] == found


def test_a_state_that_is_none_is_a_400_with_all_there_are(
    client: Client, small_world: World
) -> None:
    response = client.get("/table/?only=broken")
    assert response.status_code == 400
    assert "only “broken” is not a state: use measured, failing, failed" in unescape(
        response.content.decode()
    )


@pytest.mark.parametrize("field", ["ratio", "now_mb_s", "usual_mb_s", "since", "state"])
def test_it_is_ordered_by_how_links_are_now(client: Client, small_world: World, field: str) -> None:
    in_trouble(small_world)
    transfer(small_world.ral, small_world.scratch, 1.0)
    table = link_table.build(MatrixQuery(), NOW).ordered_by(f"large.{field}")
    ends = table.column("source").tolist(), table.column("destination").tolist()
    html = page(client, f"?ordering=large.{field}")
    assert links_of(html) == list(zip(*ends, strict=True))
    assert f"ordering=-large.{field}" in html


def test_it_is_chosen_by_how_links_are_now(client: Client, small_world: World) -> None:
    in_trouble(small_world)
    assert links_of(page(client, "?large.ratio.max=0.5")) == [("RAL_DATADISK", "DESY_DATADISK")]
    assert len(rows(page(client, "?large.usual_mb_s.min=8"))) == 2


def test_a_size_has_its_deviation_beside_it(client: Client, small_world: World) -> None:
    for number in (1, 3):
        one = transfer(small_world.ral, small_world.glasgow, 5.0, ago=number * HOUR)
        type(one).objects.filter(id=one.id).update(bytes=10**9 * number)
    (row,) = rows(page(client, "?large.ok.min=1&constant=1"))
    assert row[12] == "2 GB ± 1.41 GB"


# What is wrong comes first.


def test_trouble_comes_first_and_names_do_where_they_are_asked_for(
    client: Client, small_world: World
) -> None:
    in_trouble(small_world)
    ral, glasgow, desy, scratch = small_world.endpoints
    for day in range(8, 28):
        transfer(glasgow, ral, 8.0, ago=24 * day * HOUR)
        transfer(glasgow, desy, 8.0, ago=24 * day * HOUR)
        transfer(glasgow, scratch, 8.0, ago=24 * day * HOUR)
    for number in range(3):
        ago = (4 - number) * HOUR / 4
        transfer(scratch, desy, None, ago=4 * HOUR + ago)  # fails for longer
        transfer(glasgow, desy, 1.0, ago=ago)  # slower by more
        transfer(glasgow, scratch, 80.0, ago=ago)
        transfer(glasgow, ral, 8.0, ago=ago)
    transfer(desy, glasgow, None, ago=HOUR)
    transfer(desy, glasgow, 8.0)
    html = page(client)
    assert [(pair[0].split("_")[0], *pair[1].split("_")[:1]) for pair in links_of(html)][:8] == [
        ("DESY", "DESY"),
        ("RAL", "Glasgow"),
        ("Glasgow", "DESY"),
        ("RAL", "DESY"),
        ("DESY", "Glasgow"),
        ("Glasgow", "DESY"),
        ("DESY", "RAL"),
        ("Glasgow", "RAL"),
    ]
    written = responses.csv_rows(client, "/api/v1/links/?ordering=-trouble&format=csv")
    assert [(row["source"], row["destination"]) for row in written] == links_of(html)
    assert links_of(page(client, "?ordering=source")) == sorted(
        links_of(html), key=lambda pair: tuple(end.casefold() for end in pair)
    )


def test_a_failing_link_has_the_worst_ratio_and_is_never_next_to_the_best(
    client: Client, small_world: World
) -> None:
    in_trouble(small_world)
    made = small_world
    for day in range(8, 28):
        transfer(made.glasgow, made.ral, 8.0, ago=24 * day * HOUR)
    for number in range(3):
        transfer(made.glasgow, made.ral, 7.0, ago=(4 - number) * HOUR / 4)
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
        assert links_of(page(client, f"?ordering={ordering}"))[: len(links)] == links
        rows_of_api = client.get(f"/api/v1/links/?ordering={ordering}").json()["links"]
        ends = [(row["source"]["name"], row["destination"]["name"]) for row in rows_of_api]
        assert ends[: len(links)] == links
    assert len(links_of(page(client, "?ordering=-large.ratio"))) == 12


def test_while_comparing_what_is_certain_is_trouble() -> None:
    table = many_links.table(12)
    columns = table.links.classes["large"]
    shifted = np.zeros(len(table), dtype=bool)
    shifted[5] = True
    degrees = trouble_of(columns, shifted, np.zeros(len(table), dtype=bool))
    as_usual = trouble_of(columns)
    state = STATES[int(columns.state[5])]
    assert (degrees[5] > as_usual[5]) == (state == "measured")


def test_columns_with_one_value_are_left_out_until_asked_for(
    client: Client, small_world: World
) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0)
    html = page(client)
    head = words(html.split("<thead")[1].split("</thead>")[0])
    for title in ("priority", "usual", "ratio", "size"):
        assert title not in head.split()
    assert client.get("/table/").context["same"] == [
        *("priority 5", "no usual rate yet with large files", "large files of 2 GB"),
        *("no small file", "no medium file"),
    ]
    every = page(client, "?constant=1")
    assert "The same for all links" not in every
    head = words(every.split("<thead")[1].split("</thead>")[0])
    assert {"priority", "usual", "ratio", "size"} <= set(head.split())
    # Nor while the table is ordered by it.
    assert "priority" in words(page(client, "?ordering=priority").split("<thead")[1]).split()


def test_the_points_of_numbers_stand_in_one_line(client: Client, small_world: World) -> None:
    for place, rate in ((small_world.glasgow, 5.0), (small_world.desy, 0.25)):
        transfer(small_world.ral, place, rate)
    transfer(small_world.desy, small_world.ral, 125.0)
    html = page(client)
    padded = set(re.findall(r'data-pad="(.*?)">(.*?)<', html))
    assert padded >= {("0", "5.00"), (".000", "125")}
    assert ">0.250" in html


def test_a_search_for_the_name_of_a_site_has_its_links_alone(
    client: Client, small_world: World
) -> None:
    Site.objects.filter(name="DESY").update(name="RALPP")
    html = page(client, "?search=ral")
    assert "Showing 1 to 6 of 6 links (filtered from 12)" in words(html)
    assert "search “ral”: site RAL" in " ".join(words(html).split())
    assert all("RAL_DATADISK" in pair for pair in links_of(html))
    assert 'href="/api/v1/links/?site=RAL&amp;ordering=-trouble&amp;format=csv"' in html
    assert "of 12 links" in words(page(client, "?search=r"))


def test_the_sheet_adds_a_filter_to_the_address(client: Client, small_world: World) -> None:
    fields = "filter_column=large.mean_mb_s&filter_how=min&filter_value=5"
    response = client.get(f"/table/?search=ral&{fields}")
    assert response["Location"] == "/table/?search=ral&large.mean_mb_s.min=5"
    response = client.get("/table/?filter_column=source.cloud.has&filter_value=UK")
    assert response["Location"] == "/table/?source.cloud.has=UK"
    assert client.get(f"/table/?{fields.replace('=5', '=')}")["Location"] == "/table/"
    for wrong, sentence in (
        ("filter_column=stat&filter_value=5", "“stat” is no filter: choose one of the list."),
        (fields.replace("=5", "=many"), "large.mean_mb_s.min “many” is not a number"),
    ):
        refused = client.get(f"/table/?{wrong}")
        assert refused.status_code == 400
        assert sentence in unescape(refused.content.decode())
    offered = set(re.findall(r'<option value="(.*?)"', page(client)))
    names = {*column_filters.names(SIZES)} | {
        name.rpartition(".")[0] for name in column_filters.names(SIZES)
    }
    assert {"source.has", "large.state.is", "large.ratio", "medium.ok", "priority"} <= offered
    assert {value for value in offered if "." in value} <= names
