"""An issuer that does not answer as one: it costs little time, few threads, and no trust."""

import gzip
import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any

import jwt
import pytest
import requests
from hypothesis import example, given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from sonar.people import issuer
from sonar.people.issuer import Issuer, IssuerAway, Kept, TokenRefused, ask, session, waiting
from tests.movers.scripted import Script, Scripted, goes_on, says, scripted
from tests.provider import AUDIENCE, stranger
from tests.waiting import wait_for

BEGUN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ENDLESS = BEGUN + b"\r\n{"
MB = 10**6


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(issuer, "CONNECT_SECONDS", 0.2)


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
    return head.encode() + b"\r\n\r\n" + body


def redirect(address: str) -> Script:
    return says(whole(b"{}", f"Location: {address}", status="302 Found"))


SILENT: Script = lambda connection: connection.recv(1)  # noqa: E731
SLOW: dict[str, Script] = {
    "says nothing": SILENT,
    "trickles its head": goes_on(BEGUN, b"X-A: b\r\n", 0.01),
    "trickles its body": goes_on(ENDLESS, b" ", 0.01),
    "trickles its chunks": goes_on(
        BEGUN + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0.01
    ),
}
ANSWERS: dict[str, tuple[Script, str]] = {
    "hangs up": (says(), "is not responding"),
    "never ends": (goes_on(ENDLESS, b" " * 65_536, 0.0), "answers with more than 1,000,000 bytes"),
    "is large": (says(whole(b" " * (MB + 1))), "answers with more than 1,000,000 bytes"),
    "packs a lot": (
        says(whole(gzip.compress(b" " * 10 * MB), "Content-Encoding: gzip")),
        "did not return a JSON object",
    ),
    "is a page": (says(whole(b"<html>")), "did not return a JSON object"),
    "is a list": (says(whole(b"[]")), "did not return a JSON object"),
    "is deep": (says(whole(b"[" * MB)), "did not return a JSON object"),
    "is empty": (says(whole(b"", status="204 No Content")), "did not return a JSON object"),
    "refuses": (says(whole(b"{}", status="403 Forbidden")), "is not responding (HTTPError)"),
    "is no HTTP": (says(b"SSH-2.0-OpenSSH\r\n"), "is not responding"),
}


def refusal(play: Script) -> str:
    with scripted(play) as server, pytest.raises(IssuerAway) as refused:
        ask(f"{server.url}/x")
    return str(refused.value).partition("/x ")[2]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", SLOW)
def test_an_issuer_that_takes_for_ever_is_left_in_time(name: str) -> None:
    assert refusal(SLOW[name]).startswith("is not responding")


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_no_answer_ends_with_a_sentence(name: str) -> None:
    play, sentence = ANSWERS[name]
    assert refusal(play).startswith(sentence)


def test_no_redirect_is_followed() -> None:
    with scripted(says(whole(b"{}"))) as elsewhere:
        for place in (f"{elsewhere.url}/x", "/x", "file:///etc/passwd"):
            with scripted(redirect(place)) as server:
                with pytest.raises(IssuerAway, match="redirects, and Sonar does not follow"):
                    ask(server.url)
                with session() as asking, pytest.raises(requests.RequestException):
                    asking.post(server.url, data={"client_secret": "x"})
                assert len(server.requests) == 2
        assert elsewhere.requests == []


def test_nothing_packed_is_asked_for() -> None:
    with scripted(says(whole(b'{"a": 1}'))) as server:
        assert ask(server.url) == {"a": 1}
        assert "accept-encoding: identity" in server.requests[0].lower()


@pytest.mark.usefixtures("brief")
def test_a_proxy_is_asked_with_the_same_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(goes_on(ENDLESS, b" ", 0.01)) as server:
        monkeypatch.setenv("http_proxy", server.url)
        with pytest.raises(IssuerAway, match="is not responding"):
            ask("http://iam.example.org/")
        until(lambda: bool(server.requests))
        assert server.requests[0].startswith("GET http://iam.example.org/ ")


class Issuing:
    """An issuer with one key, that may be told to hold its answers back."""

    def __init__(self) -> None:
        self.key = stranger()
        self.goes_on = Event()
        self.goes_on.set()
        self.more: dict[str, Any] = {}
        self.keys: Any = [{**json.loads(RSAAlgorithm.to_jwk(self.key.public_key())), "kid": "1"}]
        self.server = Scripted(self.answer)
        self.issuer = Issuer(self.server.url)

    def answer(self, connection: socket.socket) -> None:
        configuration = {
            "issuer": self.server.url,
            **{field: f"{self.server.url}/{field}" for field in issuer.ADDRESSES},
        }
        is_for_keys = "/jwks_uri" in self.server.requests[-1]
        self.goes_on.wait(120)
        said = {"keys": self.keys} if is_for_keys else configuration | self.more
        connection.sendall(whole(json.dumps(said).encode()))

    def verify(self, kid: str = "1") -> dict[str, Any]:
        claims = {"iss": self.server.url, "sub": "s", "aud": AUDIENCE, "exp": 10**10}
        token = jwt.encode(claims, self.key, "RS256", headers={"kid": kid})
        return self.issuer.verify(token, AUDIENCE)

    def forget(self) -> None:
        self.issuer = Issuer(self.server.url)

    @contextmanager
    def held_back(self, threads: ThreadPoolExecutor, at: int) -> Iterator[Future[Any]]:
        """Hold back the answer to a thread at a request, which gets it in the end."""
        self.goes_on.clear()
        slow = threads.submit(self.verify)
        until(lambda: len(self.server.requests) == at)
        yield slow
        self.goes_on.set()
        assert slow.result(120)["sub"] == "s"


@pytest.fixture
def issuing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuing]:
    monkeypatch.setattr(issuer, "ANSWER_SECONDS", 120)
    running = Issuing()
    yield running
    running.goes_on.set()
    running.server.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def until(is_so: Callable[[], bool]) -> None:
    assert wait_for(is_so, 120, pause=0.005)


def test_while_one_thread_asks_the_others_go_on_with_what_is_known(
    issuing: Issuing, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuing.verify()
    monkeypatch.setattr(issuer, "KEPT_SECONDS", -1)
    issuing.issuer._configuration._not_before = 0.0
    with issuing.held_back(threads, 3) as slow:
        assert issuing.verify()["sub"] == "s"
        assert not slow.done()


def test_who_knows_nothing_waits_for_a_moment_and_only_a_few_do(
    issuing: Issuing, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "LONGEST_WAIT_SECONDS", 120)
    issuing.goes_on.clear()
    waiting_now: list[Future[Any]] = [threads.submit(issuing.verify) for _ in range(4)]
    until(lambda: issuer._places._value == 0)
    with pytest.raises(IssuerAway, match="The issuer is slow: 4 other requests are already"):
        issuing.verify()
    with (
        session() as asking,
        pytest.raises(requests.RequestException, match="4 other requests are already wait"),
    ):
        asking.get(issuing.server.url)
    issuing.goes_on.set()
    assert [each.result(120)["sub"] for each in waiting_now] == ["s"] * 4
    assert len(issuing.server.requests) == 2
    assert issuer._places._value == issuer.MOST_WAITING


def test_nobody_waits_for_long_for_what_another_thread_asks(
    issuing: Issuing, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "LONGEST_WAIT_SECONDS", 0.01)
    with (
        issuing.held_back(threads, 1),
        pytest.raises(IssuerAway, match="takes too long to respond"),
    ):
        issuing.verify()


def test_many_unknown_keys_at_once_are_one_question(
    issuing: Issuing, threads: ThreadPoolExecutor
) -> None:
    issuing.verify()
    issuing.issuer._keys._not_before = 0.0
    tries = [threads.submit(issuing.verify, f"unknown-{number}") for number in range(40)]
    assert {type(each.exception(120)) for each in tries} <= {TokenRefused, IssuerAway}
    assert sum("/jwks_uri" in request for request in issuing.server.requests) == 2


def test_those_who_wait_for_an_answer_do_not_stand_in_the_way_of_its_question(
    threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "LONGEST_WAIT_SECONDS", 120)
    has_begun, goes_on = Event(), Event()

    def answer() -> str:
        has_begun.set()
        assert goes_on.wait(120)
        with waiting():  # as each request does
            return "said"

    kept = Kept(answer)
    asking = threads.submit(kept.value)
    assert has_begun.wait(120)
    others = [threads.submit(kept.value) for _ in range(issuer.MOST_WAITING)]
    until(lambda: issuer._places._value == 0)
    goes_on.set()
    assert asking.result(120) == "said"
    assert {each.exception(120) and type(each.exception(120)) for each in others} <= {
        None,
        IssuerAway,
    }
    assert kept.value() == "said"


def test_a_question_that_ends_in_a_crash_blocks_no_other() -> None:
    answers = iter([ValueError("a crash"), "said"])

    def answer() -> Any:
        said = next(answers)
        if isinstance(said, Exception):
            raise said
        return said

    kept = Kept(answer)
    with pytest.raises(ValueError, match="a crash"):
        kept.value()
    assert kept.value() == "said"


def test_places_are_given_back_after_whatever_happens() -> None:
    with pytest.raises(KeyError), waiting():
        raise KeyError
    assert issuer._places._value == issuer.MOST_WAITING


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
FIELDS = (*issuer.ADDRESSES, issuer.METHODS, "issuer")
ADDRESS = st.text(max_size=8).map("http://".__add__)


@pytest.fixture(scope="module")
def any_issuer() -> Iterator[Issuing]:
    running = Issuing()
    yield running
    running.server.close()


@given(
    more=st.dictionaries(st.sampled_from(FIELDS), JSON | ADDRESS),
    keys=JSON | st.lists(st.dictionaries(st.sampled_from(("kty", "kid", "n", "e", "alg")), JSON)),
)
@example(more={}, keys=[{"kty": "RSA", "alg": ["RS256"]}])
@example(more={}, keys=[{"kty": "OKP", "alg": "EdDSA"}])
@example(more={issuer.METHODS: None}, keys=[])
@example(more={"jwks_uri": "http://["}, keys=[])
def test_whatever_an_issuer_says_a_token_is_read_or_refused(
    any_issuer: Issuing, more: dict[str, Any], keys: Any
) -> None:
    any_issuer.forget()
    key = {**json.loads(RSAAlgorithm.to_jwk(any_issuer.key.public_key())), "kid": "1"}
    any_issuer.more = more
    any_issuer.keys = [key, *keys] if isinstance(keys, list) else keys
    with suppress(IssuerAway, TokenRefused):
        assert any_issuer.verify()["sub"] == "s"
