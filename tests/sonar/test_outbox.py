"""The outbox: who is called for which incident, when, how often, and what is told together."""

from collections.abc import Iterator
from datetime import time

import pytest

from sonar.alerting import decisions, outbox, sending, subscriptions
from sonar.alerting.channels import catalogue
from sonar.models import LastSent, Notification, Subscription
from tests.sonar.alarms import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    Post,
    happens,
    incident,
    of_person,
    send_at,
    subscription,
)
from tests.sonar.world import endpoint, three_endpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch, settings: object) -> Iterator[Post]:
    settings.SONAR_URL, settings.EMAIL_HOST = "https://sonar.example.org", "mail.example.org"
    made = Post()
    monkeypatch.setattr(catalogue, "load", lambda path: made)
    return made


def states() -> list[str]:
    return list(Notification.objects.order_by("id").values_list("state", flat=True))


def test_an_incident_calls_when_it_opens_gets_worse_and_is_over_and_not_for_what_lies_between(post):
    subscription()
    row = incident(endpoint("RAL"))
    send_at(NOW)
    for kind in ("grew", "shrank", "better", "merged", "cause", "acknowledged", "note"):
        happens(row, kind, NOW + MINUTE)
    happens(row, "worse", NOW + HOUR, type="failing")
    send_at(NOW + HOUR)
    happens(row, "closed", NOW + 2 * HOUR)
    send_at(NOW + 2 * HOUR)
    assert [kinds for *_, kinds in post.taken()] == [("opened",), ("worse",), ("closed",)]
    assert states() == ["sent"] * 3


def test_what_is_over_before_it_was_sent_is_told_in_one_message(post):
    subscription()
    row = incident(endpoint("RAL"))
    happens(row, "closed", NOW + MINUTE)
    send_at(NOW + MINUTE)
    assert post.taken() == [("shift", "1 incidents", ("opened", "closed"))]


def test_a_link_that_flaps_calls_once_a_day_and_three_times_in_all(post):
    subscription()
    row = incident(endpoint("RAL"))
    send_at(NOW)
    moment = NOW
    for _ in range(20):  # ten hours
        for kind in ("closed", "reopened"):
            moment += 15 * MINUTE
            happens(row, kind, moment)
            send_at(moment)
    assert [kinds for *_, kinds in post.taken()] == [("opened",), ("closed",)]
    send_at(moment + DAY)  # it stays as it is, and is told of once
    assert [kinds for *_, kinds in post.taken()] == [("reopened",)]
    happens(row, "closed", moment + 2 * DAY)
    send_at(moment + 2 * DAY)
    assert post.taken() == []


def test_a_wider_cause_calls_where_it_is_a_site_or_the_grid(post):
    subscription()
    end = endpoint("RAL")
    row = incident(end)
    send_at(NOW)
    wide = {"scope": "site", "destination": None, "site": end.site}
    happens(row, "cause", NOW + HOUR, **wide)
    send_at(NOW + HOUR)
    assert [kinds for *_, kinds in post.taken()] == [("opened",), ("cause",)]


def test_of_a_muted_incident_only_a_worse_state_is_told(post):
    subscription()
    row = incident(endpoint("RAL"))
    send_at(NOW)
    happens(row, "muted", NOW + MINUTE, muted_until=NOW + 5 * HOUR)
    happens(row, "closed", NOW + 2 * HOUR)
    happens(row, "reopened", NOW + 3 * HOUR)
    send_at(NOW + 3 * HOUR)
    assert [kinds for *_, kinds in post.taken()] == [("opened",)]
    happens(row, "worse", NOW + 4 * HOUR, type="failing")
    send_at(NOW + 4 * HOUR)
    assert [kinds for *_, kinds in post.taken()] == [("worse",)]


def test_what_is_sent_by_night_waits_for_the_morning_together_but_for_a_worse_state(post):
    night = {"quiet_from": time(22), "quiet_until": time(6)}
    subscription(**night)
    first, second, third = three_endpoints()
    rows = [incident(end) for end in (first, second)]
    worse = incident(third)
    happens(worse, "worse", NOW + MINUTE, type="failing")
    send_at(NOW + MINUTE)
    assert [kinds for *_, kinds in post.taken()] == [("opened", "worse")]
    send_at(NOW + 2 * HOUR - MINUTE)
    assert post.taken() == []
    send_at(NOW + 2 * HOUR)
    assert post.taken() == [("shift", "2 incidents", ("opened", "opened"))]
    assert {row.message for row in Notification.objects.filter(incident__in=rows)} != {None}


def test_a_digest_comes_once_a_day_and_beyond_the_cap_one_tells_the_rest(post):
    subscription("daily", digest_hour=7)
    subscription("capped", cap=2)
    rows = [incident(endpoint(f"S{number}"), NOW + number * MINUTE) for number in range(5)]
    send_at(NOW + 5 * MINUTE)
    assert post.taken() == [("capped", "1 incidents", ("opened",))] * 2
    happens(rows[4], "worse", NOW + 6 * MINUTE, type="failing")
    send_at(NOW + 6 * MINUTE)
    told = [(name, "1 incidents", ("opened", "worse")) for name in ("capped", "daily")]
    assert sorted(post.taken()) == told
    send_at(NOW + HOUR + 6 * MINUTE)
    assert post.taken() == [("capped", "2 incidents", ("opened",) * 2)]
    send_at(NOW + 3 * HOUR)
    assert post.taken() == [("daily", "4 incidents", ("opened",) * 4)]


def test_messages_of_an_hour_count_when_their_subscription_is_deleted(post):
    for number in range(4):
        moment = NOW + number * MINUTE
        row = of_person("ann", cap=2, address=f"ann+{number}@example.org")
        incident(endpoint(f"S{number}"), moment)
        send_at(moment)
        row.delete()
    assert len(post.taken()) == 2
    of_person("bob", address="ann@example.org", cap=2)  # another person has an own limit
    row = of_person("ann", cap=2)
    incident(endpoint("NEXT"), NOW + 5 * MINUTE)
    send_at(NOW + 5 * MINUTE)
    assert [name for name, *_ in post.taken()] == ["bob"]
    send_at(NOW + HOUR)
    assert [name for name, *_ in post.taken()] == ["ann"]


def test_three_messages_of_an_incident_are_all_that_a_person_gets_by_deleting(post):
    row = of_person("ann")
    told = incident(endpoint("RAL"))
    send_at(NOW)
    for hour in range(1, 6):
        row.delete()
        row = of_person("ann", title=f"again {hour}")
        happens(told, "worse", NOW + hour * HOUR)
        send_at(NOW + hour * HOUR)
    assert [kinds for *_, kinds in post.taken()] == [("opened",), ("worse",), ("worse",)]
    outbox.drop_expired(NOW + 27 * DAY, 90)
    happens(told, "worse", NOW + 27 * DAY)
    send_at(NOW + 27 * DAY)
    assert post.taken() == []
    outbox.drop_expired(NOW + 29 * DAY, 90)
    assert not LastSent.objects.exists()


def test_a_message_that_did_not_arrive_counts_once_it_does_and_while_it_is_sent(post):
    post.dead.add("ann")
    row = of_person("ann", cap=1)
    incident(endpoint("RAL"))
    send_at(NOW)
    assert not LastSent.objects.exists()
    post.dead.clear()
    claimed = sending.claim(NOW + MINUTE)
    row.delete()  # while it is sent
    of_person("ann", cap=1, title="again")
    incident(endpoint("LANCS"), NOW + 2 * MINUTE)
    send_at(NOW + 2 * MINUTE)
    sending.arrived(claimed, None, "200 OK", NOW + 2 * MINUTE)
    send_at(NOW + 3 * MINUTE)
    assert post.taken() == []


def test_a_person_is_told_once_whatever_they_subscribed_to_and_only_of_what_they_chose(post):
    ral, lancs, _ = three_endpoints()
    anna = of_person("anna")
    ral.site.admins.add(anna.owner)
    of_person("anna", title="own", scope="own")
    of_person("bob", title="own", scope="own")
    chosen = subscription("of RAL", scope="sites")
    chosen.sites.set([ral.site])
    subscription("failures", incident_types=["failing"])
    subscription("links", incident_scopes=["link"])
    incident(ral)
    send_at(NOW)
    assert [name for name, *_ in post.taken()] == ["anna", "of RAL"]
    incident(lancs, type="failing")
    send_at(NOW)
    assert [name for name, *_ in post.taken()] == ["anna", "failures"]
    anna.owner.is_active = False
    anna.owner.save()
    row = incident(endpoint("DESY"))
    assert not row.notifications.exists()


def test_who_was_never_told_that_it_opened_is_not_told_that_it_is_over(post):
    row = incident(endpoint("RAL"))
    subscription()
    happens(row, "closed", NOW + HOUR)
    assert states() == []


def test_a_merged_incident_that_was_not_told_yet_is_told_by_the_one_that_explains_it(post):
    subscription()
    row = incident(endpoint("RAL"))
    happens(row, "merged", NOW + MINUTE)
    send_at(NOW + MINUTE)
    assert post.taken() == []


def test_the_queue_of_a_channel_is_bounded_and_what_is_beyond_is_counted(post, monkeypatch):
    monkeypatch.setattr(outbox, "MOST_WAITING", 3)
    post.dead.add("shift")
    subscription()
    for number in range(8):
        incident(endpoint(f"S{number}"), NOW + number * MINUTE)
    waiting = Notification.objects.filter(state="waiting")
    assert (waiting.count(), sum(row.missed for row in waiting)) == (4, 5)


def test_decisions_announce_and_what_is_rolled_back_tells_nobody(post, django_user_model):
    subscription()
    row = incident(endpoint("RAL"))
    send_at(NOW)
    row.members.create(
        source=endpoint("LANCS"), destination=row.destination, size_class_id=1, type="slow",
        since=NOW, rate=1e6,
    )  # fmt: skip
    user = django_user_model.objects.create_user("anna")
    with pytest.raises(decisions.DecisionError):
        decisions.accept(row, user, NOW + HOUR, "")
    assert states() == ["sent"]
    decisions.accept(row, user, NOW + HOUR, "the new line")
    send_at(NOW + HOUR)
    assert [kinds for *_, kinds in post.taken()] == [("opened",), ("accepted",)]


def test_what_a_channel_needs_is_kept_encrypted_and_bound_to_its_subscription(post):
    row, other = subscription(), subscription("other")
    assert row.address == "https://hooks.example.org"
    assert b"secret-path" not in bytes(Subscription.objects.get(pk=row.pk).secret)
    other.secret = row.secret
    with pytest.raises(subscriptions.OtherKeyError):
        subscriptions.unseal(other)
