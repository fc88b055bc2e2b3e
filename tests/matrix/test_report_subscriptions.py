"""Report subscriptions: each gets every new report once; people add, try and cancel them."""

import smtplib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone
from pytest_django import Settings

from matrix.answers.report import messages, schedule
from matrix.plots.report.mail import ReportMail
from sonar.alerting import reports, sending, subscriptions
from sonar.models import Notification, Site, Subscription
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import world
from tests.matrix.sent import MARKUP
from tests.matrix.world import transfer
from tests.sonar.alarms import incident, of_person

pytestmark = pytest.mark.django_db

HOUR, DAY, WEEK = timedelta(hours=1), timedelta(days=1), timedelta(days=7)
# Week 46 is over, and its report is due at six.
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
DUE = MONDAY + 6 * HOUR
Kind, State = Notification.Kind, Notification.State


@pytest.fixture(autouse=True)
def by_mail(settings: Settings) -> None:
    settings.SONAR_URL = "https://sonar.example.org"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.org", "sonar@example.org"


@pytest.fixture
def titles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be built: mails have the titles of their reports."""
    monkeypatch.setattr(messages.build, "build", lambda question: question)
    monkeypatch.setattr(ReportMail, "of", lambda question, name: (question.title, "", ""))


def subscribed(name: str = "ann", report: str = "week", **values: Any) -> Subscription:
    values = {"confirmed_at": MONDAY - DAY, "title": f"{report}ly report"} | values
    return of_person(name, report=report, **values)


def pass_by(now: datetime) -> list[Any]:
    """Do what the beat asks for at this time; return the mails that were sent."""
    before = len(mail.outbox)
    schedule.queue_newest(now)
    words = messages.ReportWords(ReportMail.of)
    while sending.send_next(words, lambda: now, sending.REPORTS):
        pass
    return mail.outbox[before:]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the server of e-mail refuse everything until this is called."""
    take = EmailBackend.send_messages

    def refuse(*_: object) -> int:
        raise smtplib.SMTPServerDisconnected("it is full")

    monkeypatch.setattr(EmailBackend, "send_messages", refuse)
    return lambda: monkeypatch.setattr(EmailBackend, "send_messages", take)


def test_each_report_is_sent_once_at_six_and_the_first_follows_the_subscription(
    small_world, titles
):
    subscribed(), subscribed("bob", "month", confirmed_at=MONDAY)
    subscribed("late", confirmed_at=DUE + HOUR)
    assert pass_by(DUE - HOUR / 60) == []
    assert [sent.subject for sent in pass_by(DUE)] == [
        "[Sonar] Report on the whole grid, week 46, 9 Nov to 15 Nov 2026"
    ]
    assert pass_by(DUE) == pass_by(DUE + 5 * DAY) == []
    assert [sent.to for sent in pass_by(DUE + WEEK)] == [["ann@example.org"], ["late@example.org"]]
    subjects = [sent.subject for sent in pass_by(datetime(2026, 12, 1, 6, tzinfo=UTC))]
    assert subjects.count("[Sonar] Report on the whole grid, November 2026") == 1
    assert len(subjects) == 3  # and week 48 of the day before


def test_after_weeks_away_there_is_one_mail_of_the_newest_week(small_world, titles):
    row = subscribed()
    schedule.queue_newest(DUE)  # and then nothing sent it
    (sent,) = pass_by(DUE + 5 * WEEK)
    assert "week 51" in sent.subject
    assert pass_by(DUE + 5 * WEEK + HOUR) == []
    assert row.notifications.values_list("period", "state").get() == ("2026-W51", "sent")


def test_who_died_while_it_sent_is_followed_by_the_same_mail_under_the_same_id(small_world, titles):
    subscribed()
    schedule.queue_newest(DUE)
    dead = sending.claim(DUE, sending.REPORTS)
    first, _ = sending.deliver(dead, messages.ReportWords(ReportMail.of), DUE)
    assert [sent.subject for sent in pass_by(DUE + HOUR)] == [f"[Sonar] {first.subject}"]
    names = [sent.extra_headers["Message-ID"] for sent in mail.outbox]
    assert names == [f"<{first.id}@sonar.example.org>"] * 2
    assert mail.outbox[0].body == mail.outbox[1].body
    # The next week has an id of its own.
    assert pass_by(DUE + WEEK)[0].extra_headers["Message-ID"] != names[0]


def test_what_is_being_sent_stays_what_it_is(small_world, titles):
    row = subscribed()
    schedule.queue_newest(DUE)
    sending.claim(DUE + WEEK - HOUR / 60, sending.REPORTS)
    schedule.queue_newest(DUE + WEEK)
    assert row.notifications.get().period == "2026-W46"


def test_what_cannot_be_sent_is_tried_for_a_day_and_the_next_week_anew(
    small_world, titles, refusing
):
    row = subscribed()
    for hours in (0, 1, 12, 24, 25):
        pass_by(DUE + hours * HOUR)
    row.refresh_from_db()
    told = row.notifications.get()
    assert (told.state, told.ended_at) == (State.FAILED, DUE + 24 * HOUR)
    assert "it is full" in told.answer
    assert (row.failures, row.failing_since, row.retry_at) == (0, None, None)
    refusing()
    assert pass_by(DUE + 2 * DAY) == []
    assert len(pass_by(DUE + WEEK)) == 1


def test_nothing_is_sent_for_disabled_accounts_and_subscriptions(small_world, titles):
    gone, off, unconfirmed = (
        subscribed("gone"),
        subscribed("off"),
        subscribed("new", confirmed_at=None),
    )
    schedule.queue_newest(DUE)
    User.objects.filter(pk=gone.owner_id).update(is_active=False)
    Subscription.objects.filter(pk=off.pk).update(enabled=False)
    assert pass_by(DUE + HOUR) == []
    assert not unconfirmed.notifications.exists()
    User.objects.filter(pk=gone.owner_id).update(is_active=True)
    assert [sent.to for sent in pass_by(DUE + WEEK)] == [["gone@example.org"]]


def test_calls_and_reports_do_not_meet(small_world):
    row = subscribed()
    incident(small_world.ral, MONDAY)
    assert not row.notifications.exists()
    schedule.queue_newest(DUE)
    assert sending.claim(DUE) is None
    assert sending.claim(DUE, sending.REPORTS).row == row


def test_a_subscription_says_that_its_site_is_gone(small_world):
    row = subscribed(scope="sites")
    row.sites.set(Site.objects.filter(name="RAL"))
    assert schedule.subject(row) == "site RAL"
    row.sites.clear()
    assert pass_by(DUE) == []
    row.refresh_from_db()
    assert row.answer == messages.NO_SITE
    row.scope, row.cloud = "grid", "XX"
    row.save()
    assert pass_by(DUE + HOUR) == []
    assert "XX" in row.notifications.get().answer


def test_the_mail_has_the_report_in_text_and_html_with_links_and_nothing_to_load(small_world):
    for hours in range(3):
        transfer(small_world.ral, small_world.desy, 12.0, ago=(5 * 24 + hours) * HOUR)
    row = subscribed(scope="sites", title=f"report {MARKUP}")
    row.sites.set(Site.objects.filter(name="RAL"))
    (sent,) = pass_by(DUE)
    ((html, kind),) = sent.alternatives
    assert kind == "text/html"
    for text in (sent.body, html):
        assert "https://sonar.example.org/reports/2026-W46/?site=RAL" in text
        assert "https://sonar.example.org/subscriptions/" in text
        assert "3 tests ran and 100 % of them succeeded" in text
    assert "https://sonar.example.org/api/v1/reports/2026-W46/?format=pdf&site=RAL" in sent.body
    loaded = ("<style", "<link", "<img", "<script", "class=")
    assert not any(sign in html for sign in (*loaded, MARKUP))
    assert sent.extra_headers["List-Unsubscribe"] == "<https://sonar.example.org/subscriptions/>"
    assert len(html) < 100_000  # beyond that some programs show a part of it


def test_a_picture_of_many_columns_has_letters_for_their_names(small_world):
    from matrix.answers.report import build
    from matrix.answers.report.question import ReportPeriod, ReportQuestion
    from matrix.plots.report import mail as writing

    transfer(small_world.ral, small_world.desy, 12.0, ago=5 * DAY)
    question = ReportQuestion(ReportPeriod.parse("2026-W46"))
    picture = build.build(question).sections[0].pictures[0]
    assert writing.picture_context(picture)["heads"] == list(picture.columns)
    writing.MOST_NAMED, usual = 2, writing.MOST_NAMED
    try:
        named = writing.picture_context(picture)
    finally:
        writing.MOST_NAMED = usual
    assert named["heads"] == ["A", "B", "C"]
    assert [name for name, _ in named["rows"]] == [
        f"{letter} {name}" for letter, name in zip("ABC", picture.rows, strict=True)
    ]


def subscribe(client: Any, url: str = "/reports/?site=RAL", **sent: str) -> Any:
    form = {"report": "week", "address": "olga@example.org"} | sent
    return client.post(url, form)


@pytest.fixture
def olga(small_world: world.World, at_noon: None) -> User:
    user = account(Role.READER, name="olga")
    user.email = "olga@example.org"
    user.save()
    return user


def test_people_subscribe_test_and_cancel_on_the_page_of_reports(olga, titles, monkeypatch):
    client = logged_in(olga)
    assert subscribe(client).url == "/reports/?site=RAL#mail"
    row = Subscription.objects.get()
    assert (row.name, schedule.subject(row), row.confirmed_at) == (
        "weekly report on site RAL", "site RAL", world.NOW
    )  # fmt: skip
    page = Page(client.get("/reports/?site=RAL").content.decode())
    assert "23 Nov 06:00" in page.words
    assert "no message has been sent yet" in page.words
    client.post(f"/subscriptions/{row.pk}/test/")
    client.post(f"/subscriptions/{row.pk}/test/")
    assert row.notifications.values_list("kind", "period").get() == ("report", "2026-W46")
    assert len(pass_by(world.NOW)) == 1
    client.post(f"/subscriptions/{row.pk}/test/")
    assert pass_by(world.NOW) == []  # one was sent a moment ago
    monkeypatch.setattr(timezone, "now", lambda: world.NOW + reports.BETWEEN + HOUR)
    client.post(f"/subscriptions/{row.pk}/test/")
    assert len(pass_by(timezone.now())) == 1
    page = Page(client.get("/reports/").content.decode())
    assert "report of week 46, 9 Nov to 15 Nov 2026: mail.example.org accepted the" in page.words
    own = Page(client.get(f"/subscriptions/{row.pk}/").content.decode())
    assert "sends the weekly report on site RAL, on Mondays at 06:00 UTC" in own.words
    assert "Notify me about" not in own.words
    changed = {"name": "mine", "address": "olga@example.org"}
    assert client.post(f"/subscriptions/{row.pk}/", changed).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.enabled, schedule.subject(row)) == ("mine", False, "site RAL")
    assert client.post(f"/subscriptions/{row.pk}/delete/").url == "/reports/"
    assert not Subscription.objects.exists()


def test_a_refused_subscription_says_why(olga, monkeypatch):
    client = logged_in(olga)
    assert subscribe(client, "/reports/").status_code == 302
    for url, sent, words in (
        ("/reports/", {}, "subscribed to the weekly report on the whole grid already"),
        ("/reports/", {"report": "day"}, "day"),
        ("/reports/", {"report": "month", "address": "olga"}, "is not an e-mail address"),
        ("/reports/?site=Nowhere", {}, "Nowhere"),
    ):
        refused = subscribe(client, url, **sent)
        assert refused.status_code == 400
        assert words in refused.content.decode()
    monkeypatch.setattr(reports, "MOST_OF_ONE", 1)
    assert "which is the maximum" in subscribe(client).content.decode()
    assert Subscription.objects.count() == 1


def test_another_address_is_confirmed_before_anything_is_sent_there(olga):
    client = logged_in(olga)
    subscribe(client, "/reports/?cloud=UK", address="list@example.org", report="month")
    row = Subscription.objects.get()
    assert (row.cloud, row.confirmed_at) == ("UK", None)
    (asked,) = pass_by(world.NOW + 20 * DAY)
    assert (asked.to, asked.subject) == (["list@example.org"], "[Sonar] Is this your address?")
    assert "requested reports for this e-mail address" in asked.body
    client.post("/subscriptions/confirm/", {"token": subscriptions.token_of(row)})
    client.post(f"/subscriptions/{row.pk}/test/")
    (sent,) = pass_by(world.NOW)
    assert sent.subject == "[Sonar] Report on cloud UK, October 2026"


def test_operators_see_all_subscriptions_and_others_their_own(olga):
    (
        subscribed("ann", title="weekly report of ann"),
        subscribed("gone", title="weekly report of gone"),
    )
    User.objects.filter(username="gone").update(is_active=False)
    own = logged_in(olga).get("/reports/").content.decode()
    assert "report of ann" not in own
    seen = Page(logged_in(account(Role.OPERATOR)).get("/reports/").content.decode())
    assert (
        "ann: weekly report of ann to ann@example.org, next report 23 Nov 06:00 UTC" in seen.words
    )
    assert "gone: weekly report of gone to gone@example.org, no report is due" in seen.words
    assert "the account is disabled" in seen.words
