"""Ordered tests of one link: ordered in turn, followed, and beside what the link gave before."""

import re
from datetime import timedelta
from statistics import mean, median, stdev

import pytest
from django.test import Client

from sonar.models import Endpoint, Mesh, Probe, Profile
from sonar.people.roles import Role
from sonar.results import endings
from tests.accounts import account
from tests.html import Page
from tests.matrix import responses, sent, world
from tests.matrix.world import MB, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon", "nothing_is_sent")]
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
URL = f"{LINK}tests/"
DAY = timedelta(days=1)


def ordered(streams: int = 1, used: int | None = None, purpose: str = "ordered") -> Profile:
    fields = {"mode": "pull", "streams": streams, "streams_used": used}
    return world.profile(**fields, mesh=None, purpose=purpose, ip_version=None)


def send(made: World, minutes: int, rate: float | None, profile: Profile, **more: object) -> None:
    """Store a test from RAL to DESY that a worker made so many minutes ago."""
    ago = timedelta(minutes=minutes)
    world.transfer(made.ral, made.desy, rate, ago=ago, made=profile, worker="worker-1", **more)


def look(client: Client, url: str = URL) -> Page:
    return responses.page(client, url)


def read(response: object) -> Page:
    return Page(response.content.decode())


def order(client: Client, **change: object) -> object:
    form = {"size": "large", "count": "3", "streams": "1", "mode": "pull"}
    return client.post(URL, form | change)


def cells(client: Client) -> list[list[str]]:
    """Return the rows of the table of results, as texts."""
    table = look(client).table("#test-now-live tbody tr")
    return [[cell.replace(" ,", ",") for cell in row] for row in table]


def test_streams_and_directions_take_turns(operator):
    response = order(operator, count="2", streams="4", compare="on", both="on", mode="push")
    assert (response.status_code, response["Location"]) == (302, URL)
    probes = Probe.objects.order_by("id")
    assert [(probe.source.name, probe.streams) for probe in probes] == [
        ("RAL_DATADISK", 4),
        ("RAL_DATADISK", 1),
        ("DESY_DATADISK", 4),
        ("DESY_DATADISK", 1),
    ] * 2
    assert {(probe.mode, probe.size_class.name, probe.mover) for probe in probes} == {
        ("push", "large", "http-tpc")
    }
    words = look(operator).words
    assert "8 tests were requested." in words
    assert words.count("Cancel the test") == 8


def test_the_page_of_a_link_has_the_form_for_who_may(client, small_world):
    assert not look(client, LINK).parts("#test-now")
    for role, sites in ((Role.READER, []), (Role.SITE_ADMIN, [small_world.glasgow.site])):
        client.force_login(account(role, *sites))
        assert not look(client, LINK).parts("#test-now")
        assert not look(client).parts("main form")
    client.force_login(account(Role.SITE_ADMIN, small_world.desy.site, name="of-desy"))
    form = look(client, f"{LINK}?size=small&show=one").part(f'form[action="{URL}"]')
    assert {("size", "small"), ("count", "3")} <= set(form.sent())
    assert form.field("csrfmiddlewaretoken")


def test_who_may_not_order_reads_of_ordered_tests_and_of_no_order(client, small_world):
    page = look(client)
    assert page.texts("h1") == ["On-demand tests from RAL_DATADISK to DESY_DATADISK"]
    assert "On-demand tests requested in the last 24 hours" in page.texts("h2")
    assert "Request tests" not in page.source
    client.force_login(account(Role.OPERATOR))
    for path in (URL, LINK):
        heads = look(client, path).texts("h2")
        assert "Request tests" in heads
        assert "On-demand tests requested in the last 24 hours" not in heads


def test_who_may_not_and_a_form_without_its_token_are_refused(client, small_world):
    assert order(client)["Location"] == f"/login/?next={URL}"
    client.force_login(account(Role.READER))
    assert order(client, size="huge").status_code == 403
    client.force_login(account(Role.SITE_ADMIN, small_world.glasgow.site))
    assert order(client, size="huge").status_code == 403
    assert not Probe.objects.exists()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(account(Role.OPERATOR))
    assert order(strict).status_code == 403
    assert not Probe.objects.exists()


def test_a_refusal_stands_by_its_field_and_keeps_what_was_typed(operator):
    response = order(operator, count="40", streams="4", compare="on", mode="push")
    assert response.status_code == 400
    page = read(response)
    said = "Number of tests must be a whole number from 1 to 10."
    assert said in page.part("#test-count_error")
    form = page.part(f'form[action="{URL}"]')
    assert form.field("count")["aria-invalid"] == "true"
    kept = {("count", "40"), ("streams", "4"), ("mode", "push"), ("compare", "on")}
    assert kept <= set(form.sent())
    assert not Probe.objects.exists()


def test_what_an_end_does_not_bear_is_said_once_and_by_that_end(operator, small_world):
    world.downtime(endpoint=small_world.desy)
    response = order(operator, both="on")
    assert response.status_code == 409
    assert read(response).words.count("DESY_DATADISK is in a declared downtime.") == 1
    form = {"source": "RAL", "destination": "DESY_DATADISK", "size": "large", "both": "on"}
    response = operator.post("/operations/probes/", form)
    assert response.status_code == 409
    page = read(response)
    assert "DESY_DATADISK is in a declared downtime." in page.part("#test-destination_error")
    assert not page.parts("#test-source_error")


def test_a_used_up_budget_says_what_is_left_and_what_is_needed(operator, small_world):
    Endpoint.objects.filter(id=small_world.ral.id).update(budget_bytes_per_day=5_000_000_000)
    response = order(operator, count="4")
    assert response.status_code == 409
    sentence = "has only 5 GB of its test budget left for today, but the tests need 8 GB."
    assert f"RAL_DATADISK {sentence}" in read(response)


def test_only_movers_that_fit_are_offered(operator, small_world):
    offered = {option["value"] for option in look(operator, LINK).parts('[name="mover"] option')}
    assert offered & {"http-tpc", "xrootd", "gfal2", "gridftp", "fake"} == {"http-tpc", "gfal2"}
    ends = [small_world.ral.id, small_world.desy.id]
    for number in ends:
        Endpoint.objects.filter(id=number).update(base_url=f"fake://{number}/sonar")
    assert order(operator).status_code == 302
    assert set(Probe.objects.values_list("mover", flat=True)) == {"fake"}
    Endpoint.objects.filter(id=ends[0]).update(base_url="root://one.example.org/data")
    assert "supports the URL schemes dav, davs, http, https, not those of" in read(order(operator))


def test_now_stands_beside_the_week_before_and_the_usual(operator, small_world):
    made = small_world
    planned = world.profile(mesh=Mesh.objects.get(name="everything"), mode="pull", streams=1)
    single, several = ordered(used=1), ordered(4, used=4, purpose="sweep")
    week = [4.0, 4.2, 4.7, 3.9, 4.4]
    with_tried = [*week, 20.0]
    older = [2.0, 2.2, 2.4]
    with world.transfers() as some:
        for number, rate in enumerate(week):
            some.add(made.ral, made.desy, rate, ago=DAY * (number + 1), made=planned)
        for number, rate in enumerate(older):
            some.add(made.ral, made.desy, rate, ago=DAY * (number + 9), made=planned)
        some.add(made.ral, made.desy, 99.0, ago=timedelta(days=40), made=planned)
        # Asked for with 16, and sent over 1 stream; not usual, but of as many streams.
        tried = ordered(16, used=1, purpose="sweep")
        some.add(made.ral, made.desy, 20.0, ago=4 * DAY, made=tried, worker="worker-1")
        some.add(made.desy, made.ral, 50.0, ago=DAY, made=planned)
        some.add(made.ral, made.desy, None, ago=2 * DAY, made=planned)
        for minutes, rate, profile in ((9, 4.1, single), (7, 8.0, several), (5, 4.3, single)):
            ago = timedelta(minutes=minutes)
            some.add(made.ral, made.desy, rate, ago=ago, made=profile, worker="worker-1")
        ago = timedelta(minutes=3)
        some.add(made.ral, made.desy, None, ago=ago, made=several, worker="worker-1")
    assert cells(operator) == [
        [
            *("from RAL_DATADISK to DESY_DATADISK", "large", "1", "pull", "4.10, 4.30"),
            f"{mean(with_tried):.2f} ± {stdev(with_tried):.2f} (n = 6)",
            f"{median(week + older):.2f}",
        ],
        [
            *("from RAL_DATADISK to DESY_DATADISK", "large", "4", "pull", "8.00, failed"),
            "–",
            f"{median(week + older):.2f}",
        ],
    ]
    words = look(operator).words
    assert "4 streams and 1 stream: 1 and 2 tests, too few to compare." in words
    assert "median 8.00 MB/s instead of 4.20 MB/s" in words


def test_an_import_is_no_test_that_somebody_ordered(operator, small_world):
    """Whatever it says of itself: of origin test, or an order or sweep of another Sonar."""
    for purpose in ("", "ordered", "sweep"):
        imported = ordered(purpose=purpose)
        world.transfer(small_world.ral, small_world.desy, 5.0, made=imported)
    assert "No on-demand test was requested for this link in the last 24 hours." in look(operator)
    assert cells(operator) == []
    send(small_world, 5, 7.0, ordered())
    assert [row[4] for row in cells(operator)] == ["7.00"]
    scheduled = world.profile(mode="pull", mesh=small_world.mesh, purpose="scheduled")
    send(small_world, 4, 9.0, scheduled)
    assert [row[4] for row in cells(operator)] == ["7.00"]


def test_a_test_that_was_given_up_before_it_ran_is_among_the_ordered_ones(operator, small_world):
    probe = sent.probe(small_world.ral, small_world.desy, state="waiting")
    assert endings.end_waiting(probe, "RAL_DATADISK was retired", NOW)
    assert [row[4] for row in cells(operator)] == ["failed"]


def fill(made: World, streams: int, used: int | None, rates: list[float]) -> None:
    for minute, rate in enumerate(rates, 10 * streams):
        send(made, minute, rate, ordered(streams, used))


def test_streams_are_compared_with_interval_and_number_of_tests(operator, small_world):
    several, few = [8.0, 8.4, 7.7], [4.1, 4.0, 4.3, 4.2]
    fill(small_world, 4, 4, several)
    fill(small_world, 1, 1, few)
    words = look(operator).words
    found = re.search(
        r"4 streams: ([0-9.]+)× \(([0-9.]+)–([0-9.]+)\) the rate of 1 stream, "
        "significant: 3 and 4 tests",
        words,
    )
    assert found, words
    ratio, low, high = map(float, found.groups())
    assert ratio == pytest.approx(median(several) / median(few), rel=0.03)
    assert low < ratio < high
    assert low > 1.5
    assert "median 8.00 MB/s instead of 4.15 MB/s" in words


def test_what_chance_may_make_is_not_certain(operator, small_world):
    fill(small_world, 4, 4, [3.0, 9.0, 5.1])
    fill(small_world, 1, 1, [4.1, 2.0, 8.3])
    assert "the rate of 1 stream, not significant: 3 and 3 tests." in look(operator)


def test_streams_count_as_they_were_used(operator, small_world):
    """Asking for four is no reason if the servers used one: then nothing is said of streams."""
    fill(small_world, 4, 1, [5.0, 5.1, 5.2])
    fill(small_world, 1, 1, [7.0, 7.1, 7.2])
    words = look(operator).words
    assert "Every transfer used 1 stream, however many were requested (n = 6)" in words
    assert "the rate of 1 stream" not in words
    assert [row[2] for row in cells(operator)] == ["1", "4 requested, 1 used"]
    fill(small_world, 8, 2, [14.0, 14.1, 14.2])
    words = look(operator).words
    assert "Every transfer used" not in words
    assert "2 streams: 2.3" in words
    assert "the rate of 1 stream, significant: 3 and 6 tests." in words


def test_of_streams_that_nobody_counted_it_says_so(operator, small_world):
    fill(small_world, 4, None, [8.0, 8.4, 7.7])
    fill(small_world, 1, 1, [4.1, 4.0, 4.3])
    assert "4 streams requested: 1.95× (" in look(operator)


def test_tests_of_two_size_classes_or_ways_are_not_compared(operator, small_world):
    for minute in range(3):
        send(small_world, minute + 1, 8.0, ordered(4, 4))
        send(small_world, minute + 10, 4.0, ordered(1, 1), size="small")
        over_6 = {"mode": "pull", "streams": 1, "streams_used": 1, "ip_version": 6}
        send(small_world, minute + 20, 4.0, world.profile(**over_6, purpose="ordered"))
    assert "the rate of" not in look(operator)


def test_a_test_that_began_within_a_second_is_told_as_any(client, small_world):
    made = small_world
    more = {"made": ordered(), "worker": "worker-1"}
    world.transfer(made.ral, made.desy, 7.0, ago=timedelta(seconds=9.000123), **more)
    world.transfer(made.ral, made.desy, 5.0, ago=timedelta(seconds=5), **more)
    assert cells(client)[0][4] == "7.00, 5.00"


def test_a_running_test_says_how_far_it_is_unless_it_is_of_a_mesh(client, small_world):
    made = {"worker": "worker-1", "progress_bytes": 15 * MB}
    probe = sent.probe(small_world.ral, small_world.desy, **made)
    page = look(client)
    assert page.part("progress")["value"] == "75"
    assert f"75 %, {0.75 * probe.bytes / MB / 10:.2f} MB/s so far" in page
    assert page.parts('[hx-trigger="every 2s, refresh"]')
    Probe.objects.all().delete()
    page = look(client)
    assert "every 2s" not in page.source
    assert "No on-demand test was requested for this link in the last 24 hours." in page
    sent.probe(small_world.ral, small_world.desy, worker="worker-1", mesh=small_world.mesh)
    assert not look(client).parts("progress")


def test_a_test_is_cancelled_where_it_stands(operator):
    order(operator, count="2")
    last = Probe.objects.get(state="waiting")
    response = operator.post(f"/operations/probes/{last.id}/cancel/", {"next": URL})
    assert (response.status_code, response["Location"]) == (302, URL)
    assert "was cancelled before it started." in look(operator)
    for evil in ("https://example.org/", "//example.org", "/\\example.org", ""):
        url = f"/operations/probes/{Probe.objects.get().id}/cancel/"
        response = operator.post(url, {"next": evil})
        assert response["Location"] == "/operations/"
        order(operator, count="1")


def test_no_link_no_page_and_no_parameters(operator):
    for path in ("/links/RAL_DATADISK/RAL_DATADISK/tests/", "/links/RAL_DATADISK/nowhere/tests/"):
        assert operator.get(path).status_code == 404
        assert operator.post(path, {"size": "large"}).status_code == 404


def test_the_page_costs_the_same_with_few_and_with_many(
    operator, small_world, django_assert_max_num_queries
):
    made = small_world
    operator.get(URL)
    counts = []
    for number in (1, 30):
        with world.transfers() as some:
            for minute in range(number):
                profile = ordered(1 + minute % 5, 1 + minute % 5)
                ago = timedelta(minutes=minute + 1)
                some.add(made.ral, made.desy, 5.0, ago=ago, made=profile, worker="worker-1")
        with django_assert_max_num_queries(14) as context:
            operator.get(URL)
        counts.append(len(context))
    assert counts[0] == counts[1]
