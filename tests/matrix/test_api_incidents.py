"""Calls on incidents, the stream of what happened to them, decisions, and states of endpoints."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sonar.alerting import decisions
from sonar.models import Assessment, Condition, HistoryEntry, Incident, IncidentEvent
from sonar.people.roles import Role
from tests import found
from tests.accounts import account, logged_in
from tests.conditions import assessed_at, stored_condition
from tests.found import FAILING, SLOW
from tests.matrix import responses, world
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
CALL = "/api/v1/incidents/"
EVENTS = f"{CALL}events/"
STATES = "/api/v1/endpoints/state/"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def into_desy(small_world: World) -> Incident:
    """Return an open incident: DESY receives slowly from RAL and Glasgow."""
    sources = [small_world.ral, small_world.glasgow]
    return found.opened(found.into(small_world.desy, sources))


@pytest.fixture
def anna() -> User:
    return account(Role.OPERATOR, name="anna")


def test_incidents_come_page_by_page_and_as_csv_and_lines(
    client: Client, small_world: World, into_desy: Incident
):
    link = found.of_link(small_world.desy, small_world.ral, FAILING)
    found.evaluate(link, found.into(small_world.desy, [small_world.ral, small_world.glasgow]))
    pages = list(responses.pages(client, f"{CALL}?page_size=1"))
    rows = [row for page in pages for row in page["incidents"]]
    assert [row["scope"] for row in rows] == ["link", "destination"]
    slow = rows[1]
    assert {name: slow[name] for name in ("source", "destination", "factor", "low", "links")} == {
        "source": None,
        "destination": "DESY_DATADISK",
        "factor": 0.2,
        "low": 0.15,
        "links": 2,
    }
    assert slow["title"] == "DESY_DATADISK receives at 0.20× (0.15–0.26)"
    times = ("since_low", "began_at", "since_high", "confirmed_at")
    hours = ("10:00:30", "11:00:30", "11:00:30", "12:00:30")
    assert [slow[name] for name in times] == [f"2026-11-20T{hour}Z" for hour in hours]
    assert (slow["condition_id"], slow["tests"], slow["failed"]) == (into_desy.cause_id, 20, 1)
    asked = pages[0]["query"]
    assert (asked["size"], asked["open"], asked["window"]) == (None, None, "7d")
    (line,) = responses.csv_rows(client, f"{CALL}?format=csv&type=slow")
    assert (line["id"], line["sizes"]) == (str(into_desy.pk), "large")
    lines = client.get(f"{CALL}?format=ndjson&open=yes").content.splitlines()
    assert [json.loads(each)["id"] for each in lines] == [row["id"] for row in rows]


def test_one_has_its_links_its_events_and_the_text_for_a_ticket(
    client: Client, into_desy: Incident, anna: User, small_world: World
):
    for rate, hours in ((90.0, 2), (30.0, 0.9), (20.0, 0.5), (10.0, 0.1)):
        world.transfer(small_world.ral, small_world.desy, rate, ago=hours * HOUR)
    decisions.assign(into_desy, anna, NOW, anna, "mine")
    whole = responses.answer(client, f"{CALL}{into_desy.pk}/")
    assert whole["members"][0] == {
        "source": "RAL_DATADISK",
        "destination": "DESY_DATADISK",
        "size": "large",
        "type": "slow",
        "since": "2026-11-20T11:00:30Z",
        "until": None,
        "baseline_mb_s": 100.0,
        "rate_mb_s": 20.0,
    }
    assert (len(whole["members"]), whole["members"][1]["rate_mb_s"]) == (2, None)
    assert [event["type"] for event in whole["events"]] == ["opened", "assigned"]
    assert "Elsewhere, too few links have a baseline." in whole["ticket"]
    page = f"http://testserver/incidents/{into_desy.pk}/"
    assert f"\n\nIncident page: {page}\n\nSite: DESY\n" in whole["ticket"]
    # People have no names for those who have not logged in.
    assert (whole["assigned"], whole["assignee"]) == (True, None)
    assert {event["by"] for event in whole["events"]} == {None}
    named = responses.answer(logged_in(anna), f"{CALL}{into_desy.pk}/")
    assert (named["assignee"], named["events"][1]["by"]) == ("anna", "anna")
    assert client.get(f"{CALL}9999/").status_code == 404


def test_events_go_on_behind_an_id_and_none_is_missed(
    client: Client, small_world: World, into_desy: Incident, monkeypatch: pytest.MonkeyPatch
):
    found.evaluate(at=NOW + MINUTE)
    found.evaluate(at=NOW + 2 * HOUR)
    found.evaluate(found.of_link(small_world.ral, small_world.glasgow), at=NOW + 3 * HOUR)
    ids = list(IncidentEvent.objects.order_by("pk").values_list("pk", flat=True))
    monkeypatch.setattr("matrix.api.incidents.MOST_EVENTS", 2)
    first, second = responses.pages(client, EVENTS)
    told = first["events"] + second["events"]
    assert [event["id"] for event in told] == ids
    assert [event["type"] for event in told] == ["opened", "closed", "opened"]
    lines = client.get(f"{EVENTS}?format=ndjson&since={ids[0]}").content.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids[1:]
    assert client.get(f"{EVENTS}?format=ndjson&since={ids[-1]}").content == b""
    for wrong in ("x", "-1", str(ids[-1] + 1)):
        answer = client.get(f"{EVENTS}?since={wrong}")
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["since"]), wrong


def decide(client: Client, incident: Incident, **body: Any):
    return client.post(f"{CALL}{incident.pk}/", body, content_type="application/json")


def test_each_decision_is_one_call(into_desy: Incident, anna: User):
    client = logged_in(anna)
    until = "2026-11-21T08:00:00Z"
    for decision, fields in {
        "acknowledge": {},
        "assign": {"assignee": "anna"},
        "mute": {"until": until},
        "unmute": {},
        "note": {"text": "disks"},
    }.items():
        answer = decide(client, into_desy, decision=decision, **fields)
        assert answer.status_code == 200, answer.content
    whole = answer.json()
    assert (whole["acknowledged_by"], whole["assignee"], whole["muted_until"]) == (
        *("anna", "anna"),
        None,
    )
    muted = next(event for event in whole["events"] if event["type"] == "muted")
    assert (muted["until"], muted["by"]) == (until, "anna")
    assert decide(client, into_desy, decision="assign", assignee=None).json()["assignee"] is None
    closed = decide(client, into_desy, decision="accept", text="new firewall").json()
    assert (closed["closed_at"], closed["events"][-1]["type"]) == (
        "2026-11-20T12:00:30Z",
        "accepted",
    )
    again = decide(client, into_desy, decision="acknowledge")
    assert (again.status_code, again.json()["errors"]) == (
        409,
        {"incident": [f"Incident {into_desy.pk} is closed. Closed incidents accept only notes."]},
    )


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        ({}, "decision", "decision is missing"),
        ({"decision": "explode"}, "decision", "decision must be acknowledge, assign"),
        ({"decision": "note"}, "text", "A note must contain text"),
        ({"decision": "note", "text": 7}, "text", "text must be a string"),
        (
            {"decision": "note", "text": "x", "until": None},
            "until",
            "allowed only with the decision “mute”",
        ),
        ({"decision": "mute"}, "until", "“until” is missing"),
        ({"decision": "mute", "until": "soon"}, "until", "“until” must be an ISO 8601 time"),
        ({"decision": "mute", "until": "2020-01-01"}, "until", "must be in the future"),
        ({"decision": "assign"}, "assignee", "“assignee” is missing"),
        ({"decision": "assign", "assignee": "bob"}, "assignee", "not an active account"),
        ({"decision": "assign", "assignee": "a\0b"}, "assignee", "not an active account"),
        ({"decision": "note", "who": "x"}, "who", "There is no field “who”"),
    ],
)
def test_a_bad_decision_names_its_field_and_changes_nothing(
    into_desy: Incident, anna: User, body: dict[str, Any], field: str, sentence: str
):
    answer = decide(logged_in(anna), into_desy, **body)
    assert answer.status_code == 400, answer.content
    assert sentence in answer.json()["errors"][field][0]
    assert IncidentEvent.objects.count() == 1


def test_only_who_may_decide_does(into_desy: Incident, small_world: World, client: Client):
    note = {"decision": "note", "text": "x"}
    of_ral = logged_in(account(Role.SITE_ADMIN, small_world.ral.site, name="of-ral"))
    of_desy = logged_in(account(Role.SITE_ADMIN, small_world.desy.site, name="of-desy"))
    statuses = [decide(each, into_desy, **note).status_code for each in (client, of_ral, of_desy)]
    assert statuses == [401, 403, 200]


def states(client: Client, since: object = "") -> dict[str, Any]:
    asked = f"?since={since}" if since != "" else ""
    return responses.answer(client, f"{STATES}{asked}")


def by_name(answer: dict[str, Any]) -> dict[str, tuple[str, str]]:
    rows = answer["endpoints"]
    return {row["endpoint"]: (row["as_source"], row["as_destination"]) for row in rows}


@pytest.fixture
def looked(small_world: World) -> None:
    """Say that results were assessed a minute ago, and for some hours."""
    assessed_at(NOW - MINUTE)
    Assessment.objects.update(awake_since=NOW - 9 * HOUR)


def test_states_follow_from_confirmed_conditions_and_downtimes(
    client: Client, small_world: World, looked: None, into_desy: Incident
):
    found.evaluate(
        found.into(small_world.desy, [small_world.ral, small_world.glasgow]),
        found.of_link(small_world.ral, small_world.scratch),
    )
    world.downtime(site=small_world.glasgow.site)
    world.downtime(site=small_world.ral.site, severity="warning")
    answer = states(client)
    assert by_name(answer) == {
        "DESY_DATADISK": ("ok", "slow"),
        "DESY_SCRATCHDISK": ("ok", "ok"),
        "Glasgow_DATADISK": ("down", "down"),
        "RAL_DATADISK": ("ok", "ok"),
    }
    desy = answer["endpoints"][0]
    page = f"http://testserver/incidents/{into_desy.pk}/"
    assert (desy["since"], desy["evidence"]) == (
        "2026-11-20T11:00:30Z",
        [{"condition": into_desy.cause_id, "incident": into_desy.pk, "url": page}],
    )
    assert [(each["links_bad"], each["links_all"]) for each in answer["endpoints"]] == [
        *((2, 6), (1, 6), (1, 6), (2, 6)),
    ]
    assert answer["next_since"] == IncidentEvent.objects.latest("pk").pk
    (row, *_) = responses.csv_rows(client, f"{STATES}?format=csv")
    assert (row["as_destination"], row["evidence"]) == ("slow", page)
    # Of a site each endpoint at both ends, and of two conditions the worse; no incident is needed.
    stored_condition(FAILING, site=small_world.desy.site)
    stored_condition(FAILING, source=small_world.ral, confirmed=False)
    stored_condition("fast", source=small_world.ral)
    answer = states(client)
    assert by_name(answer) | {"Glasgow_DATADISK": ("down", "down")} == by_name(answer)
    assert by_name(answer)["DESY_SCRATCHDISK"] == by_name(answer)["DESY_DATADISK"]
    assert by_name(answer)["DESY_SCRATCHDISK"] == ("failing", "failing")
    assert by_name(answer)["RAL_DATADISK"] == ("ok", "ok")
    (evidence,) = answer["endpoints"][1]["evidence"]
    assert (evidence["incident"], evidence["url"]) == (None, "http://testserver/sites/DESY/")
    # When it is over, both ends are well since then.
    Condition.objects.update(ended_at=NOW - MINUTE)
    states_now = states(client)["endpoints"]
    assert (states_now[0]["as_destination"], states_now[0]["since"]) == (
        *("ok", "2026-11-20T11:59:30Z"),
    )


def test_nothing_is_known_without_assessments_or_while_measurements_are_doubtful(
    client: Client, small_world: World, looked: None, into_desy: Incident
):
    found.evaluate(found.into(small_world.desy, [small_world.ral]), found.Found(SLOW))
    assert set(by_name(states(client)).values()) == {("unknown", "unknown")}
    Condition.objects.filter(scope="grid").delete()
    assert ("unknown", "unknown") not in by_name(states(client)).values()
    Assessment.objects.filter(size_class__name="small").update(assessed_at=NOW - HOUR)
    world.downtime(site=small_world.ral.site)
    assert by_name(states(client)) == {
        name: ("unknown", "unknown") if name != "RAL_DATADISK" else ("down", "down")
        for name in ("DESY_DATADISK", "DESY_SCRATCHDISK", "Glasgow_DATADISK", "RAL_DATADISK")
    }


def test_since_gives_what_may_have_changed(client: Client, small_world: World, looked: None):
    """The registry of this world is new, too: its history is taken away first."""
    ral, glasgow, desy, scratch = small_world.endpoints
    link = found.of_link(ral, glasgow, began=NOW - 5 * HOUR)
    destination = found.into(desy, [ral], began=NOW - 4 * HOUR)

    found.evaluate(link, at=NOW - 3 * HOUR)
    first = states(client)
    assert len(first["endpoints"]) == 4
    since = first["next_since"]
    HistoryEntry.objects.all().delete()
    assert by_name(states(client, since)) == {}
    found.evaluate(link, destination, at=NOW - 2 * HOUR)
    assert set(by_name(states(client, since))) == {"DESY_DATADISK", "RAL_DATADISK"}
    since = states(client)["next_since"]
    assert by_name(states(client, since)) == {}
    # An end counts before the incident closes, and so does what comes back meanwhile.
    found.evaluate(link, at=NOW - 30 * MINUTE)
    assert set(by_name(states(client, since))) == {"DESY_DATADISK", "RAL_DATADISK"}
    found.evaluate(link, found.into(desy, [ral], began=NOW - 20 * MINUTE), at=NOW - 10 * MINUTE)
    assert by_name(states(client, since))["DESY_DATADISK"] == ("ok", "slow")
    since = states(client)["next_since"]
    assert by_name(states(client, since)) == {}
    world.downtime(ends=-MINUTE, endpoint=scratch)
    HistoryEntry.objects.all().delete()
    assert set(by_name(states(client, since))) == {"DESY_SCRATCHDISK"}
    assert set(by_name(states(client, "2026-11-20T11:52:00Z"))) == {"DESY_SCRATCHDISK"}
    desy.label = "other"
    desy.save()
    assert "DESY_DATADISK" in by_name(states(client, "2026-11-20T11:59:59Z"))
    # Who slept meanwhile does not know what changed.
    Assessment.objects.filter(size_class__name="small").update(awake_since=NOW - MINUTE)
    assert len(states(client, since)["endpoints"]) == 4
    for wrong in ("x", "99999", "2027-01-01"):
        answer = client.get(f"{STATES}?since={wrong}")
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["since"]), wrong


def test_an_answer_that_has_not_changed_is_not_sent_again(
    client: Client, looked: None, into_desy: Incident
):
    tag = client.get(STATES).headers["ETag"]
    Assessment.objects.update(assessed_at=NOW)
    assert client.get(STATES, headers={"If-None-Match": tag}).status_code == 304
    found.evaluate(at=NOW + MINUTE)
    found.evaluate(at=NOW + 2 * HOUR)
    assert client.get(STATES, headers={"If-None-Match": tag}).status_code == 200
