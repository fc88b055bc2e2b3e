"""What iperf3 says, read from what real ones have said; and whatever else it may say."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.base import End, Limits, MoverError, Order, Receipt, Where
from sonar.movers.network import PathFigures
from sonar.movers.programs import iperf3, tool
from sonar.movers.programs.iperf3 import Report
from sonar.movers.programs.tool import Ended
from sonar.movers.watch import MAX_SAMPLES, Watch
from tests.api import edges

SAMPLES = Path(__file__).parent / "samples"
HERE, THERE = "iperf3://here.example", "iperf3://net.example:5300"
SMALL, NINE = ((SAMPLES / f"iperf3_{name}.json").read_text() for name in ("w85K", "9streams_cubic"))


def order(source: str = HERE, destination: str = THERE, **wishes: Any) -> Order:
    ends = [
        End(where, url, url)
        for where, url in ((Where.SOURCE, source), (Where.DESTINATION, destination))
    ]
    return replace(Order(ends[0], ends[1], 20_000_000, mode="push"), **wishes)


def test_one_stream_over_92_ms_with_a_small_window():
    seen = iperf3.seen_of(iperf3.read(SMALL))
    assert seen.path == PathFigures(
        rtt_min_ms=92.233,
        rtt_mean_ms=92.261,
        rtt_max_ms=92.315,
        retransmits=0,
        sent_bytes=5_549_664,
        max_cwnd_bytes=217_200,
        max_receive_window_bytes=108_000,
        mss_bytes=1448,
        congestion_control="cubic",
    )
    assert (seen.moved_bytes, seen.streams_used, seen.ip_version) == (5_549_064, 1, 4)
    assert [sample.bytes for sample in seen.samples] == [
        *(1_011_616, 2_120_576, 3_340_432, 4_449_392),
        5_549_664,
    ]
    assert [round(sample.seconds, 2) for sample in seen.samples] == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("received", "seconds"), [({"seconds": 5.0, "end": 6.0}, 5.0), ({"end": 6.0}, 6.0)]
)
def test_the_time_is_that_of_the_bytes_received_or_else_their_end(monkeypatch, received, seconds):
    report = Report.model_validate({"end": {"sum_received": {"bytes": 10**6} | received}})
    monkeypatch.setattr(iperf3, "run", lambda *_: (Ended(0, 7.0, ""), report))
    receipt = iperf3.Iperf3().move(order(), Watch())
    assert (receipt.bytes, receipt.seconds) == (10**6, seconds)


def test_nine_streams_are_one_way_together():
    report = iperf3.read(NINE)
    seen, said = iperf3.seen_of(report), json.loads(NINE)["end"]
    assert seen.streams_used == 9
    senders = [stream["sender"] for stream in said["streams"]]
    assert seen.path.rtt_min_ms == min(each["min_rtt"] for each in senders) / 1000
    assert seen.path.rtt_max_ms == max(each["max_rtt"] for each in senders) / 1000
    assert seen.path.rtt_mean_ms == pytest.approx(sum(each["mean_rtt"] for each in senders) / 9000)
    assert seen.path.max_cwnd_bytes == max(each["max_snd_cwnd"] for each in senders)
    assert seen.path.retransmits == said["sum_sent"]["retransmits"]
    assert seen.moved_bytes == said["sum_received"]["bytes"]


def test_who_fetches_is_told_no_round_trip_and_no_window():
    said = json.loads(SMALL)
    for name in ("min_rtt", "mean_rtt", "max_rtt", "max_snd_cwnd", "max_snd_wnd"):
        said["end"]["streams"][0]["sender"][name] = 0
    path = iperf3.seen_of(iperf3.read(json.dumps(said))).path
    assert (path.rtt_min_ms, path.rtt_mean_ms, path.rtt_max_ms) == (None, None, None)
    assert (path.max_cwnd_bytes, path.max_receive_window_bytes) == (None, None)
    assert path.retransmits == 0
    del said["end"]["sum_sent"]["retransmits"]
    assert iperf3.seen_of(iperf3.read(json.dumps(said))).path.retransmits is None


@pytest.mark.parametrize(
    ("host", "version"), [("192.0.2.7", 4), ("2001:db8::7", 6), ("::1", 6), ("::ffff:192.0.2.7", 4)]
)
def test_the_ip_version_is_that_of_the_connection(host: str, version: int):
    assert iperf3.ip_version(host) == version


def test_what_is_asked_for_stands_on_the_command_line():
    plain = iperf3.arguments(order(limits=Limits(connect=3)))
    assert plain[:6] == ("iperf3", "--json", "--client=net.example", "--port", "5300", "--bytes")
    assert plain[6:] == (
        *("20000000", "--parallel", "1", "--connect-timeout", "3000", "--interval", "1"),
    )
    fetched = iperf3.arguments(
        order(THERE, "iperf3://[::1]", mode="pull", streams=64, tcp_buffer_bytes=65536)
    )
    assert "--client=net.example" in fetched
    assert fetched[-5:] == ("--interval", "5", "--window", "65536", "--reverse")
    assert "--client=::1" in iperf3.arguments(order(HERE, "iperf3://[::1]"))
    assert "5201" in iperf3.arguments(order(HERE, "iperf3://net.example"))
    # A host is never an option, whatever it is called.
    assert "--client=-R" in iperf3.arguments(order(HERE, "iperf3://-R"))


@pytest.mark.parametrize(
    ("error", "where", "permanent"),
    [
        ("unable to connect to server: Connection refused", "destination", False),
        ("unable to connect to server: Name or service not known", "destination", True),
        (
            "unable to connect to server - server may have stopped running or use a different "
            "port, firewall issue, etc.: Connection timed out",
            *("destination", False),
        ),
        ("the server is busy running a test. try again later", "destination", False),
        ("test authorization failed", "destination", True),
        ("control socket has closed unexpectedly", "transfer", False),
        ("the server has terminated", "transfer", False),
        ("socket buffer size not set correctly", "control", True),
    ],
)
def test_an_error_names_who_has_to_look_at_it(error: str, where: str, permanent: bool):
    failure = iperf3.failed(order(), Ended(0, 0.1, ""), Report(error=error))
    assert (failure.where, failure.permanent) == (where, permanent)
    assert str(failure) == f"iperf3: {error}"
    turned = iperf3.failed(order(THERE, HERE, mode="pull"), Ended(0, 0.1, ""), Report(error=error))
    assert turned.where == where.replace("destination", "source")


def test_who_ends_badly_without_a_word_is_said_to():
    assert str(iperf3.failed(order(), Ended(9, 0.1, ""), Report())) == (
        "iperf3: exited with code 9 and no message"
    )


def test_what_is_no_report_is_said_to_be_none():
    with pytest.raises(MoverError, match="a report that cannot be read: end: ") as caught:
        iperf3.read('{"end": 7}')
    assert (caught.value.where, caught.value.permanent) == ("control", False)
    with pytest.raises(MoverError, match="cannot be read"):
        iperf3.read(SMALL[:1000])
    assert iperf3.read("iperf3: parameter error - x\n\nUsage: iperf3") == Report()


WITHOUT_LINES = json.dumps(json.loads(SMALL))


@pytest.mark.parametrize(
    "text",
    [
        f"{SMALL}\n{SMALL}",
        f"{WITHOUT_LINES}{WITHOUT_LINES}",
        f"{SMALL}\n{SMALL[:700]}",
        f"iperf3: warning: UDP block size is too large\n{SMALL}",
        f"{{not json}} of a wrapper\n{SMALL}",
        f'{{"level": "warning", "text": "old kernel"}}\n{SMALL}',
        f"{SMALL}\niperf Done.",
        f"\n  {SMALL}",
        SMALL.replace("\n", "\r\n"),
    ],
    ids=["twice", "in a line", "half", "warning", "braces", "log", "after", "blanks", "crlf"],
)
def test_a_report_is_read_whatever_is_around_it(text: str):
    """iperf3 3.16 and 3.17 write it twice."""
    assert iperf3.read(text) == iperf3.read(SMALL)


def run_faked(monkeypatch, tmp_path: Path, words: str) -> Receipt:
    """Measure by a program that writes this."""
    program = tmp_path / "iperf3"
    (tmp_path / "words").write_text(words)
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/words\n")
    program.chmod(0o755)
    monkeypatch.setattr(tool, "PATH", f"{tmp_path}:{tool.PATH}")
    return iperf3.Iperf3().move(order(), Watch())


def test_a_program_that_writes_its_report_twice_has_a_rate(monkeypatch, tmp_path):
    coloured = f"\x1b[33mwarning: the clock is odd\x1b[0m\r\n{SMALL}\n{SMALL}"
    assert run_faked(monkeypatch, tmp_path, coloured).bytes == 5_549_064


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "iperf3: exited with code 0 and no message"),
        ("{}", "iperf3: {}"),
        ("iperf3: parameter error - no such option", "iperf3: iperf3: parameter error"),
    ],
)
def test_a_program_without_a_report_has_not_said_that_nothing_was_received(
    monkeypatch, tmp_path, words: str, message: str
):
    with pytest.raises(MoverError) as caught:
        run_faked(monkeypatch, tmp_path, words)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SMALL[:1000], r"\w.* \(line \d+\)"),
        ('{"start": ' + "[" * 100_000, "nested too deeply, or a number is too long"),
        ('{"start": ' + "9" * 5_000, "nested too deeply, or a number is too long"),
        ('{"error": "\\ud800"}', r"\w.*"),
        ('{"start": 7}', r"start: \w.*"),
    ],
    ids=["cut", "deep", "long", "half a character", "a number"],
)
def test_a_report_that_cannot_be_read_says_why_without_an_empty_place(text: str, reason: str):
    with pytest.raises(MoverError) as caught:
        iperf3.read(text)
    words = f"iperf3 wrote a report that cannot be read: {reason}"
    assert re.fullmatch(words, str(caught.value))


def test_what_never_stops_to_write_is_ended(monkeypatch):
    monkeypatch.setattr(iperf3, "MOST_CHARACTERS", 100)
    kept = iperf3.Kept()
    kept.keep("x" * 100)
    with pytest.raises(MoverError, match="wrote too much output"):
        kept.keep("x")


def everywhere(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the places of all that is in a report."""
    inner: dict[Any, Any] = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        inner = dict(enumerate(value))
    parts = (each for key, part in inner.items() for each in everywhere(part, (*place, key)))
    return [place, *parts]


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(), max_size=2),
    st.just({}),
)
PLACES = everywhere(json.loads(SMALL))[1:]


@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=4))
def test_a_report_with_anything_in_it_is_read_or_refused(changes: list[tuple[Any, Any]]):
    said = json.loads(SMALL)
    for (*place, last), value in changes:
        part = said
        try:
            for key in place:
                part = part[key]
            part[last] = value
        except (TypeError, KeyError, IndexError):  # it is not there any more
            continue
    only_refused(json.dumps(said))


def test_no_number_at_an_end_of_its_range_is_more_than_can_be_kept():
    for number in re.findall(r": ([0-9.]+),?\n", SMALL):
        for value in edges.NUMBERS:
            only_refused(SMALL.replace(f": {number}", f": {value}"))


def test_intervals_add_up_to_no_more_than_can_be_kept():
    said = json.loads(SMALL)
    said["intervals"] = [{"sum": {"end": 1, "bytes": 2**53}}] * 2000
    only_refused(json.dumps(said))


@given(st.text(max_size=200) | st.integers(0, len(SMALL)).map(lambda end: SMALL[:end]))
def test_any_text_is_read_or_refused(text: str):
    only_refused(text)


def only_refused(text: str) -> None:
    """Read a report; what is refused is one error of ours with words for people."""
    try:
        report = iperf3.read(text)
    except MoverError as error:
        refusal = error
        report = Report()
    else:
        refusal = iperf3.failed(order(), Ended(1, 0.1, text), report)
    assert len(str(refusal)) < 400
    assert str(refusal).isprintable()
    seen = iperf3.seen_of(report)
    assert len(seen.samples) <= MAX_SAMPLES
    assert 0 <= (seen.moved_bytes or 0) < 2**63
    assert all(0 <= sample.bytes < 2**63 for sample in seen.samples)
    assert seen.path is None or all(
        value < 2**63 for value in vars(seen.path).values() if isinstance(value, int)
    )
