"""The channels by which Sonar calls: a description of each, whose module is loaded when used.

Forms, REST, docs and the sender read the facts of a channel here and nowhere else. A new one is an
entry of ``CHANNELS`` and the module that it names.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

from sonar.notation.addresses import address_of, is_nobodys, is_printable, place_of

EMAIL, APPRISE = "email", "apprise"
LONGEST = 2000
SHORTEST_KEY = 16
NO_MAIL = (
    "E-mail is not set up. An operator must set SONAR_SMTP_HOST and SONAR_MAIL_FROM "
    "(docs/notifications.md)."
)
NO_ADDRESS = "Write an e-mail address, like grid-ops@example.org."
validate_mail = EmailValidator(allowlist=[])
# Domains ending in one of these are local to the mail server.
OF_THIS_MACHINE = ("localhost", "localdomain")
NO_URL = "SONAR_URL must be set, so that messages can say where this Sonar is."


def of_web(url: str) -> str:
    """Say what is wrong with an address that is posted to; what it is stays unsaid."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:  # an IPv6 address, or a port, that cannot be
        host = ""
    if not host or parts.scheme not in ("http", "https") or not is_printable(url) or " " in url:
        return "Write an address that begins with https:// (http:// within your own network)."
    if parts.username or parts.password or parts.fragment:
        return "The address has no user, no password and no # in it."
    return "No server can have this address." if is_nobodys(host) else ""


def matching(pattern: str, sentence: str) -> Callable[[str], str]:
    """Return what says ``sentence`` of texts that a pattern does not match as a whole."""
    return lambda text: "" if re.fullmatch(pattern, text) else sentence


def of_line(text: str) -> str:
    return "" if text.isprintable() else "It must be one line."


of_key = matching(
    rf"(?s).{{{SHORTEST_KEY},}}", f"The key must have {SHORTEST_KEY} characters or more."
)
of_apprise = matching(
    r"[a-z][a-z0-9+.-]*://\S+", "Write one address of apprise, like tgram://token/chat."
)
of_service = matching(
    r"[^!\"\\\n]+![^!\"\\\n]+", "Write host and service with a ! in between, like grid!sonar."
)


@dataclass(frozen=True)
class ChannelField:
    """What a channel needs to know of the other side; ``check`` says what is wrong with it."""

    name: str
    label: str
    check: Callable[[str], str] = of_line
    is_needed: bool = True
    is_secret: bool = True
    example: str = ""


def address_like(example: str) -> ChannelField:
    return ChannelField("url", "address", of_web, example=example)


USER = ChannelField("user", "user (empty: none)", is_needed=False, is_secret=False)
PASSWORD = ChannelField("password", "password", is_needed=False)


@dataclass(frozen=True)
class ChannelDescription:
    """A channel as everybody but its module knows it."""

    name: str
    label: str
    path: str
    """The class, as ``package.module:Name``; called without arguments once it is used."""
    fields: tuple[ChannelField, ...] = ()
    is_board: bool = False
    """Whether it is told what is so, once a minute, in place of messages."""
    is_sent_once: bool = False
    """Whether nothing is sent again that may have arrived."""
    package: str = ""
    """What must be installed for it besides."""

    def missing(self) -> str:
        """Say what is missing for it here; empty if it can be used."""
        if not settings.SONAR_URL:
            return NO_URL
        if self.name == EMAIL and not settings.EMAIL_HOST:
            return NO_MAIL
        if self.package and find_spec(self.package) is None:
            return (
                f"The Python package {self.package} is not installed where Sonar sends from: "
                f"pip install {self.package} there (docs/notifications.md)."
            )
        return ""

    def problems(self, values: Mapping[str, str]) -> dict[str, str]:
        """Say by field what is wrong with the settings of a subscription."""
        allowed = {field.name for field in self.fields}
        sentences = dict.fromkeys(values.keys() - allowed, f"The channel {self.name} has none.")
        for field in self.fields:
            value = values.get(field.name, "")
            if len(value) > LONGEST:
                sentences[field.name] = f"It has at most {LONGEST} characters."
            elif not value and field.is_needed:
                sentences[field.name] = f"The channel {self.name} needs it."
            elif value and (sentence := field.check(value)):
                sentences[field.name] = sentence
        return sentences

    def untyped(self, before: Mapping[str, str], written: Mapping[str, str]) -> list[str]:
        """Name the secrets to be typed again, as a new address leads to another server."""
        names = [field.name for field in self.fields if field.is_secret and before.get(field.name)]
        names = [name for name in names if not written[name]]
        if not names or not written["url"]:
            return []
        old, new = (place_of(values["url"]).server for values in (before, written))
        return names if old != new else []


HERE = "sonar.alerting.channels"
CHANNELS: tuple[ChannelDescription, ...] = (
    ChannelDescription(EMAIL, "e-mail", f"{HERE}.mail:Mail"),
    ChannelDescription(
        "webhook",
        "webhook: JSON, signed",
        f"{HERE}.webhook:Webhook",
        (
            address_like("https://hooks.example.org/sonar"),
            ChannelField("key", "key of the signature", of_key),
        ),
    ),
    ChannelDescription(
        "chat",
        "chat: an incoming webhook of Slack or Mattermost",
        f"{HERE}.chat:Chat",
        (address_like("https://chat.example.org/hooks/x1y2z3"),),
    ),
    ChannelDescription(
        "alertmanager",
        "Alertmanager: alerts while an incident is open (API v2)",
        f"{HERE}.alertmanager:Alertmanager",
        (address_like("https://alertmanager.example.org:9093"), USER, PASSWORD),
        is_board=True,
    ),
    ChannelDescription(
        "icinga",
        "Icinga 2: a passive result each minute for one service",
        f"{HERE}.icinga:Icinga",
        (
            address_like("https://icinga.example.org:5665"),
            ChannelField("user", "user of its API", is_secret=False),
            ChannelField("password", "password"),
            ChannelField("service", "service, as host!service", of_service, is_secret=False),
        ),
        is_board=True,
    ),
    ChannelDescription(
        "wlcg",
        "alarms of WLCG (AlarmsAndAlerts)",
        f"{HERE}.wlcg:AlarmBus",
        (address_like("https://alarms.example.org/alarms"),),
    ),
    ChannelDescription(
        APPRISE,
        "apprise: one of many services; sent at most once",
        f"{HERE}.many_services:ManyServices",
        (ChannelField("url", "address of apprise", of_apprise, example="tgram://token/chat"),),
        is_sent_once=True,
        package="apprise",
    ),
)


def names() -> list[str]:
    return [channel.name for channel in CHANNELS]


def describe(name: str) -> ChannelDescription:
    """Return the description of a channel; ValueError names those there are."""
    for channel in CHANNELS:
        if channel.name == name:
            return channel
    raise ValueError(f"no channel is called {name!r}; allowed: {', '.join(names())}")


BOARDS = frozenset(channel.name for channel in CHANNELS if channel.is_board)


@cache
def load(path: str) -> Any:  # noqa: ANN401 - a Channel or a Board
    """Return the process's one channel of this path."""
    return resolve_name(path)()


def mail_problem(address: str) -> str:
    """Say what is wrong with an e-mail address; it must lead to one mailbox of a public domain."""
    name, _, domain = address.rpartition("@")
    try:
        validate_mail(address)
    except ValidationError:
        return NO_ADDRESS
    if '"' in name:
        return NO_ADDRESS
    if domain.casefold().rpartition(".")[2] in OF_THIS_MACHINE or address_of(domain) is not None:
        return "The part after the @ must be a public domain, like example.org."
    return "" if address.isascii() and len(address) <= 254 else "It must be in ASCII letters."
