"""The sender: leases, repeats, dead channels and what they missed, tests, addresses to confirm."""

from datetime import timedelta

import pytest

from sonar.alerting import sending, subscriptions
from sonar.alerting.channels import catalogue
from sonar.alerting.channels.base import Message
from sonar.models import Notification, Subscription
from tests.sonar.alarms import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    Plain,
    happens,
    incident,
    of_person,
    send_at,
    subscription,
)
from tests.sonar.test_outbox import post as post  # noqa: PLC0414 - the fixture
from tests.sonar.world import endpoint

pytestmark = pytest.mark.django_db
Kind, State = Notification.Kind, Notification.State


def test_a_dead_channel_is_tried_ever_more_seldom_and_delays_nobody(post):
    post.dead.add("dead")
    dead, _ = subscription("dead"), subscription("well")
    incident(endpoint("RAL"))
    tries = []
    for minute in range(0, 180, 1):
        before = Subscription.objects.get(pk=dead.pk).failures
        send_at(NOW + minute * MINUTE)
        if Subscription.objects.get(pk=dead.pk).failures > before:
            tries.append(minute)
    assert tries == [0, 1, 3, 7, 15, 31, 63, 123]
    assert [name for name, *_ in post.taken()] == ["well"]
    incident(endpoint("LANCS"), NOW + 181 * MINUTE)
    assert sending.claim(NOW + 200 * MINUTE).row.name == "well"  # those that answer come first


class Broken(Plain):
    def message(self, *_: object) -> Message:
        raise ZeroDivisionError


def test_an_error_of_sonar_itself_is_seen_and_delays_what_it_is_about_ever_longer(post):
    row = subscription("shift")
    incident(endpoint("RAL"))
    with pytest.raises(ZeroDivisionError):
        sending.send_next(Broken(), lambda: NOW)
    row.refresh_from_db()
    assert (row.failures, row.retry_at, row.leased_until) == (1, NOW + MINUTE, None)
    assert "because of an internal error" in row.answer
    assert not sending.send_next(Broken(), lambda: NOW)
    send_at(NOW + MINUTE)
    assert len(post.taken()) == 1


def test_what_cannot_be_sent_for_a_day_has_failed_and_a_digest_tells_of_it_once_it_can_again(post):
    post.dead.add("shift")
    row = subscription()
    for number in range(4):
        incident(endpoint(f"S{number}"), NOW)
    for hour in range(30):
        send_at(NOW + hour * HOUR)
    assert set(Notification.objects.filter(kind="incident").values_list("state", "answer")) == {
        ("failed", "shift answers 500.")
    }
    assert Subscription.objects.get(pk=row.pk).failing_since == NOW
    late = incident(endpoint("LATE"), NOW + 30 * HOUR)
    post.dead.clear()
    send_at(NOW + 32 * HOUR)
    assert sorted(post.taken()) == [
        ("shift", "1 incidents", ("opened",)), ("shift", "4 missed", ())
    ]  # fmt: skip
    assert late.notifications.get().state == "sent"
    kept = Subscription.objects.get(pk=row.pk)
    assert (kept.failures, kept.failing_since, kept.retry_at) == (0, None, None)


def test_a_sender_that_died_is_followed_by_one_that_says_the_same_under_the_same_id(post):
    subscription()
    incident(endpoint("RAL"))
    first = sending.claim(NOW)  # and then it is no more
    said = Plain().message(first.row, first.rows, NOW)
    assert sending.claim(NOW + sending.LEASE - MINUTE) is None
    second = sending.claim(NOW + sending.LEASE)
    again = Plain().message(second.row, second.rows, NOW)
    assert (said.id, second.rows) == (again.id, first.rows)
    sending.arrived(second, again, "200 OK", NOW + sending.LEASE)
    sending.failed(first, "too late", NOW + sending.LEASE)  # the first was only slow
    assert Subscription.objects.get().failures == 0


def test_what_happens_while_a_message_is_sent_is_told_by_the_next_one(post):
    subscription()
    row = incident(endpoint("RAL"))
    claimed = sending.claim(NOW)
    happens(row, "closed", NOW + MINUTE)
    message = Plain().message(claimed.row, claimed.rows, NOW)
    sending.arrived(claimed, message, "200 OK", NOW + MINUTE)
    send_at(NOW + 2 * MINUTE)
    assert [kinds for *_, kinds in post.taken()] == [("closed",)]
    assert [row.event_types for row in Notification.objects.order_by("id")] == [
        ["opened"],
        ["closed"],
    ]


def test_a_test_is_sent_at_once_whatever_waits_and_says_what_was_answered(post):
    post.dead.add("shift")
    row = subscription(enabled=False)
    subscriptions.queue(row, Kind.TEST, NOW)
    subscriptions.queue(row, Kind.TEST, NOW)
    send_at(NOW)
    assert list(row.notifications.values_list("state", "answer")) == [
        ("failed", "shift answers 500.")
    ]
    assert Subscription.objects.get().failures == 0
    post.dead.clear()
    subscriptions.queue(row, Kind.TEST, NOW + MINUTE)
    send_at(NOW + MINUTE)
    assert row.notifications.last().answer == "200 OK"


def test_what_may_be_sent_once_only_is_not_sent_again_after_a_stop(post, monkeypatch):
    once = catalogue.describe("webhook").__class__(
        "webhook", "", "", catalogue.describe("webhook").fields, is_sent_once=True
    )
    monkeypatch.setattr(catalogue, "describe", lambda name: once)
    subscription()
    incident(endpoint("RAL"))

    class Killed(BaseException):
        pass

    def die(*_: object) -> str:
        raise Killed

    monkeypatch.setattr(post, "send", die)
    with pytest.raises(Killed):
        sending.send_next(Plain(), lambda: NOW)
    assert sending.claim(NOW + DAY) is None
    assert Notification.objects.get().answer == sending.STOPPED


def test_another_address_is_told_nothing_until_its_owner_opened_the_link(post):
    row = of_person("anna", address="anna@lab.example", confirmed_at=None)
    assert "anna@lab.example" in subscriptions.confirm_or_ask(row, NOW)
    incident(endpoint("RAL"))
    send_at(NOW)
    assert list(row.notifications.values_list("kind", "state")) == [("confirmation", "sent")]
    token, bob = subscriptions.token_of(row), of_person("bob").owner
    assert subscriptions.confirm(token, bob) is None
    assert subscriptions.confirm(token[:-1], row.owner) is None
    assert subscriptions.confirm(token, row.owner) == row
    incident(endpoint("LANCS"), NOW + HOUR)
    assert row.notifications.filter(kind="incident").count() == 1
    row.address = "other@lab.example"
    row.save()
    assert subscriptions.confirm(token, row.owner) is None
    assert "less than an hour ago" in subscriptions.confirm_or_ask(row, NOW + 59 * MINUTE)


def test_old_deliveries_are_forgotten_and_what_waits_is_not(post):
    from sonar.alerting import outbox

    subscription()
    row = incident(endpoint("RAL"))
    send_at(NOW)
    happens(row, "worse", NOW + MINUTE)
    outbox.drop_expired(NOW + timedelta(days=91), 90)
    assert list(Notification.objects.values_list("state", flat=True)) == ["waiting"]


def test_without_its_settings_nothing_is_sent_and_a_sentence_says_what_is_missing(post, settings):
    settings.SONAR_URL = ""
    row = subscription()
    incident(endpoint("RAL"))
    send_at(NOW)
    assert Subscription.objects.get(pk=row.pk).answer == catalogue.NO_URL
