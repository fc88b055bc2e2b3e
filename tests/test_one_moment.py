"""Pages and calls show one moment: whatever is committed while they read, it fits together.

Every statement of an answer is preceded by a change that is committed on another connection: so
what reads twice is found without luck. tests/storage/test_readers.py has readers and workers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from django.contrib import admin
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from sonar.models import Downtime, Endpoint, Probe, SizeClass, SweepStep, Transfer
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.ordering import request_probes
from sonar.people.roles import Role
from sonar.results import endings
from sonar.work import probes
from tests import numbers, rights_samples
from tests.accounts import account, logged_in
from tests.matrix.registry import BODIES
from tests.matrix.world import NOW
from tests.moving import Meanwhile, before_statements, guests, meanwhile, order
from tests.rights_samples import SAMPLES

pytestmark = pytest.mark.usefixtures("at_noon")
# /readyz reads once, by a connection of its own, and is a 503 where no worker is.
ROUTES = sorted(route for route, method in SAMPLES if method == "GET" and route != "/readyz")
STREAMS = [
    f"/api/v1/{call}/?format={form}"
    for call in ("transfers", "links")
    for form in ("csv", "ndjson")
]
# A link of which no test waits.
FREE = {"source": "Glasgow_DATADISK", "destination": "DESY_DATADISK"}
DONE = Outcome(Receipt(20_000_000, 1.0), None, None, 1.0)


@pytest.fixture
def names(real_commits: None, settings: Settings) -> dict[str, str]:
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    return rights_samples.scene()


@pytest.fixture
def client(names: dict[str, str]) -> Client:
    """Return one who sees all that may be seen."""
    client = logged_in(account(Role.ADMINISTRATOR))
    client.raise_request_exception = False
    return client


@pytest.fixture
def apart(names: dict[str, str]) -> Iterator[Meanwhile]:
    with meanwhile() as apart:
        yield apart


def wrong(client: Client, path: str) -> list[str]:
    response = client.get(path)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    media_type = response.headers.get("Content-Type", "").partition(";")[0]
    return numbers.wrong(response.status_code, media_type, body)


def lists_of_the_admin() -> list[str]:
    models = (model._meta for model in admin.site._registry)
    return [reverse(f"admin:{one.app_label}_{one.model_name}_changelist") for one in models]


@pytest.mark.long
def test_what_comes_and_goes_between_any_two_statements_breaks_no_answer(
    names: dict[str, str], client: Client, apart: Meanwhile
) -> None:
    paths = [SAMPLES[route, "GET"].path.format_map(names) for route in ROUTES]
    # The same questions of what may be gone the next moment.
    guest = [path.replace("RAL_DATADISK", "GUEST0").replace("/RAL/", "/Guest0/") for path in paths]
    found = {}
    with guests() as invited:
        for path in dict.fromkeys([*paths, *guest, *STREAMS, *lists_of_the_admin()]):
            with before_statements(lambda: apart.do(invited.step)):
                found[path] = wrong(client, path)
    assert {path: faults for path, faults in found.items() if faults} == {}
    assert invited.steps > 500


def begin(test: Probe) -> None:
    assert probes.claim(test.id, NOW)


def end(test: Probe) -> None:
    assert endings.end_probe(Probe.objects.get(id=test.id), DONE)


def expire(test: Probe) -> None:
    """Let its result go, as after SONAR_KEEP_DAYS."""
    Transfer.objects.filter(id=test.id).delete()


def cancel(test: Probe) -> None:
    Probe.objects.filter(id=test.id).delete()


LIVES = {"measured": (begin, end, expire), "cancelled": (cancel,)}
OF_A_TEST = [route for route in ROUTES if "<uuid:id>" in route]
OF_TESTS = ["/links/<str:source>/<str:destination>/tests/", "/api/v1/probes/"]


@dataclass
class Life:
    """A test of one link and what is still to happen to it."""

    test: Probe
    steps: list[Callable[[Probe], None]]
    apart: Meanwhile

    def go_on(self) -> None:
        if self.steps:
            step = self.steps.pop(0)
            self.apart.do(lambda: step(self.test))


@pytest.mark.long
@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("route", [*OF_A_TEST, *OF_TESTS])
def test_a_test_that_begins_and_ends_between_any_two_statements_breaks_no_answer(
    route: str, life: str, names: dict[str, str], client: Client, apart: Meanwhile
) -> None:
    ends = [Endpoint.objects.get(name=name) for name in FREE.values()]
    sample = SAMPLES[route, "GET"].path.replace("RAL_DATADISK", FREE["source"])
    found: dict[int, list[str]] = {}
    for first in count():
        lived = Life(order(*ends, SizeClass.objects.get(name="small")), [*LIVES[life]], apart)
        SweepStep.objects.filter(value="pull").update(test_id=lived.test.id)
        path = sample.format_map(names | dict.fromkeys(("transfer", "probe"), str(lived.test.id)))
        with before_statements(lived.go_on, first):
            found[first] = wrong(client, path)
        if len(lived.steps) == len(LIVES[life]):
            break  # it has no more statements
        while lived.steps:
            lived.go_on()
    assert {first: faults for first, faults in found.items() if faults} == {}
    assert len(found) > 3


def claim_all() -> None:
    for test in Probe.objects.filter(state=Probe.State.QUEUED):
        begin(test)


def delete_downtimes() -> None:
    Downtime.objects.all().delete()


# Orders and rows that somebody writes, and what happens to them before the answer has been made.
WRITTEN = {
    "/api/v1/probes/": (202, {**FREE, "sizes": ["small"], "count": 2}, claim_all),
    "/api/v1/sweeps/": (202, {**FREE, "variable": "mode", "size": "small"}, claim_all),
    "/api/v1/downtimes/": (201, BODIES["downtimes"][0], delete_downtimes),
}


@pytest.mark.parametrize("path", WRITTEN)
def test_what_is_written_is_told_as_it_was_written(
    path: str, client: Client, apart: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_probes, "send", lambda ids: None)
    status, body, happens = WRITTEN[path]
    # What others do waits for the locks of a transaction that writes.
    with before_statements(lambda: connection.in_atomic_block or apart.do(happens)):
        response = client.post(path, body, content_type="application/json")
    assert response.status_code == status
    assert numbers.wrong(status, "application/json", response.content) == []


REFUSED = [
    ("/operations/probes/", {"source": "nowhere"}),
    ("/links/Glasgow_DATADISK/DESY_DATADISK/tests/", {"size": "none"}),
    ("/links/Glasgow_DATADISK/DESY_DATADISK/sweeps/", {"variable": "none"}),
    ("/sites/RAL/downtimes/", {"reason": ""}),
]


@pytest.mark.long
@pytest.mark.parametrize(("path", "form"), REFUSED)
def test_a_form_that_is_shown_again_stands_on_a_page_of_one_moment(
    path: str, form: dict[str, str], client: Client, apart: Meanwhile
) -> None:
    with guests() as invited, before_statements(lambda: apart.do(invited.step)):
        response = client.post(path, form)
    assert numbers.wrong(response.status_code, "text/html", response.content) == []
    assert response.status_code == 400
    assert invited.steps > 5


def statements(client: Client, path: str, **headers: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path, headers=headers).status_code in (200, 304)
    return [query["sql"].split()[0] for query in captured]


def test_a_moment_costs_begin_and_commit_and_a_304_of_the_api_neither(
    names: dict[str, str],
) -> None:
    path = "/api/v1/matrix/"
    etag = Client().get(path)["ETag"]
    assert statements(Client(), path, if_none_match=etag) == ["WITH"]
    first, *reads, last = statements(Client(), "/api/v1/probes/")
    assert (first, {*reads}, last) == ("BEGIN", {"SELECT"}, "COMMIT")


@pytest.mark.parametrize("path", ["/operations/", "/api/v1/status/", "/admin/"])
def test_a_session_that_counts_no_more_ends_as_somebody_reads(
    path: str, names: dict[str, str]
) -> None:
    user = account(Role.OPERATOR)
    client = logged_in(user)
    user.set_password("another-horse-battery")
    user.save()
    assert client.get(path).status_code in (200, 302)
    assert not Session.objects.exists()


def test_numbers_that_are_missing_or_below_zero_are_seen_and_sentences_are_not() -> None:
    bad = ("|None|", "position None: x", "| None MB/s|", "x nan y", "|-1|", "took −3 s")
    good = ("|None.|", "|None in the window.|", "2026-11-20", "1-2", "|None yet: x|", "RAL – 5")
    assert [text for text in (*bad, *good) if numbers.of_page(text)] == [*bad]
    tests = [{"rate": -1, "state": "queued", "place_in_queue": None}, {"latitude": -1, "at": None}]
    told = list(numbers.of_json({"tests": tests}))
    assert told == [".tests waits at no place", ".tests.rate -1"]
    assert numbers.of_metrics('a 1.0\nb{c="d"} nan\ne -1\n') == ["b nan", "e -1"]
