"""The menu that compares: what it offers leads to what it says, without a script, too."""

import re
from urllib.parse import urlencode

import pytest
from django.test import Client

from tests.html import Part
from tests.matrix import responses, world
from tests.matrix.world import HOUR, World, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
PAGES = ["/", "/table/"]


def menu(client: Client, address: str) -> Part:
    return responses.page(client, address).part("#compare-menu")


def choices(client: Client, address: str) -> dict[str, str]:
    """Return where each of the links of the menu leads, by its words."""
    return {link.words: link["href"] for link in menu(client, address).parts("a[href]")}


def fields(client: Client, address: str) -> list[tuple[str, str]]:
    """Return what its form sends as it stands."""
    return menu(client, address).parts("form")[0].sent()


@pytest.fixture
def measured(small_world) -> World:
    for ago in (1, 2, 3, 25, 26, 27):
        for streams in (1, 4):
            made = world.profile(streams=streams)
            transfer(small_world.ral, small_world.glasgow, 10.0, ago=ago * HOUR, made=made)
    return small_world


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES)
def test_each_choice_takes_one_click_and_another_takes_it_away(client, measured, path):
    offered = choices(client, f"{path}?window=24h")
    assert offered == {
        "the 24 hours before": f"{path}?window=24h&compare=previous",
        "the same 24 hours a week earlier": f"{path}?window=24h&compare=week",
        "the 30 days before": f"{path}?window=24h&compare=month",
        "the opposite direction": f"{path}?window=24h&compare=reverse",
        "small files": f"{path}?window=24h&compare.size=small",
        "medium files": f"{path}?window=24h&compare.size=medium",
    }
    for label, url in offered.items():
        page = responses.page(client, url)
        assert "compared with" in page
        again = choices(client, url)
        assert again[label] == again["stop comparing"] == f"{path}?window=24h"
        assert page.links("a.chip") == [f"{path}?window=24h"]


def test_choices_stand_together(client, measured):
    offered = choices(client, "/?compare=previous&compare.size=small")
    assert offered["the opposite direction"] == (
        "/?compare=previous&compare=reverse&compare.size=small"
    )
    assert offered["the 7 days before"] == "/?compare.size=small"
    # A week before a week is what stands there already.
    assert not [label for label in offered if "a week earlier" in label]
    assert "the 30 days before" in offered
    assert not [url for url in menu(client, "/?window=30d").links() if "compare=month" in url]
    assert offered["medium files"] == "/?compare=previous&compare.size=medium"


@pytest.mark.parametrize(
    "text",
    [
        "compare=previous",
        "compare=month&compare=reverse",
        "compare=2026-11-01T00:00:00Z..2026-11-05T12:30:00Z",
        "window=24h&compare=week&compare=reverse&compare.size=small&compare.of=mean",
        "streams=4&compare.streams=1",
        "streams=4&compare.streams=",
        "source_cloud=UK&compare=previous&compare.source_cloud=DE",
        "streams=1&streams=4&compare=previous&compare.streams=4",
        "streams=!4&compare.streams=4",
    ],
)
@pytest.mark.parametrize("path", PAGES)
def test_the_form_sent_as_it_stands_asks_the_same(client, measured, path, text):
    response = client.get(f"{path}?{text}")
    here = response["Location"] if response.status_code == 302 else f"{path}?{text}"
    sent = urlencode(fields(client, here))
    response = client.get(f"{path}?{sent}")
    assert (response.status_code, response["Location"]) == (302, here)


def test_the_form_offers_the_ways_of_measuring_that_there_are(client, measured):
    shown = menu(client, "/").words.split("or compare with")[1]
    assert re.findall(r"streams\s+any, as in this view\s+1\s+4", shown)
    assert "mover" not in shown
    sent = [*fields(client, "/"), ("compare.streams", "4")]
    sent.remove(("compare.streams", ""))
    response = client.get(f"/?{urlencode(sent)}")
    assert response["Location"] == "/?compare.streams=4"
    assert "transfers only with streams 4" in responses.page(client, response["Location"])


def test_two_times_come_from_a_box(client, measured):
    sent = [pair for pair in fields(client, "/") if pair[0] != "compare"]
    sent.append(("compare", "2026-11-01 00:00..2026-11-05 12:30"))
    response = client.get(f"/?{urlencode(sent)}")
    assert response["Location"] == ("/?compare=2026-11-01T00:00:00Z..2026-11-05T12:30:00Z")


def test_another_size_changes_places_with_that_it_is_compared_with(client, measured):
    for path in PAGES:
        page = responses.page(client, f"{path}?compare.size=small")
        small, *_ = [link["href"] for link in page.parts("a[href]") if link.words == "small"]
        assert small == f"{path}?size=small&compare.size=large"
        assert client.get(small).status_code == 200


def test_no_direction_is_opposite_where_rows_and_columns_differ(client, measured):
    assert "the opposite direction" not in menu(client, "/?rows=site")
    assert "the opposite direction" in menu(client, "/?rows=site&columns=site")


def test_the_ratio_is_of_medians_or_of_means(client, measured):
    page = responses.page(client, "/?stat=p95&compare=previous")
    of_medians, means = page.parts("#show-menu ul")[0].links()
    assert of_medians == "/?stat=p95&compare=previous"
    # What was shown before is shown again once nothing is compared.
    assert means == "/?stat=p95&compare=previous&compare.of=mean"
    assert "Ratio of mean rates of large-file transfers" in responses.page(client, means)
