"""Tests of the network alone: on the page of a link, in the API, as evidence, and nowhere else."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from matrix.answers.diagnosis import link_diagnosis
from matrix.answers.link import network, report
from matrix.answers.link.report import Question
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry
from sonar.models import Endpoint, Mesh, NetworkResult, SignOfLife, Transfer
from sonar.people.roles import Role
from tests.accounts import account
from tests.matrix import responses, world
from tests.matrix.network import failed, measured, servers
from tests.matrix.responses import words
from tests.matrix.world import HOUR, NOW, transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
LINK = "/links/RAL_DATADISK/Glasgow_DATADISK/"
OWN_LINK = "/links/RAL_NET/Glasgow_NET/"
CALL = "/api/v1/network/"


@pytest.fixture
def ends(small_world) -> tuple[Endpoint, Endpoint]:
    return servers(small_world)


def section(html: str) -> str:
    part = html.partition('aria-labelledby="network"')[2].partition("</section>")[0]
    return words(part)


def test_the_link_page_shows_those_of_its_sites_both_ways(client, ends):
    ral, glasgow = ends
    assert "Network tests" not in responses.html(client, LINK)
    measured(ral, glasgow)
    measured(ral, glasgow, bytes=300_000_000, sent_bytes=300_000_000, tcp_buffer_bytes=87_040)
    failed(ral, glasgow)
    measured(glasgow, ral, mode="pull", rtt_min_ms=None, rtt_mean_ms=None, rtt_max_ms=None)
    measured(ral, glasgow, started_at=NOW - 8 * 24 * HOUR)
    shown = section(responses.html(client, LINK))
    sentence = (
        "Network tests in this direction: median 200 MB/s (n = 2), round trip 92.2 ms, 0.05 % of"
    )
    assert sentence in shown
    assert "segments retransmitted. Failed network tests: 1." in shown
    assert "92.2 / 92.4 / 95" in shown
    assert "100 (0.1 %)" in shown
    assert "217 kB / 108 kB" in shown
    assert "push, 1 stream, buffer 87.0 kB, IPv4, cubic" in shown
    assert (shown.count("push, 1 stream"), shown.count("pull, 1 stream")) == (3, 1)
    assert "at the destination: iperf3: the server is busy" in shown
    assert shown.count(" reverse ") == 1
    turned = section(responses.html(client, "/links/Glasgow_DATADISK/RAL_DATADISK/"))
    assert "median 100 MB/s (n = 1)" in turned
    assert "Network tests" not in responses.html(client, "/links/RAL_DATADISK/DESY_DATADISK/")


def test_the_link_of_their_servers_says_that_it_has_no_files(client, ends):
    html = words(responses.html(client, OWN_LINK))
    assert "No files are transferred: an endpoint of this link only serves network tests." in html
    assert "An administrator can add this link to a mesh" not in html
    assert "No network test ran in this direction in this time range." in html
    failed(*ends)
    shown = section(responses.html(client, OWN_LINK))
    assert "No network test in this direction succeeded (1 failed)." in shown


def test_a_server_has_its_own_tests_and_not_those_of_another_at_its_site(client, small_world, ends):
    other = Endpoint.objects.create(
        name="RAL_NET2", site=small_world.ral.site, base_url="iperf3://two.example"
    )
    measured(other, ends[1], bytes=700_000_000)
    measured(*ends)
    own = section(responses.html(client, OWN_LINK))
    assert "median 100 MB/s (n = 1)" in own
    assert own.count("push, 1 stream") == 1
    assert "median 400 MB/s (n = 2)" in section(responses.html(client, LINK))


def test_a_mesh_of_them_promises_no_transfer_on_the_page_of_their_link(client, ends):
    mesh = Mesh.objects.create(name="network", mover="iperf3", mode="push")
    world.schedule(mesh, ends)
    html = words(responses.html(client, OWN_LINK))
    assert "not applicable" not in html
    assert "No network test ran in this direction in this time range" in html
    assert "No enabled mesh includes this direction" not in html


def test_a_lost_test_has_no_rate_and_a_dash_says_so(client, ends):
    failed(
        *ends,
        state="lost",
        error="the worker did not report the end of the test",
        error_where="control",
    )
    html = responses.html(client, LINK)
    assert "the worker did not report the end of the test" in section(html)


@pytest.fixture
def _many_tests(ends) -> None:
    for minutes in range(25):
        measured(*ends, started_at=NOW - timedelta(minutes=minutes + 1))


@pytest.mark.usefixtures("_many_tests")
def test_of_many_the_newest_are_listed(client):
    shown = section(responses.html(client, LINK))
    assert shown.count("push, 1 stream") == 20
    assert "The API has 5 earlier tests from this time range." in shown


def shown_at(client: Client, url: str) -> str:
    """Return what a page says, without network tests, or an answer."""
    text = responses.html(client, url)
    if url.startswith("/api/"):
        return text
    return words(re.sub(r'<section aria-labelledby="network\b.*?</section>', "", text, flags=re.S))


@pytest.mark.long
def test_they_are_in_no_rate_of_a_matrix_link_or_site(client, small_world, ends):
    """What pages and answers say of files is the same with and without them."""
    transfer(small_world.ral, small_world.glasgow, 50.0)
    pages = ["/", LINK, "/sites/RAL/", "/sites/", "/table/", "/?wall=1", "/causes/"]
    calls = ["matrix/", "links/", "sites/", "transfers/", "strip/", "status/", "events/"]
    calls += ["series/?source=RAL_DATADISK&destination=Glasgow_DATADISK"]
    urls = [*pages, *(f"/api/v1/{call}" for call in calls)]
    before = {url: shown_at(client, url) for url in urls}
    for source, destination in (ends, ends[::-1]):
        measured(source, destination, bytes=10**12, sent_bytes=10**12)
    for url in urls:
        assert shown_at(client, url) == before[url], url
    assert Transfer.objects.count() == 1


def test_no_row_of_the_matrix_is_theirs_and_no_mesh_of_them_promises_a_transfer(client, ends):
    mesh = Mesh.objects.create(name="network", mover="iperf3", mode="push")
    world.schedule(mesh, ends, ends[::-1])
    for query in ("", "?rows=site&columns=site", "?source_site=RAL"):
        answer = responses.answer(client, f"/api/v1/matrix/{query}")
        names = {row["name"] for row in (*answer["sources"], *answer["destinations"])}
        assert not [name for name in names if name.endswith("_NET")], query
        assert names
    built = grid.build(MatrixQuery(), NOW)
    assert not [name for name in built.idle if name.endswith("_NET")]
    links = responses.answer(client, "/api/v1/links/")["links"]
    assert not [link for link in links if link["source"]["name"].endswith("_NET")]


def test_the_api_has_all_of_them_and_filters(client, ends):
    ral, glasgow = ends
    first, second = measured(ral, glasgow), failed(glasgow, ral, started_at=NOW - 2 * HOUR)
    measured(ral, glasgow, started_at=NOW - 8 * 24 * HOUR)
    answer = responses.answer(client, CALL)
    assert [each["id"] for each in answer["results"]] == [str(first.id), str(second.id)]
    fields = answer["results"][0]
    assert (fields["rate_mb_s"], fields["loss"], fields["size"]) == (100.0, 0.001, "small")
    assert fields["samples"] == [[0.5, 50_000_000], [1.0, 100_000_000]]
    assert "worker" not in fields
    lacking = answer["results"][1]
    assert (lacking["rate_mb_s"], lacking["loss"], lacking["rtt_min_ms"]) == (None, None, None)
    assert (lacking["error_where"], lacking["error"]) == (
        *("destination", "iperf3: the server is busy"),
    )
    for query, count in (
        ("?state=done", 1),
        ("?state=done&state=lost", 1),
        ("?source_site=Glasgow", 1),
        ("?source_endpoint=RAL_NET&destination_site=Glasgow", 1),
        ("?site=DESY", 0),
        ("?window=30d", 3),
    ):
        assert len(responses.answer(client, f"{CALL}{query}")["results"]) == count, query
    page = responses.answer(client, f"{CALL}?page_size=1")
    assert page["results"][0]["id"] == str(first.id)
    after = responses.answer(client, page["next"])
    assert [each["id"] for each in after["results"]] == [str(second.id)]
    assert after["next"] is None


def test_the_api_has_them_as_csv_and_lines(client, ends):
    test = measured(*ends)
    (row,) = responses.csv_rows(client, f"{CALL}?format=csv")
    assert (row["id"], row["rate_mb_s"], row["error"]) == (str(test.id), "100.0", "")
    assert "samples" not in row
    lines = client.get(f"{CALL}?format=ndjson").content.decode().splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?streams=4", "streams"),
        ("?state=well", "state “well” is not known: use done, failed or lost."),
        ("?cursor=x", "which is not valid: follow the “next” URL of a response."),
        ("?window=3y", "window"),
    ],
)
def test_the_api_says_what_it_does_not_know(client, query, sentence):
    answer = client.get(f"{CALL}{query}")
    assert answer.status_code == 400
    assert sentence in answer.content.decode()


def test_a_test_that_was_followed_is_found_when_it_has_ended(client, ends):
    test = measured(*ends)
    ended = responses.answer(client, f"/api/v1/probes/{test.id}/")
    assert (ended["ended"], ended["rate_mb_s"]) == (True, 100.0)
    leads = client.get(f"/transfers/{test.id}/")
    assert (leads.status_code, leads["Location"]) == (302, f"{OWN_LINK}#network")
    assert client.get(f"/transfers/{NetworkResult().id}/").status_code == 404


def question(source: str = "RAL_DATADISK", destination: str = "Glasgow_DATADISK") -> Question:
    places = {place.name: place for place in registry.read_places(registry.read_versions())}
    return Question(places[source], places[destination], MatrixQuery(window="7d"))


def test_they_are_evidence_of_the_diagnosis(client, small_world, ends):
    ral, glasgow = ends
    measured(ral, glasgow)
    measured(ral, glasgow, rtt_min_ms=90.0, retransmits=300, max_cwnd_bytes=400_000)
    measured(glasgow, ral, rtt_min_ms=10.0, retransmits=5000)
    failed(ral, glasgow)
    answer = report.answer(question(), NOW)
    evidence = link_diagnosis.diagnosis_of_report(answer, (), NOW, names_machines=True).evidence
    assert (evidence.rtt_ms, evidence.network.loss) == (90.0, pytest.approx(0.002))
    assert evidence.network.sockets == (400_000, 108_000)
    assert (evidence.network.rate, len(evidence.network.done)) == (100.0, 2)
    call = "/api/v1/diagnosis/?source=RAL_DATADISK&destination=Glasgow_DATADISK"
    told = responses.answer(client, call)["evidence"]
    assert (told["rtt_ms"], told["loss"], told["network_mb_s"]) == (90.0, 0.002, 100.0)
    assert (told["network_tests"], told["max_cwnd_bytes"]) == (2, 400_000)
    other = report.answer(question("RAL_DATADISK", "DESY_DATADISK"), NOW)
    nothing = link_diagnosis.diagnosis_of_report(other, (), NOW, names_machines=True).evidence
    network = nothing.network
    assert (nothing.rtt_ms, network.loss, network.sockets, network.rate) == (None,) * 4


def test_what_the_receiver_does_not_tell_is_no_evidence(ends):
    measured(*ends, mode="pull", rtt_min_ms=None, max_cwnd_bytes=None, mss_bytes=None)
    tests = network.read(question().ends, question().query.window_at(NOW))
    assert (tests.rtt_ms, tests.loss, tests.sockets) == (None, None, None)
    assert tests.rate == 100.0


def test_a_site_stands_for_its_endpoint_with_files_when_tests_are_ordered(ends):
    admin = account(Role.OPERATOR)
    client = Client()
    client.force_login(admin)
    html = responses.html(client, "/operations/")
    assert '<option value="RAL">RAL_DATADISK</option>' in html
    assert '<option value="RAL_NET">RAL</option>' in html
    assert '<option value="DESY">a site with 2 endpoints</option>' in html


def test_messages_for_the_ends_of_tests_of_the_network_are_counted(ends):
    from matrix.answers.status import figures

    SignOfLife.objects.create(
        name="w",
        kind="worker",
        seen_at=timezone.now(),
        every_seconds=10,
        queues=["transfers", "transfers.iperf3.RAL_NET"],
    )
    assert "transfers.iperf3.RAL_NET" in figures.read(timezone.now()).life.offered
