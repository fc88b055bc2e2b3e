"""Two who write the registry at the same time: one of them is told, and nothing is half done."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client

from matrix.api.registry import views
from sonar.models import Annotation, Downtime, Endpoint, Site, SizeClass
from sonar.people.roles import Role
from sonar.registry import compatibility
from tests.matrix.registry import BODIES, JSON, address, caller, made, patch, post

pytestmark = pytest.mark.usefixtures("real_commits")


@contextmanager
def another(write: Callable[[], Any]) -> Iterator[None]:
    """Have somebody else write, and commit when this is left: the admin, say, or a file."""
    written, go_on = Event(), Event()

    def work() -> None:
        try:
            with transaction.atomic():
                write()
                written.set()
                assert go_on.wait(120)
        finally:
            written.set()
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        assert written.wait(120)
        yield
        go_on.set()
        done.result()


def at_once(call: Callable[[], HttpResponse], write: Callable[[], Any]) -> HttpResponse:
    """Call while somebody else has written and not committed yet."""

    def work() -> HttpResponse:
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with another(write):
            answer: Future[HttpResponse] = pool.submit(work)
            wait_for_a_lock()
        return answer.result(20)


def wait_for_a_lock() -> None:
    with connection.cursor() as cursor:
        for _ in range(200):
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.02)")
    raise AssertionError("the call waits for nothing")


def test_a_name_that_is_being_taken_is_a_conflict(root):
    response = at_once(
        lambda: post(root, "sites/", {"name": "Lancaster", "cloud": "ours"}),
        lambda: Site.objects.create(name="Lancaster", cloud="theirs"),
    )
    assert response.status_code == 409
    assert response.json()["errors"] == {
        "name": ["The value of “name” is already used by another site."]
    }
    assert Site.objects.get(name="Lancaster").cloud == "theirs"


def test_a_name_that_is_taken_behind_the_check_is_a_conflict_too(root, monkeypatch):
    """The admin's row is there and its trigger waits for us, while we wait for its name."""
    check, pool = views.check, ThreadPoolExecutor(1)
    others: list[Future[None]] = []

    def theirs() -> None:
        try:
            with connection.cursor() as cursor:  # so that PostgreSQL tells us, and not them
                cursor.execute("SET deadlock_timeout = '5min'")
            Site.objects.create(name="Lancaster", cloud="theirs")
        finally:
            connection.close()

    def slowly(*checked: Any) -> None:
        check(*checked)
        if not others:
            others.append(pool.submit(theirs))
            wait_for_a_lock()

    monkeypatch.setattr(views, "check", slowly)
    response = post(root, "sites/", {"name": "Lancaster", "cloud": "ours"})
    others[0].result(20)
    pool.shutdown()
    assert response.status_code == 409
    # The second try may come before the admin's row goes on, and meet it the same way.
    taken = {"name": ["The value of “name” is already used by another site."]}
    assert response.json()["errors"] in (taken, {"registry": [views.REFUSED]})
    assert Site.objects.get(name="Lancaster").cloud == "theirs"


def test_a_site_that_is_being_removed_is_not_known(root):
    Site.objects.create(name="Empty")
    body = BODIES["endpoints"][0] | {"site": "Empty"}
    response = at_once(
        lambda: post(root, "endpoints/", body), lambda: Site.objects.get(name="Empty").delete()
    )
    assert response.status_code == 400
    assert "site “Empty” is not known" in response.json()["detail"]


def test_a_site_that_is_being_given_an_endpoint_stays(root):
    site = Site.objects.create(name="Empty")
    response = at_once(
        lambda: root.delete("/api/v1/sites/Empty/"),
        lambda: Endpoint.objects.create(name="new", site=site, base_url="https://new.example.org/"),
    )
    assert response.status_code == 409
    assert response.json()["detail"].startswith("Site Empty has an endpoint")


def test_a_boundary_that_is_being_taken_is_refused_in_words(root):
    response = at_once(
        lambda: post(root, "size-classes/", BODIES["size-classes"][0]),
        lambda: SizeClass.objects.create(name="vast", from_bytes=10**10, test_bytes=3 * 10**10),
    )
    assert response.status_code == 400
    assert "start at the same size" in response.json()["errors"]["from_bytes"][0]
    assert compatibility.size_class_problems(SizeClass.objects.all()) == []


def test_a_rule_of_the_database_that_is_broken_at_the_commit_is_a_conflict(
    root, monkeypatch, caplog
):
    monkeypatch.setattr(compatibility, "size_class_problems", lambda classes: [])
    body = BODIES["size-classes"][0] | {"test_bytes": 5}
    response = post(root, "size-classes/", body)
    assert response.status_code == 409
    assert response.json()["detail"].startswith(
        "Another change to the registry conflicts with this request."
    )
    assert SizeClass.objects.count() == 3
    said = [one.getMessage() for one in caplog.records if one.name == views.__name__]
    assert len(said) == 2  # it is tried twice
    assert "prevented POST /api/v1/size-classes/" in said[0]
    assert "sizeclass_ranges_tile" in said[0]


def test_the_line_of_the_log_names_the_rule_and_no_value(root, monkeypatch, caplog):
    monkeypatch.setattr(views, "check", lambda kind, row: None)
    response = post(root, "sites/", {"name": "RAL", "tier": 2, "cloud": "secret"})
    assert response.status_code == 409
    said = [one.getMessage() for one in caplog.records if one.name == views.__name__]
    assert len(said) == 2
    assert "sonar_site_name" in said[0]
    assert said[0].endswith("prevented POST /api/v1/sites/.")
    assert "RAL" not in caplog.text
    assert "secret" not in caplog.text


def test_changes_of_different_fields_are_both_kept(root):
    response = at_once(
        lambda: patch(root, "endpoints/RAL_DATADISK/", {"inbound_cap": 7}),
        lambda: Endpoint.objects.filter(name="RAL_DATADISK").update(outbound_cap=8),
    )
    assert (response.json()["inbound_cap"], response.json()["outbound_cap"]) == (7, 8)


def test_many_who_want_one_name_are_all_answered(root):
    user = caller(Role.OPERATOR)

    def call(client: Client) -> int:
        try:
            return post(client, "sites/", {"name": "Lancaster"}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(call, [root, user] * 8))
    assert sorted(statuses) == [201] + [409] * 15
    assert Site.objects.filter(name="Lancaster").count() == 1


@pytest.mark.parametrize(
    ("plural", "model"), [("sites", Site), ("downtimes", Downtime), ("annotations", Annotation)]
)
@pytest.mark.parametrize("method", ["patch", "delete"])
def test_a_write_that_waited_meets_a_row_that_is_gone(
    root, plural: str, model: type[Model], method: str
):
    record = made(root, plural)
    path = f"/api/v1/{address(plural, record)}"
    response = at_once(
        lambda: getattr(root, method)(path, BODIES[plural][1], content_type=JSON),
        lambda: model._default_manager.filter(pk=newest(model)).delete(),
    )
    assert response.status_code == 404


def newest(model: type[Model]) -> int:
    return model._default_manager.order_by("pk").values_list("pk", flat=True).last()


@pytest.mark.parametrize(
    ("plural", "bodies", "field"),
    [
        (
            "endpoints",
            [
                {"name": "ONE", "site": "RAL", "base_url": "https://race.example.org/1"},
                {"name": "TWO", "site": "RAL", "base_url": "davs://RACE.example.org:443/1/2"},
            ],
            "base_url",
        ),
        ("sites", [{"name": "Lancaster"}, {"name": "LANCASTER"}], "name"),
    ],
)
def test_of_two_that_would_lie_in_one_place_or_have_one_name_but_for_case_one_is_refused(
    root, plural: str, bodies: list[dict[str, Any]], field: str
):
    """No constraint of the database holds this: writes of the registry wait for each other."""
    both = Barrier(2)

    def send(body: dict[str, Any]) -> HttpResponse:
        both.wait(120)
        try:
            return post(root, f"{plural}/", body)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(send, bodies), key=lambda one: one.status_code)
    assert [one.status_code for one in answers] == [201, 409]
    assert list(answers[1].json()["errors"]) == [field]
