"""What movers say to people: where a file is and what a server answered, without credentials."""

import re

from sonar.movers.base import End, Order
from sonar.redaction.disguises import without

MAX_MESSAGE = 300
LOOKED_AT = 4 * MAX_MESSAGE
"""Characters of a foreign text: what looks for secrets takes their square, 10 s for 64 KB of a."""

SECRETS = (
    (re.compile(r"(?i)\b(bearer|basic)[\s:=]+\S+"), r"\1 ***"),
    (re.compile(r"(?i)\b(authz|access_token|macaroon|token)=[^\s&\"]+"), r"\1=***"),
    (re.compile(r"(?i)([\"'](?:\w*token|authz|macaroon)[\"']\s*:\s*[\"'])[^\"']+"), r"\1***"),
    # Somebody else's, as a server may echo them: JSON Web Tokens, macaroons.
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(\.[\w-]+)?"), "***"),
    (re.compile(r"\bMD[A-Za-z0-9_=-]{60,}"), "***"),
    (re.compile(r"(\b\w+://)[^/@\s]+@"), r"\1"),
    (re.compile(r"(\b\w+://[^\s?\"]+)\?[^\s\"]*"), r"\1"),
)

MAIL_ADDRESS = re.compile(r"\b[\w.+-]{1,64}@[\w.-]{1,255}\b")
"""A server's error page asks to write to its administrator: error texts are public."""


def host_and_path(end: End) -> str:
    """Return where a file is, for people, of any scheme: never user information or a query."""
    address = end.url.partition("?")[0]
    return address.partition("://")[2].rpartition("@")[2]


def not_confirmed(order: Order) -> str:
    """Describe a copy whose bytes had all moved when its time was over."""
    return (
        f"all {order.bytes} bytes were reported as moved, but the copy was not confirmed within "
        f"{order.limits.total:g} s"
    )


def one_line(text: str, *tokens: str) -> str:
    """Return text of foreign origin as one short line without credentials."""
    for token in filter(None, tokens):
        text = text.replace(token, "***")
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    line = without(beginning(" ".join(printable.split())), tokens)
    line = MAIL_ADDRESS.sub("(mail address)", without_secrets(line))
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + "..."


def without_secrets(line: str) -> str:
    """Return a line without what looks like a credential, whoever's it is."""
    for pattern, replacement in SECRETS:
        line = pattern.sub(replacement, line)
    return line


def beginning(line: str) -> str:
    """Return the first words of a long line; no word is cut, as half a secret looks like none."""
    if len(line) <= LOOKED_AT:
        return line
    words, _, _ = line[:LOOKED_AT].rpartition(" ")
    return f"{words or line[:LOOKED_AT]} ..."
