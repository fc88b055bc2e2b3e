"""Which conditions a time range, a filter, a link or a site has, and when they were assessed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matrix.answers.conditions import reading
from matrix.query.filters import Filter
from matrix.store import registry
from sonar.models import Assessment, Condition, Endpoint, SizeClass
from sonar.notation.windows import Window
from tests.conditions import at, stored_condition
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
TYPES = Condition.Type
SECOND = timedelta(seconds=1)
MINUTE = 60 * SECOND


@pytest.mark.parametrize(
    ("end", "is_now"),
    [(HOUR, True), (0 * HOUR, True), (-SECOND, True), (-2 * MINUTE, True),
     (-2 * MINUTE - SECOND, False)],
)  # fmt: skip
def test_a_range_is_now_if_it_ends_within_two_assessments(end: timedelta, is_now: bool):
    window = Window(NOW - 9 * HOUR, NOW + end)
    assert reading.is_now(window, NOW) is is_now
    assert reading.state_moment(window, NOW) == (NOW if is_now else window.end)


def test_nothing_changes_when_a_range_is_over(small_world: World):
    lasting = stored_condition(source=small_world.ral, since=5 * HOUR)
    over = stored_condition(destination=small_world.desy, since=8 * HOUR, ended=7 * HOUR)
    new = stored_condition(source=small_world.desy, since=30 * SECOND, confirmed=False)
    for end in (NOW + MINUTE, NOW, NOW - SECOND, NOW - MINUTE):
        judgement = reading.read_window(Window(at(9 * HOUR), end))
        assert judgement.conditions == [new, lasting, over], end
        assert judgement.open == [new, lasting] == reading.read_open(NOW).conditions, end
        assert judgement.confirmed == [lasting, over]
        assert judgement.unconfirmed == [new]
    then = reading.read_window(Window(at(9 * HOUR), at(7 * HOUR) - MINUTE))
    assert then.conditions == then.open == [over]


def test_results_are_doubtful_while_a_confirmed_condition_of_the_grid_is_open(
    small_world: World,
):
    assert reading.read_open(NOW).doubtful is None
    stored_condition(TYPES.FAILING, confirmed=False, since=2 * HOUR)
    assert reading.read_open(NOW).doubtful is None
    slow = stored_condition(TYPES.SLOW, since=HOUR)
    stored_condition(TYPES.SILENT, since=3 * HOUR, ended=2 * HOUR)
    assert reading.read_open(NOW).doubtful == slow
    assert reading.read_window(Window(at(9 * HOUR), NOW)).doubtful == slow
    assert reading.read_window(Window(at(9 * HOUR), at(HOUR) - MINUTE)).doubtful is None
    # Whatever else is chosen.
    none = reading.of_pairs([])
    assert reading.read_open(NOW, none).doubtful == slow


def test_filters_choose_conditions_by_their_members(small_world: World):
    ral, glasgow, desy, scratch = small_world.endpoints
    within_uk = stored_condition(source=ral, destination=glasgow, since=HOUR)
    within_desy = stored_condition(source=desy, destination=scratch, since=2 * HOUR)
    to_desy = stored_condition(destination=desy, since=3 * HOUR, links=[(glasgow, desy)])
    grid = stored_condition(TYPES.SLOW, since=4 * HOUR)
    places = registry.read_places(registry.read_versions())
    for filters, conditions in (
        ([], [within_uk, within_desy, to_desy, grid]),
        ([("cloud", "UK")], [within_uk, to_desy, grid]),
        ([("source_site", "Glasgow")], [to_desy, grid]),
        ([("source_site", "RAL")], [within_uk, grid]),
        ([("source_cloud", "DE"), ("destination_cloud", "DE")], [within_desy, grid]),
        ([("mover", "fake")], [within_uk, within_desy, to_desy, grid]),
    ):
        chosen = reading.members_q([Filter(*each) for each in filters], places)
        assert reading.read_open(NOW, chosen).conditions == conditions, filters


def test_links_have_what_they_are_members_of_and_a_site_what_is_of_it(
    small_world: World, django_assert_num_queries
):
    ral, glasgow, desy, scratch = small_world.endpoints
    own = stored_condition(source=ral, destination=glasgow, since=HOUR)
    source = stored_condition(TYPES.SLOW, source=ral, since=2 * HOUR, links=[(ral, desy)])
    of_desy = stored_condition(site=desy.site, since=3 * HOUR)
    stored_condition(TYPES.SLOW, source=scratch, since=4 * HOUR)
    grid = stored_condition(TYPES.SLOW, since=5 * HOUR)
    link = reading.of_pairs([(ral.id, glasgow.id), (glasgow.id, ral.id)])
    with django_assert_num_queries(1):
        assert own in reading.read_open(NOW).conditions
    with django_assert_num_queries(2):
        assert reading.read_open(NOW, link).conditions == [own, grid]
    assert reading.read_open(NOW, reading.of_pairs([(ral.id, desy.id)])).conditions == [
        source, of_desy, grid,
    ]  # fmt: skip


def test_as_of_is_the_oldest_assessment_which_may_be_late(small_world: World):
    assert Endpoint.objects.count() == 4
    judgement = reading.read_open(NOW)
    assert (judgement.as_of, judgement.is_late) == (None, False)
    for name, age in (("large", MINUTE), ("small", 3 * MINUTE)):
        size_class = SizeClass.objects.get(name=name)
        Assessment.objects.create(size_class=size_class, assessed_at=NOW - age)
    judgement = reading.read_open(at(5 * HOUR))
    assert (judgement.as_of, judgement.is_late) == (NOW - 3 * MINUTE, False)
    Assessment.objects.filter(size_class__name="small").update(
        assessed_at=NOW - 3 * MINUTE - SECOND
    )
    assert reading.read_open(NOW).is_late
