"""What differs from another time range: one answer, whichever page or call is asked.

What is slower, faster and failing now is test_agreement.

Histories are made here by Python's own generator of random numbers, with days that are slower for
all of a link's tests, levels that drift, gaps and failures; nothing of `make accuracy` is in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import permutations
from math import exp, log
from random import Random
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from sonar.models import Endpoint, Site
from sonar.notation.windows import format_time
from sonar.people import roles, tokens
from tests.accounts import account
from tests.matrix import world
from tests.matrix.responses import html, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
END = world.NOW.replace(second=0)
ASKED = f"from={format_time(END - DAY)}&to={format_time(END)}&compare=previous"
Link = tuple[str, str]
KINDS = ("slower", "faster", "failing")
# All links are asked for in one call.
WHOLE = "&page_size=1000"


@dataclass
class Sets:
    """The links that a page or call calls so."""

    slower: set[Link] = field(default_factory=set)
    faster: set[Link] = field(default_factory=set)
    failing: set[Link] = field(default_factory=set)

    def put(self, link: Link, *kinds: str) -> None:
        for kind in kinds:
            if kind in KINDS:
                getattr(self, kind).add(link)

    def of(self, chosen: Callable[[Link], bool]) -> Sets:
        return Sets(*({link for link in getattr(self, kind) if chosen(link)} for kind in KINDS))


def get(client: Client, path: str) -> Any:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def of_matrix(client: Client, filters: str = "") -> Sets:
    answer, sets = get(client, f"matrix/?{ASKED}{filters}&fields=change,state"), Sets()
    for row, source in enumerate(answer["sources"]):
        for column, destination in enumerate(answer["destinations"]):
            kinds = (answer["cells"][array][row][column] for array in ("change", "state"))
            sets.put((source["name"], destination["name"]), *kinds)
    return sets


def of_links(client: Client, filters: str = "") -> Sets:
    sets = Sets()
    for row in get(client, f"links/?{ASKED}{WHOLE}{filters}")["links"]:
        ends = row["source"]["name"], row["destination"]["name"]
        sets.put(ends, row["large"]["change"], row["large"]["state"])
    return sets


def of_site(client: Client, site: str) -> Sets:
    """A site says nothing of states while comparing: what fails is asked for elsewhere."""
    sets = Sets()
    compared = get(client, f"sites/{site}/?{ASKED}")["comparison"]
    for end in ("as_source", "as_destination"):
        for row in compared[end]["links"]:
            sets.put((row["source"], row["destination"]), row["change"])
    return sets


def of_causes(client: Client, ends: list[Endpoint]) -> Sets:
    """Return the links of all causes that are named."""
    sets, names = Sets(), [end.name for end in ends]
    for cause in get(client, f"causes/?{ASKED}")["changes"]:
        kind = "slower" if cause["factor"] < 1 else "faster"
        for link in permutations(names, 2):
            at = [link[0] == cause["source"], link[1] == cause["destination"]]
            if all(at) or (cause["scope"] != "link" and any(at)):
                sets.put(link, kind)
    return sets


def heading(client: Client, path: str) -> dict[str, int]:
    """Return the numbers that the heading of a page says, by kind."""
    (title,) = re.findall(r"<h1.*?</h1>", html(client, path, follow=True), re.DOTALL)
    text = words(title)
    found = {kind: re.search(rf"(\d+) (?:links? )?(?:was |were )?{kind}", text) for kind in KINDS}
    return {kind: int(match[1]) if match else 0 for kind, match in found.items()}


def register(count: int) -> list[Endpoint]:
    """Register endpoints, each at a site of its own; every third site is in another cloud."""
    sites = Site.objects.bulk_create(
        Site(name=f"S{number:02}", cloud="DE" if number % 3 else "UK") for number in range(count)
    )
    found = world.endpoints([(f"E{number:02}", site) for number, site in enumerate(sites)])
    return [found[name] for name in sorted(found)]


def history(chance: Random, ends: list[Endpoint]) -> Sets:
    """Make up results of days; return the links whose newest day is slower, faster, or fails."""
    days, tests = chance.choice([2, 2, 8, 20]), chance.choice([3, 4, 6])
    scatter, of_days = chance.choice([0.1, 0.2, 0.3]), chance.choice([0.0, 0.1])
    made = Sets()
    with world.transfers() as some:
        for source, destination in permutations(ends, 2):
            kind = chance.choices(["", "slower", "faster", "failing"], [88, 5, 4, 3])[0]
            made.put((source.name, destination.name), kind)
            own = scatter * exp(chance.gauss(0, 0.3))
            level, drift = chance.uniform(0, 4), chance.gauss(0, 0.01)
            factor = {"slower": 1 / 3, "faster": 2.5}.get(kind, 1.0)
            for day in range(days):
                of_day = level - drift * day + chance.gauss(0, of_days)
                for test in range(tests):
                    if chance.random() < 0.1:
                        continue  # a gap
                    failed = chance.random() < 0.03 or (kind == "failing" and not day)
                    rate = exp(of_day + own * heavy(chance)) * (1.0 if day else factor)
                    ago = (world.NOW - END) + DAY * day + timedelta(hours=(test + 0.5) * 24 / tests)
                    some.add(source, destination, None if failed else rate, ago=ago)
    return made


def heavy(chance: Random) -> float:
    """Draw of a distribution whose tails are those of t with 5 degrees of freedom, scatter 1."""
    return chance.gauss(0, 1) / (chance.gammavariate(2.5, 1 / 2.5) * 5 / 3) ** 0.5


# Grids of each size; with these seeds all lengths, rhythms and scatters of `history` occur.
GRIDS = {4: 18, 9: 9, 12: 4, 20: 5}


@pytest.mark.long
@pytest.mark.parametrize("count", GRIDS)
def test_every_page_and_call_gives_the_same_answer(client, count):
    chance = Random(GRIDS[count])
    ends = register(count)
    made, said = history(chance, ends), of_matrix(client)
    assert of_links(client) == said
    counts = {kind: len(getattr(said, kind)) for kind in KINDS}
    for path in ("/", "/?wall=1"):
        assert heading(client, f"{path}{'&' if '?' in path else '?'}{ASKED}") == counts
    # What a filter chooses is called what it is called among all.
    of_cloud = said.of(lambda link: int(link[0][1:]) % 3 == 0)
    assert of_matrix(client, "&source_cloud=UK") == of_cloud
    assert of_links(client, "&source_cloud=UK") == of_cloud
    for number in chance.sample(range(len(ends)), 2):
        of_one = said.of(lambda link, name=f"E{number:02}": name in link)
        assert of_site(client, f"S{number:02}") == Sets(of_one.slower, of_one.faster)
    # What changed by much is explained: by itself, or by one of its ends.
    explained = of_causes(client, ends)
    assert made.slower & said.slower <= explained.slower
    assert made.faster & said.faster <= explained.faster
    for source, destination in a_few(chance, said, ends):
        page = html(client, f"/links/{source}/{destination}/?{ASKED}", follow=True)
        (told,) = re.findall(r'<section id="comparison".*?</strong>', page, re.DOTALL)
        kinds = [kind for kind in KINDS[:2] if (source, destination) in getattr(said, kind)]
        assert re.findall(r"(?<!perhaps )(slower|faster) than", words(told)) == kinds


def a_few(chance: Random, said: Sets, ends: list[Endpoint]) -> Iterator[Link]:
    """Return a link of each kind, and one of all."""
    for kind in KINDS:
        yield from sorted(getattr(said, kind))[:1]
    source, destination = chance.sample(ends, 2)
    yield source.name, destination.name


TRIALS, LINKS, SLOWED, TESTS, SCATTER = 5, 342, 6, 6, 0.2


@pytest.mark.long
def test_six_links_at_a_third_are_found_among_342_by_a_day_of_six_tests(client):
    """Sent and asked by REST: of those at a third nearly all are found, and hardly any other."""
    user = account(name="script")
    roles.let_ingest(user)
    headers = {"authorization": f"Token {tokens.create(user, 'script', ['ingest'], 1)[1]}"}
    names = [end.name for end in register(19)]
    found, false = 0, 0
    for trial in range(TRIALS):
        chance = Random(1000 + trial)
        links = list(permutations(names, 2))
        slowed = set(chance.sample(links, SLOWED))
        moment = END - DAY * (10 * trial)
        send(client, headers, trial, [*made_up(chance, links, slowed, moment)])
        window = f"from={format_time(moment - DAY)}&to={format_time(moment)}&compare=previous"
        answer = get(client, f"links/?{window}{WHOLE}")
        assert answer["comparison"]["compared"] == LINKS
        said = {
            (row["source"]["name"], row["destination"]["name"])
            for row in answer["links"]
            if row["large"]["change"] == "slower"
        }
        found, false = found + len(said & slowed), false + len(said - slowed)
        false += answer["comparison"]["faster"]
    assert found >= 0.95 * TRIALS * SLOWED
    assert false <= 0.05 * (found + false)


def made_up(
    chance: Random, links: list[Link], slowed: set[Link], moment: Any
) -> Iterator[dict[str, Any]]:
    """Yield results of the day before a moment, and of the day before that."""
    for link in links:
        level = log(chance.uniform(2, 60))
        for day, test in ((day, test) for day in (0, 1) for test in range(TESTS)):
            slower = log(3) if link in slowed and not day else 0.0
            rate = exp(level - slower + chance.gauss(0, SCATTER))
            ago = timedelta(hours=24 * day + 24 * (test + chance.random()) / TESTS)
            yield {
                "source": link[0],
                "destination": link[1],
                "started_at": format_time(moment - ago),
                "seconds": 2000 / rate,
                "bytes": 2_000_000_000,
                "state": "done",
                "mover": "fts",
                "origin": "test",
            }


def send(client: Client, headers: dict[str, str], trial: int, rows: list[dict[str, Any]]) -> None:
    for first in range(0, len(rows), 1000):
        body = [
            row | {"id": str(UUID(int=(trial << 32) + first + number))}
            for number, row in enumerate(rows[first : first + 1000])
        ]
        answer = client.post(
            "/api/v1/transfers/", json.dumps(body), content_type="application/json", headers=headers
        )
        assert answer.status_code == 201, answer.content
