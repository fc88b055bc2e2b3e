"""The whole of a compared matrix in one sentence: of all links, and of a choice of them."""

import random
import re
from datetime import timedelta
from itertools import permutations

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client
from scipy import stats

from matrix.answers.comparison import all_links
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.together import Together
from sonar.models import Transfer
from tests.matrix import responses, world
from tests.matrix.responses import statements, words
from tests.matrix.world import NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)
COMPARED = "window=24h&compare=previous"


@pytest.fixture
def tested(small_world) -> World:
    """All links of three endpoints over nine days, those from RAL at 0.7 in the last one."""
    draws, added = random.Random(11), world.Transfers()
    ends = small_world.ral, small_world.glasgow, small_world.desy
    for number, (source, destination) in enumerate(permutations(ends, 2)):
        for day in range(9):
            for test in range(4 + number % 3):
                rate = (number + 1) * draws.lognormvariate(0, 0.1)
                rate *= 0.7 if source == small_world.ral and not day else 1
                ago = day * DAY + (test + 0.5) * DAY / 7
                added.add(source, destination, rate, ago=ago)
    added.store()
    return small_world


def of(text: str) -> Together | None:
    return all_links.grid_together(grid.build(MatrixQuery.from_params(QueryDict(text)), NOW), NOW)


def said(client: Client, text: str) -> str:
    html = responses.html(client, f"/?{text}", follow=True)
    sentence = re.findall(r'<p class="together">(.*?)</p>', html, re.DOTALL)
    return " ".join(words(sentence[0]).split()) if sentence else ""


def by_hand(source: str = "") -> tuple[float, int, int]:
    """Return the factor of the last day against the one before, and the tests of both."""
    end = NOW.replace(second=0) + timedelta(minutes=1)
    links: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
    for row in Transfer.objects.filter(source__name__startswith=source).values():
        age = end - row["started_at"]
        if age <= 2 * DAY:
            sides = links.setdefault((row["source_id"], row["destination_id"]), ([], []))
            sides[age > DAY].append(row["bytes"] / row["seconds"])
    counts = np.array([[len(side) for side in sides] for sides in links.values()])
    inflation = np.pi / 2 - np.where(counts % 2, 0.68 / counts, 2.25 / (counts + 2))
    weights = 1 / (inflation / counts).sum(axis=1)
    logs = [np.log(np.median(own) / np.median(other)) for own, other in links.values()]
    return float(np.exp(np.average(logs, weights=weights))), *counts.sum(axis=0).tolist()


def test_all_links_together_stand_above_the_matrix(client, tested):
    factor, own, other = by_hand()
    found = of(COMPARED)
    assert found.ratio == pytest.approx(factor, rel=1e-6)
    assert (found.links, found.ok, found.other_ok) == (6, own, other)
    expected = r"6 links with tests on both sides, combined: 0\.\d+× \(0\.\d+–[01]\.\d+\), [a-z ]+"
    assert re.fullmatch(
        rf"{expected}: {own} tests now and {other} before\.", said(client, COMPARED)
    )


def test_a_choice_of_links_is_put_together_by_itself(client, tested):
    factor, own, other = by_hand("RAL_")
    text = f"{COMPARED}&source_site=RAL&destination_site=Glasgow&destination_site=DESY"
    found = of(text)
    assert found.ratio == pytest.approx(factor, rel=1e-6)
    assert (found.links, found.ok, found.other_ok, found.kind) == (2, own, other, "slower")
    counts = f"slower: {own} tests now and {other} before."
    assert re.fullmatch(rf"2 links .*combined: 0\.[67]\d*× \(.*\), {counts}", said(client, text))


def test_cells_of_several_links_have_the_same_whole(client, tested):
    assert of(f"{COMPARED}&rows=site&columns=site") == of(COMPARED)
    assert of(f"{COMPARED}&rows=tier&columns=site&source_site=RAL") == of(
        f"{COMPARED}&source_site=RAL"
    )
    assert said(client, f"{COMPARED}&rows=cloud&columns=cloud").startswith("6 links with tests")


@pytest.mark.parametrize(
    "text",
    [
        "window=24h",
        "compare=reverse",
        "compare.source_site=RAL",
        "source_site=RAL&compare.source_site=DESY",
        "from=2020-01-01&to=2020-01-02&compare=previous",
    ],
)
def test_nothing_is_said_where_there_is_no_whole(client, tested, text):
    assert said(client, text) == ""


def test_of_other_sizes_the_links_themselves_tell(tested):
    draws, added = random.Random(12), world.Transfers()
    ends = tested.ral, tested.glasgow, tested.desy
    logs = {}
    for source, destination in permutations(ends, 2):
        factor = draws.lognormvariate(0, 0.4)
        for test in range(5):
            added.add(source, destination, 30 * factor, ago=(test + 1) * DAY / 7, size="small")
            added.add(source, destination, 60.0, ago=(test + 1) * DAY / 7, size="medium")
        logs[source, destination] = np.log(factor / 2)
    added.store()
    found = of("size=small&window=24h&compare.size=medium")
    test = stats.ttest_1samp(list(logs.values()), 0)
    assert found.p == pytest.approx(test.pvalue, rel=1e-4)
    bounds = tuple(np.exp(test.confidence_interval()))
    assert (found.low, found.high) == pytest.approx(bounds, rel=1e-4)


def test_the_sentence_costs_one_query_however_much_there_is(client, tested):
    def queries(text: str) -> int:
        responses.html(client, f"/?{text}")
        built = grid.build(MatrixQuery.from_params(QueryDict(text)), NOW, whole=True)
        return len(statements(all_links.sentence, built, NOW))

    assert queries(COMPARED) == 1
    assert queries("window=24h&compare=reverse") == 0
