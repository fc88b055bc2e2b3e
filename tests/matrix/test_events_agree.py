"""Events that go on are what the matrix says of links now, before a search and after it."""

from itertools import permutations
from random import Random
from typing import Any

import pytest
from django.test import Client

from matrix.answers.changes.search import search_all
from sonar.models import Endpoint
from tests.matrix import world
from tests.matrix.responses import answer
from tests.matrix.test_one_answer import KINDS, WHOLE, Sets, history, register

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
# Of these the history has 20 days, enough for what is usual; grids of each size are among them.
SEEDS = (0, 9, 11, 25, 27, 38)


def now_by_matrix(client: Client) -> Sets:
    sets = Sets()
    for row in answer(client, f"/api/v1/links/?window=7d{WHOLE}")["links"]:
        large = row["large"]
        kind = "failing" if large["state"] == "failing" else large["level"]
        sets.put((row["source"]["name"], row["destination"]["name"]), kind)
    return sets


def now_by_events(client: Client, filters: str = "") -> list[dict[str, Any]]:
    url = f"/api/v1/events/?now=yes&certain=any&window=90d&size=large&page_size=1000{filters}"
    listed: list[dict[str, Any]] = answer(client, url)["events"]
    return listed


def links_of(event: dict[str, Any], ends: list[Endpoint]) -> set[tuple[str, str]]:
    """Return the links that an event is of: all of its endpoint, of its site, or of the grid."""
    own = {event["source"], event["destination"]} - {None}
    own |= {end.name for end in ends if end.site.name == event["site"]}
    links = set(permutations([end.name for end in ends], 2))
    if event["level"] == "link":
        return {(event["source"], event["destination"])}
    return {link for link in links if not own or own & {*link}}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_goes_on_is_what_the_matrix_says(client, seed):
    chance = Random(seed)
    ends = register([4, 5, 7, 9][seed % 4])
    history(chance, ends)
    said = now_by_matrix(client)
    of_links = Sets()
    for event in now_by_events(client):
        assert event["level"] == "link"
        of_links.put((event["source"], event["destination"]), event["kind"])
    assert of_links == said
    search_all(world.NOW)
    events = now_by_events(client)
    for kind in KINDS:
        told = [event for event in events if event["kind"] == kind]
        covered = {link for event in told for link in links_of(event, ends)}
        assert getattr(said, kind) <= covered
    failing = {
        (event["source"], event["destination"])
        for event in events
        if (event["kind"], event["level"]) == ("failing", "link")
    }
    assert failing <= said.failing
    # A link is one event of a kind and time, not one for each size class or search.
    keys = [
        (event["kind"], event["source"], event["destination"], event["since"]) for event in events
    ]
    assert len(keys) == len(set(keys))
