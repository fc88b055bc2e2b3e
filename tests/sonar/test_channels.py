"""Channels: whom they may connect to, what of their settings is refused, and what they write."""

import json
import sys
from dataclasses import replace
from ipaddress import ip_network
from types import SimpleNamespace

import pytest

from sonar.alerting.channels import catalogue, chat, icinga, web
from sonar.alerting.channels.alertmanager import alert
from sonar.alerting.channels.base import ChannelError, Matter, Message, Target
from sonar.alerting.channels.mail import Mail
from sonar.alerting.channels.many_services import ManyServices
from sonar.alerting.channels.webhook import signature
from tests.sonar.alarms import NOW

TARGET = Target("key", "anna", "anna@example.org", "https://s/subscriptions/", "https://s", {})


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1:1/x", "not public (loopback)"),
        ("https://0x7f000001:1/x", "not public (loopback)"),
        ("https://[::1]:1/x", "not public (loopback)"),
        ("https://[::ffff:10.0.0.1]:1/x", "not public (private)"),
        ("https://[64:ff9b::a9fe:a9fe]/x", "not public (link-local)"),
        ("https://169.254.169.254/latest", "not public (link-local)"),
        ("https://localhost:1/x", "not public (loopback)"),
        ("http://192.0.2.1/x", "SONAR_NOTIFY_NETWORKS"),
    ],
)
def test_an_address_inside_is_connected_to_only_where_a_setting_has_its_network(
    url, said, settings
):
    settings.SONAR_NOTIFY_NETWORKS = []
    with pytest.raises(ChannelError) as refusal:
        web.post(url, b"{}", {})
    assert said in str(refusal.value)
    assert "/x" not in str(refusal.value)


def test_within_a_network_of_the_settings_it_is_tried(settings):
    settings.SONAR_NOTIFY_NETWORKS = [ip_network("127.0.0.0/8")]
    with pytest.raises(ChannelError, match="no server listens"):
        web.post("http://127.0.0.1:1/x", b"{}", {})


@pytest.mark.parametrize(
    ("channel", "values", "field"),
    [
        ("webhook", {"url": "ftp://example.org", "key": "k" * 16}, "url"),
        ("webhook", {"url": "https://user:pass@example.org/", "key": "k" * 16}, "url"),
        ("webhook", {"url": "https://example.org/\r\nX: y", "key": "k" * 16}, "url"),
        ("webhook", {"url": "https://example.org/", "key": "short"}, "key"),
        ("webhook", {"url": "https://example.org/"}, "key"),
        ("chat", {"url": "https://0.0.0.0/"}, "url"),
        ("icinga", {"url": "https://i", "user": "u", "password": "p", "service": "x"}, "service"),
        ("email", {"url": "https://example.org/"}, "url"),
        ("apprise", {"url": "nothing"}, "url"),
    ],
)
def test_what_a_channel_cannot_use_is_refused_by_the_name_of_its_field(channel, values, field):
    assert [*catalogue.describe(channel).problems(values)] == [field]


@pytest.mark.parametrize("address", ["anna", "a@b\nBcc: c@d", "a@example.org, b@example.org", ""])
def test_an_address_of_e_mail_is_one(address):
    assert catalogue.mail_problem(address)


def test_nothing_that_an_incident_is_called_becomes_a_header(settings, mailoutbox):
    settings.DEFAULT_FROM_EMAIL = "sonar@example.org"
    message = Message("id", NOW, "test", "A\r\nBcc: all@example.org\n\nx", "text")
    Mail().send(message, TARGET)
    assert mailoutbox[0].message()["Subject"] == "[Sonar] A Bcc: all@example.org x"
    assert mailoutbox[0].message()["Bcc"] is None


SLACK, MATTERMOST = "https://hooks.slack.com/services/T0/B0/x", "https://chat.example.org/hooks/x"


def matter(**changed: object) -> Matter:
    values: dict[str, object] = {
        "id": 7,
        "title": "",
        "type": "failing",
        "scope": "endpoint",
        "factor": None,
        "source": "NORTH_DISK",
        "destination": "",
        "site": "NORTH",
        "links": 3,
        "of_links": 4,
        "began_at": NOW,
        "closed_at": None,
        "assignee": "nobody",
        "advice": "Ask R&D.",
        "sentence": "3 of 4 links from NORTH_DISK fail.",
        "url": "https://s/incidents/7/?a=1&b=2",
    }
    return Matter(**(values | changed))  # type: ignore[arg-type]


def posted(monkeypatch: pytest.MonkeyPatch, url: str, message: Message) -> str:
    """Return the text that is sent to an address of a chat."""
    bodies = list[bytes]()

    def post(url: str, body: bytes, headers: dict[str, str]) -> web.Reply:
        bodies.append(body)
        return web.Reply(200, "ok")

    monkeypatch.setattr(chat, "post", post)
    target = Target("key", "ops", "", "https://s/subscriptions/", "https://s", {"url": url})
    assert chat.Chat().send(message, target) == "200 OK: ok"
    text: str = json.loads(bodies[0])["text"]
    return text


@pytest.mark.parametrize(
    ("url", "text"),
    [
        (
            SLACK,
            "*NORTH_DISK &lt;fails&gt;*\n3 of 4 links from NORTH_DISK fail.\n"
            "First action: Ask R&amp;D.\n<https://s/incidents/7/?a=1&amp;b=2|Incident 7>\n"
            "Assignee: nobody",
        ),
        (
            "https://hooks.slack-gov.com/services/x",
            "*NORTH_DISK &lt;fails&gt;*\n3 of 4 links from NORTH_DISK fail.\n"
            "First action: Ask R&amp;D.\n<https://s/incidents/7/?a=1&amp;b=2|Incident 7>\n"
            "Assignee: nobody",
        ),
        (
            MATTERMOST,
            "**NORTH_DISK &lt;fails&gt;**\n3 of 4 links from NORTH_DISK fail.\n"
            "First action: Ask R&amp;D.\n[Incident 7](https://s/incidents/7/?a=1&amp;b=2)\n"
            "Assignee: nobody",
        ),
    ],
)
def test_slack_and_mattermost_are_each_sent_their_own_markup(monkeypatch, url: str, text: str):
    message = Message("id", NOW, "incident", "NORTH_DISK <fails>", "", matters=[matter()])
    assert posted(monkeypatch, url, message) == text


def test_a_chat_is_sent_no_more_than_so_many_incidents(monkeypatch):
    message = Message("id", NOW, "digest", "x", "", matters=[matter(closed_at=NOW)] * 22)
    assert posted(monkeypatch, SLACK, message).endswith("|Incident 7>\nand 2 more")


@pytest.mark.parametrize(
    ("text", "in_slack", "in_mattermost"),
    [
        ("*a* _b_ ~c~ `d`", "∗a∗ ＿b＿ ∼c∼ 'd'", r"\*a\* \_b\_ \~c\~ \`d\`"),
        ("A_DISK and B_DISK", "A_DISK and B_DISK", "A_DISK and B_DISK"),
        ("<!channel> @all", "&lt;!channel&gt; @\u200ball", "&lt;!channel&gt; @\u200ball"),
        ("[x](http://e/) # | \\", "[x](http://e/) # | \\", r"\[x\](http://e/) \# \| \\"),
        ("<http://e/x|y>", "&lt;http://e/x|y&gt;", r"&lt;http://e/x\|y&gt;"),
        ("See https://s/a_b_/?c=1&d=2.", "See https://s/a_b_/?c=1&amp;d=2.", None),
        ("fish &amp; chips", "fish &amp;amp; chips", None),
    ],
)
def test_what_a_chat_would_interpret_is_shown_as_it_is(
    monkeypatch, text: str, in_slack: str, in_mattermost: str | None
):
    message = Message("id", NOW, "test", "", text)
    assert posted(monkeypatch, SLACK, message) == in_slack
    assert posted(monkeypatch, MATTERMOST, message) == (in_mattermost or in_slack)


def test_apprise_is_told_that_it_is_given_plain_text(monkeypatch):
    told = list[dict[str, str]]()

    class Apprise:
        def add(self, url: str) -> bool:
            return True

        def notify(self, **arguments: str) -> bool:
            told.append(arguments)
            return True

    monkeypatch.setitem(sys.modules, "apprise", SimpleNamespace(Apprise=Apprise))
    target = Target("key", "ops", "", "", "https://s", {"url": "tgram://t/c"})
    ManyServices().send(Message("id", NOW, "test", "a < b", "x*y"), target)
    assert told == [{"body": "x*y", "title": "[Sonar] a < b", "body_format": "text"}]


def test_the_signature_is_as_the_docs_have_it():
    # printf '1700000000.{}' | openssl dgst -sha256 -hmac secret
    code = "b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
    assert signature("secret", "1700000000", b"{}") == code


def test_without_its_package_apprise_says_what_to_install(settings):
    settings.SONAR_URL = "https://sonar.example.org"
    assert "pip install apprise" in catalogue.describe("apprise").missing()
    with pytest.raises(ModuleNotFoundError):
        ManyServices().send(Message("id", NOW, "test", "x", "y"), TARGET)


def test_every_channel_can_be_loaded_and_the_docs_have_a_row_for_each():
    from pathlib import Path

    docs = Path("docs/notifications.md").read_text()
    for channel in catalogue.CHANNELS:
        assert hasattr(catalogue.load(channel.path), "tell" if channel.is_board else "send")
        (row,) = [line for line in docs.splitlines() if line.startswith(f"| `{channel.name}` |")]
        assert all(f"`{field.name}`" in row for field in channel.fields), row


def test_while_measurements_are_doubtful_a_service_has_a_warning_that_says_so():
    failing = matter(sentence="A fails.")
    grid = matter(scope="grid", type="failing", sentence="Sonar itself: most links fail.")
    target = replace(TARGET, settings={"service": "sonar!grid"})
    assert icinga.result([failing], target, NOW)["exit_status"] == icinga.CRITICAL
    doubtful = icinga.result([failing, grid], target, NOW)
    assert doubtful["exit_status"] == icinga.WARNING
    first = str(doubtful["plugin_output"]).splitlines()[0]
    assert first == "2 incidents are open, results are doubtful"


def test_labels_of_alerts_have_no_figures_but_those_of_names():
    figures = {"factor": 0.4567, "links": 12345, "of_links": 23456}
    words = dict.fromkeys(("title", "sentence", "url", "assignee", "advice"), "12345 of 23456")
    ends = {"source": "", "destination": "RAL", "site": "RAL", "scope": "destination"}
    matter = Matter(
        id=987654, type="slow", began_at=NOW, closed_at=None, **figures, **words, **ends
    )
    labels = " ".join(alert(matter, TARGET, NOW)["labels"].values())
    assert not any(figure in labels for figure in ("987654", "12345", "23456", "0.45"))
