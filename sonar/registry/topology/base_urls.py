"""Which of the protocols of an endpoint Sonar should test by, and its base URL."""

import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from sonar.models import Endpoint
from sonar.models.registry import BASE_URL, has_host
from sonar.notation.addresses import PORTS, host_of, problem

TAPE = "it is tape, and Sonar would write test files to it"
# The first that an endpoint has is taken: tests by HTTP reach most others.
PREFERRED = ("davs", "https", "root", "xroot", "gsiftp", "dav", "http")


def base_url(place: str, prefix: str) -> str:
    """Join a URL and the path below it; a port that goes without saying is left out."""
    scheme, _, rest = place.partition("://")
    server, _, path = rest.partition("/")
    server = server.removesuffix(f":{PORTS.get(scheme, 0)}")
    segments = [segment for segment in f"{path}/{prefix}".split("/") if segment]
    return f"{scheme}://{'/'.join([server, *segments])}"


def url_problem(url: str) -> str:
    """Say what makes a URL, of whatever scheme, no base URL; empty if it is one."""
    place = url.partition("://")[2]
    server = place.partition("/")[0]
    longest = Endpoint._meta.get_field("base_url").max_length or 0
    if not url.isprintable():
        return "its base URL has characters that cannot be printed"
    if any(letter.isspace() for letter in url):
        return "its base URL has blanks"
    if len(url) > longest:
        return f"its base URL has more than {longest} characters"
    if server.count(":") > 1 and not server.startswith("["):
        return "its host is an IPv6 address without brackets"
    if not (re.match(BASE_URL, url) and has_host(url)):
        return "its base URL has no host, or has a user, a password or a query"
    return problem(url)


def best(urls: Iterable[str]) -> str:
    """Return the base URL to test by, of those given the likeliest first; empty for none."""
    by_scheme: dict[str, str] = {}
    for url in urls:
        if re.match(BASE_URL, url) and has_host(url):
            by_scheme.setdefault(urlsplit(url).scheme, url)
    return next((by_scheme[scheme] for scheme in PREFERRED if scheme in by_scheme), "")


def hosts_of(urls: Iterable[str]) -> set[str]:
    """Return the hosts of URLs of any scheme; what has none is passed over."""
    return {host_of(url) for url in urls if has_host(url)}


def unusable(urls: Collection[str], *, is_tape: bool) -> str:
    """Say why nothing is tested at storage with these URLs; empty if it can be."""
    if is_tape:
        return TAPE
    if best(urls):
        return ""
    schemes = sorted({url.partition("://")[0] for url in urls})
    return f"no protocol that Sonar tests, but {', '.join(schemes) or 'none at all'}"
