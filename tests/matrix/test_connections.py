"""Connections that servers reported of a test: which are its own, and what stands on its page."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from matrix.answers.connections import ReportedConnection, reported
from matrix.store.network import round_trip_ms
from matrix.store.registry import read_places, read_versions
from sonar.models import Endpoint, Flow, Transfer
from sonar.notation.windows import Window
from sonar.people.roles import Role
from tests.accounts import account
from tests.matrix import responses
from tests.matrix.sent import probe, send
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
SECOND = timedelta(seconds=1)
BEGAN = NOW - HOUR
HEADING = "Reported by the servers"


def flow(source: Endpoint, destination: Endpoint, **fields: Any) -> Flow:
    """Record a connection that was open for 10 s, from one second into the test."""
    plain: dict[str, Any] = {
        "reporter": "192.0.2.1",
        "scitag": 139,
        "source_address": "192.0.2.1",
        "source_port": 1094,
        "destination_address": "192.0.2.2",
        "destination_port": 40000 + Flow.objects.count(),
        "source_endpoints": [source.id],
        "destination_endpoints": [destination.id],
        "started_at": BEGAN + SECOND,
        "seen_at": BEGAN + 11 * SECOND,
        "ended_at": BEGAN + 11 * SECOND,
        "application": "xrdcp",
        "sent_bytes": 2_000_000_000,
        "received_bytes": 291,
        "tcp": {"rtt": 14.25},
    }
    return Flow.objects.create(**plain | fields)


def labelled(world: World, **fields: Any) -> UUID:
    """Record the test that most are about, from RAL to Glasgow."""
    return send(world.ral, world.glasgow, BEGAN, scitag=139, **fields)


def connections(test: UUID) -> list[ReportedConnection]:
    return reported(Transfer.objects.get(id=test))


def test_what_was_reported_between_its_ends_at_its_time_is_its_own(small_world):
    source, destination, other, _ = small_world.endpoints
    own = labelled(small_world)
    flow(source, destination)
    flow(source, other)
    flow(source, destination, scitag=140)
    flow(source, destination, started_at=BEGAN - 6 * SECOND)
    flow(source, destination, started_at=BEGAN + 16 * SECOND)
    (connection,) = connections(own)
    assert (connection.bytes, connection.rtt_ms, connection.seconds) == (2_000_000_000, 14.25, 10.0)
    assert (connection.retransmits, connection.window_bytes) == (None, None)
    assert connection.other_tests == 0


def test_a_connection_from_the_other_side_counts_what_came_in(small_world):
    source, destination = small_world.ral, small_world.glasgow
    own = labelled(small_world)
    flow(destination, source, received_bytes=7_000, source_address="192.0.2.2")
    (connection,) = connections(own)
    assert connection.bytes == 7_000
    assert connection.destination_address == "192.0.2.2"


def test_tcps_numbers_say_what_held_it_up(small_world):
    source, destination = small_world.ral, small_world.glasgow
    own = labelled(small_world)
    tcp = {"rtt": 14, "snd_cwnd": 100, "snd_mss": 1448, "total_retrans": 7, "busy_time": 4e6}
    flow(source, destination, ended_at=None, tcp=tcp | {"rwnd_limited": 1e6, "sndbuf_limited": 0})
    (connection,) = connections(own)
    assert (connection.retransmits, connection.window_bytes) == (7, 144_800)
    assert (connection.held_by_receiver, connection.held_by_sender) == (0.25, 0.0)
    assert connection.seconds is None


def test_what_may_be_of_several_tests_is_said_to_be_of_any(small_world):
    source, destination, other, _ = small_world.endpoints
    own = labelled(small_world)
    send(source, destination, BEGAN + 5 * SECOND, scitag=139)
    send(other, destination, BEGAN, scitag=139)
    send(source, destination, BEGAN, scitag=140)
    send(source, destination, BEGAN - 20 * SECOND, scitag=139)
    running = {"mover": "fake", "scitag": 139, "started_at": BEGAN, "deadline": NOW}
    probe(destination, other, **running)
    flow(source, destination)
    flow(source, destination, destination_endpoints=[destination.id, other.id])
    first, shared = connections(own)
    assert (first.other_tests, shared.other_tests) == (1, 1)
    flow(other, destination, source_endpoints=[source.id, other.id])
    assert [each.other_tests for each in connections(own)] == [1, 1, 3]


def page(client: Client, transfer: UUID) -> str:
    return responses.page(client, f"/transfers/{transfer}/").words


def test_its_page_has_them_with_addresses_for_those_who_may_see_machines(client, small_world):
    own = labelled(small_world)
    flow(small_world.ral, small_world.glasgow)
    plain = page(client, own)
    assert HEADING in plain
    assert "flow label 2/11 (experiment 2, activity 11)" in plain
    assert "14.2" in plain
    assert "192.0.2" not in plain
    client.force_login(account(Role.OPERATOR))
    assert "192.0.2.1 → 192.0.2.2 192.0.2.1, xrdcp" in page(client, own)


def test_a_page_without_says_so_and_one_without_a_label_has_no_such_part(client, small_world):
    own = labelled(small_world)
    assert "No server reported a connection with this flow label" in page(client, own)
    plain = send(small_world.ral, small_world.glasgow, BEGAN)
    assert HEADING not in page(client, plain)


def test_scripts_get_the_same_and_addresses_only_with_the_right(client, small_world):
    own = labelled(small_world)
    flow(small_world.ral, small_world.glasgow)
    (plain,) = client.get(f"/api/v1/transfers/{own}/").json()["connections"]
    assert (plain["rtt_ms"], plain["bytes"], plain["other_tests"]) == (14.25, 2_000_000_000, 0)
    assert (plain["source_address"], plain["reporter"]) == (None, None)
    client.force_login(account(Role.OPERATOR))
    (whole,) = client.get(f"/api/v1/transfers/{own}/").json()["connections"]
    assert (whole["source_address"], whole["reporter"]) == ("192.0.2.1", "192.0.2.1")


def test_a_queue_that_nobody_can_have_waited_in_is_no_error(client, small_world):
    """As an older Sonar may have kept one: its end lies beyond the year 9999."""
    own = labelled(small_world, queue_seconds=1e12)
    flow(small_world.ral, small_world.glasgow)
    assert HEADING in page(client, own)
    assert client.get(f"/api/v1/transfers/{own}/").status_code == 200


UPLOAD_HEADING = "Upload of the source file"
# What the API says as it was told, and the rest.
ALIKE = {
    "seconds": 0.5,
    "rtt_ms": 9.5,
    "rtt_min_ms": 9.125,
    "rtt_variation_ms": 0.2,
    "retransmits": 12,
    "window_bytes": 144_800,
    "held_by_receiver": 0.25,
    "held_by_sender": 0.0,
}
UPLOAD = {
    **ALIKE,
    "sent_bytes": 4_000_000,
    "resent_bytes": 40_000,
    "acknowledged_bytes": 3_960_000,
    "delivery_rate": 8_100_000,
}


def test_an_upload_of_the_source_file_is_shown_as_what_it_is(client, small_world):
    own = send(small_world.ral, small_world.glasgow, BEGAN, upload=UPLOAD)
    text = page(client, own)
    assert HEADING not in text
    assert UPLOAD_HEADING in text
    assert "missing at RAL_DATADISK, so a Sonar worker uploaded it first" in text
    assert "not the link itself" in text
    for figure in (
        "upload time 0.500 s",
        "uploaded 3.96 MB, 7.92 MB/s",
        "round trip 9.50 ms, at least 9.12 ms",
        "retransmissions 12 (1 % of the bytes)",
        "TCP window 145 kB",
        "delivery rate 8.10 MB/s",
        "limited by receiver 25 %",
        "limited by sender 0 %",
    ):
        assert figure in text
    assert client.get(f"/api/v1/transfers/{own}/").json()["upload"] == ALIKE | {
        "bytes": 3_960_000,
        "loss": 0.01,
        "delivery_rate_mb_s": 8.1,
    }


def test_an_upload_has_dashes_for_what_the_kernel_did_not_tell(client, small_world):
    little = {"seconds": 0.5, "rtt_ms": 9.5}
    text = page(client, send(small_world.ral, small_world.glasgow, BEGAN, upload=little))
    assert "uploaded – round trip 9.50 ms retransmissions – TCP window –" in text
    nothing = send(small_world.ral, small_world.glasgow, BEGAN, upload={"seconds": 0.02})
    text = page(client, nothing)
    assert "upload time 20.0 ms" in text
    assert "connection –" in text
    assert "None" not in text


def test_a_test_that_uploaded_nothing_has_no_such_part(client, small_world):
    plain = labelled(small_world)
    assert UPLOAD_HEADING not in page(client, plain)
    assert client.get(f"/api/v1/transfers/{plain}/").json()["upload"] is None


def test_the_round_trip_of_a_link_is_that_of_connections_that_moved_a_file(
    small_world,
):
    source, destination, other, _ = small_world.endpoints
    places = {place.id: place for place in read_places(read_versions())}
    ends = [places[source.id], places[destination.id]]
    day = Window(NOW - 24 * HOUR, NOW)
    assert round_trip_ms(ends, day) is None
    flow(source, destination, tcp={"rtt": 20.0, "min_rtt": 8.0})
    flow(destination, source, sent_bytes=None, received_bytes=5_000_000, tcp={"rtt": 10.0})
    flow(source, destination, tcp={"rtt": 12.0}, scitag=140)
    # These say nothing.
    flow(source, destination, sent_bytes=900, tcp={"rtt": 500.0})
    flow(source, other, tcp={"rtt": 500.0})
    flow(source, destination, tcp={"rtt": 500.0}, started_at=NOW - 30 * HOUR)
    flow(source, destination, tcp={"rtt": 0.0})
    flow(source, destination, tcp={})
    assert round_trip_ms(ends, day) == 10.0
