"""What is told of incidents arrives at those who are really there, whatever else they do."""

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import trustme
from django.utils import timezone
from pytest_django import Settings

from matrix import tasks
from matrix.answers.incidents.messages import IncidentWords
from sonar.alerting import sending, subscriptions
from sonar.alerting.channels import web
from sonar.models import Notification, SizeClass, Subscription
from tests.engines import peers
from tests.sonar.alarms import happens, incident, of_person
from tests.sonar.world import endpoint, three_endpoints

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
HERE = "https://sonar.example.org"
KEY = "a-key-that-is-long-enough"


@pytest.fixture(autouse=True)
def near(settings: Settings) -> None:
    from ipaddress import ip_network

    settings.SONAR_URL, settings.SONAR_NOTIFY_NETWORKS = HERE, [ip_network("127.0.0.0/8")]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def reaching(name: str, channel: str = "webhook", **values: str) -> Subscription:
    row = Subscription(name=name, channel=channel, confirmed_at=timezone.now())
    subscriptions.seal(row, values)
    row.save()
    return row


def send(at_once: int = 1) -> None:
    sending.send_due(IncidentWords(), timezone.now, 300, at_once)


def again() -> None:
    """Let all be tried again at once, and boards be told anew."""
    Subscription.objects.update(retry_at=None, leased_until=None)
    long_ago = timezone.now() - timedelta(minutes=2)
    Subscription.objects.filter(told_at__isnull=False).update(told_at=long_ago)


WLCG = ["category", "subcategory", "event", "body", "tags", "level", "source", "details"]
MOODS = {
    "broken": "answers 500 Internal Server Error: token=*** is wrong.",
    "redirecting": "redirected (302); redirects are not followed.",
    "dying": "does not answer: ",
    "hanging": "did not answer within 8 s.",
    "trickling": "did not answer within 8 s.",
}


def test_of_receivers_in_every_mood_nothing_is_lost_and_nobody_is_delayed(monkeypatch, caplog):
    monkeypatch.setattr(web, "ANSWER_SECONDS", 4)
    monkeypatch.setattr(web, "CONNECT_SECONDS", 4)
    with ExitStack() as stack:
        there = {mood: stack.enter_context(peers.receiver(mood)) for mood in (*MOODS, "well")}
        for mood, receiver in there.items():
            reaching(mood, url=receiver.url, key=KEY)
        incident(endpoint("RAL"), timezone.now())
        began = time.monotonic()
        send(at_once=2)
        assert there["well"].came.is_set()
        assert time.monotonic() - began < 60
        for mood, sentence in MOODS.items():
            answer = Subscription.objects.get(name=mood).answer
            assert sentence in answer, (mood, answer)
            assert "secret-path" not in answer
        for receiver in there.values():
            receiver.mood = "well"
        again()
        send(at_once=2)
        for mood in MOODS:  # each by the same id as before: it may have arrived
            first, second = there[mood].requests
            assert first.headers["x-sonar-delivery"] == second.headers["x-sonar-delivery"]
            assert first.body == second.body
        assert len(there["well"].requests) == 1
    assert set(Notification.objects.values_list("state", flat=True)) == {"sent"}
    assert "secret-path" not in caplog.text
    check_signature(there["well"].requests[0])


def check_signature(request: peers.Request) -> None:
    signed = request.headers["x-sonar-timestamp"].encode() + b"." + request.body
    code = hmac.new(KEY.encode(), signed, hashlib.sha256).hexdigest()
    assert request.headers["x-sonar-signature"] == f"sha256={code}"
    said = json.loads(request.body)
    assert said["incidents"][0]["title"] == "RAL_DATADISK receives at 0.45× (0.40–0.51)"
    assert [event["type"] for event in said["events"]] == ["opened"]
    assert said["id"] == request.headers["x-sonar-delivery"]


SENDER = """
import django; django.setup()
from django.utils import timezone
from matrix.answers.incidents.messages import IncidentWords
from sonar.alerting import sending
sending.send_next(IncidentWords(), timezone.now)
"""


def test_a_sender_that_is_killed_before_it_noted_what_it_sent_is_followed_by_the_same_message():
    from django.db import connection

    from tests import template

    with peers.receiver("hanging") as receiver:
        reaching("shift", url=receiver.url, key=KEY)
        incident(endpoint("RAL"), timezone.now())
        assert connection.settings_dict["NAME"] in template.with_tables(os.environ["DATABASE_URL"])
        process = subprocess.Popen(
            [sys.executable, "-c", SENDER],
            env=os.environ
            | {
                "DATABASE_URL": template.with_tables(os.environ["DATABASE_URL"]),
                "DJANGO_SETTINGS_MODULE": "sonar.settings",
                "SONAR_URL": HERE,
                "SONAR_NOTIFY_NETWORKS": "127.0.0.0/8",
            },
        )
        assert receiver.came.wait(120)
        process.send_signal(signal.SIGKILL)
        process.wait()
        receiver.mood = "well"
        send()
        assert len(receiver.requests) == 1  # somebody else's, as far as anybody knows
        again()
        send()
    first, second = (request.headers["x-sonar-delivery"] for request in receiver.requests)
    assert first == second
    assert Notification.objects.get().state == "sent"


def test_e_mail_is_a_thread_by_tls_that_programs_and_people_can_read(
    authority, settings: Settings, tmp_path: Path
):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_USE_TLS = "localhost", True
    settings.DEFAULT_FROM_EMAIL = "Sonar <sonar@example.org>"
    with peers.mail_server(authority) as server:
        settings.EMAIL_PORT = server.server_address[1]
        of_person("anna")
        of_person("nobody")
        row = incident(endpoint("RAL"), timezone.now())
        send()
        assert "certificate" in Subscription.objects.get(name="anna").answer.lower()
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        settings.SONAR_NOTIFY_CA_BUNDLE = str(tmp_path / "ca.pem")
        again()
        send()
        happens(row, "closed", timezone.now())
        send()
    assert server.is_clear == [False] * 2
    opened, closed = server.mails
    assert opened["Subject"].strip() == "[Sonar] RAL_DATADISK receives at 0.45× (0.40–0.51)"
    assert closed["Subject"].strip() == "[Sonar] Closed: RAL_DATADISK received at 0.45× (0.40–0.51)"
    assert (opened["From"], opened["To"]) == ("Sonar <sonar@example.org>", "anna@example.org")
    assert opened["References"] == closed["In-Reply-To"] == closed["References"]
    assert opened["Message-ID"] != closed["Message-ID"]
    assert opened["Auto-Submitted"] == "auto-generated"
    assert opened["List-Unsubscribe"] == f"<{HERE}/subscriptions/>"
    for kind in ("plain", "html"):
        text = opened.get_body((kind,)).get_content()
        assert f"{HERE}/incidents/{row.pk}/" in text
        assert "First action: Check the inbound path." in text
        assert "Assignee" in text
    assert "550 5.1.1" in Subscription.objects.get(name="nobody").answer


def test_a_report_arrives_by_the_task_of_the_beat_once_for_each_order(
    authority, settings: Settings, tmp_path: Path
):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_USE_TLS = "localhost", True
    settings.DEFAULT_FROM_EMAIL = "Sonar <sonar@example.org>"
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    settings.SONAR_NOTIFY_CA_BUNDLE = str(tmp_path / "ca.pem")
    three_endpoints()
    # What tests with real commits before this one have emptied.
    SizeClass.objects.get_or_create(name="large", defaults={"from_bytes": 0, "test_bytes": 10**9})
    month_ago = timezone.now() - timedelta(days=40)
    for name in ("anna", "nobody"):
        of_person(name, report="month", confirmed_at=month_ago)
    with peers.mail_server(authority) as server:
        settings.EMAIL_PORT = server.server_address[1]
        tasks.send_reports()
        tasks.send_reports()
    (mail,) = server.mails
    row = Subscription.objects.get(name="anna")
    told = row.notifications.get()
    assert mail["Message-ID"] == f"<{told.message}@sonar.example.org>"
    assert mail["List-Unsubscribe"] == f"<{HERE}/subscriptions/>"
    assert mail["Subject"].startswith("[Sonar] Report on the whole grid, ")
    for kind in ("plain", "html"):
        text = mail.get_body((kind,)).get_content()
        assert f"{HERE}/reports/{told.period}/" in text
        assert "No tests ran in this month" in text
    assert (told.state, row.answer) == (
        "sent",
        "localhost accepted the message for anna@example.org.",
    )
    refused = Subscription.objects.get(name="nobody")
    assert (refused.failures, refused.notifications.get().state) == (1, "waiting")
    assert "550 5.1.1" in refused.answer


def test_an_alertmanager_is_told_again_while_an_incident_is_open_and_that_it_is_over(tmp_path):
    with peers.alertmanager(tmp_path) as url:
        reaching("alerts", "alertmanager", url=url)
        _, lancs, ral = three_endpoints()
        row = incident(ral, timezone.now())
        muted = incident(lancs, timezone.now(), type="failing")
        send()
        alerts = httpx.get(f"{url}/api/v2/alerts", timeout=60).json()
        assert {alert["labels"]["alertname"] for alert in alerts} == {"SonarSlow", "SonarFailing"}
        (slow,) = (each for each in alerts if each["labels"]["alertname"] == "SonarSlow")
        assert slow["labels"] == {
            "alertname": "SonarSlow",
            "severity": "warning",
            "scope": "destination",
            "destination": "RAL_DATADISK",
            "site": "RAL",
            "sonar": HERE,
        }
        assert slow["generatorURL"] == f"{HERE}/incidents/{row.pk}/"
        happens(muted, "muted", timezone.now(), muted_until=timezone.now() + timedelta(hours=1))
        happens(row, "closed", timezone.now())
        send()  # not before a minute is over
        assert len(httpx.get(f"{url}/api/v2/alerts", timeout=60).json()) == 2
        again()
        send()
        (left,) = httpx.get(
            f"{url}/api/v2/alerts", timeout=60
        ).json()  # it ends by itself, as it is muted
        assert left["labels"]["alertname"] == "SonarFailing"
        assert left["endsAt"] <= (timezone.now() + timedelta(minutes=4)).isoformat()
    assert Subscription.objects.get().answer == "200 OK, 0 alerts are firing"


def test_an_icinga_has_one_service_that_says_what_is_open_and_forgets_it_without_sonar(
    authority, settings: Settings, tmp_path: Path
):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    settings.SONAR_NOTIFY_CA_BUNDLE = str(tmp_path / "ca.pem")
    of_icinga = {"user": "sonar", "password": "secret-of-icinga"}
    with peers.icinga(tmp_path / "icinga", authority) as url:
        reaching("right", "icinga", url=url, service="grid!sonar", **of_icinga)
        reaching("wrong", "icinga", url=url, service="grid!another", **of_icinga)
        row = incident(endpoint("RAL"), timezone.now())
        happens(row, "worse", timezone.now(), type="failing")
        send()
        assert state_of(url)["state"] == 2
        result = state_of(url)["last_check_result"]
        assert "RAL_DATADISK has been failing as destination" in result["output"]
        assert (result["ttl"], result["performance_data"]) == (300, ["incidents=1"])
        happens(row, "closed", timezone.now())
        again()
        send()
        assert state_of(url)["state"] == 0
        assert "No objects found" in Subscription.objects.get(name="wrong").answer
        assert Subscription.objects.get(name="right").answer == "200 OK, No incident is open"


def state_of(url: str) -> dict[str, object]:
    auth = ("sonar", "secret-of-icinga")
    answer = httpx.get(f"{url}/v1/objects/services/grid!sonar", auth=auth, verify=False, timeout=60)
    attributes: dict[str, object] = answer.json()["results"][0]["attrs"]
    return attributes


def test_a_chat_and_the_alarms_of_wlcg_have_what_they_take():
    with peers.receiver() as chat, peers.receiver() as bus:
        reaching("chat", "chat", url=chat.url)
        reaching("bus", "wlcg", url=bus.url)
        row = incident(endpoint("RAL"), timezone.now())
        send()
    text = json.loads(chat.requests[0].body)["text"]
    assert text.startswith("**RAL_DATADISK receives at 0.45× (0.40–0.51)**\n")
    assert f"\n[Incident {row.pk}]({HERE}/incidents/{row.pk}/)\n" in text
    alarm = json.loads(bus.requests[0].body)
    assert alarm.keys() == {*WLCG}
    assert (alarm["event"], alarm["level"]) == ("transfers are slow", "warning")
    assert alarm["tags"] == ["RAL", "RAL_DATADISK"]


def test_many_incidents_at_once_are_ten_messages_and_one(settings: Settings):
    with peers.receiver() as receiver:
        reaching("shift", url=receiver.url, key=KEY)
        for number in range(30):
            incident(endpoint(f"S{number}"), timezone.now())
        send()
        assert len(receiver.requests) == 10
        Notification.objects.filter(state="waiting").update(due_at=timezone.now())
        hour = timezone.now() - timedelta(hours=1)
        Notification.objects.filter(state="sent").update(ended_at=hour)
        send()
    said = json.loads(receiver.requests[-1].body)
    assert (len(receiver.requests), said["kind"], len(said["incidents"])) == (11, "digest", 20)
    assert said["subject"] == "20 incidents, 20 of them open"
