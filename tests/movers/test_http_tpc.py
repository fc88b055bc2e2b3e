"""COPY against servers that misbehave on purpose: whose fault, and within which time."""

import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.base import Limits, MoverError, Order, Receipt, Stopped, Where
from sonar.movers.content import adler32
from sonar.movers.http.exchange import Request
from sonar.movers.http.tpc import HttpTpc, failed
from sonar.movers.measure import Outcome, measure
from sonar.movers.watch import Watch
from tests.movers.orders import ORDER, SIZE_BYTES, order_between
from tests.movers.scripted import (
    STARTED,
    Script,
    Scripted,
    chunk,
    copying,
    goes_on,
    marker,
    says,
    scripted,
    status,
)

pytestmark = pytest.mark.usefixtures("no_looks")

PATIENT = Limits(connect=30, answer=30, stall=30, total=60, checksum=30)
BRIEF = replace(PATIENT, stall=0.5)
SLACK_SECONDS = 20.0
"""What a busy machine may take beside a limit; far below those that are patient."""
LAST = b"0\r\n\r\n"
SUCCESS = chunk(b"success: Created") + LAST
SOURCE = "http://source.example"


def pull(play: Script, watch: Watch | None = None, **wishes: object) -> Receipt:
    """Pull to a destination that plays this script."""
    with copying(play) as server:
        order = order_between(SOURCE, server.url, **{"limits": PATIENT, **wishes})
        return HttpTpc().move(order, watch or Watch())


def pull_fails(play: Script, **wishes: object) -> tuple[MoverError, float]:
    """Return the error of a pull, and after how many seconds it came."""
    began = time.monotonic()
    with pytest.raises(MoverError) as caught:
        pull(play, **wishes)
    return caught.value, time.monotonic() - began


class Heard(Watch):
    """A watch whose server says the next thing only once the last one was reported."""

    def __init__(self) -> None:
        self._turns = threading.Semaphore(0)
        super().__init__(lambda _: self._turns.release())

    def says(self, *pieces: bytes) -> Script:
        def play(connection: socket.socket) -> None:
            first, *others = pieces
            connection.sendall(first)
            for piece in others:
                self._turns.acquire()
                time.sleep(0.1)
                connection.sendall(piece)
            connection.shutdown(socket.SHUT_RDWR)

        return play


def test_markers_become_samples_and_progress():
    watch, began = Heard(), time.monotonic()
    receipt = pull(watch.says(STARTED + chunk(marker(0)), chunk(marker(900)), SUCCESS), watch)
    first, second = watch.seen.samples
    assert (first.bytes, second.bytes) == (0, 900)
    assert first.seconds + 0.09 < second.seconds < receipt.seconds < time.monotonic() - began
    assert watch.seen.first_byte_seconds is None


def test_markers_of_several_streams_are_not_believed():
    seen: list[int] = []
    watch = Watch(seen.append)
    pull(says(STARTED, chunk(marker(2000)), SUCCESS), watch, streams=4)
    assert (watch.seen.samples, watch.seen.moved_bytes, seen) == ([], None, [])


def test_an_answer_without_chunks_is_read_as_it_comes():
    head = b"HTTP/1.1 202 Accepted\r\n\r\n"
    watch = Heard()
    pull(watch.says(head + marker(7), marker(9), b"success: Created"), watch)
    first, second = watch.seen.samples
    assert (first.bytes, second.bytes) == (7, 9)
    assert second.seconds - first.seconds > 0.09


@pytest.mark.parametrize(("streams", "scitag"), [(1, None), (9, 139)])
def test_the_request_says_all_there_is_to_say(streams: int, scitag: int | None):
    with copying(says(STARTED, SUCCESS)) as server:
        order = order_between("davs://source.example", server.url, streams=streams, limits=PATIENT)
        order = replace(order, scitag=scitag, job="sonar-7")
        order = replace(
            order,
            source=replace(order.source, token="for-source", lent="lent-by-source"),
            destination=replace(
                order.destination, token="for-destination", lent="lent-by-destination"
            ),
        )
        HttpTpc().move(order, watch := Watch())
        (head,) = server.requests
    assert head.startswith("COPY /base/incoming/1 HTTP/1.1")
    assert "Source: https://source.example/base/source/2000\r\n" in head
    assert "Authorization: Bearer for-destination\r\n" in head
    assert "TransferHeaderAuthorization: Bearer lent-by-source\r\n" in head
    assert "Overwrite: F\r\n" in head
    assert "Credential: none\r\n" in head
    assert "X-No-Delegate: true\r\n" in head
    assert "RequireChecksumVerification: false\r\n" in head
    assert "ClientInfo: job-id=sonar-7\r\n" in head
    assert ("X-Number-Of-Streams: 9\r\n" in head) == (streams == 9)
    assert ("\r\nSciTag: 139\r\n" in head) == (scitag == 139)
    assert ("\r\nTransferHeaderSciTag: 139\r\n" in head) == (scitag == 139)
    assert watch.seen.scitag == scitag


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n", LAST],
        [b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"],
        [STARTED, chunk(marker(5)), LAST],
        [STARTED, chunk(marker(5))],
        [STARTED, chunk(b"success: Cre")[:-4]],
        [STARTED, b"zz\r\n"],
        [STARTED],
        [b"HTTP/1.1 201 Created\r\nContent-Length: 900\r\n\r\n" + marker(5)],
        [b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\n\r\n" + marker(5)],
        [b"no http at all\r\n\r\n"],
        [b""],
    ],
)
def test_an_answer_without_a_verdict_is_a_failure_of_the_active_end(pieces: list[bytes]):
    error, _ = pull_fails(says(*pieces))
    assert (error.where, error.permanent) == (Where.DESTINATION, False)


@given(st.text(max_size=2000))
def test_any_failure_text_becomes_one_short_line(text: str):
    message = str(failed(ORDER, text[:300]))
    assert len(message) < 600


@pytest.mark.parametrize(
    "play",
    [
        goes_on(b"", b"", 0.05),
        goes_on(b"HTTP/1.1 201 Cre", b"a", 0.05),
        goes_on(b"HTTP/1.1 201 Created\r\n", b"X-More: 1\r\n", 0.05),
    ],
)
def test_a_server_without_an_answer_is_given_up_within_the_limit(play: Script):
    began, limits = time.monotonic(), replace(PATIENT, answer=0.5)
    with scripted(play) as server, pytest.raises(MoverError, match=r"no answer within 0.5 s") as it:
        HttpTpc().move(order_between(SOURCE, server.url, limits=limits), Watch())
    assert it.value.where == Where.DESTINATION
    assert time.monotonic() - began < 0.5 + SLACK_SECONDS


@pytest.mark.parametrize(
    "play",
    [
        goes_on(STARTED, b"", 0.05),
        goes_on(STARTED + chunk(marker(5)), b"", 0.05),
        goes_on(STARTED, chunk(b"x"), 0.05),
        goes_on(STARTED, b"0", 0.05),
    ],
)
def test_a_silent_server_is_given_up_within_the_limit(play: Script):
    error, seconds = pull_fails(play, limits=BRIEF)
    assert "the server sent nothing for" in str(error)
    assert error.where == Where.DESTINATION
    assert seconds < 0.5 + SLACK_SECONDS


def test_markers_without_progress_are_a_stall_of_the_transfer():
    limits = replace(PATIENT, stall=3)
    error, seconds = pull_fails(goes_on(STARTED, chunk(marker(5)), 0.05), limits=limits)
    assert "no bytes moved for 3 s, at 5 of 2000 bytes" in str(error)
    assert error.where == Where.TRANSFER
    assert 3 < seconds < 3 + SLACK_SECONDS


WHOLE = chunk(marker(SIZE_BYTES))


def test_a_server_that_verifies_all_bytes_for_long_is_waited_for():
    """dCache asks the destination for its checksum, and sends markers meanwhile."""
    play = says(STARTED, *[WHOLE] * 50, SUCCESS, pause=0.1)
    receipt = pull(play, limits=replace(PATIENT, stall=4))
    assert receipt.seconds > 4


@pytest.mark.parametrize("moved", [SIZE_BYTES, 10**17])
def test_a_server_that_never_confirms_is_ended_by_the_total_limit(moved: int):
    play = goes_on(STARTED, chunk(marker(moved)), 0.1)
    error, seconds = pull_fails(play, limits=replace(PATIENT, total=3))
    words = "all 2000 bytes were reported as moved, but the copy was not confirmed within 3 s"
    assert words in str(error)
    assert error.where == Where.TRANSFER
    assert 3 <= seconds < 3 + SLACK_SECONDS


@pytest.mark.parametrize("again", [b"", chunk(b"x")])
def test_a_server_that_falls_silent_after_all_bytes_is_ended_by_the_limit_of_a_stall(again: bytes):
    error, seconds = pull_fails(goes_on(STARTED + WHOLE, again, 0.05), limits=BRIEF)
    words = r"the server sent nothing for \d+ s, after it had reported all 2000 bytes as moved"
    assert re.search(words, str(error))
    assert error.where == Where.DESTINATION
    assert seconds < 0.5 + SLACK_SECONDS


def test_one_byte_less_than_all_is_a_stall_whatever_markers_come():
    play = goes_on(STARTED, chunk(marker(SIZE_BYTES - 1)), 0.05)
    error, _ = pull_fails(play, limits=replace(PATIENT, stall=3))
    assert "no bytes moved for 3 s, at 1999 of 2000 bytes" in str(error)


def test_markers_of_several_streams_cannot_stall():
    limits = replace(PATIENT, stall=2, total=4)
    play = goes_on(STARTED, chunk(marker(2000)), 0.05)
    error, seconds = pull_fails(play, limits=limits, streams=4)
    assert "not finished within 4 s" in str(error)
    assert seconds > 4


def test_a_transfer_that_moves_ends_with_the_total_limit():
    body = b"".join(chunk(marker(moved)) for moved in range(400))
    play = says(STARTED, *[body[at : at + 40] for at in range(0, len(body), 40)], pause=0.05)
    error, seconds = pull_fails(play, limits=replace(PATIENT, total=3))
    assert "not finished within 3 s" in str(error)
    assert error.where == Where.TRANSFER
    assert seconds < 3 + SLACK_SECONDS


@pytest.mark.parametrize("first", [b"", STARTED, STARTED + chunk(marker(5))])
def test_a_stop_ends_a_blocking_read_at_once(first: bytes):
    watch = Watch()
    began = time.monotonic()
    threading.Timer(0.2, watch.stop).start()
    with pytest.raises(Stopped):
        pull(goes_on(first, b"", 0.05), watch)
    assert 0.2 <= time.monotonic() - began < SLACK_SECONDS


@pytest.mark.parametrize(
    ("line", "permanent"),
    [
        ("401 Unauthorized", True),
        ("403 Forbidden", True),
        ("404 Not Found", True),
        ("412 Precondition Failed", True),
        ("429 Too Many Requests", False),
        ("500 Internal Server Error", False),
        ("501 Not Implemented", True),
        ("503 Service Unavailable", False),
        ("507 Insufficient Storage", False),
    ],
)
def test_a_refusal_before_the_start_is_the_active_ends(line: str, permanent: bool):
    error, _ = pull_fails(status(line, "no, said the server"))
    assert (error.where, error.permanent) == (Where.DESTINATION, permanent)
    assert f": {line}: no, said the server" in str(error)


STORM = "Third party transfer error: "


@pytest.mark.parametrize(
    ("line", "text", "where", "permanent"),
    [
        ("412 No", f"{STORM}403 status code: 403, reason phrase: Forbidden", "source", True),
        ("412 No", f"{STORM}500 status code: 500, reason phrase: Oops", "source", False),
        ("412 No", f"{STORM}Connection error", "source", False),
        ("412 No", f"{STORM}some words", "source", False),
        ("412 No", "Target file exists and Overwrite is false", "destination", True),
        ("400 No", "Unknown source hostname", "source", False),
    ],
)
def test_a_refusal_that_is_of_the_other_end_says_so(
    line: str, text: str, where: str, permanent: bool
):
    error, _ = pull_fails(status(line, text))
    assert (error.where, error.permanent) == (where, permanent)


def test_the_time_in_which_a_transfer_waits_for_its_turn_is_in_no_rate():
    """It is no stall either, however long it takes."""
    waiting = chunk(b"Perf Marker\n    State: Queued on pool\n    Stripe Status: QUEUED\nEnd\n")
    watch, began = Watch(), time.monotonic()
    body = [STARTED, *[waiting] * 30, chunk(marker(5)), SUCCESS]
    limits = replace(PATIENT, stall=2.5)
    receipt = pull(says(*body, pause=0.1), watch, limits=limits)
    assert watch.seen.queue_seconds
    assert watch.seen.queue_seconds > 2.5
    assert watch.seen.queue_seconds + receipt.seconds < time.monotonic() - began
    (sample,) = watch.seen.samples
    assert sample.seconds < receipt.seconds


def test_a_transfer_that_never_waited_has_no_queue():
    watch = Watch()
    pull(says(STARTED, chunk(marker(5)), SUCCESS), watch)
    assert watch.seen.queue_seconds is None


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize(
    "text", ["Failed to open local resource", "No servers are available to read the file."]
)
def test_the_manager_of_a_cluster_is_given_time_to_find_a_server(text: str, found: bool):
    def play(connection: socket.socket) -> None:
        asked.append(server.requests[-1].split()[0])
        if asked[-1] == "HEAD":
            status("404 Not Found")(connection)
        elif found and len(asked) > 2:
            says(STARTED, SUCCESS)(connection)
        else:
            status("400 Unknown", text)(connection)

    asked: list[str] = []
    with scripted(play) as server:
        order = order_between(SOURCE, server.url, limits=PATIENT)
        with nullcontext() if found else pytest.raises(MoverError) as caught:
            HttpTpc().move(order, Watch())
    assert asked == ["HEAD", "COPY", "HEAD", "COPY"]
    if caught:
        assert (caught.value.where, caught.value.permanent) == (Where.DESTINATION, False)
        assert "until it has found a data server for the file" in str(caught.value)


# What XRootD 5.5.3 (with curl 7.88) and other servers say after "failure: ".
FAILURES = [
    ("Couldn't connect to server", "passive", False),
    ("Couldn't resolve host name", "passive", False),
    ("Could not resolve hostname", "passive", False),
    ("SSL peer certificate or SSH remote key was not OK", "passive", True),
    ('Remote side failed with status code 404; error message: "Unable to open"', "passive", True),
    ("Remote side failed with status code 403", "passive", True),
    ("Remote side failed with status code 500", "passive", False),
    ("rejected GET: 401 Unauthorized", "passive", True),
    ("403 status code: 403, reason phrase: Forbidden", "passive", True),
    ("rejected PUT: 507 Insufficient Storage", "passive", False),
    ("connection failed for PUT", "passive", False),
    ("socket timeout on GET", "passive", False),
    ("remote server not ready for GET request after 30 s", "passive", False),
    ("transfer not accepted: no pool", "active", False),
    ("RemoteTransferManager restarted", "active", False),
    ("problem sending data: broken pipe", "transfer", False),
    ("Transferred a partial file", "transfer", False),
    ("Failure when receiving data from the peer", "transfer", False),
    ("Timeout was reached", "transfer", False),
    ("", "transfer", False),
]


@pytest.mark.parametrize(("text", "whose", "permanent"), FAILURES)
@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_failure_line_tells_whose_it_is(text: str, whose: str, permanent: bool, mode: str):
    ends = [Where.SOURCE, Where.DESTINATION][:: 1 if mode == "pull" else -1]
    error = failed(replace(ORDER, mode=mode), text)
    assert error.where == dict(zip(("passive", "active"), ends, strict=True)).get(
        whose, Where.TRANSFER
    )
    assert error.permanent is permanent


def test_a_mode_that_does_not_exist_is_our_own_error():
    error, _ = pull_fails(says(b""), mode="sideways")
    assert (error.where, error.permanent) == (Where.CONTROL, True)


def test_a_destination_outside_its_base_is_never_asked():
    with copying(says(STARTED, SUCCESS)) as server:
        order = order_between(SOURCE, server.url)
        outside = replace(order.destination, url=f"{server.url}/base/../etc/passwd")
        with pytest.raises(MoverError, match="outside the base path"):
            HttpTpc().move(replace(order, destination=outside), Watch())
        assert server.requests == []


def test_no_message_holds_a_token_or_a_query():
    secret, order = "MDAxsecret", order_between(SOURCE, "http://127.0.0.1:9")

    def told(connection: object) -> None:
        text = f'Bearer {secret} https://u:{secret}@se.example/f?authz={secret} "{secret}"'
        status("403 Forbidden", text)(connection)  # type: ignore[arg-type]

    with copying(told) as server:
        url = f"{server.url.replace('//', f'//user:{secret}@')}/base/f?authz={secret}"
        end = replace(order.destination, url=url, base_url=f"{server.url}/base", token=secret)
        with pytest.raises(MoverError) as caught:
            HttpTpc().move(replace(order, destination=end), Watch())
    assert secret not in str(caught.value)
    assert "403 Forbidden" in str(caught.value)
    assert secret not in repr(end).replace(url, "")


def test_a_stop_that_came_before_sends_nothing():
    watch = Watch()
    watch.stop()
    with copying(says(STARTED, SUCCESS)) as server:
        with pytest.raises(Stopped):
            HttpTpc().move(order_between(SOURCE, server.url), watch)
        assert server.requests == []


def with_token(order: Order, token: str) -> Order:
    return replace(order, destination=replace(order.destination, token=token))


def test_a_token_with_a_line_break_inside_is_refused_without_telling_it():
    order = with_token(order_between(SOURCE, "http://127.0.0.1:9"), "abc\r\nX-Evil: 1")
    with pytest.raises(MoverError) as caught:
        HttpTpc().move(order, Watch())
    assert "Evil" not in str(caught.value)
    assert caught.value.where == Where.DESTINATION


def test_connections_are_kept_apart_by_credential():
    shown: dict[socket.socket, set[str]] = defaultdict(set)

    def play(connection: socket.socket) -> None:
        head = server.requests[-1].partition("Authorization: ")[2]
        shown[connection].add(head.partition("\r\n")[0])
        status("200 OK")(connection)

    with scripted(play) as server:
        files, order = HttpTpc().files, order_between(SOURCE, server.url, limits=PATIENT)
        for token in ("one", "one", "two", "", "one"):
            files.web.ask(Request("HEAD", with_token(order, token).destination), order)
    assert sorted(map(sorted, shown.values())) == [[""], ["Bearer one"], ["Bearer two"]]


# A COPY answered without a word: the destination says what became of it.

EMPTY_CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
EMPTY = b"Content-Length: 0\r\n\r\n"
CREATED, NO_CONTENT = b"HTTP/1.1 201 Created\r\n" + EMPTY, b"HTTP/1.1 204 No Content\r\n\r\n"


class Storage:
    """One server as both ends, whose COPY says what it is told to and does what it is told to."""

    def __init__(self, answer: bytes, copies: Callable[[str], str | None]) -> None:
        self._answer, self._copies = answer, copies
        self.held = {f"/base/source/{SIZE_BYTES}": SIZE_BYTES}
        self.server: Scripted

    def play(self, connection: socket.socket) -> None:
        head = self.server.requests[-1]
        method, path, _ = head.split(maxsplit=2)
        if method == "COPY":
            if arrived := self._copies(path):
                self.held[arrived] = SIZE_BYTES
            connection.sendall(self._answer)
        elif method == "HEAD" and path in self.held:
            size = self.held[path]
            line = f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n"
            if "want-digest" in head.lower():
                line += f"Digest: adler32={adler32(size)}\r\n"
            connection.sendall(f"{line}\r\n".encode())
        elif method == "DELETE" and self.held.pop(path, None):
            status("200 OK")(connection)
        else:
            status("404 Not Found")(connection)


@contextmanager
def storage(answer: bytes, copies: Callable[[str], str | None]) -> Iterator[Storage]:
    one = Storage(answer, copies)
    with scripted(one.play) as server:
        one.server = server
        yield one


def outcome_of(answer: bytes, copies: Callable[[str], str | None], **wishes: object) -> Outcome:
    with storage(answer, copies) as one:
        order: Order = order_between(one.server.url, one.server.url, limits=PATIENT, **wishes)
        return measure(HttpTpc(), order, Watch())


def to_itself(path: str) -> str:
    return path


def nowhere(_path: str) -> None:
    return None


@pytest.mark.parametrize("answer", [CREATED, NO_CONTENT, EMPTY_CHUNKED])
def test_a_copy_answered_without_a_body_is_done_if_the_file_has_arrived(answer: bytes):
    outcome = outcome_of(answer, to_itself)
    assert (outcome.error, outcome.leftover, outcome.verified) == (None, None, True)
    assert 0 < outcome.receipt.seconds <= outcome.elapsed_seconds
    assert re.fullmatch(r"20[14] without a body", outcome.receipt.verdict)


@pytest.mark.parametrize("answer", [CREATED, NO_CONTENT, EMPTY_CHUNKED])
def test_a_copy_answered_without_a_body_of_which_nothing_arrived_is_a_failure(answer: bytes):
    outcome = outcome_of(answer, nowhere)
    assert outcome.receipt is None
    assert outcome.error.where == Where.TRANSFER
    words = r"reported as done \(20[14] without a body\), but the file is missing"
    assert re.search(words, str(outcome.error))
    assert outcome.seen.moved_bytes == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 202 Accepted\r\n" + EMPTY,
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk(marker(5))
        + b"0\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
def test_what_is_no_plain_success_is_none_though_the_file_is_there(answer: bytes):
    outcome = outcome_of(answer, to_itself)
    assert "the answer ended without reporting success or failure" in str(outcome.error)


def test_a_push_takes_it_for_a_success_too():
    with storage(CREATED, nowhere) as one:
        order = order_between(one.server.url, one.server.url, limits=PATIENT, mode="push")
        # A push is asked of the source, which then has it written at the destination.
        one._copies = lambda _path: "/base/incoming/1"
        one.held["/base"] = 0
        outcome = measure(HttpTpc(), order, Watch())
    assert (outcome.error, outcome.verified) == (None, True)
