"""Which of the protocols of an endpoint Sonar should test by, and its base URL."""

import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from sonar.models import Endpoint
from sonar.models.registry import BASE_URL, has_host
from sonar.notation.addresses import PORTS, host_of, problem, scheme_of

TAPE = "the endpoint is tape storage, which Sonar does not test"
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
    letter = next((letter for letter in "@?#" if letter in url), "")
    problems = {
        "the base URL contains unprintable characters": not url.isprintable(),
        "the base URL contains spaces": any(letter.isspace() for letter in url),
        f"the base URL has more than {longest} characters": len(url) > longest,
        "the host is an IPv6 address without brackets": server.count(":") > 1 and server[0] != "[",
        f"the base URL contains {letter}": letter,
        "the base URL has no host, or its port is not from 1 to 65535": not (
            re.match(BASE_URL, url) and has_host(url)
        ),
    }
    return next((sentence for sentence, holds in problems.items() if holds), "") or problem(url)


def best(urls: Iterable[str]) -> str:
    """Return the base URL to test by, of those given the likeliest first; empty for none."""
    by_scheme: dict[str, str] = {}
    for url in urls:
        if not url_problem(url):
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
    schemes = sorted({scheme_of(url) for url in urls})
    reasons = [
        f"{scheme_of(url)} cannot be used: {url_problem(url)}"
        for url in urls
        if scheme_of(url) in PREFERRED
    ]
    if reasons:
        return f"the endpoint has no protocol that Sonar can test: {', '.join(reasons)}"
    others = schemes and f", only {', '.join(schemes)}"
    return f"the endpoint has no protocol that Sonar can test{others or ''}"
