"""The door of incidents: how one opens, changes, merges and closes, and what people decide."""

from datetime import timedelta
from threading import Thread

import pytest
from django.contrib.auth.models import User
from django.db import connection

from sonar.alerting import decisions
from sonar.alerting.decisions import DecisionError
from sonar.alerting.incidents import CALM, LOCK, follow
from sonar.alerting.subjects import sites_of
from sonar.models import (
    Condition,
    HeldLevel,
    Incident,
    IncidentEvent,
    Notification,
    SizeClass,
    Version,
)
from sonar.people import roles
from sonar.people.roles import Role
from tests import found
from tests.accounts import account
from tests.conditions import stored_condition
from tests.found import FAILING, SLOW, evaluate
from tests.matrix.world import HOUR, NOW, World
from tests.sonar.alarms import subscription

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def into_desy(small_world: World) -> Incident:
    """Return an open incident: DESY receives slowly from RAL and Glasgow."""
    sources = [small_world.ral, small_world.glasgow]
    return found.opened(found.into(small_world.desy, sources))


def types(events: list[IncidentEvent]) -> list[str]:
    return [event.type for event in events]


def test_it_opens_once_and_tells_what_matters_alone(into_desy: Incident, small_world: World):
    desy, others = small_world.desy, [small_world.ral, small_world.glasgow, small_world.scratch]
    assert types(evaluate(found.into(desy, others[:2]), after=MINUTE)) == []
    assert types(evaluate(found.into(desy, others), after=2 * MINUTE)) == ["grew"]
    condition = Condition.objects.get()
    for factor, links, type_ in (
        (0.25, 3, []),
        # Little by little it counts from what was told last.
        (0.31, 3, ["shrank"]),
        (0.21, 3, []),
        (0.19, 3, ["grew"]),
        (0.19, 2, ["shrank"]),
        (0.19, 0, ["shrank"]),
    ):
        Condition.objects.filter(pk=condition.pk).update(
            factor=factor, factor_low=0.1, factor_high=0.5, links=links
        )
        assert types(follow(NOW + 3 * MINUTE)) == type_
        row = Incident.objects.get()
        assert (row.factor, row.low, row.high, row.links) == (factor, 0.1, 0.5, links)
    assert (row.pk, row.opened_at, row.cause) == (into_desy.pk, NOW, condition)
    told = ["opened", "grew", "shrank", "grew", "shrank", "shrank"]
    assert list(IncidentEvent.objects.values_list("type", flat=True)) == told


def test_unconfirmed_and_fast_ones_open_nothing_and_each_confirmed_one_its_own(small_world: World):
    ral, glasgow, desy, _ = small_world.endpoints
    stored_condition(FAILING, source=ral, confirmed=False)
    stored_condition("fast", source=glasgow)
    assert follow(NOW) == []
    stored_condition(FAILING, destination=desy)
    stored_condition(SLOW, destination=desy)
    assert types(follow(NOW)) == ["opened", "opened"]
    rows = Incident.objects.order_by("id").values_list("scope", "type", "cause__type")
    assert set(rows) == {("destination", each, each) for each in (FAILING, SLOW)}
    Condition.objects.filter(confirmed_at=None).update(confirmed_at=NOW)
    assert types(follow(NOW + MINUTE)) == ["opened"]


def test_what_is_wrong_with_the_same_subject_now_goes_on_as_the_same_incident(
    into_desy: Incident, small_world: World
):
    desy, sources = small_world.desy, [small_world.ral, small_world.glasgow]
    assert types(evaluate(found.into(desy, sources, FAILING), after=3 * MINUTE)) == ["worse"]
    assert types(evaluate(found.into(desy, sources), after=4 * MINUTE)) == ["better"]
    # The judge found it again as another one, with the same figures.
    Condition.objects.all().delete()
    assert types(evaluate(found.into(desy, sources), after=5 * MINUTE)) == []
    row = Incident.objects.get()
    assert (row.pk, row.cause) == (into_desy.pk, Condition.objects.get())


def test_links_become_a_part_of_what_explains_them(small_world: World):
    ral, glasgow, desy, scratch = small_world.endpoints
    links = [found.of_link(source, desy) for source in (ral, glasgow)]
    evaluate(*links, found.of_link(desy, scratch))
    Condition.objects.filter(destination=desy).delete()
    events = evaluate(found.into(desy, [ral, glasgow]), found.of_link(desy, scratch), after=MINUTE)
    assert types(events) == ["opened", "merged", "merged"]
    whole = events[0].incident
    assert [event.values["into"] for event in events[1:]] == [whole.pk] * 2
    parts = Incident.objects.filter(merged_into=whole)
    assert {(part.closed_at, part.scope) for part in parts} == {(NOW + MINUTE, "link")}
    # What is a condition of its own is an incident of its own.
    late = found.of_link(scratch, desy, FAILING)
    both = found.into(desy, [ral, glasgow]), found.of_link(desy, scratch)
    assert types(evaluate(*both, late, after=2 * MINUTE)) == ["opened"]
    # One that is over closes, whatever explains the rest.
    assert types(evaluate(*both, after=3 * MINUTE)) == []
    assert types(evaluate(*both, after=3 * MINUTE + CALM)) == ["closed"]


def test_an_incident_goes_on_as_that_of_a_wider_or_narrower_subject(
    into_desy: Incident, small_world: World
):
    desy = small_world.desy
    subjects = [
        {"source": desy, "destination": desy}, {"site": desy.site}, {"source": desy},
    ]  # fmt: skip
    was = "destination"
    for minute, subject in enumerate(subjects, 1):
        Condition.objects.all().delete()
        (event,) = evaluate(found.Found(SLOW, subject), after=minute * MINUTE)
        assert (event.type, event.incident.pk, event.values["was"]) == ("cause", into_desy.pk, was)
        was = event.incident.scope
    assert was == "source"
    Condition.objects.all().delete()
    both = evaluate(found.Found(FAILING, {"site": desy.site}), after=4 * MINUTE)
    assert types(both) == ["cause", "worse"]
    # What began after the end of the other one is something new.
    evaluate(after=5 * MINUTE)
    later = found.Found(FAILING, {"source": desy}, began=NOW + 30 * MINUTE)
    assert types(evaluate(later, after=40 * MINUTE)) == ["opened"]


def test_while_measurements_are_doubtful_only_the_grid_opens_an_incident_and_others_stay(
    into_desy: Incident, small_world: World
):
    ral, glasgow, desy, _ = small_world.endpoints
    destination = found.into(desy, [ral, glasgow])
    during = found.of_link(ral, glasgow, began=NOW + 10 * MINUTE)
    evaluate(destination, during, after=15 * MINUTE)
    grid = found.Found(SLOW, began=NOW + 5 * MINUTE)
    another = found.of_link(glasgow, ral, FAILING, began=NOW + 10 * MINUTE)
    events = evaluate(grid, during, another, after=20 * MINUTE)
    assert types(events) == ["opened", "merged"]
    whole = Incident.objects.get(scope="grid")
    assert Incident.objects.get(scope="link").merged_into == whole
    # That of DESY began before. It stays open, though its condition seems to have ended.
    assert types(evaluate(grid, during, another, after=5 * HOUR)) == []
    into_desy.refresh_from_db()
    assert (into_desy.closed_at, into_desy.clear_since) == (None, None)
    # Once that is over, what is still wrong opens, and what was a part of it goes on.
    events = evaluate(during, another, after=6 * HOUR)
    assert sorted(types(events)) == ["closed", "opened", "reopened"]
    links = Incident.objects.filter(scope="link", closed_at=None, merged_into=None)
    assert links.count() == 2
    assert types(evaluate(during, another, after=6 * HOUR + CALM)) == ["closed"]


def test_one_whose_condition_late_results_took_back_is_a_part_of_the_doubtful_grid(
    into_desy: Incident,
):
    Condition.objects.all().delete()
    events = evaluate(found.Found(SLOW, began=NOW + 5 * MINUTE), after=20 * MINUTE)
    assert types(events) == ["opened", "merged"]
    assert events[1].incident == into_desy


def test_one_whose_condition_is_no_longer_certain_is_over_until_it_is_certain_again(
    into_desy: Incident,
):
    was = Condition.objects.get()
    Condition.objects.update(confirmed_at=None)
    assert types(follow(NOW + MINUTE)) == []
    into_desy.refresh_from_db()
    assert (into_desy.cause, into_desy.clear_since) == (None, NOW + MINUTE)
    Condition.objects.update(confirmed_at=NOW)
    assert types(follow(NOW + 2 * MINUTE)) == ["reopened"]
    into_desy.refresh_from_db()
    assert (into_desy.cause, into_desy.clear_since) == (was, None)


def test_it_closes_after_a_calm_hour_and_goes_on_if_it_comes_back_within_a_day(
    into_desy: Incident, small_world: World
):
    sources = [small_world.ral, small_world.glasgow]
    assert types(evaluate(after=MINUTE)) == []
    assert Incident.objects.get().clear_since == NOW + MINUTE
    # If it comes back meanwhile, the hour begins once more.
    again = found.into(small_world.desy, sources, began=NOW + 30 * MINUTE)
    assert types(evaluate(again, after=CALM)) == ["reopened"]
    assert types(evaluate(after=CALM + MINUTE)) == []
    assert types(evaluate(after=2 * CALM)) == []
    assert types(evaluate(after=2 * CALM + MINUTE)) == ["closed"]
    row = Incident.objects.get()
    assert (row.closed_at, row.clear_since) == (NOW + 2 * CALM + MINUTE, NOW + CALM + MINUTE)
    later = found.into(small_world.desy, sources, began=NOW + 19 * HOUR)
    events = evaluate(later, after=20 * HOUR)
    assert (types(events), events[0].incident.pk) == (["reopened"], row.pk)
    # The hour counts from the end, whenever that was seen.
    Condition.objects.filter(ended_at=None).update(ended_at=NOW + 21 * HOUR)
    assert types(follow(NOW + 23 * HOUR)) == ["closed"]
    later = found.into(small_world.desy, sources, began=NOW + 47 * HOUR)
    events = evaluate(later, after=48 * HOUR)
    assert (types(events), events[0].incident.pk != row.pk) == (["opened"], True)


def test_what_was_certain_long_ago_opens_and_notifies_nobody(small_world: World):
    subscription()
    old = found.into(small_world.desy, [small_world.ral], began=NOW - 30 * HOUR)
    events = evaluate(old, found.of_link(small_world.ral, small_world.glasgow))
    assert [(event.type, event.incident.scope) for event in events] == [
        ("opened", "destination"),
        ("opened", "link"),
    ]
    assert Notification.objects.get().incident == events[1].incident
    # If it becomes worse, they are notified all the same.
    evaluate(found.into(small_world.desy, [small_world.ral], FAILING), after=MINUTE)
    assert Notification.objects.filter(event_types=["worse"]).count() == 1


def test_an_incident_from_before_there_were_conditions_keeps_its_number_and_work(
    small_world: World,
):
    subscription()
    desy, anna = small_world.desy, account(Role.OPERATOR, name="anna")
    old = Incident.objects.create(
        scope="destination", destination=desy, type=SLOW, links=3, of_links=20,
        factor=0.25, began_at=NOW - 9 * HOUR, opened_at=NOW - 8 * HOUR, sizes=["large"],
        acknowledged_at=NOW - HOUR, acknowledged_by=anna, assignee=anna,
        muted_until=NOW + HOUR,
    )  # fmt: skip
    unexplained = Incident.objects.create(
        scope="source", source=small_world.ral, type=FAILING, links=1, of_links=3,
        began_at=NOW - 9 * HOUR, opened_at=NOW - 8 * HOUR, sizes=["large"],
    )  # fmt: skip
    three = [small_world.ral, small_world.glasgow, small_world.scratch]
    assert evaluate(found.into(desy, three)) == []
    row = Incident.objects.get(pk=old.pk)
    assert (row.cause, row.factor, row.began_at) == (Condition.objects.get(), 0.2, NOW - HOUR)
    assert (row.acknowledged_by, row.assignee, row.muted_until) == (anna, anna, NOW + HOUR)
    assert not Notification.objects.exists()
    # The one that no condition explains closes an hour later.
    (event,) = evaluate(found.into(desy, three), after=HOUR)
    assert (event.type, event.incident) == ("closed", unexplained)


def test_what_changes_nothing_raises_no_version(into_desy: Incident, small_world: World):
    def version() -> int:
        return Version.objects.get(name="incidents").value

    before = version()
    follow(NOW + MINUTE)
    assert version() == before
    Condition.objects.update(ended_at=NOW)
    changed = version()
    follow(NOW + 2 * MINUTE)
    assert version() > changed
    assert types(follow(NOW + CALM)) == ["closed"]


@pytest.mark.parametrize("write", ["assessment", "decision"])
def test_whoever_writes_events_waits_for_the_other_so_their_ids_are_in_order(
    small_world: World, write: str
):
    """What another transaction commits later has a later id: readers behind an id miss none."""
    if write == "assessment":
        evaluate(found.of_link(small_world.ral, small_world.desy))
    else:
        ends = {"source": small_world.ral, "destination": small_world.desy}
        facts = {"type": SLOW, "links": 1, "of_links": 1, "sizes": ["large"]}
        times = {"began_at": NOW, "opened_at": NOW}
        row = Incident.objects.create(scope="link", **ends, **facts, **times)
        decisions.note(row, account(Role.OPERATOR), NOW, "hello")
    taken: list[bool] = []

    def attempt() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", [LOCK])
            taken.append(cursor.fetchone()[0])
        connection.close()

    other = Thread(target=attempt)
    other.start()
    other.join()
    assert taken == [False]


def test_decisions_have_names_and_the_first_to_see_it_stays_the_one(into_desy: Incident):
    anna, bob = (account(Role.OPERATOR, name=name) for name in ("anna", "bob"))
    decisions.acknowledge(into_desy, anna, NOW)
    decisions.acknowledge(into_desy, bob, NOW + MINUTE, "me too")
    decisions.assign(into_desy, anna, NOW, bob)
    decisions.mute(into_desy, bob, NOW, NOW + HOUR)
    row = Incident.objects.get()
    assert (row.acknowledged_by, row.acknowledged_at, row.assignee) == (anna, NOW, bob)
    assert (row.is_muted(NOW), row.is_muted(NOW + HOUR)) == (True, False)
    decisions.unmute(into_desy, bob, NOW)
    decisions.assign(into_desy, anna, NOW, None)
    events = IncidentEvent.objects.exclude(by=None).values_list("type", "by__username", "text")
    assert list(events) == [
        ("acknowledged", "anna", ""),
        ("acknowledged", "bob", "me too"),
        ("assigned", "anna", ""),
        ("muted", "bob", ""),
        ("unmuted", "bob", ""),
        ("assigned", "anna", ""),
    ]
    row.refresh_from_db()
    assert (row.assignee, row.muted_until) == (None, None)


@pytest.mark.parametrize(
    ("decide", "parameter", "sentence"),
    [
        (lambda row, user: decisions.mute(row, user, NOW, NOW), "until", "in the future"),
        (
            lambda row, user: decisions.mute(row, user, NOW, NOW + timedelta(days=91)),
            "until",
            "at most 90 days",
        ),
        (lambda row, user: decisions.unmute(row, user, NOW), "incident", "not muted"),
        (lambda row, user: decisions.note(row, user, NOW, " "), "text", "A note must contain text"),
        (lambda row, user: decisions.note(row, user, NOW, "x" * 1001), "text", "1001 characters"),
        (lambda row, user: decisions.accept(row, user, NOW, ""), "text", "Give the reason"),
        (
            lambda row, user: decisions.assign(
                row, user, NOW, User(username="gone", is_active=False)
            ),
            "assignee",
            "not an active account",
        ),
    ],
)
def test_what_cannot_be_decided_says_why_and_changes_nothing(
    into_desy: Incident, decide, parameter: str, sentence: str
):
    with pytest.raises(DecisionError, match=sentence) as refused:
        decide(into_desy, account(Role.OPERATOR))
    assert refused.value.parameter == parameter
    assert types(list(into_desy.events.all())) == ["opened"]


def test_an_accepted_rate_is_the_baseline_from_then_on_and_closes_the_incident(
    into_desy: Incident, small_world: World
):
    ral, desy, anna = small_world.ral, small_world.desy, account(Role.OPERATOR, name="anna")
    size = SizeClass.objects.get(name="large")
    HeldLevel.objects.create(source=ral, destination=desy, size_class=size, rate=1.0, since=NOW)
    decisions.accept(into_desy, anna, NOW + MINUTE, "new firewall")
    rows = HeldLevel.objects.order_by("source").values_list("rate", "by__username", "note")
    assert list(rows) == [(pytest.approx(20e6), "anna", "new firewall")] * 2
    assert Incident.objects.get().closed_at == NOW + MINUTE
    # Its condition may last until the judge has tests of the new level.
    assert types(follow(NOW + 2 * MINUTE)) == []
    # What is slower again afterwards is something new.
    again = found.of_link(ral, desy, began=NOW + HOUR)
    assert types(evaluate(again, after=2 * HOUR)) == ["opened"]
    with pytest.raises(DecisionError, match="is closed"):
        decisions.acknowledge(into_desy, anna, NOW)
    assert decisions.note(into_desy, anna, NOW, "still a note").type == "note"
    fails = found.opened(found.of_link(small_world.glasgow, ral, FAILING), at=NOW + 3 * HOUR)
    with pytest.raises(DecisionError, match="Only the rates of an incident of the type “slow”"):
        decisions.accept(fails, anna, NOW, "so what")


def test_operators_decide_and_admins_of_a_site_for_its_incidents(
    into_desy: Incident, small_world: World
):
    desy, ral = small_world.desy.site, small_world.ral.site
    link = Incident(scope="link", source=small_world.ral, destination=small_world.glasgow)
    grid, of_site = Incident(scope="grid"), Incident(scope="site", site=ral)
    operator, reader = account(Role.OPERATOR), account(Role.READER)
    of_desy = account(Role.SITE_ADMIN, desy, name="of-desy")
    of_ral = account(Role.SITE_ADMIN, ral, name="of-ral")
    may = {
        user.username: [
            roles.may(user, decisions.RIGHT, sites_of(each))
            for each in (into_desy, link, grid, of_site)
        ]
        for user in (operator, reader, of_desy, of_ral)
    }
    assert list(may.values()) == [
        [True] * 4,
        [False] * 4,
        [True, False, False, False],
        [False, True, False, True],
    ]
