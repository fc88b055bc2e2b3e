"""What readers once found wrong or contradicted on pages, asked again by HTTP of results alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from matrix.answers.incidents.messages import IncidentWords
from matrix.answers.status import figures
from sonar.alerting import incidents
from sonar.models import (
    Endpoint,
    HistoryEntry,
    Incident,
    Mesh,
    Notification,
    Site,
    SizeClass,
    Subscription,
    Transfer,
)
from sonar.notation.windows import format_time
from sonar.people.roles import Role
from sonar.results import store
from tests.accounts import account, logged_in
from tests.accuracy import histories
from tests.accuracy.histories import HOUR, Fault, Grid, place_fault
from tests.matrix import world
from tests.matrix.responses import answer
from tests.matrix.responses import words as text_of
from tests.stored_histories import NOW, StoredHistory, history_of, moment

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
FOUR_A_DAY = {"large": 6}
ALL_CLASSES = {"small": 6, "medium": 6, "large": 6}
Faults = Callable[[Grid], list[Fault]]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The time as pages see it, which a test may move on."""
    now = [moment(NOW) + timedelta(seconds=30)]
    monkeypatch.setattr(timezone, "now", lambda: now[0])
    figures.forget()
    return now


def assessed(now: datetime) -> None:
    world.assessed(now)
    incidents.follow(now)


minutely = assessed


def stored(faults: Faults, **more: Any) -> StoredHistory:
    """Store the results of a grid with these faults, all links of which a mesh tests."""
    made = history_of(faults, **more)
    mesh = Mesh.objects.create(name="everything")
    for size, seconds in made.history.every_seconds.items():
        world.schedule(mesh, *permutations(made.ends, 2), every=seconds, size=size)
    made.store()
    return made


def lasting(scope: str, place: Any, hours: float, factor: float | None = None) -> Faults:
    start = NOW - round(hours * HOUR)
    return lambda grid: [place_fault(grid, scope, place, start, factor=factor)]


def heading(client: Client, path: str = "/") -> str:
    text = client.get(path, follow=True).content.decode()
    return text_of(re.findall(r"<h1.*?</h1>", text, re.DOTALL)[0])


def page(client: Client, path: str) -> str:
    return text_of(client.get(path, follow=True).content.decode().split("<main")[1])


def events(client: Client, params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer(client, f"/api/v1/events/?{params}")["events"]
    return found


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def fail(
    source: Endpoint, destination: Endpoint, at: datetime, where: str, size: str = "small"
) -> store.Result:
    return store.Result(
        id=uuid4(),
        source_id=source.pk,
        destination_id=destination.pk,
        size_class_id=SizeClass.objects.get(name=size).pk,
        profile_id=store.Profiles().id_of(mover="http-tpc", purpose=""),
        state=Transfer.State.FAILED,
        started_at=at,
        seconds=1.0,
        bytes=world.SIZES[size],
        error="connection refused (no server listens on this port)",
        error_where=where,
    )


def test_a_time_range_that_ended_a_second_ago_has_the_events_of_now(client: Client):
    now = moment(NOW)
    made = history_of(lasting("link", (0, 1), 5), every_hours={"large": 1})
    made.store(end=NOW - 3 * HOUR)
    assessed(now - timedelta(hours=3))
    made.store(start=NOW - 3 * HOUR)
    minutely(now)
    listed = [
        [each["type"] for each in events(client, f"from={start}&to={end}")]
        for start, end in (
            (format_time(now - timedelta(hours=20)), format_time(now - timedelta(seconds=1))),
            (format_time(now - timedelta(hours=20)), format_time(now + MINUTE)),
        )
    ]
    assert listed == [["failing"], ["failing"]]


def test_events_site_incident_and_ticket_have_the_true_beginning(client: Client):
    began = moment(NOW - 80 * HOUR)
    made = stored(lasting("destination", 3, 80, 0.33), every_hours=FOUR_A_DAY)
    assessed(moment(NOW))
    name, site = made.ends[3].name, made.ends[3].site.name
    (row,) = answer(client, "/api/v1/incidents/?open=yes")["incidents"]
    since = [time_of(row["began_at"])]
    since += [
        time_of(each["since"])
        for each in events(client, "window=7d")
        if (each["scope"], each["destination"]) == ("destination", name)
    ]
    said = answer(client, f"/api/v1/sites/{site}/?window=24h")["findings"]
    since += [time_of(each["since"]) for each in said if each["scope"] == "destination"]
    ticket = answer(client, f"/api/v1/incidents/{row['id']}/")["ticket"]
    assert len({each.replace(microsecond=0) for each in since}) == 1
    assert abs(since[0] - began) <= timedelta(hours=6)
    assert f"{since[0]:%Y-%m-%d %H:%M}" in ticket
    assert len(since) == 3


def test_a_destination_is_failing_where_each_link_had_only_one_or_two_tests(client: Client):
    made = stored(lasting("destination", 7, 30), endpoints=13, every_hours={"large": 24}, days=14)
    assessed(moment(NOW))
    name, site = made.ends[7].name, made.ends[7].site.name
    assert f"{name} fails as destination" in heading(client)
    said = page(client, f"/sites/{site}/")
    assert f"{name} fails as destination" in said
    assert "Similar to its peers" not in said
    (row,) = answer(client, "/api/v1/incidents/?open=yes")["incidents"]
    assert (row["scope"], row["destination"]) == ("destination", name)


def test_three_slow_tests_are_in_no_heading(client: Client):
    made = history_of(lambda grid: [], every_hours={"large": 3})
    made.store(end=NOW - 9 * HOUR)
    source, destination = made.ends[0], made.ends[1]
    rates = made.history.tests["large"]
    link = int(((made.history.source == 0) & (made.history.destination == 1)).nonzero()[0][0])
    usual = float(rates.log_rate[rates.link == link].mean())
    rest = [
        each
        for each in made.results(NOW - 9 * HOUR, NOW, (0, 1))
        if (each.source_id, each.destination_id) != (source.pk, destination.pk)
    ]
    store.store(rest, ids_are_new=True)
    with world.transfers() as some:
        for hours in (1, 4, 7):
            ago = world.NOW - moment(NOW - hours * HOUR)
            some.add(source, destination, 0.4 * 2.718**usual / world.MB, ago=ago)
    assessed(moment(NOW))
    named = f"{source.name} to {destination.name}"
    assert named not in heading(client)
    assert " slower" not in heading(client)
    assert events(client, "window=24h&now=yes&significant=yes") == []
    assert answer(client, "/api/v1/incidents/?open=yes")["incidents"] == []


def test_what_all_size_classes_show_is_one_event(client: Client):
    made = stored(
        lasting("destination", 3, 80, 0.4),
        every_hours={"small": 3, "medium": 8, "large": 12},
        noise=histories.Noise(),
    )
    assessed(moment(NOW))
    listed = events(client, "window=7d&now=yes")
    assert [(each["scope"], each["destination"]) for each in listed] == [
        ("destination", made.ends[3].name)
    ]
    assert listed[0]["sizes"] == ["small", "medium", "large"]


def test_operations_and_matrix_say_first_that_results_are_doubtful(client: Client):
    stored(lasting("grid", None, 20, 0.3), every_hours={"large": 2})
    assessed(moment(NOW))
    (row,) = answer(client, "/api/v1/incidents/?open=yes")["incidents"]
    assert row["scope"] == "grid"
    said = page(client, "/operations/")
    assert "Sonar is healthy" not in said
    assert "doubtful" in said
    assert heading(client).startswith("Results have been doubtful since")


def test_the_factor_of_an_endpoint_is_that_of_its_links(client: Client):
    made = stored(lasting("destination", 3, 80, 1 / 3), every_hours=ALL_CLASSES)
    assessed(moment(NOW))
    name, site = made.ends[3].name, made.ends[3].site.name
    (event,) = [
        each
        for each in events(client, "window=7d&now=yes")
        if each["scope"] == "destination" and each["destination"] == name
    ]
    assert abs(event["factor"] - 1 / 3) < 0.01
    assert event["low"] <= 1 / 3 <= event["high"]
    words = f"receives at {event['factor']:.2f}×"
    assert words in heading(client)
    assert words in page(client, f"/sites/{site}/")


def test_the_strip_counts_all_links_of_a_slow_destination_in_each_hour(client: Client):
    stored(lasting("destination", 3, 80, 1 / 3), every_hours=FOUR_A_DAY)
    assessed(moment(NOW))
    buckets = answer(client, "/api/v1/strip/?window=24h")["buckets"]
    assert buckets["slower_links"][-20:] == [5] * 20
    counts = client.get("/?window=24h").context["counts"]
    assert [each.count for each in counts if each.state == "slower"] == [5]
    assert "receives at" in heading(client, "/?window=24h")


def test_a_choice_of_links_has_the_same_heading_strip_and_counts(client: Client):
    made = stored(lasting("destination", 3, 80, 1 / 3), every_hours=FOUR_A_DAY)
    assessed(moment(NOW))
    site = made.ends[3].site.name
    for path, count in ((f"destination_site={site}", 5), (f"source_site={site}", 0)):
        strip = answer(client, f"/api/v1/strip/?window=24h&{path}")["buckets"]
        assert strip["slower_links"][-1] == count
        title = heading(client, f"/?window=24h&{path}")
        assert ("receives at" in title) == bool(count), title


def test_causes_say_what_changed_before_what_is_slow_by_nature(client: Client):
    noise = histories.Noise(failed=0.0, scatter=0.15, scatter_sd=0, day_sd=0.02, flaky_links=0)
    made = stored(
        lasting("destination", 3, 80, 1 / 3), every_hours=FOUR_A_DAY, endpoints=8, noise=noise
    )
    # By nature one sends at a fifth of the others.
    slow = made.ends[5]
    Transfer.objects.filter(source=slow, state="done").update(seconds=5 * F("seconds"))
    assessed(moment(NOW))
    text = page(client, "/causes/?window=24h")
    title = heading(client, "/causes/?window=24h")
    assert title.startswith("1 condition is open."), title
    name = made.ends[3].name
    changed, _, nature = text.partition("Slow or fast compared with peers")
    assert f"{name} receives at 0.33×" in changed
    assert slow.name not in changed.partition("Changes")[2]
    assert f"{slow.name}" in nature


def test_what_was_registered_long_after_an_incident_began_is_not_told_of_then():
    stored(lasting("destination", 3, 80, 0.33), every_hours=FOUR_A_DAY)
    anna = logged_in(account(Role.OPERATOR, name="anna"))
    HistoryEntry.objects.update(at=moment(NOW - 19 * HOUR))
    assessed(moment(NOW))
    (row,) = answer(anna, "/api/v1/incidents/?open=yes")["incidents"]
    nothing = "No changes to the affected endpoints were recorded"
    assert nothing in page(anna, f"/incidents/{row['id']}/")
    HistoryEntry.objects.update(at=time_of(row["began_at"]) - timedelta(hours=8))
    assert nothing not in page(anna, f"/incidents/{row['id']}/")


def new_mesh() -> tuple[Endpoint, ...]:
    """Make a mesh that is ten minutes old, of which one server of three died seven minutes ago.

    Its circuit breaker has opened: of its four links two had two tests since, of two three.
    """
    sites = [Site.objects.create(name=f"OWN-{name}") for name in "ABC"]
    first, dead, third = world.endpoints((f"{site.name}_DISK", site) for site in sites).values()
    mesh = Mesh.objects.create(name="own")
    world.schedule(mesh, *permutations((first, dead, third), 2), every=120, size="small")
    now = moment(NOW)
    with world.transfers() as some:
        for minutes in (17, 15, 13, 11, 9):
            for source, destination in permutations((first, dead, third), 2):
                ago = world.NOW - now + minutes * MINUTE
                some.add(source, destination, 300.0, ago=ago, size="small")
        for minutes in (7, 5, 3, 1):
            for source, destination in permutations((first, third), 2):
                ago = world.NOW - now + minutes * MINUTE
                some.add(source, destination, 300.0, ago=ago, size="small")
    late = [
        *((first, dead, "destination", each) for each in (7, 5, 2)),
        *((third, dead, "destination", each) for each in (6.9, 4.9)),
        *((dead, first, "source", each) for each in (6.8, 4.8, 1)),
        *((dead, third, "source", each) for each in (6.7, 4.7)),
    ]
    rows = [fail(source, there, now - at * MINUTE, where) for source, there, where, at in late]
    store.store(rows, ids_are_new=True)
    return first, dead, third


def test_a_server_that_dies_in_a_mesh_of_minutes_is_one_incident_of_it(client: Client):
    _, dead, _ = new_mesh()
    assessed(moment(NOW - 4 * 60_000))
    assessed(moment(NOW))
    (row,) = answer(client, "/api/v1/incidents/?open=yes")["incidents"]
    assert (row["scope"], row["source"]) == ("endpoint", dead.name)
    assert heading(client, "/?size=small").startswith("B_DISK fails in both directions since")


def test_the_message_of_a_dead_server_has_its_error_and_names_it(client: Client):
    _, dead, _ = new_mesh()
    assessed(moment(NOW))
    (row,) = Incident.objects.filter(closed_at=None)
    told = Notification(incident=row, created_at=moment(NOW), due_at=moment(NOW))
    sent = IncidentWords().message(Subscription(name="all"), [told], moment(NOW))
    assert sent.subject == f"{dead.name} fails in both directions"
    assert "connection refused (no server listens on this port)" in sent.text
    assert f"Check {dead.name} first" in sent.text
    assert "between the two sites" not in sent.text


def test_links_that_a_circuit_breaker_spares_are_failing_with_their_endpoint(client: Client):
    _, dead, _ = new_mesh()
    assessed(moment(NOW))
    rows = answer(client, "/api/v1/links/?window=24h&page_size=100")["links"]
    states = {
        (each["source"]["name"], each["destination"]["name"]): each["small"]["state"]
        for each in rows
    }
    assert {link for link, state in states.items() if state == "failing"} == {
        link for link in states if dead.name in link
    }


def test_the_page_of_a_site_with_a_dead_server_says_so_first(client: Client):
    new_mesh()
    assessed(moment(NOW))
    text = client.get("/sites/OWN-B/?size=small&window=24h", follow=True).content.decode()
    first = text_of(text.split('id="answer"')[1])[:200]
    assert "B_DISK fails in both directions" in first, first
    assert "Not significantly different from its peers" not in text_of(text)
    said = answer(client, "/api/v1/sites/OWN-B/?size=small&window=24h")
    assert {each["state"] for each in said["as_source"]["links"]} == {"failing"}
