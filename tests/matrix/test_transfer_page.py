"""The page of one transfer, and of a test that has not ended yet."""

from datetime import timedelta
from uuid import uuid4

import plotly.graph_objects as go
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from matrix.statistics.transfers.rate_profile import stretches
from sonar.models import Mesh, Probe
from sonar.people.roles import Role
from sonar.results import store
from tests.accounts import account
from tests.conditions import TYPES, stored_condition
from tests.html import Page
from tests.matrix import responses, world
from tests.matrix.sent import MARKUP, PLAIN, many, probe, send
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
DAY = timedelta(days=1)


def look(client: Client, one: object) -> Page:
    return responses.page(client, f"/transfers/{one}/")


def facts(page: Page) -> dict[str, str]:
    return page.part("dl.facts").facts()


def test_everything_that_is_kept_of_it_stands_there_with_its_unit(client, small_world):
    mesh = Mesh.objects.create(name="production")
    made = world.profile(
        **PLAIN | {"mesh": mesh, "mode": "pull", "tcp_buffer_bytes": 4_000_000, "ip_version": 6},
        activity="atlas",
    )
    one = send(
        small_world.ral,
        small_world.glasgow,
        NOW - HOUR,
        profile_id=made.id,
        seconds=8.0,
        first_byte_seconds=2.0,
        remote_connections=["tcp:[::1]:1094", "tcp:[::1]:1095"],
        worker="worker-1",
    )
    client.force_login(account(Role.OPERATOR))
    page = look(client, one)
    assert "Transfer from RAL_DATADISK to Glasgow_DATADISK" in page.words
    assert facts(page) == {
        "id": str(one),
        "link": "from RAL_DATADISK to Glasgow_DATADISK",
        "source": "RAL_DATADISK at site RAL",
        "destination": "Glasgow_DATADISK at site Glasgow",
        "state": "Done",
        "size class": "large",
        "size": "2 GB (2 000 000 000 bytes)",
        "started": "20 Nov 11:00:30 UTC",
        "finished": "20 Nov 11:00:38 UTC",
        "preparation": "–",
        "duration": "8.00 s",
        "moved": "–",
        "rate": "250 MB/s",
        "time to first byte": "2.00 s",
        "overhead": "25 % of the duration passed before the first byte",
        "transfer tool": "http-tpc",
        "mode": "pull: the destination fetches",
        "streams": "1 requested, actual number unknown",
        "TCP buffer": "4 MB requested, actual size unknown",
        "IP version": "6",
        "remote connections": "2: tcp:[::1]:1094, tcp:[::1]:1095",
        "checksum": "–",
        "concurrent tests": "not recorded",
        "origin": "test",
        "mesh": "production",
        "VO or activity": "atlas",
        "worker": "worker-1",
    }
    assert "/links/RAL_DATADISK/Glasgow_DATADISK/" in page.links()
    assert "/sites/RAL/" in page.links()
    assert f"/api/v1/transfers/{one}/" in page.links()


@pytest.mark.parametrize("role", [None, Role.READER, Role.SITE_ADMIN])
def test_addresses_of_storage_servers_and_workers_are_for_operators_alone(
    client, small_world, role
):
    addresses = ["tcp:[::1]:1094", "tcp:[::1]:1095"]
    ends = small_world.ral, small_world.glasgow
    one = send(*ends, NOW - HOUR, remote_connections=addresses, worker="worker-1")
    queued = probe(*ends, size="large", started_at=NOW, worker="worker-1")
    if role:
        sites = [small_world.ral.site] if role is Role.SITE_ADMIN else []
        client.force_login(account(role, *sites))
    assert facts(look(client, one))["remote connections"] == "2"
    for known in (one, queued.id):
        assert "worker" not in facts(look(client, known))
        assert "worker-1" not in look(client, known).source


def test_what_is_not_known_is_a_dash_with_its_reason(client, small_world):
    page = look(client, transfer(small_world.ral, small_world.glasgow, 10.0).id)
    known = facts(page)
    for name in ("time to first byte", "overhead", "mode", "TCP buffer", "IP version", "mesh"):
        assert known[name] == "–", name
    assert set(page.texts('span[title="the transfer tool does not report it"]')) == {"–"}
    assert "None" not in page.source
    assert "nan" not in page.words


@pytest.mark.parametrize(
    ("seconds", "low"),
    [(0.5, "20 to 100"), (2.7, "4 to 33"), (25.0, "0 to 4"), (31.0, ""), (3000.0, "")],
)
def test_a_rate_of_a_short_copy_that_a_service_timed_has_a_remark(
    client, small_world, seconds: float, low: str
):
    """FTS's clock ran for 0.1 to 0.9 s longer than the file grew on an idle server's disk."""
    made = world.profile(**PLAIN | {"mover": "fts3", "clock": "service"})
    ends = small_world.ral, small_world.glasgow
    done = look(client, send(*ends, NOW - HOUR, profile_id=made.id, seconds=seconds))
    timed = ", as reported by the service, without the time in its queue"
    if low:
        timed += ". The duration includes the set-up of the copy: 0.1 to 0.9 s, or more on busy"
        timed += f" servers. This makes the rate {low} % too low"
    assert facts(done)["duration"].endswith(timed)
    failed = send(*ends, NOW - 2 * HOUR, profile_id=made.id, seconds=seconds, error="no")
    assert "set-up" not in look(client, failed)


def test_it_is_compared_with_its_link_in_the_days_around_it(client, small_world):
    ral, glasgow = small_world.ral, small_world.glasgow
    for rate, ago in ((30.0, DAY), (40.0, 3 * DAY), (1000.0, 5 * DAY)):
        transfer(ral, glasgow, rate, ago=ago)
    transfer(glasgow, ral, 1000.0)
    transfer(ral, glasgow, 1000.0, size="small")
    transfer(ral, glasgow, None)
    one = transfer(ral, glasgow, 10.0)
    assert (
        "10.0 MB/s . The median of this link is 30.0 MB/s (3 large results in the 7 days around "
        "this test). This rate is 0.33× the median." in look(client, one.id).words
    )
    alone = transfer(glasgow, small_world.desy, 5.0)
    assert "No other large test of this link succeeded" in look(client, alone.id).words


def test_a_failed_one_begins_with_its_whole_error_as_text(client, small_world):
    ends = small_world.ral, small_world.glasgow
    error = f"first line\n{MARKUP}\n" + "x" * 3000
    client.force_login(account(Role.OPERATOR))
    page = look(client, send(*ends, NOW, error=error, error_is_permanent=True, worker=MARKUP))
    assert "Failed at the destination" in page.words
    assert "<script>alert" not in page.source
    assert page.part("pre.error").text == error
    assert "This error looks permanent: tests will fail until its cause is fixed." in page
    assert facts(page)["rate"] == "–"
    assert set(page.texts('span[title="failed test: no rate"]')) == {"–"}
    page = look(client, send(*ends, NOW, error="timeout"))
    assert "This error looks temporary: the next test may succeed." in page


def test_a_lost_one_says_that_this_is_not_the_links_fault(client, small_world):
    lost = {"state": "lost", "error": "its worker died", "error_where": "control"}
    page = look(client, send(small_world.ral, small_world.glasgow, NOW, **lost))
    assert "Lost in Sonar itself" in page.words
    assert "This says nothing about the link" in page
    assert facts(page)["state"] == "lost: the worker stopped"


def test_its_rate_from_within_is_a_picture_and_a_table(client, small_world):
    one = send(
        small_world.ral, small_world.glasgow, NOW, samples=[[2.0, 2e8], [4.0, 1e9], [10.0, 2e9]]
    )
    page = look(client, one)
    drawn = page.data("inside-data")
    go.Figure(drawn)
    rate, moved = drawn["data"]
    assert rate["x"] == [0.0, 2.0, 2.0, 4.0, 4.0, 10.0]
    assert rate["y"] == pytest.approx([100, 100, 400, 400, 166.6667, 166.6667])
    assert moved["y"] == [0, 200, 1000, 2000]
    samples = page.section("inside-heading")
    assert "3 progress samples as a table" in samples
    assert samples.table() == [
        ["2.00", "200 MB", "100"],
        ["4.00", "1 GB", "400"],
        ["10.0", "2 GB", "167"],
    ]


@pytest.mark.parametrize(
    ("asked", "used", "said"),
    [
        (1, 1, "1"),
        (4, 4, "4"),
        (4, 1, "4 requested, 1 used"),
        (4, None, "4 requested, actual number unknown"),
    ],
)
def test_streams_that_were_asked_for_and_those_that_were_used_are_told_apart(
    client, small_world, asked, used, said
):
    made = world.profile(**PLAIN | {"streams": asked}, streams_used=used)
    one = send(small_world.ral, small_world.glasgow, NOW, profile_id=made.id)
    assert facts(look(client, one))["streams"] == said


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((1.4, 3, 0.0, 0), "1.4 on average at the source (maximum 3), none at the destination"),
        (
            (0.02, 1, 1.0, 2),
            "0.02 on average at the source (maximum 1), "
            "1 on average at the destination (maximum 2)",
        ),
        (
            (None, None, 2.0, 2),
            "not recorded at the source, 2 on average at the destination (maximum 2)",
        ),
        ((0.0, 0, 0.0, 0), "none at the source or the destination"),
        ((None, None, None, None), "not recorded"),
    ],
)
def test_it_shows_concurrent_tests(client, small_world, counts, said):
    names = [
        f"concurrent_at_{end}_{number}"
        for end in ("source", "destination")
        for number in ("mean", "max")
    ]
    kept = dict(zip(names, counts, strict=True))
    one = send(small_world.ral, small_world.glasgow, NOW, **kept)
    assert facts(look(client, one))["concurrent tests"] == said


def test_a_checksum_is_verified_or_not_and_why(client, small_world):
    ends = small_world.ral, small_world.glasgow
    checksums = [
        facts(look(client, send(*ends, NOW, **kept)))["checksum"]
        for kept in (
            {"verified": True},
            {"verified": False, "verified_note": "the server has <b>no</b> adler32"},
            {"verified": None},
        )
    ]
    assert checksums == ["Checksum verified", "Not verified: the server has <b>no</b> adler32", "–"]


def test_a_failed_one_shows_what_it_moved_in_which_time_and_its_rate_from_within(
    client, small_world
):
    one = send(
        small_world.ral,
        small_world.glasgow,
        NOW - HOUR,
        error="503 Service Unavailable",
        seconds=12.0,
        prepare_seconds=30.0,
        moved_bytes=5 * 10**8,
        samples=[[5.0, 2e8], [10.0, 5e8]],
    )
    found = look(client, one)
    known = facts(found)
    assert known["preparation"] == "30.0 s before the transfer itself started"
    assert known["duration"] == "12.0 s"
    assert known["finished"] == "20 Nov 11:01:12 UTC"
    assert known["moved"] == "500 MB (25 % of the file)"
    assert found.data("inside-data")
    assert "2 progress samples as a table" in found


FAILED = {"error": "503 Service Unavailable"}
NEW = {"prepare_seconds": 0.5}
LOST = {"state": "lost", "error": "its worker died", "error_where": "control"}
SHORT = "The transfer finished before the first progress marker"


def test_conditions_of_its_link_when_it_ran_are_said_and_lead_to_their_page(client, small_world):
    ends = {"source": small_world.ral, "destination": small_world.glasgow}
    one = send(*ends.values(), NOW - 3 * HOUR)
    stored_condition(**ends, since=5 * HOUR, ended=HOUR)
    stored_condition(TYPES.SLOW, destination=small_world.glasgow, since=4 * HOUR, confirmed=False)
    # Over before, begun since, of the other direction, and of other files.
    stored_condition(TYPES.SLOW, **ends, since=9 * HOUR, ended=4 * HOUR)
    stored_condition(TYPES.FAST, **ends, since=HOUR)
    stored_condition(source=small_world.glasgow)
    stored_condition(source=small_world.ral, sizes=["small"])
    page = responses.page(client, f"/transfers/{one}/")
    said = [part.words for part in page.parts("p.notice") if "During this test" in part]
    assert said == [
        "During this test: Glasgow_DATADISK has been slow as destination since 20 Nov 08:00 UTC, "
        "at 0.40× (0.35–0.46) of the baseline, with large files, on 3 of 3 links, 30 tests, "
        "unconfirmed.",
        "During this test: RAL_DATADISK to Glasgow_DATADISK was failing from 20 Nov 07:00 until "
        "20 Nov 11:00 UTC, with large files, 10 of 10 tests failed.",
    ]
    (link,) = [link for link in page.links("p.notice a") if link.startswith("/links/")]
    assert client.get(link).status_code == 200


@pytest.mark.parametrize(
    ("kept", "made", "why"),
    [
        (LOST, {}, "The worker died before it stored any progress."),
        ({}, {"origin": "external"}, "Imported results have no"),
        (FAILED, {}, "Progress of failed tests was not recorded when this test ran."),
        (FAILED | {"seconds": 0.0}, {}, "The test failed before the transfer started."),
        (FAILED | NEW | {"seconds": 2.0}, {}, SHORT),
        ({"seconds": 2.0}, {}, SHORT),
        ({"seconds": 2.0, "samples": [[0.1, 0]]}, {}, SHORT),
        (FAILED | NEW | {"seconds": 2.0}, {"streams": 4}, "The test requested several streams"),
        ({"seconds": 60.0}, {"streams": 4}, "The test requested several streams"),
        (
            FAILED | NEW | {"seconds": 60.0, "samples": [[5.0, 0], [10.0, 0]]},
            {},
            "No byte had arrived by the last progress sample.",
        ),
        (
            {"samples": [[5.0, 1e9]]},
            {},
            "Only one progress sample was recorded (1 GB after 5.00 s)",
        ),
        ({"seconds": 60.0}, {}, "Neither the transfer tool nor the servers reported progress."),
    ],
)
def test_where_there_is_no_picture_the_reason_is_the_true_one(client, small_world, kept, made, why):
    profile = world.profile(**PLAIN | made)
    ends = small_world.ral, small_world.glasgow
    inside = look(client, send(*ends, NOW, profile_id=profile.id, **kept)).section("inside-heading")
    assert why in inside
    assert ("as a table" in inside) == bool(kept.get("samples"))


@pytest.mark.parametrize(
    ("samples", "rates"),
    [
        ([], []),
        ([[0, 0]], []),
        ([[0, 0], [1.0, 5e6], [1.0, 9e6], [0.5, 1e6], [2.0, 15e6]], [5.0, 10.0]),
        ([[1.0, 5e6], [2.0, 5e6]], [5.0, 0.0]),
    ],
)
def test_samples_without_a_time_between_them_say_nothing(samples, rates):
    assert [one.rate for one in stretches(samples)] == rates


def test_a_queued_test_says_that_it_waits_and_refreshes_itself(client, small_world):
    page = look(client, probe(small_world.ral, small_world.glasgow, size="large").id)
    assert "This test has not finished. This test is queued for a worker" in page.words
    assert facts(page)["started"] == "–"
    assert page.parts('[hx-trigger="every 5s, refresh"]')


def test_a_running_test_says_how_far_it_is(client, small_world):
    ends = small_world.ral, small_world.glasgow
    client.force_login(account(Role.OPERATOR))
    one = probe(*ends, size="large", started_at=NOW, progress_bytes=5 * 10**8, worker=f"w {MARKUP}")
    page = look(client, one.id)
    assert "This test is running: 500 MB of 2 GB (25 %)." in page.words
    assert page.part("progress")["value"] == "25"
    assert "<script>alert" not in page.source


def test_when_it_ends_the_result_stands_there_and_it_no_longer_asks_every_few_seconds(
    client, small_world
):
    one = probe(small_world.ral, small_world.glasgow, size="large").id
    look(client, one)
    Probe.objects.all().delete()
    send(small_world.ral, small_world.glasgow, NOW, id=one)
    page = look(client, one)
    assert facts(page)["rate"] == "200 MB/s"
    assert "every 5s" not in page.source


def test_an_unknown_id_is_a_404_that_says_how_long_results_are_kept(client, db, settings):
    settings.SONAR_KEEP_DAYS = 123
    one = uuid4()
    response = client.get(f"/transfers/{one}/")
    assert response.status_code == 404
    assert (
        f"No transfer has the ID {one}. Results are kept for 123 days" in response.content.decode()
    )
    assert client.get("/transfers/1/").status_code == 404


def test_it_has_no_parameters(client, small_world):
    one = transfer(small_world.ral, small_world.glasgow, 10.0)
    response = client.get(f"/transfers/{one.id}/?window=7d")
    assert response.status_code == 200
    assert (
        "There is no parameter “window”: no parameters are allowed here."
        in response.content.decode()
    )


def test_the_number_of_queries_does_not_grow_with_the_data(client, small_world):
    one = transfer(small_world.ral, small_world.glasgow, 10.0)
    look(client, one.id)
    for count in (2, 1000):
        many(small_world.ral, small_world.glasgow, count, NOW)
        with CaptureQueriesContext(connection) as captured:
            look(client, one.id)
        assert len(captured) == 6, [one["sql"] for one in captured.captured_queries]


def test_simulated_rates_are_called_so(client, small_world):
    small_world.ral.simulated = True
    small_world.ral.save()
    assert "Simulated" in look(client, transfer(small_world.ral, small_world.glasgow, 1.0).id)


def test_a_result_that_is_made_up_is_called_so(client, small_world):
    made = world.profile(**store.profile_fields(NOW))
    said = look(client, transfer(small_world.ral, small_world.glasgow, 1.0, made=made).id).words
    assert "Demo data. No file was transferred" in said
    assert "This is demo data: no file was transferred." in said
    assert "imported" not in said
