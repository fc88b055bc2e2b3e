"""What the programs say, read from what real ones have said; and whatever else they may say."""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.base import End, MoverError, Order, Where
from sonar.movers.programs import gfal2, gridftp, xrootd
from sonar.movers.programs.tool import Ended, when_said
from sonar.movers.programs.xrootd import XrootdLog
from sonar.movers.watch import Watch

SAMPLES = Path(__file__).parent / "samples"
LINE_END = re.compile(r"[\r\n]+")


def sample(name: str, heading: str = "") -> str:
    """Return what a program said, the part under this heading; each begins with ###."""
    text = (SAMPLES / f"{name}.txt").read_text()
    return text.partition(f"### {heading}")[2].partition("\n###")[0] if heading else text


def order(source: str, destination: str, **wishes: object) -> Order:
    ends = [
        End(where, url, url.rpartition("/")[0])
        for where, url in ((Where.SOURCE, source), (Where.DESTINATION, destination))
    ]
    return replace(Order(ends[0], ends[1], 2_000_000_000), **wishes)  # type: ignore[arg-type]


def progress(read: Callable[[str], int | None], text: str) -> list[int]:
    numbers = [read(line) for line in LINE_END.split(text)]
    return [number for number in numbers if number is not None]


FTP = order("ftp://127.0.0.1:28110/lab/g/data/f2000", "ftp://127.0.0.1:28120/lab/g/data/o2000")


def test_globus_url_copy_says_the_bytes_and_its_own_rates_are_not_read():
    text = sample("globus_url_copy", "globus-url-copy -vb -p 1  (2GB third party)")
    assert progress(gridftp.moved_bytes, text) == [1884553216, 2000000000]
    slow = sample("gridftp_92ms", "gridftp f200 92ms RTT 1 Gbit/s p=1 bs=1048576")
    assert progress(gridftp.moved_bytes, slow) == [63176704, 133955584, 204734464, 209715200]
    assert progress(gridftp.moved_bytes, sample("globus_url_copy_more", "f20\n")) == []


@pytest.mark.parametrize(
    ("heading", "wishes", "where", "permanent"),
    [
        ("missing source", {"source": "ftp://127.0.0.1:28110/lab/g/data/nope"}, "source", True),
        ("refused", {"destination": "ftp://127.0.0.1:9/o"}, "destination", False),
        ("refused", {"source": "ftp://127.0.0.1:9/f"}, "source", False),
        ("no perms", {"destination": "ftp://127.0.0.1:28120/HOME/o"}, "destination", True),
    ],
)
def test_globus_url_copy_names_the_end_that_fails(
    heading: str, wishes: dict[str, str], where: str, permanent: bool
):
    ends = {"source": FTP.source.url, "destination": FTP.destination.url} | wishes
    error = gridftp.failed(order(**ends), Ended(1, 0.1, sample("globus_url_copy_more", heading)))
    assert (error.where, error.permanent) == (where, permanent)
    assert str(error).startswith("globus-url-copy: ")


def test_globus_url_copy_is_told_streams_and_buffer():
    assert gridftp.arguments(FTP)[:4] == ("globus-url-copy", "-vb", "-p", "1")
    asked = gridftp.arguments(replace(FTP, streams=9, tcp_buffer_bytes=1048576))
    assert asked[2:6] == ("-p", "9", "-tcp-bs", "1048576")
    assert asked[6:] == (FTP.source.url, FTP.destination.url)


def test_xrdcp_counts_in_binary_multiples_and_never_beyond_the_file():
    moved = progress(lambda line: xrootd.moved_bytes(line, 2_000_000_000), sample("xrdcp"))
    assert moved == [832 * 2**20, 2_000_000_000, 2_000_000_000, 2_000_000_000]
    assert xrootd.moved_bytes("[1.863GB/1.9GB][98%][==>][238.4MB/s]", 10**12) == 2000381018
    # 195.3 * 1024 are 199987 bytes.
    assert xrootd.moved_bytes("[195.3kB/195.3kB][100%][==>][9.8kB/s]", 200_000) == 200_000


def test_the_log_of_xrootd_says_when_it_had_copied_and_who_refused():
    log = XrootdLog()
    said = sample("xrootd_log", "xrdcp --tpc only, 20 MB").splitlines()
    for line in said[:4]:
        log.read(line)
    assert (log.answered, log.between) == (None, None)
    for line in said[4:]:
        log.read(line)
    assert log.answered is not None
    assert log.between is not None
    assert not log.refusal
    assert log.data_server == "127.0.0.1:43385"
    for line in sample("xrootd_log", "refused").splitlines():
        log.read(line)
    assert log.refusal == "[3018] Unable to create /base/g; file exists"


@pytest.mark.parametrize(
    ("said", "server"),
    [
        ("st-048.Example.org:1094", "st-048.example.org:1094"),
        ("sonar@st-048.example.org:1094", "st-048.example.org:1094"),
        ("[2001:db8::48]:1094", "[2001:db8::48]:1094"),
        ("st-048.example.org", ""),
    ],
)
def test_the_log_of_xrootd_names_the_data_server(said: str, server: str):
    log = XrootdLog()
    for line in sample("xrootd_log", "xrdcp --tpc only, 20 MB").splitlines():
        log.read(line.replace("127.0.0.1:43385", said))
    assert log.data_server == server


def test_gfal_copy_hides_why_and_the_log_tells_it():
    ends = order("root://a.example/base/f", "root://b.example/base/g")
    ended = Ended(95, 0.1, sample("xrootd_log", "refused"))
    for refusal, where in {
        "[3018] Unable to create /base/g; file exists": "destination",
        "[3010] Unable to open /base/f; permission denied": "source",
    }.items():
        error = gfal2.failed(ends, ended, refusal)
        assert (error.where, error.permanent) == (where, True)
        assert refusal in str(error)
        assert "delegation" not in str(error)


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("v5.5.3", (5, 5, 3)),
        ("v5.6.10\n", (5, 6, 10)),
        ("Warning: plugin v4.0.0 is older than v5.5.3\r\nv5.5.3\r\n", (5, 5, 3)),
        ("v5.7.0-rc2\nsome more", (5, 7, 0)),
        ("what", (5, 6, 7)),
        ("", (5, 6, 7)),
    ],
)
def test_the_version_of_xrdcp_is_read_from_its_words(words: str, version: tuple[int, ...]):
    assert xrootd.version_of(words) == version


def test_gfal_copy_says_how_it_copies_and_how_far_it_is():
    watch = Watch()
    account = gfal2.Account(watch)
    moved = progress(account.read, sample("gfal_copy", "root:// tpc"))
    assert (account.method, moved) == ("3rd pull", [788529152, 1765801984, 2000000000])
    account = gfal2.Account(watch)
    assert progress(account.read, sample("gfal_copy", "gfal-copy -v http TPC")) == [1539428185]
    assert (account.method, watch.seen.ip_version) == ("3rd pull", 4)
    account = gfal2.Account(watch)
    assert progress(account.read, sample("globus_url_copy_more", "gfal-copy ftp://")) == []
    assert account.method == "3rd push"


def test_times_are_those_of_the_lines_however_late_they_are_read():
    def log_line(stamp: float) -> str:
        at = datetime.fromtimestamp(stamp, UTC).strftime(xrootd.STAMP_FORMAT)
        return f"[{at}][Dump   ][XRootD ] [a:1094] Got a kXR_ok response to request kXR_sync (x)"

    def event(step: str, stamp: float) -> str:
        return f"event: [{stamp * 1000:.0f}] BOTH   GSIFTP\tTRANSFER:{step}\ta => b"

    now, log, account = time.time(), XrootdLog(), gfal2.Account(Watch())
    for stamp in (now - 9, now - 4):
        log.read(log_line(stamp))
    assert log.between == pytest.approx(5, abs=0.001)
    account.read(event("ENTER", now - 8))
    account.read(event("EXIT", now - 2))
    assert account.seconds(Ended(0, 9, "")) == pytest.approx(6, abs=0.01)
    account.read(log_line(now - 7))
    account.read(log_line(now - 5))
    assert account.seconds(Ended(0, 9, "")) == pytest.approx(3, abs=0.01)


@pytest.mark.parametrize("ahead", [-100_000_000, -61, 5, 100_000_000])
def test_a_time_that_cannot_be_is_that_of_reading(ahead: float):
    before = time.monotonic()
    assert before <= when_said(time.time() + ahead) <= time.monotonic()


@pytest.mark.parametrize("way", ["streamed", "Streamed", "local to remote", "2rd pull"])
def test_a_stream_through_the_worker_is_an_error_of_ours(way: str):
    line = f"event: [1795160035294] BOTH   http_plugin\tTRANSFER:TYPE\t{way}"
    with pytest.raises(
        MoverError, match="would have copied the data through this worker"
    ) as caught:
        gfal2.Account(Watch()).read(line)
    assert (caught.value.where, caught.value.permanent) == ("control", True)


@pytest.mark.parametrize(
    ("heading", "where", "permanent"),
    [("missing", "source", True), ("refused", "source", False), ("exists", "destination", True)],
)
def test_gfal_copy_names_the_end_that_fails(heading: str, where: str, permanent: bool):
    error = gfal2.failed(FTP, Ended(2, 0.1, sample("gfal_copy", f"{heading}\n")))
    assert (error.where, error.permanent) == (where, permanent)
    assert str(error).startswith("gfal-copy: ")


def test_who_ends_badly_without_a_word_is_said_to():
    assert (
        str(gfal2.failed(FTP, Ended(9, 0.1, ""))) == "gfal-copy: exited with code 9 and no message"
    )
    assert str(gridftp.failed(FTP, Ended(-9, 0.1, ""))) == (
        "globus-url-copy: exited with code -9 and no message"
    )


# Pieces of what they say, cut and put together otherwise, and any text.
PIECES = sorted(
    {
        word
        for file in SAMPLES.glob("*.txt")
        for line in file.read_text().splitlines()
        for word in (line, *line.split())
    }
)
OUTPUT = st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=12).map(" ".join)


@given(OUTPUT, st.integers(-64, 255))
def test_whatever_they_say_no_parser_raises_anything_else(text: str, code: int):
    for read in (gridftp.moved_bytes, lambda line: xrootd.moved_bytes(line, 10**9)):
        assert (read(text) or 0) >= 0
    account = gfal2.Account(Watch())
    way = gfal2.TYPE.match(text)
    if way and not gfal2.THIRD_PARTY.match(way[1]):
        with pytest.raises(MoverError):
            account.read(text)
    else:
        assert (account.read(text) or 0) >= 0
    ended = Ended(code, 0.1, text)
    for failure in (module.failed(FTP, ended) for module in (gridftp, gfal2, xrootd)):
        assert len(str(failure)) < 400
        assert str(failure).isprintable()
