"""The door of incidents: how one opens, changes, merges and closes, and what people decide."""

from datetime import timedelta
from threading import Thread

import pytest
from django.contrib.auth.models import User
from django.db import connection

from sonar.alerting import decisions
from sonar.alerting.decisions import DecisionError
from sonar.alerting.incidents import CALM, LOCK, hold
from sonar.models import HeldLevel, Incident, IncidentEvent, Version
from sonar.people.roles import Role
from tests import found
from tests.accounts import account
from tests.found import FAILING, SLOW, evaluate
from tests.matrix.world import HOUR, NOW, World

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def into_desy(small_world: World) -> Incident:
    """Return an open incident: DESY receives slowly from RAL and Glasgow."""
    sources = [small_world.ral, small_world.glasgow]
    return found.opened(found.into(small_world.desy, sources))


def kinds(events: list[IncidentEvent]) -> list[str]:
    return [event.kind for event in events]


def standing(incident: Incident, cause: found.FoundCause) -> dict[int, found.FoundCause]:
    return {incident.pk: cause}


def test_it_opens_once_and_tells_what_matters_alone(into_desy: Incident, small_world: World):
    desy, others = small_world.desy, [small_world.ral, small_world.glasgow, small_world.scratch]
    same = found.into(desy, others[:2])
    assert kinds(evaluate(same, after=MINUTE)) == []
    assert kinds(evaluate(found.into(desy, others), after=2 * MINUTE)) == ["grew"]
    assert kinds(evaluate(found.into(desy, others, FAILING), after=3 * MINUTE)) == ["worse"]
    assert kinds(evaluate(found.into(desy, others), after=4 * MINUTE)) == ["better"]
    assert kinds(evaluate(found.into(desy, others[:1]), after=5 * MINUTE)) == ["shrank"]
    row = Incident.objects.get()
    assert (row.pk, row.opened_at, row.links) == (into_desy.pk, NOW, 1)
    assert list(IncidentEvent.objects.values_list("kind", flat=True)) == [
        *("opened", "grew", "worse", "better", "shrank"),
    ]


def test_its_links_have_rows_from_when_until_when(into_desy: Incident, small_world: World):
    ral, glasgow, desy = small_world.ral, small_world.glasgow, small_world.desy
    evaluate(found.into(desy, [ral]), after=MINUTE)
    mixed = found.cause("destination", [found.bad_link(ral, desy, FAILING)], destination_id=desy.pk)
    evaluate(mixed, after=2 * MINUTE)
    rows = into_desy.members.order_by("id").values_list("source", "condition", "until", "rate")
    assert list(rows) == [
        (ral.pk, SLOW, NOW + 2 * MINUTE, 20e6),
        (glasgow.pk, SLOW, NOW + MINUTE, 20e6),
        (ral.pk, FAILING, None, None),
    ]


def test_links_become_a_part_of_what_explains_them(small_world: World):
    ral, glasgow, desy, scratch = small_world.endpoints
    links = [found.of_link(source, desy) for source in (ral, glasgow)]
    evaluate(*links, found.of_link(desy, scratch))
    events = evaluate(found.into(desy, [ral, glasgow]), found.of_link(desy, scratch), after=MINUTE)
    assert kinds(events) == ["opened", "merged", "merged"]
    whole = events[0].incident
    assert [event.values["into"] for event in events[1:]] == [whole.pk] * 2
    parts = Incident.objects.filter(merged_into=whole)
    assert {(part.closed_at, part.level) for part in parts} == {(NOW + MINUTE, "link")}
    assert not whole.members.filter(until__isnull=False)
    # A link that is slow now, too, is explained: nobody is called for it.
    standing_on = standing(whole, found.into(desy, [ral, glasgow]))
    late = found.of_link(scratch, desy)
    assert kinds(evaluate(late, after=2 * MINUTE, standing=standing_on)) == []
    # But for one that fails, which is worse than slow.
    fails = found.of_link(scratch, desy, FAILING)
    assert kinds(evaluate(fails, after=3 * MINUTE, standing=standing_on)) == ["opened"]


def test_a_wider_cause_takes_over_the_incident_of_its_part(into_desy: Incident, small_world: World):
    ends = {"source_id": small_world.desy.pk, "destination_id": small_world.desy.pk}
    members = [found.bad_link(small_world.ral, small_world.desy)]
    (event,) = evaluate(found.cause("endpoint", members, **ends), after=MINUTE)
    assert (event.kind, event.incident.pk, event.values["was"]) == (
        *("cause", into_desy.pk),
        "destination",
    )
    site = found.cause("site", members, site_id=small_world.desy.site_id)
    assert kinds(evaluate(site, after=2 * MINUTE)) == ["cause"]
    grid = found.cause("grid", links=30, of_links=40)
    (opened, merged) = evaluate(grid, after=3 * MINUTE)
    assert (opened.kind, merged.kind, merged.incident.pk) == ("opened", "merged", into_desy.pk)
    assert Incident.objects.get(closed_at=None).level == "grid"


def test_the_grid_explains_nothing_that_was_called_before_it_had_begun(
    into_desy: Incident, small_world: World
):
    grid = found.cause("grid", links=30, of_links=40)
    later = found.FoundCause(**vars(grid) | {"began_at": NOW + HOUR})
    assert kinds(evaluate(later, after=2 * HOUR)) == ["opened"]
    assert Incident.objects.filter(closed_at=None).count() == 2


def test_it_closes_after_a_calm_hour_and_goes_on_if_it_comes_back_within_a_day(
    into_desy: Incident, small_world: World
):
    cause = found.into(small_world.desy, [small_world.ral])
    assert kinds(evaluate(after=MINUTE)) == []
    # A hiccup of the calm begins it anew.
    assert kinds(evaluate(cause, after=CALM)) == ["shrank"]
    assert kinds(evaluate(after=CALM + MINUTE)) == []
    assert kinds(evaluate(after=2 * CALM)) == []
    assert kinds(evaluate(after=2 * CALM + MINUTE)) == ["closed"]
    row = Incident.objects.get()
    assert (row.closed_at, row.clear_since) == (NOW + 2 * CALM + MINUTE, NOW + CALM + MINUTE)
    assert row.members.latest("until").until == row.clear_since
    events = evaluate(cause, after=20 * HOUR)
    assert (kinds(events), events[0].incident.pk) == (["reopened"], row.pk)
    evaluate(after=21 * HOUR)
    assert kinds(evaluate(after=23 * HOUR)) == ["closed"]
    later = found.FoundCause(**vars(cause) | {"began_at": NOW + 47 * HOUR})
    events = evaluate(later, after=48 * HOUR)
    assert (kinds(events), events[0].incident.pk != row.pk) == (["opened"], True)


def test_levels_are_held_while_a_link_is_bad_and_let_go_afterwards(small_world: World):
    ral, glasgow, desy, _ = small_world.endpoints
    first, second = (found.bad_link(source, desy).whose for source in (ral, glasgow))
    hold({first: 100.0, second: 90.0}, NOW)
    hold({first: 50.0, second: 90.0}, NOW + HOUR)
    assert HeldLevel.objects.get(source=ral).rate == 100.0
    hold({second: 90.0}, NOW + HOUR)
    assert list(HeldLevel.objects.values_list("source", flat=True)) == [glasgow.pk]
    hold({}, NOW + 48 * HOUR)
    row = HeldLevel.objects.get()
    assert row.until == NOW + 48 * HOUR + timedelta(days=28)
    hold({second: 90.0}, NOW + 49 * HOUR)
    assert HeldLevel.objects.get().until is None
    HeldLevel.objects.update(until=NOW + 50 * HOUR)
    hold({}, NOW + 51 * HOUR)
    assert not HeldLevel.objects.exists()


def test_what_changes_nothing_raises_no_version(into_desy: Incident, small_world: World):
    def version() -> tuple[int, int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT value, 0 FROM sonar_version WHERE name = 'incidents'")
            return cursor.fetchone()

    cause = found.into(small_world.desy, [small_world.ral, small_world.glasgow])
    levels = {found.bad_link(small_world.ral, small_world.desy).whose: 1.0}
    hold(levels, NOW)
    before = version()
    evaluate(cause, after=MINUTE)
    hold(levels, NOW + MINUTE)
    assert version() == before
    evaluate(after=MINUTE)
    assert version() > before
    assert Version.objects.filter(name="incidents").exists()


@pytest.mark.parametrize("write", ["evaluation", "decision"])
def test_whoever_writes_events_waits_for_the_other_so_their_ids_are_in_order(
    small_world: World, write: str
):
    """What another transaction commits later has a later id: readers behind an id miss none."""
    if write == "evaluation":
        evaluate(found.of_link(small_world.ral, small_world.desy))
    else:
        ends = {"source": small_world.ral, "destination": small_world.desy}
        facts = {"condition": SLOW, "links": 1, "of_links": 1, "sizes": ["large"]}
        times = {"began_at": NOW, "opened_at": NOW}
        row = Incident.objects.create(level="link", **ends, **facts, **times)
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
    events = IncidentEvent.objects.exclude(by=None).values_list("kind", "by__username", "text")
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
        (lambda row, user: decisions.note(row, user, NOW, " "), "text", "A note has a text"),
        (lambda row, user: decisions.note(row, user, NOW, "x" * 1001), "text", "not 1001"),
        (lambda row, user: decisions.accept(row, user, NOW, ""), "text", "Say why"),
        (
            lambda row, user: decisions.assign(
                row, user, NOW, User(username="gone", is_active=False)
            ),
            "assignee",
            "not active",
        ),
    ],
)
def test_what_cannot_be_decided_says_why_and_changes_nothing(
    into_desy: Incident, decide, parameter: str, sentence: str
):
    with pytest.raises(DecisionError, match=sentence) as refused:
        decide(into_desy, account(Role.OPERATOR))
    assert refused.value.parameter == parameter
    assert kinds(list(into_desy.events.all())) == ["opened"]


def test_the_new_normal_is_expected_from_then_on_and_closes_the_incident(
    into_desy: Incident, small_world: World
):
    ral, desy, anna = small_world.ral, small_world.desy, account(Role.OPERATOR, name="anna")
    hold({found.bad_link(ral, desy).whose: 100e6}, NOW)
    decisions.accept(into_desy, anna, NOW + MINUTE, "new firewall")
    rows = HeldLevel.objects.order_by("source").values_list("rate", "by__username", "note")
    assert list(rows) == [(20e6, "anna", "new firewall")] * 2
    row = Incident.objects.get()
    assert (row.closed_at, row.members.filter(until=None).count()) == (NOW + MINUTE, 0)
    # What is slower again afterwards is something new, of a link, too.
    link = found.of_link(ral, desy)
    again = found.FoundCause(**vars(link) | {"began_at": NOW + HOUR})
    assert kinds(evaluate(again, after=2 * HOUR)) == ["opened"]
    with pytest.raises(DecisionError, match="closed already"):
        decisions.acknowledge(into_desy, anna, NOW)
    assert decisions.note(into_desy, anna, NOW, "still a note").kind == "note"
    fails = found.opened(found.of_link(small_world.glasgow, ral, FAILING), at=NOW + 3 * HOUR)
    with pytest.raises(DecisionError, match="Only a rate"):
        decisions.accept(fails, anna, NOW, "so what")


def test_operators_decide_and_admins_of_a_site_for_its_incidents(
    into_desy: Incident, small_world: World
):
    desy, ral = small_world.desy.site, small_world.ral.site
    link = Incident(level="link", source=small_world.ral, destination=small_world.glasgow)
    grid, of_site = Incident(level="grid"), Incident(level="site", site=ral)
    operator, reader = account(Role.OPERATOR), account(Role.READER)
    of_desy = account(Role.SITE_ADMIN, desy, name="of-desy")
    of_ral = account(Role.SITE_ADMIN, ral, name="of-ral")
    may = {
        user.username: [
            decisions.may_decide(user, each) for each in (into_desy, link, grid, of_site)
        ]
        for user in (operator, reader, of_desy, of_ral)
    }
    assert list(may.values()) == [
        [True] * 4,
        [False] * 4,
        [True, False, False, False],
        [False, True, False, True],
    ]
