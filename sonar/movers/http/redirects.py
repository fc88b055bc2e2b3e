"""Where a storage server may lead a request on, and what is shown there.

Its owner may not be the owner of where that leads. So an endpoint declares its data hosts, and

- a request goes to the host of its base URL, and to the data hosts that are declared;
- it stays what it is: method, body and the path of the file that was asked for;
- while a credential is involved it never goes on from https to http;
- ``Authorization`` goes along to a declared host, if the credential says so and the new URL carries
  no credential of its own; what a COPY lends goes along to declared hosts, as the server there
  fetches the file. What was left behind once does not come back.

What is sent where by the kind of its address, ``peers`` decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urljoin

from urllib3.response import BaseHTTPResponse
from urllib3.util import Url, parse_url

from sonar.movers.base import End
from sonar.movers.file_address import PORTS, parsed, path_of, web_url
from sonar.movers.http.peers import Route, host_and_port, origin, plain_host
from sonar.notation.addresses import readings, segments
from sonar.notation.data_hosts import are_covered, data_host

STATUSES = frozenset({301, 302, 303, 307, 308})
READING = frozenset({"GET", "HEAD"})
RELAYED = "dcache-http-uuid"
URL_CREDENTIALS = frozenset(
    {
        "access_token",
        "authz",
        "cap.msg",
        "cap.sym",
        RELAYED,
        "x-amz-signature",
        "xrdhttptk",
    }
)
"""Parameters, in lower case, by which servers authorise the requests that they redirect."""
SHORTEST_SECRET = 8
# The second one is Rucio's, of which sites and endpoints may be read.
OWN, LENT = ("authorization", "x-rucio-auth-token"), "transferheader"


class NotFollowed(Exception):
    """A redirect leads where nobody goes; ``server`` is where, if it may be declared.

    ``is_relayed`` says that who does not expect to be redirected is let through: doors of dCache
    send an upload on to the pool themselves.
    """

    def __init__(self, why: str, server: str = "", *, is_relayed: bool = False) -> None:
        super().__init__(why)
        self.server, self.is_relayed = server, is_relayed


@dataclass(frozen=True)
class Step:
    """One of the requests that an exchange is made of: to where, and what is shown there."""

    url: str
    headers: Mapping[str, str]
    token: str


def following(step: Step, method: str, end: End, response: BaseHTTPResponse, route: Route) -> Step:
    """Return the request to which a server leads, or raise NotFollowed; the route is told."""
    before, after = parse_url(step.url), target_of(step.url, response)
    if response.status == 303 and method not in READING:
        raise NotFollowed("redirects with status 303, which would change the request method")
    _, host, port = origin(after)
    is_declared = are_covered(end.data_hosts, host, port)
    if not is_declared and host != plain_host(parsed(end, end.base_url)):
        server = host_and_port(after)
        raise NotFollowed(
            "redirects to a host that is not one of its declared data hosts",
            server if data_host(server) else "",
            is_relayed=RELAYED in _names(after),
        )
    if not is_same_file(path_of(end, end.url), after.path or "/"):
        raise NotFollowed("redirects to another path")
    if (before.scheme, after.scheme) == ("https", "http") and is_credential_shown(step, after):
        raise NotFollowed("redirects from https to http, which would expose the credential")
    route.lead(parse_url(web_url(end)), after, is_declared=is_declared, secrets=secrets_in(after))
    return led(step, method, end, after, is_declared=is_declared)


def target_of(url: str, response: BaseHTTPResponse) -> Url:
    """Return where a redirect leads, or raise NotFollowed.

    What it says is in no error: it may hold a secret, or name who has nothing to do with it.
    """
    locations = response.headers.getlist("Location")
    if len(locations) != 1:
        raise NotFollowed("redirects to several URLs" if locations else "redirects without a URL")
    try:
        after = parse_url(urljoin(url, locations[0]))
    except ValueError:  # not a URL at all, to either of the two, whose words repeat it
        raise NotFollowed("redirects to an invalid URL") from None
    if after.scheme not in PORTS or not after.host:
        raise NotFollowed("redirects to something other than an http or https URL")
    return after._replace(auth=None, fragment=None)


def is_same_file(path: str, target: str) -> bool:
    """Say whether a path is that of the file, or of the same one below what a disk server adds."""
    try:
        if any({".", ".."} & set(segments(reading)) for reading in readings(target)):
            return False
    except ValueError:
        return False
    own, led_to = segments(path), segments(target)
    return led_to[-len(own) :] == own if own else not led_to


def led(step: Step, method: str, end: End, after: Url, *, is_declared: bool) -> Step:
    """Return the request for where a redirect leads, without what is not for that server."""
    step = replace(step, url=after.url)
    if origin(after) == origin(parse_url(web_url(end))):
        return step
    if not (is_declared and end.token_goes_along) or carries_credential(after):
        step = replace(step, headers=without(step.headers, OWN), token="")
    if not (is_declared and method == "COPY"):
        step = replace(step, headers=without(step.headers, LENT))
    if method == "MOVE" and carries_credential(after):
        step = replace(step, headers=moved_by(step.headers, after))
    return step


def moved_by(headers: Mapping[str, str], after: Url) -> dict[str, str]:
    """Return the headers of a MOVE whose new name has the credential of the old one, too.

    Data servers of XRootD 5.5.3 ask for one for each of the two names.
    """
    destination = headers["Destination"].partition("?")[0]
    return {**headers, "Destination": f"{destination}?{after.query}"}


def without(headers: Mapping[str, str], beginning: str | tuple[str, ...]) -> dict[str, str]:
    """Return the headers whose names do not begin so."""
    return {
        name: value for name, value in headers.items() if not name.lower().startswith(beginning)
    }


def is_credential_shown(step: Step, after: Url) -> bool:
    """Say whether a credential is in the request so far, or in where it is led."""
    shown = any(name.lower().startswith((*OWN, LENT)) for name in step.headers)
    return shown or carries_credential(parse_url(step.url)) or carries_credential(after)


def carries_credential(address: Url) -> bool:
    """Say whether a URL lets in whoever has it."""
    return not URL_CREDENTIALS.isdisjoint(_names(address))


def secrets_in(address: Url) -> tuple[str, ...]:
    """Return what in a query may be a secret: no error may repeat it."""
    query = address.query or ""
    values = (value for _, value in _query(address))
    return tuple(text for text in (query, *values) if len(text) >= SHORTEST_SECRET)


def _names(address: Url) -> set[str]:
    return {name.lower() for name, _ in _query(address)}


def _query(address: Url) -> list[tuple[str, str]]:
    return parse_qsl(address.query or "", keep_blank_values=True, errors="replace")
