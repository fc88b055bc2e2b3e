"""The notification channels: a description of each, whose module is loaded on first use.

Forms, REST, docs and the sender read the facts of a channel only here. A new channel is an entry of
``CHANNELS`` and the module that it names.
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
NO_ADDRESS = "“{}” is not an e-mail address. Enter one, such as grid-ops@example.org."
validate_mail = EmailValidator(allowlist=[])
# Domains ending in one of these are local to the mail server.
OF_THIS_MACHINE = ("localhost", "localdomain")
NO_URL = "SONAR_URL must be set, because messages contain links to this Sonar instance."


def of_web(url: str) -> str:
    """Return the error of an address for POST requests, without quoting it: it may be secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:  # an IPv6 address, or a port, that cannot be
        host = ""
    if not host or parts.scheme not in ("http", "https") or not is_printable(url) or " " in url:
        return "The address must begin with https://, or with http:// within your own network."
    if parts.username or parts.password or parts.fragment:
        return "The address must not contain a user name, a password or a #."
    return "The address must be a valid server address." if is_nobodys(host) else ""


def matching(pattern: str, sentence: str) -> Callable[[str], str]:
    """Return a check that gives ``sentence`` for texts that do not fully match a pattern."""
    return lambda text: "" if re.fullmatch(pattern, text) else sentence


def of_line(text: str) -> str:
    return "" if text.isprintable() else "The value must be one line of printable characters."


of_key = matching(
    rf"(?s).{{{SHORTEST_KEY},}}", f"The key must have at least {SHORTEST_KEY} characters."
)
of_apprise = matching(
    r"[a-z][a-z0-9+.-]*://\S+", "The value must be one Apprise URL, such as tgram://token/chat."
)
of_service = matching(
    r"[^!\"\\\n]+![^!\"\\\n]+", "The service must have the form host!service, such as grid!sonar."
)


@dataclass(frozen=True)
class ChannelField:
    """A setting of a channel; ``check`` returns the error of a value."""

    name: str
    label: str
    check: Callable[[str], str] = of_line
    is_needed: bool = True
    is_secret: bool = True
    example: str = ""


def address_like(example: str) -> ChannelField:
    return ChannelField("url", "address", of_web, example=example)


USER = ChannelField("user", "user (optional)", is_needed=False, is_secret=False)
PASSWORD = ChannelField("password", "password (optional)", is_needed=False)


@dataclass(frozen=True)
class ChannelDescription:
    """The facts of a channel that other modules need."""

    name: str
    label: str
    path: str
    """The class, as ``package.module:Name``; created without arguments on first use."""
    fields: tuple[ChannelField, ...] = ()
    is_board: bool = False
    """Whether it is sent all open incidents once a minute instead of messages."""
    is_sent_once: bool = False
    """Whether a message that may have been delivered is not sent again."""
    package: str = ""
    """The optional Python package that it requires."""

    def missing(self) -> str:
        """Say what is missing to use it; return an empty string if nothing is."""
        if not settings.SONAR_URL:
            return NO_URL
        if self.name == EMAIL and not settings.EMAIL_HOST:
            return NO_MAIL
        if self.package and find_spec(self.package) is None:
            return (
                f"The Python package {self.package} is not installed in the worker that sends "
                f"notifications. Run pip install {self.package} there (docs/notifications.md)."
            )
        return ""

    def problems(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the errors of the settings of a subscription by field."""
        allowed = {field.name for field in self.fields}
        has = (
            f"Allowed: {', '.join(sorted(allowed))}."
            if allowed
            else "This channel has no settings."
        )
        unknown = f"The channel {self.name} does not have this setting. {has}"
        sentences = dict.fromkeys(values.keys() - allowed, unknown)
        for field in self.fields:
            value = values.get(field.name, "")
            if len(value) > LONGEST:
                sentence = f"The value has {len(value)} characters. At most {LONGEST} are allowed."
                sentences[field.name] = sentence
            elif not value and field.is_needed:
                sentence = f"The value is empty. The channel {self.name} requires this setting."
                sentences[field.name] = sentence
            elif value and (sentence := field.check(value)):
                sentences[field.name] = sentence
        return sentences

    def untyped(self, before: Mapping[str, str], written: Mapping[str, str]) -> list[str]:
        """Name the secrets to enter again, because the new address is on another server."""
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
        "webhook: signed JSON",
        f"{HERE}.webhook:Webhook",
        (
            address_like("https://hooks.example.org/sonar"),
            ChannelField("key", "signing key", of_key),
        ),
    ),
    ChannelDescription(
        "chat",
        "chat: incoming webhook of Slack or Mattermost",
        f"{HERE}.chat:Chat",
        (address_like("https://chat.example.org/hooks/x1y2z3"),),
    ),
    ChannelDescription(
        "alertmanager",
        "Alertmanager: an alert for each open incident",
        f"{HERE}.alertmanager:Alertmanager",
        (address_like("https://alertmanager.example.org:9093"), USER, PASSWORD),
        is_board=True,
    ),
    ChannelDescription(
        "icinga",
        "Icinga 2: passive check results for one service",
        f"{HERE}.icinga:Icinga",
        (
            address_like("https://icinga.example.org:5665"),
            ChannelField("user", "API user", is_secret=False),
            ChannelField("password", "password"),
            ChannelField("service", "service (host!service)", of_service, is_secret=False),
        ),
        is_board=True,
    ),
    ChannelDescription(
        "wlcg",
        "WLCG alarms (AlarmsAndAlerts)",
        f"{HERE}.wlcg:AlarmBus",
        (address_like("https://alarms.example.org/alarms"),),
    ),
    ChannelDescription(
        APPRISE,
        "Apprise: any service that Apprise supports; each message is sent at most once",
        f"{HERE}.many_services:ManyServices",
        (ChannelField("url", "Apprise URL", of_apprise, example="tgram://token/chat"),),
        is_sent_once=True,
        package="apprise",
    ),
)


def names() -> list[str]:
    return [channel.name for channel in CHANNELS]


def describe(name: str) -> ChannelDescription:
    """Return the description of a channel; ValueError lists the allowed names."""
    for channel in CHANNELS:
        if channel.name == name:
            return channel
    raise ValueError(f"channel {name!r} does not exist; allowed: {', '.join(names())}")


BOARDS = frozenset(channel.name for channel in CHANNELS if channel.is_board)


@cache
def load(path: str) -> Any:  # noqa: ANN401 - a Channel or a Board
    """Return the process's one channel of this path."""
    return resolve_name(path)()


def mail_problem(address: str) -> str:
    """Return the error of an e-mail address, which must be one mailbox of a public domain."""
    name, _, domain = address.rpartition("@")
    try:
        validate_mail(address)
    except ValidationError:
        return NO_ADDRESS.format(address)
    if '"' in name:
        return NO_ADDRESS.format(address)
    if domain.casefold().rpartition(".")[2] in OF_THIS_MACHINE or address_of(domain) is not None:
        return f"“{domain}” is not a public domain. Enter an address such as ops@example.org."
    is_plain = address.isascii() and len(address) <= 254
    return "" if is_plain else "The address must have at most 254 characters, all of them ASCII."
