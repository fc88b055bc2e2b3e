"""Where a file is: its URL as http speaks of it, as people read it, and inside its base or not."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote, unquote

from urllib3.exceptions import HTTPError
from urllib3.util import Url, parse_url

from sonar.addresses import PROTOCOLS
from sonar.movers.base import End, MoverError
from sonar.redaction.disguises import without

WEB = {
    scheme: protocol for scheme, protocol in PROTOCOLS.items() if protocol.name in ("http", "https")
}
SCHEMES = {scheme: protocol.name for scheme, protocol in WEB.items()}
PORTS = {protocol.name: protocol.port for protocol in WEB.values()}
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
    (re.compile(r"(\w+://)[^/@\s]+@"), r"\1"),
    (re.compile(r"(\w+://[^\s?\"]+)\?[^\s\"]*"), r"\1"),
)


def parsed(end: End, url: str) -> Url:
    """Return the parts of a URL as http speaks of it, or raise MoverError."""
    scheme, _, rest = url.partition("://")
    try:
        address = parse_url(f"{SCHEMES[scheme.lower()]}://{rest}")
    except (KeyError, HTTPError):
        address = Url()
    if not address.host:
        message = f"not a URL of http, https, dav or davs: {one_line(url, end.token)}"
        raise MoverError(end.where, message, permanent=True)
    return address._replace(auth=None)


def web_url(end: End) -> str:
    """Return the file's URL as http speaks of it: no dav, no user information."""
    return parsed(end, end.url).url


def host_of(end: End) -> str:
    address = parsed(end, end.url)
    return f"{address.host}:{address.port or PORTS[str(address.scheme)]}"


def place_of(end: End) -> str:
    """Return host, port and path for people; never the query, it may hold a token."""
    return one_line(host_of(end) + (parsed(end, end.url).path or "/"), end.token)


def host_and_path(end: End) -> str:
    """Return where a file is, for people, of any scheme: never user information or a query."""
    address = end.url.partition("?")[0]
    return address.partition("://")[2].rpartition("@")[2]


def one_line(text: str, *tokens: str) -> str:
    """Return text of foreign origin as one short line without credentials."""
    for token in filter(None, tokens):
        text = text.replace(token, "***")
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    line = without(beginning(" ".join(printable.split())), tokens)
    for pattern, replacement in SECRETS:
        line = pattern.sub(replacement, line)
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + "..."


def beginning(line: str) -> str:
    """Return the first words of a long line; no word is cut, as half a secret looks like none."""
    if len(line) <= LOOKED_AT:
        return line
    words, _, _ = line[:LOOKED_AT].rpartition(" ")
    return f"{words or line[:LOOKED_AT]} ..."


def path_of(end: End, url: str) -> str:
    """Return the decoded, normalised path of a URL, as a server's disk would see it."""
    return "/" + posixpath.normpath("/" + unquote(parsed(end, url).path or "/")).strip("/")


def at_path(end: End, path: str) -> End:
    """Return the same end for another path."""
    address = parsed(end, end.url)._replace(path=quote(path), fragment=None)
    return replace(end, url=address.url)


def require_inside(end: End) -> None:
    """Raise MoverError unless the file lies below the base of its endpoint."""
    file, base = parsed(end, end.url), parsed(end, end.base_url)
    same_server = (file.scheme, file.netloc) == (base.scheme, base.netloc)
    root = path_of(end, end.base_url).rstrip("/") + "/"
    path = path_of(end, end.url)
    if not (same_server and path.startswith(root) and path != root):
        message = f"{place_of(end)} is not below its base {one_line(root)}: not touched"
        raise MoverError(end.where, message, permanent=True)


def directories_below_base(end: End) -> Iterator[str]:
    """Yield the paths between the base and the file, the uppermost first."""
    base = path_of(end, end.base_url).rstrip("/")
    names = path_of(end, end.url)[len(base) + 1 :].split("/")
    for depth in range(1, len(names)):
        yield "/".join([base, *names[:depth]])
