"""Each message has object, state, start, figures, first action and link, in this order."""

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.core import mail
from pytest_django import Settings

from matrix.answers.incidents import evidence
from matrix.answers.incidents.messages import IncidentWords, matter
from sonar.alerting.channels import alertmanager, catalogue, chat, icinga, webhook, wlcg
from sonar.alerting.channels.base import Target
from sonar.alerting.channels.web import Reply
from sonar.models import Incident, Notification, Subscription
from tests.sonar.alarms import HOUR, NOW, happens, incident, subscription
from tests.sonar.world import endpoint

pytestmark = pytest.mark.django_db
HOME = "https://sonar.example.org"
# Only messages that report one incident alone are tested: digests repeat the same lines.
CHATS = ("https://hooks.slack.com/services/x", "https://chat.example.org/hooks/x")
VALUES = {
    "url": "https://service.example.org/x", "key": "a-key-that-is-long-enough", "user": "u",
    "password": "p", "service": "grid!sonar",
}  # fmt: skip
Bodies = list[bytes]


@pytest.fixture
def bodies(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Bodies:
    """Collect the bodies of all requests that channels make."""
    settings.SONAR_URL, settings.DEFAULT_FROM_EMAIL = HOME, "sonar@example.org"
    collected = Bodies()

    def post(url: str, body: bytes, *_: object) -> Reply:
        collected.append(body)
        return Reply(200, "ok")

    for module in (alertmanager, chat, icinga, webhook, wlcg):
        monkeypatch.setattr(module, "post", post)

    class Apprise:
        def add(self, url: str) -> bool:
            return True

        def notify(self, body: str, **_: str) -> bool:
            collected.append(body.encode())
            return True

    monkeypatch.setitem(sys.modules, "apprise", SimpleNamespace(Apprise=Apprise))
    return collected


def without_subject(text: str) -> str:
    return text.partition("\n")[2]


# The text of a message by channel, in what the channel sends.
TEXTS: dict[str, Callable[[bytes], str]] = {
    "webhook": lambda body: json.loads(body)["text"],
    "chat": lambda body: without_subject(json.loads(body)["text"]),
    "alertmanager": lambda body: json.loads(body)[0]["annotations"]["description"],
    "icinga": lambda body: without_subject(json.loads(body)["plugin_output"]),
    "wlcg": lambda body: json.loads(body)["body"],
    "apprise": bytes.decode,
}


def send(row: Incident, channel: str, url: str) -> None:
    to = Target("key", "shift", "ops@example.org", f"{HOME}/subscriptions/", HOME, VALUES)
    to = Target(*list(vars(to).values())[:5], VALUES | {"url": url})
    description = catalogue.describe(channel)
    sender = catalogue.load(description.path)
    if description.is_board:
        sender.tell([matter(row)], to, NOW)
        return
    listed = Subscription.objects.first() or subscription()
    delivered = Notification.objects.filter(incident=row, subscription=listed)
    sender.send(IncidentWords().message(listed, delivered, NOW), to)


def texts(row: Incident, channel: str, bodies: Bodies) -> list[str]:
    for url in CHATS if channel == "chat" else (VALUES["url"],):
        send(row, channel, url)
    if channel != "email":
        return [TEXTS[channel](body) for body in bodies]
    (message,) = mail.outbox
    (html,) = (each.content for each in message.alternatives)
    return [str(message.body), html.partition("border-left")[2]]


def assert_in_order(text: str, parts: list[str]) -> None:
    places = [text.find(part) for part in parts]
    assert -1 not in places, (parts[places.index(-1)], text)
    assert places == sorted(places), text


@pytest.mark.parametrize("channel", catalogue.names())
def test_an_open_incident_is_told_in_one_order_by_each_channel(channel: str, bodies: Bodies):
    subscription()
    row = incident(endpoint("RAL"), NOW)
    page = f"{HOME}/incidents/{row.pk}/"
    for text in texts(row, channel, bodies):
        assert_in_order(
            text,
            [
                "RAL_DATADISK",
                "has been slow as destination",
                "since 20 Nov 03:00 UTC",
                "at 0.45× (0.40–0.51) of the baseline, with large files, on 3 of 4 links",
                "First action: Check the inbound path.",
                page,
            ],
        )


@pytest.mark.parametrize("channel", catalogue.names())
def test_a_closed_incident_needs_no_action(channel: str, bodies: Bodies):
    if channel == "icinga":
        return  # it lists only open incidents
    subscription()
    row = incident(endpoint("RAL"), NOW - 2 * HOUR)
    happens(row, "closed", NOW)
    for text in texts(row, channel, bodies):
        parts = ["RAL_DATADISK", "was slow as destination", "from 20 Nov 01:00 until", "0.45×"]
        assert_in_order(text, [*parts, f"{HOME}/incidents/{row.pk}/"])
        assert "First action" not in text


def test_the_text_of_a_ticket_has_the_same_order():
    row = incident(endpoint("RAL"), NOW)
    text = evidence.Ticket.of(evidence.read(row, NOW)).text(f"{HOME}/incidents/{row.pk}/")
    parts = ["RAL_DATADISK", "has been slow as destination", "since 2026-11-20 03:00 UTC", "0.45×"]
    assert_in_order(text, [*parts, "First action: Check", f"{HOME}/incidents/{row.pk}/", "Site:"])
