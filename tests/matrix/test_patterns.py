"""What the trouble of a site has in common."""

from collections.abc import Iterable
from itertools import permutations

import pytest

from matrix.answers.site import reports
from matrix.answers.site.failures import Finding, findings
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Endpoint, Site
from tests.matrix import world
from tests.matrix.world import NOW, transfer

pytestmark = pytest.mark.django_db


@pytest.fixture
def five(db: None) -> list[Endpoint]:
    """Five Tier 2 sites called a to e."""
    return [
        world.endpoint(f"{name}_DATADISK", Site.objects.create(name=name, tier=2))
        for name in "abcde"
    ]


def found(name: str = "a") -> list[Finding]:
    return findings(reports.build(name, MatrixQuery(), NOW))


def sent(places: Iterable[Endpoint], rates: dict[str, float | None]) -> None:
    """Send once over every link; rates are by letters of its ends, `a*` from a, `*` for all."""
    with world.transfers() as some:
        for source, destination in permutations(places, 2):
            one, other = source.name[0], destination.name[0]
            keys = (one + other, f"{one}*", f"*{other}", "*")
            some.add(source, destination, next(rates[key] for key in keys if key in rates))


def test_nothing_stands_out_where_all_is_well_or_nothing_was_tested(five):
    assert found() == []
    sent(five, {"*": 10.0})
    assert found() == []


def test_it_fails_as_destination_only(five):
    sent(five, {"*a": None, "*": 10.0})
    (finding,) = found()
    assert finding.title == "Fails as destination, not as source."
    assert "with 4 of 4 sources; as source only with 0 of 4 destinations" in finding.sentence
    assert "free space" in finding.advice
    assert found("b")[0].title == "Fails as source on individual links."


def test_it_fails_as_source_only(five):
    sent(five, {"a*": None, "*": 10.0})
    (finding,) = found()
    assert finding.title == "Fails as source, not as destination."
    assert "with 4 of 4 destinations; as destination only with 0 of 4 sources" in finding.sentence


def test_it_fails_both_ways(five):
    sent(five, {"a*": None, "*a": None, "*": 10.0})
    (finding,) = found()
    assert finding.title == "Fails as source and as destination."
    assert "with 4 of 4 destinations and with 4 of 4 sources" in finding.sentence


def test_two_thirds_of_the_partners_are_most_of_them(five):
    sent(five, {"ba": None, "ca": None, "*": 10.0})
    assert found()[0].title == "Fails as destination on individual links."
    transfer(five[3], five[0], None)
    transfer(five[3], five[0], None)
    assert found()[0].title == "Fails as destination, not as source."


def test_single_links_are_named_with_what_else_fails_there(five):
    sent(five, {"*b": None, "ac": None, "*": 10.0})
    (finding,) = found()
    assert finding.title == "Fails as source on individual links."
    assert "with 2 of 4 destinations: to b (fails with 3 of 3 other sources), to c (fails" in (
        finding.sentence
    )
    assert "c (fails with 0 of 3 other sources)" in finding.sentence
    assert finding.advice.startswith("Most others work")


def test_of_few_partners_nothing_is_concluded(five):
    transfer(five[0], five[1], None)
    (finding,) = found()
    assert "1 of 1 destinations: to b (not tested with other sources)" in finding.sentence
    assert finding.advice.startswith("Too few partners")


def test_a_link_with_as_many_ok_as_failed_does_not_fail(five):
    sent(five, {"*": 10.0})
    transfer(five[0], five[1], None)
    assert found() == []


def test_it_is_slow_with_most_where_its_peers_are_twice_as_fast(five):
    sent(five, {"a*": 4.9, "*": 10.0})
    (finding,) = found()
    assert finding.title == "Slow as source with most destinations."
    assert "It sends to 4 of 4 destinations at less than half" in finding.sentence
    sent(five, {"a*": 5.3, "*": 10.0})
    assert found() == []


def test_it_is_slow_as_destination(five):
    sent(five, {"*a": 1.0, "*": 10.0})
    (finding,) = found()
    assert finding.title == "Slow as destination with most sources."


def test_slowness_is_judged_by_sites_of_the_same_tier(five):
    Site.objects.filter(name="a").update(tier=3)
    sent(five, {"a*": 1.0, "*": 10.0})
    assert found() == []
