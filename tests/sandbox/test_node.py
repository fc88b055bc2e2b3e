"""Storage nodes as a mover meets them: real ones, on free ports, over real HTTP."""

import asyncio
import http.client
import itertools
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from urllib.parse import urlsplit

import pytest
import requests

from sonar.movers.base import End, Order, Where
from sonar.movers.content import adler32
from sonar.movers.http.tpc import HttpTpc
from sonar.movers.measure import measure
from sonar.movers.watch import Watch
from sonar.sandbox import node
from sonar.sandbox.flow import Course, Draws
from sonar.sandbox.node import MARKER_SECONDS
from sonar.sandbox.nodes import listening, load_base_urls
from sonar.sandbox.topology import SCALE, Link
from tests.ports import free_port
from tests.waiting import sooner_or_later, wait_for

FAST, SLOW, FAILING, FAR = "FAST", "SLOW", "FAILING", "FAR"
MARKER = re.compile(
    r"Perf Marker\nTimestamp: \d{10}\nStripe Index: 0\nStripe Bytes Transferred: (\d+)\n"
    r"Total Stripe Count: 1\n(?:RemoteConnections: (tcp:127\.0\.0\.1:\d+)\n)?End\n"
)
CONTENT = random.Random(1).randbytes(1_000_000)
names = itertools.count()


def link(source: str, destination: str, **figures: float) -> Link:
    behaviour = {"setup_seconds": 20.0, "spread": 0.0, "failure_rate": 0.0, **figures}
    return Link(source, destination, large_mb_s=0, basis="derived", **behaviour)


LINKS = {
    (SLOW, FAST): link(SLOW, FAST, bandwidth_mb_s=1.0),
    (FAST, SLOW): link(FAST, SLOW, bandwidth_mb_s=1.0),
    (FAILING, FAST): link(FAILING, FAST, bandwidth_mb_s=50.0, failure_rate=1.0),
    (FAST, FAILING): link(FAST, FAILING, bandwidth_mb_s=50.0, failure_rate=1.0),
    (FAR, FAST): link(FAR, FAST, bandwidth_mb_s=0.2),
}


@contextmanager
def grid(directory: Path) -> Iterator[dict[str, str]]:
    """Run four nodes in a thread of their own; give their base URLs."""
    ready, base_urls = threading.Event(), {}
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with listening(directory, LINKS, [FAST, SLOW, FAILING, FAR]) as urls:
            base_urls.update(urls)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield base_urls
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("grid")


@pytest.fixture(scope="module")
def urls(directory: Path) -> Iterator[dict[str, str]]:
    with grid(directory) as base_urls:
        for base_url in base_urls.values():
            assert requests.put(f"{base_url}/file", data=CONTENT).status_code == 201
        yield base_urls


@pytest.fixture
def new(urls: dict[str, str]) -> str:
    """Give the URL of a file that is not there."""
    return f"{urls[FAST]}/new-{next(names)}"


def copy(url: str, **headers: str) -> requests.Response:
    return requests.request("COPY", url, headers=headers)


def move(url: str, **headers: str) -> int:
    return requests.request("MOVE", url, headers=headers).status_code


def put(url: str, content: bytes = b"a") -> int:
    return requests.put(url, data=content).status_code


def text(url: str) -> bytes | int:
    """Return what is in a file, or the status if it is not there."""
    answer = requests.get(url)
    return answer.content if answer.ok else answer.status_code


@contextmanager
def server(answer: bytes) -> Iterator[tuple[str, list[str]]]:
    """Give the URL at which somebody answers once so, and then closes; and what was asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heads: list[str] = []

        def serve() -> None:
            connection, _ = listener.accept()
            heads.append(connection.recv(4096).decode(errors="replace"))
            connection.sendall(answer)
            connection.close()

        threading.Thread(target=serve).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/file", heads


def pull(url: str, source: str, **headers: str) -> requests.Response:
    return copy(url, Source=source, **headers)


def verdict(response: requests.Response) -> str:
    assert response.status_code == 201
    return MARKER.sub("", response.text)


def raw_status(base_url: str, method: str, path: str) -> int:
    """Ask for a path as it is: requests would tidy it up first."""
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
    connection.request(method, path, body=b"x" if method == "PUT" else None)
    return connection.getresponse().status


def eventually(condition: Callable[[], object], seconds: float = 120.0) -> bool:
    return wait_for(condition, seconds, pause=0.02)


def partials(directory: Path) -> list[Path]:
    return [path for path in (directory / ".partial").rglob("*") if path.is_file()]


# Files


def test_an_empty_file_can_be_put_got_and_copied(urls: dict[str, str], new: str) -> None:
    put(f"{urls[FAR]}/empty", b"")
    assert verdict(pull(new, f"{urls[FAR]}/empty")) == "success: Created"
    assert text(new) == b""


def test_put_says_whether_the_file_is_new_and_waits_for_no_directory(new: str) -> None:
    assert (put(new, b"a"), put(new, b"b"), text(new)) == (201, 200, b"b")
    assert put(f"{new}-none/file") == 409


def test_put_keeps_what_is_there_if_asked_to(urls: dict[str, str]) -> None:
    answer = requests.put(f"{urls[FAST]}/file", data=b"a", headers={"Overwrite": "F"})
    assert (answer.status_code, text(f"{urls[FAST]}/file")) == (412, CONTENT)


def test_a_put_that_breaks_off_leaves_nothing(new: str, directory: Path) -> None:
    with socket.create_connection((urlsplit(new).hostname, urlsplit(new).port)) as sock:
        head = f"PUT {urlsplit(new).path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        sock.sendall(head.encode() + b"x" * 500)
        assert eventually(lambda: partials(directory))
    assert eventually(lambda: not partials(directory))
    assert requests.head(new).status_code == 404


def test_head_gives_size_and_for_who_wants_it_the_checksum(urls: dict[str, str]) -> None:
    answer = requests.head(f"{urls[FAST]}/file", headers={"Want-Digest": "adler32"})
    assert answer.headers["Content-Length"] == "1000000"
    assert answer.headers["Digest"] == f"adler32={zlib.adler32(CONTENT):08x}"
    assert "Digest" not in requests.head(f"{urls[FAST]}/file").headers


def test_the_checksum_is_that_of_the_file_as_it_is_now(new: str) -> None:
    for content in (b"one", b"one", b"two"):
        if text(new) != content:
            put(new, content)
        answer = requests.head(new, headers={"Want-Digest": "adler32"})
        assert answer.headers["Digest"] == f"adler32={zlib.adler32(content):08x}"


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_file_that_is_not_there_is_a_404(new: str, method: str) -> None:
    assert requests.request(method, new).status_code == 404
    assert requests.request(method, f"{new}/below").status_code == 404


def test_delete_deletes(new: str) -> None:
    put(new)
    assert (requests.delete(new).status_code, text(new)) == (200, 404)


def test_a_directory_is_made_where_its_parent_is_listed_and_deleted_when_empty(new: str) -> None:
    assert requests.request("MKCOL", f"{new}/a").status_code == 409
    assert requests.request("MKCOL", new).status_code == 201
    assert requests.request("MKCOL", new).status_code == 405
    put(f"{new}/file")
    assert text(new) == b"file\n"
    assert requests.delete(new).status_code == 409
    requests.delete(f"{new}/file")
    assert requests.delete(new).status_code == 200


def test_the_base_path_is_there_from_the_start_and_stays(urls: dict[str, str]) -> None:
    assert requests.request("MKCOL", urls[FAST]).status_code == 405
    assert requests.delete(urls[FAST]).status_code == 403


def test_move_renames_and_overwrites_unless_told_not_to(new: str) -> None:
    put(new)
    assert move(new, Destination=f"{new}-moved") == 201
    assert (text(new), text(f"{new}-moved")) == (404, b"a")
    put(new, b"b")
    assert move(new, Destination=f"{new}-moved", Overwrite="F") == 412
    assert move(new, Destination=f"{new}-moved") == 204
    assert text(f"{new}-moved") == b"b"


def test_move_refuses_what_it_cannot_do(urls: dict[str, str], new: str) -> None:
    file = f"{urls[FAST]}/file"
    assert move(new, Destination=f"{new}-moved") == 404
    assert move(file) == 400
    assert move(file, Destination=f"{new}/below") == 409
    assert move(file, Destination=f"{urls[SLOW]}/moved") == 502
    assert move(file, Destination="/datadisk/%2e%2e/stolen") == 403


def test_options_and_a_405_say_what_is_allowed(urls: dict[str, str]) -> None:
    answer = requests.options(urls[FAST])
    assert answer.status_code == 200
    assert answer.headers["Allow"] == "OPTIONS,HEAD,GET,PUT,DELETE,MKCOL,MOVE,COPY"
    answer = requests.request("PROPFIND", urls[FAST])
    assert answer.status_code == 405
    assert "COPY" in answer.headers["Allow"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "MKCOL"])
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/datadisk/../SLOW/file", 403),
        ("/datadisk/%2e%2e/SLOW/file", 403),
        ("/datadisk/..%2fSLOW%2ffile", 403),
        ("/datadisk/a/../../../secret", 403),
        ("/datadisk/a/../file", 403),
        ("/datadisk/%00", 403),
        ("/elsewhere", 404),
    ],
)
def test_no_path_leads_out_of_the_base_path(
    urls: dict[str, str], method: str, path: str, status: int
) -> None:
    assert raw_status(urls[FAST], method, path) == status


def test_a_symbolic_link_does_not_lead_out_either(urls: dict[str, str], directory: Path) -> None:
    (directory / FAST / "away").symlink_to(directory / SLOW)
    assert requests.get(f"{urls[FAST]}/away/file").status_code == 403


# COPY: the wire


def test_pull_brings_the_file_and_push_sends_it(urls: dict[str, str], new: str) -> None:
    answer = pull(new, f"{urls[FAST]}/file", **{"X-Number-Of-Streams": "4"})
    assert verdict(answer) == "success: Created"
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert verdict(copy(f"{urls[FAST]}/file", Destination=f"{new}-b")) == "success: Created"
    assert text(new) == text(f"{new}-b") == CONTENT


def test_the_first_marker_comes_at_once_and_names_the_connection(
    urls: dict[str, str], new: str
) -> None:
    port = urlsplit(urls[SLOW]).port

    def first_marker() -> None:
        headers = {"Source": f"{urls[SLOW]}/file"}
        with requests.request("COPY", new, headers=headers, stream=True) as answer:
            first = next(answer.iter_content(None)).decode()
        assert MARKER.findall(first) == [("0", f"tcp:127.0.0.1:{port}")]
        assert MARKER.sub("", first) == ""

    sooner_or_later(first_marker)


def test_markers_come_regularly_and_count_the_bytes(urls: dict[str, str], new: str) -> None:
    def markers() -> None:
        counts = [int(count) for count, _ in MARKER.findall(pull(new, f"{urls[SLOW]}/file").text)]
        assert counts == sorted(counts)
        assert len(counts) == 1 + int(1.1 / MARKER_SECONDS)
        assert counts[0] == 0
        assert 200_000 < counts[1] < 600_000

    sooner_or_later(markers)


def test_what_stands_against_a_copy_is_told_in_the_verdict(urls: dict[str, str], new: str) -> None:
    assert verdict(pull(new, f"{urls[SLOW]}/nope")) == (
        "failure: Remote side failed with status code 404; error message: "
        '"Unable to open /datadisk/nope; no such file or directory "'
    )
    file, nobody = f"{urls[FAST]}/file", f"http://127.0.0.1:{free_port()}/file"
    answer = pull(new, nobody)
    assert verdict(answer) == "failure: Couldn't connect to server"
    assert "RemoteConnections" not in answer.text
    assert verdict(copy(file, Destination=nobody)) == "failure: Couldn't connect to server"
    assert verdict(pull(new, "nonsense")).startswith("failure: URL using bad/illegal format")
    refused = "failure: Remote side failed with status code"
    assert verdict(copy(file, Destination=f"{new}/below")).startswith(f"{refused} 409")
    answer = copy(file, Destination=f"{urls[SLOW]}/file", Overwrite="F")
    assert verdict(answer).startswith(f"{refused} 412")
    assert text(new) == 404


def test_an_unknown_host_is_told_in_the_verdict(new: str, unknown_host: str) -> None:
    answer = pull(new, f"http://{unknown_host}/file")
    assert verdict(answer) == "failure: Couldn't resolve host name"


def test_a_source_that_breaks_off_is_told_in_the_verdict(new: str, directory: Path) -> None:
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 40) as (url, _):
        told = verdict(pull(new, url))
    assert re.fullmatch(r"failure: Transfer closed with (60|100) bytes remaining to read", told)
    assert text(new) == 404
    assert not partials(directory)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Source": "http://127.0.0.1/file", "Credential": "gridsite"},
        {"Destination": "http://127.0.0.1/file"},
    ],
    ids=["neither end named", "unknown credential", "nothing to push"],
)
def test_a_copy_that_makes_no_sense_is_refused(new: str, headers: dict[str, str]) -> None:
    assert copy(new, **headers).status_code == 400


def test_a_copy_overwrites_unless_told_not_to_and_makes_no_directory(
    urls: dict[str, str], new: str
) -> None:
    file = f"{urls[FAST]}/file"
    assert pull(f"{new}/below", file).status_code == 400
    put(new, b"old")
    assert pull(new, file, Overwrite="F").status_code == 412
    assert text(new) == b"old"
    assert verdict(pull(new, file, Overwrite="T")) == "success: Created"


@pytest.mark.parametrize("end", ["Source", "Destination"])
def test_credentials_are_passed_on_to_the_other_side(new: str, end: str) -> None:
    with server(b"HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nno\n") as (remote, heads):
        put(new, b"small")
        headers = {end: remote, "TransferHeaderAuthorization": "Bearer theirs"}
        answer = copy(new, Authorization="Bearer mine", **headers)
    assert "Authorization: Bearer theirs" in heads[0]
    assert "mine" not in heads[0]
    assert verdict(answer).startswith("failure: Remote side failed with status code 403; error")


# COPY: the link


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_link_takes_the_time_it_should(urls: dict[str, str], new: str, mode: str) -> None:
    def transfer() -> None:
        file, started = f"{urls[SLOW]}/file", time.monotonic()
        answer = pull(new, file) if mode == "pull" else copy(file, Destination=new)
        seconds = time.monotonic() - started
        assert verdict(answer) == "success: Created"
        assert seconds == pytest.approx(20 / SCALE + 1.0, rel=0.15)

    sooner_or_later(transfer)


def test_many_transfers_at_once_take_as_long_as_one(urls: dict[str, str], new: str) -> None:
    def timed(number: int) -> float:
        started = time.monotonic()
        assert verdict(pull(f"{new}-{number}", f"{urls[SLOW]}/file")) == "success: Created"
        return time.monotonic() - started

    def all_at_once() -> None:
        with ThreadPoolExecutor(20) as threads:
            assert max(threads.map(timed, range(20))) == pytest.approx(1.1, rel=0.25)

    sooner_or_later(all_at_once)


def test_a_source_that_is_no_node_runs_as_fast_as_it_can(new: str) -> None:
    def transfer() -> None:
        with server(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + CONTENT) as (url, _):
            started = time.monotonic()
            answer = pull(new, url)
        assert verdict(answer) == "success: Created"
        assert time.monotonic() - started < 0.5

    sooner_or_later(transfer)
    assert text(new) == CONTENT


def test_a_failing_link_fails_in_the_words_of_the_real_one(
    urls: dict[str, str], new: str, directory: Path
) -> None:
    verdicts = [verdict(pull(new, f"{urls[FAILING]}/file")) for _ in range(12)]
    to = f"{urls[FAILING]}/to"
    verdicts += [verdict(copy(f"{urls[FAST]}/file", Destination=to)) for _ in range(6)]
    before = [told for told in verdicts if re.match(r"failure: Remote side .* (403|503)", told)]
    during = [told for told in verdicts if "failure: Transfer closed with" in told]
    assert before
    assert during
    assert len(before) + len(during) == len(verdicts)
    assert text(new) == text(to) == 404
    assert eventually(lambda: not partials(directory))


@pytest.mark.parametrize("mode", ["pull", "push"])
def test_a_client_that_goes_away_ends_the_transfer_and_nothing_is_left(
    urls: dict[str, str], new: str, directory: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before its next marker, which nobody could be told."""
    monkeypatch.setattr(node, "MARKER_SECONDS", 60)
    url, headers = new, {"Source": f"{urls[FAR]}/long"}
    if mode == "push":
        url, headers = f"{urls[FAR]}/long", {"Destination": new}
    put(f"{urls[FAR]}/long", CONTENT * 4)
    with requests.request("COPY", url, headers=headers, stream=True) as answer:
        chunks = answer.iter_content(None)
        next(chunks)
        assert eventually(lambda: partials(directory))
    assert eventually(lambda: not partials(directory))
    assert requests.head(new).status_code == 404


def test_a_transfer_cut_short_is_no_error_in_the_log_of_the_nodes(
    urls: dict[str, str], new: str, caplog: pytest.LogCaptureFixture
) -> None:
    requests.put(f"{urls[FAILING]}/big", data=CONTENT * 5)
    verdicts = [verdict(pull(new, f"{urls[FAILING]}/big")) for _ in range(6)]
    assert any("Transfer closed" in text for text in verdicts)
    time.sleep(0.1)
    assert not caplog.records


def test_nothing_is_visible_until_the_transfer_is_complete(urls: dict[str, str], new: str) -> None:
    headers = {"Source": f"{urls[SLOW]}/file"}
    with requests.request("COPY", new, headers=headers, stream=True) as answer:
        chunks = answer.iter_content(None)
        next(chunks)
        assert requests.head(new).status_code == 404
        assert b"success: Created" in b"".join(chunks)
    assert requests.head(new).headers["Content-Length"] == "1000000"


# Draws


def draws(seed: int, count: int = 400, **figures: float) -> list[Course]:
    behaviour = {"spread": 0.12, "failure_rate": 0.25, "bandwidth_mb_s": 2.0, **figures}
    source = Draws({("A", "B"): link("A", "B", **behaviour)}, seed)
    return [source.next("A", "B") for _ in range(count)]


def test_draws_are_the_same_for_the_same_seed_only_and_an_unknown_link_has_no_limits() -> None:
    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert Draws({}, 1).next("A", "B") == Course()


def test_draws_of_one_link_do_not_depend_on_the_others() -> None:
    links = {pair: link(*pair, bandwidth_mb_s=1, spread=0.1) for pair in (("A", "B"), ("B", "A"))}
    alone, mixed = Draws(links, 1), Draws(links, 1)
    mixed.next("B", "A")
    assert alone.next("A", "B") == mixed.next("A", "B")


def test_single_rates_spread_around_the_rate_of_the_link() -> None:
    courses = draws(1, count=4000)
    rates = [course.bytes_per_second / 2e6 for course in courses]
    assert fmean(rates) == pytest.approx(1, abs=0.01)
    assert stdev(rates) == pytest.approx(0.12, abs=0.01)
    setups = [20 / SCALE / course.setup_seconds for course in courses]
    assert setups == pytest.approx(rates)


def test_failures_come_as_often_as_the_link_says_and_of_both_kinds() -> None:
    courses = draws(1, count=4000)
    refused = [course for course in courses if course.refusal]
    broken = [course for course in courses if course.breaks_at < 1]
    assert len(refused) + len(broken) == pytest.approx(1000, abs=100)
    assert len(broken) == pytest.approx(500, abs=100)
    assert not [course for course in broken if course.refusal]


# All nodes in one process


@contextmanager
def nodes_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "sonar.sandbox.nodes", "--directory", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_program_serves_the_whole_grid_and_ends_cleanly(tmp_path: Path) -> None:
    """In the midst of a transfer, which would take half a minute."""
    with nodes_process(tmp_path) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "19 storage nodes listen on 127.0.0.1\n"
        base_urls = load_base_urls(tmp_path)
        assert len(base_urls) == 19
        for base_url in base_urls.values():
            assert urlsplit(base_url).hostname == "127.0.0.1"
            assert requests.get(base_url).status_code == 200
        glasgow, taiwan = (
            base_urls[f"{name}_DATADISK"] for name in ("UKI-SCOTGRID-GLASGOW", "TAIWAN-LCG2")
        )
        requests.put(f"{taiwan}/file", data=CONTENT * 80)
        headers = {"Source": f"{taiwan}/file"}
        with requests.request("COPY", f"{glasgow}/file", headers=headers, stream=True):
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        assert process.stderr.read() == ""
    assert not partials(tmp_path)


def test_a_restart_reuses_the_ports_that_are_free(tmp_path: Path) -> None:
    with grid(tmp_path) as first:
        put(f"{first[FAST]}/kept", b"kept")
    taken = urlsplit(first[SLOW]).port
    with socket.create_server(("127.0.0.1", taken)), grid(tmp_path) as second:
        assert {name for name in first if first[name] != second[name]} == {SLOW}
        assert load_base_urls(tmp_path) == second
        assert text(f"{second[FAST]}/kept") == b"kept"


def test_a_broken_record_of_ports_is_no_obstacle_and_what_a_kill_left_half_written_is_removed(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError):  # before the first start
        load_base_urls(tmp_path)
    (tmp_path / "nodes.json").write_text('{"FAST": ')
    (tmp_path / ".partial" / FAST).mkdir(parents=True)
    (tmp_path / ".partial" / FAST / "left").write_bytes(b"half")
    with grid(tmp_path) as base_urls:
        assert json.loads((tmp_path / "nodes.json").read_text()) == base_urls
        assert not partials(tmp_path)


# The real mover: many tests at once on endpoints that hold nothing yet


SIZE_BYTES = 100_000


def order(urls: list[str], number: int) -> Order:
    source, destination = urls[number % 2], urls[1 - number % 2]
    return Order(
        source=End(Where.SOURCE, f"{source}/sonar/source/{SIZE_BYTES}", source),
        destination=End(Where.DESTINATION, f"{destination}/sonar/incoming/{number}", destination),
        bytes=SIZE_BYTES,
        adler32=adler32(SIZE_BYTES),
    )


def test_tests_that_make_the_same_directories_at_once_all_succeed(tmp_path: Path):
    mover = HttpTpc()
    with grid(tmp_path) as base_urls, ThreadPoolExecutor(24) as threads:
        urls = [base_urls[FAR], base_urls[SLOW]]
        orders = [order(urls, number) for number in range(24)]
        outcomes = list(threads.map(lambda one: measure(mover, one, Watch()), orders))
    assert [str(outcome.error) for outcome in outcomes if outcome.error] == []
    assert not [path for path in tmp_path.rglob("incoming/*") if path.is_file()]
