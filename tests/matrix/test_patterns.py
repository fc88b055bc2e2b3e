"""What the trouble of a site has in common, and errors of links by cause."""

from collections.abc import Iterable
from itertools import permutations

import pytest

from matrix.answers.site import reports
from matrix.answers.site.failures import Failures, Finding, findings, grouped
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Endpoint, Site, Transfer
from sonar.notation.windows import preset
from tests.matrix import world
from tests.matrix.world import HOUR, NOW, World, transfer

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


def failed(source: Endpoint, destination: Endpoint, error: str, **how: object) -> Transfer:
    made = transfer(source, destination, None, **how)  # type: ignore[arg-type]
    Transfer.objects.filter(id=made.id).update(error=error)
    return made


def groups(
    world: World, *filters: Filter, size: str = "large", window: str = "7d"
) -> tuple[list[Failures], int]:
    links = [(world.ral.id, world.glasgow.id), (world.ral.id, world.desy.id)]
    return grouped(links, size, preset(window, NOW), filters)


def test_what_differs_in_numbers_hosts_and_paths_is_one_group(small_world):
    failed(small_world.ral, small_world.glasgow, "503 at node01: /data/a1", ago=3 * HOUR)
    failed(small_world.ral, small_world.desy, "503 at node22: /data/b2", ago=2 * HOUR)
    last = failed(small_world.ral, small_world.desy, "503 at node3: /data/c", ago=HOUR)
    failed(small_world.ral, small_world.desy, "504 at node3: /data/c", ago=4 * HOUR)
    (first, second), total = groups(small_world)
    assert (first.count, first.links, first.where) == (3, 2, "destination")
    assert (first.error, first.newest) == ("503 at node3: /data/c", last.id)
    assert (first.first, first.last) == (NOW - 3 * HOUR, NOW - HOUR)
    assert (second.count, second.error, total) == (1, "504 at node3: /data/c", 4)


def test_only_failed_tests_of_these_links_size_and_window_count(small_world):
    failed(small_world.ral, small_world.glasgow, "counts")
    failed(small_world.glasgow, small_world.ral, "the other way")
    failed(small_world.ral, small_world.glasgow, "too small", size="small")
    failed(small_world.ral, small_world.glasgow, "too old", ago=200 * HOUR)
    transfer(small_world.ral, small_world.glasgow, None, state="lost")
    transfer(small_world.ral, small_world.glasgow, 5.0)
    found, total = groups(small_world)
    assert ([one.error for one in found], total) == (["counts"], 1)


def test_only_those_made_as_asked_count(small_world):
    for streams, error in ((1, "one stream"), (4, "four streams")):
        made = world.profile(streams=streams)
        failed(small_world.ral, small_world.glasgow, error, made=made)
    found, _ = groups(small_world, Filter("streams", "4"))
    assert [one.error for one in found] == ["four streams"]
    assert groups(small_world, Filter("streams", "9")) == ([], 0)


def test_ten_groups_at_most_are_returned_and_all_failures_counted(small_world):
    for number in range(12):
        failed(small_world.ral, small_world.glasgow, "abcdefghijkl"[number] * 3)
    found, total = groups(small_world)
    assert (len(found), total) == (10, 12)


def test_no_links_need_no_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert grouped([], "large", preset("7d", NOW), ()) == ([], 0)
