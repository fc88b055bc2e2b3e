"""Fireflies: what is read of a packet, which are taken, and what is kept of a connection."""

import json
import socket
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from threading import Event, Timer

import pytest
from django.core.management import CommandError
from django.db import OperationalError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from sonar.management.commands import collect_fireflies
from sonar.models import Flow
from sonar.notation.windows import parse_time
from sonar.records.fireflies import collector, flows, packet
from sonar.records.fireflies.collector import UNREAD, Collector, counted
from sonar.records.fireflies.flows import Addresses, look_up
from tests.api import edges
from tests.sonar.fireflies import (
    FLOWD,
    HOSTILE,
    PLACES,
    XROOTD,
    begins,
    firefly,
    hostile_packets,
    replaced,
)
from tests.sonar.world import NOW, endpoint

ALLOWED = [ip_network("198.51.100.0/24"), ip_network("2001:db8::/32")]
SENDER = "198.51.100.7"
HOSTS = {"glasgow": "192.0.2.1", "lancs": "192.0.2.2"}


@pytest.fixture
def places(db: None) -> Addresses:
    """Two endpoints at two addresses, and a third at the second one's."""
    endpoint("GLASGOW"), endpoint("LANCS")
    endpoint("POOL", base_url="fake://lancs/pool")
    addresses = Addresses(lambda host: [HOSTS[host]])
    addresses.refresh()
    return addresses


@pytest.fixture
def taking(places: Addresses, at_four: None) -> Collector:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with listener:
        yield Collector(listener, ALLOWED, places)


def test_a_collector_beats_as_long_as_it_goes_round(places: Addresses, settings, tmp_path, at_four):
    settings.SONAR_HEARTBEAT_FILE = file = tmp_path / "beaten"
    stop = Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        Timer(1.5, stop.set).start()
        Collector(listener, ALLOWED, places).run(stop)
    assert file.read_text() == "30\n"


def test_what_xrootd_says_at_the_end_is_read():
    read = packet.parsed(firefly())
    assert (read.scitag, read.application) == (139, "xrdcp")
    assert (str(read.flow_id.src_ip), read.flow_id.dst_port) == ("192.0.2.1", 41178)
    assert (read.usage.sent, read.netlink) == (20020014, {"rtt": 2.663})
    assert read.flow_lifecycle.end_time == datetime(2026, 11, 20, 4, 0, 2, 642044, UTC)


def test_of_tcps_numbers_those_are_kept_that_say_why_it_is_slow():
    read = packet.parsed(firefly(netlink=FLOWD))
    assert read.netlink == {
        "pmtu": 9000,
        "retrans": 0,
        "rtt": 14,
        "snd_cwnd": 100,
        "snd_mss": 1448,
        "total_retrans": 7,
        "busy_time": 4_000_000,
        "rwnd_limited": 1_000_000,
        "sndbuf_limited": 0,
    }


@pytest.mark.parametrize(
    ("datagram", "why"),
    [
        (b"", "not a JSON object"),
        (b"<134>1 hello", "not a JSON object"),
        (b"{", "wrong JSON"),
        (b"{" + b" " * 8192, "longer than 8192 bytes"),
        (firefly(flow_id={"src-ip": "secret.example"}), "wrong flow-id.src-ip"),
        (firefly(flow_id={"src-port": 65536}), "wrong flow-id.src-port"),
        (firefly(flow_lifecycle={"state": "over"}), "wrong flow-lifecycle.state"),
        (firefly(flow_lifecycle={"start-time": "2026-11-20T04:00:00"}), "wrong flow-lifecycle"),
        (firefly(context={"activity-id": 64}), "wrong context.activity-id"),
        (firefly(context={"experiment-id": 1024}), "wrong context.experiment-id"),
        (firefly(context={"experiment-id": 0}), "wrong context.experiment-id"),
        (firefly(context={"activity-id": -1}), "wrong context.activity-id"),
        (firefly(flow_id={"protocol": "icmp"}), "wrong flow-id.protocol"),
    ],
)
def test_anything_else_is_refused_without_its_words(datagram: bytes, why: str):
    with pytest.raises(ValueError, match=why) as refused:
        packet.parsed(datagram)
    assert "secret" not in str(refused.value)


LEAN = {
    "tcpInfo": {
        "Retransmits": 0,
        "sndMss": 1448,
        "pMtu": 1500,
        "rtt": 12300,
        "rttVar": 1200,
        "sndSsThresh": 70,
        "sndCwnd": 10,
        "advMss": 1448,
        "minRtt": 11900,
        "deliveryRate": 125_000_000,
        "bytesSent": 20_020_014,
    },
    "cong": {"algorithm": "cubic"},
}
FULL = {
    "tcpInfo": LEAN["tcpInfo"]
    | {"retrans": 1, "totalRetrans": 7, "busyTime": 4_000_000, "rwndLimited": 1_000_000}
    | {"sndBufLimited": 0}
}
NAMED_BY_LINUX = {
    "state": "established",
    "opts": ["ts"],
    "pmtu": 1500,
    "retrans": 1,
    "total_retrans": 7,
    "rtt": 12.3,
    "rttvar": 1.2,
    "min_rtt": 11900,
    "snd_mss": 1448,
    "snd_cwnd": 10,
    "busy_time": 4_000_000,
    "rwnd_limited": 1_000_000,
    "sndbuf_limited": 0,
}
FLOWD_ENTRY = {"src": "192.0.2.1", "retrans": 0, "cong_algo": "bbr", "tcp_info": NAMED_BY_LINUX}
LEAN_READ = {
    "rtt": 12.3,
    "min_rtt": 11.9,
    "rttvar": 1.2,
    "snd_cwnd": 10,
    "snd_mss": 1448,
    "pmtu": 1500,
}
ALL_READ = LEAN_READ | {
    "retrans": 1,
    "total_retrans": 7,
    "busy_time": 4_000_000,
    "rwnd_limited": 1_000_000,
    "sndbuf_limited": 0,
}


@pytest.mark.parametrize(
    ("report", "read"),
    [
        ({"netlink": None}, {}),
        ({"netlink": {}}, {}),
        ({"netlink": LEAN}, LEAN_READ),
        ({"skOps": LEAN}, LEAN_READ),
        ({"netlink": FULL}, ALL_READ),
        ({"skOps": FULL, "netlink": None}, ALL_READ),
        ({"netlink": NAMED_BY_LINUX}, ALL_READ),
        ({"skOps": NAMED_BY_LINUX}, ALL_READ),
        ({"netlink": FLOWD_ENTRY}, ALL_READ),
        ({"netlink": ["established", FLOWD_ENTRY]}, ALL_READ),
        ({"netlink": {"rtt": 12.3}, "skOps": LEAN}, LEAN_READ),
        ({"netlink": {"tcpInfo": None, "cong": {"algorithm": "bbr"}}}, {}),
    ],
)
def test_the_numbers_of_tcp_are_read_in_each_form_and_in_its_units(
    report: dict[str, object], read: dict[str, float]
):
    firefly = packet.parsed(json.dumps({**XROOTD, "netlink": {}, **report}).encode())
    assert (firefly.netlink, firefly.unread) == (pytest.approx(read), ())


@pytest.mark.parametrize(
    ("part", "value", "unread", "kept"),
    [
        ("netlink", {"rtt": "much", "snd_cwnd": 10}, "netlink.rtt", {"snd_cwnd": 10}),
        ("netlink", {"rtt": -1}, "netlink.rtt", {}),
        ("netlink", {"tcpInfo": LEAN["tcpInfo"] | {"rtt": {}}}, "netlink.rtt", None),
        ("netlink", {"roundTrip": 5}, "netlink", {}),
        ("netlink", {"tcpInfo": {"roundTrip": 5}}, "netlink", {}),
        ("netlink", {"tcpInfo": 5}, "netlink", {}),
        ("netlink", "12.3 ms", "netlink", {}),
        ("skOps", [LEAN], "skOps", {"rtt": 2.663}),
        ("usage", {"sent": -1, "received": 7}, "usage.sent", {"rtt": 2.663}),
        ("usage", [1, 2], "usage", {"rtt": 2.663}),
    ],
)
def test_a_number_that_cannot_be_read_is_left_out_and_the_packet_counted(
    taking: Collector, part: str, value: object, unread: str, kept: dict[str, float] | None
):
    datagram = json.dumps(XROOTD | {part: value}).encode()
    assert packet.parsed(datagram).unread == (unread,)
    assert taking.take(datagram, SENDER) == ""
    taking.flush()
    said = f"0 received, 1 stored, 1 {UNREAD}, none dropped"
    assert counted(taking.counts) == said
    if kept is not None:
        assert Flow.objects.get().tcp == kept


def from_flowd_go(state: str, **parts: object) -> bytes:
    """Write a packet of flowd-go: a time that is not known is an empty text, or not there."""
    start = XROOTD["flow-lifecycle"]["start-time"]
    life: dict[str, str] = {"state": state, "start-time": start if state != "end" else ""}
    if state == "ongoing":
        life["current-time"] = "2026-11-20T04:00:01.5+00:00"
    if state == "end":
        life["end-time"] = XROOTD["flow-lifecycle"]["end-time"]
    identity = {name: XROOTD[name] for name in ("version", "flow-id", "context")}
    return json.dumps({**identity, "flow-lifecycle": life, **parts}).encode()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("is_late", [True, False])
def test_the_end_keeps_the_numbers_that_only_packets_before_it_have(
    taking: Collector, at_once: bool, is_late: bool
):
    """flowd-go sends them while a connection lasts; at its end, no number and no beginning."""
    packets = [
        from_flowd_go("start"),
        from_flowd_go("ongoing", netlink=LEAN),
        from_flowd_go("ongoing", skOps={"tcpInfo": {"totalRetrans": 3}}),
        from_flowd_go("end"),
    ]
    if is_late:
        packets.insert(2, packets.pop())
    for datagram in packets:
        assert taking.take(datagram, SENDER) == ""
        if not at_once:
            taking.flush()
    taking.flush()
    flow = Flow.objects.get()
    assert flow.tcp == pytest.approx(LEAN_READ | {"total_retrans": 3})
    assert flow.ended_at == datetime(2026, 11, 20, 4, 0, 2, 642044, UTC)
    assert counted(taking.counts) == "0 received, 4 stored, none dropped"


@pytest.mark.parametrize("unknown", ["", None])
def test_an_end_is_of_the_newest_connection_of_its_reporter_that_is_not_over(
    taking: Collector, unknown: str | None
):
    """flowd sends null for the beginning of a transfer that a server announced."""
    end = firefly(flow_lifecycle={"start-time": unknown}, usage={"sent": 7})
    taking.take(begins(), "2001:db8::1")
    assert taking.take(end, SENDER) == ""
    taking.flush()
    assert counted(taking.counts) == (
        "0 received, 1 stored, dropped: 1 from connections with an unknown start"
    )
    taking.take(begins(), SENDER)
    taking.take(end, SENDER)
    taking.flush()
    ended = Flow.objects.get(ended_at__isnull=False)
    assert (ended.reporter, ended.sent_bytes) == (SENDER, 7)
    assert ended.started_at == datetime(2026, 11, 20, 4, 0, 0, 513166, UTC)


def test_one_that_begins_without_a_time_begins_now(taking: Collector):
    life = {"state": "start", "start-time": "", "end-time": "2024-01-31T08:58:48+00:00"}
    taking.take(firefly(flow_lifecycle=life | {"current-time": None}), SENDER)
    taking.flush()
    flow = Flow.objects.get()
    assert (flow.started_at, flow.ended_at) == (NOW, None)


@pytest.mark.parametrize("activity", [0, None])
def test_no_activity_and_an_odd_application_lose_no_packet(activity: int | None):
    read = packet.parsed(firefly(context={"activity-id": activity, "application": 7}))
    assert (read.scitag, read.application) == (128, "")


def test_the_largest_report_of_flowd_go_is_read():
    """All numbers of TCP, of the socket and of its memory, between addresses of IPv6: 2.6 kB."""
    others = {f"{'aLongName'}{number}": 4_294_967_295 for number in range(55)}
    report = {"tcpInfo": FULL["tcpInfo"] | others, "skBuff": others}
    assert packet.parsed(firefly(netlink=report)).netlink["rtt"] == 12.3


def test_a_connection_that_is_over_before_it_began_is_refused():
    before = {"end-time": "2026-11-20T04:00:00.513165Z"}
    with pytest.raises(ValueError, match=r"wrong flow-lifecycle\.end-time"):
        packet.parsed(firefly(flow_lifecycle=before))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_firefly_or_refused(datagram: bytes):
    with suppress(ValueError):
        assert packet.parsed(b"{" + datagram).scitag


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(XROOTD)), JSON)
def test_any_value_of_a_part_is_read_or_refused(part: str, value: object):
    with suppress(ValueError):
        assert packet.parsed(json.dumps(XROOTD | {part: value}).encode()).scitag == 139


def test_an_application_is_written_in_plain_letters_only():
    said = packet.parsed(firefly(context={"application": "x\x1b[31m\u202e" + "y" * 200}))
    assert said.application == "x?[31m?" + "y" * 93


def test_the_begin_and_the_end_of_a_connection_are_one_row(taking: Collector):
    assert taking.take(begins(), SENDER) == ""
    taking.flush()
    begun = Flow.objects.get()
    assert (begun.ended_at, begun.sent_bytes) == (None, 56)
    assert taking.take(firefly(), SENDER) == ""
    taking.flush()
    ended = Flow.objects.get()
    assert ended.sent_bytes == 20020014
    assert ended.ended_at == datetime(2026, 11, 20, 4, 0, 2, 642044, UTC)
    assert (len(ended.source_endpoints), len(ended.destination_endpoints)) == (1, 2)
    assert counted(taking.counts) == "0 received, 2 stored, none dropped"


@pytest.mark.parametrize("at_once", [True, False])
def test_what_says_that_it_begins_changes_nothing_of_what_is_over(taking: Collector, at_once: bool):
    taking.take(firefly(), SENDER)
    if not at_once:
        taking.flush()
    taking.take(begins(), SENDER)
    taking.flush()
    assert Flow.objects.get().sent_bytes == 20020014


def test_two_servers_report_the_same_connection_each_for_itself(taking: Collector):
    for sender in (SENDER, "198.51.100.8", "2001:db8::1"):
        taking.take(firefly(), sender)
    taking.flush()
    assert Flow.objects.count() == 3


@pytest.mark.parametrize(
    ("datagram", "sender", "why"),
    [
        (firefly(), "203.0.113.9", "sender not allowed"),
        (b"hello", SENDER, "not a firefly"),
        (firefly(flow_id={"dst-ip": "192.0.2.9"}), SENDER, "not between registered endpoints"),
    ],
)
def test_other_packets_are_dropped_and_counted(
    taking: Collector, datagram: bytes, sender: str, why: str
):
    assert taking.take(datagram, sender) == why
    taking.flush()
    assert not Flow.objects.exists()


TIMES = ("start-time", "current-time", "end-time")


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize(
    "moment",
    [
        *edges.BEYOND,
        "1970-01-01T00:00:00Z",
        "2025-10-16T03:59:59Z",
        "2026-11-20T04:05:00Z",
        "2999-12-31T23:59:59Z",
    ],
)
def test_a_time_that_cannot_be_is_dropped_and_counted(
    taking: Collector, name: str, moment: str, settings: Settings
):
    settings.SONAR_KEEP_DAYS = 400
    life = dict.fromkeys(TIMES[TIMES.index(name) :], moment)
    assert taking.take(firefly(flow_lifecycle=life), SENDER) in (
        "too old or in the future",
        "not a firefly",  # it ends before it begins
    )
    taking.flush()
    assert not Flow.objects.exists()


@pytest.mark.parametrize("moment", ["2025-10-16T04:00:00Z", "2026-11-20T04:04:59Z"])
def test_what_results_may_have_a_connection_may_have_too(
    taking: Collector, moment: str, settings: Settings
):
    settings.SONAR_KEEP_DAYS = 400
    assert taking.take(firefly(flow_lifecycle=dict.fromkeys(TIMES, moment)), SENDER) == ""
    taking.flush()
    assert parse_time(moment) == Flow.objects.get().ended_at


def test_no_value_at_an_end_of_its_range_is_stored_that_cannot_be_read(
    taking: Collector, monkeypatch: pytest.MonkeyPatch
):
    """Each value of a packet in turn is each of them, and each is dropped or stored."""
    monkeypatch.setattr(collector, "MOST_A_SECOND", 10**6)
    answers = Counter(
        taking.take(datagram, f"2001:db8::{number:x}")
        for number, datagram in enumerate(hostile_packets())
    )
    taking.flush()
    taking.counts.pop(UNREAD)
    # An end whose beginning is null or empty.
    assert taking.counts == {"stored": answers[""] - 2, "from connections with an unknown start": 2}
    assert len(list(Flow.objects.values())) == taking.counts["stored"] > 400
    assert set(answers) == {
        *("", "not a firefly", "too old or in the future", "not between registered endpoints")
    }


@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON | st.sampled_from(HOSTILE)), max_size=3))
def test_no_packet_with_some_values_of_another_kind_ends_a_collector(
    taking: Collector, changes: list[tuple[tuple[str, str], object]]
):
    datagram = replaced(changes)
    taking.counts.clear()
    kept = taking.take(datagram, SENDER) == ""
    taking.flush()
    unread = taking.counts.pop(UNREAD, 0)
    stored = taking.counts["stored"] + taking.counts["from connections with an unknown start"]
    assert (stored, stored >= unread) == (kept, True)
    assert list(Flow.objects.values()) or not taking.counts["stored"]


def test_a_row_that_the_database_refuses_goes_and_the_others_stay(
    taking: Collector, monkeypatch: pytest.MonkeyPatch
):
    """None is known: so it is one of the collector's own making."""
    taking.take(firefly(), SENDER)
    taking.take(firefly(flow_id={"src-port": 1095}), SENDER)
    taking.take(firefly(flow_id={"src-port": 1096}), SENDER)
    taking._pending[1].started_at = datetime(3000, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(collector, "store", transaction.atomic(collector.store))
    taking.flush()
    assert set(Flow.objects.values_list("source_port", flat=True)) == {1094, 1096}
    assert counted(taking.counts) == "0 received, 2 stored, dropped: 1 refused by the database"


@pytest.mark.usefixtures("real_commits")
def test_a_collector_waits_while_its_table_is_not_there(taking: Collector):
    taking.take(firefly(), SENDER)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE sonar_flow RENAME TO away")
    try:
        taking.flush()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO sonar_flow")
    assert taking.counts == {}
    taking.flush()
    assert Flow.objects.count() == taking.counts["stored"] == 1


@pytest.mark.parametrize(
    ("away", "patience", "said"),
    [(1, 60.0, "1 stored, none"), (99, 0.1, "0 stored, dropped: 1 database unavailable")],
)
def test_a_collector_that_ends_waits_a_little_for_the_database(
    taking: Collector, monkeypatch: pytest.MonkeyPatch, away: int, patience: float, said: str
):
    store, failures = collector.store, iter([OperationalError("restarts")] * away)

    def once_it_is_back(rows: list[Flow]) -> int:
        if failure := next(failures, None):
            raise failure
        return store(rows)

    monkeypatch.setattr(collector, "store", once_it_is_back)
    monkeypatch.setattr(collector, "BATCH_SECONDS", 0.01)
    monkeypatch.setattr(collector, "END_SECONDS", patience)
    taking.take(firefly(), SENDER)
    stop = Event()
    stop.set()
    taking.run(stop)
    assert f"0 received, {said}" in counted(taking.counts)


def test_an_address_of_ipv4_in_ipv6_is_the_same_one(taking: Collector):
    mapped = firefly(flow_id={"src-ip": "::ffff:192.0.2.1", "dst-ip": "::ffff:192.0.2.2"})
    assert taking.take(mapped, SENDER) == ""
    taking.flush()
    assert Flow.objects.get().source_address == "192.0.2.1"


def test_no_more_are_taken_in_a_second_than_a_database_can_bear(
    taking: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(collector, "MOST_A_SECOND", 5)
    monkeypatch.setattr(collector.time, "monotonic", lambda: 7.5)
    answers = [taking.take(firefly(), SENDER) for _ in range(7)]
    assert answers == [""] * 5 + ["more than 5 a second"] * 2
    monkeypatch.setattr(collector.time, "monotonic", lambda: 8.0)
    assert taking.take(firefly(), SENDER) == ""


def test_old_ones_go_with_the_results_of_their_time(taking: Collector):
    taking.take(firefly(), SENDER)
    taking.flush()
    flows.drop_expired(NOW + timedelta(days=10), keep_days=11)
    assert Flow.objects.exists()
    flows.drop_expired(NOW + timedelta(days=12), keep_days=11)
    assert not Flow.objects.exists()


def test_addresses_are_looked_up_again_when_the_registry_changes(places: Addresses):
    places.refresh_if_due()
    assert len(places.endpoints_at("192.0.2.1")) == 1
    endpoint("MORE", base_url="fake://glasgow/more")
    places.refresh_if_due()
    assert len(places.endpoints_at("192.0.2.1")) == 2


def test_a_host_is_looked_up_and_one_that_nobody_knows_has_no_address():
    assert "127.0.0.1" in look_up("localhost")
    assert look_up("[::1]") == {"::1"}
    assert look_up("nobody.invalid") == set()
    assert look_up(f"{'x' * 64}.example") == set()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("10514", "'10514' is not HOST:PORT"),
        ("127.0.0.1:x", "is not HOST:PORT"),
        ("127.0.0.1:70000", "is not HOST:PORT"),
        ("192.0.2.1:10514", "Cannot listen on 192.0.2.1:10514: "),
    ],
)
def test_a_place_where_nobody_can_listen_is_told(place: str, words: str):
    with pytest.raises(CommandError, match=words):
        collect_fireflies.listening(place)


def test_what_is_no_network_is_told():
    with pytest.raises(CommandError, match="has host bits set"):
        collect_fireflies.networks(["10.0.0.1/8"])
