"""WebDAV's files: addresses, digests, redirects and refusals, without a real server."""

import socket
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from sonar.movers import messages
from sonar.movers.base import End, Limits, MoverError, NoChecksum, Order, Stopped, Where, aside
from sonar.movers.file_address import directories_below_base, require_inside, web_url
from sonar.movers.http import deadlines
from sonar.movers.http.webdav import WebDav
from sonar.movers.messages import one_line
from sonar.movers.watch import Watch
from tests import dav
from tests.dav import Dav
from tests.movers.orders import ORDER, order_between
from tests.movers.scripted import Script, says, scripted, status, take_body

LIMITS = Limits(connect=30, answer=30, total=60)


def end(url: str, base: str = "http://se.example/data/sonar") -> End:
    return End(Where.DESTINATION, url, base)


def order_to(server: str) -> Order:
    return order_between("http://source.example", server, limits=LIMITS)


@pytest.mark.parametrize(
    "url",
    [
        "http://se.example/data/sonar/f",
        "http://se.example:80/data/sonar/a/../f",
        "dav://se.example/data//sonar/f",
        "http://SE.example/data/sonar/%66",
    ],
)
def test_a_file_below_its_base_may_be_touched(url: str):
    base = "http://se.example:80/data/sonar/" if ":80" in url else "http://se.example/data/sonar/"
    require_inside(end(url, base))


@pytest.mark.parametrize(
    "url",
    [
        "http://se.example/data/sonar",
        "http://se.example/data/sonar/",
        "http://se.example/data/sonar/..",
        "http://se.example/data/sonar/../f",
        "http://se.example/data/sonar/%2e%2e/f",
        "http://se.example/data/sonar/a/..%2F..%2Ff",
        "http://se.example/data/sonar2/f",
        "http://se.example/data/f",
        "https://se.example/data/sonar/f",
        "http://se.example:8080/data/sonar/f",
        "http://other.example/data/sonar/f",
        "http://se.example@other.example/data/sonar/f",
        "root://se.example/data/sonar/f",
        "file:///data/sonar/f",
        "nonsense",
        "",
    ],
)
def test_a_file_outside_its_base_is_never_touched(url: str):
    files = WebDav()
    for touch in (files.delete, files.make_directories):
        with pytest.raises(MoverError) as caught:
            touch(end(url), ORDER)
        assert caught.value.permanent
    with pytest.raises(MoverError) as caught:
        files.put(replace(ORDER, source=end(url)), Watch())
    assert caught.value.permanent


def test_the_root_of_a_server_can_be_a_base():
    require_inside(end("http://se.example/f", "http://se.example"))
    require_inside(end("http://se.example/f", "http://se.example/"))


def test_the_directories_between_base_and_file_are_named_from_above():
    deep = end("http://se.example/data/sonar/a%20b/c/f")
    assert list(directories_below_base(deep)) == ["/data/sonar/a b", "/data/sonar/a b/c"]
    assert list(directories_below_base(end("http://se.example/data/sonar/f"))) == []


@pytest.mark.parametrize(
    ("url", "spoken"),
    [
        ("davs://se.example:443/f", "https://se.example:443/f"),
        ("dav://se.example/a b", "http://se.example/a%20b"),
        ("https://user:word@se.example/f", "https://se.example/f"),
        ("http://[2001:db8::1]:1094/f", "http://[2001:db8::1]:1094/f"),
    ],
)
def test_dav_is_http_and_user_information_is_dropped(url: str, spoken: str):
    assert web_url(end(url)) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer SECRET refused",
        "bad token=SECRET given",
        "see https://se.example/f?authz=Bearer%20SECRET&x=1",
        "see https://user:SECRET@se.example/f",
        '{"access_token": "SECRET", "x": 1}',
        "{'token' : 'SECRET'}",
        "refused eyJhbGciOiJSUzI1NiJ9.SECRET.SECRET for this path",
        "macaroon MDAxY2xvY2F0aW9u" + "SECRET" * 10,
    ],
)
def test_a_credential_in_foreign_words_is_not_told(text: str):
    assert "SECRET" not in one_line(text)


def test_foreign_words_become_one_short_line():
    assert one_line("a\r\nb\x00\x1b[2J  c\n") == "a b [2J c"
    assert len(one_line("x" * 9000)) == 300


class CountingPattern:
    """Stands for what looks for secrets; notes how much it was given."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def sub(self, _: str, text: str) -> str:
        self.given.append(len(text))
        return text


def test_secrets_are_looked_for_in_the_beginning_of_a_long_text_only(monkeypatch):
    """The search takes the square of the length: 64 KB of one letter took 10 s of a worker."""
    pattern = CountingPattern()
    monkeypatch.setattr(messages, "SECRETS", ((pattern, "***"),))
    one_line("a" * 65_536)
    assert pattern.given[0] < 2000


@pytest.mark.parametrize("before", ["words " * 199, " " * 1190 + "x ", "\0" * 9000])
def test_no_part_of_a_token_is_told_where_a_long_text_is_cut(before: str):
    text = f"{before}{'SECRET' * 40} and so on {'x' * 2000}"
    assert "SECRET" not in one_line(text, "SECRET" * 40)


def test_a_long_answer_is_cut_between_words_before_it_is_searched_for_credentials():
    token = "x" * 1900
    half = one_line(f"Bearer {token} eyJhbGciOiJSUzI1NiJ9{'S' * 90}.{'S' * 90}.SECRET")
    assert half == "Bearer ***"
    assert len(one_line("a" * 10**6)) == 300


DIGESTS = {
    "adler32=dd7469ac": "dd7469ac",
    "ADLER32=DD7469AC": "dd7469ac",
    "Adler32:be007e86": "be007e86",
    "adler32 : be007e86": "be007e86",
    "adler32=0xbe007e86": "be007e86",
    "adler=be007e86": "be007e86",
    "adler32 = be007e86 /base/f": "be007e86",
    "adler32='be007e86'": "be007e86",
    "md5=j81Q/+O0hvbzXyRCrJF9mQ==, adler32=3da0195": "03da0195",
    "md5,adler32=3da0195": "03da0195",
    'adler32="03da0195"': "03da0195",
    "adler=:vgB+hg==:": "be007e86",
    "sha-256=:4REjxQ4yrqUVicfSKYNO/cF9zNj5ANbzgDZt3/h3Qxo=:, adler=:vgB+hg==:": "be007e86",
    "adler32 be007e86": "be007e86",
}


@pytest.mark.parametrize("header", DIGESTS)
@pytest.mark.parametrize("name", ["Digest", "Repr-Digest"])
def test_a_digest_is_read_leniently(header: str, name: str):
    head = f"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n{name}: {header}\r\n\r\n".encode()
    with scripted(lambda c: c.sendall(head)) as server:
        order = order_to(server.url)
        assert WebDav().checksum(order.destination, order, 2) == DIGESTS[header]


@pytest.mark.parametrize(
    ("line", "header", "words"),
    [
        ("200 OK", "", "the server returned no adler32 checksum"),
        (
            "200 OK",
            "md5=j81Q==",
            "the server returned no adler32 checksum but answered: md5=j81Q==",
        ),
        ("200 OK", "unknown=", "the server returned no adler32 checksum but answered: unknown="),
        ("200 OK", "adler32=", "the server's adler32 checksum cannot be read: adler32="),
        ("200 OK", "adler32=3XRprA==", "cannot be read: adler32=3XRprA=="),
        ("200 OK", "adler32=3187703430", "cannot be read: adler32=3187703430"),
        ("200 OK", "Adler32;be007e86", "cannot be read: Adler32;be007e86"),
        ("405 No", "", r"the server refused the request for an adler32 checksum \(405\)"),
        ("501 No", "", r"the server refused the request for an adler32 checksum \(501\)"),
    ],
)
def test_a_checksum_that_is_not_read_is_told_as_it_was_seen(line: str, header: str, words: str):
    digest = f"Digest: {header}\r\n" if header else ""
    head = f"HTTP/1.1 {line}\r\nContent-Length: 2000\r\n{digest}\r\n".encode()
    with scripted(lambda c: c.sendall(head)) as server:
        order = order_to(server.url)
        with pytest.raises(NoChecksum, match=f"{words}$"):
            WebDav().checksum(order.destination, order, 2)


def test_a_file_is_described_by_size_and_checksum():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 20971520\r\nDigest: adler32=dd7469ac\r\n\r\n"
    with scripted(lambda c: c.sendall(head)) as server:
        order, files = order_to(server.url), WebDav()
        info = files.stat(order.destination, order)
        assert info.bytes == 20971520
        assert files.checksum(order.destination, order, 2) == "dd7469ac"
        look, ask = server.requests
    assert "want-digest" not in look.lower()
    assert "Want-Digest: adler32" in ask


def test_a_connection_that_brought_a_checksum_rests_before_the_next_request(monkeypatch):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 20971520\r\nDigest: adler32=dd7469ac\r\n\r\n"
    asked_on: list[int] = []

    def play(connection: socket.socket) -> None:
        asked_on.append(connection.fileno())
        connection.sendall(head)

    def ask_meanwhile(seconds: float) -> None:
        if seconds:
            rests.append(seconds)
            files.stat(order.destination, order)

    rests: list[float] = []
    with scripted(play) as server:
        order, files = order_to(server.url), WebDav()
        files.stat(order.destination, order)
        monkeypatch.setattr(time, "sleep", ask_meanwhile)
        files.checksum(order.destination, order, 2)
    first, checksum, meanwhile = asked_on
    assert rests == [0.05]
    assert first == checksum != meanwhile


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (says(b"HTTP/1.1 200 OK\r\n\r\n"), "does not report the file size"),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: much\r\n\r\n"), "does not report the file size"),
        (status("503 Busy"), "503 Service Unavailable"),
        (says(b"HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\n\r\n"), "not followed"),
        (status("302 Found\r\nLocation: /again"), "redirects"),
    ],
)
def test_an_answer_that_describes_no_file_is_an_error(play: Script, words: str):
    with scripted(play) as server:
        order = order_to(server.url)
        with pytest.raises(MoverError, match=words) as caught:
            WebDav().stat(order.destination, order)
    assert caught.value.where == Where.DESTINATION


def test_a_connection_is_not_used_again_after_a_refusal():
    """XRootD hangs up after some of them, though it promises not to."""
    answer = status("404 Not Found")

    def refuse_and_go(connection: socket.socket) -> None:
        answer(connection)
        time.sleep(0.02)  # long enough for the next request to be on its way
        connection.shutdown(socket.SHUT_RDWR)

    with scripted(refuse_and_go) as server:
        order, files = order_to(server.url), WebDav()
        for _ in range(5):
            files.delete(order.destination, order)
        assert len(server._open) == 5


def test_no_request_follows_on_a_connection_that_was_said_to_close():
    """A server need not repeat it, and on a busy machine it hangs up a while after its answer."""
    connections: list[socket.socket] = []

    def answer(connection: socket.socket) -> None:
        head = server.requests[-1]
        connections.append(connection)
        if head.startswith("PUT"):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            take_body(connection, head, 1000)
        status("201 Created")(connection)
        if head.startswith("PUT"):
            time.sleep(0.1)  # long enough for the next request to be on its way
            connection.shutdown(socket.SHUT_RDWR)

    with scripted(answer) as server:
        order = replace(order_to(server.url), bytes=1000)
        WebDav().put(replace(order, source=order.destination), Watch())
    assert [head.split()[0] for head in server.requests] == ["HEAD", "PUT", "MOVE"]
    assert connections[0] is connections[1] is not connections[2]


def test_an_answer_in_progress_holds_a_small_buffer(monkeypatch: pytest.MonkeyPatch):
    """Hundreds of tests hold one each, for an hour perhaps: 8 KB each are 3 MB more of a worker."""
    sizes: list[int] = []
    read = deadlines._PatientSocket.readinto

    def measured(self: deadlines._PatientSocket, buffer: bytearray) -> int | None:
        sizes.append(len(buffer))
        return read(self, buffer)

    monkeypatch.setattr(deadlines._PatientSocket, "readinto", measured)
    with scripted(status("204 No Content")) as server:
        order = order_to(server.url)
        WebDav().delete(order.destination, order)
    assert sizes == [2048]


def test_a_host_name_that_does_not_exist_is_told(unknown_host: str):
    order = order_to(f"http://{unknown_host}:1094")
    with pytest.raises(MoverError, match=f"DELETE {unknown_host}:1094.*name is unknown"):
        WebDav().delete(order.destination, order)


def test_a_name_server_that_fails_has_not_said_that_the_name_is_unknown(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    order = order_to("http://storage.example:1094")
    words = r"DELETE storage.example:1094/\S+: temporary failure in name resolution"
    with pytest.raises(MoverError, match=words) as caught:
        WebDav().delete(order.destination, order)
    assert (caught.value.where, caught.value.permanent) == (Where.DESTINATION, False)


def test_a_refused_connection_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    order = order_to(f"http://127.0.0.1:{port}")
    with pytest.raises(MoverError, match=f"127.0.0.1:{port}/base/incoming/1: connection refused"):
        WebDav().stat(order.destination, order)


def test_a_server_without_tls_behind_https_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=speak_plainly, args=(listener,), daemon=True).start()
        order = order_to(f"https://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(MoverError, match="TLS failed: wrong version number"):
            WebDav().stat(order.destination, order)


def speak_plainly(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with suppress(ConnectionResetError), connection:
        connection.recv(1)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        while connection.recv(65_536):  # to hang up with something unread takes the answer back
            pass


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_unusable_ca_certificates_are_our_own_error(content: str | None, tmp_path_factory):
    bundle = tmp_path_factory.mktemp("ca") / "ca.pem"
    if content:
        bundle.write_text(content)
    order = replace(order_to("https://se.example"), ca_bundle=str(bundle))
    with pytest.raises(MoverError, match=r"ca\.pem cannot be used") as caught:
        WebDav().stat(order.destination, order)
    assert (caught.value.where, caught.value.permanent) == (Where.CONTROL, True)


def test_a_server_that_takes_no_more_of_an_upload_is_given_up():
    over = threading.Event()

    def deaf_to_uploads(connection: socket.socket) -> None:
        if server.requests[-1].startswith("PUT"):
            over.wait(60)
        status("200 OK")(connection)

    with scripted(deaf_to_uploads) as server:
        limits = replace(LIMITS, connect=2)
        order = replace(order_to(server.url), bytes=50_000_000, limits=limits)
        began = time.monotonic()
        with pytest.raises(MoverError, match=r"PUT .*not accepted in time"):
            WebDav().put(replace(order, source=order.destination), Watch())
        over.set()
    assert time.monotonic() - began < 40  # the server goes on for longer


GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [((GO_ON,), 60.0), ((), 0.2), ((GO_ON[:9], GO_ON[9:]), 2.0)],
    ids=["go on", "nothing", "half a line"],
)
def test_the_body_of_an_upload_is_held_back_until_the_server_wants_it(
    said: tuple[bytes, ...], seconds: float, monkeypatch: pytest.MonkeyPatch
):
    """Who says nothing is sent it after so many seconds; half a line is waited for longer."""
    monkeypatch.setattr(deadlines, "CONTINUE_SECONDS", seconds)
    early: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        head = server.requests[-1]
        if head.startswith("PUT"):
            for pause, piece in zip((0.05, 2.5), said, strict=False):
                connection.settimeout(pause)
                with suppress(TimeoutError):
                    early.append(connection.recv(1000))
                connection.settimeout(None)
                connection.sendall(piece)
            take_body(connection, "", size=10_000)
        status("201 Created")(connection)

    with scripted(answer) as server:
        order = replace(order_to(server.url), bytes=10_000)
        began = time.monotonic()
        WebDav().put(replace(order, source=order.destination), Watch())
        (put,) = (head for head in server.requests if head.startswith("PUT"))
    assert "Expect: 100-continue" in put
    assert early == []
    assert said or time.monotonic() - began > seconds


@pytest.mark.parametrize("checksum", [30.0, 1.0])
def test_a_server_that_has_a_whole_upload_may_verify_it_before_it_answers(checksum: float):
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(GO_ON)
        take_body(connection, "", size=10_000)
        over.wait(1.5 if checksum > 1 else 60)
        status("201 Created")(connection)

    limits = replace(LIMITS, answer=1, checksum=checksum)
    with scripted(answer) as server:
        order = replace(order_to(server.url), bytes=10_000, limits=limits)
        late = pytest.raises(MoverError, match=r"PUT .*no answer within 1 s")
        with nullcontext() if checksum > 1 else late:
            WebDav()._upload(order.destination, order, Watch())
        over.set()


def test_an_upload_that_is_redirected_or_refused_is_not_sent():
    """The server reads nothing and hangs up: what it says is heard nevertheless."""
    bodies: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        head = server.requests[-1]
        if not head.startswith("PUT"):
            status("201 Created")(connection)
        elif "/elsewhere/" not in head:
            path = head.split()[1]
            to = f"{server.url}/elsewhere{path}"
            said = f"HTTP/1.1 307 Over There\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(said.encode())
            connection.shutdown(socket.SHUT_WR)
            with suppress(OSError):
                bodies.append(connection.recv(1000))
        else:
            says(b"HTTP/1.1 507 Full\r\nContent-Length: 5\r\n\r\nfull.")(connection)

    with scripted(answer) as server:
        order = replace(order_to(server.url), bytes=50_000_000)
        with pytest.raises(MoverError, match=r"PUT .* 507 Insufficient Storage: full"):
            WebDav().put(replace(order, source=order.destination), Watch())
    assert bodies == [b""]


def test_an_upload_is_not_begun_where_even_looking_is_forbidden():
    with scripted(status("403 Forbidden")) as server:
        order = order_to(server.url)
        with pytest.raises(MoverError, match=r"HEAD .* 403 Forbidden") as caught:
            WebDav().put(replace(order, source=order.destination), Watch())
        # The base, and the first directory below it: a token may be for that one alone.
        assert [head.split()[0] for head in server.requests] == ["HEAD", "HEAD"]
    assert caught.value.permanent


def test_an_upload_can_be_stopped_midway_and_deletes_what_it_has_put():
    watch = Watch()

    def answer(connection: socket.socket) -> None:
        if not server.requests[-1].startswith("PUT"):
            status("200 OK")(connection)
            return
        connection.recv(100_000)
        watch.stop()
        while connection.recv(1_000_000):
            pass

    with scripted(answer) as server:
        order = replace(order_to(server.url), bytes=500_000_000)
        order = replace(order, source=order.destination)
        with pytest.raises(Stopped):
            WebDav().put(order, watch)
        asked = [head.split()[:2] for head in server.requests]
    part = urlsplit(aside(order).url).path
    assert asked == [["HEAD", "/base"], ["PUT", part], ["DELETE", part]]


@pytest.mark.parametrize("refusal", ["405 Method Not Allowed", "409 Conflict", "403 Forbidden"])
def test_a_directory_that_is_there_is_no_failure_whatever_is_said_of_it(refusal: str):
    def answer(connection: socket.socket) -> None:
        made = server.requests[-1].startswith("MKCOL")
        status(refusal if made else "200 OK")(connection)

    with scripted(answer) as server:
        order = order_to(server.url)
        WebDav().make_directories(order.destination, order)


def test_a_directory_that_cannot_be_made_is_a_failure():
    def answer(connection: socket.socket) -> None:
        method, path, *_ = server.requests[-1].split()
        said = {"MKCOL": "409 Conflict"}.get(method, "404 Not Found")
        status("200 OK" if path == "/base" else said)(connection)

    with scripted(answer) as server:
        order = order_to(server.url)
        with pytest.raises(MoverError, match=r"MKCOL .* 409 Conflict"):
            WebDav().make_directories(order.destination, order)


def asked_of(server: Dav) -> list[tuple[str, str]]:
    return [(method, path.removeprefix("/base/")) for method, path in server.requests]


def source_at(server: Dav) -> Order:
    order = order_to(server.base_url.removesuffix("/base"))
    server.directories.add("/base/source")
    source = replace(order.destination, url=f"{server.base_url}/source/2000")
    return replace(order, source=replace(source, where=Where.SOURCE))


PART = "source/2000.1.part"
NOT_SUPPORTED = b"Unable to rename /base/source; operation not supported"


@pytest.mark.parametrize("reply", [(405, b""), (501, b""), (500, NOT_SUPPORTED)])
def test_a_storage_that_cannot_rename_is_sent_the_file_under_its_own_name(reply):
    with dav.serving(MOVE=dav.says(*reply)) as server:
        order, watch = source_at(server), Watch()
        WebDav().put(order, watch)
        assert {path: len(body) for path, body in server.files.items()} == {
            "/base/source/2000": 2000
        }
    assert asked_of(server) == [
        ("HEAD", "/base"),
        ("PUT", PART),
        ("MOVE", PART),
        ("DELETE", PART),
        ("HEAD", "source/2000"),
        ("PUT", "source/2000"),
        ("HEAD", "source/2000"),
    ]
    assert watch.uploaded_in_place


@pytest.mark.parametrize("status", [403, 409, 502])
def test_any_other_refusal_of_a_rename_is_a_failure(status: int):
    with dav.serving(MOVE=dav.says(status, b"no")) as server:
        with pytest.raises(MoverError, match=rf"MOVE .*part: {status}") as caught:
            WebDav().put(source_at(server), Watch())
        assert server.files == {}
    assert caught.value.where == Where.SOURCE


def test_a_file_that_another_worker_has_put_meanwhile_is_not_written_again():
    def put_meanwhile(server: Dav, path: str) -> dav.Reply:
        server.files["/base/source/2000"] = b"x" * 2000
        return 501, {}, b""

    with dav.serving(MOVE=put_meanwhile) as server:
        WebDav().put(source_at(server), Watch())
        assert server.files == {"/base/source/2000": b"x" * 2000}


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        (b"half", r"base/source/2000: 2000 bytes were uploaded, but the file has 4 bytes"),
        (None, r"PUT .*base/source/2000: 507"),
    ],
)
def test_a_file_that_did_not_arrive_whole_under_its_own_name_is_deleted(kept, words: str):
    def put(server: Dav, path: str) -> dav.Reply | None:
        if path.endswith(".part"):
            return None
        server.files[path] = kept or b"a part"
        return 201 if kept else 507, {}, b""

    with dav.serving(MOVE=dav.says(501), PUT=put) as server:
        with pytest.raises(MoverError, match=words) as caught:
            WebDav().put(source_at(server), Watch())
        assert server.files == {}
    assert (caught.value.where, caught.value.left_aside) == (Where.SOURCE, None)


def of_directories(*statuses: int) -> dict[str, dav.Way]:
    """Return ways to answer HEAD and PROPFIND about directories alone with these statuses."""

    def way(status: int) -> dav.Way:
        return lambda server, path: (status, {}, b"") if path in server.directories else None

    return dict(zip(("HEAD", "PROPFIND"), map(way, statuses), strict=False))


@pytest.mark.parametrize("status", [404, 410, 405, 501])
def test_a_base_directory_that_head_does_not_find_is_looked_for_by_propfind(status: int):
    with dav.serving(**of_directories(status)) as server:
        WebDav().put(source_at(server), Watch())
        assert list(server.files) == ["/base/source/2000"]
    assert asked_of(server)[:2] == [("HEAD", "/base"), ("PROPFIND", "/base")]


def test_a_base_directory_that_nothing_but_a_refusal_is_known_of_is_not_called_missing():
    """As before: HEAD is not allowed, and nothing else is known."""
    with dav.serving(**of_directories(405, 405)) as server:
        WebDav().put(source_at(server), Watch())
        assert list(server.files) == ["/base/source/2000"]


INSIDE = (
    b'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/base</D:href>'
    b"<D:status>HTTP/1.1 404 Not Found</D:status></D:response></D:multistatus>"
)


@pytest.mark.parametrize(
    ("propfind", "words", "permanent"),
    [
        (dav.says(404), "the base directory is missing; Sonar does not create it", True),
        (dav.says(207, INSIDE), "the base directory is missing; Sonar does not create it", True),
        (dav.says(405), "HEAD returned 404 and PROPFIND 405, so Sonar does not know", True),
        (dav.says(501), "HEAD returned 404 and PROPFIND 501, so Sonar does not know", True),
        (dav.says(503), "HEAD returned 404 and PROPFIND 503, so Sonar does not know", False),
        (dav.says(403), r"PROPFIND 127.0.0.1:\d+/base: 403 Forbidden", True),
    ],
)
def test_a_base_directory_is_missing_only_if_propfind_says_so(propfind, words: str, permanent):
    with dav.serving(HEAD=dav.says(404), PROPFIND=propfind) as server:
        with pytest.raises(MoverError, match=words) as caught:
            WebDav().put(source_at(server), Watch())
        assert "PUT" not in {method for method, _ in server.requests}
    assert (caught.value.where, caught.value.permanent) == (Where.SOURCE, permanent)


def test_a_directory_that_only_propfind_finds_is_there():
    with dav.serving(MKCOL=dav.says(409), **of_directories(404)) as server:
        order = source_at(server)
        WebDav().make_directories(order.source, order)
    assert ("PROPFIND", "/base/source") in server.requests
