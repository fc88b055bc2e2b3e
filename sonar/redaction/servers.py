"""Where the registered servers are is taken out of texts: hosts, addresses, ports, base paths.

An endpoint's name stands for its server. `Servers` is made once for a registry, and its work on
a text does not grow with the number of endpoints.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from sonar.notation.addresses import PORTS, address_of
from sonar.notation.data_hosts import DataHost, data_host
from sonar.redaction.disguises import Span, View, fold

_DOT = r"[\s\[\](){}]{0,3}\.[\s\[\](){}]{0,3}"
IPV4 = re.compile(rf"(?<!\d)\d{{1,4}}(?:{_DOT}\d{{1,4}}){{3,}}(?!\d)")
# As inet_aton reads them: in hex, octal, or with fewer parts.
ODD_IPV4 = re.compile(
    r"(?<![\w.])(?:0x[0-9a-f]{1,8}|\d{1,11})(?:\.(?:0x[0-9a-f]{1,8}|\d{1,11})){0,3}(?![\w-])"
)
IPV6 = re.compile(r"[0-9a-f:.]+")
ZONE = re.compile(r"%[\w-]+")


def plain(host: str) -> str:
    """Return a host as its spellings are looked up: small, or an address in its shortest form."""
    host = fold(host).rstrip(".")
    address = address_of(host)
    return str(address) if address else host


def international(host: str) -> Iterator[str]:
    """Yield a host as the DNS has it and as people do."""
    try:
        yield host.encode("idna").decode()
        yield fold(host.encode("idna").decode("idna"))
    except UnicodeError:  # no name of the DNS: it is written as it is
        return


def are_octets(parts: list[str]) -> bool:
    return all(int(part) <= 255 for part in parts)


def ipv6_places(text: str) -> Iterator[tuple[int, int]]:
    """Yield what looks like an IPv6 address; times of day and names of C++ do not."""
    for match in IPV6.finditer(text):
        start, end = _within_word(text, match), match.end()
        while end > start and text[end - 1] == ".":
            end -= 1
        if text[start:end].endswith(":") and not text[start:end].endswith("::"):
            end -= 1
        if _is_ipv6(text[start:end], followed_by=text[end : end + 1]):
            zone = ZONE.match(text, end)
            yield start, zone.end() if zone else end


def _within_word(text: str, match: re.Match[str]) -> int:
    """Return where an address may begin: not in a word before it, as `tcp:` or `XrdCl::`."""
    before = text[match.start() - 1 : match.start()] if match.start() else ""
    word = re.match(r"[^:]*(?:::(?!:)|:|$)", match[0])
    inside = before.isalnum() or before == "_"
    return match.start() + (len(word[0]) if inside and word else 0)


def _is_ipv6(run: str, followed_by: str) -> bool:
    colons = run.count(":")
    if colons < 2 or not any(letter.isalnum() for letter in run):
        return False
    if "::" not in run:
        return colons >= 5
    if followed_by.isalnum() or followed_by == "_":
        return colons >= 3
    return any(letter.isdigit() for letter in run) or colons >= 3


def with_scheme(text: str, start: int) -> int:
    """Return where the user information and the scheme before a host begin."""
    if text[start - 1 : start] == "@":
        start -= 1
        while start and not (text[start - 1].isspace() or text[start - 1] in "/@\"'"):
            start -= 1
    if text[max(0, start - 3) : start] == "://":
        start -= 3
        while start and (text[start - 1].isalnum() or text[start - 1] in "+.-"):
            start -= 1
    return start


def parents(host: str) -> Iterator[str]:
    """Yield the domains of a host, from the nearest on: of `a.b.c` they are `b.c` and `c`."""
    while "." in host:
        host = host.partition(".")[2]
        yield host


def is_below(text: str, at: int, path: str) -> bool:
    """Say whether a path, or one below it, stands at this place."""
    after = text[at + len(path) : at + len(path) + 1]
    return text.startswith(path, at) and not (after.isalnum() or after in {"_", "-", "~", "%"})


SERVER, ADDRESS, PORT, BASE = "[server]", "[address]", "[port]", "[base]"
ORDINARY_PORTS = 1024
"""Lower ports reveal nothing, and occur in texts as other numbers."""

WORD = re.compile(r"[\w.-]+")
PORT_AFTER = re.compile(r"\.?:\d{1,8}(?!\d)")
PATH = re.compile(r"(?<![\w.\]~/-])/[^\s\"'<>?#,;:()]*")
PORT_WORD = re.compile(r"(?<![a-z])ports?(?:\s+(?:number|no\.?))?[\"']?[\s:=#]{0,3}[\"']?(\d{1,8})")
NUMBER = re.compile(
    r"(?<![\w/-])(?<!\d\.)0{0,3}(\d{4,5})(?![\w-])(?!\.\d)"
    r"(?!\s*(?:of\b|bytes?\b|[kmgt]?i?b\b|[mun]?s\b|sec|min|hour|files?\b|times\b|%))"
)
CUT = re.compile(r"(?<![\w.-])([\w.-]+?)\.\.\.$")
SHORTEST_CUT = 6
"""So many letters of a host that was cut tell which it is."""


class Place(NamedTuple):
    """Where an endpoint is on its server; its path as texts have it, without the last slash."""

    name: str
    port: int | None
    path: str


class Servers:
    """The hosts, ports and paths of all endpoints, given by name and base URL.

    And the names of data servers to which they lead, as they are declared.
    """

    def __init__(self, base_urls: Iterable[tuple[str, str]], declared: Iterable[str] = ()) -> None:
        self.places: dict[str, list[Place]] = defaultdict(list)
        self._bases: dict[str, set[str]] = defaultdict(set)
        self._spelt, self._names = set[str](), set[str]()
        for name, base_url in base_urls:
            self._add(name, base_url)
        self._ports = {
            place.port or 0 for places in self.places.values() for place in places
        } - set(range(ORDINARY_PORTS))
        self._deepest = max((path.count("/") for path in self._bases), default=0)
        addresses = map(address_of, self.places)
        self._addresses = {address for address in addresses if isinstance(address, IPv4Address)}
        self._hosts_by_form: dict[str, str] = {}
        for spelt in self._spelt:
            host = plain(spelt)
            if not address_of(host):
                forms = {host, *international(spelt.lower())}
                self._hosts_by_form |= dict.fromkeys(forms, host)
        self._patterns: dict[str, list[DataHost]] = defaultdict(list)
        for entry in filter(None, map(data_host, declared)):
            self._add_data_host(entry)
        self._in_order = sorted(self._hosts_by_form)

    def _add(self, name: str, base_url: str) -> None:
        try:
            parts = urlsplit(base_url)
            spelt, port = parts.netloc.rpartition("@")[2].rstrip("."), parts.port
            host = plain(parts.hostname or "")
        except ValueError:  # no URL that a mover could use: nothing was ever asked there
            return
        self._names.add(fold(name))
        path = fold(unquote(parts.path)).rstrip("/")
        # A port that the URL leaves out is said by movers all the same.
        self.places[host].append(Place(name, port or PORTS.get(parts.scheme.lower()), path))
        if path:
            self._bases[path].add(name)
        self._spelt.add(re.sub(r":\d*$", "", spelt).strip("[]").rstrip("."))

    def _add_data_host(self, declared: DataHost) -> None:
        """Note a name or a pattern; addresses are hidden whosoever they are."""
        if "*" in declared.pattern:
            self._patterns[declared.pattern.partition(".")[2]].append(declared)
        elif declared.pattern:
            self._hosts_by_form.setdefault(declared.pattern, declared.pattern)

    def hide(self, text: str, first: Collection[str] = ()) -> str:
        """Return a text without what tells where servers are.

        Of several endpoints on a server the ``first`` ones, by name, are those that are meant.
        """
        view = View(text)
        spans = [
            *self._hosts(view, first),
            *self._literals(view, first),
            *self._base_paths(view, first),
            *self._port_numbers(view),
            *self._cut(view),
        ]
        return view.replaced(spans) if spans else text

    def _hosts(self, view: View, first: Collection[str]) -> Iterator[Span]:
        """Yield registered hosts, and those below them: `pool7.glasgow.example` is at Glasgow."""
        for word in WORD.finditer(view.text):
            bare = word[0].strip("._-")
            start = word.start() + word[0].index(bare)
            if bare in self._names:
                continue
            if bare in self._hosts_by_form:
                host = self._hosts_by_form[bare]
                yield self._server(view, start, start + len(bare), host, first)
            elif self._is_known(bare):
                yield self._server(view, start, start + len(bare), "", first)

    def _is_known(self, host: str) -> bool:
        """Say whether a host is below a registered one, or declared by a pattern."""
        patterns = self._patterns.get(host.partition(".")[2], ())
        is_below = any(parent in self._hosts_by_form for parent in parents(host))
        return is_below or any(pattern.matches(host) for pattern in patterns)

    def _server(self, view: View, start: int, end: int, host: str, first: Collection[str]) -> Span:
        """Return a host with its scheme, port and base path, and whose it is."""
        start, port = with_scheme(view.text, start), None
        if view.text[start - 1 : start] == "[" and view.text[end : end + 1] == "]":
            start, end = with_scheme(view.text, start - 1), end + 1
        if match := PORT_AFTER.match(view.text, end):
            end, port = match.end(), int(match[0].lstrip(".:"))
        name, taken = self._name(host, port, view.text, end, first)
        return Span(start, end + taken, name)

    def _name(
        self, host: str, port: int | None, text: str, end: int, first: Collection[str]
    ) -> tuple[str, int]:
        """Return who is meant by a host, and how much of what follows is its base path."""
        places = self.places.get(host, [])
        here = [place for place in places if port in (None, place.port)]
        taken = max(
            (len(place.path) for place in here if is_below(text, end, place.path)), default=0
        )
        nearest = [place for place in here if taken and is_below(text, end, place.path)]
        nearest = [place for place in nearest if len(place.path) == taken]
        for candidates in (nearest, here if port else [], places):
            names = {place.name for place in candidates}
            names = names & set(first) or names
            if len(names) == 1:
                return names.pop(), taken
        return SERVER, taken

    def _literals(self, view: View, first: Collection[str]) -> Iterator[Span]:
        """Yield every IP address: a registered host has more than the registry knows."""
        for match in IPV4.finditer(view.text):
            parts = re.findall(r"\d+", match[0])
            if any(are_octets(parts[at : at + 4]) for at in range(len(parts) - 3)):
                host = ".".join(str(int(part)) for part in parts)
                yield self._address_span(view, match.start(), match.end(), host, first)
        for match in ODD_IPV4.finditer(view.text):
            if self._is_odd_address(match, view.text):
                yield self._address_span(view, match.start(), match.end(), "", first)
        for start, end in ipv6_places(view.text):
            yield self._address_span(view, start, end, view.text[start:end], first)

    def _address_span(
        self, view: View, start: int, end: int, text: str, first: Collection[str]
    ) -> Span:
        span = self._server(view, start, end, self._registered(text), first)
        return span._replace(name=ADDRESS) if span.name == SERVER else span

    def _registered(self, text: str) -> str:
        """Return the registered address that a text is, with or without a port at its end."""
        text = text.partition("%")[0]
        for candidate in (text, text.rpartition(":")[0], text.rpartition(".")[0]):
            if (host := plain(candidate)) in self.places:
                return host
        return ""

    def _is_odd_address(self, match: re.Match[str], text: str) -> bool:
        word = match[0]
        if (
            "x" not in word
            and "." in word
            and text[match.end() : match.end() + 1] not in (":", "/")
        ):
            return False  # a number, or a version
        if "x" in word and word.count(".") == 3:
            return True
        return address_of(word) in self._addresses

    def _base_paths(self, view: View, first: Collection[str]) -> Iterator[Span]:
        if not self._bases:
            return
        for match in PATH.finditer(view.text):
            parts = match[0].split("/")[: self._deepest + 1]
            for depth in range(len(parts), 1, -1):
                path = "/".join(parts[:depth])
                if path in self._bases:
                    meant = self._bases[path] & set(first)
                    name = meant.pop() if len(meant) == 1 else BASE
                    yield Span(match.start(), match.start() + len(path), name)
                    break

    def _cut(self, view: View) -> Iterator[Span]:
        """Yield the beginning of a host with which a text that was too long ends."""
        if cut := CUT.search(view.text):
            at = bisect_left(self._in_order, cut[1])
            next_one = "".join(self._in_order[at : at + 1])
            if len(cut[1]) >= SHORTEST_CUT and next_one.startswith(cut[1]):
                yield Span(*cut.span(1), SERVER)

    def _port_numbers(self, view: View) -> Iterator[Span]:
        for match in PORT_WORD.finditer(view.text):
            yield Span(*match.span(1), PORT)
        for match in NUMBER.finditer(view.text):
            if int(match[1]) in self._ports:
                yield Span(*match.span(1), PORT)
