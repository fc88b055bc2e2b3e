"""Where a server may redirect to: what a stranger hears of it, which is nothing, and what is told.

All servers listen on loopback: another address of 127.0.0.0/8 is another host.
"""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest
from urllib3 import HTTPHeaderDict, HTTPResponse

from sonar.movers.base import Limits, MoverError, Order, Where
from sonar.movers.http import deadlines, peers, redirects
from sonar.movers.http.exchange import Body, Request
from sonar.movers.http.peers import Route
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.http.webdav import WatchedFile, WebDav
from sonar.movers.watch import Watch
from sonar.notation.addresses import Address, Kind, kind_of
from sonar.notation.data_hosts import data_hosts
from tests.movers.orders import order_between
from tests.movers.scripted import STARTED, Script, Scripted, chunk, copying, says, scripted, status

LIMITS = Limits(connect=30, answer=30, total=60)
STRANGER = "127.0.0.2"
FILE = "/base/incoming/1"
WORDS = "owned-by-the-stranger"
TOKENS = ("own-of-a", "lent-of-a", "own-of-b", "lent-of-b")
REDIRECTS = ("301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect")
REDIRECTS += ("308 Permanent Redirect",)
KEEPING = tuple(line for line in REDIRECTS if not line.startswith("303"))
WRITING = ("COPY", "PUT", "MKCOL", "MOVE", "DELETE")
READING = ("HEAD", "GET")
LENT = {"TransferHeaderAuthorization": "Bearer lent-of-b", "TransferHeaderX-Proof": "lent-of-b"}

each_status = pytest.mark.parametrize("line", REDIRECTS)


def order_to(server: str, *declared: str, along: bool = False) -> Order:
    """Return an order whose destination is this server, with tokens that can be told apart."""
    order = order_between("http://source.example", server, limits=LIMITS)
    source = replace(order.source, token="own-of-b", lent="lent-of-b")
    destination = replace(
        order.destination,
        token="own-of-a",
        lent="lent-of-a",
        data_hosts=data_hosts(declared),
        token_goes_along=along,
    )
    return replace(order, source=source, destination=destination)


def leads_to(url: str, line: str = "307 Temporary Redirect") -> Script:
    return status(f"{line}\r\nLocation: {url}")


def ask(method: str, order: Order, files: WebDav | None = None) -> str:
    """Ask the destination as a measurement does; return the answer's words."""
    body: Body | None = WatchedFile(order.bytes, Watch()) if method == "PUT" else None
    headers = {**LENT, "Content-Length": str(order.bytes)} if body else LENT
    request = Request(method, order.destination, headers, body)
    return (files or WebDav()).web.ask(request, order).text


def refusal(method: str, order: Order) -> MoverError:
    with pytest.raises(MoverError) as caught:
        ask(method, order)
    return caught.value


def is_a_clear_refusal(error: MoverError, door: Scripted, *secrets: str) -> None:
    """The endpoint is blamed for good, by its own host and port alone."""
    assert (error.where, error.permanent) == (Where.DESTINATION, True)
    assert f"127.0.0.1:{door.port}/base/incoming/1: the server redirects" in str(error)
    for secret in (STRANGER, WORDS, "Bearer", *TOKENS, *secrets):
        assert secret not in str(error)


@each_status
@pytest.mark.parametrize("declared", ["", "127.0.0.3", f"{STRANGER}:1"])
@pytest.mark.parametrize("method", [*WRITING, *READING])
def test_nothing_reaches_a_host_that_is_not_declared(method: str, declared: str, line: str):
    """Operators are told which one it is: nobody else."""
    with (
        scripted(status("403 Forbidden", WORDS), STRANGER) as stranger,
        scripted(leads_to(f"{stranger.url}{FILE}?authz={WORDS}", line)) as door,
    ):
        error = refusal(method, order_to(door.url, *filter(None, [declared])))
        assert stranger.requests == []
        is_a_clear_refusal(error, door, str(stranger.port))
        becomes_another = line == REDIRECTS[2] and method in WRITING
        assert error.refused_server == ("" if becomes_another else f"{STRANGER}:{stranger.port}")


FOLLOWED = [*product(WRITING, KEEPING), *product(READING, REDIRECTS)]


@pytest.mark.parametrize(("method", "line"), FOLLOWED)
@pytest.mark.parametrize("along", [False, True])
def test_a_declared_host_is_asked_the_same_with_the_token_if_that_goes_along(
    method: str, line: str, along: bool
):
    with (
        scripted(status("200 OK"), STRANGER) as disk,
        scripted(leads_to(f"{disk.url}//base/incoming/1?mgm.id=7", line)) as door,
    ):
        ask(method, order_to(door.url, STRANGER, along=along))
        (head,) = disk.requests
    assert head.startswith(f"{method} //base/incoming/1?mgm.id=7 HTTP/1.1")
    assert ("own-of-a" in head) == along
    assert ("lent-of-b" in head) == (method == "COPY")


@pytest.mark.parametrize("name", sorted(redirects.URL_CREDENTIALS))
def test_a_url_with_a_credential_of_its_own_is_shown_no_token(name: str):
    """Two credentials are too many for some servers, and the token is not needed there."""
    with (
        scripted(status("201 Created"), STRANGER) as disk,
        scripted(leads_to(f"{disk.url}{FILE}?{name.upper()}=x")) as door,
    ):
        ask("COPY", order_to(door.url, STRANGER, along=True))
        (head,) = disk.requests
    assert "own-of-a" not in head
    assert "TransferHeaderAuthorization: Bearer lent-of-b" in head


@pytest.mark.parametrize("method", [*WRITING, *READING])
def test_another_port_of_the_same_host_is_followed_without_any_credential(method: str):
    with scripted(status("201 Created")) as disk, scripted(leads_to(f"{disk.url}{FILE}")) as door:
        ask(method, order_to(door.url))
        assert "Authorization: Bearer own-of-a" in door.requests[0]
        assert "lent-of-b" in door.requests[0]
        (head,) = disk.requests[:1]
    assert head.startswith(f"{method} {FILE} HTTP/1.1")
    assert "authorization" not in head.lower()
    assert not any(token in head for token in TOKENS)


def test_a_credential_that_was_left_behind_does_not_come_back():
    def lead_on(connection: socket.socket) -> None:
        target = f"{disk.url}{FILE}" if len(door.requests) == 1 else ""
        (leads_to(target) if target else status("200 OK"))(connection)

    with scripted(lead_on) as door, scripted(leads_to(f"{door.url}{FILE}?back")) as disk:
        ask("HEAD", order_to(door.url))
        first, second = door.requests
    assert "own-of-a" in first
    assert "own-of-a" not in second


def test_a_redirect_within_the_server_keeps_the_credential_and_its_words():
    def lead_on(connection: socket.socket) -> None:
        moved = "?moved" in door.requests[-1]
        (status("403 No", "quota") if moved else leads_to("?moved"))(connection)

    with scripted(lead_on) as door:
        order = order_to(door.url)
        reply = WebDav().web.ask(Request("DELETE", order.destination), order)
        assert ["own-of-a" in head for head in door.requests] == [True, True]
    assert (reply.status, reply.text, reply.data_server) == (403, "quota", "")


def test_a_copy_says_the_same_places_after_a_redirect_and_where_it_was_led_to_is_kept():
    watch = Watch()
    with (
        copying(says(STARTED, chunk(b"success: Created") + b"0\r\n\r\n")) as disk,
        copying(leads_to(f"{disk.url}{FILE}?cap.sym=secret")) as door,
    ):
        HttpTpc().move(order_to(door.url), watch)
        (head,) = disk.requests
        assert watch.seen.data_server == f"127.0.0.1:{disk.port}"
    assert "Source: http://source.example/base/source/2000\r\n" in head
    assert "lent-of-b" not in head


# Spellings of a stranger, and of what is nobody's business; {port} is the stranger's.
TRICKS = [
    "//{stranger}:{port}/base/incoming/1",
    "http://127.0.0.1@{stranger}:{port}/base/incoming/1",
    "http://127.0.0.1:80@{stranger}:{port}/base/incoming/1",
    "http://{stranger}:{port}\\@127.0.0.1/base/incoming/1",
    "HTTP://{stranger}.:{port}/base/incoming/1",
    "http://2130706434:{port}/base/incoming/1",
    "http://0x7f000002:{port}/base/incoming/1",
    "http://0x7f.2:{port}/base/incoming/1",
    "http://127.2:{port}/base/incoming/1",
    "http://[::ffff:127.0.0.2]:{port}/base/incoming/1",
    "http://[::ffff:7f00:2]:{port}/base/incoming/1",
    "http://%31%32%37.0.0.2:{port}/base/incoming/1",
    "http://localhost:{port}/base/incoming/1",
    "http://LOCALHOST.:{port}/base/incoming/1",
    "http://[::1]:{port}/base/incoming/1",
    "http://0.0.0.0:{port}/base/incoming/1",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/base/incoming/1",
    "http://100.64.0.1/base/incoming/1",
    "http://xn--bcher-kva.example/base/incoming/1",
    "http://b\u00fccher.example/base/incoming/1",
    "http://bad_host!.example:{port}/base/incoming/1",
    "http://[::1/base/incoming/1",
    "http:////{stranger}:{port}/base/incoming/1",
    "file:///etc/hostname",
    "gopher://{stranger}:{port}/_DELETE",
    "ftp://{stranger}:{port}/base/incoming/1",
]


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("method", ["COPY", "DELETE", "HEAD"])
def test_no_spelling_leads_to_a_stranger(method: str, trick: str):
    with scripted(status("200 OK"), "0.0.0.0") as stranger:
        target = trick.format(stranger=STRANGER, port=stranger.port)
        with scripted(leads_to(target)) as door, suppress(MoverError):
            ask(method, order_to(door.url))
        assert stranger.requests == []


@pytest.mark.parametrize("method", ["COPY", "DELETE", "HEAD"])
def test_a_chain_ends_where_it_leaves_its_host(method: str):
    with scripted(status("200 OK"), STRANGER) as stranger:
        second = leads_to(f"{stranger.url}{FILE}")
        with scripted(second) as disk, scripted(leads_to(f"{disk.url}{FILE}")) as door:
            error = refusal(method, order_to(door.url))
            assert len(disk.requests) == 1
            assert stranger.requests == []
            is_a_clear_refusal(error, door, str(disk.port), str(stranger.port))


def led(order: Order, *locations: str, method: str = "HEAD", code: int = 307) -> redirects.Step:
    """Return where the destination leads a request that was sent with all credentials."""
    end = order.destination
    headers = {"Authorization": "Bearer own-of-a", **LENT} if end.token else {}
    step = redirects.Step(end.url, headers, end.token)
    found = HTTPHeaderDict([("Location", location) for location in locations])
    response = HTTPResponse(status=code, headers=found)
    return redirects.following(step, method, end, response, Route())


def anonymous(order: Order) -> Order:
    return replace(order, destination=replace(order.destination, token="", lent=""))


def test_what_https_began_goes_on_in_clear_only_without_any_credential():
    order = order_to("https://door.example", "disk.example", along=True)
    target = f"http://disk.example{FILE}"
    with pytest.raises(redirects.NotFollowed, match="from https to http"):
        led(order, target)
    with pytest.raises(redirects.NotFollowed, match="from https to http"):
        led(anonymous(order), f"{target}?xrdhttptk=1")
    assert led(anonymous(order), target).url == target


@pytest.mark.parametrize(
    ("path", "is_followed"),
    [
        ("/base/incoming/1", True),
        ("//base//incoming/1", True),
        ("/base/incoming/%31", True),
        ("/disk/7/base/incoming/1", True),
        ("/base/incoming/1/", True),
        ("/base/incoming/2", False),
        ("/base/incoming/11", False),
        ("/incoming/1", False),
        ("/base/incoming/1/more", False),
        ("/xbase/incoming/1", False),
        ("/%2e%2e/base/incoming/1", False),
        ("/%252e%252e/base/incoming/1", False),
        ("/base/incoming/1%00", False),
        ("", False),
    ],
)
def test_the_path_stays_the_one_that_was_asked_for(path: str, is_followed: bool):
    order = order_to("http://door.example", "disk.example")
    if is_followed:
        assert led(order, f"http://disk.example{path}").url == f"http://disk.example{path}"
        return
    with pytest.raises(redirects.NotFollowed, match="to another path") as caught:
        led(order, f"http://disk.example{path}")
    assert caught.value.server == ""


def test_no_dots_are_sent_on():
    order = order_to("http://door.example", "disk.example")
    step = led(order, f"http://disk.example/other/../{FILE}")
    assert step.url == f"http://disk.example/{FILE}"


@pytest.mark.parametrize("locations", [(), ("http://disk.example", "http://disk.example")])
def test_a_redirect_to_no_place_or_to_several_is_not_followed(locations: tuple[str, ...]):
    order = order_to("http://door.example", "disk.example")
    with pytest.raises(redirects.NotFollowed, match=r"redirects (without a URL|to several URLs)"):
        led(order, *(location + FILE for location in locations))


@pytest.mark.parametrize(
    ("declared", "host", "is_followed"),
    [
        ("st-*.cern.example", "st-048-bb.cern.example:8443", True),
        ("st-*.cern.example", "ST-048.CERN.example.:8443", True),
        ("st-*.cern.example:8443", "st-048.cern.example:8444", False),
        ("st-*.cern.example:8440-8444", "st-048.cern.example:8444", True),
        ("st-*.cern.example", "st-048.cern.example.evil.example", False),
        ("st-*.cern.example", "st-048.evil.example", False),
        ("st-*.cern.example", "xst-048.cern.example", False),
        ("st-*.cern.example", "st-048.x.cern.example", False),
        ("192.0.2.0/24", "192.0.2.77:20000", True),
        ("192.0.2.0/24", "0300.0.2.77:20000", True),
        ("192.0.2.0/24", "192.0.3.1:20000", False),
        ("[2001:db8::/48]:1094", "[2001:DB8::7]:1094", True),
        ("[2001:db8::/48]:1094", "[2001:db8:1::7]:1094", False),
        ("b\u00fccher.example", "b\u00fccher.example", False),
        ("xn--bcher-kva.example", "b\u00fccher.example", True),
    ],
)
def test_a_pattern_means_its_own_hosts_and_ports(declared: str, host: str, is_followed: bool):
    order = order_to("http://door.example", declared)
    if is_followed:
        assert led(order, f"http://{host}{FILE}")
        return
    with pytest.raises(redirects.NotFollowed, match="not one of its declared data hosts"):
        led(order, f"http://{host}{FILE}")


def test_who_a_url_says_to_be_is_not_said_there():
    order = order_to("http://door.example", "disk.example")
    assert (
        led(order, f"http://user:secret@disk.example{FILE}#x").url == f"http://disk.example{FILE}"
    )


@pytest.mark.parametrize(("hops", "is_followed"), [(5, True), (6, False)])
def test_five_redirects_are_followed_and_no_more(hops: int, is_followed: bool):
    def lead_on(connection: socket.socket) -> None:
        more = len(door.requests) <= hops
        (leads_to(f"?hop={len(door.requests)}") if more else status("200 OK"))(connection)

    with scripted(lead_on) as door:
        if is_followed:
            ask("DELETE", order_to(door.url))
        else:
            assert "more than 5 redirects" in str(refusal("DELETE", order_to(door.url)))
        assert len(door.requests) == 6


# What a stranger says


def test_a_declared_server_is_quoted_but_for_the_secrets_of_its_url():
    secrets = "cap-of-eos-1234", "%2Bsecond%2Bsecret"
    words = f"quota: {WORDS} {secrets[0]} +second+secret"
    with (
        scripted(status("403 Forbidden", words), STRANGER) as disk,
        scripted(leads_to(f"{disk.url}{FILE}?cap.sym={secrets[0]}&cap.msg={secrets[1]}")) as door,
    ):
        order = order_to(door.url, STRANGER)
        with pytest.raises(MoverError, match=f"403 Forbidden: quota: {WORDS}") as caught:
            WebDav().delete(order.destination, order)
    assert "cap-of" not in str(caught.value)
    assert "second" not in str(caught.value)


def test_the_words_of_another_server_are_not_told():
    with (
        scripted(status(f"403 {WORDS}\r\nX-Why: {WORDS}", WORDS)) as pool,
        scripted(leads_to(f"{pool.url}{FILE}")) as door,
    ):
        order = order_to(door.url)
        with pytest.raises(
            MoverError, match="403 Forbidden: text withheld, as it came from another"
        ) as caught:
            WebDav().stat(order.destination, order)
    assert WORDS not in str(caught.value)
    assert (caught.value.where, caught.value.permanent) == (Where.DESTINATION, True)


FAILURE = chunk(b"failure: Couldn't connect, " + WORDS.encode()) + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("play", "where"),
    [
        (status(f"500 {WORDS}", WORDS), Where.DESTINATION),
        (says(STARTED, FAILURE), Where.SOURCE),
        (says(STARTED, chunk(WORDS.encode()) + b"0\r\n\r\n"), Where.DESTINATION),
    ],
)
def test_the_words_of_another_port_about_a_copy_are_not_told(play: Script, where: Where):
    with copying(play) as other, copying(leads_to(f"{other.url}{FILE}")) as door:
        with pytest.raises(MoverError) as caught:
            HttpTpc().move(order_to(door.url), Watch())
        assert str(other.port) not in str(caught.value)
    assert WORDS not in str(caught.value)
    assert "another server" in str(caught.value)
    assert caught.value.where == where


@pytest.mark.parametrize("play", [says(b"no http, " + WORDS.encode()), says(b"")])
def test_a_known_host_that_breaks_off_is_not_named(play: Script):
    with scripted(play, STRANGER) as pool, scripted(leads_to(f"{pool.url}{FILE}")) as door:
        order = order_to(door.url, STRANGER)
        with pytest.raises(MoverError, match="redirected to another server") as caught:
            WebDav().stat(order.destination, order)
    assert (caught.value.where, caught.value.permanent) == (Where.DESTINATION, False)
    assert WORDS not in str(caught.value)
    assert STRANGER not in str(caught.value)


def test_words_are_not_told_even_where_the_way_led_back():
    def lead_on(connection: socket.socket) -> None:
        back = "?back" in door.requests[-1]
        (status("403 No", WORDS) if back else leads_to(f"{disk.url}{FILE}"))(connection)

    with scripted(lead_on) as door, scripted(leads_to(f"{door.url}{FILE}?back")) as disk:
        order = order_to(door.url)
        with pytest.raises(MoverError, match="text withheld") as caught:
            WebDav().delete(order.destination, order)
    assert WORDS not in str(caught.value)


# Addresses


@pytest.fixture
def public_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take 127.0.0.1 for a public address: there is no other one to listen on in a test."""

    def kind(address: Address) -> Kind:
        return Kind.PUBLIC if str(address) == "127.0.0.1" else kind_of(address)

    monkeypatch.setattr(peers, "kind_of", kind)


Names = Callable[..., None]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Return what says which addresses names have: the next ones at each look-up, then the last."""
    known: dict[str, list[list[str]]] = {}

    def look_up(host: str, port: int, *_: object) -> list[tuple[object, ...]]:
        answers = known[host]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (
                socket.AF_INET6 if ":" in one else socket.AF_INET,
                socket.SOCK_STREAM,
                0,
                "",
                (one, port),
            )
            for one in answer
        ]

    monkeypatch.setattr(deadlines.socket, "getaddrinfo", look_up)
    return lambda host, *answers: known.__setitem__(host, list(answers))


@pytest.mark.parametrize("spelling", ["DOOR.example", "door.example.", "door.example"])
def test_its_own_host_may_be_spelt_in_another_way(spelling: str, names: Names):
    names("door.example", ["127.0.0.1"])
    names("door.example.", ["127.0.0.1"])
    with (
        scripted(status("200 OK")) as disk,
        scripted(leads_to(f"http://{spelling}:{disk.port}{FILE}")) as door,
    ):
        ask("DELETE", order_to(f"http://door.example:{door.port}"))
        assert len(disk.requests) == 1


@pytest.mark.usefixtures("public_door")
@pytest.mark.parametrize("method", ["COPY", "DELETE", "HEAD"])
def test_a_name_that_is_looked_up_anew_leads_inside_for_nobody(method: str, names: Names):
    """Of the endpoint's own host, whose owner says in the DNS where it is: elsewhere by now."""
    with scripted(status("200 OK", WORDS), STRANGER) as inside:
        target = f"http://door.example:{inside.port}{FILE}"
        with scripted(leads_to(target)) as door:
            names("door.example", ["127.0.0.1"], [STRANGER])
            error = refusal(method, order_to(f"http://door.example:{door.port}"))
            assert inside.requests == []
            assert inside._open == []  # not even connected to
    assert (error.where, error.permanent) == (Where.DESTINATION, True)
    assert "redirects to an address that is not public (loopback)" in str(error)


@pytest.mark.usefixtures("public_door")
@pytest.mark.parametrize(
    "address", ["10.0.0.1", "100.64.0.1", "169.254.169.254", "::ffff:127.0.0.1", "::1", "0.0.0.0"]
)
def test_a_known_host_inside_is_not_for_who_stands_outside(address: str, names: Names):
    with scripted(leads_to(f"http://pool.example{FILE}")) as door:
        names("door.example", ["127.0.0.1"])
        names("pool.example", [address])
        known = "pool.example"
        error = refusal("HEAD", order_to(f"http://door.example:{door.port}", known))
    assert error.permanent
    assert "is not public" in str(error)
    assert address not in str(error)


@pytest.mark.usefixtures("public_door")
def test_of_several_addresses_only_those_that_may_be_are_tried(names: Names):
    with scripted(status("200 OK")) as pool, scripted(status("200 OK"), STRANGER, pool.port) as bad:
        with scripted(leads_to(f"http://pool.example:{pool.port}{FILE}")) as door:
            names("door.example", ["127.0.0.1"])
            names("pool.example", [STRANGER, "127.0.0.1"])
            known = "pool.example"
            ask("HEAD", order_to(f"http://door.example:{door.port}", known))
        assert (len(pool.requests), bad.requests) == (1, [])


@pytest.mark.usefixtures("public_door")
def test_a_connection_that_was_kept_is_looked_at_as_a_new_one_is(names: Names):
    """The inside endpoint's own tests may use it, and nobody who redirects there."""
    files = WebDav()
    with scripted(status("200 OK"), STRANGER) as inside:
        names("door.example", ["127.0.0.1"])
        names("inside.example", [STRANGER])
        order = order_to(f"http://inside.example:{inside.port}")
        nobody = replace(order, destination=replace(order.destination, token=""))
        ask("HEAD", nobody, files)
        with scripted(leads_to(f"http://inside.example:{inside.port}{FILE}")) as door:
            known = "inside.example"
            led = order_to(f"http://door.example:{door.port}", known)
            with pytest.raises(MoverError, match="is not public"):
                ask("HEAD", led, files)
        ask("HEAD", nobody, files)
        assert len(inside.requests) == 2


def test_an_endpoint_inside_may_lead_to_its_own_kind_of_address_only(names: Names):
    with scripted(status("200 OK"), STRANGER) as pool:
        names("door.example", ["127.0.0.1"])
        names("pool.example", [STRANGER])
        names("router.example", ["10.0.0.1"])
        known = ("pool.example", "router.example")
        with scripted(leads_to(f"http://pool.example:{pool.port}{FILE}")) as door:
            ask("HEAD", order_to(f"http://door.example:{door.port}", *known))
            assert len(pool.requests) == 1
        with scripted(leads_to(f"http://router.example{FILE}")) as door:
            error = refusal("HEAD", order_to(f"http://door.example:{door.port}", *known))
    assert "is not public (private)" in str(error)


@pytest.mark.usefixtures("public_door")
def test_an_address_is_looked_at_before_a_byte_is_sent(monkeypatch):
    """What the socket says that it is connected to counts, whatever it was connected by."""
    real = deadlines.connect

    def elsewhere(host: str, port: int, *rest: object) -> socket.socket:
        return real(STRANGER if port == inside.port else host, port, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(deadlines, "connect", elsewhere)
    with scripted(status("200 OK"), STRANGER) as inside:
        with scripted(leads_to(f"http://127.0.0.1:{inside.port}{FILE}")) as door:
            refusal("DELETE", order_to(door.url))
        assert inside.requests == []


def test_many_threads_keep_their_redirects_apart():
    """A redirect of one exchange says nothing about another one on the same connections."""
    files, failures = WebDav(), list[str]()

    def wander(connection: socket.socket) -> None:
        (
            leads_to("http://127.0.0.9:9/base/incoming/1")
            if "DELETE" in door.requests[-1]
            else status("200 OK")
        )(connection)

    def one(method: str) -> None:
        for _ in range(10):
            try:
                ask(method, order_to(door.url), files)
            except MoverError as error:
                failures.append(f"{method} {error}")

    with scripted(wander) as door:
        one("HEAD")
        with ThreadPoolExecutor(4) as threads:
            for _ in range(4):
                threads.submit(one, "HEAD")
    assert failures == []
