"""The wall as HTML: what is wrong and since when, large; and what is left without a script."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.pages.matrix.page import LINES, shares
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.world import HOUR, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)


@pytest.fixture
def trouble(small_world: World) -> World:
    """RAL to Glasgow fails since five hours, Glasgow to RAL is at a third of its usual rate."""
    ral, glasgow, desy, _ = small_world.endpoints
    with world.transfers() as several:
        for number in range(40):
            ago = 8 * DAY + number * 6 * HOUR
            for ends in ((ral, glasgow), (glasgow, ral), (desy, ral)):
                several.add(*ends, 9.0 + number % 3, ago=ago)
        for number in range(5):
            several.add(ral, glasgow, None, ago=(number + 1) * HOUR)
            several.add(glasgow, ral, 3.0, ago=(number + 1) * HOUR)
            several.add(desy, ral, 10.0, ago=(number + 1) * HOUR)
    return small_world


def wall(client: Client, path: str = "/?wall=1") -> Page:
    return responses.page(client, path)


def test_it_says_what_is_wrong_first_and_lists_it_with_since_when(client, trouble):
    page = wall(client)
    assert page.texts("h1 .failing") == ["1 link failing with large files"]
    assert page.texts("h1 .slower") == ["1 slower than usual"]
    assert "Failing now from RAL_DATADISK to Glasgow_DATADISK 5 h" in page
    assert "Slower than usual from Glasgow_DATADISK to RAL_DATADISK 0.30×" in page
    assert "3.00 MB/s now, 10.0 usual, since 20 Nov 07:00 UTC" in page


def test_where_nothing_is_wrong_it_says_so_and_lists_the_slowest(client, small_world):
    ral, glasgow, *_ = small_world.endpoints
    world.transfer(ral, glasgow, 10.0)
    page = wall(client)
    assert "Slowest" in page
    assert "Failing" not in page


def test_each_list_has_some_lines_and_the_most_serious_has_the_rest():
    assert shares([10, 10, 10], 9) == [5, 2, 2]
    assert shares([1, 10, 10], 9) == [1, 6, 2]
    assert shares([3, 1], 10) == [3, 1]
    assert shares([10, 10, 10, 10], 4) == [1, 1, 1, 1]
    assert shares([], 12) == []
    assert sum(shares([10, 10, 10, 10], LINES - 4)) == LINES - 4


def test_a_list_that_is_cut_says_how_many_there_are(client, small_world):
    with world.transfers() as several:
        for source in small_world.endpoints:
            for destination in small_world.endpoints:
                if source != destination:
                    for number in range(3):
                        several.add(source, destination, None, ago=(number + 1) * HOUR)
    text = wall(client).words
    shown = text.count("3 failed in a row")
    assert 1 < shown < 12
    assert f"{shown} of 12" in text


def test_a_link_that_failed_once_is_not_as_red_as_one_that_is_failing(client, small_world):
    transfer(small_world.ral, small_world.glasgow, None)
    heading = responses.page(client, "/?wall=1").part("h1")
    assert heading.words == "1 link without a success with large files"
    assert heading.parts(".failing") == []
    for hours in (1, 2):
        transfer(small_world.ral, small_world.glasgow, None, ago=hours * HOUR)
    heading = responses.page(client, "/?wall=1").part("h1")
    assert heading.texts(".failing") == ["1 link failing with large files"]


def test_several_views_are_counted_and_each_is_a_link(client, trouble):
    page = wall(client, "/?wall=1&views=size=small&views=&every=15s&view=2")
    assert "2 of 2, 15 s each" in page
    assert page.parts('[data-every="15"]')
    first = "/?wall=1&views=size=small&views=&every=15s"
    assert page.links("a[data-view]") == [first, f"{first}&view=2"]
    assert page.part("#leave")["href"] == "/"
    assert "Mean rate of large-file transfers" in page


def test_one_click_turns_through_all_sizes(client, trouble):
    response = client.get(wall(client, "/?window=24h&wall=1").link("all sizes in turn"))
    assert response.status_code == 200
    views = response.context["page"].rotation.views
    assert [view.query.size for view in views] == ["small", "medium", "large"]
    assert {view.query.window for view in views} == {"24h"}


def test_without_a_script_it_goes_on_to_the_next_view_and_has_a_table(client, trouble):
    page = wall(client, "/?wall=1&views=&views=size=small&every=20s")
    other = "/?wall=1&views=&views=size=small&every=20s&view=2"
    refresh = page.part('noscript meta[http-equiv="refresh"]')
    assert refresh["content"] == f"20; url={other}"
    assert "RAL_DATADISK" in page.part("noscript table")


def test_it_says_when_it_was_made_and_how_old_its_newest_result_is(client, trouble):
    page = wall(client)
    assert page.part("[data-made]")["data-made"] == f"{int(world.NOW.timestamp())}"
    assert float(page.part("#newest")["data-at"]) == (world.NOW - HOUR).timestamp()
    assert "12:00 UTC" in page


def test_data_that_stopped_are_said_to_have(client, small_world):
    world.transfer(*small_world.endpoints[:2], 10.0, ago=2 * DAY)
    assert "Data stopped arriving at 18 Nov" in wall(client)


def test_an_empty_registry_is_no_error(client):
    assert "No endpoints are registered yet." in wall(client)


def test_it_is_read_as_the_matrix_is(client, trouble, settings):
    assert client.get("/?wall=1").status_code == 200
    settings.SONAR_PUBLIC_READ = False
    response = client.get("/?wall=1&views=size=small&views=")
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=/%3Fwall%3D1%26views%3D")


def test_the_same_wall_is_a_304_and_another_view_is_not(client, trouble):
    etag = client.get("/?wall=1&views=size=small&views=")["ETag"]
    known = {"if-none-match": etag}
    assert client.get("/?wall=1&views=size=small&views=", headers=known).status_code == 304
    other = client.get("/?wall=1&views=size=small&views=&view=2", headers=known)
    assert other.status_code == 200


def test_the_number_of_queries_depends_on_neither_views_nor_data(client, trouble):
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    assert queries("/?window=30d&wall=1") == 20
    views = "&".join(f"views=window={name}" for name in ("1h", "6h", "30d"))
    world.transfer(trouble.ral, trouble.desy, 5.0)
    # What is usual before another window is read anew.
    assert queries(f"/?wall=1&{views}") == 21
