"""Where a file is: its URL as its protocol speaks of it, and whether it is inside its base."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from urllib.parse import quote, unquote

from urllib3.exceptions import HTTPError
from urllib3.util import Url, parse_url

from sonar.movers.base import End, MoverError
from sonar.movers.messages import one_line
from sonar.notation.addresses import PROTOCOLS, is_printable

SCHEMES = {scheme: protocol.name for scheme, protocol in PROTOCOLS.items()}
URLS_KEPT = 2_000
"""Each is asked for its parts dozens of times in a test: 30 us each."""
PORTS = {protocol.name: protocol.port for protocol in PROTOCOLS.values()}


def parsed(end: End, url: str) -> Url:
    """Return the parts of a URL, the scheme by its protocol's name, or raise MoverError."""
    address = _parts_of(url)
    if not address.host:
        message = f"not a URL with the scheme {', '.join(SCHEMES)}: {one_line(url, end.token)}"
        raise MoverError(end.where, message, permanent=True)
    return address


@lru_cache(URLS_KEPT)
def _parts_of(url: str) -> Url:
    scheme, _, rest = url.partition("://")
    try:
        return parse_url(f"{SCHEMES[scheme.lower()]}://{rest}")._replace(auth=None)
    except (KeyError, HTTPError):
        return Url()


def web_url(end: End) -> str:
    """Return the file's URL as its protocol speaks of it: no dav, no user information."""
    return parsed(end, end.url).url


def host_of(end: End) -> str:
    address = parsed(end, end.url)
    return f"{address.host}:{address.port or PORTS[str(address.scheme)]}"


def place_of(end: End) -> str:
    """Return host, port and path for people; never the query, it may hold a token."""
    return one_line(host_of(end) + (parsed(end, end.url).path or "/"), end.token)


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
        message = f"{place_of(end)} is outside the base path {one_line(root)} of its endpoint"
        raise MoverError(end.where, message, permanent=True)


def require_printable(end: End) -> None:
    """Raise MoverError for a base URL that was registered before such characters were refused."""
    if not is_printable(end.base_url):
        message = "the base URL of the endpoint contains unprintable characters: change it"
        raise MoverError(end.where, message, permanent=True)


def directories_below_base(end: End) -> Iterator[str]:
    """Yield the paths between the base and the file, the uppermost first."""
    base = path_of(end, end.base_url).rstrip("/")
    names = path_of(end, end.url)[len(base) + 1 :].split("/")
    for depth in range(1, len(names)):
        yield "/".join([base, *names[:depth]])
