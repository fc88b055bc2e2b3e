"""Matrices of more rows than can be read: grouped, opened, and shown whole where that is asked."""

import json
from typing import Any

import pytest
from django.test import Client

from sonar.models import Endpoint, Site
from tests.conditions import stored_condition
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.responses import statements
from tests.matrix.world import HOUR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
CLOUDS = ("CA", "UK", "DE")


def ring(sites: int, endpoints: int) -> list[Endpoint]:
    """Test each endpoint to the next one; the first link is failing."""
    made = Site.objects.bulk_create(
        Site(name=f"SITE-{number:03}", cloud=CLOUDS[number % 3], tier=2) for number in range(sites)
    )
    named = [(f"E{number:03}_DATADISK", made[number % sites]) for number in range(endpoints)]
    ends = list(world.endpoints(named).values())
    with world.transfers() as some:
        for at, end in enumerate(ends):
            some.add(end, ends[(at + 1) % endpoints], 10.0, ago=9 * HOUR)
        for number in range(3):
            some.add(ends[0], ends[1], None, ago=(number + 1) * HOUR)
    stored_condition(source=ends[0], destination=ends[1])
    return ends


def payload(page: Page) -> dict[str, Any]:
    text = page.source.split('id="picture-data"')[1].split(">", 1)[1].split("</script>")[0]
    said: dict[str, Any] = json.loads(text)
    return said


def shape(client: Client, address: str) -> tuple[int, int]:
    drawn = payload(responses.page(client, address))
    return len(drawn["rows"]["names"]), len(drawn["columns"]["names"])


def notice(client: Client, address: str) -> str:
    page = responses.page(client, address)
    return " ".join(page.texts(".grouped") + page.texts(".ungrouped"))


def test_up_to_sixty_rows_each_has_its_own(client, db):
    ring(sites=30, endpoints=60)
    assert shape(client, "/") == (60, 60)
    assert "rouped" not in notice(client, "/")


@pytest.mark.parametrize(("sites", "by", "groups"), [(31, "site", 31), (61, "cloud", 3)])
def test_more_are_grouped_by_site_and_of_more_sites_by_cloud(client, db, sites, by, groups):
    ring(sites, endpoints=61)
    assert shape(client, "/") == (groups, groups)
    assert notice(client, "/").startswith(f"Grouped by {by}, because there are 61 rows.")


def test_an_address_that_says_what_rows_are_is_obeyed_and_kept(client, db):
    ring(sites=31, endpoints=61)
    assert shape(client, "/?rows=endpoint") == (61, 61)
    assert notice(client, "/?rows=endpoint").startswith("All 61 rows are shown.")
    assert client.get("/?rows=endpoint&columns=endpoint")["Location"] == "/?rows=endpoint"
    assert shape(client, "/?rows=cloud&columns=cloud") == (3, 3)
    page = responses.page(client, "/")
    assert "/?rows=endpoint" in page.links()
    # Its own controls say that it is grouped, and do not make that a choice.
    assert "by site" in page.part("#controls").words
    assert "/?window=24h" in page.links()
    shown = responses.page(client, "/?rows=endpoint")
    assert "/?window=24h&rows=endpoint" in shown.links()
    assert "/" in shown.links(".ungrouped a")


def test_scripts_get_all_rows_as_ever(client, db):
    ring(sites=31, endpoints=61)
    assert len(responses.answer(client, "/api/v1/matrix/")["sources"]) == 61


def test_a_group_opens_in_plain_links_against_all_others(client, db):
    ring(sites=61, endpoints=122)
    page = responses.page(client, "/")
    links = page.links("#groups a")
    assert links[:3] == ["/?source_cloud=CA", "/?source_cloud=DE", "/?source_cloud=UK"]
    assert links[3:] == [link.replace("source", "destination") for link in links[:3]]
    # CA has 42 endpoints, and each of them one partner.
    assert shape(client, links[0]) == (42, 42)
    # Two clouds have 82 endpoints, but only 41 sites.
    assert shape(client, "/?source_cloud=CA&source_cloud=UK") == (41, 41)
    labels = payload(page)["open"]["labels"]
    assert labels["destination"]["UK"] == "/?destination_cloud=UK"


def test_links_stay_what_is_counted_and_listed(client, db):
    ring(sites=31, endpoints=61)
    page = responses.page(client, "/")
    assert "E000 to E001 fails" in page.part("h1").words
    assert "E000" in page.part("#rail").words
    assert "E001" in page.part("#rail").words
    counted = [one for one in payload(page)["figure"]["data"] if one.get("name") == "failing links"]
    assert [one["text"] for one in counted] == [["1"]]
    # What shows only few lines needs no groups.
    assert shape(client, "/?only=failing") == (1, 1)


def test_the_longer_side_alone_is_grouped_unless_both_directions_are_compared(client, db):
    first, _, *others = ring(sites=31, endpoints=62)
    with world.transfers() as some:
        for end in others:
            some.add(first, end, 10.0)
    asked = "/?source_site=SITE-000"
    assert shape(client, asked) == (2, 31)
    said = "Columns are grouped by site, because there are 2 rows and 61 columns."
    assert notice(client, asked).startswith(said)
    assert shape(client, f"{asked}&compare=reverse") == (1, 31)


def test_groups_take_one_statement_more(client, db):
    ring(sites=31, endpoints=61)
    for address in ("/", "/?rows=endpoint"):
        client.get(address)
    grouped, whole = (len(statements(client.get, address)) for address in ("/", "/?rows=endpoint"))
    assert grouped == whole + 1


def test_a_wall_is_grouped_too(client, db):
    ring(sites=31, endpoints=61)
    assert shape(client, "/?wall=1") == (31, 31)
    assert shape(client, "/?wall=1&rows=endpoint") == (61, 61)
