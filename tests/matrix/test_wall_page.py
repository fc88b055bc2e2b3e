"""The wall as HTML: what is wrong and since when, large; and what is left without a script."""

from datetime import timedelta
from itertools import permutations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.pages.matrix.page import LINES, shares
from tests.conditions import TYPES, assessed_at, stored_condition
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
    stored_condition(TYPES.FAILING, source=ral, destination=glasgow, since=5 * HOUR)
    stored_condition(TYPES.SLOW, source=glasgow, destination=ral, since=5 * HOUR)
    return small_world


def wall(client: Client, path: str = "/?wall=1") -> Page:
    return responses.page(client, path)


def test_it_says_what_is_wrong_first_and_lists_it_with_since_when(client, trouble):
    page = wall(client)
    # Since when is said by the lists, which name the same ones first.
    assert page.texts("h1 .failing") == ["RAL_DATADISK to Glasgow_DATADISK fails"]
    assert page.texts("h1 .slower") == ["Glasgow_DATADISK to RAL_DATADISK runs at 0.40×"]
    assert "Failing from RAL_DATADISK to Glasgow_DATADISK 5 h" in page
    assert "Slower than usual from Glasgow_DATADISK to RAL_DATADISK 0.40×" in page
    assert "10 tests, since 20 Nov 07:00 UTC" in page


def test_one_row_stands_for_an_endpoint_and_nothing_unconfirmed_is_there(client, small_world):
    ral, glasgow, desy, scratch = small_world.endpoints
    world.transfer(ral, glasgow, 10.0)
    stored_condition(TYPES.FAILING, destination=scratch)
    stored_condition(TYPES.FAILING, source=desy, destination=ral, confirmed=False)
    page = wall(client)
    assert page.texts("h1 .failing") == ["DESY_SCRATCHDISK fails as destination"]
    assert page.texts(".wall-lists .ends") == ["DESY_SCRATCHDISK as destination"]
    assert "nconfirmed" not in page


def test_doubtful_measurements_are_what_is_largest(client, trouble):
    stored_condition(TYPES.SLOW, since=6 * HOUR)
    page = wall(client)
    sentence = "Results have been doubtful since 20 Nov 06:00 UTC"
    assert page.texts("h1 .doubtful")[0].startswith(sentence)
    assert page.texts(".wall-lists .failing") == []


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
    for source, destination in permutations(small_world.endpoints, 2):
        stored_condition(TYPES.FAILING, source=source, destination=destination)
    page = wall(client)
    shown = len(page.parts(".wall-lists .failing li"))
    assert 1 < shown < 12
    assert f"{shown} of 12" in page
    assert "and 9 more" in page.part("h1")


def test_a_link_that_failed_a_few_times_is_not_in_the_heading(client, small_world):
    for hours in range(3):
        transfer(small_world.ral, small_world.glasgow, None, ago=hours * HOUR)
    assessed_at()
    heading = wall(client).part("h1")
    assert "cannot be assessed" in heading
    assert heading.parts(".failing") == []


def test_several_views_are_counted_and_each_is_a_link(client, trouble):
    page = wall(client, "/?wall=1&views=size=small&views=&every=15s&view=2")
    assert "2 of 2, 15 s each" in page
    assert page.parts('[data-every="15"]')
    first = "/?wall=1&views=size=small&views=&every=15s"
    assert page.links("a[data-view]") == [first, f"{first}&view=2"]
    assert page.part("#leave")["href"] == "/"
    assert "Mean rate of large-file transfers" in page


def test_one_click_turns_through_all_sizes(client, trouble):
    response = client.get(wall(client, "/?window=24h&wall=1").link("Rotate through all sizes"))
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

    assert queries("/?window=30d&wall=1") == 19
    views = "&".join(f"views=window={name}" for name in ("1h", "6h", "30d"))
    world.transfer(trouble.ral, trouble.desy, 5.0)
    # What is usual before another window is read anew.
    assert queries(f"/?wall=1&{views}") == 19
