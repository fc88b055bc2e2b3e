"""Subscriptions on pages: an address agrees before Sonar writes to it, and limits hold."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from matrix.answers.incidents.messages import IncidentWords
from matrix.answers.report.messages import ReportWords
from matrix.plots.report.mail import ReportMail
from sonar.alerting import incidents, outbox, reports, sending, subscriptions
from sonar.models import Endpoint, LastSent, Mesh, Notification, Site, Subscription
from sonar.people.roles import Role
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix import world
from tests.matrix.registry import JSON
from tests.matrix.test_api_registry_races import at_once
from tests.matrix.world import World
from tests.sonar.alarms import DAY, HOUR, MINUTE, NOW, happens, incident, subscription

URL = re.compile(r"https?://[^\s<>\"]+")
BAIT = "Verify at http://evil.example/x now"


@pytest.fixture(autouse=True)
def by_mail(settings: Any) -> None:
    settings.SONAR_URL = "https://sonar.example.org"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.org", "sonar@example.org"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[datetime]]:
    """The time of this process, which a test moves on."""
    now = [NOW]
    monkeypatch.setattr(timezone, "now", lambda: now[0])
    return now


def reader(name: str = "rea", **values: str) -> User:
    user = account(Role.READER, name=name)
    User.objects.filter(pk=user.pk).update(**values)
    return User.objects.get(pk=user.pk)


def form(address: str, **values: Any) -> dict[str, Any]:
    own = {"name": "b0", "address": address, "scope": "grid", "cap": 10, "enabled": "on"}
    return own | values


def add(client: Client, address: str, **values: Any) -> Subscription:
    response = client.post("/subscriptions/add/", form(address, **values))
    assert response.status_code == 302, Page(response.content.decode()).words
    return Subscription.objects.order_by("-id")[0]


def send_all(now: datetime = NOW) -> list[Any]:
    """Send all that is due; return the mails."""
    before = len(mail.outbox)
    while sending.send_next(IncidentWords(), lambda: now):
        pass
    while sending.send_next(ReportWords(ReportMail.of), lambda: now, sending.REPORTS):
        pass
    return mail.outbox[before:]


def parts(sent: Any) -> tuple[str, str]:
    (html,) = [each.content for each in sent.alternatives]
    return sent.body, html


# An address agrees first.


@pytest.mark.django_db
@pytest.mark.parametrize("report", [False, True], ids=["incidents", "report"])
def test_a_confirmation_has_no_word_and_no_link_of_the_account(clock, world_of_three, report):
    client = logged_in(reader("evil.example.com", first_name=BAIT, email="x@evil.example"))
    if report:
        client.post("/reports/", {"report": "week", "address": "x@evil.example"})
        row = Subscription.objects.get()
        client.post(f"/subscriptions/{row.pk}/", form("victim@example.net", name=BAIT))
    else:
        add(client, "victim@example.net", name=BAIT)
    (sent,) = send_all()
    text, html = parts(sent)
    assert (sent.to, sent.subject) == (["victim@example.net"], "[Sonar] Is this your address?")
    (link,) = URL.findall(text)
    path, _, token = link.partition("?token=")
    assert path == "https://sonar.example.org/subscriptions/confirm/"
    assert subscriptions.confirm(token, User.objects.get()) == Subscription.objects.get()
    assert re.findall(r'href="([^"]*)"', html) == [link]
    for words in (sent.subject, text, html, str(sent.message())):
        assert "evil" not in words
        assert "Verify" not in words
    assert "List-Unsubscribe" not in sent.extra_headers
    assert sent.message()["From"] == "sonar@example.org"


@pytest.mark.django_db
def test_no_text_of_an_account_becomes_a_link_in_a_mail(clock, world_of_three):
    client = logged_in(reader(email="rea@example.org"))
    row = add(client, "rea@example.org", name=BAIT)
    client.post(f"/subscriptions/{row.pk}/test/")
    incident(Endpoint.objects.first())
    for sent in send_all():
        _, html = parts(sent)
        assert BAIT in html
        assert all("evil" not in url for url in re.findall(r'href="([^"]*)"', html))


@pytest.mark.django_db
def test_an_address_that_is_not_confirmed_gets_its_link_and_nothing_else(clock, world_of_three):
    client = logged_in(reader(email="rea@example.org"))
    client.post("/reports/", {"report": "week", "address": "rea@example.org"})
    order = Subscription.objects.get()
    row = add(client, "rea@example.org", name="mine")
    opened = incident(Endpoint.objects.first())
    client.post(f"/subscriptions/{row.pk}/test/")
    client.post(f"/subscriptions/{order.pk}/test/")
    assert Notification.objects.filter(state="waiting").count() == 3
    client.post(f"/subscriptions/{row.pk}/", form("victim@example.net", name="mine"))
    client.post(f"/subscriptions/{order.pk}/", form("victim@example.net", name="weekly"))
    client.post(f"/subscriptions/{row.pk}/test/")
    client.post(f"/subscriptions/{order.pk}/test/")
    happens(opened, "worse", NOW + MINUTE)
    happens(opened, "closed", NOW + 2 * MINUTE)
    sent = send_all(NOW + DAY)
    assert [(each.to, each.subject) for each in sent] == [
        (["victim@example.net"], "[Sonar] Is this your address?")
    ]


@pytest.mark.django_db
def test_a_test_that_waits_is_not_sent_to_an_address_that_is_not_confirmed(clock):
    row = subscription("x", channel="email", owner=reader(), address="victim@example.net")
    subscriptions.queue(row, Notification.Kind.TEST, NOW)
    Subscription.objects.update(confirmed_at=None)
    assert send_all() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    [
        *("a@localhost", "a@[127.0.0.1]", "a@[IPv6:::1]", '"v@example.net,"@example.org'),
        *('"a b"@example.org', "root@localhost.localdomain", "a@mx.localhost", "a@10.0.0.10"),
    ],
)
def test_an_address_has_a_public_domain_and_a_plain_name(address):
    client, root = logged_in(reader()), logged_in(account(Role.OPERATOR))
    refused = client.post("/subscriptions/add/", form(address))
    assert refused.status_code == 400
    errors = Page(refused.content.decode()).words
    assert "is not an e-mail address" in errors or "is not a public domain" in errors
    assert client.post("/reports/", {"report": "week", "address": address}).status_code == 400
    body = {"name": "list", "channel": "email", "address": address}
    response = root.post("/api/v1/subscriptions/", body, JSON)
    assert (response.status_code, [*response.json()["errors"]]) == (400, ["address"])
    assert not Subscription.objects.exists()


# Limits hold whatever is deleted.


@pytest.mark.django_db
def test_one_link_an_hour_goes_to_an_address_and_from_a_person_whatever_is_deleted(clock):
    ann, bob = logged_in(reader("ann")), logged_in(reader("bob"))
    for at in range(8):
        clock[0] = NOW + timedelta(seconds=3 * at)
        row = add(ann, "victim@example.net")
        send_all(clock[0])
        ann.post(f"/subscriptions/{row.pk}/delete/")
    assert len(mail.outbox) == 1
    # The same address, however it is written, by another account, or by one of the same name.
    for address in ("Victim@Example.NET", "victim+2@example.net"):
        bob.post(f"/subscriptions/{add(bob, address).pk}/delete/")
    client = logged_in(reader("cat"))
    add(client, "victim@example.net")
    User.objects.get(username="cat").delete()
    User.objects.filter(username="ann").delete()
    add(logged_in(reader("ann")), "victim@example.net")
    send_all(clock[0])
    assert len(mail.outbox) == 1
    # Others get theirs, and so does this one an hour later.
    add(bob, "other@example.net", name="b1")
    assert [each.to for each in send_all(clock[0])] == [["other@example.net"]]
    clock[0] = NOW + HOUR
    row = Subscription.objects.get(owner__username="ann")
    client = logged_in(row.owner)
    client.post(f"/subscriptions/{row.pk}/", form("victim@example.net"))
    assert [each.to for each in send_all(clock[0])] == [["victim@example.net"]]


@pytest.mark.django_db
def test_a_link_that_waits_is_not_sent_to_the_next_address(clock):
    client = logged_in(reader())
    row = add(client, "first@example.net")
    client.post(f"/subscriptions/{row.pk}/", form("second@example.net"))
    assert send_all() == []


@pytest.mark.django_db
def test_one_report_in_ten_minutes_is_ordered_whatever_is_deleted(clock, world_of_three):
    client = logged_in(reader(email="rea@example.org"))
    for at in range(4):
        clock[0] = NOW + timedelta(seconds=6 * at)
        client.post("/reports/", {"report": "week", "address": "rea@example.org"})
        row = Subscription.objects.get()
        client.post(f"/subscriptions/{row.pk}/test/")
        send_all(clock[0])
        client.post(f"/subscriptions/{row.pk}/delete/")
    assert len(mail.outbox) == 1
    clock[0] = NOW + reports.BETWEEN
    client.post("/reports/", {"report": "week", "address": "rea@example.org"})
    client.post(f"/subscriptions/{Subscription.objects.get().pk}/test/")
    assert len(send_all(clock[0])) == 1


@pytest.mark.django_db
def test_one_test_a_minute_is_sent_whatever_is_deleted(clock):
    client = logged_in(reader(email="rea@example.org"))
    for at in range(4):
        clock[0] = NOW + timedelta(seconds=6 * at)
        row = add(client, "rea@example.org")
        client.post(f"/subscriptions/{row.pk}/test/")
        client.post(f"/subscriptions/{row.pk}/delete/") if at < 3 else None
        send_all(clock[0])
    assert len(mail.outbox) <= 1
    said = client.get(f"/subscriptions/{row.pk}/").content.decode()
    assert "A test notification was requested less than a minute ago." in said
    clock[0] = NOW + MINUTE
    client.post(f"/subscriptions/{row.pk}/test/")
    assert len(send_all(clock[0])) == 1


@pytest.mark.django_db
def test_counts_of_what_was_ordered_are_forgotten_after_a_day(clock):
    add(logged_in(reader()), "victim@example.net")
    assert LastSent.objects.count() == 2
    assert not LastSent.objects.filter(key__contains="example").exists()
    outbox.drop_expired(NOW + DAY, 90)
    assert LastSent.objects.count() == 2
    outbox.drop_expired(NOW + DAY + MINUTE, 90)
    assert not LastSent.objects.exists()


# Two at once.


def test_a_link_confirms_no_address_that_changes_at_the_same_moment(real_commits):
    user = reader()
    row = subscription("x", channel="email", owner=user, address="own@x.org", confirmed_at=None)
    token, client = subscriptions.token_of(row), logged_in(user)

    def change() -> None:
        Subscription.objects.filter(pk=row.pk).update(address="victim@example.net")

    response = at_once(lambda: client.post("/subscriptions/confirm/", {"token": token}), change)
    assert response.status_code == 400
    row.refresh_from_db()
    assert (row.address, row.confirmed_at) == ("victim@example.net", None)


def test_a_change_waits_for_the_link_and_asks_for_the_new_address(real_commits):
    user = reader()
    row = subscription("x", channel="email", owner=user, address="own@x.org", confirmed_at=None)
    token, client = subscriptions.token_of(row), logged_in(user)
    response = at_once(
        lambda: client.post(f"/subscriptions/{row.pk}/", form("victim@example.net")),
        lambda: subscriptions.confirm(token, user),
    )
    assert response.status_code == 302
    row.refresh_from_db()
    assert (row.address, row.confirmed_at) == ("victim@example.net", None)
    assert row.notifications.get().kind == "confirmation"


def test_two_orders_at_once_are_one_link(real_commits):
    ann, bob = reader("ann"), reader("bob")
    first = subscription("a", channel="email", owner=ann, address="v@example.net")
    second = subscription("b", channel="email", owner=bob, address="v@example.net")
    waits = at_once(
        lambda: subscriptions.take_turn("link", second, HOUR, NOW),  # type: ignore[arg-type]
        lambda: subscriptions.take_turn("link", first, HOUR, NOW),
    )
    assert waits == HOUR


@pytest.mark.parametrize("report", [False, True], ids=["incidents", "reports"])
def test_two_who_add_the_last_one_at_once_are_told_so(real_commits, monkeypatch, report):
    user = reader(email="rea@example.org")
    client, which = logged_in(user), {"report": "week" if report else ""}
    monkeypatch.setattr(reports if report else subscriptions, "MOST_OF_ONE", 1)

    def order() -> None:
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        subscription("first", channel="email", owner=user, **which)

    path = "/reports/" if report else "/subscriptions/add/"
    sent = {"report": "month", "address": "rea@example.org"} if report else form("r@example.org")
    response = at_once(lambda: client.post(path, sent), order)
    assert response.status_code == 400
    assert Subscription.objects.count() == 1


# Secrets of a channel.

SECRETS = {
    "icinga": {"url": "https://icinga.example.org:5665", "user": "root",
               "password": "PASSWORD-1", "service": "grid!sonar"},
    "alertmanager": {"url": "https://icinga.example.org:5665", "user": "root",
                     "password": "PASSWORD-1"},
    "webhook": {"url": "https://icinga.example.org:5665/x", "key": "PASSWORD-1-PASSWORD-1"},
}  # fmt: skip


def a_list(channel: str) -> Subscription:
    row = Subscription(name="list", channel=channel, confirmed_at=NOW)
    subscriptions.seal(row, SECRETS[channel])
    row.save()
    return row


@pytest.mark.django_db
@pytest.mark.parametrize("channel", SECRETS)
@pytest.mark.parametrize(
    "url",
    [
        *("https://attacker.example.net:5665", "https://icinga.example.org:5666"),
        *("http://icinga.example.org:5665", "https://icinga.example.org"),
    ],
)
def test_a_secret_does_not_follow_the_address_to_another_server(channel, url):
    row, client = a_list(channel), logged_in(account(Role.OPERATOR))
    secret = "key" if channel == "webhook" else "password"
    sent = {"name": "list", "scope": "grid", "cap": 10, "enabled": "on", "channel-url": url}
    refused = client.post(f"/subscriptions/{row.pk}/", sent)
    assert refused.status_code == 400
    said = "The new address is on another server. Enter this value again."
    page = Page(refused.content.decode())
    assert page.words.count(said) == 1
    assert refused.context["form"].errors == {f"channel-{secret}": [said]}
    row.refresh_from_db()
    assert subscriptions.unseal(row) == SECRETS[channel]
    sent[f"channel-{secret}"] = "PASSWORD-2-PASSWORD-2"
    assert client.post(f"/subscriptions/{row.pk}/", sent).status_code == 302
    row.refresh_from_db()
    assert subscriptions.unseal(row)[secret] == "PASSWORD-2-PASSWORD-2"


@pytest.mark.django_db
@pytest.mark.parametrize("channel", SECRETS)
def test_at_the_same_server_a_secret_stays(channel):
    row, client = a_list(channel), logged_in(account(Role.OPERATOR))
    url = "https://ICINGA.example.org:5665/other"
    sent = {"name": "list", "scope": "grid", "cap": 10, "enabled": "on", "channel-url": url}
    assert client.post(f"/subscriptions/{row.pk}/", sent).status_code == 302
    row.refresh_from_db()
    assert subscriptions.unseal(row) == SECRETS[channel] | {"url": url}


@pytest.mark.django_db
@pytest.mark.parametrize("channel", SECRETS)
def test_by_rest_a_new_address_wants_all_settings(channel):
    row, client = a_list(channel), logged_in(account(Role.OPERATOR))
    sent = {"settings": {"url": "https://attacker.example.net"}}
    answer = client.patch(f"/api/v1/subscriptions/{row.pk}/", sent, JSON)
    row.refresh_from_db()
    if channel == "alertmanager":  # which may be used without a password
        assert subscriptions.unseal(row) == sent["settings"]
    else:
        assert (answer.status_code, [*answer.json()["errors"]]) == (400, ["settings"])
        assert subscriptions.unseal(row) == SECRETS[channel]
    # The address that everybody reads is where the settings lead, whatever is sent.
    shown, sent = row.address, {"address": "https://bank.example"}
    answer = client.patch(f"/api/v1/subscriptions/{row.pk}/", sent, JSON)
    assert answer.json()["address"] == shown


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "now"), [("levels", "incident_scopes"), ("conditions", "incident_types")]
)
def test_by_rest_a_renamed_field_is_refused_by_its_new_name(name, now):
    row, client = a_list("alertmanager"), logged_in(account(Role.OPERATOR))
    answer = client.patch(f"/api/v1/subscriptions/{row.pk}/", {name: []}, JSON)
    sentence = f"The field “{name}” is now called {now}."
    assert (answer.status_code, answer.json()["errors"]) == (400, {name: [sentence]})


# What a subscription covers, and addresses that are confirmed.


@pytest.fixture
def world_of_three(db: None) -> World:
    return world.make()


def notices(client: Client, row: Subscription) -> str:
    return Page(client.get(f"/subscriptions/{row.pk}/").content.decode()).words


@pytest.mark.django_db
def test_who_administers_no_site_begins_with_all_incidents(world_of_three):
    page = logged_in(reader()).get("/subscriptions/add/")
    assert page.context["form"]["scope"].value() == "grid"
    admin = account(Role.SITE_ADMIN, Site.objects.first(), name="ada")
    assert logged_in(admin).get("/subscriptions/add/").context["form"]["scope"].value() == "own"


@pytest.mark.django_db
def test_sites_that_are_chosen_are_not_ignored(world_of_three):
    client = logged_in(reader(email="rea@example.org"))
    both = form("rea@example.org", scope="grid", sites=["RAL"])
    refused = client.post("/subscriptions/add/", both)
    said = "Sites are selected: choose “incidents of these sites”, or select none."
    assert refused.context["form"].errors == {"sites": [said]}
    # Those that it had before may stay, as they are selected when the form is shown.
    row = add(client, "rea@example.org", scope="sites", sites=["RAL"])
    assert client.post(f"/subscriptions/{row.pk}/", both).status_code == 302


def delete(site: str) -> None:
    Endpoint.objects.filter(site__name=site).delete()
    Site.objects.get(name=site).delete()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "change", "said"),
    [
        ({"scope": "own"}, lambda: None, "this account administers no site"),
        ({"scope": "sites", "sites": ["RAL"], "incident_scopes": ["grid"]}, lambda: None,
         "incidents of Sonar itself do not belong to a site"),
        ({"scope": "sites", "sites": ["Empty"]}, lambda: None,
         "no enabled mesh includes any links from or to the sites of this subscription"),
        ({"scope": "sites", "sites": ["RAL"]}, lambda: Mesh.objects.update(enabled=False),
         "no enabled mesh includes any links from or to the sites of this subscription"),
        ({"scope": "sites", "sites": ["RAL"]},
         lambda: Endpoint.objects.filter(site__name="RAL").update(enabled=False),
         "no enabled mesh includes any links from or to the sites of this subscription"),
        ({"scope": "sites", "sites": ["Empty"]}, lambda: delete("Empty"),
         "the selected sites are no longer registered"),
        ({"scope": "grid"}, lambda: Mesh.objects.all().delete(),
         "no enabled mesh includes any links."),
    ],
)  # fmt: skip
def test_a_subscription_that_no_incident_can_match_says_so(world_of_three, values, change, said):
    world.endpoints([("switched-off", Site.objects.create(name="Empty"))])
    Endpoint.objects.filter(name="switched-off").update(enabled=False)
    client = logged_in(reader(email="rea@example.org"))
    covered = add(client, "rea@example.org", scope="sites", sites=["DESY"], name="covered")
    assert "No incident can match" not in notices(client, covered)
    row = add(client, "rea@example.org", **values)
    change()
    assert said in notices(client, row)
    assert said in Page(client.get("/subscriptions/").content.decode()).words
    # By REST, of a list.
    root = logged_in(account(Role.OPERATOR))
    url = f"/api/v1/subscriptions/{row.pk}/"
    Subscription.objects.filter(pk=row.pk).exclude(scope="own").update(owner=None)
    if values["scope"] != "own":
        assert said in root.get(url).json()["covers_nothing"]
        if change is not None:
            Subscription.objects.filter(pk=covered.pk).update(owner=None)
    # And after its address was confirmed.
    row.owner, row.confirmed_at, row.address = reader("bob"), None, "bob@example.org"
    row.save()
    bob = logged_in(row.owner)
    token = subscriptions.token_of(row)
    shown = bob.post("/subscriptions/confirm/", {"token": token}, follow=True)
    words = Page(shown.content.decode()).words
    assert said in words
    assert "Sonar now sends" not in words


@pytest.mark.django_db
def test_a_list_that_covers_something_has_nothing_to_say(world_of_three):
    row = subscription()
    client = logged_in(account(Role.OPERATOR))
    assert client.get(f"/api/v1/subscriptions/{row.pk}/").json()["covers_nothing"] == ""


@pytest.mark.django_db
def test_an_address_is_confirmed_once_by_a_person(clock, world_of_three):
    user = reader()
    client = logged_in(user)
    row = add(client, "rea@example.org")
    send_all()
    client.post("/subscriptions/confirm/", {"token": subscriptions.token_of(row)})
    assert "rea@example.org was confirmed" in notices(client, row)
    other = add(client, "Rea@example.org", name="other")
    assert other.confirmed_at is not None
    words = notices(client, other)
    assert "A confirmation link was sent" not in words
    assert "open the link" not in words
    client.post("/reports/", {"report": "week", "address": "rea@example.org"})
    assert Subscription.objects.get(report="week").confirmed_at is not None
    assert send_all() == []
    # That of another person is not theirs.
    assert add(logged_in(reader("bob")), "rea@example.org").confirmed_at is None


@pytest.mark.django_db
def test_a_page_says_what_became_of_the_link(clock, world_of_three):
    client = logged_in(reader())
    row = add(client, "one@example.org")
    assert "Not confirmed: a link will be sent to one@example.org soon" in notices(client, row)
    send_all()
    waits = "Not confirmed: open the link that was sent to "
    assert f"{waits}one@example.org" in notices(client, row)
    client.post(f"/subscriptions/{row.pk}/", form("one@example.org"))
    words = notices(client, row)
    assert "A confirmation link was already sent to one@example.org. Open it, or save" in words
    assert "save the subscription again in 1 h" in words
    assert f"{waits}one@example.org" in words
    client.post(f"/subscriptions/{row.pk}/", form("two@example.org"))
    words = notices(client, row)
    assert "No confirmation link was sent to two@example.org" in words
    assert (
        "Not confirmed: there is no valid confirmation link for two@example.org. Save to" in words
    )
    assert waits not in words
    clock[0] = NOW + HOUR
    client.post(f"/subscriptions/{row.pk}/", form("two@example.org"))
    send_all(clock[0])
    assert f"{waits}two@example.org" in notices(client, row)
    clock[0] += timedelta(days=subscriptions.LINK_DAYS, minutes=1)
    assert "Not confirmed: there is no valid confirmation link for two@example.org" in notices(
        client, row
    )


# Incidents that were open before.


def press(client: Client, row: Subscription, now: datetime = NOW) -> tuple[str, list[str]]:
    """Press the button that sends open incidents; return the page, and the subjects sent."""
    shown = client.post(f"/subscriptions/{row.pk}/open-incidents/", follow=True)
    return Page(shown.content.decode()).words, [each.subject for each in send_all(now)]


@pytest.mark.django_db
def test_an_open_incident_that_matches_is_offered_and_sent_once(clock, world_of_three):
    opened = incident(world_of_three.desy, NOW - 2 * DAY)
    incident(world_of_three.ral, NOW - 2 * DAY, muted_until=NOW + DAY)
    happens(incident(world_of_three.glasgow, NOW - 2 * DAY), "closed", NOW - DAY)
    client = logged_in(reader(email="rea@example.org"))
    other = add(client, "rea@example.org", scope="sites", sites=["RAL"], name="ral")
    row = add(client, "rea@example.org")
    assert "open incident" not in notices(client, other)
    offer = "1 open incident matches this subscription. Send open incident now"
    assert offer in notices(client, row)
    assert send_all() == []
    words, subjects = press(client, row)
    assert "1 open incident was queued." in words
    assert "open incident matches" not in words
    assert subjects == ["[Sonar] DESY_DATADISK receives at 0.45× (0.40–0.51)"]
    # It is known to the person now: by none of the subscriptions again, and the end follows.
    twice = add(client, "rea@example.org", name="twice")
    for each in (row, twice):
        words, subjects = press(client, each)
        assert "No open incidents are left to send for this subscription." in words
        assert subjects == []
        assert "open incident matches" not in notices(client, each)
    happens(opened, "worse", NOW + HOUR, type="failing")
    happens(opened, "closed", NOW + 2 * HOUR)
    assert [each.subject for each in send_all(NOW + 2 * HOUR)] == [
        "[Sonar] Closed: DESY_DATADISK failed as destination"
    ]


@pytest.mark.django_db
def test_open_incidents_are_offered_once_the_address_is_confirmed(clock, world_of_three):
    for end in world_of_three.endpoints[:3]:
        incident(end, NOW - DAY)
    client = logged_in(reader())
    row = add(client, "rea@example.org", quiet_from="00:00", quiet_until="23:00", cap=1)
    assert "open incidents match" not in notices(client, row)
    assert "No open incidents are left to send" in press(client, row)[0]
    token = {"token": subscriptions.token_of(row)}
    confirmed = client.post("/subscriptions/confirm/", token, follow=True)
    offer = Page(confirmed.content.decode()).part("#unsent")
    assert offer.words == "3 open incidents match this subscription. Send open incidents now"
    Subscription.objects.update(enabled=False)
    assert "open incidents match" not in notices(client, row)
    Subscription.objects.update(enabled=True)
    assert press(client, row)[1] == ["[Sonar] 3 incidents, 3 of them open"]
    # The message counted for the cap of one an hour.
    incident(world_of_three.scratch, NOW + DAY)
    Subscription.objects.update(quiet_from=None, quiet_until=None, cap=1)
    Notification.objects.filter(state="waiting").update(due_at=NOW)
    assert send_all(NOW + MINUTE) == []


@pytest.mark.django_db
def test_what_is_over_before_it_is_sent_is_told_in_one_message(clock, world_of_three):
    opened = incident(world_of_three.desy, NOW - DAY)
    client = logged_in(reader(email="rea@example.org"))
    row = add(client, "rea@example.org")
    client.post(f"/subscriptions/{row.pk}/open-incidents/")
    happens(opened, "closed", NOW)
    over = "[Sonar] Closed: DESY_DATADISK received at 0.45× (0.40–0.51)"
    assert [each.subject for each in send_all()] == [over]


@pytest.mark.django_db
def test_open_incidents_are_sent_once_a_minute_whatever_is_deleted(clock, world_of_three):
    incident(world_of_three.desy, NOW - DAY)
    client = logged_in(reader(email="rea@example.org"))
    row = add(client, "rea@example.org")
    assert len(press(client, row)[1]) == 1
    client.post(f"/subscriptions/{row.pk}/delete/")
    again = add(client, "rea@example.org")
    words, subjects = press(client, again)
    assert "Open incidents were sent less than a minute ago" in words
    assert subjects == []
    clock[0] = NOW + MINUTE
    assert len(press(client, again, clock[0])[1]) == 1


@pytest.mark.django_db
def test_lists_send_open_incidents_and_boards_have_them_anyway(clock, world_of_three):
    incident(world_of_three.desy, NOW - DAY)
    client = logged_in(account(Role.OPERATOR))
    hook, board = subscription(), a_list("alertmanager")
    assert "1 open incident matches" in notices(client, hook)
    assert "open incident matches" not in notices(client, board)
    assert logged_in(reader()).post(f"/subscriptions/{hook.pk}/open-incidents/").status_code == 404
    client.post(f"/subscriptions/{hook.pk}/open-incidents/")
    assert [(row.event_types, row.state) for row in hook.notifications.all()] == [
        (["opened"], "waiting")
    ]


@pytest.mark.django_db
def test_the_form_says_where_slow_is_defined(world_of_three):
    page = Page(logged_in(reader()).get("/subscriptions/add/").content.decode())
    (link,) = page.parts('form a[href="/targets/"]')
    assert link.words == "Targets"


def test_an_evaluation_at_the_same_moment_sends_an_incident_once(real_commits):
    opened = incident(world.make().desy, NOW - DAY)
    user = reader()
    row = subscription("x", channel="email", owner=user, address="own@x.org")
    client = logged_in(user)

    def evaluate() -> None:
        incidents.lock()
        happens(opened, "worse", NOW, type="failing")

    answer = at_once(lambda: client.post(f"/subscriptions/{row.pk}/open-incidents/"), evaluate)
    assert answer.status_code == 302
    assert [each.event_types for each in row.notifications.all()] == [["worse"]]
    assert "No open incidents are left to send" in notices(client, row)
