"""The door for conditions: what stays, what changes, what goes, and what may not be stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from matrix.assessment.assessing import joined, together
from sonar.models import (
    AssessedDay,
    Condition,
    ConditionLink,
    ConditionPart,
    Endpoint,
    SizeClass,
    Version,
)
from sonar.results import conditions
from sonar.results.conditions import (
    ConditionSubject,
    FoundPart,
    MemberLink,
    Recorded,
)
from tests.conditions import stored_condition
from tests.matrix.world import HOUR, NOW, World

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def part(
    world: World,
    since: float,
    ended: float | None = None,
    *,
    size: str = "large",
    type_: str = "failing",
    **values: Any,
) -> FoundPart:
    """Return a part of a condition of RAL as a source that began so many hours before NOW."""
    members = [MemberLink(world.ral.id, end.id, 40e6) for end in world.endpoints[1:]]
    found: dict[str, Any] = {
        "size_class_id": SizeClass.objects.get(name=size).id,
        "subject": ConditionSubject("source", world.ral.id, None, None, type_),
        "since": NOW - since * HOUR,
        "since_low": NOW - (since + 1) * HOUR,
        "since_high": NOW - since * HOUR,
        "confirmed_at": None,
        "ended_at": None if ended is None else NOW - ended * HOUR,
        "factor": None,
        "factor_low": None,
        "factor_high": None,
        "links": 3,
        "of_links": 3,
        "shown_at": NOW - since * HOUR,
        "tests": 5,
        "failed": 5,
        "members": members,
    }
    return FoundPart(**found | values)


def record(*parts: FoundPart, begin: timedelta = DAY, now: timedelta = timedelta()) -> Recorded:
    """Record parts of all size classes that were judged from so long before NOW on."""
    names = dict(SizeClass.objects.values_list("id", "name"))
    site_of = dict(Endpoint.objects.values_list("id", "site_id"))
    begins = dict.fromkeys(names, NOW - begin)
    earlier = conditions.earlier_parts(parts, begins)
    own = joined(parts, earlier, names, site_of)
    return conditions.record(own, begins, partial(together, names=names), NOW + now)


def version() -> int:
    return sum(Version.objects.filter(name="incidents").values_list("value", flat=True))


def test_what_is_found_again_keeps_its_id_and_when_it_was_seen(small_world: World):
    assert record(part(small_world, 6)) == (1, 0, 0)
    first = Condition.objects.get()
    link_ids = set(ConditionLink.objects.values_list("id", flat=True))
    sure = part(small_world, 5.5, confirmed_at=NOW, tests=9, failed=8)
    assert record(sure, now=HOUR) == (0, 1, 0)
    row = Condition.objects.get()
    assert (row.id, row.seen_at) == (first.id, NOW)
    assert (row.since, row.confirmed_at) == (NOW - 5.5 * HOUR, NOW)
    stored = row.parts.get()
    assert (stored.tests, stored.failed, stored.since) == (9, 8, row.since)
    # Its links are the same, and are not written again.
    assert set(ConditionLink.objects.values_list("id", flat=True)) == link_ids
    assert record(part(small_world, 5.5, 1, confirmed_at=NOW), now=2 * HOUR) == (0, 1, 0)
    row.refresh_from_db()
    assert (row.ended_at, row.seen_at) == (NOW - HOUR, NOW)


def test_what_has_no_moment_in_common_is_another_condition(small_world: World):
    earlier, later = part(small_world, 20, 12), part(small_world, 6)
    record(earlier)
    assert record(later) == (1, 0, 1)
    assert record(earlier) == (1, 0, 1)


def test_what_differs_in_nothing_that_is_shown_makes_no_answer_new(
    small_world: World, django_assert_num_queries
):
    slow = {"factor": 0.41, "factor_low": 0.357, "factor_high": 0.471, "type_": "slow"}
    same = part(small_world, 6, **slow)
    record(same)
    before = version()
    # One statement reads what is stored; the others are of this file.
    with django_assert_num_queries(1 + 2):
        assert record(same) == (0, 0, 0)
    more = slow | {"factor": 0.411, "tests": 7}
    assert record(part(small_world, 6, **more)) == (0, 0, 0)
    assert version() == before
    assert ConditionPart.objects.get().factor == 0.411
    row = Condition.objects.get()
    assert (row.factor, row.factor_low, row.factor_high) == (0.41, 0.36, 0.47)
    assert record(part(small_world, 6, **slow | {"factor": 0.43})) == (0, 1, 0)
    assert version() > before


def test_members_that_change_are_written_again(small_world: World):
    record(part(small_world, 6))
    fewer = part(small_world, 6).members[:2]
    record(part(small_world, 6, members=fewer, links=2))
    assert ConditionLink.objects.count() == 2
    other = [member._replace(baseline=50e6) for member in fewer]
    record(part(small_world, 6, members=other, links=2))
    assert set(ConditionLink.objects.values_list("baseline", flat=True)) == {50e6}
    assert Condition.objects.get().links == 2


def test_size_classes_are_one_condition_while_they_overlap(small_world: World):
    record(part(small_world, 20, 12), part(small_world, 8))
    assert Condition.objects.count() == 2
    first, second = Condition.objects.order_by("since")
    # Another class says that it lasted in between: now both are one, the first.
    bridge = part(small_world, 19, 7, size="small")
    assert record(part(small_world, 20, 12), part(small_world, 8), bridge) == (0, 1, 1)
    row = Condition.objects.get()
    assert row.id in (first.id, second.id)
    assert (row.since, row.ended_at) == (NOW - 20 * HOUR, None)
    assert row.size_classes == ["small", "large"]
    assert row.parts.count() == 3
    assert ConditionLink.objects.filter(part__condition=row).count() == 9
    # And without it they are two again.
    assert record(part(small_world, 20, 12), part(small_world, 8)) == (1, 1, 0)
    assert [each.parts.count() for each in Condition.objects.all()] == [1, 1]
    assert ConditionLink.objects.count() == 6


def test_parts_of_one_condition_need_not_overlap_all_others(small_world: World):
    long = part(small_world, 20, 5)
    record(long, part(small_world, 19, 15, size="small"), part(small_world, 10, 8, size="small"))
    row = Condition.objects.get()
    assert (row.since, row.ended_at) == (long.since, long.ended_at)
    # One that begins as another ends is another one.
    assert record(long, part(small_world, 5, 2, size="small")) == (1, 1, 0)


def test_one_that_ends_where_another_begins_to_last_are_never_open_both(small_world: World):
    """Of one open condition there come two, the later one open, whichever keeps the row."""
    record(part(small_world, 20))
    assert record(part(small_world, 20, 10), part(small_world, 9)) == (1, 1, 0)
    assert record(part(small_world, 20)) == (0, 1, 1)
    assert record(part(small_world, 20, 12), part(small_world, 2)) == (1, 1, 0)
    assert record() == (0, 0, 2)


def test_other_types_and_subjects_are_other_conditions(small_world: World):
    slow = part(small_world, 6, type_="slow")
    subject = ConditionSubject("destination", None, small_world.ral.id, None, "failing")
    as_destination = replace(part(small_world, 6), subject=subject)
    assert record(part(small_world, 6), slow, as_destination) == (3, 0, 0)
    assert record(slow, as_destination) == (0, 0, 1)


def test_what_the_judged_days_cannot_change_stays(small_world: World):
    old, recent = part(small_world, 40 * 24, 35 * 24), part(small_world, 32 * 24, 27 * 24)
    record(old, recent, begin=50 * DAY)
    assert Condition.objects.count() == 2
    # It ended more than 28 days before the first day that was judged again.
    assert record(begin=2 * DAY) == (0, 0, 1)
    assert Condition.objects.get().since == old.since
    # But a part that overlaps it in time belongs to it.
    long = part(small_world, 36 * 24, size="small")
    assert record(long, begin=2 * DAY) == (0, 1, 0)
    row = Condition.objects.get()
    assert (row.since, row.ended_at, row.parts.count()) == (old.since, None, 2)


def test_only_classes_that_were_judged_are_replaced(small_world: World):
    record(part(small_world, 6), part(small_world, 6, size="small"))
    names = dict(SizeClass.objects.values_list("id", "name"))
    large = SizeClass.objects.get(name="large").id
    merge = partial(together, names=names)
    assert conditions.record([], {large: NOW - DAY}, merge, NOW) == (0, 1, 0)
    assert Condition.objects.get().size_classes == ["small"]


def test_many_subjects_at_once_are_put_together_as_few_are(small_world: World):
    ends = [end.id for end in small_world.endpoints]
    kinds = [("link", one, other, None) for one in ends for other in ends if one != other]
    kinds += [("source", end, None, None) for end in ends]
    parts = [
        replace(part(small_world, 6), subject=ConditionSubject(*kind, type_))
        for kind in kinds
        for type_ in ("failing", "slow", "fast")
    ]
    assert len(parts) > conditions.FEW_SUBJECTS
    assert record(*parts) == (len(parts), 0, 0)
    assert record(*(replace(each, ended_at=NOW) for each in parts)) == (0, len(parts), 0)


def test_forgetting_deletes_what_ended_before_the_results_that_are_kept(small_world: World):
    record(part(small_world, 60 * 24, 50 * 24), part(small_world, 45 * 24), begin=70 * DAY)
    large = SizeClass.objects.get(name="large")
    for days in (40, 41):
        day = (NOW - days * DAY).date()
        AssessedDay.objects.create(size_class=large, day=day, until=NOW, version="", digest="")
    before = version()
    assert conditions.forget(NOW, 55) == 0
    assert version() == before
    assert conditions.forget(NOW, 40) == 1
    assert Condition.objects.get().ended_at is None
    assert AssessedDay.objects.get().day == (NOW - 40 * DAY).date()


BAD: Sequence[tuple[str, dict[str, Any]]] = (
    ("condition_begins_within_its_bounds", {"since_low": NOW}),
    ("condition_begins_within_its_bounds", {"since_high": NOW - 7 * HOUR}),
    ("condition_ends_after_it_begins", {"ended_at": NOW - 7 * HOUR}),
    ("condition_factor_is_within_its_interval", {"factor": 0.5}),
    (
        "condition_factor_is_within_its_interval",
        {"factor": 0.5, "factor_low": 0.6, "factor_high": 0.7},
    ),
    ("condition_links_are_of_its_subject", {"links": 4, "of_links": 3}),
    ("condition_has_the_ends_of_its_scope", {"scope": "destination"}),
    ("condition_has_the_ends_of_its_scope", {"scope": "link"}),
    ("condition_has_the_ends_of_its_scope", {"scope": "grid"}),
    ("condition_has_a_site_if_of_one", {"scope": "site", "source": None}),
    ("condition_type_is_known", {"type": "odd"}),
)


@pytest.mark.parametrize(("name", "values"), BAD)
def test_the_database_names_what_is_wrong_with_a_condition(
    small_world: World, name: str, values: dict[str, Any]
):
    stored_condition(source=small_world.ral)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Condition.objects.update(**values)


def test_a_subject_has_one_open_condition_of_a_type(small_world: World):
    stored_condition(source=small_world.ral)
    stored_condition("slow", source=small_world.ral)
    stored_condition(source=small_world.ral, ended=HOUR)
    with pytest.raises(IntegrityError, match="condition_open_once"), transaction.atomic():
        stored_condition(source=small_world.ral)


def test_parts_and_links_have_rules_of_their_own(small_world: World):
    stored_condition(source=small_world.ral)
    for rows, name, values in (
        (ConditionPart, "conditionpart_failed_tests_are_tests", {"failed": 1000}),
        (ConditionPart, "conditionpart_ends_after_it_begins", {"ended_at": NOW - 7 * HOUR}),
        (ConditionLink, "conditionlink_baseline_is_positive", {"baseline": 0}),
    ):
        with pytest.raises(IntegrityError, match=name), transaction.atomic():
            rows.objects.update(**values)


def of_link(world: World, since: float, ended: float | None = None, **values: Any) -> FoundPart:
    """Return a part of the link from RAL to Glasgow, of small files."""
    subject = ConditionSubject("link", world.ral.id, world.glasgow.id, None, "failing")
    members = [MemberLink(world.ral.id, world.glasgow.id, 30e6)]
    own = {"size": "small", "subject": subject, "links": 1, "of_links": 1, "members": members}
    return part(world, since, ended, **own | values)


def test_a_part_of_it_that_another_class_shows_belongs_to_it(small_world: World):
    record(part(small_world, 6), of_link(small_world, 5))
    row = Condition.objects.get()
    assert (row.scope, row.source_id, row.links, row.size_classes) == (
        "source",
        small_world.ral.id,
        3,
        ["small", "large"],
    )
    assert row.confirmed_at == NOW - 5 * HOUR  # two size classes show it
    small = row.parts.get(size_class__name="small")
    assert small.members.count() == 1
    assert record(part(small_world, 6), of_link(small_world, 5)) == (0, 0, 0)
    # It stays one when the larger one is over, and none of its tests are judged any more.
    over = part(small_world, 6, ended=2)
    record(over, of_link(small_world, 5))
    later = 30 * DAY
    assert record(of_link(small_world, 5), begin=timedelta(days=-29), now=later) == (0, 0, 0)
    assert Condition.objects.get().parts.count() == 2
    # And at once, it gives the same.
    Condition.objects.all().delete()
    record(over, of_link(small_world, 5), begin=timedelta(days=-29), now=later)
    assert Condition.objects.get().parts.count() == 2


@pytest.mark.parametrize(
    "other",
    [
        {"size": "large"},  # what a class tells apart stays apart
        {"since": 40},  # it began earlier
        {"type_": "slow"},
        {"since": 20, "ended": 10},
    ],
)
def test_what_does_not_belong_to_it_is_a_condition_of_its_own(
    small_world: World, other: dict[str, Any]
):
    values = {"since": 5} | other
    type_ = str(values.pop("type_", "failing"))
    subject = ConditionSubject("link", small_world.ral.id, small_world.glasgow.id, None, type_)
    record(part(small_world, 6), of_link(small_world, **values | {"subject": subject}))
    assert Condition.objects.count() == 2


def test_two_links_of_one_class_confirm_nothing(small_world: World):
    other = ConditionSubject(
        "link", small_world.ral.id, small_world.endpoints[2].id, None, "failing"
    )
    record(
        of_link(small_world, 5),
        of_link(small_world, 4, subject=other),
        part(small_world, 6, ended=1),
    )
    assert Condition.objects.get().confirmed_at == NOW - 5 * HOUR
    Condition.objects.all().delete()
    record(of_link(small_world, 5), of_link(small_world, 4, subject=other))
    assert set(Condition.objects.values_list("confirmed_at", flat=True)) == {None}
